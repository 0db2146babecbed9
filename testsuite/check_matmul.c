/* check_matmul.c - the products with packed weights against their plain twins, bit for bit.
 *
 * The definition of every output is a chain in a fixed order (matmul.h), so there is no tolerance:
 * any route, any number of rows and threads, any slice must give exactly the twin's bits on the
 * widened weights. Every instruction-set level of the machine is tested. Adjoint and integer
 * identities guard against a twin that is wrong in the same way.
 */
#include "matmul_util.h"

static const fl_dtype types[] = { FL_F32,  FL_F16,  FL_BF16, FL_Q8_0, FL_Q4_0, FL_Q4_1,
                                  FL_Q5_0, FL_Q5_1, FL_Q4_K, FL_Q5_K, FL_Q6_K };
enum { N_TYPES = sizeof types / sizeof *types };

static const struct shape {
  size_t m, n_out, n_in;
} shapes[] = {
  { 1, 1, 1 },     { 1, 37, 300 },   { 2, 200, 64 },  { 3, 16, 256 },  { 4, 129, 513 },
  { 5, 48, 31 },   { 6, 96, 96 },    { 7, 33, 520 },  { 8, 17, 1024 }, { 9, 64, 257 },
  { 25, 70, 768 }, { 200, 40, 100 }, { 390, 52, 70 }, { 200, 40, 10 }, { 13, 600, 33 },
  { 3, 20, 4500 }, { 11, 35, 4400 },
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

START_TEST(f32_has_the_twins_bits) {
  const fl_kernels *k = level(_i / N_SHAPES);
  if (!k) return;
  struct shape s = shapes[_i % N_SHAPES];
  bool fused = is_fused(k);
  fl_rng r = stream((uint32_t)_i);
  for (unsigned threads = 1; threads <= 3; threads++) {
    fl_team *team = NULL;
    ck_assert_int_eq(fl_team_new(&team, threads, NULL), FL_OK);
    matrix a = matrix_new(k, team, FL_F32, s.n_out, s.n_in, &r);
    check_forward(&a, team, s.m, fused, &r);
    check_backward(&a, team, s.m, fused, false, &r);
    check_backward(&a, team, s.m, fused, true, &r);
    matrix_release(&a);
    fl_team_free(team);
  }
}
END_TEST

START_TEST(every_type_has_the_twins_bits) {
  const fl_kernels *k = level(_i / N_TYPES);
  if (!k) return;
  fl_dtype type = types[_i % N_TYPES];
  size_t block = fl_dtype_get(type)->block;
  bool fused = is_fused(k);
  fl_rng r = stream((uint32_t)_i);
  fl_team *team = NULL;
  ck_assert_int_eq(fl_team_new(&team, 2, NULL), FL_OK);
  const size_t n_ins[] = { block, 3 * block, block < 256 ? 544 : 1280 };
  for (size_t i = 0; i < 3; i++) {
    matrix a = matrix_new(k, team, type, i == 2 ? 275 : 21, n_ins[i], &r);
    for (size_t m = 1; m < 10; m += m < 4 ? 1 : 3) {
      check_forward(&a, team, m, fused, &r);
      check_backward(&a, team, m, fused, m % 2 == 0, &r);
    }
    check_forward(&a, team, 20, fused, &r);
    check_forward(&a, team, 140, fused, &r); /* more than one call of the route of few rows */
    matrix_release(&a);
  }
  fl_team_free(team);
}
END_TEST

/* Row i of a product of m rows is what it is alone, for every m, whatever the threads. */
START_TEST(row_rule) {
  const fl_kernels *k = level(_i / 3);
  if (!k) return;
  enum { M = 40, N_OUT = 83, N_IN = 288 };
  fl_rng r = stream((uint32_t)_i);
  fl_team *team = NULL;
  ck_assert_int_eq(fl_team_new(&team, (unsigned)(_i % 3) + 1, NULL), FL_OK);
  matrix a = matrix_new(k, NULL, FL_Q8_0, N_OUT, N_IN, &r);
  void *scratch = room(1, fl_matmul_scratch(a.w, team, M));
  float *x = normals(&r, M * N_IN), *dy = normals(&r, M * N_OUT);
  float *y1 = room(M * N_OUT, sizeof *y1), *y = room(M * N_OUT, sizeof *y);
  float *dx1 = room(M * N_IN, sizeof *dx1), *dx = room(M * N_IN, sizeof *dx);
  for (size_t i = 0; i < M; i++) {
    fl_matmul(a.w, NULL, y1 + i * N_OUT, N_OUT, x + i * N_IN, N_IN, 1, scratch);
    fl_matmul_dx(a.w, NULL, dx1 + i * N_IN, N_IN, dy + i * N_OUT, N_OUT, 1, false, scratch);
  }
  for (size_t m = 1; m <= M; m++) {
    fl_matmul(a.w, team, y, N_OUT, x, N_IN, m, scratch);
    assert_same(y, y1, m, N_OUT, N_OUT, "rows beside it");
    fl_matmul_dx(a.w, team, dx, N_IN, dy, N_OUT, m, false, scratch);
    assert_same(dx, dx1, m, N_IN, N_IN, "rows beside it, dX");
  }
  fl_free(dx);
  fl_free(dx1);
  fl_free(y);
  fl_free(y1);
  fl_free(dy);
  fl_free(x);
  fl_free(scratch);
  matrix_release(&a);
  fl_team_free(team);
}
END_TEST

START_TEST(slices_have_the_wholes_bits) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  enum { N_OUT = 700, N_IN = 320 };
  fl_rng r = stream((uint32_t)_i);
  fl_team *team = NULL;
  ck_assert_int_eq(fl_team_new(&team, 2, NULL), FL_OK);
  const fl_dtype some[] = { FL_F16, FL_Q5_1 };
  for (size_t t = 0; t < 2; t++) {
    matrix a = matrix_new(k, team, some[t], N_OUT, N_IN, &r);
    const size_t nr = fl_panels_nr(a.w), width = 9 * nr;
    for (size_t m = 1; m <= 12; m += 11) {
      void *scratch = room(1, fl_matmul_scratch(a.w, team, m));
      float *x = normals(&r, m * N_IN);
      float *y = room(m * N_OUT, sizeof *y), *part = room(m * N_OUT, sizeof *part);
      fl_matmul(a.w, team, y, N_OUT, x, N_IN, m, scratch);
      for (size_t o = 0; o < N_OUT; o += width)
        fl_matmul_cols(a.w, team, part + o, N_OUT, x, N_IN, m, o,
                       N_OUT - o < width ? N_OUT - o : width, scratch);
      assert_same(part, y, m, N_OUT, N_OUT, "columns");
      fl_free(part);
      fl_free(y);
      fl_free(x);
      fl_free(scratch);
    }
    matrix_release(&a);
  }
  fl_team_free(team);
}
END_TEST

