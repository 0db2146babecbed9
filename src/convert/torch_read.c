/* torch_read.c - a cartridge of HazyResearch/cartridges, as torch.save writes it, as a file of
 * ours.
 *
 * The dict has the lists trainable_keys and trainable_values and, where rows are frozen,
 * frozen_keys and frozen_values (also called fixed_keys and fixed_values), with a tensor
 * [1, kv_heads, rows, head_dim] for each layer. Frozen rows stand first. Keys are rotated, at
 * positions from 0 on; where our models keep the dimensions of a key in pairs, they are put in that
 * order (torch_write.c). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "cartridge/cartridge_io.h"
#include "convert/convert.h"
#include "convert/shape.h"
#include "formats/torch_file.h"

typedef struct reader {
  const fl_torch *file;
  const fl_hparams *hp;
  const char *source;
  fl_cartridge c;
  size_t n_layers;
} reader;

/* The name of the frozen keys or values in this file; NULL: nothing is frozen. */
static const char *frozen_name(const reader *r, bool keys) {
  const char *now = keys ? "frozen_keys" : "frozen_values";
  const char *before = keys ? "fixed_keys" : "fixed_values";
  if (fl_torch_count(r->file, now) > 0) return now;
  return fl_torch_count(r->file, before) > 0 ? before : NULL;
}

static int rows_in(size_t *out, const reader *r, const char *name, fl_err *err) {
  fl_torch_tensor t;
  int rc = fl_torch_get(&t, r->file, name, 0, err);
  if (rc == FL_OK && (t.n_dims != 4 || t.dim[2] == 0 || t.dim[2] > (size_t)1 << 24))
    rc = fl_fail(err, FL_EINPUT, "%s: %s 0 has no rows", r->source, name);
  if (rc == FL_OK) *out = t.dim[2];
  return rc;
}

/* Number of layers, rows and frozen ones. */
static int take_shape(reader *r, fl_err *err) {
  const char *keys = frozen_name(r, true), *values = frozen_name(r, false);
  size_t rows = 0;
  r->n_layers = fl_torch_count(r->file, "trainable_keys");
  if (r->n_layers == 0)
    return fl_fail(err, FL_EINPUT, "%s: no list trainable_keys in it; it is no cartridge",
                   r->source);
  if (r->n_layers != r->hp->n_layers)
    return fl_fail(err, FL_EINPUT,
                   "%s: has %zu layers, the model %zu; give the model that it was "
                   "trained for",
                   r->source, r->n_layers, (size_t)r->hp->n_layers);
  if (fl_torch_count(r->file, "trainable_values") != r->n_layers || !keys != !values ||
      (keys && (fl_torch_count(r->file, keys) != r->n_layers ||
                fl_torch_count(r->file, values) != r->n_layers)))
    return fl_fail(err, FL_EINPUT, "%s: its lists differ in length", r->source);
  int rc = rows_in(&rows, r, "trainable_keys", err);
  if (rc == FL_OK && keys) rc = rows_in(&r->c.frozen, r, keys, err);
  return rc == FL_OK ? fl_rows_init(&r->c.rows, r->hp, rows + r->c.frozen, err) : rc;
}

/* One head of one row. */
static void widen(float *to, const fl_torch_tensor *t, size_t head, size_t row) {
  const size_t bytes = t->type->bytes;
  const uint8_t *from = t->data + (head * t->stride[1] + row * t->stride[2]) * bytes;
  for (size_t i = 0; i < t->dim[3]; i++) {
    uint32_t one; /* aligned, which the file need not be */
    memcpy(&one, from + i * t->stride[3] * bytes, bytes);
    t->type->dequantise(to + i, &one, 1);
  }
}

/* The first of all pairs before the second ones: back beside each other. */
static void pair_up(float *head, float *scratch, size_t half) {
  memcpy(scratch, head, 2 * half * sizeof *head);
  for (size_t i = 0; i < half; i++) {
    head[2 * i] = scratch[i];
    head[2 * i + 1] = scratch[half + i];
  }
}

