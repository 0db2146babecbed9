/* matmul_util.h - matrices of every type, and products with them beside their plain twins, for the
 * tests of both. */
#ifndef FL_TESTSUITE_MATMUL_UTIL_H
#define FL_TESTSUITE_MATMUL_UTIL_H

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

#endif
