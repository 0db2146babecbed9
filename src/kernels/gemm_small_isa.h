/* gemm_small_isa.h - the loops over panels that are compiled per instruction-set level: widening to
 * f32 and the product with few rows. Private to this folder.
 */
#ifndef FL_KERNELS_GEMM_SMALL_ISA_H
#define FL_KERNELS_GEMM_SMALL_ISA_H

#include "kernels/panel.h"

enum {
  FL_SMALL_ROWS = 128,     /* the most rows of a call of `few` */
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
  /* out [n][ld] = inputs [k0, k0 + n) of a panel; ld >= nr. k0 and, unless the range ends at n_in,
   * n are multiples of 32. */
  void (*widen)(const fl_panels *w, float *out, size_t ld, size_t panel, size_t k0, size_t n);
  /* out [n_cols][ldo] = transpose of in [n_rows][ldi] */
  void (*transpose)(float *out, size_t ldo, const float *in, size_t ldi, size_t n_rows,
                    size_t n_cols);
  /* Whether `few` has a route for panels of this width. */
  bool (*few_fits)(size_t nr);
  /* Whether it is faster than BLIS's micro-kernel of this width for any number of rows: the level
   * has longer vectors than that kernel uses. */
  bool (*few_is_faster)(size_t nr);
  /* c [m, nr] (+)= x [m, k] . b, b [k][nr] as widened; nr fits, k <= FL_KC. */
  void (*few_widened)(size_t m, size_t k, const float *x, size_t ldx, const float *b, size_t nr,
                      float *c, size_t ldc, bool add);
  /* Outputs of panels [p0, p1). buf: FL_SMALL_BUF floats. */
  void (*few)(const fl_gemm_small *f, size_t p0, size_t p1, float *buf);
  /* Panels of a call with m rows: `few` has as many in flight and is slower with fewer. */
  size_t (*few_grain)(size_t m);
};

#endif
