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

/* The definition, with a list sorted as a whole and weights in double. */
static int32_t plain_pick(const float *x, size_t n, const fl_sampling *p, double u) {
  size_t order[600], keep = 0, most = p->top_k != 0 && p->top_k < n ? p->top_k : n;
  double all = 0, cum = 0, at = 0;
  for (size_t i = 0; i < n; i++) {
    size_t j = i;
    for (; j > 0 && x[order[j - 1]] < x[i]; j--) order[j] = order[j - 1];
    order[j] = i;
  }
  double best = (double)x[order[0]];
  for (size_t i = 0; i < most; i++) all += exp(((double)x[order[i]] - best) / p->temperature);
  for (; keep < most; keep++) {
    double w = exp(((double)x[order[keep]] - best) / p->temperature);
    if (keep > 0 && (cum >= p->top_p * all || w < p->min_p)) break;
    cum += w;
  }
  for (size_t i = 0; i < keep; i++) {
    at += exp(((double)x[order[i]] - best) / p->temperature);
    if (u * cum < at) return (int32_t)order[i];
  }
  return (int32_t)order[keep - 1];
}

/* Weights in float are off by about 2^-23, so a draw may cross from one candidate to its neighbour
 * once in a million; of 4000 draws one is allowed. */
START_TEST(draws_are_those_of_the_whole_list) {
  enum { N = 600 };
  static const fl_sampling how[] = {
    { .temperature = 1, .top_p = 1, .repeat_penalty = 1 },
    { .temperature = 3, .top_p = 0.9, .repeat_penalty = 1 },
    { .temperature = 0.2, .top_k = 40, .top_p = 0.95, .repeat_penalty = 1 },
    { .temperature = 8, .top_k = 300, .top_p = 1, .min_p = 0.02, .repeat_penalty = 1 }
  };
  float x[N];
  size_t differ = 0;
  fl_sampler *s = sampler_of(N);
  for (uint32_t i = 0; i < 4000; i++) {
    fl_rng r = fl_rng_stream(3, FL_RNG_TEST, i, 1, 0), u = fl_rng_stream(11, FL_RNG_TEST, i, 0, 0);
    for (size_t j = 0; j < N; j++) x[j] = (float)(floor(fl_rng_unit(&r) * 80) / 4); /* with ties */
    differ += draw(s, x, how[i % 4], i) != plain_pick(x, N, &how[i % 4], fl_rng_unit(&u));
  }
  ck_assert_uint_le(differ, 1);
  fl_sampler_free(s);
}
END_TEST

/* Thousands of candidates in a slice, which are sorted in another way: top_k tells the order. With
 * k = 1, 2, ... each draw is one of the k best by (logit, id), and over many draws all k come. */
START_TEST(flat_distributions_keep_the_order) {
  enum { N = 3000, K = 3 };
  static float x[N];
  fl_sampler *s = sampler_of(N);
  for (uint32_t round = 0; round < 5; round++) {
    int32_t best[K];
    bool seen[K] = { false };
    fl_rng r = fl_rng_stream(4, FL_RNG_TEST, round, 0, 0);
    for (size_t j = 0; j < N; j++) /* with ties, with zeros of both signs */
      x[j] = (float)(floor(fl_rng_unit(&r) * 200) - 199) / 400 * (j % 2 ? 1.0f : 0.5f) * 1.0f;
    for (size_t j = 0; j < N; j += 97) x[j] = j % 2 ? -0.0f : 0.0f;
    for (size_t k = 0; k < K; k++) {
      best[k] = -1;
      for (int32_t j = 0; j < N; j++) {
        bool taken = false;
        for (size_t q = 0; q < k; q++) taken = taken || best[q] == j;
        if (!taken && (best[k] < 0 || x[j] > x[best[k]])) best[k] = j;
      }
    }
    for (uint32_t i = 0; i < 200; i++) {
      const fl_sampling p = { .temperature = 1, .top_k = K, .top_p = 1, .repeat_penalty = 1 };
      const int32_t id = draw(s, x, p, round * 200 + i);
      size_t k = 0;
      while (k < K && best[k] != id) k++;
      ck_assert_uint_lt(k, K);
      seen[k] = true;
    }
    ck_assert(seen[0] && seen[1] && seen[2]); /* a third each: missed once in 1e35 */
  }
  fl_sampler_free(s);
}
END_TEST

START_TEST(penalties_by_count_and_biases) {
  static const float x[4] = { 2.0f, 1.5f, 1.0f, -1.0f };
  static const int32_t recent[3] = { 0, 1, 0 };
  static const fl_logit_bias bias[2] = { { 3, 100 }, { 0, -100 } };
  fl_sampler *s = sampler_of(4);
  fl_rng r = fl_rng_stream(0, FL_RNG_TEST, 0, 0, 0);
  fl_sampling p = FL_SAMPLING_GREEDY;
  p.presence = 0.6; /* 1.4, 0.9, 1.0, -1 */
  ck_assert_int_eq(fl_sampler_pick(s, x, &p, recent, 3, &r), 0);
  p.frequency = 0.3; /* 0.8, 0.6, 1.0, -1 */
  ck_assert_int_eq(fl_sampler_pick(s, x, &p, recent, 3, &r), 2);
  p.presence = 0;
  p.frequency = 0.55; /* 0.9, 0.95, 1.0; counted once for each time it stands there */
  ck_assert_int_eq(fl_sampler_pick(s, x, &p, recent, 3, &r), 2);
  p.frequency = -1; /* rewards: 4.0 */
  ck_assert_int_eq(fl_sampler_pick(s, x, &p, recent, 3, &r), 0);
  p.bias = bias;
  p.n_bias = 2;
  ck_assert_int_eq(fl_sampler_pick(s, x, &p, recent, 3, &r), 3);
  p.n_bias = 0;
  p.temperature = 1; /* counts leave nothing behind */
  p.frequency = 40;
  for (int i = 0; i < 50; i++) ck_assert_int_ge(fl_sampler_pick(s, x, &p, recent, 3, &r), 2);
  fl_sampler_free(s);
}
END_TEST

START_TEST(no_numbers_draw_something) {
  static const float x[3] = { NAN, NAN, NAN };
  fl_sampler *s = sampler_of(3);
  fl_sampling p = { .temperature = 1, .top_p = 0.5, .repeat_penalty = 1 };
  ck_assert_int_eq(draw(s, x, p, 0), 0);
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
  tcase_add_test(c, draws_are_those_of_the_whole_list);
  tcase_add_test(c, flat_distributions_keep_the_order);
  tcase_add_test(c, penalties_by_count_and_biases);
  tcase_add_test(c, no_numbers_draw_something);
  suite_add_tcase(s, c);
  return s;
}
