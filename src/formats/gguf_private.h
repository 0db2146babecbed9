/* gguf_private.h - what gguf.c fills in and gguf_meta.c reads. */
#ifndef FL_FORMATS_GGUF_PRIVATE_H
#define FL_FORMATS_GGUF_PRIVATE_H

#include "base/fs.h"
#include "formats/gguf.h"

/* One key/value pair; `value` is checked: a scalar's bytes, a string's content, or an array. */
typedef struct gguf_pair {
  fl_str key;
  fl_gguf_type type;
  const uint8_t *value;
  size_t value_len;
  fl_gguf_arr arr;    /* for FL_GGUF_ARR */
  const uint8_t *raw; /* the whole pair as it stands in the file */
  size_t raw_len;
} gguf_pair;

struct fl_gguf {
  fl_map map;
  char *path;
  uint32_t version, alignment;
  size_t data_start; /* where the tensors' data begin */
  size_t n_pairs, n_tensors;
  gguf_pair *pairs; /* in file order */
  fl_tensor_info *tensors;
  /* The same in byte order of their names, for lookups. */
  const gguf_pair **pairs_by_key;
  const fl_tensor_info **tensors_by_name;
};

const gguf_pair *fl_gguf_find(const fl_gguf *g, const char *key);
int fl_str_compare(const fl_str *a, const fl_str *b);
/* Bytes of a scalar of this type, 0 for strings, arrays and unknown types. */
size_t fl_gguf_scalar_bytes(uint32_t type);

#endif
