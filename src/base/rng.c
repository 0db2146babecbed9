/* rng.c - Philox4x32-10 and the distributions drawn from it.
 *
 * A stream has five words of identity besides the seed, a Philox counter has four. So the identity
 * (purpose, document, round, conversation) is first run through the cipher under the seed; the 128
 * bits that come out give the stream's own key and the upper half of its counter, and draw number
 * `index` is block `index` of that. */
#include "base/rng.h"

#include <math.h>

void fl_philox4x32(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c0;
    uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
    k0 += 0x9E3779B9u; /* golden ratio */
    k1 += 0xBB67AE85u; /* sqrt(3) - 1 */
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

fl_rng fl_rng_stream(uint64_t seed, uint32_t purpose, uint32_t document, uint32_t round,
                     uint32_t conversation) {
  return (fl_rng){ .seed = seed,
                   .purpose = purpose,
                   .document = document,
                   .round = round,
                   .conversation = conversation };
}

uint64_t fl_rng_u64(fl_rng *r) {
  const uint32_t seed[2] = { (uint32_t)r->seed, (uint32_t)(r->seed >> 32) };
  const uint32_t identity[4] = { r->purpose, r->document, r->round, r->conversation };
  uint32_t own[4], block[4];
  fl_philox4x32(own, identity, seed);
  const uint32_t counter[4] = { r->index, 0, own[2], own[3] };
  fl_philox4x32(block, counter, own);
  r->index++;
  return (uint64_t)block[1] << 32 | block[0];
}

uint64_t fl_rng_below(fl_rng *r, uint64_t n) {
  uint64_t surplus = -n % n; /* 2^64 mod n: so many values would count once too often */
  uint64_t x;
  do x = fl_rng_u64(r);
  while (x < surplus);
  return x % n;
}

double fl_rng_unit(fl_rng *r) { return (double)(fl_rng_u64(r) >> 11) * 0x1p-53; }

double fl_rng_normal(fl_rng *r) {
  double radius = 1.0 - fl_rng_unit(r); /* in (0, 1], so that the logarithm is finite */
  double angle = fl_rng_unit(r);
  return sqrt(-2.0 * log(radius)) * cos(6.283185307179586476925 * angle);
}

void fl_rng_shuffle(fl_rng *r, uint32_t *v, size_t n) {
  for (size_t left = n; left > 1; left--) {
    size_t pick = (size_t)fl_rng_below(r, left);
    uint32_t moved = v[left - 1];
    v[left - 1] = v[pick];
    v[pick] = moved;
  }
}
