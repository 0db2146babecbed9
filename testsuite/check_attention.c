/* check_attention.c - attention forward and backward: against the double twins within a bound, and
 * against itself to the bit however the work is cut, on every instruction-set level of the machine.
 *
 * The bound of the forward: a score is a chain of head_dim roundings, so its error is taken as
 * 4 sqrt(head_dim) U times scale * sum |q k| (roundings are independent; the root of their number
 * times 4 is never passed by chance in these sizes), plus the roundings of the softmax's argument
 * and of the sums over rows. An error e of the scores moves an output by at most 2 e max|V|.
 */
#include "kernels/attention.h"

#include "kernels_util.h"

enum { PAGE = FL_KV_ROWS, PAD = 8 /* between rows of q and out: never touched */ };

typedef struct shape {
  size_t heads, kv, hd, n_rows, n_q, window;
  float softcap;
} shape;

static const shape shapes[] = {
  { 1, 1, 8, 1, 1, 0, 0 },        { 2, 2, 8, 32, 32, 0, 0 },      { 4, 1, 16, 33, 33, 0, 0 },
  { 4, 2, 16, 70, 41, 0, 20 },    { 3, 1, 32, 65, 20, 0, 0 },     { 4, 2, 64, 100, 37, 31, 0 },
  { 4, 4, 64, 200, 9, 32, 0 },    { 2, 1, 64, 131, 130, 33, 0 },  { 4, 2, 80, 97, 50, 0, 50 },
  { 4, 1, 128, 150, 60, 0, 0 },   { 8, 4, 128, 64, 3, 1, 0 },     { 6, 2, 40, 161, 70, 64, 0 },
  { 2, 1, 24, 90, 90, 5, 10 },    { 4, 1, 256, 80, 40, 40, 0 },   { 2, 1, 512, 50, 20, 0, 0 },
  { 50, 1, 8, 40, 3, 0, 0 },      { 12, 4, 56, 260, 11, 1000, 0 }
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/* One sequence: random rows, pages of two layers of which the second is used. */
typedef struct seq {
  shape s;
  fl_attn a;
  float *key, *val; /* [n_rows, kv, hd] */
  float *q, *dout;  /* [n_q, heads * hd + PAD] */
  size_t ld, n_pages;
  void **pages;
  fl_attn_span span;
} seq;

static void fill_pages(const fl_kernels *k, seq *x) {
  size_t row = x->s.kv * x->s.hd;
  for (size_t j = 0; j < x->s.n_rows; j++) {
    fl_page_put(k, x->pages[j / PAGE], &x->a, true, j % PAGE, x->key + j * row);
    fl_page_put(k, x->pages[j / PAGE], &x->a, false, j % PAGE, x->val + j * row);
  }
}

static void make_pages(const fl_kernels *k, seq *x, bool f16) {
  size_t bytes = PAGE * x->s.kv * x->s.hd * (f16 ? 2 : 4);
  x->a.kv_f16 = f16;
  x->a.k_offset = 2 * bytes;
  x->a.v_offset = 3 * bytes;
  x->n_pages = (x->s.n_rows + PAGE - 1) / PAGE;
  x->pages = room(x->n_pages, sizeof *x->pages);
  for (size_t p = 0; p < x->n_pages; p++) x->pages[p] = room(4, bytes);
  fill_pages(k, x);
  x->span = (fl_attn_span){ (const void *const *)x->pages, x->s.n_rows, 0, x->s.n_q };
}

static void make_seq(const fl_kernels *k, seq *x, shape s, uint32_t which) {
  fl_rng r = stream(which);
  memset(x, 0, sizeof *x);
  x->s = s;
  x->a = (fl_attn){ .n_heads = s.heads, .kv_heads = s.kv, .head_dim = s.hd,
                    .scale = 1.0f / sqrtf((float)s.hd), .softcap = s.softcap, .window = s.window };
  x->ld = s.heads * s.hd + PAD;
  x->key = normals(&r, s.n_rows * s.kv * s.hd);
  x->val = normals(&r, s.n_rows * s.kv * s.hd);
  x->q = normals(&r, s.n_q * x->ld);
  x->dout = normals(&r, s.n_q * x->ld);
  for (size_t i = 0; i < s.n_rows * s.kv * s.hd; i++) { /* what f16 can hold */
    x->key[i] = fl_f16_to_f32(fl_f32_to_f16(x->key[i]));
    x->val[i] = fl_f16_to_f32(fl_f32_to_f16(x->val[i]));
  }
  make_pages(k, x, false);
}

static void drop_pages(seq *x) {
  for (size_t p = 0; p < x->n_pages; p++) fl_free(x->pages[p]);
  fl_free(x->pages);
}

static void drop_seq(seq *x) {
  drop_pages(x);
  fl_free(x->key), fl_free(x->val), fl_free(x->q), fl_free(x->dout);
}

/* Results of a forward: out [n_q, ld], stat [n_q, heads]. */
typedef struct result {
  float *out, *stat;
  size_t n_out, n_stat;
} result;

static result new_result(const seq *x) {
  result r = { .n_out = x->s.n_q * x->ld, .n_stat = x->s.n_q * x->s.heads };
  r.out = room(r.n_out, sizeof *r.out);
  r.stat = room(r.n_stat, sizeof *r.stat);
  return r;
}

static void drop_result(result *r) { fl_free(r->out), fl_free(r->stat); }

static bool same_result(const result *a, const result *b) {
  return same_bits(a->out, b->out, a->n_out) && same_bits(a->stat, b->stat, a->n_stat);
}

static void call(const fl_kernels *k, fl_team *team, const seq *x, const fl_attn_span *spans,
                 size_t n, float *out, const float *q, float *stat) {
  size_t bytes = fl_attention_scratch(&x->a, team);
  float *scratch = room(1, bytes);
  memset(scratch, 0xff, bytes); /* NaN: nothing is read before it is written */
  fl_attention(k, team, &x->a, spans, n, out, x->ld, q, x->ld, stat, scratch);
  fl_free(scratch);
}

static result forward(const fl_kernels *k, fl_team *team, const seq *x) {
  result r = new_result(x);
  call(k, team, x, &x->span, 1, r.out, x->q, r.stat);
  return r;
}

static fl_team *team_of(unsigned n) {
  fl_team *t = NULL;
  ck_assert_int_eq(fl_team_new(&t, n, NULL), FL_OK);
  return t;
}

/* Rows without the padding, as the twins take them. */
static float *packed(const seq *x, const float *rows) {
  size_t n = x->s.heads * x->s.hd;
  float *p = room(x->s.n_q * n, sizeof *p);
  for (size_t i = 0; i < x->s.n_q; i++) memcpy(p + i * n, rows + i * x->ld, n * sizeof *p);
  return p;
}

/* --- forward ---------------------------------------------------------------------------------------- */

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

/* Queries in calls of `step` at a time, each when the sequence had only so many rows; rows that come
 * later hold NaN meanwhile. */
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
      for (int key = 0; key < 2; key++)
        fl_page_put(k, y.pages[j / PAGE], &y.a, key, j % PAGE, nan);
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

/* Three sequences of one geometry, different lengths, in one call, out of order. */
enum { MANY = 3 };

static void make_many(const fl_kernels *k, seq x[MANY], size_t heads, size_t kv, size_t hd) {
  static const size_t rows[MANY] = { 75, 3, 130 }, queries[MANY] = { 20, 3, 1 };
  for (uint32_t i = 0; i < MANY; i++) {
    shape s = { heads, kv, hd, rows[i], queries[i], 50, 0 };
    make_seq(k, &x[i], s, 40 + i);
  }
}

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

/* --- backward ----------------------------------------------------------------------------------------- */

typedef struct grads {
  float *dq, *dk, *dv;
  size_t n_q, n_kv;
} grads;

static grads new_grads(const seq *x) {
  grads g = { .n_q = x->s.n_q * x->ld, .n_kv = x->s.n_rows * x->s.kv * x->s.hd };
  g.dq = room(g.n_q, sizeof *g.dq);
  g.dk = room(g.n_kv, sizeof *g.dk);
  g.dv = room(g.n_kv, sizeof *g.dv);
  return g;
}

static void drop_grads(grads *g) { fl_free(g->dq), fl_free(g->dk), fl_free(g->dv); }

static bool same_grads(const grads *a, const grads *b) {
  return same_bits(a->dq, b->dq, a->n_q) && same_bits(a->dk, b->dk, a->n_kv) &&
         same_bits(a->dv, b->dv, a->n_kv);
}

static void call_bwd(const fl_kernels *k, fl_team *team, const seq *x, const fl_attn_span *spans,
                     const fl_attn_grad_span *gs, size_t n, float *dq, const float *dout,
                     const float *out, const float *q, const float *stat) {
  size_t bytes = fl_attention_scratch(&x->a, team);
  float *scratch = room(1, bytes);
  memset(scratch, 0xff, bytes);
  fl_attention_bwd(k, team, &x->a, spans, gs, n, dq, x->ld, dout, x->ld, out, x->ld, q, x->ld, stat,
                   scratch);
  fl_free(scratch);
}

static grads backward(const fl_kernels *k, fl_team *team, const seq *x, const result *r) {
  grads g = new_grads(x);
  fl_attn_grad_span gs = { g.dk, g.dv, 0 };
  call_bwd(k, team, x, &x->span, &gs, 1, g.dq, x->dout, r->out, x->q, r->stat);
  return g;
}

static double largest(const double *x, size_t n) {
  double m = 0;
  for (size_t i = 0; i < n; i++) m = fabs(x[i]) > m ? fabs(x[i]) : m;
  return m;
}

/* Chains of head_dim (s and dP) and of rows (sums over keys or queries) of independent roundings,
 * P's argument included, relative to the largest entry; dP - D cancels for few rows: hence the 1. */
static void check_grad(const float *got, const double *want, size_t n, const shape *s) {
  double terms = (double)(s->hd + s->n_rows + s->n_q * s->heads);
  double tol = 16 * sqrt(terms) * UNIT * (largest(want, n) + 1);
  for (size_t i = 0; i < n; i++) ck_near(got[i], want[i], tol);
}

START_TEST(backward_equals_double) {
  const fl_kernels *k = level(_i / N_SHAPES);
  if (!k) return;
  seq x;
  make_seq(k, &x, shapes[_i % N_SHAPES], 51);
  result r = forward(k, NULL, &x);
  grads g = backward(k, NULL, &x, &r);
  size_t n = x.s.n_q * x.s.heads * x.s.hd;
  double *dq = room(n, sizeof *dq), *dk = room(g.n_kv, sizeof *dk), *dv = room(g.n_kv, sizeof *dv);
  float *q = packed(&x, x.q), *dout = packed(&x, x.dout), *gq = packed(&x, g.dq);
  fl_attention_bwd_ref(&x.a, x.s.n_rows, x.s.n_q, dq, dk, dv, dout, q, x.key, x.val);
  check_grad(gq, dq, n, &x.s);
  check_grad(g.dk, dk, g.n_kv, &x.s);
  check_grad(g.dv, dv, g.n_kv, &x.s);
  for (size_t i = 0; i < x.s.n_q; i++)
    for (size_t d = x.ld - PAD; d < x.ld; d++) ck_assert(g.dq[i * x.ld + d] == 0);
  fl_free(dq), fl_free(dk), fl_free(dv), fl_free(q), fl_free(dout), fl_free(gq);
  drop_grads(&g);
  drop_result(&r);
  drop_seq(&x);
}
END_TEST

/* sum(dout * out) of the double twin. */
static double objective(const seq *x, const float *q, const float *dout) {
  size_t n = x->s.n_q * x->s.heads * x->s.hd;
  double *out = room(n, sizeof *out), f = 0;
  fl_attention_ref(&x->a, x->s.n_rows, x->s.n_q, out, q, x->key, x->val);
  for (size_t i = 0; i < n; i++) f += out[i] * (double)dout[i];
  fl_free(out);
  return f;
}

/* Central difference in *p. */
static double slope(const seq *x, const float *q, const float *dout, float *p) {
  float keep = *p;
  double f[2], at[2];
  for (int s = 0; s < 2; s++) {
    *p = keep + (s ? 0x1p-8f : -0x1p-8f);
    at[s] = (double)*p;
    f[s] = objective(x, q, dout);
  }
  *p = keep;
  return (f[1] - f[0]) / (at[1] - at[0]);
}

START_TEST(the_double_twins_agree_with_differences) {
  static const shape few[] = { { 4, 2, 8, 40, 7, 0, 0 }, { 2, 1, 8, 37, 9, 5, 0 },
                               { 2, 2, 16, 20, 20, 0, 2 } };
  seq x;
  make_seq(fl_kernels_select(), &x, few[_i], 52);
  size_t n = x.s.n_q * x.s.heads * x.s.hd, n_kv = x.s.n_rows * x.s.kv * x.s.hd;
  double *dq = room(n, sizeof *dq), *dk = room(n_kv, sizeof *dk), *dv = room(n_kv, sizeof *dv);
  float *q = packed(&x, x.q), *dout = packed(&x, x.dout);
  fl_attention_bwd_ref(&x.a, x.s.n_rows, x.s.n_q, dq, dk, dv, dout, q, x.key, x.val);
  /* h^2/6 = 2.5e-6 times third derivatives of order 1 */
  for (size_t i = 0; i < n; i += 11) ck_near(dq[i], slope(&x, q, dout, &q[i]), 1e-4);
  for (size_t i = 0; i < n_kv; i += 13) {
    ck_near(dk[i], slope(&x, q, dout, &x.key[i]), 1e-4);
    ck_near(dv[i], slope(&x, q, dout, &x.val[i]), 1e-4);
  }
  fl_free(dq), fl_free(dk), fl_free(dv), fl_free(q), fl_free(dout);
  drop_seq(&x);
}
END_TEST

START_TEST(backward_over_threads) { /* 1 kv head on 2 and 3 threads goes by pages and rows */
  const fl_kernels *k = level(_i / N_SHAPES);
  if (!k) return;
  seq x;
  make_seq(k, &x, shapes[_i % N_SHAPES], 53);
  result r = forward(k, NULL, &x);
  grads one = backward(k, NULL, &x, &r);
  for (unsigned n = 2; n <= 5; n++) {
    fl_team *team = team_of(n);
    grads g = backward(k, team, &x, &r);
    ck_assert_msg(same_grads(&one, &g), "%u threads", n);
    drop_grads(&g);
    fl_team_free(team);
  }
  drop_grads(&one);
  drop_result(&r);
  drop_seq(&x);
}
END_TEST

START_TEST(backward_from_a_row_on) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  shape s = { 4, 2, 16, 90, 30, 0, 0 };
  seq x;
  make_seq(k, &x, s, 54);
  result r = forward(k, NULL, &x);
  grads all = backward(k, NULL, &x, &r);
  static const size_t froms[] = { 1, 31, 32, 33, 60, 89, 90 };
  for (size_t c = 0; c < 2 * sizeof froms / sizeof *froms; c++) {
    size_t from = froms[c / 2], at = from * 32;
    fl_team *team = team_of(c % 2 ? 3 : 1); /* 3 > 2 kv heads: parted */
    grads g = new_grads(&x);
    for (size_t i = 0; i < g.n_kv; i++) g.dk[i] = g.dv[i] = 77;
    fl_attn_grad_span gs = { g.dk, g.dv, from };
    call_bwd(k, team, &x, &x.span, &gs, 1, g.dq, x.dout, r.out, x.q, r.stat);
    ck_assert(same_bits(g.dq, all.dq, g.n_q));
    ck_assert(same_bits(g.dk, all.dk + at, g.n_kv - at));
    ck_assert(same_bits(g.dv, all.dv + at, g.n_kv - at));
    for (size_t i = g.n_kv - at; i < g.n_kv; i++) ck_assert(g.dk[i] == 77 && g.dv[i] == 77);
    drop_grads(&g);
    fl_team_free(team);
  }
  drop_grads(&all);
  drop_result(&r);
  drop_seq(&x);
}
END_TEST

