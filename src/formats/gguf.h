/* gguf.h - reading GGUF v2 and v3 by mmap, hostile-safe.
 *
 * The file is mapped read-only for the life of the object; tensors and strings point into the
 * mapping and die with fl_gguf_close. Everything is checked before use: counts against the bytes
 * that remain, sizes by checked arithmetic, offsets inside the file and aligned, names unique,
 * strings within the file. Errors are FL_EINPUT with file and byte offset.
 */
#ifndef FL_FORMATS_GGUF_H
#define FL_FORMATS_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "formats/dtype.h"

typedef struct fl_gguf fl_gguf;

typedef struct fl_str { /* a string inside the mapping, not NUL-terminated */
  const char *data;
  size_t len;
} fl_str;

typedef enum fl_gguf_type {
  FL_GGUF_U8,
  FL_GGUF_I8,
  FL_GGUF_U16,
  FL_GGUF_I16,
  FL_GGUF_U32,
  FL_GGUF_I32,
  FL_GGUF_F32,
  FL_GGUF_BOOL,
  FL_GGUF_STR,
  FL_GGUF_ARR,
  FL_GGUF_U64,
  FL_GGUF_I64,
  FL_GGUF_F64
} fl_gguf_type;

typedef struct fl_tensor_info {
  fl_str name;
  uint32_t n_dims;    /* 1..4 */
  uint64_t dim[4];    /* dim[0] is the contiguous one (columns); unused dims are 1 */
  uint32_t ggml_type; /* may be unsupported: look it up with fl_dtype_get */
  const void *data;   /* in the mapping; NULL when not even the size of the type is known */
  size_t n_bytes;     /* 0 then */
  uint64_t file_offset;
} fl_tensor_info;

int fl_gguf_open(fl_gguf **out, const char *path, fl_err *err);
void fl_gguf_close(fl_gguf *g);
const char *fl_gguf_path(const fl_gguf *g);
uint32_t fl_gguf_version(const fl_gguf *g);
uint64_t fl_gguf_file_size(const fl_gguf *g);

size_t fl_gguf_n_tensors(const fl_gguf *g);
const fl_tensor_info *fl_gguf_tensor_at(const fl_gguf *g, size_t i);
const fl_tensor_info *fl_gguf_tensor(const fl_gguf *g, const char *name); /* NULL */

/* Metadata by key. Integer getters accept any integer type whose value fits. */
size_t fl_gguf_n_meta(const fl_gguf *g);
bool fl_gguf_meta_at(const fl_gguf *g, size_t i, fl_str *key, fl_gguf_type *type);
bool fl_gguf_has(const fl_gguf *g, const char *key);
bool fl_gguf_get_u64(const fl_gguf *g, const char *key, uint64_t *out);
bool fl_gguf_get_f64(const fl_gguf *g, const char *key, double *out); /* F32, F64, integers */
bool fl_gguf_get_bool(const fl_gguf *g, const char *key, bool *out);
bool fl_gguf_get_str(const fl_gguf *g, const char *key, fl_str *out);

/* Arrays (not nested). */
typedef struct fl_gguf_arr {
  fl_gguf_type type;
  size_t n;
  const uint8_t *data; /* little-endian elements, unaligned; strings are length-prefixed */
  size_t n_bytes;
} fl_gguf_arr;
bool fl_gguf_get_arr(const fl_gguf *g, const char *key, fl_gguf_arr *out);
/* Element i of a numeric or boolean array as a double / int64; i < n is the caller's duty. */
double fl_gguf_arr_f64(const fl_gguf_arr *a, size_t i);
int64_t fl_gguf_arr_i64(const fl_gguf_arr *a, size_t i);
/* Walks a string array: *cursor = 0 to begin; false at the end. */
bool fl_gguf_arr_next_str(const fl_gguf_arr *a, size_t *cursor, fl_str *out);

/* Raw bytes of all metadata key/value pairs as they stand in the file, for a copying exporter. */
void fl_gguf_meta_raw(const fl_gguf *g, size_t i, const uint8_t **data, size_t *n_bytes);
uint32_t fl_gguf_alignment(const fl_gguf *g);
/* Identity of a model without reading all of it: header bytes, file size, and up to 64 KiB from the
 * start, the middle and the end of every tensor (whole file when under 64 MiB). `out` has room for
 * FL_HASH_TEXT. */
void fl_gguf_fingerprint(const fl_gguf *g, char *out);
/* Releases the resident pages of a tensor's data after it was packed. */
void fl_gguf_drop(const fl_gguf *g, const fl_tensor_info *t);

#endif
