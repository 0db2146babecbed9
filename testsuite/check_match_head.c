/* check_match_head.c - one head's rows against the same formulas in double, written plainly. */
#include "cartridge/match_head.h"

#include "cart_util.h"

enum { HD = 16, T = 90, QUERIES = 300, P = 24 };

/* What a test gives to fl_match_head_fit; all owned. */
typedef struct task {
  fl_match_head h;
  float *k, *v, *q, *own, *mass;
  size_t *from, *from_chosen;
} task;

static float *draws(fl_rng *r, size_t n, double scale) {
  float *x = fl_aligned_calloc(n, sizeof *x);
  for (size_t i = 0; i < n; i++) x[i] = (float)(scale * fl_rng_normal(r));
  return x;
}

static task some_task(size_t p, bool own, bool window, float softcap) {
  fl_rng r = fl_rng_stream(5, FL_RNG_TEST, 1, 0, 0);
  task t = { .k = draws(&r, T * HD, 1),
             .v = draws(&r, T * HD, 1),
             .q = draws(&r, QUERIES * HD, 0.6),
             .own = draws(&r, QUERIES * HD, 1),
             .mass = draws(&r, QUERIES, 2) };
  t.from = fl_calloc(QUERIES, sizeof *t.from);
  t.from_chosen = fl_calloc(QUERIES, sizeof *t.from_chosen);
  for (size_t i = 0; i < QUERIES; i++) {
    if (!own) t.mass[i] = -INFINITY;
    else t.mass[i] += 4;
    t.from[i] = i % (T + 1); /* the last of them sees nothing */
    t.from_chosen[i] = i % (T + 1) > T - p ? i % (T + 1) - (T - p) : 0;
  }
  t.h = (fl_match_head){ .head_dim = HD,
                         .n_rows = T,
                         .k = t.k,
                         .v = t.v,
                         .n_queries = QUERIES,
                         .q = t.q,
                         .own = t.own,
                         .own_mass = t.mass,
                         .from = window ? t.from : NULL,
                         .from_chosen = window ? t.from_chosen : NULL,
                         .softcap = softcap,
                         .p = p,
                         .keep_first = true,
                         .ridge = 1e-2 };
  return t;
}

static void task_release(task *t) {
  fl_free(t->k);
  fl_free(t->v);
  fl_free(t->q);
  fl_free(t->own);
  fl_free(t->mass);
  fl_free(t->from);
  fl_free(t->from_chosen);
}

/* e[j] = exp(score) of rows `row` (NULL: all) from `from` on, 0 before; returns their sum. */
static double exps(const fl_match_head *h, size_t query, const uint32_t *row, size_t n, size_t from,
                   double *e) {
  double sum = 0;
  for (size_t j = 0; j < n; j++) {
    const float *k = h->k + (row ? row[j] : j) * HD;
    double s = 0;
    for (size_t d = 0; d < HD; d++) s += (double)h->q[query * HD + d] * (double)k[d];
    if (h->softcap != 0) s = (double)h->softcap * tanh(s / (double)h->softcap);
    e[j] = j >= from ? exp(s) : 0;
    sum += e[j];
  }
  return sum;
}

static double own_mass(const fl_match_head *h, size_t query) {
  return exp((double)h->own_mass[query]);
}

static void naive_choice(const fl_match_head *h, uint32_t *row) {
  double weight[T] = { 0 }, e[T];
  for (size_t i = 0; i < h->n_queries; i++) {
    const double all = exps(h, i, NULL, T, h->from ? h->from[i] : 0, e) + own_mass(h, i);
    for (size_t j = 0; j < T && all > 0; j++) weight[j] += e[j] / all * e[j] / all;
  }
  if (h->keep_first) weight[0] = INFINITY;
  size_t n = 0;
  for (size_t j = 0; j < T; j++) {
    size_t above = 0;
    for (size_t i = 0; i < T; i++) above += weight[i] > weight[j];
    if (above < h->p) row[n++] = (uint32_t)j;
  }
  ck_assert_uint_eq(n, h->p);
}

