/* fuzz_model.c - damaged models: every fixture is changed at random, in its header and anywhere,
 * and cut; opening it must give a model that runs a row, or one sentence, never a fault. Built with
 * the sanitizers this is where they look at the readers.
 *
 *   fuzz_model [RUNS [SEED]]     changes of each file, 100 when not given */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "formats/transcode.h"
#include "model/model.h"
#include "model/pass.h"

static const char *const files[] = { "tiny-llama",           "tiny-qwen2",
                                     "tiny-qwen3",           "tiny-qwen3moe",
                                     "tiny-gemma3",          "tiny-gemma4-dense",
                                     "tiny-gemma4-moe",      "tiny-qwen3-k256-q4_k",
                                     "tiny-qwen3-k256-q6_k", "tiny-qwen3-q8_0" };

typedef struct fuzz {
  uint64_t state;
  size_t opened, refused, wrong;
  fl_team *team;
  char path[512], out[520];
} fuzz;

static uint64_t draw(fuzz *f, uint64_t n) {
  f->state ^= f->state << 13;
  f->state ^= f->state >> 7;
  f->state ^= f->state << 17;
  return f->state % n;
}

/* Lengths, counts and types are where a reader goes astray: whole words are set to such values. */
static void change(fuzz *f, uint8_t *data, size_t *size, size_t head) {
  static const uint64_t words[] = { 0,
                                    1,
                                    2,
                                    7,
                                    8,
                                    255,
                                    256,
                                    65536,
                                    1u << 31,
                                    UINT32_MAX,
                                    (uint64_t)1 << 32,
                                    (uint64_t)1 << 62,
                                    UINT64_MAX };
  const size_t n = 1 + draw(f, 4);
  if (draw(f, 8) == 0) *size = draw(f, *size);
  for (size_t i = 0; i<n && * size> 16; i++) {
    const size_t span = draw(f, 4) > 0 && head < *size ? head : *size;
    const size_t at = draw(f, span > 8 ? span - 8 : 1);
    const uint64_t word = words[draw(f, sizeof words / sizeof *words)];
    switch (draw(f, 4)) {
    case 0: data[at] = (uint8_t)draw(f, 256); break;
    case 1: data[at] ^= (uint8_t)(1u << draw(f, 8)); break;
    case 2: memcpy(data + at, &word, 4); break;
    default: memcpy(data + at, &word, 8); break;
    }
  }
}

/* One row through a model that opened. */
static void run_row(fuzz *f, fl_model *m) {
  const fl_hparams *hp = fl_model_hparams(m);
  fl_pass_options opt = { .max_rows = 2, .max_spans = 1, .max_out_rows = 2 };
  const int32_t ids[2] = { 1, 2 };
  fl_pass *pass = NULL;
  fl_kv_pool *pool = NULL;
  fl_seq *seq = NULL;
  size_t row = 1;
  float *logits = fl_aligned_calloc(hp->n_vocab, sizeof *logits);
  /* A huge width that fits its tensors would be memory, not a fault. */
  int rc = logits != NULL ? fl_pass_new(&pass, m, f->team, &opt, NULL) : FL_ENOMEM;
  if (rc == FL_OK) rc = fl_kv_pool_new(&pool, hp, fl_model_kernels(m), FL_KV_F32, 0, NULL);
  if (rc == FL_OK) rc = fl_seq_new(&seq, pool, NULL);
  fl_span span = { .seq = seq, .tokens = ids, .n_rows = 2 };
  if (rc == FL_OK) rc = fl_pass_forward(pass, &span, 1, NULL);
  if (rc == FL_OK) fl_pass_logits(pass, &row, 1, logits);
  if (seq) fl_seq_free(seq);
  if (pool) fl_kv_pool_free(pool);
  if (pass) fl_pass_free(pass);
  fl_free(logits);
}

static void try_file(fuzz *f, const char *name, size_t run) {
  fl_err err = { 0 };
  fl_model *m = NULL;
  fl_gguf *g = NULL;
  fl_transcode_report report;
  const fl_model_options opt = { .pack_experts = run % 2 };
  int rc = fl_model_open(&m, f->path, &opt, f->team, &err);
  if (rc == FL_OK) {
    f->opened++;
    run_row(f, m);
    fl_model_close(m);
  } else {
    f->refused++;
    if (err.text[0] == '\0' || strchr(err.text, '\n') != NULL) {
      f->wrong++;
      printf("%s, change %zu: code %d without one sentence: %s\n", name, run, rc, err.text);
    }
  }
  if (fl_gguf_open(&g, f->path, NULL) == FL_OK)
    (void)fl_transcode(g, fl_dtype_by_name(run % 3 ? "f16" : "q8_0"), f->out, NULL, NULL, &report,
                       NULL);
  fl_gguf_close(g);
}

static int fuzz_file(fuzz *f, const char *name, size_t runs) {
  const char *dir = getenv("FIXTURES");
  char path[1024];
  fl_buf whole = { 0 };
  fl_gguf *g = NULL;
  snprintf(path, sizeof path, "%s/tiny/%s.gguf", dir ? dir : "fixtures", name);
  int rc = fl_fs_read(&whole, path, (size_t)1 << 26, NULL);
  if (rc == FL_OK) rc = fl_gguf_open(&g, path, NULL);
  const size_t head = rc == FL_OK ? (size_t)fl_gguf_tensor_at(g, 0)->file_offset : 0;
  fl_gguf_close(g);
  uint8_t *data = fl_malloc(whole.len + 1);
  for (size_t i = 0; rc == FL_OK && data != NULL && i < runs; i++) {
    size_t size = whole.len;
    memcpy(data, whole.data, size);
    change(f, data, &size, head);
    unlink(f->path); /* see scratch_put */
    FILE *out = fopen(f->path, "wb");
    if (out == NULL || fwrite(data, 1, size, out) != size) rc = FL_EFAIL;
    if (out != NULL) fclose(out);
    if (rc == FL_OK) try_file(f, name, i);
  }
  if (rc != FL_OK) printf("%s: cannot be read or written\n", path);
  fl_free(data);
  fl_buf_release(&whole);
  return rc;
}

int main(int argc, char **argv) {
  const char *tmp = getenv("TMPDIR");
  const size_t runs = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 100;
  fuzz f = { .state = argc > 2 ? strtoul(argv[2], NULL, 10) : 88172645463325252u };
  snprintf(f.path, sizeof f.path, "%s/flotilla-fuzz-%ld.gguf", tmp ? tmp : "/tmp", (long)getpid());
  snprintf(f.out, sizeof f.out, "%s.out", f.path);
  int rc = fl_team_new(&f.team, 1, NULL);
  for (size_t i = 0; rc == FL_OK && i < sizeof files / sizeof *files; i++)
    rc = fuzz_file(&f, files[i], runs);
  unlink(f.path);
  unlink(f.out);
  if (f.team) fl_team_free(f.team);
  printf("%zu opened, %zu refused, %zu wrong\n", f.opened, f.refused, f.wrong);
  return rc == FL_OK && f.wrong == 0 && f.opened > 0 && f.refused > 0 ? 0 : 1;
}