/* With small integers every sum is exact, so (X . W^T) . t == X . (W^T . t) in whole numbers. */
START_TEST(integers_associate) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  enum { M = 19, N_OUT = 45, N_IN = 600 };
  fl_rng r = stream((uint32_t)_i);
  float *x = room(M * N_IN, sizeof *x), *w = room(N_OUT * N_IN, sizeof *w), *y = room(M * N_OUT, 4);
  int t[N_OUT], v[N_IN] = { 0 };
  for (size_t i = 0; i < M * N_IN; i++) x[i] = (float)fl_rng_below(&r, 17) - 8.0f;
  for (size_t i = 0; i < N_OUT * N_IN; i++) w[i] = (float)fl_rng_below(&r, 17) - 8.0f;
  for (size_t o = 0; o < N_OUT; o++) {
    t[o] = (int)fl_rng_below(&r, 9) - 4;
    for (size_t i = 0; i < N_IN; i++) v[i] += (int)w[o * N_IN + i] * t[o];
  }
  const void *data[] = { w };
  fl_panels *p = NULL;
  ck_assert_int_eq(fl_panels_pack(&p, k, NULL, FL_F32, data, (size_t[]){ N_OUT }, 1, N_IN, NULL),
                   FL_OK);
  void *scratch = room(1, fl_matmul_scratch(p, NULL, M));
  fl_matmul(p, NULL, y, N_OUT, x, N_IN, M, scratch);
  for (size_t m = 0; m < M; m++) {
    long left = 0, right = 0;
    for (size_t o = 0; o < N_OUT; o++) left += (long)y[m * N_OUT + o] * t[o];
    for (size_t i = 0; i < N_IN; i++) right += (long)x[m * N_IN + i] * v[i];
    ck_assert_int_eq(left, right);
  }
  fl_free(scratch);
  fl_panels_free(p);
  fl_free(y);
  fl_free(w);
  fl_free(x);
}
END_TEST

