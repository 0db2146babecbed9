/* cholesky_isa.c - compiled once per instruction-set level. */
#include "kernels/cholesky_isa.h"

#include <string.h>

#include "kernels/table.h"

typedef double vd __attribute__((vector_size(32)));
enum { VD = 4, ROWS = 4, HALVES = FL_CHOL_LANES / VD };

/* `rows` is a constant where this is called, so that the sums stay in registers. */
static inline __attribute__((always_inline)) void tile(double *c, size_t ldc, const double *a,
                                                       size_t lda, const double *b, size_t rows,
                                                       size_t k) {
  vd sum[ROWS][HALVES];
  for (size_t r = 0; r < rows; r++) memcpy(sum[r], c + r * ldc, sizeof sum[r]);
  for (size_t i = 0; i < k; i++) {
    vd y[HALVES];
    memcpy(y, b + i * FL_CHOL_LANES, sizeof y);
    for (size_t r = 0; r < rows; r++)
      for (size_t h = 0; h < HALVES; h++) sum[r][h] -= a[r * lda + i] * y[h];
  }
  for (size_t r = 0; r < rows; r++) memcpy(c + r * ldc, sum[r], sizeof sum[r]);
}

static void update(double *c, size_t ldc, const double *a, size_t lda, const double *b, size_t m,
                   size_t k) {
  size_t r = 0;
  for (; r + ROWS <= m; r += ROWS) tile(c + r * ldc, ldc, a + r * lda, lda, b, ROWS, k);
  for (; r < m; r++) tile(c + r * ldc, ldc, a + r * lda, lda, b, 1, k);
}

extern const struct fl_cholesky_ops FL_ISA_TABLE(fl_cholesky_ops);
const struct fl_cholesky_ops FL_ISA_TABLE(fl_cholesky_ops) = { .update = update };
