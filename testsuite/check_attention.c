/* check_attention.c - forward attention: against the double twin within a bound, and against itself
 * to the bit however the work is cut, on every instruction-set level of the machine.
 *
 * The bound of the forward: a score is a chain of head_dim roundings, so its error is taken as
 * 4 sqrt(head_dim) U times scale * sum |q k| (roundings are independent; the root of their number
 * times 4 is never passed by chance in these sizes), plus the roundings of the softmax's argument
 * and of the sums over rows. An error e of the scores moves an output by at most 2 e max|V|.
 */
#include "attention_util.h"

/* Of query i, head h: log-sum-exp of the scores, and the largest scale * sum |q k|. */
static double score_lse(const seq *x, size_t i, size_t h, double *most) {
  size_t pos = x->s.n_rows - x->s.n_q + i, hd = x->s.hd, kv = h / (x->s.heads / x->s.kv);
  double sum = 0;
  *most = 0;
  for (size_t j = 0; j <= pos; j++) {
    if (x->s.window && j + x->s.window <= pos) continue;
    double s = 0, mag = 0, cap = (double)x->s.softcap;
    for (size_t d = 0; d < hd; d++) {
      double t = (double)x->q[i * x->ld + h * hd + d] *
                 (double)x->key[(j * x->s.kv + kv) * hd + d] * (double)x->a.scale;
      s += t;
      mag += fabs(t);
    }
    *most = mag > *most ? mag : *most;
    sum += exp(cap != 0 ? cap * tanh(s / cap) : s);
  }
  return log(sum);
}

START_TEST(forward_equals_double) {
  const fl_kernels *k = level(_i / N_SHAPES);
  if (!k) return;
  seq x;
  make_seq(k, &x, shapes[_i % N_SHAPES], 31);
  result r = forward(k, NULL, &x);
  float *q = packed(&x, x.q), *out = packed(&x, r.out);
  size_t n = x.s.n_q * x.s.heads * x.s.hd;
  double *want = room(n, sizeof *want), vmax = 0;
  fl_attention_ref(&x.a, x.s.n_rows, x.s.n_q, want, q, x.key, x.val);
  for (size_t i = 0; i < x.s.n_rows * x.s.kv * x.s.hd; i++)
    vmax = fabs((double)x.val[i]) > vmax ? fabs((double)x.val[i]) : vmax;
  for (size_t i = 0; i < n; i++) {
    double most, row = (double)(i / x.s.hd);
    size_t query = (size_t)row / x.s.heads, head = (size_t)row % x.s.heads;
    double lse = score_lse(&x, query, head, &most);
    double e = (4 * sqrt((double)x.s.hd) * most + 16 + 4 * most) * UNIT;
    double sums = (4 * sqrt((double)x.s.n_rows) + 8) * UNIT;
    ck_near(out[i], want[i], (2 * e + sums) * vmax);
    ck_near(r.stat[query * x.s.heads + head], lse, e + sums);
  }
  for (size_t i = 0; i < x.s.n_q; i++) /* the padding between rows */
    for (size_t d = x.ld - PAD; d < x.ld; d++) ck_assert(r.out[i * x.ld + d] == 0);
  fl_free(q), fl_free(out), fl_free(want);
  drop_result(&r);
  drop_seq(&x);
}
END_TEST

/* Queries in calls of `step` at a time, each when the sequence had only so many rows; rows that
 * come later hold NaN meanwhile. */
static result in_steps(const fl_kernels *k, fl_team *team, const seq *x, size_t step) {
  result r = new_result(x);
  seq y = *x;
  make_pages(k, &y, x->a.kv_f16);
  size_t row = x->s.kv * x->s.hd;
  float *nan = room(row, sizeof *nan);
  for (size_t d = 0; d < row; d++) nan[d] = NAN;
  for (size_t i = 0; i < x->s.n_q; i += step) {
    size_t n = x->s.n_q - i < step ? x->s.n_q - i : step, rows = x->s.n_rows - x->s.n_q + i + n;
    fill_pages(k, &y);
    for (size_t j = rows; j < y.n_pages * PAGE; j++)
      for (int key = 0; key < 2; key++) fl_page_put(k, y.pages[j / PAGE], &y.a, key, j % PAGE, nan);
    fl_attn_span s = { (const void *const *)y.pages, rows, i, n };
    call(k, team, &y, &s, 1, r.out, x->q, r.stat);
  }
  fl_free(nan);
  drop_pages(&y);
  return r;
}