/* The backward is the adjoint of the forward: <dY, X W^T> == <dY W, X>. Each side is a sum of
 * M * N_OUT * N_IN products rounded at most a few times per block; the bound is 1e-5 of the sum of
 * magnitudes, some hundred times f32's rounding, where a wrong index gives a difference of order
 * its square root. */
START_TEST(backward_is_adjoint) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  enum { M = 10, N_OUT = 300, N_IN = 352 };
  fl_rng r = stream((uint32_t)_i);
  matrix a = matrix_new(k, NULL, FL_Q4_0, N_OUT, N_IN, &r);
  float *x = normals(&r, M * N_IN), *dy = normals(&r, M * N_OUT);
  float *y = room(M * N_OUT, sizeof *y), *dx = room(M * N_IN, sizeof *dx);
  void *scratch = room(1, fl_matmul_scratch(a.w, NULL, M));
  fl_matmul(a.w, NULL, y, N_OUT, x, N_IN, M, scratch);
  fl_matmul_dx(a.w, NULL, dx, N_IN, dy, N_OUT, M, false, scratch);
  double left = 0, right = 0, size = 0;
  for (size_t i = 0; i < M * N_OUT; i++) {
    left += (double)dy[i] * (double)y[i];
    size += fabs((double)dy[i] * (double)y[i]);
  }
  for (size_t i = 0; i < M * N_IN; i++) right += (double)dx[i] * (double)x[i];
  ck_assert_double_le(fabs(left - right), 1e-5 * size);
  ck_assert_double_gt(size, 1.0);
  fl_free(scratch);
  fl_free(dx);
  fl_free(y);
  fl_free(dy);
  fl_free(x);
  matrix_release(&a);
}
END_TEST

START_TEST(rows_come_back) {
  const fl_kernels *k = fl_kernels_select();
  fl_rng r = stream((uint32_t)_i);
  size_t n_in = fl_dtype_get(types[_i])->block < 256 ? 288 : 768;
  matrix a = matrix_new(k, NULL, types[_i], 39, n_in, &r);
  float *row = room(n_in, sizeof *row);
  for (size_t i = 0; i < a.n_out; i++) {
    fl_panels_row(a.w, row, i);
    assert_same(row, a.wide + i * n_in, 1, n_in, n_in, "row");
  }
  fl_free(row);
  matrix_release(&a);
}
END_TEST

START_TEST(no_rows_no_writes) {
  fl_rng r = stream(0);
  matrix a = matrix_new(fl_kernels_select(), NULL, FL_F32, 20, 20, &r);
  void *scratch = room(1, fl_matmul_scratch(a.w, NULL, 0));
  float y = 3.0f, x = 1.0f;
  fl_matmul(a.w, NULL, &y, 20, &x, 20, 0, scratch);
  fl_matmul_dx(a.w, NULL, &y, 20, &x, 20, 0, false, scratch);
  ck_assert_float_eq(y, 3.0f);
  fl_free(scratch);
  matrix_release(&a);
}
END_TEST

START_TEST(work_is_counted) {
  enum { M = 5, N_OUT = 70, N_IN = 48 };
  fl_team *team;
  fl_panels *p;
  float data[N_OUT * N_IN] = { 0 }, x[M * N_OUT] = { 0 }, y[M * N_OUT];
  const void *const rows[] = { data };
  ck_assert_int_eq(fl_team_new(&team, 2, NULL), FL_OK);
  ck_assert_int_eq(fl_panels_pack(&p, fl_kernels_select(), team, FL_F32, rows, (size_t[]){ N_OUT },
                                  1, N_IN, NULL),
                   FL_OK);
  void *scratch = fl_aligned_calloc(1, fl_matmul_scratch(p, team, M));
  fl_matmul(p, team, y, N_OUT, x, N_IN, M, scratch);
  fl_work w = fl_team_work(team);
  ck_assert_double_eq(w.flop, 2.0 * M * N_OUT * N_IN);
  ck_assert_double_eq(w.bytes, (double)fl_panels_bytes(p));
  fl_matmul_dx(p, team, y, N_IN, x, N_OUT, M, false, scratch);
  fl_matmul(p, NULL, y, N_OUT, x, N_IN, M, scratch);
  w = fl_team_work(team);
  ck_assert_double_eq(w.flop, 4.0 * M * N_OUT * N_IN);
  ck_assert_double_eq(w.bytes, 2.0 * (double)fl_panels_bytes(p));
  fl_free(scratch);
  fl_panels_free(p);
  fl_team_free(team);
}
END_TEST

