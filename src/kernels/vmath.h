/* vmath.h - exp and tanh over the lanes of a vector. Only *_isa.c files include it.
 *
 * Both are polynomials after a reduction of the argument; the coefficients are minimax fits (Remez)
 * of the relative error, made for these intervals. Each operation is the same in every lane, so a
 * value has the same bits wherever it stands in a vector.
 */
#ifndef FL_KERNELS_VMATH_H
#define FL_KERNELS_VMATH_H

#include "kernels/simd.h"

/* Up to VF values: whole vectors where they fit, the first m lanes otherwise (the rest are 0). */
FL_VEC vf vm_load(const float *p, size_t m) { return m >= VF ? vf_load(p) : vf_load_n(p, m); }
FL_VEC void vm_store(float *p, vf v, size_t m) {
  if (m >= VF)
    vf_store(p, v);
  else
    vf_store_n(p, v, m);
}

/* Lanes whose number plus `first` lies in [lo, hi) keep their value, the others get `other`. */
FL_VEC vf vm_keep_range(vf x, size_t first, size_t lo, size_t hi, float other) {
  int32_t number[VF];
  for (int i = 0; i < VF; i++) number[i] = i;
  vi at;
  memcpy(&at, number, sizeof at);
  at += (int32_t)first;
  return vf_sel((at >= (int32_t)lo) & (at < (int32_t)hi), x, vf_set1(other));
}

/* 2^n for integers n in [-126, 127]; the shift is unsigned so that a NaN's garbage is harmless. */
FL_VEC vf vm_pow2i(vi n) { return (vf)((vu)(n + 127) << 23); }

/* exp(x), within 1.1 ulp. exp(0) == 1; 0 for x <= -104 and -inf; inf above 88.73; NaN stays.
 * x = n*ln2 + r with |r| <= ln2/2; ln2 in two parts, the first with 9 bits so that n times it is
 * exact without fma. 2^n is applied in two halves: results below 2^-126 round once. */
FL_VEC vf vm_exp(vf x) {
  x = vf_max(vf_set1(-105.0f), vf_min(vf_set1(90.0f), x)); /* NaN is the second operand: kept */
  vf n = vf_round(x * 1.44269504f);
  vf r = vf_fma(n, vf_set1(-0.693359375f), x);
  r = vf_fma(n, vf_set1(2.12194440e-4f), r);
  vf p = vf_fma(vf_set1(0.00138143207f), r, vf_set1(0.00836885107f));
  p = vf_fma(p, r, vf_set1(0.0416684011f));
  p = vf_fma(p, r, vf_set1(0.166665195f));
  p = vf_fma(p, r, vf_set1(0.499999934f));
  vf y = 1.0f + vf_fma(p, r * r, r);
  vi e = vf_to_i32(n);
  vi half = e >> 1;
  return y * vm_pow2i(half) * vm_pow2i(e - half);
}

/* tanh(x), within 2 ulp: an odd polynomial below 0.625, 1 - 2 / (exp(2|x|) + 1) above. */
FL_VEC vf vm_tanh(vf x) {
  vf a = vf_abs(x), z = x * x;
  vf p = vf_fma(vf_set1(-0.00570498696f), z, vf_set1(0.0206390872f));
  p = vf_fma(p, z, vf_set1(-0.0537397151f));
  p = vf_fma(p, z, vf_set1(0.133314422f));
  p = vf_fma(p, z, vf_set1(-0.333332819f));
  vf small = vf_fma(p * z, x, x);
  vf large = 1.0f - 2.0f / (vm_exp(a + a) + 1.0f);
  vi sign = (vi)x & (vi)vf_set1(-0.0f);
  return vf_sel(a < vf_set1(0.625f), small, (vf)((vi)large | sign));
}

/* 1 / (1 + exp(-x)) */
FL_VEC vf vm_sigmoid(vf x) { return 1.0f / (1.0f + vm_exp(-x)); }

/* y = cap * tanh(x / cap) */
FL_VEC vf vm_softcap(vf x, float cap) { return vm_tanh(x / cap) * cap; }

#endif
