/* check_pointwise.c - row functions against libm in double, finite differences and identities, on
 * every instruction-set level of the machine.
 *
 * Tolerances count roundings: U = 2^-24 is the relative error of one. Where a sum of n terms is
 * involved its error is bounded by (terms in one lane's chain + folds) * U times the sum of
 * magnitudes. Slopes are compared with central differences of the formula in double, step h, whose
 * own error is about h^2/6 times the third derivative (below 4 for every function here).
 */
#include "kernels/pointwise.h"

#include "kernels_util.h"

/* --- exp -------------------------------------------------------------------------------------- */

static float exp_one(const fl_kernels *k, float x) {
  float y;
  fl_exp_scaled(k, &y, &x, 1, 0, 1);
  return y;
}

START_TEST(exp_is_within_two_ulps) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  enum { N = 1000 };
  float *x = room(N, sizeof *x), *y = room(N, sizeof *y);
  double worst = 0;
  fl_rng r = stream(1);
  for (int round = 0; round < 200; round++) {
    for (size_t i = 0; i < N; i++) x[i] = (float)(-104.0 + 192.7 * fl_rng_unit(&r));
    fl_exp_scaled(k, y, x, N, 0, 1);
    for (size_t i = 0; i < N; i++) {
      double u = ulps(y[i], exp((double)x[i]));
      worst = u > worst ? u : worst;
    }
  }
  ck_assert_msg(worst < 2, "%s: %.3f ulp", isas[_i], worst);
  fl_free(x);
  fl_free(y);
}
END_TEST

START_TEST(exp_at_the_ends) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  ck_assert(exp_one(k, 0.0f) == 1.0f);
  ck_assert(exp_one(k, -0.0f) == 1.0f);
  ck_assert(exp_one(k, -INFINITY) == 0.0f);
  ck_assert(exp_one(k, -104.0f) == 0.0f);
  ck_assert(exp_one(k, -1e30f) == 0.0f);
  ck_assert(exp_one(k, -103.5f) > 0.0f); /* the smallest subnormal */
  ck_assert(isinf(exp_one(k, 89.0f)));
  ck_assert(isinf(exp_one(k, INFINITY)));
  ck_assert(isfinite(exp_one(k, 88.72f)));
  ck_assert(isnan(exp_one(k, NAN)));
}
END_TEST

START_TEST(exp_does_not_fall) { /* near 0 and across the points where n changes */
  const fl_kernels *k = level(_i);
  if (!k) return;
  float before = 0;
  for (int i = -40000; i <= 40000; i++) {
    float y = exp_one(k, (float)i / 10000.0f);
    ck_assert(y >= before);
    before = y;
  }
}
END_TEST

/* --- RMSNorm ---------------------------------------------------------------------------------- */

static const size_t widths[] = { 1, 3, 8, 15, 16, 17, 64, 80, 127, 896, 1024 };
enum { N_WIDTHS = sizeof widths / sizeof *widths };

static void rms_double(double *y, const float *x, const float *w, size_t n, double eps) {
  double ss = 0;
  for (size_t i = 0; i < n; i++) ss += (double)x[i] * (double)x[i];
  for (size_t i = 0; i < n; i++)
    y[i] = (double)x[i] / sqrt(ss / (double)n + eps) * (w ? (double)w[i] : 1.0);
}

START_TEST(rmsnorm_equals_the_formula) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  fl_rng r = stream(2);
  for (size_t c = 0; c < N_WIDTHS; c++) {
    size_t n = widths[c], ld = n + 3;
    float *x = normals(&r, 2 * ld), *w = normals(&r, n), *y = normals(&r, 2 * ld);
    float canary = y[n];
    double *want = room(n, sizeof *want);
    for (int weighted = 0; weighted < 2; weighted++) {
      fl_rmsnorm(k, y, x, weighted ? w : NULL, 2, n, ld, ld, 1e-6f);
      for (size_t row = 0; row < 2; row++) {
        rms_double(want, x + row * ld, weighted ? w : NULL, n, 1e-6);
        /* the sum's relative error halves under the root: n/2 at the very worst, then 5 more */
        for (size_t i = 0; i < n; i++)
          ck_near(y[row * ld + i], want[i], (double)(n / 8 + 8) * UNIT * fabs(want[i]));
      }
    }
    ck_assert(y[n] == canary); /* between rows: not touched */
    float *alone = room(ld, sizeof *alone);
    fl_rmsnorm(k, alone, x + ld, w, 1, n, ld, ld, 1e-6f);
    ck_assert(same_bits(alone, y + ld, n));
    fl_rmsnorm(k, x, x, w, 2, n, ld, ld, 1e-6f); /* in place */
    ck_assert(same_bits(x, y, n) && same_bits(x + ld, y + ld, n));
    fl_free(x), fl_free(w), fl_free(y), fl_free(want), fl_free(alone);
  }
}
END_TEST

