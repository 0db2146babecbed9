/* transpose_isa.c - the transpose of a block of rows, one build per level. */
#include "kernels/transpose_isa.h"

#include <string.h>

#include "kernels/simd.h"
#include "kernels/table.h"

#if VF >= 8
/* Three rounds of exchanges between rows 1, 2 and 4 apart. */
typedef float vt __attribute__((vector_size(32)));
enum { T = 8 };

FL_VEC void transpose_block(size_t rows, float *out, size_t ldo, const float *in, size_t ldi) {
  vt a[8] = { 0 }, b[8];
#pragma GCC unroll 8
  for (size_t i = 0; i < rows; i++) memcpy(&a[i], in + i * ldi, sizeof a[i]);
#pragma GCC unroll 4
  for (size_t i = 0; i < 8; i += 2) {
    b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 2
  for (size_t h = 0; h < 8; h += 4)
#pragma GCC unroll 2
    for (size_t i = 0; i < 2; i++) {
      const vt lo = b[h + i], hi = b[h + i + 2];
      a[h + 2 * i] = __builtin_shufflevector(lo, hi, 0, 1, 8, 9, 4, 5, 12, 13);
      a[h + 2 * i + 1] = __builtin_shufflevector(lo, hi, 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; i++) {
    vt lo = __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    vt hi = __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    memcpy(out + i * ldo, &lo, rows * sizeof *out);
    memcpy(out + (i + 4) * ldo, &hi, rows * sizeof *out);
  }
}
#else
typedef float vt __attribute__((vector_size(16)));
enum { T = 4 };

FL_VEC void transpose_block(size_t rows, float *out, size_t ldo, const float *in, size_t ldi) {
  vt a[4] = { 0 }, b[4];
#pragma GCC unroll 4
  for (size_t i = 0; i < rows; i++) memcpy(&a[i], in + i * ldi, sizeof a[i]);
  b[0] = __builtin_shufflevector(a[0], a[1], 0, 4, 1, 5);
  b[1] = __builtin_shufflevector(a[0], a[1], 2, 6, 3, 7);
  b[2] = __builtin_shufflevector(a[2], a[3], 0, 4, 1, 5);
  b[3] = __builtin_shufflevector(a[2], a[3], 2, 6, 3, 7);
  a[0] = __builtin_shufflevector(b[0], b[2], 0, 1, 4, 5);
  a[1] = __builtin_shufflevector(b[0], b[2], 2, 3, 6, 7);
  a[2] = __builtin_shufflevector(b[1], b[3], 0, 1, 4, 5);
  a[3] = __builtin_shufflevector(b[1], b[3], 2, 3, 6, 7);
  for (size_t i = 0; i < 4; i++) memcpy(out + i * ldo, &a[i], rows * sizeof *out);
}
#endif

/* Blocks of `rows` rows, up to T and constant wherever this is inlined, by T columns. */
FL_VEC void transpose_rows(size_t rows, float *out, size_t ldo, const float *in, size_t ldi,
                           size_t n_cols) {
  const size_t whole = n_cols / T * T;
  for (size_t c = 0; c < whole; c += T) transpose_block(rows, out + c * ldo, ldo, in + c, ldi);
  for (size_t r = 0; r < rows && whole < n_cols; r++)
    for (size_t c = whole; c < n_cols; c++) out[c * ldo + r] = in[r * ldi + c];
}

static void transpose(float *out, size_t ldo, const float *in, size_t ldi, size_t n_rows,
                      size_t n_cols) {
  for (; n_rows >= T; n_rows -= T, in += T * ldi, out += T)
    transpose_rows(T, out, ldo, in, ldi, n_cols);
  /* Micro-kernels have tiles of 6 and 12 rows. */
  if (n_rows == T / 2) transpose_rows(T / 2, out, ldo, in, ldi, n_cols);
  else if (n_rows == T / 4 * 3) transpose_rows(T / 4 * 3, out, ldo, in, ldi, n_cols);
  else
    for (size_t r = 0; r < n_rows; r++)
      for (size_t c = 0; c < n_cols; c++) out[c * ldo + r] = in[r * ldi + c];
}

const struct fl_transpose_ops FL_ISA_TABLE(fl_transpose_ops) = { .transpose = transpose };
