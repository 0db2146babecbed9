/* check_matmul_routes.c - which route a product takes, and that each gives the twin's bits: with
 * micro-kernels of machines that are not at hand, and by the route of few rows for any number. */
#include <math.h>

#include "matmul_util.h"

/* BLIS picks its kernel for the machine, so the suite would only ever see one. These stand in for
 * the others: same signature, plain C, other shapes. */

enum { FUSED = 1, COLUMNS = 2 }; /* COLUMNS: the kernel prefers columns, its MR is the long side */

static const struct foreign {
  size_t mr, nr, packmr, packnr; /* as BLIS gives them */
  int flags;
} foreign[] = {
  { 6, 16, 6, 16, FUSED },
  { 6, 16, 6, 16, 0 },
  { 4, 8, 4, 8, 0 },
  { 8, 8, 8, 8, FUSED },
  { 32, 12, 32, 12, FUSED | COLUMNS },
  { 8, 12, 8, 12, FUSED },
  { 3, 16, 4, 20, FUSED },
  { 16, 3, 16, 3, COLUMNS },
  { 24, 16, 24, 16, FUSED | COLUMNS },
  { 5, 5, 5, 5, FUSED },
};
enum { N_FOREIGN = sizeof foreign / sizeof *foreign };

static void foreign_tile(const struct foreign *f, long k, const float *a, const float *b,
                         float beta, float *c, long rs, long cs) {
  for (size_t i = 0; i < f->mr; i++)
    for (size_t j = 0; j < f->nr; j++) {
      float acc = 0.0f;
      for (size_t p = 0; p < (size_t)k; p++) {
        float x = a[p * f->packmr + i], w = b[p * f->packnr + j];
        acc = f->flags & FUSED ? fmaf(x, w, acc) : acc + x * w;
      }
      float *at = c + i * (size_t)rs + j * (size_t)cs;
      *at = beta == 0.0f ? acc : *at + acc;
    }
}

/* BLIS's signature; which of the kernels it is comes in the place of BLIS's context. */
static void foreign_ukr(long m, long n, long k, const float *alpha, const float *a, const float *b,
                        const float *beta, float *c, long rs, long cs, void *aux,
                        const void *cntx) {
  (void)aux;
  const struct foreign *f = cntx;
  ck_assert_int_eq(m, (long)f->mr);
  ck_assert_int_eq(n, (long)f->nr);
  ck_assert_int_ge(k, 1);
  ck_assert_float_eq(*alpha, 1.0f);
  foreign_tile(f, k, a, b, *beta, c, rs, cs);
}

static struct fl_kernels with_foreign(const fl_kernels *k, const struct foreign *f) {
  struct fl_kernels other = *k;
  bool turned = f->flags & COLUMNS;
  other.ukr = (fl_ukr){ .fn = (void (*)(void))foreign_ukr,
                        .cntx = f,
                        .mr = turned ? f->nr : f->mr,
                        .nr = turned ? f->mr : f->nr,
                        .packmr = turned ? f->packnr : f->packmr,
                        .packnr = turned ? f->packmr : f->packnr,
                        .transposed = turned,
                        .arch = "foreign" };
  fl_matmul_choose(&other);
  return other;
}

START_TEST(foreign_kernels) {
  const fl_kernels *machine = level(_i / N_FOREIGN);
  if (!machine) return;
  const struct foreign *f = &foreign[_i % N_FOREIGN];
  const struct fl_kernels k = with_foreign(machine, f);
  fl_rng r = stream((uint32_t)_i);
  fl_team *team = NULL;
  ck_assert_int_eq(fl_team_new(&team, 2, NULL), FL_OK);
  const fl_dtype some[] = { FL_F32, FL_F16, FL_Q8_0, FL_Q5_0, FL_Q6_K };
  for (size_t t = 0; t < 5; t++) {
    matrix a = matrix_new(&k, team, some[t], 267, some[t] == FL_Q6_K ? 512 : 288, &r);
    for (size_t m = 1; m < 18; m = m * 2 + 1) {
      check_forward(&a, team, m, f->flags & FUSED, &r);
      check_backward(&a, team, m, f->flags & FUSED, true, &r);
    }
    matrix_release(&a);
  }
  fl_team_free(team);
}
END_TEST

/* Where the route of few rows takes any number of rows, as it does on some machines alone. */
START_TEST(few_rows_for_all) {
  const fl_kernels *machine = level(_i);
  if (!machine || !machine->few_rows_exact || machine->ukr.packnr != machine->ukr.nr) return;
  struct fl_kernels k = *machine;
  k.prefer_small = true;
  fl_rng r = stream((uint32_t)_i);
  fl_team *team = NULL;
  ck_assert_int_eq(fl_team_new(&team, 2, NULL), FL_OK);
  const fl_dtype some[] = { FL_F32, FL_F16, FL_Q8_0, FL_Q4_K };
  const size_t rows[] = { 33, 128, 129, 390 };
  for (size_t t = 0; t < 4; t++) {
    matrix a = matrix_new(&k, team, some[t], 85, some[t] == FL_Q4_K ? 512 : 288, &r);
    for (size_t i = 0; i < 4; i++) {
      check_forward(&a, team, rows[i], is_fused(machine), &r);
      check_backward(&a, team, rows[i], is_fused(machine), i % 2 == 0, &r);
    }
    matrix_release(&a);
  }
  fl_team_free(team);
}
END_TEST

/* The few-row route is taken where it has the kernel's bits, and only there. */
START_TEST(probe_tells) {
  const fl_kernels *machine = level(_i);
  if (!machine) return;
  const bool level_fused = _i >= 2; /* ref and v2 are not */
  const struct foreign *fused = &foreign[0], *plain = &foreign[1];
  const struct fl_kernels a = with_foreign(machine, fused), b = with_foreign(machine, plain);
  ck_assert(fl_matmul_probe(&a) == level_fused);
  ck_assert(fl_matmul_probe(&b) == !level_fused);
  const struct fl_kernels odd = with_foreign(machine, &foreign[N_FOREIGN - 1]);
  ck_assert(!fl_matmul_probe(&odd));
}
END_TEST

Suite *suite_matmul_routes(void);
Suite *suite_matmul_routes(void) {
  Suite *s = suite_create("matmul_routes");
  TCase *core = tcase_create("core");
  tcase_add_loop_test(core, foreign_kernels, 0, N_ISAS * N_FOREIGN);
  tcase_add_loop_test(core, few_rows_for_all, 0, N_ISAS);
  tcase_add_loop_test(core, probe_tells, 0, N_ISAS);
  tcase_set_timeout(core, 120);
  suite_add_tcase(s, core);
  return s;
}