/* d/dx_i of sum(dy * y), by central differences in double. */
static double rms_slope(const float *dy, const float *x, const float *w, size_t n, size_t i) {
  float *z = room(n, sizeof *z);
  double *y = room(n, sizeof *y), f[2], at[2];
  memcpy(z, x, n * sizeof *z);
  for (int s = 0; s < 2; s++) {
    z[i] = x[i] + (s ? 0x1p-9f : -0x1p-9f);
    at[s] = z[i];
    rms_double(y, z, w, n, 1e-6);
    f[s] = 0;
    for (size_t j = 0; j < n; j++) f[s] += (double)dy[j] * y[j];
  }
  fl_free(z), fl_free(y);
  return (f[1] - f[0]) / (at[1] - at[0]);
}

START_TEST(rmsnorm_backward_is_its_slope) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  fl_rng r = stream(3);
  for (size_t c = 2; c < N_WIDTHS - 2; c++) {
    size_t n = widths[c];
    float *x = normals(&r, n), *w = normals(&r, n), *dy = normals(&r, n), *dx = normals(&r, n);
    float *sum = room(n, sizeof *sum);
    memcpy(sum, dx, n * sizeof *sum);
    fl_rmsnorm_bwd(k, sum, dy, x, w, 1, n, n, n, n, 1e-6f, true);
    for (int weighted = 0; weighted < 2; weighted++) {
      float *grad = room(n, sizeof *grad);
      const float *ww = weighted ? w : NULL;
      fl_rmsnorm_bwd(k, grad, dy, x, ww, 1, n, n, n, n, 1e-6f, false);
      for (size_t i = 0; i < n; i++) {
        /* f''' of dy.y is below 200 |dy| / rms^3 for these short rows; h^2/6 is 6e-7 */
        ck_near(grad[i], rms_slope(dy, x, ww, n, i), 2e-4);
        if (weighted) ck_assert(sum[i] == dx[i] + grad[i]);
      }
      float *in_place = room(n, sizeof *in_place);
      memcpy(in_place, dy, n * sizeof *dy);
      fl_rmsnorm_bwd(k, in_place, in_place, x, ww, 1, n, n, n, n, 1e-6f, false);
      ck_assert(same_bits(in_place, grad, n));
      fl_free(grad), fl_free(in_place);
    }
    fl_free(x), fl_free(w), fl_free(dy), fl_free(dx), fl_free(sum);
  }
}
END_TEST

/* --- rotary embedding ------------------------------------------------------------------------- */

static void frequencies(double *f, size_t half) {
  for (size_t i = 0; i < half; i++) f[i] = pow(10000.0, -(double)i / (double)half);
}

START_TEST(rope_turns_pairs_and_back) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  static const size_t halves[] = { 1, 4, 5, 8, 20, 64 };
  enum { HEADS = 3, HD = 136, POS = 1234 };
  fl_rng r = stream(4);
  for (size_t c = 0; c < 2 * sizeof halves / sizeof *halves; c++) {
    size_t half = halves[c / 2];
    bool pairs = c % 2;
    double f[64];
    frequencies(f, half);
    float *cs = room(2 * half, sizeof *cs), *x = normals(&r, HEADS * HD);
    float *y = room(HEADS * HD, sizeof *y);
    memcpy(y, x, HEADS * HD * sizeof *y);
    fl_rope_table(cs, POS, 1, f, half, 1);
    fl_rope_row(k, y, HEADS, HD, half, cs, pairs, false);
    for (size_t h = 0; h < HEADS; h++) {
      const float *in = x + h * HD, *out = y + h * HD;
      for (size_t i = 0; i < half; i++) {
        size_t a = pairs ? 2 * i : i, b = pairs ? 2 * i + 1 : i + half;
        double co = cos(POS * f[i]), si = sin(POS * f[i]);
        double size = 4 * UNIT * (fabs((double)in[a]) + fabs((double)in[b]));
        ck_near(out[a], (double)in[a] * co - (double)in[b] * si, size);
        ck_near(out[b], (double)in[b] * co + (double)in[a] * si, size);
      }
      ck_assert(same_bits(in + 2 * half, out + 2 * half, HD - 2 * half));
    }
    fl_rope_row(k, y, HEADS, HD, half, cs, pairs, true);
    for (size_t i = 0; i < HEADS * HD; i++) ck_near(y[i], x[i], 32 * UNIT);
    fl_free(cs), fl_free(x), fl_free(y);
  }
}
END_TEST