START_TEST(machine_is_named) {
  unsetenv("FLOTILLA_ISA");
  const fl_kernels *best = fl_kernels_select();
  ck_assert_ptr_nonnull(strstr(fl_kernels_name(best), "blis:"));
  ck_assert_ptr_eq(strstr(fl_kernels_name(best), fl_kernels_isa(best)), fl_kernels_name(best));
  setenv("FLOTILLA_ISA", "ref", 1);
  ck_assert_str_eq(fl_kernels_isa(fl_kernels_select()), "ref");
  setenv("FLOTILLA_ISA", "nonsense", 1);
  ck_assert_ptr_eq(fl_kernels_select(), best);
}
END_TEST

START_TEST(bad_shapes_are_refused) {
  const fl_kernels *k = fl_kernels_select();
  const float w[64] = { 0 };
  const void *data[] = { w, w };
  fl_panels *p = NULL;
  fl_err err = { 0 };
  size_t one[] = { 1 }, none[] = { 0 }, huge[] = { SIZE_MAX / 2, SIZE_MAX / 2 + 9 };
  ck_assert_int_eq(fl_panels_pack(&p, k, NULL, FL_Q8_0, data, one, 1, 33, &err), FL_EINPUT);
  ck_assert_ptr_nonnull(strstr(err.text, "33"));
  ck_assert_int_eq(fl_panels_pack(&p, k, NULL, FL_F32, data, one, 1, 0, NULL), FL_EINPUT);
  ck_assert_int_eq(fl_panels_pack(&p, k, NULL, FL_F32, data, none, 1, 8, NULL), FL_EINPUT);
  ck_assert_int_eq(fl_panels_pack(&p, k, NULL, (fl_dtype)99, data, one, 1, 8, NULL), FL_EINPUT);
  ck_assert_int_eq(fl_panels_pack(&p, k, NULL, FL_F32, data, huge, 2, 8, NULL), FL_EINPUT);
  ck_assert_int_eq(fl_panels_pack(&p, k, NULL, FL_F32, data, huge, 1, 8, NULL), FL_EINPUT);
  ck_assert_ptr_null(p);
}
END_TEST

START_TEST(memory_faults) {
  const fl_kernels *k = fl_kernels_select();
  const float w[64] = { 0 };
  const void *data[] = { w };
  for (size_t n = 1; n <= 2; n++) {
    fl_panels *p = NULL;
    fl_mem_fault_after(n);
    int rc = fl_panels_pack(&p, k, NULL, FL_F32, data, (size_t[]){ 8 }, 1, 8, NULL);
    fl_mem_fault_after(0);
    ck_assert_int_eq(rc, FL_ENOMEM);
    ck_assert_ptr_null(p);
  }
}
END_TEST

Suite *suite_matmul(void);
Suite *suite_matmul(void) {
  Suite *s = suite_create("matmul");
  TCase *core = tcase_create("core");
  tcase_add_loop_test(core, f32_has_the_twins_bits, 0, N_ISAS * N_SHAPES);
  tcase_add_loop_test(core, every_type_has_the_twins_bits, 0, N_ISAS * N_TYPES);
  tcase_add_loop_test(core, row_rule, 0, N_ISAS * 3);
  tcase_add_loop_test(core, slices_have_the_wholes_bits, 0, N_ISAS);
  tcase_add_loop_test(core, integers_associate, 0, N_ISAS);
  tcase_add_loop_test(core, backward_is_adjoint, 0, N_ISAS);
  tcase_add_loop_test(core, rows_come_back, 0, N_TYPES);
  tcase_add_test(core, machine_is_named);
  tcase_add_test(core, work_is_counted);
  tcase_set_timeout(core, 120);
  suite_add_tcase(s, core);
  TCase *limits = tcase_create("limits");
  tcase_add_test(limits, no_rows_no_writes);
  suite_add_tcase(s, limits);
  TCase *errors = tcase_create("errors");
  tcase_add_test(errors, bad_shapes_are_refused);
  tcase_add_test(errors, memory_faults);
  suite_add_tcase(s, errors);
  return s;
}
