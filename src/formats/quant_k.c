/* quant_k.c - the types with super-blocks of 256 values.
 *
 *   q4_k  f16 d, f16 dmin, 12 bytes of 6-bit scales and minima, 128 bytes of nibbles
 *   q5_k  the same, with 32 bytes of fifth bits before the nibbles
 *         eight sub-blocks of 32: value (d * scale) * q - (dmin * minimum); sub-blocks 2i and 2i+1
 *         are the low and the high nibbles of bytes 32i to 32i+31; bit s of fifth[l] belongs to
 *         value l of sub-block s
 *   q6_k  128 bytes of low nibbles, 64 bytes of upper bit pairs, 16 int8 scales, f16 d
 *         sixteen sub-blocks of 16: value (d * scale) * (q - 32); each half of 128 values is four
 *         groups of 32, see below */
#include "formats/quant.h"

#define SUPER 256

/* Scales and minima s of 8: the first four have their six bits in bytes s and s + 4; the last four
 * have four bits in a nibble of byte s + 4 and the upper two at the top of the former bytes. */
static inline void scale_and_min(float *scale, float *min, const uint8_t *packed, size_t s) {
  if (s < 4) {
    *scale = (float)(packed[s] & 63);
    *min = (float)(packed[s + 4] & 63);
  } else {
    *scale = (float)((packed[s + 4] & 15) | packed[s - 4] >> 6 << 4);
    *min = (float)(packed[s + 4] >> 4 | packed[s] >> 6 << 4);
  }
}

void fl_dequantise_q4_k(float *restrict out, const void *restrict in, size_t n) {
  const uint8_t *p = in;
  for (size_t i = 0; i < n; i += SUPER, p += 144) {
    const float d = fl_half_at(p), dmin = fl_half_at(p + 2);
    for (size_t s = 0; s < 8; s++) {
      float scale, min;
      scale_and_min(&scale, &min, p + 4, s);
      const float ds = d * scale, ms = dmin * min;
      const uint8_t *q = p + 16 + s / 2 * 32;
      const int shift = (s & 1) * 4;
      for (size_t l = 0; l < 32; l++) out[i + s * 32 + l] = ds * (float)(q[l] >> shift & 15) - ms;
    }
  }
}

void fl_dequantise_q5_k(float *restrict out, const void *restrict in, size_t n) {
  const uint8_t *p = in;
  for (size_t i = 0; i < n; i += SUPER, p += 176) {
    const float d = fl_half_at(p), dmin = fl_half_at(p + 2);
    const uint8_t *fifth = p + 16;
    for (size_t s = 0; s < 8; s++) {
      float scale, min;
      scale_and_min(&scale, &min, p + 4, s);
      const float ds = d * scale, ms = dmin * min;
      const uint8_t *q = p + 48 + s / 2 * 32;
      const int shift = (s & 1) * 4;
      for (size_t l = 0; l < 32; l++) {
        int v = (q[l] >> shift & 15) | (fifth[l] >> s & 1) << 4;
        out[i + s * 32 + l] = ds * (float)v - ms;
      }
    }
  }
}

void fl_dequantise_q6_k(float *restrict out, const void *restrict in, size_t n) {
  const uint8_t *p = in;
  for (size_t i = 0; i < n; i += SUPER, p += 210) {
    const float d = fl_half_at(p + 208);
    for (size_t half = 0; half < 2; half++) {
      const uint8_t *low = p + half * 64, *upper = p + 128 + half * 32;
      const int8_t *scales = (const int8_t *)(p + 192 + half * 8);
      for (size_t g = 0; g < 4; g++) { /* nibble: bytes 0-31 or 32-63, low for g < 2, else high */
        const uint8_t *q = low + (g & 1) * 32;
        const int shift = g < 2 ? 0 : 4, pair = (int)g * 2;
        float *o = out + i + half * 128 + g * 32;
        for (size_t l = 0; l < 32; l++) {
          int v = ((q[l] >> shift & 15) | (upper[l] >> pair & 3) << 4) - 32;
          o[l] = d * (float)scales[g * 2 + l / 16] * (float)v;
        }
      }
    }
  }
}
