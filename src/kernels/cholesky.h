/* cholesky.h - symmetric positive definite systems in double: A = L . L^T, then A . X = B.
 *
 * Blocks of FL_CHOL_BLOCK columns, right-looking: each element takes its blocks' contributions in
 * ascending order, a block's in ascending order of its columns, multiplied and subtracted without
 * fma. So the bits depend on n alone, not on the threads nor the level. (Golub & Van Loan, Matrix
 * Computations, 4.2.)
 */
#ifndef FL_KERNELS_CHOLESKY_H
#define FL_KERNELS_CHOLESKY_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/kernels.h"

enum { FL_CHOL_BLOCK = 64, FL_CHOL_LANES = 8 };

/* Doubles of scratch for either call with this team. */
size_t fl_cholesky_scratch(size_t n, size_t n_rhs, const fl_team *team);

/* a [n, n], of which the lower triangle is read, becomes L there; above it nothing is touched.
 * False where a pivot is not positive: A is not positive definite to working precision. */
bool fl_cholesky(const fl_kernels *k, fl_team *team, double *a, size_t n, double *scratch);
/* b [n, n_rhs] = the solution of L . L^T . x = b. */
void fl_cholesky_solve(const fl_kernels *k, fl_team *team, const double *l, size_t n, double *b,
                       size_t n_rhs, double *scratch);

#endif