/* Gauss with pivots of x [n, n] and its right side b [n, HD]. */
static void gauss(double *x, double *b, size_t n) {
  for (size_t c = 0; c < n; c++) {
    size_t best = c;
    for (size_t i = c; i < n; i++)
      if (fabs(x[i * n + c]) > fabs(x[best * n + c])) best = i;
    for (size_t j = 0; j < n; j++) {
      const double t = x[c * n + j];
      x[c * n + j] = x[best * n + j];
      x[best * n + j] = t;
    }
    for (size_t d = 0; d < HD; d++) {
      const double t = b[c * HD + d];
      b[c * HD + d] = b[best * HD + d];
      b[best * HD + d] = t;
    }
    for (size_t i = 0; i < n; i++) {
      if (i == c) continue;
      const double f = x[i * n + c] / x[c * n + c];
      for (size_t j = c; j < n; j++) x[i * n + j] -= f * x[c * n + j];
      for (size_t d = 0; d < HD; d++) b[i * HD + d] -= f * b[c * HD + d];
    }
  }
  for (size_t i = 0; i < n; i++)
    for (size_t d = 0; d < HD; d++) b[i * HD + d] /= x[i * n + i];
}

/* v [p, HD] = the ridge regression on what attention puts out in the end. */
static void naive_values(const fl_match_head *h, const uint32_t *row, double *v) {
  const size_t p = h->p;
  double *x = fl_calloc(p * p, sizeof *x), e[T], w[T], mean = 0;
  memset(v, 0, p * HD * sizeof *v);
  for (size_t i = 0; i < h->n_queries; i++) {
    const double m = own_mass(h, i);
    const double before = exps(h, i, NULL, T, h->from ? h->from[i] : 0, e);
    const double now = exps(h, i, row, p, h->from_chosen ? h->from_chosen[i] : 0, w);
    for (size_t d = 0; d < HD; d++) {
      double want = 0, got = 0;
      for (size_t j = 0; j < T; j++) want += e[j] * (double)h->v[j * HD + d];
      for (size_t j = 0; j < p; j++) got += w[j] * (double)h->v[row[j] * HD + d];
      const double o = m > 0 ? m * (double)h->own[i * HD + d] : 0;
      want = before + m > 0 ? (want + o) / (before + m) : 0;
      got = now + m > 0 ? (got + o) / (now + m) : 0;
      for (size_t j = 0; j < p && now > 0; j++) v[j * HD + d] += w[j] / (now + m) * (want - got);
    }
    for (size_t a = 0; a < p && now > 0; a++)
      for (size_t b = 0; b < p; b++) x[a * p + b] += w[a] / (now + m) * w[b] / (now + m);
  }
  for (size_t a = 0; a < p; a++) mean += x[a * p + a] / (double)p;
  for (size_t a = 0; a < p; a++) x[a * p + a] += h->ridge * mean;
  gauss(x, v, p);
  for (size_t j = 0; j < p; j++)
    for (size_t d = 0; d < HD; d++) v[j * HD + d] += (double)h->v[row[j] * HD + d];
  fl_free(x);
}

typedef struct rows {
  uint32_t row[T];
  float k[T * HD], v[T * HD];
} rows;

static void fit(rows *out, const task *t, unsigned threads) {
  fl_team *team;
  fl_err err = { 0 };
  ck_assert_int_eq(fl_team_new(&team, threads, NULL), FL_OK);
  memset(out, 0, sizeof *out);
  ck_assert_msg(
      fl_match_head_fit(&t->h, fl_kernels_select(), team, out->row, out->k, out->v, &err) == FL_OK,
      "%s", err.text);
  fl_team_free(team);
}

/* Alone, among rows of the query's own, behind a window, with capped scores. */
static const struct {
  bool own, window;
  float softcap;
} cases[] = { { false, false, 0 }, { true, false, 0 }, { true, true, 0 }, { true, false, 3 } };
enum { N_CASES = sizeof cases / sizeof *cases };

/* Sums of f32 products over blocks of 256 queries: a relative error of at most 256 x 2^-24 in each
 * element of the system, and the usual one a sixteenth of that (errors add as their root). The
 * ridge bounds its condition by p / ridge = 2400; so 2.4e-3 of the values' size, which is about 1,
 * in the usual case, and three times that is allowed. */
