/* simd_math.h - selection, rounding and sums over the lanes of a vf. Only *_isa.c files include
 * it. */
#ifndef FL_KERNELS_SIMD_MATH_H
#define FL_KERNELS_SIMD_MATH_H

#include "kernels/simd.h"

/* mask ? a : b by lane; a mask is what the C comparisons of vf give: all bits set or none. */
FL_VEC vf vf_sel(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }

/* a > b ? a : b, and a < b ? a : b (so b where either is NaN). */
FL_VEC vf vf_max(vf a, vf b) {
#if defined FL_SIMD_AVX512
  return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined FL_SIMD_AVX2
  return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined FL_SIMD_SSE
  return (vf)_mm_max_ps((__m128)a, (__m128)b);
#else
  return vf_sel(a > b, a, b);
#endif
}
FL_VEC vf vf_min(vf a, vf b) {
#if defined FL_SIMD_AVX512
  return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined FL_SIMD_AVX2
  return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined FL_SIMD_SSE
  return (vf)_mm_min_ps((__m128)a, (__m128)b);
#else
  return vf_sel(a < b, a, b);
#endif
}
FL_VEC vf vf_abs(vf a) { return (vf)((vi)a & 0x7fffffff); }

/* To the nearest integer, ties to even; |a| < 2^22. The same bits on every level. */
FL_VEC vf vf_round(vf a) {
#if defined FL_SIMD_AVX512
  return (vf)_mm512_roundscale_ps((__m512)a, 0x08);
#elif defined FL_SIMD_AVX2
  return (vf)_mm256_round_ps((__m256)a, 0x08);
#elif defined FL_SIMD_SSE
  return (vf)_mm_round_ps((__m128)a, 0x08);
#elif defined FL_SIMD_NEON
  return (vf)vrndnq_f32((float32x4_t)a);
#else
  for (int i = 0; i < VF; i++) a[i] = rintf(a[i]);
  return a;
#endif
}
/* The integral value of a lane as an integer; lanes must be integral and |a| < 2^31. */
FL_VEC vi vf_to_i32(vf a) { return __builtin_convertvector(a, vi); }
FL_VEC vf vf_from_i32(vi a) { return __builtin_convertvector(a, vf); }
/* 2^n for integral n in [-126, 127]. */
FL_VEC vf vf_pow2(vf n) { return (vf)((vf_to_i32(n) + 127) << 23); }

/* --- over the lanes, in one fixed order: halves are folded until one lane is left ------------- */

FL_VEC float vf_sum(vf a) {
  float t[VF];
  vf_store(t, a);
  for (int h = VF / 2; h > 0; h /= 2)
    for (int i = 0; i < h; i++) t[i] += t[i + h];
  return t[0];
}
FL_VEC float vf_hmax(vf a) {
  float t[VF];
  vf_store(t, a);
  for (int h = VF / 2; h > 0; h /= 2)
    for (int i = 0; i < h; i++) t[i] = t[i] > t[i + h] ? t[i] : t[i + h];
  return t[0];
}

#endif
