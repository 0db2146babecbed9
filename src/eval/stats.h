/* stats.h - bootstrap intervals (Efron, "Bootstrap methods", 1979), paired by drawing the same
 * questions for every arm. */
#ifndef FL_EVAL_STATS_H
#define FL_EVAL_STATS_H

#include <stddef.h>

/* sums [n_resamples, n_cols] = for every resample the sum of n rows of x [n, n_cols], drawn with
 * replacement: draw i of resample k is number i of the random stream (seed 0, FL_RNG_TEST, document
 * 3, round k), below n. */
void eval_resample(double *sums, size_t n_resamples, const double *x, size_t n, size_t n_cols);

/* The middle 95 % of v[0..n), n >= 40; v is sorted by the call. *low is the value after the lowest
 * floor(n * 0.025), *high the one before as many highest. */
void eval_middle95(double *v, size_t n, double *low, double *high);

#endif
