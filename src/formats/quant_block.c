/* quant_block.c - the types with blocks of 32 values.
 *
 *   q8_0  f16 d, 32 int8 q                      value d * q
 *   q4_0  f16 d, 16 bytes of nibbles            value d * (q - 8)
 *   q4_1  f16 d, f16 m, 16 bytes of nibbles     value d * q + m
 *   q5_0  f16 d, u32 fifth bits, 16 bytes       value d * (q - 16)
 *   q5_1  f16 d, f16 m, u32 fifth bits, 16 B    value d * q + m
 *
 * Low nibbles are values 0 to 15 of the block, high nibbles 16 to 31; bit i of the u32 is the fifth
 * bit of value i. */
#include <math.h>

#include "formats/quant.h"

#define BLOCK 32
#define HALF 16

void fl_dequantise_q8_0(float *restrict out, const void *restrict in, size_t n) {
  const uint8_t *p = in;
  for (size_t i = 0; i < n; i += BLOCK, p += 34) {
    const float d = fl_half_at(p);
    const int8_t *q = (const int8_t *)(p + 2);
    for (size_t j = 0; j < BLOCK; j++) out[i + j] = (float)q[j] * d;
  }
}

void fl_dequantise_q4_0(float *restrict out, const void *restrict in, size_t n) {
  const uint8_t *p = in;
  for (size_t i = 0; i < n; i += BLOCK, p += 18) {
    const float d = fl_half_at(p);
    for (size_t j = 0; j < HALF; j++) {
      out[i + j] = (float)((p[2 + j] & 15) - 8) * d;
      out[i + HALF + j] = (float)((p[2 + j] >> 4) - 8) * d;
    }
  }
}

void fl_dequantise_q4_1(float *restrict out, const void *restrict in, size_t n) {
  const uint8_t *p = in;
  for (size_t i = 0; i < n; i += BLOCK, p += 20) {
    const float d = fl_half_at(p), m = fl_half_at(p + 2);
    for (size_t j = 0; j < HALF; j++) {
      out[i + j] = (float)(p[4 + j] & 15) * d + m;
      out[i + HALF + j] = (float)(p[4 + j] >> 4) * d + m;
    }
  }
}

/* The five bits of values j and j + 16. */
static inline void five_bits(int *low, int *high, const uint8_t *nibbles, uint32_t fifth,
                             size_t j) {
  *low = (nibbles[j] & 15) | (int)(fifth >> j & 1) << 4;
  *high = nibbles[j] >> 4 | (int)(fifth >> (j + HALF) & 1) << 4;
}

void fl_dequantise_q5_0(float *restrict out, const void *restrict in, size_t n) {
  const uint8_t *p = in;
  for (size_t i = 0; i < n; i += BLOCK, p += 22) {
    const float d = fl_half_at(p);
    uint32_t fifth;
    memcpy(&fifth, p + 2, sizeof fifth);
    for (size_t j = 0; j < HALF; j++) {
      int low, high;
      five_bits(&low, &high, p + 6, fifth, j);
      out[i + j] = (float)(low - 16) * d;
      out[i + HALF + j] = (float)(high - 16) * d;
    }
  }
}

void fl_dequantise_q5_1(float *restrict out, const void *restrict in, size_t n) {
  const uint8_t *p = in;
  for (size_t i = 0; i < n; i += BLOCK, p += 24) {
    const float d = fl_half_at(p), m = fl_half_at(p + 2);
    uint32_t fifth;
    memcpy(&fifth, p + 4, sizeof fifth);
    for (size_t j = 0; j < HALF; j++) {
      int low, high;
      five_bits(&low, &high, p + 8, fifth, j);
      out[i + j] = (float)low * d + m;
      out[i + HALF + j] = (float)high * d + m;
    }
  }
}

void fl_quantise_q8_0(void *restrict out, const float *restrict in, size_t n) {
  uint8_t *p = out;
  for (size_t i = 0; i < n; i += BLOCK, p += 34) {
    float top = 0;
    for (size_t j = 0; j < BLOCK; j++) top = fmaxf(top, fabsf(in[i + j]));
    const float d = top / 127;
    const float inverse = d > 0 ? 1 / d : 0;
    const uint16_t h = fl_f32_to_f16(d);
    memcpy(p, &h, sizeof h);
    for (size_t j = 0; j < BLOCK; j++) {
      /* The bounds matter only where 1 / d overflows (all values below 2^-120) or for NaN. */
      float q = fminf(fmaxf(roundf(in[i + j] * inverse), -127), 127);
      p[2 + j] = (uint8_t)(int8_t)q;
    }
  }
}
