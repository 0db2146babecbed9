/* make_moe.c - writes a Gemma 4 model with experts of the published 26B-A4B's widths, cut down in
 * layers, with random weights: for measuring memory and time, not for reading what it says.
 *
 *   testsuite/make_moe VOCABULARY.gguf LAYERS OUT.gguf
 *
 * VOCABULARY is a file whose tokenizer is taken over (Gemma 3's). Every sixth layer sees all rows,
 * as in the published model. The blocks' quants are random and their scales such that every matrix
 * has outputs of about the size of its inputs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "formats/gguf_write.h"
#include "random_weights.h"

enum {
  WIDTH = 2816,
  HEADS = 16,
  DENSE = 2112,
  EXPERTS = 128,
  USED = 8,
  EXPERT = 704,
  MAX_LAYERS = 30,
  LOCAL_KV = 8,
  LOCAL_DIM = 256,
  FULL_KV = 2,
  FULL_DIM = 512,
  WINDOW = 1024,
  PERIOD = 6,
  MAX_TENSORS = MAX_LAYERS * 32 + 8
};

typedef struct maker {
  fl_tensor_info t[MAX_TENSORS];
  char name[MAX_TENSORS][64];
  size_t n;
  uint64_t state;
} maker;

static void add(maker *m, const char *name, fl_dtype type, uint64_t cols, uint64_t rows,
                uint64_t experts) {
  const fl_dtype_traits *d = fl_dtype_get(type);
  fl_tensor_info *t = &m->t[m->n];
  snprintf(m->name[m->n], sizeof m->name[m->n], "%s", name);
  *t = (fl_tensor_info){ .name = { m->name[m->n], strlen(m->name[m->n]) },
                         .n_dims = experts ? 3
                                   : rows  ? 2
                                           : 1,
                         .dim = { cols, rows ? rows : 1, experts ? experts : 1, 1 },
                         .ggml_type = type };
  t->n_bytes = cols / d->block * d->bytes * t->dim[1] * t->dim[2];
  m->n++;
}

static void add_layer(maker *m, size_t i) {
  const bool full = i % PERIOD == PERIOD - 1;
  const uint64_t dim = full ? FULL_DIM : LOCAL_DIM, kv = full ? FULL_KV : LOCAL_KV;
  const struct {
    const char *kind;
    fl_dtype type;
    uint64_t cols, rows, experts;
  } list[] = {
    { "attn_norm.weight", FL_F32, WIDTH, 0, 0 },
    { "attn_q.weight", FL_Q8_0, WIDTH, HEADS * dim, 0 },
    { "attn_k.weight", FL_Q8_0, WIDTH, kv * dim, 0 },
    { full ? NULL : "attn_v.weight", FL_Q8_0, WIDTH, kv * dim, 0 },
    { "attn_output.weight", FL_Q8_0, HEADS * dim, WIDTH, 0 },
    { "attn_q_norm.weight", FL_F32, dim, 0, 0 },
    { "attn_k_norm.weight", FL_F32, dim, 0, 0 },
    { "post_attention_norm.weight", FL_F32, WIDTH, 0, 0 },
    { "layer_output_scale.weight", FL_F32, 1, 0, 0 },
    { "ffn_norm.weight", FL_F32, WIDTH, 0, 0 },
    { "ffn_gate.weight", FL_Q8_0, WIDTH, DENSE, 0 },
    { "ffn_up.weight", FL_Q8_0, WIDTH, DENSE, 0 },
    { "ffn_down.weight", FL_Q8_0, DENSE, WIDTH, 0 },
    { "post_ffw_norm.weight", FL_F32, WIDTH, 0, 0 },
    { "ffn_gate_inp.weight", FL_F32, WIDTH, EXPERTS, 0 },
    { "ffn_gate_inp.scale", FL_F32, WIDTH, 0, 0 },
    { "pre_ffw_norm_2.weight", FL_F32, WIDTH, 0, 0 },
    { "post_ffw_norm_1.weight", FL_F32, WIDTH, 0, 0 },
    { "post_ffw_norm_2.weight", FL_F32, WIDTH, 0, 0 },
    { "ffn_gate_up_exps.weight", FL_Q4_K, WIDTH, 2 * EXPERT, EXPERTS },
    { "ffn_down_exps.weight", FL_Q8_0, EXPERT, WIDTH, EXPERTS },
    { "ffn_down_exps.scale", FL_F32, EXPERTS, 0, 0 },
  };
  for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
    char name[64];
    if (list[k].kind == NULL) continue;
    snprintf(name, sizeof name, "blk.%zu.%s", i, list[k].kind);
    add(m, name, list[k].type, list[k].cols, list[k].rows, list[k].experts);
  }
}

static int put_random(maker *m, fl_gguf_writer *w, const fl_tensor_info *t) {
  enum { PIECE = 4096 };
  const fl_dtype_traits *d = fl_dtype_get(t->ggml_type);
  const double s = 1 / sqrt((double)t->dim[0]);
  uint8_t *piece = fl_malloc((size_t)PIECE * d->bytes + 8);
  int rc = piece ? FL_OK : FL_ENOMEM;
  for (size_t left = t->n_bytes / d->bytes; left > 0 && rc == FL_OK;) {
    const size_t n = left < PIECE ? left : PIECE;
    random_blocks(d, piece, n, t->n_dims == 1 ? 0.05 : s, &m->state);
    for (size_t i = 0; t->n_dims == 1 && i < n; i++) { /* norms and scales: 1 and a little */
      float f;
      memcpy(&f, piece + i * 4, 4);
      f += 1;
      memcpy(piece + i * 4, &f, 4);
    }
    rc = fl_gguf_writer_put(w, piece, n * d->bytes);
    left -= n;
  }
  fl_free(piece);
  return rc;
}

