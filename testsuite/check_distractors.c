/* check_distractors.c - what a conversation sees: always its target, as often alone as asked. */
#include <math.h>
#include <string.h>

#include "trainer/distractors.h"
#include "suite.h"

enum { DRAWS = 20000, N = 6 };

START_TEST(target_is_always_visible_and_nobody_twice) {
  fl_distractor_options o = { .seed = 1, .p_iso = 0.3, .distract_max = 3 };
  uint32_t parts[N];
  for (uint32_t r = 0; r < 2000; r++) {
    size_t n = fl_distractors_draw(&o, 7, r, 1, 2, N, parts);
    ck_assert(n >= 1 && n <= 4);
    unsigned seen = 0;
    for (size_t i = 0; i < n; i++) {
      ck_assert_uint_lt(parts[i], N);
      ck_assert(!(seen & 1u << parts[i]));
      seen |= 1u << parts[i];
    }
    ck_assert(seen & 1u << 2);
  }
}
END_TEST

/* Binomial with n = 20000: five deviations are under 0.018 of n; the counts of 1, 2, 3 distractors
 * and of places of the target likewise. */
START_TEST(frequencies_are_those_asked_for) {
  fl_distractor_options o = { .seed = 3, .p_iso = 0.75, .distract_max = 3 };
  uint32_t parts[N];
  double alone = 0, by_count[4] = { 0 }, first = 0, others[N] = { 0 }, mixed = 0;
  for (uint32_t r = 0; r < DRAWS; r++) {
    size_t n = fl_distractors_draw(&o, 0, r, r % 4, 0, N, parts);
    alone += n == 1;
    by_count[n - 1]++;
    if (n == 2) first += parts[0] == 0;
    for (size_t i = 0; i < n; i++) others[parts[i]]++;
  }
  mixed = DRAWS - alone;
  ck_assert_double_eq_tol(alone / DRAWS, 0.75, 0.018);
  for (int k = 1; k < 4; k++) ck_assert_double_eq_tol(by_count[k] / mixed, 1.0 / 3, 0.035);
  ck_assert_double_eq_tol(first / by_count[1], 0.5, 0.065);
  for (int i = 1; i < N; i++) /* mean 2 of 5 others in a quarter of the draws */
    ck_assert_double_eq_tol(others[i] / mixed, 0.4, 0.036);
}
END_TEST

START_TEST(extremes) {
  uint32_t parts[N];
  fl_distractor_options o = { .seed = 3, .p_iso = 1, .distract_max = 3 };
  for (uint32_t r = 0; r < 200; r++)
    ck_assert_uint_eq(fl_distractors_draw(&o, 0, r, 0, 1, N, parts), 1);
  o.p_iso = 0;
  for (uint32_t r = 0; r < 200; r++) {
    ck_assert_uint_gt(fl_distractors_draw(&o, 0, r, 0, 1, N, parts), 1);
    ck_assert_uint_eq(fl_distractors_draw(&o, 0, r, 0, 1, 2, parts), 2);
    ck_assert_uint_eq(fl_distractors_draw(&o, 0, r, 0, 0, 1, parts), 1);
    ck_assert_uint_eq(parts[0], 0);
  }
}
END_TEST

START_TEST(a_draw_depends_on_its_keys_only) {
  fl_distractor_options o = { .seed = 3, .p_iso = 0, .distract_max = 5 };
  uint32_t a[N], b[N], same_round = 0, same_conv = 0, same_doc = 0;
  for (uint32_t r = 0; r < 200; r++) {
    size_t n = fl_distractors_draw(&o, 1, r, 0, 0, N, a);
    ck_assert_uint_eq(fl_distractors_draw(&o, 1, r, 0, 0, N, b), n);
    ck_assert_mem_eq(a, b, n * sizeof *a);
    same_round +=
        fl_distractors_draw(&o, 1, r + 1, 0, 0, N, b) == n && !memcmp(a, b, n * sizeof *a);
    same_conv += fl_distractors_draw(&o, 1, r, 1, 0, N, b) == n && !memcmp(a, b, n * sizeof *a);
    same_doc += fl_distractors_draw(&o, 2, r, 0, 0, N, b) == n && !memcmp(a, b, n * sizeof *a);
  }
  ck_assert_uint_lt(same_round, 60);
  ck_assert_uint_lt(same_conv, 60);
  ck_assert_uint_lt(same_doc, 60);
}
END_TEST

Suite *suite_distractors(void);
Suite *suite_distractors(void) {
  Suite *s = suite_create("distractors");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, target_is_always_visible_and_nobody_twice);
  tcase_add_test(t, frequencies_are_those_asked_for);
  tcase_add_test(t, extremes);
  tcase_add_test(t, a_draw_depends_on_its_keys_only);
  suite_add_tcase(s, t);
  return s;
}
