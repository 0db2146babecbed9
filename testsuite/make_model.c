/* make_model.c - a model of a fixture's family, four times as wide, with random weights of a type:
 * what the table of families and types is made with. Rows of 256 values, so that every type fits.
 *
 *   testsuite/make_model FIXTURE.gguf TYPE OUT.gguf
 *
 * Metadata, vocabulary and norms are the fixture's (widths scaled, norms repeated). A matrix whose
 * rows the type's blocks do not divide is in q8_0 or f16, as quantisers do it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "formats/gguf_write.h"
#include "random_weights.h"

enum { TIMES = 4, MAX_TENSORS = 512 };

static bool has(fl_str s, const char *part) {
  return memmem(s.data, s.len, part, strlen(part)) != NULL;
}

static bool ends(fl_str s, const char *end) {
  size_t n = strlen(end);
  return s.len >= n && memcmp(s.data + s.len - n, end, n) == 0;
}

/* Dimensions that count something else than width: vocabulary, experts, one scale a layer. */
static bool is_count(const fl_tensor_info *t, uint32_t d) {
  if (ends(t->name, "token_embd.weight") || ends(t->name, "output.weight"))
    return d == 1 && !has(t->name, "attn_output");
  if (has(t->name, "ffn_gate_inp.weight")) return d == 1;
  if (has(t->name, "_exps.weight")) return d == 2;
  return has(t->name, "layer_output_scale") || has(t->name, "_exps.scale");
}

static fl_tensor_info widen(const fl_tensor_info *from, const fl_dtype_traits *want) {
  fl_tensor_info t = *from;
  const fl_dtype_traits *d = fl_dtype_get(t.ggml_type);
  for (uint32_t i = 0; i < t.n_dims; i++)
    if (!is_count(from, i)) t.dim[i] *= TIMES;
  if (t.n_dims > 1 && !has(t.name, "ffn_gate_inp")) {
    d = want;
    if (t.dim[0] % d->block != 0) d = fl_dtype_get(t.dim[0] % 32 == 0 ? FL_Q8_0 : FL_F16);
  }
  t.ggml_type = d->type;
  t.n_bytes = t.dim[0] / d->block * d->bytes * t.dim[1] * t.dim[2];
  return t;
}

/* Pairs with a width in them, as a number or an array. */
static bool is_width(fl_str key) {
  return ends(key, ".embedding_length") || ends(key, "feed_forward_length") ||
         has(key, ".key_length") || has(key, ".value_length") || has(key, ".dimension_count") ||
         ends(key, ".embedding_length_per_layer_input");
}

/* Scales the u32 or i32 values at the end of a pair. */
static void put_pair(fl_gguf_pairs *p, const fl_gguf *g, size_t i, fl_str key, fl_gguf_type type) {
  const uint8_t *raw;
  size_t n, at = key.len + 12;
  fl_gguf_meta_raw(g, i, &raw, &n);
  uint8_t *copy = fl_malloc(n);
  if (copy == NULL) exit(1);
  memcpy(copy, raw, n);
  if (type == FL_GGUF_ARR) at += 12;
  for (; is_width(key) && at + 4 <= n; at += 4) {
    uint32_t v;
    memcpy(&v, copy + at, 4);
    v *= TIMES;
    memcpy(copy + at, &v, 4);
  }
  fl_gguf_pairs_raw(p, copy, n);
  fl_free(copy);
}

static int put_tensor(fl_gguf_writer *w, const fl_tensor_info *from, const fl_tensor_info *t,
                      uint64_t *state) {
  const fl_dtype_traits *d = fl_dtype_get(t->ggml_type);
  uint8_t *data = fl_malloc(t->n_bytes + 8);
  if (data == NULL) return FL_ENOMEM;
  if (t->n_dims > 1) {
    random_blocks(d, data, t->n_bytes / d->bytes, 1 / sqrt((double)t->dim[0]), state);
  } else { /* each value TIMES times, so that tables keep their order */
    for (size_t i = 0; i < t->n_bytes; i += 4)
      memcpy(data + i, (const uint8_t *)from->data + i / 4 / (t->dim[0] / from->dim[0]) * 4, 4);
  }
  int rc = fl_gguf_writer_put(w, data, t->n_bytes);
  fl_free(data);
  return rc;
}

int main(int argc, char **argv) {
  static fl_tensor_info t[MAX_TENSORS];
  const fl_dtype_traits *want = argc == 4 ? fl_dtype_by_name(argv[2]) : NULL;
  fl_gguf *g = NULL;
  fl_gguf_pairs pairs = { 0 };
  fl_gguf_writer *w = NULL;
  fl_err err = { 0 };
  fl_str key;
  fl_gguf_type type;
  uint64_t state = 88172645463325252u;
  if (want == NULL) {
    fprintf(stderr, "usage: make_model FIXTURE.gguf TYPE OUT.gguf\n");
    return 2;
  }
  int rc = fl_gguf_open(&g, argv[1], &err);
  size_t n = rc == FL_OK ? fl_gguf_n_tensors(g) : 0;
  if (n > MAX_TENSORS) rc = fl_fail(&err, FL_EINPUT, "%s: too many tensors", argv[1]);
  if (rc == FL_OK) {
    for (size_t i = 0; fl_gguf_meta_at(g, i, &key, &type); i++) put_pair(&pairs, g, i, key, type);
    for (size_t i = 0; i < n; i++) t[i] = widen(fl_gguf_tensor_at(g, i), want);
    rc = fl_gguf_writer_open(&w, argv[3], &pairs, t, n, 32, &err);
  }
  for (size_t i = 0; rc == FL_OK && i < n; i++)
    if (put_tensor(w, fl_gguf_tensor_at(g, i), &t[i], &state) != FL_OK)
      break; /* the commit says why */
  if (rc == FL_OK) rc = fl_gguf_writer_commit(w, &err);
  if (rc != FL_OK) fprintf(stderr, "make_model: %s\n", err.text);
  fl_gguf_pairs_release(&pairs);
  fl_gguf_close(g);
  return rc == FL_OK ? 0 : 1;
}
