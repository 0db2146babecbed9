/* files.c - safetensors (cartridges, indexes) and FZA3 moment files. */
#include <math.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "cartridge/cartridge_io.h"
#include "info/info.h"
#include "formats/safetensors.h"

static const char *type_name(fl_st_type t) {
  static const char *const names[] = { "F32", "I64", "F16", "BF16", "I32", "other" };
  return names[t];
}

static void set_metadata(fl_json *out, const fl_safetensors *s) {
  if (fl_safetensors_n_meta(s) == 0) return;
  fl_json *meta = fl_json_object();
  for (size_t i = 0; meta && i < fl_safetensors_n_meta(s); i++) {
    const char *key, *value;
    fl_safetensors_meta_at(s, i, &key, &value);
    fl_json_set_str(meta, key, value);
  }
  fl_json_set(out, "metadata", meta);
}

static void set_tensors(fl_json *out, const fl_safetensors *s) {
  fl_json *rows = fl_json_array();
  for (size_t i = 0; rows && i < fl_safetensors_count(s); i++) {
    const fl_st_tensor *t = fl_safetensors_at(s, i);
    fl_json *row = fl_json_object(), *shape = fl_json_array();
    for (uint32_t d = 0; shape && d < t->n_dims; d++)
      fl_json_push(shape, fl_json_number((double)t->dim[d]));
    fl_json_set_str(row, "name", t->name);
    fl_json_set_str(row, "type", type_name(t->type));
    fl_json_set_num(row, "data_bytes", (double)t->n_bytes);
    fl_json_set(row, "shape", shape);
    fl_json_push(rows, row);
  }
  fl_json_set(out, "tensor_list", rows);
}

static int describe_cartridge(fl_json *out, const char *path, fl_err *err) {
  fl_cartridge c = { 0 };
  int rc = fl_cartridge_read(&c, NULL, path, NULL, err);
  if (rc != FL_OK) return rc;
  size_t owned = 0;
  for (size_t i = 0; i < c.rows.n_layers; i++) owned += c.rows.width[i] > 0;
  fl_json_set_u64(out, "rows", c.rows.n_rows);
  fl_json_set_u64(out, "frozen_rows", c.frozen);
  fl_json_set_u64(out, "layers", owned);
  fl_json_set_u64(out, "steps", c.steps);
  fl_json_set_num(out, "memory_bytes", (double)c.rows.n_values * sizeof(float));
  fl_json_set_str(out, "check", "names, shapes and values are whole");
  fl_cartridge_release(&c);
  return FL_OK;
}

static int describe_index(fl_json *out, const fl_safetensors *s, const char *path, fl_err *err) {
  const fl_st_tensor *e = fl_safetensors_get(s, "embeddings");
  const fl_st_tensor *c = fl_safetensors_get(s, "centroid");
  const fl_st_tensor *d = fl_safetensors_get(s, "chunk_doc");
  bool whole = c && d && e->type == FL_ST_F32 && e->n_dims == 2 && c->type == FL_ST_F32 &&
               c->n_values == e->dim[1] && d->type == FL_ST_I64 && d->n_values == e->dim[0];
  if (!whole)
    return fl_fail(err, FL_EINPUT, "%s: index tensors do not agree; rebuild it with flotilla index",
                   path);
  const float *v = e->data;
  for (size_t i = 0; i < e->n_values; i++)
    if (!isfinite(v[i]))
      return fl_fail(err, FL_EINPUT,
                     "%s: embedding value %zu is not finite; rebuild it with flotilla index", path,
                     i);
  fl_json_set_num(out, "chunks", (double)e->dim[0]);
  fl_json_set_num(out, "dimensions", (double)e->dim[1]);
  fl_json_set_str(out, "check", "shapes agree and values are finite");
  return FL_OK;
}

int fl_info_safetensors(fl_json *out, const char *path, bool detail, fl_err *err) {
  fl_safetensors *s = NULL;
  uint64_t size = 0;
  int rc = fl_safetensors_open(&s, path, err);
  if (rc != FL_OK) return rc;
  bool cartridge = fl_safetensors_get(s, "layers.0.k") != NULL;
  bool index = fl_safetensors_get(s, "embeddings") != NULL;
  fl_json_set_str(out, "kind", cartridge ? "cartridge" : index ? "index" : "safetensors");
  fl_json_set_str(out, "path", path);
  if (fl_fs_size(&size, path, NULL) == FL_OK) fl_json_set_num(out, "file_bytes", (double)size);
  fl_json_set_u64(out, "tensors", fl_safetensors_count(s));
  if (cartridge) rc = describe_cartridge(out, path, err);
  if (index) rc = describe_index(out, s, path, err);
  set_metadata(out, s);
  if (detail) set_tensors(out, s);
  fl_safetensors_close(s);
  return rc;
}

/* --- FZA3 ------------------------------------------------------------------------------------ */

typedef struct cursor {
  const uint8_t *p;
  size_t left;
} cursor;

static bool take(cursor *c, void *out, size_t n) {
  if (c->left < n) return false;
  memcpy(out, c->p, n);
  c->p += n;
  c->left -= n;
  return true;
}

static bool all_finite(cursor *c, size_t n_values) {
  for (size_t i = 0; i < n_values; i++) {
    float v;
    if (!take(c, &v, sizeof v) || !isfinite(v)) return false;
  }
  return true;
}

static bool describe_slot(fl_json *rows, cursor *c) {
  uint16_t len;
  uint64_t n, cols, step;
  char name[256];
  size_t values, bytes;
  if (!take(c, &len, 2) || len >= sizeof name || !take(c, name, len)) return false;
  name[len] = '\0';
  if (!take(c, &n, 8) || !take(c, &cols, 8) || !take(c, &step, 8)) return false;
  if (!fl_mul_size((size_t)n, (size_t)cols, &values)) return false;
  if (!fl_mul_size(values, 2 * sizeof(float), &bytes) || bytes > c->left) return false;
  if (!all_finite(c, 2 * values)) return false;
  fl_json *row = fl_json_object();
  fl_json_set_str(row, "name", name);
  fl_json_set_num(row, "rows", (double)n);
  fl_json_set_num(row, "columns", (double)cols);
  fl_json_set_num(row, "step", (double)step);
  return fl_json_push(rows, row);
}

int fl_info_fza(fl_json *out, const char *path, bool detail, fl_err *err) {
  fl_map m = { 0 };
  int rc = fl_map_open(&m, path, err);
  if (rc != FL_OK) return rc;
  cursor c = { .p = m.data, .left = m.size };
  char magic[4];
  uint32_t n = 0;
  fl_json *rows = fl_json_array();
  bool ok = take(&c, magic, 4) && take(&c, &n, 4);
  for (uint32_t i = 0; ok && i < n; i++) ok = describe_slot(rows, &c);
  if (!ok || c.left > 0) {
    rc = fl_fail(err, FL_EINPUT,
                 "%s: damaged at byte %zu of %zu; restore it or delete it to "
                 "continue with fresh moments",
                 path, m.size - c.left, m.size);
  } else {
    double step = 0;
    fl_json_get_num(fl_json_first(rows), "step", &step);
    fl_json_set_str(out, "kind", "moments");
    fl_json_set_str(out, "path", path);
    fl_json_set_num(out, "file_bytes", (double)m.size);
    fl_json_set_u64(out, "slots", n);
    fl_json_set_num(out, "step", step);
    fl_json_set_str(out, "check", "sizes agree and values are finite");
    if (detail) fl_json_set(out, "slot_list", fl_json_dup(rows));
  }
  fl_json_free(rows);
  fl_map_close(&m);
  return rc;
}