START_TEST(rope_table_scales_and_starts_anywhere) {
  double f[3] = { 1.0, 0.25, 0.01 };
  float all[5 * 6], part[2 * 6], scaled[6];
  fl_rope_table(all, 0, 5, f, 3, 1);
  fl_rope_table(part, 3, 2, f, 3, 1);
  ck_assert(same_bits(all + 3 * 6, part, 2 * 6));
  ck_assert(all[0] == 1.0f && all[1] == 0.0f);
  fl_rope_table(scaled, 4, 1, f, 3, 1.5);
  for (int i = 0; i < 3; i++) {
    ck_assert(scaled[2 * i] == (float)(cos(4 * f[i]) * 1.5));
    ck_assert(scaled[2 * i + 1] == (float)(sin(4 * f[i]) * 1.5));
  }
}
END_TEST

/* --- activations ------------------------------------------------------------------------------ */

static double act_double(double x, fl_act act) {
  double u = sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x);
  return act == FL_ACT_SILU ? x / (1 + exp(-x)) : 0.5 * x * (1 + tanh(u));
}

static double act_slope(double x, fl_act act) {
  double h = 1e-4;
  return (act_double(x + h, act) - act_double(x - h, act)) / (2 * h);
}

enum { N_ACT = 501 }; /* no multiple of any vector */

/* -25..25, and a few far out */
static float act_at(size_t i) {
  static const float far[] = { -1e4f, -300.0f, -88.0f, 88.0f, 300.0f, 1e4f };
  return i < 6 ? far[i] : ((float)i - 253.0f) / 10.0f;
}

/* Relative error: about 2 ulp of exp's, plus the roundings of its argument, |x| up to 2|u|: 16 U
 * per unit of the argument covers them where the value matters (below 1e-9 beyond -25). */
static double act_tol(double x) {
  return (16 + 4 * fabs(x)) * UNIT * (fabs(act_double(x, FL_ACT_SILU)) + 1e-3);
}

/* y = act(x): times 1 is exact. */
static void act_alone(const fl_kernels *k, float *y, const float *x, size_t n, fl_act act) {
  float one[N_ACT];
  for (size_t i = 0; i < n; i++) one[i] = 1;
  fl_glu(k, y, x, one, n, act);
}

START_TEST(activations_equal_the_formulas) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  fl_rng r = stream(5);
  float x[N_ACT], y[N_ACT], h[N_ACT], *u = normals(&r, N_ACT);
  for (size_t i = 0; i < N_ACT; i++) x[i] = act_at(i);
  for (int a = 0; a < 2; a++) {
    fl_act act = a ? FL_ACT_GELU_TANH : FL_ACT_SILU;
    act_alone(k, y, x, N_ACT, act);
    fl_glu(k, h, x, u, N_ACT, act);
    for (size_t i = 0; i < N_ACT; i++) {
      ck_near(y[i], act_double((double)x[i], act), act_tol((double)x[i]));
      ck_assert(h[i] == y[i] * u[i]);
      float one;
      act_alone(k, &one, &x[i], 1, act);
      ck_assert(same_bits(&one, &y[i], 1)); /* alone as in a row */
    }
    memcpy(h, x, sizeof h);
    fl_glu(k, h, h, u, N_ACT, act); /* in place */
    for (size_t i = 0; i < N_ACT; i++) ck_assert(h[i] == y[i] * u[i]);
  }
  fl_free(u);
}
END_TEST

