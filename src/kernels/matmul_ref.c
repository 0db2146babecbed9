/* matmul_ref.c - the products in plain C, the definition that the fast ones are compared with. */
#include <math.h>

#include "kernels/matmul.h"

static float chain(float a, float b, float acc, bool use_fma) {
  return use_fma ? fmaf(a, b, acc) : acc + a * b;
}

void fl_matmul_ref(float *y, size_t ldy, const float *x, size_t ldx, const float *w, size_t m,
                   size_t n_out, size_t n_in, bool use_fma) {
  for (size_t r = 0; r < m; r++)
    for (size_t o = 0; o < n_out; o++) {
      float sum = 0.0f;
      for (size_t k0 = 0; k0 < n_in; k0 += FL_KC) {
        float acc = 0.0f;
        for (size_t k = k0; k < n_in && k < k0 + FL_KC; k++)
          acc = chain(x[r * ldx + k], w[o * n_in + k], acc, use_fma);
        sum = k0 == 0 ? acc : sum + acc;
      }
      y[r * ldy + o] = sum;
    }
}

void fl_matmul_dx_ref(float *dx, size_t lddx, const float *dy, size_t lddy, const float *w,
                      size_t m, size_t n_out, size_t n_in, bool add, bool use_fma) {
  for (size_t r = 0; r < m; r++)
    for (size_t k = 0; k < n_in; k++) {
      float sum = add ? dx[r * lddx + k] : 0.0f;
      for (size_t o0 = 0; o0 < n_out; o0 += FL_KC) {
        float acc = 0.0f;
        for (size_t o = o0; o < n_out && o < o0 + FL_KC; o++)
          acc = chain(dy[r * lddy + o], w[o * n_in + k], acc, use_fma);
        sum = o0 == 0 && !add ? acc : sum + acc;
      }
      dx[r * lddx + k] = sum;
    }
}
