/* vmath.h - exp and tanh over the lanes of a vector. Only *_isa.c files include it.
 *
 * Both are polynomials after a reduction of the argument; the coefficients are minimax fits (Remez)
 * of the relative error, made for these intervals. Each operation is the same in every lane, so a
 * value has the same bits wherever it stands in a vector.
 */
#ifndef FL_KERNELS_VMATH_H
#define FL_KERNELS_VMATH_H

#include "kernels/simd.h"
#include "kernels/simd_math.h"

/* Up to VF values: whole vectors where they fit, the first m lanes otherwise (the rest are 0). */
FL_VEC vf vm_load(const float *p, size_t m) { return m >= VF ? vf_load(p) : vf_load_n(p, m); }
FL_VEC void vm_store(float *p, vf v, size_t m) {
  if (m >= VF) vf_store(p, v);
  else vf_store_n(p, v, m);
}

/* vf_sum() and vf_hmax(), the same folds and so the same bits, without a trip through memory. */
#if defined FL_SIMD_AVX512 || defined FL_SIMD_AVX2
#if defined FL_SIMD_AVX512
FL_VEC __m256 vm_low(vf a) { return _mm512_castps512_ps256((__m512)a); }
FL_VEC __m256 vm_high(vf a) { return _mm512_extractf32x8_ps((__m512)a, 1); }
#define VM_FOLD_16(op, a) op(vm_low(a), vm_high(a))
#else
#define VM_FOLD_16(op, a) ((__m256)(a))
#endif
FL_VEC float vm_sum(vf a) {
  __m256 b = VM_FOLD_16(_mm256_add_ps, a);
  __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  c = _mm_add_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}
FL_VEC float vm_hmax(vf a) {
  __m256 b = VM_FOLD_16(_mm256_max_ps, a);
  __m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  c = _mm_max_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}
#else
FL_VEC float vm_sum(vf a) { return vf_sum(a); }
FL_VEC float vm_hmax(vf a) { return vf_hmax(a); }
#endif

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
  vi sign = (vi)x & vi_set1(INT32_MIN);
  return vf_sel(a < vf_set1(0.625f), small, (vf)((vi)large | sign));
}

/* 1 / (1 + exp(-x)) */
FL_VEC vf vm_sigmoid(vf x) { return 1.0f / (1.0f + vm_exp(-x)); }

/* y = cap * tanh(x / cap) */
FL_VEC vf vm_softcap(vf x, float cap) { return vm_tanh(x / cap) * cap; }

#endif
