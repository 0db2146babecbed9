/* check_series.c - curves: the pyramid against a plain walk over the points. */
#include <math.h>

#include "base/rng.h"
#include "base/err.h"
#include "suite.h"
#include "tui/series.h"

enum { N = 20000 };

static double value(uint32_t x) { return 3 / (1 + x * 0.001) + 0.1 * sin(x * 0.37); }

static void fill(tui_series *s, uint32_t n) {
  for (uint32_t x = 1; x <= n; x++) ck_assert_int_eq(tui_series_push(s, x, value(x)), 0);
}

/* Every level gives the same extremes in every column as the points themselves; a bucket belongs
 * to the column of its first point, so columns are chosen to begin where buckets do. */
START_TEST(columns_against_points) {
  tui_series s = { 0 };
  fill(&s, N);
  for (size_t width = 16; width <= 4096; width *= 16) {
    size_t n_cols = N / width;
    tui_column col[N / 16];
    tui_series_columns(&s, 1, (double)(1 + n_cols * width), 0, col, n_cols);
    for (size_t i = 0; i < n_cols; i++) {
      double lo = INFINITY, hi = -INFINITY, sum = 0;
      for (size_t k = 0; k < width; k++) {
        double y = (double)(float)value((uint32_t)(1 + i * width + k));
        lo = fmin(lo, y);
        hi = fmax(hi, y);
        sum += y;
      }
      ck_assert_uint_eq(col[i].n, width);
      ck_assert_float_eq(col[i].min, (float)lo);
      ck_assert_float_eq(col[i].max, (float)hi);
      /* running float means over up to 4096 values of about 3: 4096 * 2^-24 * 3 < 1e-3 */
      ck_assert_float_eq_tol(col[i].mean, (float)(sum / (double)width), 1e-3f);
    }
  }
  tui_series_release(&s);
}
END_TEST

/* Cutting back and going on gives what going straight gives. */
START_TEST(truncate_and_go_on) {
  tui_series a = { 0 }, b = { 0 };
  fill(&a, N);
  fill(&b, N);
  fl_rng r = fl_rng_stream(5, FL_RNG_TEST, 0, 0, 0);
  for (int i = 0; i < 20; i++) {
    uint32_t to = (uint32_t)fl_rng_below(&r, N);
    tui_series_truncate(&b, to);
    ck_assert_uint_eq(b.n, to);
    for (uint32_t x = to + 1; x <= N; x++) tui_series_push(&b, x, value(x));
  }
  ck_assert_uint_eq(a.n, b.n);
  tui_column ca[50], cb[50];
  tui_series_columns(&a, 0, N + 1, 20, ca, 50);
  tui_series_columns(&b, 0, N + 1, 20, cb, 50);
  for (int i = 0; i < 50; i++) {
    ck_assert_float_eq(ca[i].min, cb[i].min);
    ck_assert_float_eq(ca[i].max, cb[i].max);
    ck_assert_float_eq_tol(ca[i].smooth, cb[i].smooth, 1e-4f);
  }
  tui_series_release(&a);
  tui_series_release(&b);
}
END_TEST

START_TEST(a_push_that_goes_back) {
  tui_series s = { 0 };
  fill(&s, 100);
  tui_series_push(&s, 50, 9.0); /* the run went on from round 49 */
  ck_assert_uint_eq(s.n, 50);
  ck_assert_double_eq((double)s.point[s.n - 1].y, 9.0);
  tui_series_push(&s, 0, 1.0);
  ck_assert_uint_eq(s.n, 1);
  tui_series_release(&s);
}
END_TEST

START_TEST(what_is_no_number_is_left_out) {
  tui_series s = { 0 };
  tui_series_push(&s, 1, NAN);
  tui_series_push(&s, 2, INFINITY);
  tui_series_push(&s, 3, 1e300);
  ck_assert_uint_eq(s.n, 0);
  ck_assert(isnan(tui_series_at(&s, 10)));
  tui_series_release(&s);
}
END_TEST

