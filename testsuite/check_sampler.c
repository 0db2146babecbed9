/* check_sampler.c - each stage of the sampler against its definition. */
#include "model_util.h"
#include "model/sampler.h"

static fl_sampler *sampler_of(size_t n) {
  fl_sampler *s;
  ck_assert_int_eq(fl_sampler_new(&s, fl_kernels_select(), n, NULL), FL_OK);
  return s;
}

static int32_t draw(fl_sampler *s, const float *logits, fl_sampling p, uint32_t i) {
  fl_rng r = fl_rng_stream(11, FL_RNG_TEST, i, 0, 0);
  return fl_sampler_pick(s, logits, &p, NULL, 0, &r);
}

START_TEST(greedy_takes_the_best_and_the_first_of_ties) {
  static const float x[6] = { 1, 3, 2, 3, -1, 0 };
  fl_sampler *s = sampler_of(6);
  ck_assert_int_eq(draw(s, x, FL_SAMPLING_GREEDY, 0), 1);
  fl_sampler_free(s);
}
END_TEST

/* Frequencies of n = 20000 draws of p: deviation sqrt(p (1-p) / n) <= 0.0036; five of them. */
START_TEST(frequencies_are_the_softmax) {
  static const float x[4] = { 0.0f, 1.0f, 2.0f, -1.0f };
  fl_sampler *s = sampler_of(4);
  double sum = 0, want[4];
  int count[4] = { 0 };
  fl_sampling p = { .temperature = 0.7, .top_p = 1, .repeat_penalty = 1 };
  for (int i = 0; i < 4; i++) sum += want[i] = exp((double)x[i] / 0.7);
  for (uint32_t i = 0; i < 20000; i++) count[draw(s, x, p, i)]++;
  for (int i = 0; i < 4; i++) ck_assert_double_eq_tol(count[i] / 20000.0, want[i] / sum, 0.018);
  fl_sampler_free(s);
}
END_TEST

START_TEST(cuts_leave_out_what_they_should) {
  static const float x[5] = { 4.0f, 3.9f, 3.0f, 0.0f, -2.0f };
  fl_sampler *s = sampler_of(5);
  for (uint32_t i = 0; i < 3000; i++) {
    fl_sampling k = { .temperature = 5, .top_k = 2, .top_p = 1, .repeat_penalty = 1 };
    fl_sampling p = { .temperature = 1, .top_p = 0.5, .repeat_penalty = 1 };
    fl_sampling m = { .temperature = 1, .top_p = 1, .min_p = 0.3, .repeat_penalty = 1 };
    ck_assert_int_le(draw(s, x, k, i), 1);
    ck_assert_int_le(draw(s, x, p, i), 1); /* 0.43 + 0.39 crosses one half */
    ck_assert_int_le(draw(s, x, m, i), 2); /* exp(-1) = 0.37 stays, exp(-4) does not */
  }
  fl_sampler_free(s);
}
END_TEST

START_TEST(penalty_counts_each_token_once_and_keeps_the_logits) {
  float x[3] = { 2.0f, 1.9f, -1.0f };
  static const int32_t recent[3] = { 0, 0, 2 };
  fl_sampling p = { .temperature = 0, .top_p = 1, .repeat_penalty = 1.2 };
  fl_sampler *s = sampler_of(3);
  fl_rng r = fl_rng_stream(0, FL_RNG_TEST, 0, 0, 0);
  ck_assert_int_eq(fl_sampler_pick(s, x, &p, recent, 3, &r), 1);
  p.repeat_penalty = 1.04; /* once: 1.923 > 1.9; twice would be 1.849 */
  ck_assert_int_eq(fl_sampler_pick(s, x, &p, recent, 3, &r), 0);
  ck_assert_float_eq(x[0], 2.0f);
  fl_sampler_free(s);
}
END_TEST

START_TEST(one_draw_a_token) {
  static const float x[4] = { 0.0f, 1.0f, 2.0f, -1.0f };
  fl_sampling p = { .temperature = 1, .top_p = 1, .repeat_penalty = 1 };
  fl_sampler *s = sampler_of(4);
  fl_rng a = fl_rng_stream(5, FL_RNG_TEST, 0, 0, 0), b = a;
  fl_sampler_pick(s, x, &p, NULL, 0, &a);
  fl_rng_unit(&b);
  ck_assert_mem_eq(&a, &b, sizeof a);
  fl_sampler_free(s);
}
END_TEST

Suite *suite_sampler(void);
Suite *suite_sampler(void) {
  Suite *s = suite_create("sampler");
  TCase *c = tcase_create("Core");
  tcase_add_test(c, greedy_takes_the_best_and_the_first_of_ties);
  tcase_add_test(c, frequencies_are_the_softmax);
  tcase_add_test(c, cuts_leave_out_what_they_should);
  tcase_add_test(c, penalty_counts_each_token_once_and_keeps_the_logits);
  tcase_add_test(c, one_draw_a_token);
  suite_add_tcase(s, c);
  return s;
}
