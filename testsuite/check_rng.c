/* check_rng.c - the generator against Random123's published vectors, and the distributions. */
#include "base/rng.h"

#include <math.h>
#include <string.h>

#include "suite.h"

/* Random123 1.14, tests/kat_vectors, lines "philox4x32 10". */
static const struct {
  uint32_t counter[4], key[2], out[4];
} vectors[] = {
  { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
  { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
    { 0xffffffff, 0xffffffff },
    { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
  { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
    { 0xa4093822, 0x299f31d0 },
    { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
};

START_TEST(published_vectors) {
  uint32_t out[4];
  fl_philox4x32(out, vectors[_i].counter, vectors[_i].key);
  ck_assert_mem_eq(out, vectors[_i].out, sizeof out);
}
END_TEST

START_TEST(a_draw_depends_on_every_part_of_its_key) {
  fl_rng base = fl_rng_stream(42, FL_RNG_CHUNK, 3, 7, 1), same = base;
  const uint64_t first = fl_rng_u64(&base);
  ck_assert_uint_eq(fl_rng_u64(&same), first);
  ck_assert_uint_eq(base.index, 1);
  ck_assert_uint_ne(fl_rng_u64(&base), first);
  const fl_rng others[] = {
    fl_rng_stream(43, FL_RNG_CHUNK, 3, 7, 1),
    fl_rng_stream(42 + ((uint64_t)1 << 32), FL_RNG_CHUNK, 3, 7, 1),
    fl_rng_stream(42, FL_RNG_SEED, 3, 7, 1),
    fl_rng_stream(42, FL_RNG_CHUNK, 4, 7, 1),
    fl_rng_stream(42, FL_RNG_CHUNK, 3, 8, 1),
    fl_rng_stream(42, FL_RNG_CHUNK, 3, 7, 2),
    fl_rng_stream(42, FL_RNG_CHUNK, 7, 3, 1),
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    fl_rng r = others[i];
    ck_assert_uint_ne(fl_rng_u64(&r), first);
  }
  fl_rng later = fl_rng_stream(42, FL_RNG_CHUNK, 3, 7, 1);
  later.index = 1; /* jumping gives the draw that counting gives */
  fl_rng counted = fl_rng_stream(42, FL_RNG_CHUNK, 3, 7, 1);
  fl_rng_u64(&counted);
  ck_assert_uint_eq(fl_rng_u64(&later), fl_rng_u64(&counted));
}
END_TEST

/* The figures of one stream, so that a change of the mapping, which would make resumed runs differ
 * from uninterrupted ones, does not go unseen. Recipe: a second implementation of the paper's
 * cipher in Python, fed as rng.c says: own = philox((4, 0, 9, 2), seed 42); draw i = the first two
 * words of philox((i, 0, own[2], own[3]), (own[0], own[1])). */
START_TEST(golden_stream) {
  fl_rng r = fl_rng_stream(42, FL_RNG_SAMPLE, 0, 9, 2);
  static const uint64_t want[] = { 0x496ee5d6b2e57208, 0x87354bb1959c63d0, 0x88a3eecc97c57bc5 };
  for (size_t i = 0; i < sizeof want / sizeof *want; i++)
    ck_assert_uint_eq(fl_rng_u64(&r), want[i]);
}
END_TEST

/* Pearson's statistic over 10 cells and 20000 draws; 9 degrees of freedom exceed 27.9 with
 * probability 0.001, and the draws are fixed, so the test is not a matter of luck. */
START_TEST(below_is_even) {
  fl_rng r = fl_rng_stream(7, FL_RNG_TEST, 0, 0, 0);
  size_t cell[10] = { 0 };
  for (int i = 0; i < 20000; i++) cell[fl_rng_below(&r, 10)]++;
  double chi = 0;
  for (int i = 0; i < 10; i++) chi += ((double)cell[i] - 2000) * ((double)cell[i] - 2000) / 2000;
  ck_assert_msg(chi < 27.9, "chi square %g", chi);
}
END_TEST

START_TEST(below_at_the_edges) {
  fl_rng r = fl_rng_stream(7, FL_RNG_TEST, 0, 0, 1);
  for (int i = 0; i < 100; i++) ck_assert_uint_eq(fl_rng_below(&r, 1), 0);
  /* Just over half of 2^64: about half of the raw draws are refused, none may leak through. */
  const uint64_t n = ((uint64_t)1 << 63) + 1;
  uint32_t before = r.index;
  for (int i = 0; i < 200; i++) ck_assert(fl_rng_below(&r, n) < n);
  ck_assert_uint_gt(r.index - before, 250);
  for (int i = 0; i < 100; i++) fl_rng_below(&r, UINT64_MAX);
}
END_TEST

/* Means over N draws: deviation sigma / sqrt(N); five of them are the bound. */
START_TEST(unit_and_normal_have_their_moments) {
  enum { N = 20000 };
  fl_rng r = fl_rng_stream(11, FL_RNG_TEST, 0, 0, 2);
  double sum = 0, square = 0;
  for (int i = 0; i < N; i++) {
    double u = fl_rng_unit(&r);
    ck_assert(u >= 0 && u < 1);
    sum += u;
  }
  ck_assert(fabs(sum / N - 0.5) < 5 * sqrt(1.0 / 12 / N));
  sum = 0;
  for (int i = 0; i < N; i++) {
    double z = fl_rng_normal(&r);
    ck_assert(isfinite(z));
    sum += z;
    square += z * z;
  }
  ck_assert(fabs(sum / N) < 5 / sqrt(N));
  ck_assert(fabs(square / N - 1) < 5 * sqrt(2.0 / N));
}
END_TEST

/* All six orders of three, 6000 shuffles: 5 degrees of freedom, 20.5 at 0.001. */
START_TEST(shuffle_is_even_and_a_permutation) {
  fl_rng r = fl_rng_stream(13, FL_RNG_TEST, 0, 0, 3);
  size_t cell[6] = { 0 };
  for (int i = 0; i < 6000; i++) {
    uint32_t v[3] = { 0, 1, 2 };
    fl_rng_shuffle(&r, v, 3);
    ck_assert_uint_eq((1u << v[0]) | (1u << v[1]) | (1u << v[2]), 7);
    cell[v[0] * 2 + (v[1] > v[2])]++;
  }
  double chi = 0;
  for (int i = 0; i < 6; i++) chi += ((double)cell[i] - 1000) * ((double)cell[i] - 1000) / 1000;
  ck_assert_msg(chi < 20.5, "chi square %g", chi);
  fl_rng_shuffle(&r, NULL, 0);
}
END_TEST

Suite *suite_rng(void) {
  Suite *s = suite_create("rng");
  TCase *core = tcase_create("Core"), *golden = tcase_create("Golden");
  tcase_add_test(core, a_draw_depends_on_every_part_of_its_key);
  tcase_add_test(core, below_is_even);
  tcase_add_test(core, below_at_the_edges);
  tcase_add_test(core, unit_and_normal_have_their_moments);
  tcase_add_test(core, shuffle_is_even_and_a_permutation);
  tcase_add_loop_test(golden, published_vectors, 0, sizeof vectors / sizeof *vectors);
  tcase_add_test(golden, golden_stream);
  suite_add_tcase(s, core);
  suite_add_tcase(s, golden);
  return s;
}