START_TEST(values_between_points) {
  tui_series s = { 0 };
  tui_series_push(&s, 10, 1);
  tui_series_push(&s, 20, 2);
  ck_assert(isnan(tui_series_at(&s, 9)));
  ck_assert_double_eq(tui_series_at(&s, 10), 1);
  ck_assert_double_eq(tui_series_at(&s, 19), 1);
  ck_assert_double_eq(tui_series_at(&s, 4000000000u), 2);
  tui_series_release(&s);
}
END_TEST

/* The exponential mean of a constant is the constant, from the first point on (no bias). */
START_TEST(smoothing_has_no_bias) {
  tui_series s = { 0 };
  for (uint32_t x = 0; x < 1000; x++) tui_series_push(&s, x, 2.5);
  tui_column col[100];
  tui_series_columns(&s, 0, 1000, 50, col, 100);
  for (int i = 0; i < 100; i++) ck_assert_float_eq_tol(col[i].smooth, 2.5f, 1e-6f);
  tui_series_release(&s);
}
END_TEST

/* Half the weight after half_life points: a step from 0 to 1 is at 1/2 after 50. */
START_TEST(half_life) {
  tui_series s = { 0 };
  for (uint32_t x = 0; x < 2000; x++) tui_series_push(&s, x, x < 1000 ? 0 : 1);
  tui_column col[2000];
  tui_series_columns(&s, 0, 2000, 50, col, 2000);
  ck_assert_float_eq_tol(col[1049].smooth, 0.5f, 1e-4f);
  tui_series_release(&s);
}
END_TEST

/* A thin curve's points are the means of equal, consecutive runs of the values. */
START_TEST(a_thin_curve) {
  enum { VALUES = 100000 };
  tui_thin t = { 0 };
  for (uint32_t x = 1; x <= VALUES; x++) ck_assert_int_eq(tui_thin_push(&t, x, x % 997), FL_OK);
  ck_assert_uint_eq(t.stride, 32); /* 4096 points would be full with 16 at 65536 values */
  ck_assert_uint_eq(t.s.n, VALUES / 32);
  for (size_t i = 0; i < t.s.n; i++) {
    double sum = 0;
    for (size_t k = 1; k <= 32; k++) sum += (double)((32 * i + k) % 997);
    ck_assert_uint_eq(t.s.point[i].x, 32 * (i + 1));
    ck_assert_double_eq_tol((double)t.s.point[i].y, sum / 32, 1e-3); /* kept in single precision */
  }
  tui_column whole;
  tui_series_columns(&t.s, 0, VALUES + 1, 0, &whole, 1);
  ck_assert_uint_eq(whole.n, t.s.n);
  tui_thin_truncate(&t, 320);
  ck_assert_uint_eq(t.s.n, 10);
  for (uint32_t x = 321; x <= 352; x++) tui_thin_push(&t, x, 5);
  ck_assert_uint_eq(t.s.n, 11);
  ck_assert_double_eq((double)t.s.point[t.s.n - 1].y, 5);
  tui_thin_push(&t, 353, NAN);
  ck_assert_uint_eq(t.n, 0);
  tui_series_release(&t.s);
}
END_TEST

Suite *suite_series(void);
Suite *suite_series(void) {
  Suite *s = suite_create("series");
  TCase *t = tcase_create("Core");
  tcase_add_test(t, columns_against_points);
  tcase_add_test(t, truncate_and_go_on);
  tcase_add_test(t, a_push_that_goes_back);
  tcase_add_test(t, what_is_no_number_is_left_out);
  tcase_add_test(t, values_between_points);
  tcase_add_test(t, smoothing_has_no_bias);
  tcase_add_test(t, half_life);
  tcase_add_test(t, a_thin_curve);
  tcase_set_timeout(t, 60);
  suite_add_tcase(s, t);
  return s;
}
