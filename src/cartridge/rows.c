/* rows.c - per-layer arrays of key and value rows behind one allocation. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/spillable.h"
#include "cartridge/adam.h"
#include "cartridge/cartridge.h"

/* Floats of an array of n_rows rows, rounded up so that the next one is aligned. */
static bool padded(size_t n_rows, size_t width, size_t *out) {
  const size_t step = FL_ALIGN / sizeof(float);
  size_t n;
  if (!fl_mul_size(n_rows, width, &n) || !fl_add_size(n, step - 1, &n)) return false;
  *out = n / step * step;
  return true;
}

static bool total_values(size_t n_layers, const size_t *width, size_t n_rows, size_t *out) {
  size_t sum = 0;
  for (size_t l = 0; l < n_layers; l++) {
    size_t n;
    if (!padded(n_rows, width[l], &n) || !fl_add_size(sum, n, &sum) || !fl_add_size(sum, n, &sum))
      return false;
  }
  *out = sum;
  return true;
}

static void carve(fl_rows *r) {
  float *at = r->block;
  for (size_t l = 0; l < r->n_layers; l++) {
    size_t n;
    if (r->width[l] == 0 || !padded(r->n_rows, r->width[l], &n)) continue;
    r->k[l] = at;
    r->v[l] = at + n;
    at += 2 * n;
  }
}

int fl_rows_init_shape(fl_rows *r, size_t n_layers, const size_t *kv_heads, const size_t *width,
                       size_t n_rows, fl_err *err) {
  fl_rows t = { .n_layers = n_layers, .n_rows = n_rows };
  int rc;
  if (!total_values(n_layers, width, n_rows, &t.n_values))
    return fl_fail(err, FL_ENOMEM, "%zu cartridge rows do not fit in memory; use fewer", n_rows);
  if (t.n_values == 0)
    return fl_fail(err, FL_EINPUT, "a cartridge needs a row and a layer that keeps rows");
  t.width = fl_calloc(n_layers, sizeof *t.width);
  t.kv_heads = fl_calloc(n_layers, sizeof *t.kv_heads);
  t.k = fl_calloc(n_layers, sizeof *t.k);
  t.v = fl_calloc(n_layers, sizeof *t.v);
  t.block = fl_aligned_calloc(t.n_values, sizeof *t.block);
  if (!t.width || !t.kv_heads || !t.k || !t.v || !t.block) {
    rc = fl_fail(err, FL_ENOMEM, "out of memory for %zu cartridge rows; free some or use fewer",
                 n_rows);
    goto done;
  }
  memcpy(t.width, width, n_layers * sizeof *width);
  memcpy(t.kv_heads, kv_heads, n_layers * sizeof *kv_heads);
  carve(&t);
  *r = t;
  return FL_OK;
done:
  fl_rows_release(&t);
  return rc;
}

int fl_rows_like(fl_rows *r, const fl_rows *shape, size_t n_rows, fl_err *err) {
  return fl_rows_init_shape(r, shape->n_layers, shape->kv_heads, shape->width, n_rows, err);
}

int fl_rows_init(fl_rows *r, const fl_hparams *hp, size_t n_rows, fl_err *err) {
  size_t heads[FL_MAX_LAYERS] = { 0 }, width[FL_MAX_LAYERS] = { 0 };
  for (size_t l = 0; l < hp->n_layers; l++) {
    const fl_layer_hparams *lh = &hp->layer[l];
    if (lh->kv_from < 0 || (size_t)lh->kv_from != l) continue;
    heads[l] = lh->kv_heads;
    width[l] = lh->kv_heads * lh->head_dim;
  }
  return fl_rows_init_shape(r, hp->n_layers, heads, width, n_rows, err);
}

void fl_rows_to_file(fl_rows *r, const char *dir) {
  float *block = r->in_file ? NULL : fl_spillable_new(dir, r->n_values * sizeof *block);
  if (block == NULL) return;
  memcpy(block, r->block, r->n_values * sizeof *block);
  fl_free(r->block);
  r->block = block;
  r->in_file = true;
  carve(r);
  fl_rows_evict_pages(r);
}

void fl_rows_evict_pages(const fl_rows *r) {
  if (r->in_file) fl_spillable_evict_pages(r->block, r->n_values * sizeof *r->block);
}

void fl_rows_evict_pages_layer(const fl_rows *r, size_t layer) {
  size_t n;
  if (!r->in_file || r->width[layer] == 0 || !padded(r->n_rows, r->width[layer], &n)) return;
  fl_spillable_evict_pages(r->k[layer], 2 * n * sizeof *r->block);
}

void fl_rows_release(fl_rows *r) {
  fl_free(r->width);
  fl_free(r->kv_heads);
  fl_free(r->k);
  fl_free(r->v);
  if (r->in_file) fl_spillable_free(r->block, r->n_values * sizeof *r->block);
  else fl_free(r->block);
  *r = (fl_rows){ 0 };
}

void fl_rows_zero(fl_rows *g) { memset(g->block, 0, g->n_values * sizeof *g->block); }

/* The block is a multiple of 16 floats and its padding is zero, so lanes need no tail. */
double fl_rows_norm(const fl_rows *g) {
  enum { LANES = 8 };
  double sum[LANES] = { 0 }, all = 0;
  for (size_t i = 0; i < g->n_values; i += LANES)
    for (size_t j = 0; j < LANES; j++) sum[j] += (double)g->block[i + j] * (double)g->block[i + j];
  for (size_t j = 0; j < LANES; j++) all += sum[j];
  return sqrt(all);
}

void fl_rows_scale(fl_rows *g, float s) {
  for (size_t i = 0; i < g->n_values; i++) g->block[i] *= s;
}

uint64_t fl_rows_bytes(const fl_hparams *hp, uint64_t rows) {
  uint64_t n = 0;
  for (size_t l = 0; l < hp->n_layers; l++)
    if (hp->layer[l].kv_from == (int32_t)l)
      n += (uint64_t)hp->layer[l].kv_heads * hp->layer[l].head_dim * 2 * sizeof(float);
  return n * rows;
}
