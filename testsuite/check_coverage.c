/* check_coverage.c - merged spans against a plain array of flags. */
#include <string.h>

#include "base/rng.h"
#include "fleet/coverage.h"
#include "suite.h"

enum { TOKENS = 200 };

static void same_as(const fl_coverage *c, const bool *flag) {
  uint64_t covered = 0;
  size_t runs = 0;
  for (size_t i = 0; i < TOKENS; i++) {
    covered += flag[i];
    runs += flag[i] && (i == 0 || !flag[i - 1]);
  }
  ck_assert_uint_eq(fl_coverage_tokens(c), covered);
  ck_assert_uint_eq(c->n, runs);
  for (size_t k = 0; k < c->n; k++)
    for (uint64_t i = c->span[k].first; i < c->span[k].end; i++) ck_assert(flag[i]);
}

START_TEST(random_spans_against_flags) {
  for (uint32_t trial = 0; trial < 50; trial++) {
    fl_rng r = fl_rng_stream(5, FL_RNG_TEST, trial, 0, 0);
    fl_coverage c = { 0 };
    bool flag[TOKENS] = { false };
    for (int k = 0; k < 40; k++) {
      uint64_t first = fl_rng_below(&r, TOKENS), len = fl_rng_below(&r, 12);
      uint64_t end = first + len > TOKENS ? TOKENS : first + len;
      ck_assert_int_eq(fl_coverage_add(&c, first, end), FL_OK);
      for (uint64_t i = first; i < end; i++) flag[i] = true;
      same_as(&c, flag);
    }
    fl_coverage_release(&c);
  }
}
END_TEST

START_TEST(text_round_trip) {
  fl_coverage c = { 0 }, back = { 0 };
  fl_coverage_add(&c, 3, 5);
  fl_coverage_add(&c, 9, 12);
  fl_coverage_add(&c, 5, 6);
  fl_buf b = { 0 };
  fl_coverage_print(&b, NULL, &c);
  ck_assert_str_eq(b.data, "[[3,6],[9,12]]");
  fl_json *j = NULL;
  ck_assert_int_eq(fl_json_parse(&j, b.data, b.len, NULL), FL_OK);
  ck_assert_int_eq(fl_coverage_parse(&back, j, 12), FL_OK);
  ck_assert_uint_eq(fl_coverage_tokens(&back), 6);
  fl_json_free(j);
  fl_buf_release(&b);
  fl_coverage_release(&c);
  fl_coverage_release(&back);
}
END_TEST

static const char *const damaged[] = { "{}",       "[1]",           "[[1]]",         "[[2,1]]",
                                       "[[1,1]]",  "[[0,2],[2,3]]", "[[3,4],[0,1]]", "[[0,11]]",
                                       "[[-1,2]]", "[[0.5,2]]",     "[[0,\"1\"]]",   "[[0,1,2]]" };

START_TEST(damaged_text_is_refused) {
  fl_json *j = NULL;
  fl_coverage c = { 0 };
  ck_assert_int_eq(fl_json_parse(&j, damaged[_i], strlen(damaged[_i]), NULL), FL_OK);
  ck_assert_int_eq(fl_coverage_parse(&c, j, 10), FL_EINPUT);
  ck_assert_ptr_null(c.span);
  fl_json_free(j);
}
END_TEST

Suite *suite_coverage(void);
Suite *suite_coverage(void) {
  Suite *s = suite_create("coverage");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, random_spans_against_flags);
  tcase_add_test(t, text_round_trip);
  tcase_add_loop_test(t, damaged_text_is_refused, 0, sizeof damaged / sizeof damaged[0]);
  suite_add_tcase(s, t);
  return s;
}
