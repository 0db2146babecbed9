/* random_weights.h - weights of every type without a quantiser: blocks of random bytes whose scales
 * are set so that the values are about as large as those of a trained matrix. */
#ifndef FL_TESTSUITE_RANDOM_WEIGHTS_H
#define FL_TESTSUITE_RANDOM_WEIGHTS_H

#include <string.h>

#include "formats/dtype.h"

/* xorshift64; *state is never 0 */
static inline uint64_t random_u64(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

/* Between -1.75 and 1.75, deviation 1. */
static inline float random_unit(uint64_t *state) {
  return (float)(random_u64(state) >> 40) * (3.5f / 0x1p24f) - 1.75f;
}

static inline void put_half(uint8_t *at, double value) {
  const uint16_t h = fl_f32_to_f16((float)value);
  memcpy(at, &h, sizeof h);
}

/* Scale and offset, as two halves, of quants 0 .. 2^bits - 1 with the deviation s around 0. */
static inline void put_scale_min(uint8_t *at, int bits, double s, double parts, double sign) {
  const double deviation = bits == 4 ? 4.6 : 9.2, middle = bits == 4 ? 7.5 : 15.5;
  put_half(at, s / deviation / parts);
  put_half(at + 2, sign * middle * s / deviation / parts);
}

/* Turns random bytes into a block with values of about the deviation s. The sign of s is drawn by
 * the caller: the quants of some types have a middle that is not 0, which must not add up. */
static inline void tame_block(fl_dtype type, uint8_t *b, double s) {
  switch (type) {
  case FL_Q8_0: put_half(b, s / 74); break;
  case FL_Q4_0: put_half(b, s / 4.6); break;
  case FL_Q5_0: put_half(b, s / 9.2); break;
  case FL_Q4_1: put_scale_min(b, 4, s, 1, -1); break;
  case FL_Q5_1: put_scale_min(b, 5, s, 1, -1); break;
  case FL_Q4_K:
  case FL_Q5_K: /* eight scales and minima of 32 */
    put_scale_min(b, type == FL_Q4_K ? 4 : 5, s, 32, 1);
    memset(b + 4, 0xA0, 8);
    memset(b + 12, 0, 4);
    break;
  default: /* Q6_K: scales of 32 */
    memset(b + 192, 32, 16);
    put_half(b + 208, s / (32 * 18.5));
    break;
  }
}

/* n blocks at out, which has room for 7 bytes more. */
static inline void random_blocks(const fl_dtype_traits *t, uint8_t *out, size_t n, double s,
                                 uint64_t *state) {
  for (size_t i = 0; t->block > 1 && i < n * t->bytes; i += 8) {
    const uint64_t v = random_u64(state);
    memcpy(out + i, &v, 8);
  }
  for (size_t i = 0; i < n; i++) {
    if (t->block > 1) {
      tame_block(t->type, out + i * t->bytes, random_u64(state) >> 63 ? s : -s);
    } else {
      const float f = (float)s * random_unit(state);
      t->quantise(out + i * t->bytes, &f, 1);
    }
  }
}

#endif
