/* check_attention_bwd.c - backward attention: against the double twin, the twin against differences
 * of the forward twin, and the same bits with any threads and other spans, on every
 * instruction-set level of the machine. */
#include "attention_util.h"

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
 * P's argument included, relative to the largest entry; dP - D cancels for few rows: the + 1. */
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
  static const shape few[] = { { 4, 2, 8, 40, 7, 0, 0 },
                               { 2, 1, 8, 37, 9, 5, 0 },
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

START_TEST(a_span_without_queries) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  shape s = { 4, 2, 16, 70, 5, 0, 0 };
  seq x;
  make_seq(k, &x, s, 37);
  result alone = forward(k, NULL, &x), r = new_result(&x);
  fl_attn_span spans[3] = { x.span, x.span, x.span };
  spans[0].n_q = spans[2].n_q = 0;
  call(k, NULL, &x, spans, 3, r.out, x.q, r.stat);
  ck_assert(same_result(&alone, &r));
  call(k, NULL, &x, spans, 1, r.out, x.q, r.stat);
  call(k, NULL, &x, spans, 0, r.out, x.q, r.stat);
  ck_assert(same_result(&alone, &r));
  for (unsigned n = 1; n <= 3; n += 2) { /* whole and parted: its rows get 0 */
    fl_team *team = team_of(n);
    grads g = new_grads(&x);
    for (size_t i = 0; i < g.n_kv; i++) g.dk[i] = g.dv[i] = 77;
    fl_attn_grad_span gs = { g.dk, g.dv, 0 };
    call_bwd(k, team, &x, spans, &gs, 1, g.dq, x.dout, r.out, x.q, r.stat);
    for (size_t i = 0; i < g.n_kv; i++) ck_assert(g.dk[i] == 0 && g.dv[i] == 0);
    drop_grads(&g);
    fl_team_free(team);
  }
  drop_result(&alone);
  drop_result(&r);
  drop_seq(&x);
}
END_TEST

Suite *suite_attention_bwd(void);
Suite *suite_attention_bwd(void) {
  Suite *s = suite_create("attention_bwd");
  TCase *c = tcase_create("backward");
  tcase_add_loop_test(c, backward_equals_double, 0, N_ISAS * N_SHAPES);
  tcase_add_loop_test(c, the_double_twins_agree_with_differences, 0, 3);
  tcase_add_loop_test(c, backward_over_threads, 0, N_ISAS * N_SHAPES);
  tcase_add_loop_test(c, backward_from_a_row_on, 0, N_ISAS);
  tcase_add_loop_test(c, backward_over_other_spans, 0, N_ISAS);
  tcase_add_loop_test(c, a_span_without_queries, 0, N_ISAS);
  suite_add_tcase(s, c);
  return s;
}