/* Tensor `layer` of a list into the rows from `first` on. */
static int take_tensor(reader *r, const char *name, size_t layer, size_t first, size_t n, bool key,
                       float *scratch, fl_err *err) {
  const fl_rows *rows = &r->c.rows;
  const size_t heads = rows->kv_heads[layer], width = rows->width[layer];
  const size_t half = r->hp->rope_interleaved ? r->hp->rope[r->hp->layer[layer].rope_set].half : 0;
  fl_torch_tensor t;
  int rc = fl_torch_get(&t, r->file, name, layer, err);
  if (rc != FL_OK) return rc;
  if (width == 0 || t.n_dims != 4 || t.dim[0] != 1 || t.dim[1] != heads || t.dim[2] != n ||
      t.dim[3] * heads != width)
    return fl_fail(err, FL_EINPUT,
                   "%s: %s %zu is not [1, %zu, %zu, %zu], as the model wants it; "
                   "give the model that it was trained for",
                   r->source, name, layer, heads, n, heads ? width / heads : 0);
  float *to = (key ? rows->k : rows->v)[layer];
  for (size_t i = 0; i < n; i++)
    for (size_t h = 0; h < heads; h++) {
      float *head = to + (first + i) * width + h * t.dim[3];
      widen(head, &t, h, i);
      for (size_t d = 0; d < t.dim[3]; d++)
        if (!isfinite(head[d]))
          return fl_fail(err, FL_EINPUT, "%s: %s %zu holds a value that is not finite", r->source,
                         name, layer);
      if (key && half > 0) pair_up(head, scratch, half);
    }
  return FL_OK;
}

static int take_rows(reader *r, fl_err *err) {
  const size_t frozen = r->c.frozen, n = r->c.rows.n_rows - frozen;
  size_t widest = 1;
  for (size_t l = 0; l < r->n_layers; l++)
    if (r->c.rows.width[l] > widest) widest = r->c.rows.width[l];
  float *scratch = fl_calloc(widest, sizeof *scratch);
  int rc = scratch ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory");
  for (size_t l = 0; l < r->n_layers; l++)
    for (int key = 0; key < 2 && rc == FL_OK; key++) {
      rc = take_tensor(r, key ? "trainable_keys" : "trainable_values", l, frozen, n, key, scratch,
                       err);
      if (rc == FL_OK && frozen > 0)
        rc = take_tensor(r, frozen_name(r, key), l, 0, frozen, key, scratch, err);
    }
  fl_free(scratch);
  return rc;
}

/* Under a temporary name first. */
static int write_cartridge(const reader *r, const char *path, fl_err *err) {
  fl_provenance none = { 0 };
  char *temp = fl_asprintf("%s.part-%ld", path, (long)getpid());
  if (!temp) return fl_fail(err, FL_ENOMEM, "not enough memory");
  int rc = fl_cartridge_write(temp, &r->c, &none, err);
  if (rc == FL_OK && rename(temp, path) != 0) rc = fl_fs_fail_errno(err, path, "made", errno);
  if (rc != FL_OK) unlink(temp);
  fl_free(temp);
  return rc;
}

int convert_torch_read(fl_json *out, const convert_job *a, fl_err *err) {
  fl_torch *file = NULL;
  model_shape shape = { 0 };
  int rc = model_shape_open(&shape, a->model, err);
  if (rc == FL_OK) rc = fl_torch_open(&file, a->source, err);
  reader r = { .file = file, .hp = shape.hp, .source = a->source };
  if (rc == FL_OK) rc = take_shape(&r, err);
  if (rc == FL_OK) rc = take_rows(&r, err);
  if (rc == FL_OK) rc = write_cartridge(&r, a->out, err);
  if (rc == FL_OK) {
    fl_json_set_str(out, "out", a->out);
    fl_json_set_u64(out, "rows", r.c.rows.n_rows);
    fl_json_set_u64(out, "frozen", r.c.frozen);
  }
  fl_cartridge_release(&r.c);
  fl_torch_close(file);
  model_shape_close(&shape);
  return rc;
}
