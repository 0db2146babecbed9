/* check_cholesky.c - factorisation and solution against the system they are of; threads, levels. */
#include "kernels/cholesky.h"

#include "kernels_util.h"

/* B . B^T + n I, which is positive definite: the smallest eigenvalue is at least n. */
static double *some_matrix(size_t n, uint32_t which) {
  fl_rng r = stream(which);
  double *b = room(n * n, sizeof *b), *a = room(n * n, sizeof *a);
  for (size_t i = 0; i < n * n; i++) b[i] = fl_rng_normal(&r);
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++) {
      double s = i == j ? (double)n : 0;
      for (size_t t = 0; t < n; t++) s += b[i * n + t] * b[j * n + t];
      a[i * n + j] = s;
    }
  fl_free(b);
  return a;
}

typedef struct solved {
  double *l, *x;
} solved;

static solved solve(const fl_kernels *k, fl_team *team, const double *a, size_t n, const double *b,
                    size_t n_rhs) {
  solved s = { room(n * n, sizeof *s.l), room(n * n_rhs, sizeof *s.x) };
  double *scratch = room(fl_cholesky_scratch(n, n_rhs, team), sizeof *scratch);
  memcpy(s.l, a, n * n * sizeof *a);
  memcpy(s.x, b, n * n_rhs * sizeof *b);
  ck_assert(fl_cholesky(k, team, s.l, n, scratch));
  fl_cholesky_solve(k, team, s.l, n, s.x, n_rhs, scratch);
  fl_free(scratch);
  return s;
}

static void solved_release(solved *s) {
  fl_free(s->l);
  fl_free(s->x);
}

static const size_t sizes[] = { 1, 2, 7, 8, 9, 63, 64, 65, 72, 127, 129, 200 };
enum { N_SIZES = sizeof sizes / sizeof *sizes };

/* Backward error of a factorisation and two solutions: a few n eps of |A| |x| (Higham, Accuracy and
 * Stability, 10.4), |A| being below its trace. */
START_TEST(solves_the_system) {
  const fl_kernels *k = fl_kernels_select();
  const size_t n = sizes[_i], n_rhs = 1 + n % 11;
  double *a = some_matrix(n, (uint32_t)_i), *b = room(n * n_rhs, sizeof *b), trace = 0, most = 0;
  fl_rng r = stream(99);
  for (size_t i = 0; i < n * n_rhs; i++) b[i] = fl_rng_normal(&r);
  for (size_t i = 0; i < n; i++) trace += a[i * n + i];
  solved s = solve(k, NULL, a, n, b, n_rhs);
  for (size_t i = 0; i < n * n_rhs; i++) most = fmax(most, fabs(s.x[i]));
  for (size_t i = 0; i < n; i++)
    for (size_t c = 0; c < n_rhs; c++) {
      double got = 0;
      for (size_t j = 0; j < n; j++) got += a[i * n + j] * s.x[j * n_rhs + c];
      ck_near(got, b[i * n_rhs + c], 8 * (double)n * 0x1p-53 * trace * most);
    }
  for (size_t i = 0; i < n; i++) /* above the diagonal nothing is written */
    ck_assert(memcmp(s.l + i * n + i + 1, a + i * n + i + 1, (n - i - 1) * sizeof *a) == 0);
  solved_release(&s);
  fl_free(a);
  fl_free(b);
}
END_TEST

START_TEST(any_threads_and_levels_give_the_same_bits) {
  const size_t n = sizes[_i], n_rhs = 19;
  double *a = some_matrix(n, 50), *b = room(n * n_rhs, sizeof *b);
  fl_rng r = stream(98);
  for (size_t i = 0; i < n * n_rhs; i++) b[i] = fl_rng_normal(&r);
  solved want = solve(fl_kernels_select(), NULL, a, n, b, n_rhs);
  for (int i = 0; i < N_ISAS; i++) {
    const fl_kernels *k = level(i);
    for (unsigned threads = 1; k && threads <= 5; threads += 2) {
      fl_team *team;
      ck_assert_int_eq(fl_team_new(&team, threads, NULL), FL_OK);
      solved got = solve(k, team, a, n, b, n_rhs);
      ck_assert(memcmp(got.l, want.l, n * n * sizeof *a) == 0);
      ck_assert(memcmp(got.x, want.x, n * n_rhs * sizeof *b) == 0);
      solved_release(&got);
      fl_team_free(team);
    }
  }
  solved_release(&want);
  fl_free(a);
  fl_free(b);
}
END_TEST

START_TEST(refuses_what_is_not_positive_definite) {
  const fl_kernels *k = fl_kernels_select();
  const size_t n = 100;
  for (size_t bad = 0; bad < n; bad += 33) {
    double *a = some_matrix(n, 3), *scratch = room(fl_cholesky_scratch(n, 1, NULL), sizeof *a);
    a[bad * n + bad] = bad % 2 ? -1 : NAN;
    ck_assert(!fl_cholesky(k, NULL, a, n, scratch));
    fl_free(a);
    fl_free(scratch);
  }
}
END_TEST

Suite *suite_cholesky(void);
Suite *suite_cholesky(void) {
  Suite *s = suite_create("cholesky");
  TCase *core = tcase_create("Core"), *errors = tcase_create("Errors");
  tcase_set_timeout(core, 60);
  tcase_add_loop_test(core, solves_the_system, 0, N_SIZES);
  tcase_add_loop_test(core, any_threads_and_levels_give_the_same_bits, 0, N_SIZES);
  tcase_add_test(errors, refuses_what_is_not_positive_definite);
  suite_add_tcase(s, core);
  suite_add_tcase(s, errors);
  return s;
}
