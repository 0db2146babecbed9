/* transcode.c - see transcode.h. A tensor passes through in pieces of whole blocks. */
#include "formats/transcode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "formats/gguf_private.h"
#include "formats/gguf_write.h"

enum { PIECE = 1 << 18 }; /* values; a multiple of every block */

typedef struct job {
  const fl_gguf *g;
  const fl_dtype_traits *to;
  const char *out;
  int (*poll)(void *ctx);
  void *ctx;
  fl_transcode_report report;
  fl_tensor_info *tensors; /* of the new file */
  float *wide;             /* [PIECE] */
  uint8_t *narrow;         /* a piece in the new type */
  fl_err *err;
} job;

static bool has(fl_str s, const char *part) {
  return memmem(s.data, s.len, part, strlen(part)) != NULL;
}

static bool is_matrix(const fl_tensor_info *t) {
  static const char end[] = ".weight";
  size_t n = sizeof end - 1;
  return t->n_dims >= 2 && t->name.len >= n &&
         memcmp(t->name.data + t->name.len - n, end, n) == 0 && !has(t->name, "norm");
}

static int refuse(const job *j, const fl_tensor_info *t, const char *why) {
  return fl_fail(j->err, FL_EINPUT, "%s: the tensor '%.*s' %s", fl_gguf_path(j->g),
                 (int)(t->name.len < 80 ? t->name.len : 80), t->name.data, why);
}

/* What becomes of a tensor. */
static int plan_tensor(job *j, const fl_tensor_info *t, fl_tensor_info *to) {
  *to = *t;
  if (t->data == NULL) return refuse(j, t, "has a type that nobody knows; it cannot be copied");
  if (!is_matrix(t) || (has(t->name, ".ffn_gate_inp.") && j->to->type != FL_F32)) {
    j->report.kept++;
  } else if (t->ggml_type == (uint32_t)j->to->type) {
    j->report.same++;
  } else if (t->dim[0] % j->to->block != 0) {
    j->report.ragged++;
  } else if (fl_dtype_get(t->ggml_type) == NULL) {
    char why[160];
    snprintf(why, sizeof why,
             "has the type %s, which cannot be converted; begin with a file of a "
             "usual type",
             fl_dtype_any_name(t->ggml_type));
    return refuse(j, t, why);
  } else {
    size_t n = 0;
    bool fits = fl_dtype_row_bytes(j->to, (size_t)t->dim[0], &n);
    for (uint32_t d = 1; d < t->n_dims; d++) fits = fits && fl_mul_size(n, (size_t)t->dim[d], &n);
    if (!fits) return refuse(j, t, "would be larger than a file can be");
    to->ggml_type = j->to->type;
    to->n_bytes = n;
    j->report.converted++;
  }
  return FL_OK;
}

static uint32_t file_type(fl_dtype to) {
  switch (to) {
  case FL_F32: return 0;
  case FL_F16: return 1;
  case FL_Q8_0: return 7;
  default: return 32; /* bf16 */
  }
}

static bool key_is(fl_str key, const char *want) {
  return key.len == strlen(want) && memcmp(key.data, want, key.len) == 0;
}

static void collect_pairs(const job *j, fl_gguf_pairs *pairs) {
  static const char kind[] = "general.file_type", version[] = "general.quantization_version";
  fl_str key;
  fl_gguf_type type;
  for (size_t i = 0; fl_gguf_meta_at(j->g, i, &key, &type); i++) {
    const uint8_t *raw;
    size_t n;
    fl_gguf_meta_raw(j->g, i, &raw, &n);
    if (key_is(key, kind)) fl_gguf_pairs_u32(pairs, kind, file_type(j->to->type));
    else fl_gguf_pairs_raw(pairs, raw, n);
  }
  if (!fl_gguf_has(j->g, kind)) fl_gguf_pairs_u32(pairs, kind, file_type(j->to->type));
  if (j->to->block > 1 && !fl_gguf_has(j->g, version)) fl_gguf_pairs_u32(pairs, version, 2);
}

/* The largest magnitude that the type holds: f16 rounds up to infinity from 65520 on; a scale of
 * q8_0 is a 127th part in f16. */
static float limit_of(const fl_dtype_traits *to) {
  switch (to->type) {
  case FL_F16: return 65520.0f;
  case FL_Q8_0: return 65504.0f * 127;
  case FL_BF16: return 0x1.FFp127f; /* rounds up to infinity from here on */
  default: return INFINITY;
  }
}

/* Piece [at, at + n) of a converted tensor, in j->narrow; its bytes in *n_bytes. */
static int convert(const job *j, const fl_tensor_info *t, size_t at, size_t n, size_t *n_bytes) {
  const fl_dtype_traits *from = fl_dtype_get(t->ggml_type);
  const float limit = limit_of(j->to);
  from->dequantise(j->wide, (const uint8_t *)t->data + at / from->block * from->bytes, n);
  for (size_t i = 0; i < n; i++) {
    if (!isfinite(j->wide[i])) return refuse(j, t, "holds a value that is not finite");
    if (!(fabsf(j->wide[i]) < limit))
      return refuse(j, t, "holds a value too large for the new type; use bf16 or f32");
  }
  j->to->quantise(j->narrow, j->wide, n);
  *n_bytes = n / j->to->block * j->to->bytes;
  return FL_OK;
}

