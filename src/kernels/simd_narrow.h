/* simd_narrow.h - vectors of f32 and of integers from narrower types and back: VF elements at p.
 * Only *_isa.c files include it. */
#ifndef FL_KERNELS_SIMD_NARROW_H
#define FL_KERNELS_SIMD_NARROW_H

#include "formats/dtype.h"
#include "kernels/simd_math.h"

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