START_TEST(rows_are_those_of_the_formulas_in_double) {
  task t = some_task(P, cases[_i].own, cases[_i].window, cases[_i].softcap);
  rows got;
  uint32_t want_row[T];
  double want[T * HD];
  fit(&got, &t, 2);
  naive_choice(&t.h, want_row);
  naive_values(&t.h, want_row, want);
  for (size_t j = 0; j < P; j++) {
    ck_assert_uint_eq(got.row[j], want_row[j]);
    ck_assert(memcmp(got.k + j * HD, t.k + want_row[j] * HD, HD * sizeof(float)) == 0);
    for (size_t d = 0; d < HD; d++)
      ck_assert_msg(fabs((double)got.v[j * HD + d] - want[j * HD + d]) < 7.2e-3,
                    "row %zu: %g instead of %g", j, (double)got.v[j * HD + d], want[j * HD + d]);
  }
  ck_assert_uint_eq(got.row[0], 0);
  task_release(&t);
}
END_TEST

START_TEST(all_rows_stay_as_they_are) {
  task t = some_task(T, true, false, 0);
  rows got;
  fit(&got, &t, 1);
  for (size_t j = 0; j < T; j++) ck_assert_uint_eq(got.row[j], j);
  ck_assert(memcmp(got.k, t.k, sizeof got.k) == 0);
  ck_assert(memcmp(got.v, t.v, sizeof got.v) == 0);
  task_release(&t);
}
END_TEST

START_TEST(any_number_of_threads_gives_the_same_bits) {
  task t = some_task(P, true, false, 0);
  rows one, many;
  fit(&one, &t, 1);
  for (unsigned n = 2; n <= 7; n++) {
    fit(&many, &t, n);
    ck_assert(memcmp(&one, &many, sizeof one) == 0);
  }
  task_release(&t);
}
END_TEST

/* One row for everything, and queries that see nothing at all. */
START_TEST(ends_of_the_range) {
  task t = some_task(1, true, false, 0);
  rows got;
  fit(&got, &t, 2);
  ck_assert_uint_eq(got.row[0], 0);
  for (size_t d = 0; d < HD; d++) ck_assert(isfinite(got.v[d]));
  t.h.from = t.h.from_chosen = t.from;
  for (size_t i = 0; i < QUERIES; i++) t.from[i] = T;
  fit(&got, &t, 2);
  ck_assert(memcmp(got.v, t.v, HD * sizeof(float)) == 0);
  task_release(&t);
}
END_TEST

START_TEST(no_memory_is_said) {
  task t = some_task(P, true, false, 0);
  rows got;
  int rc = FL_ENOMEM;
  for (size_t n = 1; rc != FL_OK; n++) {
    fl_err err = { 0 };
    ck_assert_uint_lt(n, 1000);
    fl_mem_fault_after(n);
    rc = fl_match_head_fit(&t.h, fl_kernels_select(), NULL, got.row, got.k, got.v, &err);
    fl_mem_fault_after(0);
    ck_assert_msg(rc == FL_OK || (rc == FL_ENOMEM && err.text[0]), "%d %s", rc, err.text);
  }
  task_release(&t);
}
END_TEST

Suite *suite_match_head(void);
Suite *suite_match_head(void) {
  Suite *s = suite_create("match_head");
  TCase *core = tcase_create("Core"), *limits = tcase_create("Limits");
  TCase *errors = tcase_create("Errors");
  tcase_set_timeout(core, 60);
  tcase_add_loop_test(core, rows_are_those_of_the_formulas_in_double, 0, N_CASES);
  tcase_add_test(core, any_number_of_threads_gives_the_same_bits);
  tcase_add_test(limits, all_rows_stay_as_they_are);
  tcase_add_test(limits, ends_of_the_range);
  tcase_add_test(errors, no_memory_is_said);
  suite_add_tcase(s, core);
  suite_add_tcase(s, limits);
  suite_add_tcase(s, errors);
  return s;
}
