/* pointwise_isa.h - the row functions of one instruction-set level; contracts in pointwise.h and
 * loss.h. Private to this folder. */
#ifndef FL_KERNELS_POINTWISE_ISA_H
#define FL_KERNELS_POINTWISE_ISA_H

#include "kernels/pointwise.h"

struct fl_pointwise_ops {
  /* One row of `cols`. */
  void (*rmsnorm)(float *y, const float *x, const float *w, size_t cols, float eps);
  void (*rmsnorm_bwd)(float *dx, const float *dy, const float *x, const float *w, size_t cols,
                      float eps, bool add);
  void (*rope_halves)(float *x, size_t n_heads, size_t head_dim, size_t half, const float *cs,
                      float sign);
  void (*rope_pairs)(float *x, size_t n_heads, size_t head_dim, size_t half, const float *cs,
                     float sign);
  void (*glu)(float *h, const float *g, const float *u, size_t n, fl_act act);
  void (*glu_bwd)(float *dg, float *du, const float *dh, const float *g, const float *u, size_t n,
                  fl_act act);
  void (*act_bwd)(float *dx, const float *dy, const float *x, size_t n, fl_act act);
  void (*add)(float *y, const float *x, size_t n);
  void (*scale)(float *y, float s, size_t n);
  void (*axpy)(float *y, float a, const float *x, size_t n);
  void (*mul)(float *y, const float *x, size_t n);
  float (*dot)(const float *a, const float *b, size_t n);
  void (*softcap)(float *y, const float *x, size_t n, float cap);
  void (*softcap_bwd)(float *dx, const float *dy, const float *y, size_t n, float cap);
  float (*max)(const float *x, size_t n);
  float (*sum_exp)(const float *x, size_t n, float max);
  void (*exp_scaled)(float *y, const float *x, size_t n, float max, float scale);
  void (*to_f16)(uint16_t *y, const float *x, size_t n);
  void (*from_f16)(float *y, const uint16_t *x, size_t n);
};

#endif
