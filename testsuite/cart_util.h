/* cart_util.h - geometries without a model, cartridges with known values, temporary files, and the
 * golden step's arrays. */
#ifndef FL_TESTSUITE_CART_UTIL_H
#define FL_TESTSUITE_CART_UTIL_H

#include <unistd.h>

#include "cartridge/adam.h"
#include "cartridge/cartridge.h"
#include "formats/safetensors.h"
#include "model_util.h"

/* Four layers of three geometries; the last uses the rows of the one before it. */
static inline fl_hparams *some_geometry(void) {
  fl_hparams *hp = fl_calloc(1, sizeof *hp);
  static const size_t heads[4] = { 2, 1, 4, 4 }, dim[4] = { 8, 16, 8, 8 };
  hp->n_layers = 4;
  hp->n_ctx = 1000;
  for (size_t l = 0; l < 4; l++)
    hp->layer[l] = (fl_layer_hparams){
      .n_heads = 4, .kv_heads = heads[l], .head_dim = dim[l], .kv_from = l == 3 ? 2 : (int32_t)l
    };
  return hp;
}

static inline void fill_rows(fl_rows *r, uint32_t stream, double scale) {
  fl_rng rng = fl_rng_stream(11, FL_RNG_TEST, stream, 0, 0);
  for (size_t l = 0; l < r->n_layers; l++)
    for (size_t i = 0; i < r->n_rows * r->width[l]; i++) {
      r->k[l][i] = (float)(scale * fl_rng_normal(&rng));
      r->v[l][i] = (float)(scale * fl_rng_normal(&rng));
    }
}

static inline bool rows_equal(const fl_rows *a, const fl_rows *b) {
  return a->n_layers == b->n_layers && a->n_rows == b->n_rows && a->n_values == b->n_values &&
         memcmp(a->width, b->width, a->n_layers * sizeof *a->width) == 0 &&
         memcmp(a->block, b->block, a->n_values * sizeof *a->block) == 0;
}

static inline fl_cartridge some_cartridge(const fl_hparams *hp, size_t n, size_t frozen,
                                          uint32_t stream) {
  fl_cartridge c = { .frozen = frozen };
  ck_assert_int_eq(fl_rows_init(&c.rows, hp, n, NULL), FL_OK);
  fill_rows(&c.rows, stream, 1);
  return c;
}

/* A path of its own in the working folder; valid until the next call. */
static inline const char *temp_path(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "tmp-%ld-%s", (long)getpid(), name);
  return path;
}

/* The values of a golden tensor. */
static inline const float *golden_f32(const fl_safetensors *g, const char *name, size_t n) {
  const fl_st_tensor *t = fl_safetensors_get(g, name);
  ck_assert_msg(t && t->type == FL_ST_F32 && t->n_values == n, "%s is not %zu floats", name, n);
  return t->data;
}

static inline const int32_t *golden_i32(const fl_safetensors *g, const char *name, size_t *n) {
  const fl_st_tensor *t = fl_safetensors_get(g, name);
  ck_assert_msg(t && t->type == FL_ST_I32, "no integers %s", name);
  *n = t->n_values;
  return t->data;
}

#endif
