/* safetensors.h - reading (mmap, hostile-safe) and writing (streaming, durable).
 *
 * Reader: header at most 100,000,000 bytes, valid UTF-8 JSON, offsets contiguous from 0 and
 * covering the data exactly, byte size = shape x type, data aligned to their type, no duplicate
 * names. Types F32 and I64 are what the program uses; others are listed but not interpreted. Byte
 * order little-endian.
 * Writer: 8-byte header length, compact JSON, `__metadata__` first when there is any, tensors by
 * type (I64 before F32) and then by name bytes, header padded with spaces to 8 bytes.
 */
#ifndef FL_FORMATS_SAFETENSORS_H
#define FL_FORMATS_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef enum fl_st_type {
  FL_ST_F32,
  FL_ST_I64,
  FL_ST_F16,
  FL_ST_BF16,
  FL_ST_I32,
  FL_ST_OTHER
} fl_st_type;

typedef struct fl_st_tensor {
  const char *name;
  fl_st_type type;
  uint32_t n_dims;  /* 0..8 */
  uint64_t dim[8];  /* row-major, dim[0] slowest */
  const void *data; /* in the mapping; F32 data is 4-byte aligned by the padding rule, checked */
  size_t n_bytes;
  size_t n_values;
} fl_st_tensor;

typedef struct fl_safetensors fl_safetensors;

int fl_safetensors_open(fl_safetensors **out, const char *path, fl_err *err);
void fl_safetensors_close(fl_safetensors *s);
size_t fl_safetensors_count(const fl_safetensors *s);
const fl_st_tensor *fl_safetensors_at(const fl_safetensors *s, size_t i);
const fl_st_tensor *fl_safetensors_get(const fl_safetensors *s, const char *name); /* NULL */
const char *fl_safetensors_meta(const fl_safetensors *s, const char *key);         /* NULL */
size_t fl_safetensors_n_meta(const fl_safetensors *s);
void fl_safetensors_meta_at(const fl_safetensors *s, size_t i, const char **key,
                            const char **value);

/* Writing: describe the tensors, then write them all with one call. `path` is a new file (it is
 * fsynced, the folder is not: fl_fs_sync_dir). Data are borrowed until the call returns. */
typedef struct fl_st_out {
  const char *name;
  fl_st_type type; /* FL_ST_F32 or FL_ST_I64 */
  uint32_t n_dims;
  uint64_t dim[8];
  const void *data;
} fl_st_out;
typedef struct fl_st_meta {
  const char *key, *value;
} fl_st_meta;

int fl_safetensors_write(const char *path, const fl_st_out *tensors, size_t n_tensors,
                         const fl_st_meta *meta, size_t n_meta, fl_err *err);

#endif
