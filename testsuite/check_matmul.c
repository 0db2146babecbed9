/* check_matmul.c - the products with packed weights against their plain twins, bit for bit.
 *
 * The definition of every output is a chain in a fixed order (matmul.h), so there is no tolerance:
 * any route, any number of rows and threads, any slice must give exactly the twin's bits on the
 * widened weights. Every instruction-set level of the machine is tested. Adjoint and integer
 * identities guard against a twin that is wrong in the same way.
 */
#include "kernels/matmul.h"

#include "kernels/table.h"
#include "kernels_util.h"

/* A matrix of some type: the file's bytes, the values they stand for, and the panels. */
typedef struct matrix {
  void *raw;
  float *wide; /* [n_out, n_in] */
  fl_panels *w;
  size_t n_out, n_in;
} matrix;

/* Offsets of the f16 scales in a block; the other bytes may hold anything. */
static size_t scales_of(fl_dtype type, size_t at[2]) {
  at[0] = type == FL_Q6_K ? 208 : 0;
  at[1] = 2;
  switch (type) {
  case FL_Q4_1:
  case FL_Q5_1:
  case FL_Q4_K:
  case FL_Q5_K: return 2;
  default: return 1;
  }
}

static void random_rows(const fl_dtype_traits *t, uint8_t *raw, size_t n_values, fl_rng *r) {
  if (t->block == 1) {
    float *x = normals(r, n_values);
    if (t->type == FL_F32) memcpy(raw, x, n_values * sizeof *x);
    else t->quantise(raw, x, n_values);
    fl_free(x);
    return;
  }
  size_t n_bytes = n_values / t->block * t->bytes, at[2], n = scales_of(t->type, at);
  for (size_t i = 0; i < n_bytes; i++) raw[i] = (uint8_t)fl_rng_below(r, 256);
  for (size_t b = 0; b < n_values / t->block; b++)
    for (size_t i = 0; i < n; i++) {
      uint16_t half = fl_f32_to_f16((float)fl_rng_normal(r) * 0.01f);
      memcpy(raw + b * t->bytes + at[i], &half, sizeof half);
    }
}

static matrix matrix_new(const fl_kernels *k, fl_team *team, fl_dtype type, size_t n_out,
                         size_t n_in, fl_rng *r) {
  const fl_dtype_traits *t = fl_dtype_get(type);
  matrix a = { .n_out = n_out, .n_in = n_in };
  size_t row = 0;
  ck_assert(fl_dtype_row_bytes(t, n_in, &row));
  uint8_t *raw = room(n_out, row);
  a.raw = raw;
  a.wide = room(n_out * n_in, sizeof *a.wide);
  random_rows(t, raw, n_out * n_in, r);
  t->dequantise(a.wide, raw, n_out * n_in);
  /* In three parts where there are rows for it, as q, k and v are. */
  size_t first = n_out / 3, second = n_out / 4;
  const void *data[] = { raw, raw + first * row, raw + (first + second) * row };
  size_t n[] = { first, second, n_out - first - second };
  ck_assert_int_eq(fl_panels_pack(&a.w, k, team, type, data, n, 3, n_in, NULL), FL_OK);
  ck_assert_uint_eq(fl_panels_n_out(a.w), n_out);
  ck_assert_uint_eq(fl_panels_n_in(a.w), n_in);
  ck_assert_int_eq(fl_panels_type(a.w), type);
  return a;
}

static void matrix_release(matrix *a) {
  fl_panels_free(a->w);
  fl_free(a->wide);
  fl_free(a->raw);
}

static void assert_same(const float *got, const float *want, size_t rows, size_t cols, size_t ld,
                        const char *what) {
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++)
      if (memcmp(got + r * ld + c, want + r * ld + c, sizeof *got) != 0)
        ck_abort_msg("%s: [%zu, %zu] is %a, want %a", what, r, c, (double)got[r * ld + c],
                     (double)want[r * ld + c]);
}

/* Whether the level's products are fused: what is left of a*a - round(a*a) is 0 when they are
 * not. */
static bool is_fused(const fl_kernels *k) {
  const float a = 1.0f + 0x1p-12f;
  float w[2] = { 1.0f, a }, x[2] = { -(a * a), a }, y[1] = { 0 };
  const void *data[] = { w };
  fl_panels *p = NULL;
  ck_assert_int_eq(fl_panels_pack(&p, k, NULL, FL_F32, data, (size_t[]){ 1 }, 1, 2, NULL), FL_OK);
  void *scratch = room(1, fl_matmul_scratch(p, NULL, 1));
  fl_matmul(p, NULL, y, 1, x, 2, 1, scratch);
  fl_free(scratch);
  fl_panels_free(p);
  return y[0] != 0.0f;
}

static const fl_dtype types[] = { FL_F32, FL_F16, FL_BF16, FL_Q8_0, FL_Q4_0, FL_Q4_1,
                                  FL_Q5_0, FL_Q5_1, FL_Q4_K, FL_Q5_K, FL_Q6_K };
enum { N_TYPES = sizeof types / sizeof *types };

