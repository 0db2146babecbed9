/* stats.c - see stats.h. */
#include "eval/stats.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/rng.h"

void eval_resample(double *sums, size_t n_resamples, const double *x, size_t n, size_t n_cols) {
  for (size_t k = 0; k < n_resamples; k++) {
    fl_rng rng = fl_rng_stream(0, FL_RNG_TEST, 3, (uint32_t)k, 0);
    double *sum = sums + k * n_cols;
    for (size_t c = 0; c < n_cols; c++) sum[c] = 0;
    for (size_t i = 0; i < n; i++) {
      const double *row = x + (size_t)fl_rng_below(&rng, n) * n_cols;
      for (size_t c = 0; c < n_cols; c++) sum[c] += row[c];
    }
  }
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void eval_middle95(double *v, size_t n, double *low, double *high) {
  qsort(v, n, sizeof *v, ascending);
  size_t cut = n * 25 / 1000;
  *low = v[cut];
  *high = v[n - 1 - cut];
}
