/* safetensors_write.c - writing a safetensors file in one pass. The same tensors and metadata give
 * the same bytes, whatever order the caller lists the tensors in. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json_writer.h"
#include "base/mem.h"
#include "base/sort.h"
#include "formats/safetensors.h"

static int by_type_and_name(const void *a, const void *b) {
  const fl_st_out *x = *(const fl_st_out *const *)a, *y = *(const fl_st_out *const *)b;
  if (x->type != y->type) return x->type == FL_ST_I64 ? -1 : 1;
  return strcmp(x->name, y->name);
}

static bool data_bytes(const fl_st_out *t, size_t *out) {
  if (t->type != FL_ST_F32 && t->type != FL_ST_I64) return false;
  size_t n = t->type == FL_ST_F32 ? 4 : 8;
  if (t->n_dims > sizeof t->dim / sizeof *t->dim) return false;
  for (uint32_t d = 0; d < t->n_dims; d++)
    if (!fl_mul_size(n, (size_t)t->dim[d], &n)) return false;
  *out = n;
  return true;
}

static void put_meta(fl_buf *b, const fl_st_meta *meta, size_t n_meta) {
  if (n_meta == 0) return;
  fl_jsonw_open(b, "__metadata__", '{');
  for (size_t i = 0; i < n_meta; i++) fl_jsonw_str(b, meta[i].key, meta[i].value);
  fl_jsonw_close(b, '}');
}

static void put_tensor(fl_buf *b, const fl_st_out *t, size_t begin, size_t end) {
  fl_jsonw_open(b, t->name, '{');
  fl_jsonw_str(b, "dtype", t->type == FL_ST_F32 ? "F32" : "I64");
  fl_jsonw_open(b, "shape", '[');
  for (uint32_t d = 0; d < t->n_dims; d++) fl_jsonw_u64(b, NULL, t->dim[d]);
  fl_jsonw_close(b, ']');
  fl_jsonw_open(b, "data_offsets", '[');
  fl_jsonw_u64(b, NULL, begin);
  fl_jsonw_u64(b, NULL, end);
  fl_jsonw_close(b, ']');
  fl_jsonw_close(b, '}');
}

/* The header's text without the padding; FL_EFAIL for what the format cannot hold. */
static int put_header(fl_buf *b, const fl_st_out *const *sorted, size_t n, const fl_st_meta *meta,
                      size_t n_meta, const char *path, fl_err *err) {
  size_t at = 0;
  fl_jsonw_open(b, NULL, '{');
  put_meta(b, meta, n_meta);
  for (size_t i = 0; i < n; i++) {
    size_t n_bytes, end;
    if (!data_bytes(sorted[i], &n_bytes) || !fl_add_size(at, n_bytes, &end))
      return fl_fail(err, FL_EFAIL, "%s: tensor '%.80s' has a type or size that is not written",
                     path, sorted[i]->name);
    put_tensor(b, sorted[i], at, end);
    at = end;
  }
  fl_jsonw_close(b, '}');
  return b->oom ? fl_fail(err, FL_ENOMEM, "%s: no memory to write it", path) : FL_OK;
}

/* No two names alike: no reader would take the file. Sorts `names`. */
static int check_names(const char **names, size_t n, const char *path, fl_err *err) {
  const char *twice = fl_sort_names(names, n);
  const char *reserved = fl_sorted_has(names, n, "")               ? ""
                         : fl_sorted_has(names, n, "__metadata__") ? "__metadata__"
                                                                   : NULL;
  if (twice == NULL && reserved == NULL) return FL_OK;
  return fl_fail(err, FL_EFAIL, "%s: cannot be written: the name '%.80s' %s", path,
                 twice != NULL ? twice : reserved, twice != NULL ? "stands twice" : "is reserved");
}

static int write_file(const char *path, fl_buf *header, const fl_st_out *const *sorted, size_t n,
                      fl_err *err) {
  fl_sink *s;
  while (header->len % 8 != 0 && !header->oom) fl_buf_putc(header, ' ');
  if (header->oom) return fl_fail(err, FL_ENOMEM, "%s: no memory to write it", path);
  int rc = fl_sink_open(&s, path, err);
  if (rc != FL_OK) return rc;
  const uint64_t len = header->len;
  fl_sink_write(s, &len, sizeof len);
  fl_sink_write(s, header->data, header->len);
  for (size_t i = 0; i < n; i++) {
    size_t n_bytes;
    if (data_bytes(sorted[i], &n_bytes)) fl_sink_write(s, sorted[i]->data, n_bytes);
  }
  return fl_sink_close(s, err); /* reports the first failure of the writes too */
}

int fl_safetensors_write(const char *path, const fl_st_out *tensors, size_t n_tensors,
                         const fl_st_meta *meta, size_t n_meta, fl_err *err) {
  fl_buf header = { 0 };
  int rc = FL_ENOMEM;
  const fl_st_out **sorted = fl_calloc(n_tensors, sizeof *sorted);
  const char **names = fl_calloc(n_tensors > n_meta ? n_tensors : n_meta, sizeof *names);
  if (sorted == NULL || names == NULL) {
    fl_fail(err, rc, "%s: no memory to write it", path);
    goto done;
  }
  for (size_t i = 0; i < n_meta; i++) names[i] = meta[i].key;
  rc = check_names(names, n_meta, path, err);
  if (rc != FL_OK) goto done;
  for (size_t i = 0; i < n_tensors; i++) {
    sorted[i] = &tensors[i];
    names[i] = tensors[i].name;
  }
  rc = check_names(names, n_tensors, path, err);
  if (rc != FL_OK) goto done;
  if (n_tensors > 1) qsort(sorted, n_tensors, sizeof *sorted, by_type_and_name);
  rc = put_header(&header, sorted, n_tensors, meta, n_meta, path, err);
  if (rc == FL_OK) rc = write_file(path, &header, sorted, n_tensors, err);
done:
  fl_buf_release(&header);
  fl_free(sorted);
  fl_free(names);
  return rc;
}