static void put_array(fl_gguf_pairs *p, const char *key, const uint32_t *v, size_t n) {
  const uint64_t len = strlen(key), count = n;
  const uint32_t head[2] = { FL_GGUF_ARR, FL_GGUF_U32 };
  fl_buf_append(&p->bytes, &len, 8);
  fl_buf_puts(&p->bytes, key);
  fl_buf_append(&p->bytes, head, 8);
  fl_buf_append(&p->bytes, &count, 8);
  fl_buf_append(&p->bytes, v, n * 4);
  p->n++;
}

static void add_pairs(fl_gguf_pairs *p, const fl_gguf *vocab, size_t layers) {
  static const struct {
    const char *key;
    uint32_t v;
  } numbers[] = {
    { "gemma4.context_length", 131072 },
    { "gemma4.embedding_length", WIDTH },
    { "gemma4.feed_forward_length", DENSE },
    { "gemma4.attention.head_count", HEADS },
    { "gemma4.attention.key_length", FULL_DIM },
    { "gemma4.attention.value_length", FULL_DIM },
    { "gemma4.attention.key_length_swa", LOCAL_DIM },
    { "gemma4.attention.value_length_swa", LOCAL_DIM },
    { "gemma4.rope.dimension_count", FULL_DIM },
    { "gemma4.rope.dimension_count_swa", LOCAL_DIM },
    { "gemma4.attention.sliding_window", WINDOW },
    { "gemma4.expert_count", EXPERTS },
    { "gemma4.expert_used_count", USED },
    { "gemma4.expert_feed_forward_length", EXPERT },
  };
  uint32_t sliding[MAX_LAYERS], kv[MAX_LAYERS];
  fl_str key;
  fl_gguf_type type;
  fl_gguf_pairs_str(p, "general.architecture", "gemma4");
  fl_gguf_pairs_str(p, "general.name", "random experts");
  fl_gguf_pairs_u32(p, "gemma4.block_count", (uint32_t)layers);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    fl_gguf_pairs_u32(p, numbers[i].key, numbers[i].v);
  fl_gguf_pairs_f32(p, "gemma4.rope.freq_base", 1e6f);
  fl_gguf_pairs_f32(p, "gemma4.rope.freq_base_swa", 1e4f);
  fl_gguf_pairs_f32(p, "gemma4.attention.layer_norm_rms_epsilon", 1e-6f);
  fl_gguf_pairs_f32(p, "gemma4.final_logit_softcapping", 30);
  for (size_t i = 0; i < layers; i++) {
    sliding[i] = i % PERIOD != PERIOD - 1;
    kv[i] = sliding[i] ? LOCAL_KV : FULL_KV;
  }
  put_array(p, "gemma4.attention.sliding_window_pattern", sliding, layers);
  put_array(p, "gemma4.attention.head_count_kv", kv, layers);
  for (size_t i = 0; fl_gguf_meta_at(vocab, i, &key, &type); i++) {
    const uint8_t *raw;
    size_t n;
    if (key.len < 10 || memcmp(key.data, "tokenizer.", 10) != 0) continue;
    fl_gguf_meta_raw(vocab, i, &raw, &n);
    fl_gguf_pairs_raw(p, raw, n);
  }
}

int main(int argc, char **argv) {
  static maker m = { .state = 88172645463325252u };
  const size_t layers = argc == 4 ? (size_t)strtoul(argv[2], NULL, 10) : 0;
  fl_gguf *vocab = NULL;
  fl_gguf_pairs pairs = { 0 };
  fl_gguf_writer *w = NULL;
  fl_gguf_arr tokens = { 0 };
  fl_err err = { 0 };
  if (layers < 1 || layers > MAX_LAYERS) {
    fprintf(stderr, "usage: make_moe VOCABULARY.gguf LAYERS OUT.gguf (LAYERS 1 to %d)\n",
            MAX_LAYERS);
    return 2;
  }
  int rc = fl_gguf_open(&vocab, argv[1], &err);
  if (rc == FL_OK && !fl_gguf_get_arr(vocab, "tokenizer.ggml.tokens", &tokens))
    rc = fl_fail(&err, FL_EINPUT, "%s: holds no vocabulary", argv[1]);
  if (rc == FL_OK) {
    add_pairs(&pairs, vocab, layers);
    add(&m, "token_embd.weight", FL_Q6_K, WIDTH, tokens.n, 0);
    add(&m, "output_norm.weight", FL_F32, WIDTH, 0, 0);
    for (size_t i = 0; i < layers; i++) add_layer(&m, i);
    rc = fl_gguf_writer_open(&w, argv[3], &pairs, m.t, m.n, 32, &err);
  }
  for (size_t i = 0; rc == FL_OK && i < m.n; i++)
    if (put_random(&m, w, &m.t[i]) != FL_OK) break; /* the commit says why */
  if (rc == FL_OK) rc = fl_gguf_writer_commit(w, &err);
  if (rc != FL_OK) fprintf(stderr, "make_moe: %s\n", err.text);
  fl_gguf_pairs_release(&pairs);
  fl_gguf_close(vocab);
  return rc == FL_OK ? 0 : 1;
}
