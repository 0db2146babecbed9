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

#endif