START_TEST(row_rule_over_cuts_of_the_queries) {
  const fl_kernels *k = level(_i / N_SHAPES);
  if (!k) return;
  seq x;
  make_seq(k, &x, shapes[_i % N_SHAPES], 32);
  for (int f16 = 0; f16 < 2; f16++) {
    drop_pages(&x);
    make_pages(k, &x, f16);
    result whole = forward(k, NULL, &x);
    static const size_t steps[] = { 1, 3, 7, 32 };
    for (size_t c = 0; c < sizeof steps / sizeof *steps; c++) {
      result r = in_steps(k, NULL, &x, steps[c]);
      ck_assert_msg(same_result(&whole, &r), "%s, %zu at a time", isas[_i / N_SHAPES], steps[c]);
      drop_result(&r);
    }
    drop_result(&whole);
  }
  drop_seq(&x);
}
END_TEST

START_TEST(row_rule_over_cache_types) {
  const fl_kernels *k = level(_i / N_SHAPES);
  if (!k) return;
  seq x;
  make_seq(k, &x, shapes[_i % N_SHAPES], 33);
  result wide = forward(k, NULL, &x);
  drop_pages(&x);
  make_pages(k, &x, true);
  result half = forward(k, NULL, &x);
  ck_assert(same_result(&wide, &half));
  drop_result(&wide);
  drop_result(&half);
  drop_seq(&x);
}
END_TEST

START_TEST(row_rule_over_threads) {
  const fl_kernels *k = level(_i / N_SHAPES);
  if (!k) return;
  seq x;
  make_seq(k, &x, shapes[_i % N_SHAPES], 34);
  result one = forward(k, NULL, &x);
  for (unsigned n = 1; n <= 3; n++) {
    fl_team *team = team_of(n);
    result r = forward(k, team, &x), steps = in_steps(k, team, &x, 1);
    ck_assert_msg(same_result(&one, &r), "%u threads", n);
    ck_assert_msg(same_result(&one, &steps), "%u threads, one at a time", n);
    drop_result(&r);
    drop_result(&steps);
    fl_team_free(team);
  }
  drop_result(&one);
  drop_seq(&x);
}
END_TEST

START_TEST(row_rule_over_other_spans) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  seq x[MANY];
  make_many(k, x, 4, 2, 64);
  float *q = room(24 * x[0].ld, sizeof *q), *out = room(24 * x[0].ld, sizeof *out);
  float *stat = room(24 * 4, sizeof *stat);
  fl_attn_span spans[MANY];
  size_t first[MANY] = { 4, 0, 3 };
  for (size_t i = 0; i < MANY; i++) {
    spans[i] = x[i].span;
    spans[i].q_first = first[i];
    memcpy(q + first[i] * x[i].ld, x[i].q, x[i].s.n_q * x[i].ld * sizeof *q);
  }
  for (unsigned n = 1; n <= 3; n++) {
    fl_team *team = team_of(n);
    call(k, team, &x[0], spans, MANY, out, q, stat);
    for (size_t i = 0; i < MANY; i++) {
      result alone = forward(k, NULL, &x[i]);
      ck_assert(same_bits(alone.out, out + first[i] * x[i].ld, alone.n_out));
      ck_assert(same_bits(alone.stat, stat + first[i] * 4, alone.n_stat));
      drop_result(&alone);
    }
    fl_team_free(team);
  }
  for (size_t i = 0; i < MANY; i++) drop_seq(&x[i]);
  fl_free(q), fl_free(out), fl_free(stat);
}
END_TEST

