/* simd.h - a thin portable vector: `vf`, VF lanes of f32, chosen by the flags that the translation
 * unit is compiled with (AVX-512, AVX2+FMA+F16C, SSE4.1, NEON, or GNU C vectors alone, which is
 * also what FL_SIMD_PLAIN asks for). Only *_isa.c files include it.
 *
 * +, -, *, / and unary - are the C operators on vf (GNU C vectors); those files are compiled with
 * -ffp-contract=off, so a product is fused with a sum only where vf_fma() says so.
 * FL_SIMD_FMA is 1 where vf_fma() rounds once (and scalar_fma() with it), 0 where it is a * b + c.
 * Every operation has the same result in every lane, and a scalar tail written with the scalar
 * operators and scalar_fma() has the same bits as a lane.
 */
#ifndef FL_KERNELS_SIMD_H
#define FL_KERNELS_SIMD_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "formats/dtype.h"

#if !defined FL_SIMD_PLAIN && defined __AVX512F__ && defined __AVX512BW__ && defined __AVX512DQ__
#define FL_SIMD_AVX512 1
#define VF 16
#elif !defined FL_SIMD_PLAIN && defined __AVX2__ && defined __FMA__ && defined __F16C__
#define FL_SIMD_AVX2 1
#define VF 8
#elif !defined FL_SIMD_PLAIN && defined __SSE4_1__
#define FL_SIMD_SSE 1
#define VF 4
#elif !defined FL_SIMD_PLAIN && defined __ARM_NEON && defined __aarch64__
#define FL_SIMD_NEON 1
#define VF 4
#else
#define VF 4
#endif

#if defined FL_SIMD_AVX512 || defined FL_SIMD_AVX2 || defined FL_SIMD_SSE
#include <immintrin.h>
#elif defined FL_SIMD_NEON
#include <arm_neon.h>
#endif

#if defined FL_SIMD_AVX512 || defined FL_SIMD_AVX2 || defined FL_SIMD_NEON
#define FL_SIMD_FMA 1
#else
#define FL_SIMD_FMA 0
#endif

#define FL_VEC static inline __attribute__((always_inline, unused))

typedef float vf __attribute__((vector_size(4 * VF)));
typedef int32_t vi __attribute__((vector_size(4 * VF)));
typedef uint32_t vu __attribute__((vector_size(4 * VF)));

/* --- whole vectors, no alignment asked -------------------------------------------------------- */

FL_VEC vf vf_load(const float *p) {
  vf v;
  memcpy(&v, p, sizeof v);
  return v;
}
FL_VEC void vf_store(float *p, vf v) { memcpy(p, &v, sizeof v); }

FL_VEC vf vf_set1(float x) {
#if defined FL_SIMD_AVX512
  return (vf)_mm512_set1_ps(x);
#elif defined FL_SIMD_AVX2
  return (vf)_mm256_set1_ps(x);
#else
  return (vf){ x, x, x, x };
#endif
}
FL_VEC vf vf_zero(void) { return (vf){ 0 }; }
FL_VEC vi vi_set1(int32_t x) { return (vi){ 0 } + x; }

/* The first n < VF lanes; the others are 0 (loads) or left alone (stores). */
FL_VEC vf vf_load_n(const float *p, size_t n) {
#if defined FL_SIMD_AVX512
  return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#else
  vf v = vf_zero();
  memcpy(&v, p, n * sizeof *p);
  return v;
#endif
}
FL_VEC void vf_store_n(float *p, vf v, size_t n) {
#if defined FL_SIMD_AVX512
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#else
  memcpy(p, &v, n * sizeof *p);
#endif
}

/* --- arithmetic ------------------------------------------------------------------------------- */

/* a * b + c */
FL_VEC vf vf_fma(vf a, vf b, vf c) {
#if defined FL_SIMD_AVX512
  return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined FL_SIMD_AVX2
  return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined FL_SIMD_NEON
  return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return a * b + c;
#endif
}
FL_VEC float scalar_fma(float a, float b, float c) {
#if FL_SIMD_FMA
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

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

/* --- narrow types: VF elements at p ----------------------------------------------------------- */

FL_VEC vf vf_load_f16(const uint16_t *p) {
#if defined FL_SIMD_AVX512
  return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
#elif defined FL_SIMD_AVX2
  return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
#elif defined FL_SIMD_NEON
  return (vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
#else
  /* The exponent is moved by a product with 2^112, exact for subnormals too; inf and NaN after. */
  vu h = { p[0], p[1], p[2], p[3] };
  vu e = h & 0x7c00u;
  vf mag = (vf)((h & 0x7fffu) << 13) * 0x1p112f;
  vu special = (vu)(e == 0x7c00u) & (0x7f800000u | ((h & 0x3ffu) << 13));
  vu finite = ~(vu)(e == 0x7c00u) & (vu)mag;
  return (vf)(finite | special | ((h & 0x8000u) << 16));
#endif
}
/* Rounds to nearest even. */
FL_VEC void vf_store_f16(uint16_t *p, vf a) {
#if defined FL_SIMD_AVX512
  _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtps_ph((__m512)a, 0));
#elif defined FL_SIMD_AVX2
  _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph((__m256)a, 0));
#elif defined FL_SIMD_NEON
  vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)a)));
#else
  for (int i = 0; i < VF; i++) p[i] = fl_f32_to_f16(a[i]);
#endif
}
FL_VEC vf vf_load_bf16(const uint16_t *p) {
#if defined FL_SIMD_AVX512
  __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)p);
  return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16);
#elif defined FL_SIMD_AVX2
  __m128i h = _mm_loadu_si128((const __m128i *)(const void *)p);
  return (vf)_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16);
#elif defined FL_SIMD_SSE
  __m128i h = _mm_loadl_epi64((const __m128i *)(const void *)p);
  return (vf)_mm_slli_epi32(_mm_cvtepu16_epi32(h), 16);
#elif defined FL_SIMD_NEON
  return (vf)vshll_n_u16(vld1_u16(p), 16);
#else
  return (vf)((vu){ p[0], p[1], p[2], p[3] } << 16);
#endif
}
FL_VEC vf vf_load_i8(const int8_t *p) {
#if defined FL_SIMD_AVX512
  __m128i b = _mm_loadu_si128((const __m128i *)(const void *)p);
  return (vf)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(b));
#elif defined FL_SIMD_AVX2
  __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)p);
  return (vf)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(b));
#elif defined FL_SIMD_SSE
  int32_t four;
  memcpy(&four, p, sizeof four);
  return (vf)_mm_cvtepi32_ps(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(four)));
#else
  return vf_from_i32((vi){ p[0], p[1], p[2], p[3] });
#endif
}

FL_VEC vi vi_load(const void *p) {
  vi v;
  memcpy(&v, p, sizeof v);
  return v;
}

/* The compiler keeps what makes *v before this and what uses it after. */
FL_VEC void vf_settle(vf *v) {
#if defined FL_SIMD_AVX512 || defined FL_SIMD_AVX2 || defined FL_SIMD_SSE
  __asm__ volatile("" : "+v"(*v));
#elif defined FL_SIMD_NEON
  __asm__ volatile("" : "+w"(*v));
#else
  (void)v;
#endif
}

/* VF unsigned bytes as integers. */
FL_VEC vi vi_load_u8(const uint8_t *p) {
#if defined FL_SIMD_AVX512
  return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
#elif defined FL_SIMD_AVX2
  return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
#elif defined FL_SIMD_SSE
  int32_t four;
  memcpy(&four, p, sizeof four);
  return (vi)_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four));
#else
  return (vi){ p[0], p[1], p[2], p[3] };
#endif
}

#endif