static const struct shape {
  size_t m, n_out, n_in;
} shapes[] = {
  { 1, 1, 1 }, { 1, 37, 300 }, { 2, 200, 64 }, { 3, 16, 256 }, { 4, 129, 513 }, { 5, 48, 31 },
  { 6, 96, 96 }, { 7, 33, 520 }, { 8, 17, 1024 }, { 9, 64, 257 }, { 25, 70, 768 },
  { 200, 40, 100 }, { 390, 52, 70 }, { 13, 600, 33 }, { 3, 20, 4500 }, { 11, 35, 4400 },
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/* y and its twin, each between guards of one row and with a stride wider than the matrix. */
static void check_forward(const matrix *a, fl_team *team, size_t m, bool fused, fl_rng *r) {
  size_t ldx = a->n_in + 3, ldy = a->n_out + 5;
  float *x = normals(r, m * ldx), *y = normals(r, (m + 2) * ldy);
  float *want = room((m + 2) * ldy, sizeof *want);
  memcpy(want, y, (m + 2) * ldy * sizeof *y);
  void *scratch = room(1, fl_matmul_scratch(a->w, team, m));
  fl_matmul_ref(want + ldy, ldy, x, ldx, a->wide, m, a->n_out, a->n_in, fused);
  fl_matmul(a->w, team, y + ldy, ldy, x, ldx, m, scratch);
  assert_same(y, want, m + 2, ldy, ldy, "forward");
  fl_free(scratch);
  fl_free(want);
  fl_free(y);
  fl_free(x);
}

static void check_backward(const matrix *a, fl_team *team, size_t m, bool fused, bool add,
                           fl_rng *r) {
  size_t lddx = a->n_in + 7, lddy = a->n_out + 2;
  float *dy = normals(r, m * lddy), *dx = normals(r, (m + 2) * lddx);
  float *want = room((m + 2) * lddx, sizeof *want);
  memcpy(want, dx, (m + 2) * lddx * sizeof *dx);
  void *scratch = room(1, fl_matmul_scratch(a->w, team, m));
  fl_matmul_dx_ref(want + lddx, lddx, dy, lddy, a->wide, m, a->n_out, a->n_in, add, fused);
  fl_matmul_dx(a->w, team, dx + lddx, lddx, dy, lddy, m, add, scratch);
  assert_same(dx, want, m + 2, lddx, lddx, "backward");
  fl_free(scratch);
  fl_free(want);
  fl_free(dx);
  fl_free(dy);
}

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
      float *x = normals(&r, m * N_IN), *dy = normals(&r, m * N_OUT);
      float *y = room(m * N_OUT, sizeof *y), *part = room(m * N_OUT, sizeof *part);
      float *dx = room(m * N_IN, sizeof *dx), *sum = normals(&r, m * N_IN);
      fl_matmul(a.w, team, y, N_OUT, x, N_IN, m, scratch);
      for (size_t o = 0; o < N_OUT; o += width)
        fl_matmul_cols(a.w, team, part + o, N_OUT, x, N_IN, m, o,
                       N_OUT - o < width ? N_OUT - o : width, scratch);
      assert_same(part, y, m, N_OUT, N_OUT, "columns");
      fl_matmul_dx(a.w, team, dx, N_IN, dy, N_OUT, m, false, scratch);
      for (size_t o = 0; o < N_OUT; o += FL_KC)
        fl_matmul_dx_cols(a.w, team, sum, N_IN, dy + o, N_OUT, m, o,
                          N_OUT - o < FL_KC ? N_OUT - o : FL_KC, o > 0, scratch);
      assert_same(sum, dx, m, N_IN, N_IN, "blocks of dX");
      fl_free(sum);
      fl_free(dx);
      fl_free(part);
      fl_free(y);
      fl_free(dy);
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

/* --- micro-kernels of other machines ---------------------------------------------------------- */

/* BLIS picks its kernel for the machine, so the suite would only ever see one. These stand in for
 * the others: same signature, plain C, other shapes. */

enum { FUSED = 1, COLUMNS = 2 }; /* COLUMNS: the kernel prefers columns, its MR is the long side */

static const struct foreign {
  size_t mr, nr, packmr, packnr; /* as BLIS gives them */
  int flags;
} foreign[] = {
  { 6, 16, 6, 16, FUSED }, { 6, 16, 6, 16, 0 },            { 4, 8, 4, 8, 0 },
  { 8, 8, 8, 8, FUSED },   { 32, 12, 32, 12, FUSED | COLUMNS }, { 8, 12, 8, 12, FUSED },
  { 3, 16, 4, 20, FUSED }, { 16, 3, 16, 3, COLUMNS },      { 24, 16, 24, 16, FUSED | COLUMNS },
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
  other.ukr = (fl_ukr){ .fn = (void (*)(void))foreign_ukr, .cntx = f,
                        .mr = turned ? f->nr : f->mr, .nr = turned ? f->mr : f->nr,
                        .packmr = turned ? f->packnr : f->packmr,
                        .packnr = turned ? f->packmr : f->packnr, .transposed = turned,
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
  ck_assert_int_eq(fl_panels_pack(&p, fl_kernels_select(), team, FL_F32, rows,
                                  (size_t[]){ N_OUT }, 1, N_IN, NULL), FL_OK);
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
  tcase_add_loop_test(core, foreign_kernels, 0, N_ISAS * N_FOREIGN);
  tcase_add_loop_test(core, probe_tells, 0, N_ISAS);
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