START_TEST(windows_cut_anywhere) { /* and none equals one that holds every row */
  const fl_kernels *k = level(_i);
  if (!k) return;
  for (size_t window = 0; window <= 100; window += window < 68 ? 1 : 16) {
    shape s = { 2, 1, 16, 99, 40, window, 0 };
    seq x;
    make_seq(k, &x, s, 35);
    result r = forward(k, NULL, &x), steps = in_steps(k, NULL, &x, 1);
    ck_assert_msg(same_result(&r, &steps), "window %zu", window);
    float *q = packed(&x, x.q), *out = packed(&x, r.out);
    double *want = room(40 * 32, sizeof *want);
    fl_attention_ref(&x.a, 99, 40, want, q, x.key, x.val);
    for (size_t i = 0; i < 40 * 32; i++) ck_near(out[i], want[i], 1e-5); /* a wrong row: 1e-2 */
    if (window == 0) {
      x.a.window = SIZE_MAX;
      result all = forward(k, NULL, &x);
      ck_assert(same_result(&r, &all));
      drop_result(&all);
    }
    fl_free(q), fl_free(out), fl_free(want);
    drop_result(&r);
    drop_result(&steps);
    drop_seq(&x);
  }
}
END_TEST

START_TEST(pages_give_back_what_was_put) {
  const fl_kernels *k = level(_i / N_SHAPES);
  if (!k) return;
  seq x;
  make_seq(k, &x, shapes[_i % N_SHAPES], 36);
  size_t row = x.s.kv * x.s.hd;
  float *back = room(row, sizeof *back);
  for (int f16 = 0; f16 < 2; f16++) {
    drop_pages(&x);
    make_pages(k, &x, f16);
    for (size_t j = 0; j < x.s.n_rows; j++)
      for (int key = 0; key < 2; key++) {
        fl_page_get(k, x.pages[j / PAGE], &x.a, key, j % PAGE, back);
        ck_assert(same_bits(back, (key ? x.key : x.val) + j * row, row));
      }
    seq y = x; /* the same rows, some at a time */
    make_pages(k, &y, f16);
    memset(back, 0, row * sizeof *back);
    for (size_t j = 0; j < x.s.n_rows; j++)
      for (int key = 0; key < 2; key++)
        fl_page_put(k, y.pages[j / PAGE], &y.a, key, j % PAGE, back);
    for (size_t j = 0, n; j < x.s.n_rows; j += n) {
      n = x.s.n_rows - j < 7 ? x.s.n_rows - j : 7;
      if (n > PAGE - j % PAGE) n = PAGE - j % PAGE;
      fl_page_put_rows(k, y.pages[j / PAGE], &y.a, true, j % PAGE, n, x.key + j * row);
      fl_page_put_rows(k, y.pages[j / PAGE], &y.a, false, j % PAGE, n, x.val + j * row);
    }
    for (size_t j = 0; j < x.s.n_rows; j++)
      for (int key = 0; key < 2; key++) {
        fl_page_get(k, y.pages[j / PAGE], &y.a, key, j % PAGE, back);
        ck_assert(same_bits(back, (key ? x.key : x.val) + j * row, row));
      }
    drop_pages(&y);
  }
  /* the layout itself: K [hd][PAGE], V [PAGE][hd] */
  const uint16_t *kk = (const void *)((const char *)x.pages[0] + x.a.k_offset);
  const uint16_t *vv = (const void *)((const char *)x.pages[0] + x.a.v_offset);
  size_t h = x.s.kv - 1, d = x.s.hd - 3, at = h * x.s.hd + d;
  ck_assert(fl_f16_to_f32(kk[h * x.s.hd * PAGE + d * PAGE]) == x.key[at]);
  ck_assert(fl_f16_to_f32(vv[h * x.s.hd * PAGE + d]) == x.val[at]);
  fl_free(back);
  drop_seq(&x);
}
END_TEST

Suite *suite_attention(void);
Suite *suite_attention(void) {
  Suite *s = suite_create("attention");
  TCase *c = tcase_create("forward");
  tcase_add_loop_test(c, forward_equals_double, 0, N_ISAS * N_SHAPES);
  tcase_add_loop_test(c, windows_cut_anywhere, 0, N_ISAS);
  tcase_add_loop_test(c, pages_give_back_what_was_put, 0, N_ISAS * N_SHAPES);
  suite_add_tcase(s, c);
  c = tcase_create("row rule");
  tcase_add_loop_test(c, row_rule_over_cuts_of_the_queries, 0, N_ISAS * N_SHAPES);
  tcase_add_loop_test(c, row_rule_over_cache_types, 0, N_ISAS * N_SHAPES);
  tcase_add_loop_test(c, row_rule_over_threads, 0, N_ISAS * N_SHAPES);
  tcase_add_loop_test(c, row_rule_over_other_spans, 0, N_ISAS);
  suite_add_tcase(s, c);
  return s;
}
