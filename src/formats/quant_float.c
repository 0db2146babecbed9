/* quant_float.c - f32, f16 and bf16. Half precision is done in integers: not every machine that the
 * program runs on converts in hardware, and the results must be the same. */
#include "formats/quant.h"

static float float_of(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static uint32_t bits_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

float fl_f16_to_f32(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16;
  uint32_t exponent = (h >> 10) & 31, fraction = h & 0x3FF;
  if (exponent == 31) return float_of(sign | 0x7F800000 | fraction << 13);
  if (exponent != 0) return float_of(sign | (exponent + 112) << 23 | fraction << 13);
  float magnitude = (float)fraction * 0x1p-24f; /* subnormal or zero: exact */
  return float_of(sign | bits_of(magnitude));
}

uint16_t fl_f32_to_f16(float f) {
  uint32_t bits = bits_of(f), magnitude = bits & 0x7FFFFFFF;
  uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
  if (magnitude > 0x7F800000) /* NaN: quiet, with the upper bits of its payload */
    return (uint16_t)(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
  if (magnitude >= 0x477FF000) return (uint16_t)(sign | 0x7C00); /* 65520 and more */
  if (magnitude < 0x38800000) {
    /* Below 2^-14 the result counts in units of 2^-24; adding 0.5 puts that unit at the last bit
     * of the sum, so that the addition itself rounds to nearest even. */
    float sum = float_of(magnitude) + 0.5f;
    return (uint16_t)(sign | (bits_of(sum) - bits_of(0.5f)));
  }
  uint32_t even = magnitude >> 13 & 1;
  uint32_t rounded = magnitude + 0xFFF + even; /* a carry moves into the exponent as it should */
  return (uint16_t)(sign | ((rounded - 0x38000000) >> 13));
}

uint16_t fl_f32_to_bf16(float f) {
  uint32_t bits = bits_of(f);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(bits >> 16 | 0x40); /* NaN, quiet */
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

void fl_dequantise_f32(float *restrict out, const void *restrict in, size_t n) {
  if (n > 0) memcpy(out, in, n * sizeof *out);
}

void fl_dequantise_f16(float *restrict out, const void *restrict in, size_t n) {
  const uint8_t *p = in;
  for (size_t i = 0; i < n; i++) out[i] = fl_half_at(p + 2 * i);
}

void fl_dequantise_bf16(float *restrict out, const void *restrict in, size_t n) {
  const uint8_t *p = in;
  for (size_t i = 0; i < n; i++) {
    uint16_t b;
    memcpy(&b, p + 2 * i, sizeof b);
    out[i] = fl_bf16_to_f32(b);
  }
}

void fl_quantise_f32(void *restrict out, const float *restrict in, size_t n) {
  if (n > 0) memcpy(out, in, n * sizeof *in);
}

void fl_quantise_f16(void *restrict out, const float *restrict in, size_t n) {
  uint8_t *p = out;
  for (size_t i = 0; i < n; i++) {
    uint16_t h = fl_f32_to_f16(in[i]);
    memcpy(p + 2 * i, &h, sizeof h);
  }
}

void fl_quantise_bf16(void *restrict out, const float *restrict in, size_t n) {
  uint8_t *p = out;
  for (size_t i = 0; i < n; i++) {
    uint16_t b = fl_f32_to_bf16(in[i]);
    memcpy(p + 2 * i, &b, sizeof b);
  }
}
