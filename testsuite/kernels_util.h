/* kernels_util.h - what the tests of kernels share: levels of the machine, random rows, ulps. */
#ifndef FL_TESTSUITE_KERNELS_UTIL_H
#define FL_TESTSUITE_KERNELS_UTIL_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kernels/kernels.h"
#include "suite.h"

static const char *const isas[] = { "ref", "v2", "v3", "v4", "neon" };
enum { N_ISAS = sizeof isas / sizeof *isas };
static const double UNIT = 0x1p-24; /* half an ulp of 1: the relative error of one f32 rounding */

/* NULL where the machine does not have the level; with FLOTILLA_BRIEF, where it is neither the
 * plain one nor the one that the machine would use. */
static inline const fl_kernels *level(int i) {
  unsetenv("FLOTILLA_ISA");
  const fl_kernels *native = fl_kernels_select();
  if (getenv("FLOTILLA_BRIEF") && i != 0 && strcmp(fl_kernels_isa(native), isas[i]) != 0)
    return NULL;
  setenv("FLOTILLA_ISA", isas[i], 1);
  const fl_kernels *k = fl_kernels_select();
  return strcmp(fl_kernels_isa(k), isas[i]) == 0 ? k : NULL;
}

static inline void *room(size_t n, size_t size) {
  void *p = fl_aligned_calloc(n ? n : 1, size);
  ck_assert_ptr_nonnull(p);
  return p;
}

static inline float *normals(fl_rng *r, size_t n) {
  float *x = room(n, sizeof *x);
  for (size_t i = 0; i < n; i++) x[i] = (float)fl_rng_normal(r);
  return x;
}

static inline fl_rng stream(uint32_t which) { return fl_rng_stream(11, FL_RNG_TEST, which, 0, 0); }

static inline bool same_bits(const float *a, const float *b, size_t n) {
  return memcmp(a, b, n * sizeof *a) == 0;
}

/* |got - want| in units of the last place of want as an f32 (subnormal spacing at the bottom). */
static inline double ulps(float got, double want) {
  int e;
  frexp(want, &e);
  return fabs((double)got - want) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

#define ck_near(got, want, tol)                                                                    \
  do {                                                                                             \
    double got_ = (got), want_ = (want), tol_ = (tol);                                             \
    ck_assert_msg(fabs(got_ - want_) <= tol_, "%s:%d: %.9g instead of %.9g, off by %.3g > %.3g",   \
                  __FILE__, __LINE__, got_, want_, fabs(got_ - want_), tol_);                      \
  } while (0)

#endif
