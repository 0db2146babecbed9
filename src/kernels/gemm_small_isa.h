/* gemm_small_isa.h - the product with few rows. Private to this folder. */
#ifndef FL_KERNELS_GEMM_SMALL_ISA_H
#define FL_KERNELS_GEMM_SMALL_ISA_H

#include "kernels/panel.h"

enum {
  FL_SMALL_ROWS = 128,     /* the most rows of a call */
  FL_SMALL_LANES = 8 * 16, /* outputs in flight at most */
  FL_SMALL_BUF = FL_KC * FL_SMALL_LANES
};

/* One product with few rows. */
typedef struct fl_gemm_small {
  const fl_panels *w;
  const float *x; /* [m, n_in], stride ldx */
  size_t ldx, m;  /* 1 <= m <= FL_SMALL_ROWS */
  float *y;       /* y[r * ldy + o - out0] for outputs o in [out0, out0 + n) */
  size_t ldy, out0, n;
} fl_gemm_small;

struct fl_gemm_small_ops {
  /* Whether there is a route for panels of this width. */
  bool (*fits)(size_t nr);
  /* Whether it is faster than BLIS's micro-kernel of this width for any number of rows: the level
   * has longer vectors than that kernel uses. */
  bool (*is_faster)(size_t nr);
  /* c [m, nr] (+)= x [m, k] . b, b [k][nr] as dequantised; nr fits, k <= FL_KC. */
  void (*f32_panel)(size_t m, size_t k, const float *x, size_t ldx, const float *b, size_t nr,
                    float *c, size_t ldc, bool add);
  /* Outputs of panels [p0, p1). buf: FL_SMALL_BUF floats. */
  void (*run)(const fl_gemm_small *f, size_t p0, size_t p1, float *buf);
  /* Panels of a call with m rows: as many as are in flight; fewer are slower. */
  size_t (*grain)(size_t m);
};

#endif
