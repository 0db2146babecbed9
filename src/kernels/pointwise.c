/* pointwise.c - the public row functions: loops over rows around one level's table. */
#include "kernels/pointwise.h"

#include <math.h>

#include "kernels/pointwise_isa.h"
#include "kernels/table.h"

void fl_rmsnorm(const fl_kernels *k, float *y, const float *x, const float *w, size_t rows,
                size_t cols, size_t ldy, size_t ldx, float eps) {
  for (size_t r = 0; r < rows; r++) k->pointwise->rmsnorm(y + r * ldy, x + r * ldx, w, cols, eps);
}

void fl_rmsnorm_bwd(const fl_kernels *k, float *dx, const float *dy, const float *x, const float *w,
                    size_t rows, size_t cols, size_t lddx, size_t lddy, size_t ldx, float eps,
                    bool add) {
  for (size_t r = 0; r < rows; r++)
    k->pointwise->rmsnorm_bwd(dx + r * lddx, dy + r * lddy, x + r * ldx, w, cols, eps, add);
}

void fl_rope_table(float *cs, size_t pos0, size_t n, const double *inv_freq, size_t half,
                   double mscale) {
  for (size_t r = 0; r < n; r++)
    for (size_t i = 0; i < half; i++) {
      double angle = (double)(pos0 + r) * inv_freq[i];
      float *out = cs + 2 * (r * half + i);
      out[0] = (float)(cos(angle) * mscale);
      out[1] = (float)(sin(angle) * mscale);
    }
}

void fl_rope_row(const fl_kernels *k, float *x, size_t n_heads, size_t head_dim, size_t half,
                 const float *cs, bool interleaved, bool inverse) {
  float sign = inverse ? -1.0f : 1.0f;
  if (interleaved) k->pointwise->rope_pairs(x, n_heads, head_dim, half, cs, sign);
  else k->pointwise->rope_halves(x, n_heads, head_dim, half, cs, sign);
}

void fl_glu(const fl_kernels *k, float *h, const float *g, const float *u, size_t n, fl_act act) {
  k->pointwise->glu(h, g, u, n, act);
}
void fl_glu_bwd(const fl_kernels *k, float *dg, float *du, const float *dh, const float *g,
                const float *u, size_t n, fl_act act) {
  k->pointwise->glu_bwd(dg, du, dh, g, u, n, act);
}
void fl_act_bwd(const fl_kernels *k, float *dx, const float *dy, const float *x, size_t n,
                fl_act act) {
  k->pointwise->act_bwd(dx, dy, x, n, act);
}

void fl_add(const fl_kernels *k, float *y, const float *x, size_t n) { k->pointwise->add(y, x, n); }
void fl_scale(const fl_kernels *k, float *y, float s, size_t n) { k->pointwise->scale(y, s, n); }
void fl_axpy(const fl_kernels *k, float *y, float a, const float *x, size_t n) {
  k->pointwise->axpy(y, a, x, n);
}
void fl_mul(const fl_kernels *k, float *y, const float *x, size_t n) { k->pointwise->mul(y, x, n); }
float fl_dot(const fl_kernels *k, const float *a, const float *b, size_t n) {
  return k->pointwise->dot(a, b, n);
}

void fl_softcap(const fl_kernels *k, float *y, const float *x, size_t n, float cap) {
  k->pointwise->softcap(y, x, n, cap);
}
void fl_softcap_bwd(const fl_kernels *k, float *dx, const float *dy, const float *y, size_t n,
                    float cap) {
  k->pointwise->softcap_bwd(dx, dy, y, n, cap);
}

float fl_max(const fl_kernels *k, const float *x, size_t n) { return k->pointwise->max(x, n); }
float fl_sum_exp(const fl_kernels *k, const float *x, size_t n, float max) {
  return k->pointwise->sum_exp(x, n, max);
}
void fl_exp_scaled(const fl_kernels *k, float *y, const float *x, size_t n, float max,
                   float scale) {
  k->pointwise->exp_scaled(y, x, n, max, scale);
}

void fl_f32_to_f16_n(const fl_kernels *k, uint16_t *y, const float *x, size_t n) {
  k->pointwise->to_f16(y, x, n);
}
void fl_f16_to_f32_n(const fl_kernels *k, float *y, const uint16_t *x, size_t n) {
  k->pointwise->from_f16(y, x, n);
}
