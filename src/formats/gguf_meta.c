/* gguf_meta.c - looking up tensors and metadata of an open file. Everything here was checked when
 * the file was opened. */
#include <math.h>
#include <string.h>

#include "formats/gguf_private.h"

const char *fl_gguf_path(const fl_gguf *g) { return g->path; }

uint32_t fl_gguf_version(const fl_gguf *g) { return g->version; }

uint64_t fl_gguf_file_size(const fl_gguf *g) { return g->map.size; }

uint32_t fl_gguf_alignment(const fl_gguf *g) { return g->alignment; }

size_t fl_gguf_n_tensors(const fl_gguf *g) { return g->n_tensors; }

const fl_tensor_info *fl_gguf_tensor_at(const fl_gguf *g, size_t i) {
  return i < g->n_tensors ? &g->tensors[i] : NULL;
}

const fl_tensor_info *fl_gguf_tensor(const fl_gguf *g, const char *name) {
  const fl_str want = { .data = name, .len = strlen(name) };
  size_t low = 0, high = g->n_tensors;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    int order = fl_str_compare(&want, &g->tensors_by_name[mid]->name);
    if (order == 0) return g->tensors_by_name[mid];
    if (order < 0) high = mid;
    else low = mid + 1;
  }
  return NULL;
}

const gguf_pair *fl_gguf_find(const fl_gguf *g, const char *key) {
  const fl_str want = { .data = key, .len = strlen(key) };
  size_t low = 0, high = g->n_pairs;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    int order = fl_str_compare(&want, &g->pairs_by_key[mid]->key);
    if (order == 0) return g->pairs_by_key[mid];
    if (order < 0) high = mid;
    else low = mid + 1;
  }
  return NULL;
}

size_t fl_gguf_n_meta(const fl_gguf *g) { return g->n_pairs; }

bool fl_gguf_meta_at(const fl_gguf *g, size_t i, fl_str *key, fl_gguf_type *type) {
  if (i >= g->n_pairs) return false;
  *key = g->pairs[i].key;
  *type = g->pairs[i].type;
  return true;
}

void fl_gguf_meta_raw(const fl_gguf *g, size_t i, const uint8_t **data, size_t *n_bytes) {
  *data = g->pairs[i].raw;
  *n_bytes = g->pairs[i].raw_len;
}

bool fl_gguf_has(const fl_gguf *g, const char *key) { return fl_gguf_find(g, key) != NULL; }

/* An integer of any width: its value, and whether it is below zero. */
static bool read_integer(fl_gguf_type type, const uint8_t *p, uint64_t *value, bool *negative) {
  const size_t bytes = fl_gguf_scalar_bytes(type);
  *value = 0;
  switch (type) {
  case FL_GGUF_U8:
  case FL_GGUF_U16:
  case FL_GGUF_U32:
  case FL_GGUF_U64:
    memcpy(value, p, bytes);
    *negative = false;
    return true;
  case FL_GGUF_I8:
  case FL_GGUF_I16:
  case FL_GGUF_I32:
  case FL_GGUF_I64:
    memcpy(value, p, bytes);
    *negative = p[bytes - 1] >> 7;
    if (*negative && bytes < 8) *value |= UINT64_MAX << (8 * bytes); /* extends the sign */
    return true;
  default: return false;
  }
}

static double read_number(fl_gguf_type type, const uint8_t *p) {
  uint64_t v;
  bool negative;
  if (read_integer(type, p, &v, &negative)) return negative ? (double)(int64_t)v : (double)v;
  if (type == FL_GGUF_BOOL) return *p;
  if (type == FL_GGUF_F32) {
    float f;
    memcpy(&f, p, sizeof f);
    return (double)f;
  }
  double d = 0;
  if (type == FL_GGUF_F64) memcpy(&d, p, sizeof d);
  return d;
}

bool fl_gguf_get_u64(const fl_gguf *g, const char *key, uint64_t *out) {
  const gguf_pair *pair = fl_gguf_find(g, key);
  uint64_t v;
  bool negative;
  if (pair == NULL || !read_integer(pair->type, pair->value, &v, &negative) || negative)
    return false;
  *out = v;
  return true;
}

bool fl_gguf_get_f64(const fl_gguf *g, const char *key, double *out) {
  const gguf_pair *pair = fl_gguf_find(g, key);
  if (pair == NULL || pair->type == FL_GGUF_BOOL || fl_gguf_scalar_bytes(pair->type) == 0)
    return false;
  double v = read_number(pair->type, pair->value);
  if (!isfinite(v)) return false;
  *out = v;
  return true;
}

bool fl_gguf_get_bool(const fl_gguf *g, const char *key, bool *out) {
  const gguf_pair *pair = fl_gguf_find(g, key);
  if (pair == NULL || pair->type != FL_GGUF_BOOL) return false;
  *out = *pair->value != 0;
  return true;
}

bool fl_gguf_get_str(const fl_gguf *g, const char *key, fl_str *out) {
  const gguf_pair *pair = fl_gguf_find(g, key);
  if (pair == NULL || pair->type != FL_GGUF_STR) return false;
  *out = (fl_str){ .data = (const char *)pair->value, .len = pair->value_len };
  return true;
}

bool fl_gguf_get_arr(const fl_gguf *g, const char *key, fl_gguf_arr *out) {
  const gguf_pair *pair = fl_gguf_find(g, key);
  if (pair == NULL || pair->type != FL_GGUF_ARR) return false;
  *out = pair->arr;
  return true;
}

double fl_gguf_arr_f64(const fl_gguf_arr *a, size_t i) {
  size_t each = fl_gguf_scalar_bytes(a->type);
  return each > 0 ? read_number(a->type, a->data + i * each) : 0;
}

int64_t fl_gguf_arr_i64(const fl_gguf_arr *a, size_t i) {
  const size_t each = fl_gguf_scalar_bytes(a->type);
  uint64_t v;
  bool negative;
  if (each == 0) return 0;
  const uint8_t *p = a->data + i * each;
  if (read_integer(a->type, p, &v, &negative))
    return !negative && v > INT64_MAX ? INT64_MAX : (int64_t)v;
  double d = read_number(a->type, p);
  if (d != d) return 0;
  return d >= 0x1p63 ? INT64_MAX : d < -0x1p63 ? INT64_MIN : (int64_t)d;
}

bool fl_gguf_arr_next_str(const fl_gguf_arr *a, size_t *cursor, fl_str *out) {
  uint64_t len;
  if (a->type != FL_GGUF_STR || *cursor >= a->n_bytes) return false;
  memcpy(&len, a->data + *cursor, sizeof len);
  *out = (fl_str){ .data = (const char *)a->data + *cursor + sizeof len, .len = (size_t)len };
  *cursor += sizeof len + (size_t)len;
  return true;
}