START_TEST(activation_slopes) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  fl_rng r = stream(6);
  float x[N_ACT], y[N_ACT], dx[N_ACT], dg[N_ACT], du[N_ACT];
  float *u = normals(&r, N_ACT), *d = normals(&r, N_ACT);
  for (size_t i = 0; i < N_ACT; i++) x[i] = act_at(i);
  for (int a = 0; a < 2; a++) {
    fl_act act = a ? FL_ACT_GELU_TANH : FL_ACT_SILU;
    act_alone(k, y, x, N_ACT, act);
    fl_act_bwd(k, dx, d, x, N_ACT, act);
    fl_glu_bwd(k, dg, du, d, x, u, N_ACT, act);
    for (size_t i = 0; i < N_ACT; i++) {
      double slope = act_slope((double)x[i], act);
      /* h^2/6 is 2e-9; far out the difference itself loses 1e4 * 2^-53 / h */
      ck_near(dx[i], (double)d[i] * slope, fabs((double)d[i]) * 1e-5);
      ck_near(dg[i], (double)d[i] * (double)u[i] * slope, fabs((double)(d[i] * u[i])) * 1e-5);
      ck_assert(du[i] == d[i] * y[i]);
    }
    float g2[N_ACT], *u2 = room(N_ACT, sizeof *u2);
    memcpy(g2, x, sizeof g2);
    memcpy(u2, u, N_ACT * sizeof *u2);
    fl_glu_bwd(k, g2, u2, d, g2, u2, N_ACT, act); /* over its own inputs */
    ck_assert(same_bits(g2, dg, N_ACT) && same_bits(u2, du, N_ACT));
    memcpy(g2, d, sizeof g2);
    fl_glu_bwd(k, g2, u2, g2, x, u, N_ACT, act); /* over dh */
    ck_assert(same_bits(g2, dg, N_ACT) && same_bits(u2, du, N_ACT));
    fl_free(u2);
  }
  fl_free(u), fl_free(d);
}
END_TEST

START_TEST(softcap_and_its_slope) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  float x[N_ACT], y[N_ACT], dx[N_ACT], one[N_ACT];
  for (size_t i = 0; i < N_ACT; i++) x[i] = act_at(i) * (i % 2 ? 4.0f : 0.05f), one[i] = 1;
  fl_softcap(k, y, x, N_ACT, 30.0f);
  fl_softcap_bwd(k, dx, one, y, N_ACT, 30.0f);
  for (size_t i = 0; i < N_ACT; i++) {
    double t = tanh((double)x[i] / 30.0);
    ck_assert_msg(ulps(y[i], 30 * t) < 4, "%.9g: %.9g instead of %.9g", x[i], y[i], 30 * t);
    ck_near(dx[i], 1 - t * t, 16 * UNIT);
  }
  fl_softcap(k, x, x, N_ACT, 30.0f);
  ck_assert(same_bits(x, y, N_ACT));
}
END_TEST

/* --- elementwise, sums, f16 ------------------------------------------------------------------- */

START_TEST(elementwise_is_exact) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  fl_rng r = stream(7);
  for (size_t n = 0; n < 40; n++) {
    float *x = normals(&r, n + 1), *y = normals(&r, n + 1), *z = room(n + 1, sizeof *z);
#define RESULT_IS(call, value)                                                                     \
  memcpy(z, y, (n + 1) * sizeof *z);                                                               \
  call;                                                                                            \
  for (size_t i = 0; i < n; i++) ck_assert_msg(z[i] == (value), "%zu of %zu", i, n);               \
  ck_assert(z[n] == y[n])
    RESULT_IS(fl_add(k, z, x, n), y[i] + x[i]);
    RESULT_IS(fl_mul(k, z, x, n), y[i] * x[i]);
    RESULT_IS(fl_scale(k, z, 0.3f, n), y[i] * 0.3f);
    bool fused = strcmp(isas[_i], "ref") != 0 && strcmp(isas[_i], "v2") != 0;
    RESULT_IS(fl_axpy(k, z, 0.3f, x, n), fused ? fmaf(0.3f, x[i], y[i]) : 0.3f * x[i] + y[i]);
    fl_free(x), fl_free(y), fl_free(z);
  }
}
END_TEST

