/* check_adam.c - the optimizer against the textbook in double. */
#include "cart_util.h"

static const double lr = 1e-2;

/* Kingma & Ba 2015, algorithm 1, word for word. */
typedef struct textbook {
  double x, m, v;
} textbook;

static void textbook_step(textbook *t, double g, unsigned step) {
  t->m = 0.9 * t->m + 0.1 * g;
  t->v = 0.999 * t->v + 0.001 * g * g;
  double m_hat = t->m / (1 - pow(0.9, step)), v_hat = t->v / (1 - pow(0.999, step));
  t->x -= lr * m_hat / (sqrt(v_hat) + 1e-8);
}

/* Ten steps; each value takes about six f32 operations a step, each off by at most 2^-24 of a
 * number no larger than 4, and m, v carry a relative error of a few 2^-24 into an update of at most
 * 10 lr: 1e-5 is ten times what adds up. */
START_TEST(ten_steps_follow_the_textbook) {
  enum { N = 5, FROZEN = 2, STEPS = 10 };
  fl_hparams *hp = some_geometry();
  fl_cartridge c = some_cartridge(hp, N, FROZEN, 1);
  fl_cartridge born = some_cartridge(hp, N, FROZEN, 1);
  fl_adam a;
  fl_rows g[STEPS];
  ck_assert_int_eq(fl_adam_init(&a, hp, &c, NULL), FL_OK);
  for (unsigned s = 0; s < STEPS; s++) {
    ck_assert_int_eq(fl_cart_grad_init(&g[s], hp, &c, NULL), FL_OK);
    fill_rows(&g[s], 100 + s, s % 2 ? 1e-3 : 1);
    fl_adam_step(NULL, NULL, &c, &a, &g[s], lr);
  }
  ck_assert_uint_eq(c.steps, STEPS);
  ck_assert_uint_eq(a.step, STEPS);
  for (size_t l = 0; l < c.rows.n_layers; l++) {
    const size_t w = c.rows.width[l], skip = FROZEN * w;
    ck_assert(w == 0 || memcmp(c.rows.k[l], born.rows.k[l], skip * sizeof(float)) == 0);
    ck_assert(w == 0 || memcmp(c.rows.v[l], born.rows.v[l], skip * sizeof(float)) == 0);
    for (size_t i = 0; i < (N - FROZEN) * w; i++) {
      textbook k = { .x = born.rows.k[l][skip + i] }, v = { .x = born.rows.v[l][skip + i] };
      for (unsigned s = 0; s < STEPS; s++) {
        textbook_step(&k, g[s].k[l][i], s + 1);
        textbook_step(&v, g[s].v[l][i], s + 1);
      }
      ck_assert_double_eq_tol(c.rows.k[l][skip + i], k.x, 1e-5);
      ck_assert_double_eq_tol(c.rows.v[l][skip + i], v.x, 1e-5);
    }
  }
  for (unsigned s = 0; s < STEPS; s++) fl_rows_release(&g[s]);
  fl_adam_release(&a);
  fl_cartridge_release(&c);
  fl_cartridge_release(&born);
  fl_free(hp);
}
END_TEST

static fl_cartridge three_steps(const fl_hparams *hp, unsigned threads) {
  fl_cartridge c = some_cartridge(hp, 7, 1, 2);
  fl_team *team;
  fl_adam a;
  fl_rows g;
  ck_assert_int_eq(fl_team_new(&team, threads, NULL), FL_OK);
  ck_assert_int_eq(fl_adam_init(&a, hp, &c, NULL), FL_OK);
  ck_assert_int_eq(fl_cart_grad_init(&g, hp, &c, NULL), FL_OK);
  for (uint32_t s = 0; s < 3; s++) {
    fill_rows(&g, s, 1);
    fl_adam_step(NULL, team, &c, &a, &g, lr);
  }
  fl_rows_release(&g);
  fl_adam_release(&a);
  fl_team_free(team);
  return c;
}

START_TEST(threads_change_no_bit) {
  fl_hparams *hp = some_geometry();
  fl_cartridge one = three_steps(hp, 1);
  for (unsigned t = 2; t <= 5; t++) {
    fl_cartridge many = three_steps(hp, t);
    ck_assert(rows_equal(&one.rows, &many.rows));
    fl_cartridge_release(&many);
  }
  fl_cartridge_release(&one);
  fl_free(hp);
}
END_TEST

