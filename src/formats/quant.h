/* quant.h - the conversions that the table in dtype.c refers to; `n` values, a multiple of the
 * type's block. Input and output never overlap; blocks have no alignment. */
#ifndef FL_FORMATS_QUANT_H
#define FL_FORMATS_QUANT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "formats/dtype.h"

void fl_dequantise_f32(float *out, const void *in, size_t n);
void fl_dequantise_f16(float *out, const void *in, size_t n);
void fl_dequantise_bf16(float *out, const void *in, size_t n);
void fl_dequantise_q8_0(float *out, const void *in, size_t n);
void fl_dequantise_q4_0(float *out, const void *in, size_t n);
void fl_dequantise_q4_1(float *out, const void *in, size_t n);
void fl_dequantise_q5_0(float *out, const void *in, size_t n);
void fl_dequantise_q5_1(float *out, const void *in, size_t n);
void fl_dequantise_q4_k(float *out, const void *in, size_t n);
void fl_dequantise_q5_k(float *out, const void *in, size_t n);
void fl_dequantise_q6_k(float *out, const void *in, size_t n);

void fl_quantise_f32(void *out, const float *in, size_t n);
void fl_quantise_f16(void *out, const float *in, size_t n);
void fl_quantise_bf16(void *out, const float *in, size_t n);
void fl_quantise_q8_0(void *out, const float *in, size_t n);

/* The half-precision number at p. */
static inline float fl_half_at(const uint8_t *p) {
  uint16_t h;
  memcpy(&h, p, sizeof h);
  return fl_f16_to_f32(h);
}

#endif