START_TEST(dot_max_and_sum_of_exponentials) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  fl_rng r = stream(8);
  static const size_t sizes[] = { 1, 2, 7, 8, 31, 32, 33, 100, 257, 1030, 5000, 151936 };
  for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
    size_t n = sizes[c];
    float *x = normals(&r, n), *y = normals(&r, n), top = x[0];
    double dot = 0, mag = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
      dot += (double)x[i] * (double)y[i];
      mag += fabs((double)x[i] * (double)y[i]);
      top = x[i] > top ? x[i] : top;
    }
    for (size_t i = 0; i < n; i++) sum += exp((double)x[i] - (double)top);
    ck_near(fl_dot(k, x, y, n), dot, ((double)n / 16 + 8) * UNIT * mag); /* 16 lanes or more */
    ck_assert(fl_max(k, x, n) == top);
    /* terms: 0.5 ulp of x - max (|x - max| < 10), 2 ulp of exp; runs of at most 64 in a lane */
    ck_near(fl_sum_exp(k, x, n, top), sum, (10 + 4 + 64 + 5) * UNIT * sum);
    fl_free(x), fl_free(y);
  }
}
END_TEST

START_TEST(half_precision_both_ways) { /* every value, against the formats layer */
  const fl_kernels *k = level(_i);
  if (!k) return;
  enum { N = 65536 };
  uint16_t *h = room(N, sizeof *h), *back = room(N, sizeof *back);
  float *x = room(N, sizeof *x);
  for (size_t i = 0; i < N; i++) h[i] = (uint16_t)i;
  fl_f16_to_f32_n(k, x, h, N - 1); /* an odd count: a tail everywhere */
  x[N - 1] = fl_f16_to_f32(h[N - 1]);
  fl_f32_to_f16_n(k, back, x, N);
  for (size_t i = 0; i < N; i++) {
    float want = fl_f16_to_f32(h[i]);
    if (isnan(want)) {
      ck_assert(isnan(x[i]) && isnan(fl_f16_to_f32(back[i])));
      continue;
    }
    ck_assert(x[i] == want && signbit(x[i]) == signbit(want));
    ck_assert_msg(back[i] == h[i], "%04x became %04x", h[i], back[i]);
  }
  fl_rng r = stream(9);
  for (size_t i = 0; i < N; i++) /* between the values, ties included */
    x[i] = ldexpf((float)(fl_rng_below(&r, 1 << 13)) - 4096.0f, (int)fl_rng_below(&r, 30) - 26);
  fl_f32_to_f16_n(k, back, x, N);
  for (size_t i = 0; i < N; i++) ck_assert_uint_eq(back[i], fl_f32_to_f16(x[i]));
  fl_free(h), fl_free(back), fl_free(x);
}
END_TEST

Suite *suite_pointwise(void);
Suite *suite_pointwise(void) {
  Suite *s = suite_create("pointwise");
  TCase *c = tcase_create("exp");
  tcase_add_loop_test(c, exp_is_within_two_ulps, 0, N_ISAS);
  tcase_add_loop_test(c, exp_at_the_ends, 0, N_ISAS);
  tcase_add_loop_test(c, exp_does_not_fall, 0, N_ISAS);
  suite_add_tcase(s, c);
  c = tcase_create("rows");
  tcase_add_loop_test(c, rmsnorm_equals_the_formula, 0, N_ISAS);
  tcase_add_loop_test(c, rmsnorm_backward_is_its_slope, 0, N_ISAS);
  tcase_add_loop_test(c, rope_turns_pairs_and_back, 0, N_ISAS);
  tcase_add_test(c, rope_table_scales_and_starts_anywhere);
  suite_add_tcase(s, c);
  c = tcase_create("elements");
  tcase_add_loop_test(c, activations_equal_the_formulas, 0, N_ISAS);
  tcase_add_loop_test(c, activation_slopes, 0, N_ISAS);
  tcase_add_loop_test(c, softcap_and_its_slope, 0, N_ISAS);
  tcase_add_loop_test(c, elementwise_is_exact, 0, N_ISAS);
  tcase_add_loop_test(c, dot_max_and_sum_of_exponentials, 0, N_ISAS);
  tcase_add_loop_test(c, half_precision_both_ways, 0, N_ISAS);
  suite_add_tcase(s, c);
  return s;
}