START_TEST(warm_up_counts_own_steps) {
  fl_rate r = { .lr = 2.0, .warmup = 8 };
  ck_assert_double_eq(fl_rate_at(&r, 0), 0.25);
  ck_assert_double_eq(fl_rate_at(&r, 3), 1.0);
  ck_assert_double_eq(fl_rate_at(&r, 7), 2.0);
  ck_assert_double_eq(fl_rate_at(&r, 1000), 2.0);
  r.warmup = 0;
  ck_assert_double_eq(fl_rate_at(&r, 0), 2.0);
  r.warmup = 1;
  ck_assert_double_eq(fl_rate_at(&r, 0), 2.0);
}
END_TEST

START_TEST(decay_falls_in_a_line_and_stays) {
  fl_rate r = { .lr = 2.0, .warmup = 8, .decay = 100, .decay_to = 0.25 };
  ck_assert_double_eq(fl_rate_at(&r, 0), 0.25);
  ck_assert_double_eq(fl_rate_at(&r, 3), 1.0 * (1 - 0.75 * 3 / 100.0));
  ck_assert_double_eq(fl_rate_at(&r, 50), 1.25);
  ck_assert_double_eq(fl_rate_at(&r, 100), 0.5);
  ck_assert_double_eq(fl_rate_at(&r, UINT64_MAX), 0.5);
  r.decay_to = 0;
  ck_assert_double_eq(fl_rate_at(&r, 99), 2.0 * (1 - 0.99));
  ck_assert_double_eq(fl_rate_at(&r, 100), 0);
}
END_TEST

START_TEST(norm_scale_and_zero_cover_all_values) {
  fl_hparams *hp = some_geometry();
  fl_cartridge c = some_cartridge(hp, 3, 0, 3);
  double sum = 0;
  for (size_t l = 0; l < c.rows.n_layers; l++)
    for (size_t i = 0; i < c.rows.n_rows * c.rows.width[l]; i++)
      sum += pow(c.rows.k[l][i], 2) + pow(c.rows.v[l][i], 2);
  /* About 400 positive terms in double, in another order. */
  ck_assert_double_eq_tol(fl_rows_norm(&c.rows), sqrt(sum), 1e-13 * sqrt(sum));
  fl_rows_scale(&c.rows, 0.5f); /* exact */
  ck_assert_double_eq_tol(fl_rows_norm(&c.rows), sqrt(sum) / 2, 1e-13 * sqrt(sum));
  fl_rows_zero(&c.rows);
  ck_assert_double_eq(fl_rows_norm(&c.rows), 0);
  fl_cartridge_release(&c);
  fl_free(hp);
}
END_TEST

/* Every allocation of the pair may fail; what was made before is given back (leak checkers see). */
START_TEST(lack_of_memory_is_an_error) {
  fl_hparams *hp = some_geometry();
  fl_cartridge c = some_cartridge(hp, 3, 1, 3);
  fl_adam a = { 0 };
  int rc = FL_ENOMEM;
  size_t n = 1;
  for (; n < 100 && rc != FL_OK; n++) {
    fl_mem_fault_after(n);
    rc = fl_adam_init(&a, hp, &c, NULL);
    fl_mem_fault_after(0);
    ck_assert(rc == FL_OK || (rc == FL_ENOMEM && !a.m.block));
  }
  ck_assert_uint_gt(n, 8);
  ck_assert_int_eq(rc, FL_OK);
  fl_adam_release(&a);
  fl_cartridge_release(&c);
  fl_free(hp);
}
END_TEST

Suite *suite_adam(void);
Suite *suite_adam(void) {
  Suite *s = suite_create("adam");
  TCase *core = tcase_create("core"), *limits = tcase_create("limits");
  tcase_add_test(core, ten_steps_follow_the_textbook);
  tcase_add_test(core, threads_change_no_bit);
  tcase_add_test(core, warm_up_counts_own_steps);
  tcase_add_test(core, decay_falls_in_a_line_and_stays);
  tcase_add_test(core, norm_scale_and_zero_cover_all_values);
  tcase_add_test(limits, lack_of_memory_is_an_error);
  suite_add_tcase(s, core);
  suite_add_tcase(s, limits);
  return s;
}