/* Either puts the new tensor's bytes (w) or compares them with `back`. */
static int pass_tensor(const job *j, size_t i, fl_gguf_writer *w, const fl_tensor_info *back) {
  const fl_tensor_info *t = fl_gguf_tensor_at(j->g, i);
  const uint8_t *there = back != NULL ? back->data : NULL;
  size_t n_values = 1, n_bytes = 0;
  bool same = back == NULL || back->n_bytes == j->tensors[i].n_bytes;
  int rc = FL_OK;
  for (uint32_t d = 0; d < t->n_dims; d++) n_values *= (size_t)t->dim[d];
  if (t->ggml_type == j->tensors[i].ggml_type) {
    if (w != NULL) fl_gguf_writer_put(w, t->data, t->n_bytes);
    else same = same && memcmp(there, t->data, t->n_bytes) == 0;
  } else {
    for (size_t at = 0; at < n_values && rc == FL_OK && same; at += PIECE) {
      rc = convert(j, t, at, n_values - at < PIECE ? n_values - at : PIECE, &n_bytes);
      if (rc == FL_OK && j->poll != NULL) rc = j->poll(j->ctx);
      if (rc != FL_OK) break;
      if (w != NULL) {
        if (fl_gguf_writer_put(w, j->narrow, n_bytes) != FL_OK) break; /* the commit says why */
      } else {
        same = memcmp(there, j->narrow, n_bytes) == 0;
        there += n_bytes;
      }
    }
  }
  fl_gguf_drop(j->g, t);
  if (rc == FL_OK && !same) rc = refuse(j, t, "reads back differently from the new file");
  return rc;
}

static bool same_shape(const fl_tensor_info *a, const fl_tensor_info *b) {
  return fl_str_compare(&a->name, &b->name) == 0 && a->ggml_type == b->ggml_type &&
         memcmp(a->dim, b->dim, sizeof a->dim) == 0;
}

/* Reads the temporary file back: every pair and every tensor is what was meant. */
static int check_back(const job *j, const fl_gguf_pairs *pairs, const char *path) {
  fl_gguf *back = NULL;
  size_t at = 0;
  int rc = fl_gguf_open(&back, path, j->err);
  if (rc != FL_OK) return rc;
  bool same = fl_gguf_n_meta(back) == pairs->n &&
              fl_gguf_n_tensors(back) == fl_gguf_n_tensors(j->g) &&
              fl_gguf_alignment(back) == fl_gguf_alignment(j->g);
  for (size_t i = 0; same && i < pairs->n; i++) {
    const uint8_t *raw;
    size_t n;
    fl_gguf_meta_raw(back, i, &raw, &n);
    same = n <= pairs->bytes.len - at && memcmp(raw, pairs->bytes.data + at, n) == 0;
    at += n;
  }
  if (!same) rc = fl_fail(j->err, FL_EFAIL, "%s: reads back differently; check the disk", j->out);
  for (size_t i = 0; rc == FL_OK && i < fl_gguf_n_tensors(j->g); i++) {
    const fl_tensor_info *t = fl_gguf_tensor_at(back, i);
    rc = same_shape(t, &j->tensors[i]) ? pass_tensor(j, i, NULL, t)
                                       : refuse(j, t, "reads back differently from the new file");
    if (rc == FL_OK) fl_gguf_drop(back, t);
  }
  fl_gguf_close(back);
  return rc;
}

static int write_checked(job *j, const fl_gguf_pairs *pairs) {
  fl_gguf_writer *w = NULL;
  size_t n = fl_gguf_n_tensors(j->g);
  int rc = fl_gguf_writer_open(&w, j->out, pairs, j->tensors, n, fl_gguf_alignment(j->g), j->err);
  for (size_t i = 0; i < n && rc == FL_OK; i++) rc = pass_tensor(j, i, w, NULL);
  if (rc == FL_OK) {
    const char *path = fl_gguf_writer_settle(w);
    if (path != NULL) rc = check_back(j, pairs, path);
  }
  if (rc == FL_OK) return fl_gguf_writer_commit(w, j->err);
  fl_gguf_writer_abandon(w);
  return rc;
}

int fl_transcode(const fl_gguf *g, const fl_dtype_traits *to, const char *out,
                 int (*poll)(void *ctx), void *ctx, fl_transcode_report *report, fl_err *err) {
  job j = { .g = g, .to = to, .out = out, .poll = poll, .ctx = ctx, .err = err };
  fl_gguf_pairs pairs = { 0 };
  size_t n = fl_gguf_n_tensors(g);
  int rc = FL_OK;
  j.tensors = fl_calloc(n, sizeof *j.tensors);
  j.wide = fl_malloc(PIECE * sizeof *j.wide);
  j.narrow = fl_malloc(PIECE * sizeof *j.wide);
  if (j.tensors == NULL || j.wide == NULL || j.narrow == NULL)
    rc = fl_fail(err, FL_ENOMEM, "%s: no memory to write it", out);
  for (size_t i = 0; i < n && rc == FL_OK; i++)
    rc = plan_tensor(&j, fl_gguf_tensor_at(g, i), &j.tensors[i]);
  if (rc == FL_OK) {
    collect_pairs(&j, &pairs);
    rc = write_checked(&j, &pairs);
  }
  if (rc == FL_OK) rc = fl_fs_size(&j.report.file_bytes, out, err);
  if (rc == FL_OK) *report = j.report;
  fl_gguf_pairs_release(&pairs);
  fl_free(j.tensors);
  fl_free(j.wide);
  fl_free(j.narrow);
  return rc;
}
