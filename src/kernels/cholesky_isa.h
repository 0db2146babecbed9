/* cholesky_isa.h - the product within a factorisation, of one instruction-set level. Private to
 * this folder. */
#ifndef FL_KERNELS_CHOLESKY_ISA_H
#define FL_KERNELS_CHOLESKY_ISA_H

#include <stddef.h>

#include "kernels/cholesky.h"

struct fl_cholesky_ops {
  /* c [m, FL_CHOL_LANES] (row stride ldc) -= a [m, k] (row stride lda) . b [k, FL_CHOL_LANES] */
  void (*update)(double *c, size_t ldc, const double *a, size_t lda, const double *b, size_t m,
                 size_t k);
};

#endif