START_TEST(backward_over_other_spans) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  seq x[MANY];
  make_many(k, x, 4, 2, 64);
  size_t ld = x[0].ld, first[MANY] = { 4, 0, 3 };
  float *rows[4], *stat = room(24 * 4, sizeof *stat); /* q, out, dout, dq */
  for (int b = 0; b < 4; b++) rows[b] = room(24 * ld, sizeof **rows);
  fl_attn_span spans[MANY];
  fl_attn_grad_span gs[MANY];
  grads alone[MANY], g[MANY];
  for (size_t i = 0; i < MANY; i++) {
    size_t bytes = x[i].s.n_q * ld * sizeof(float), at = first[i] * ld;
    result r = forward(k, NULL, &x[i]);
    alone[i] = backward(k, NULL, &x[i], &r);
    g[i] = new_grads(&x[i]);
    gs[i] = (fl_attn_grad_span){ g[i].dk, g[i].dv, 0 };
    spans[i] = x[i].span;
    spans[i].q_first = first[i];
    memcpy(rows[0] + at, x[i].q, bytes);
    memcpy(rows[1] + at, r.out, bytes);
    memcpy(rows[2] + at, x[i].dout, bytes);
    memcpy(stat + first[i] * 4, r.stat, r.n_stat * sizeof *stat);
    drop_result(&r);
  }
  fl_team *team = team_of(2);
  call_bwd(k, team, &x[0], spans, gs, MANY, rows[3], rows[2], rows[1], rows[0], stat);
  for (size_t i = 0; i < MANY; i++) {
    ck_assert(same_bits(alone[i].dq, rows[3] + first[i] * ld, alone[i].n_q));
    ck_assert(same_bits(alone[i].dk, g[i].dk, g[i].n_kv));
    ck_assert(same_bits(alone[i].dv, g[i].dv, g[i].n_kv));
    drop_grads(&alone[i]);
    drop_grads(&g[i]);
    drop_seq(&x[i]);
  }
  for (int b = 0; b < 4; b++) fl_free(rows[b]);
  fl_free(stat);
  fl_team_free(team);
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
  c = tcase_create("backward");
  tcase_add_loop_test(c, backward_equals_double, 0, N_ISAS * N_SHAPES);
  tcase_add_loop_test(c, the_double_twins_agree_with_differences, 0, 3);
  tcase_add_loop_test(c, backward_over_threads, 0, N_ISAS * N_SHAPES);
  tcase_add_loop_test(c, backward_from_a_row_on, 0, N_ISAS);
  tcase_add_loop_test(c, backward_over_other_spans, 0, N_ISAS);
  suite_add_tcase(s, c);
  return s;
}
