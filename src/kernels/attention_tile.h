/* attention_tile.h - the small product that attention is made of, forward and backward. Only
 * attention*_isa.c include it.
 *
 *     c[r][lane] = chain over k ascending of fma(a[r][k], B[k][lane], .) from c[r][lane] * keep[r]
 *
 * for up to RMAX rows at once, which is how often a load of B is used: that many rows stay in
 * registers over 32 lanes. A lane's chain does not depend on how many rows run beside it: the row
 * rule.
 */
#ifndef FL_KERNELS_ATTENTION_TILE_H
#define FL_KERNELS_ATTENTION_TILE_H

#include <stdbool.h>

#include "kernels/attention.h"
#include "kernels/simd_narrow.h"
#include "kernels/vmath.h"

enum {
  NV = FL_KV_ROWS / VF,
  /* 32 registers on AVX-512 and Arm, 16 elsewhere. */
  RMAX = VF == 16                 ? 6
         : VF == 8 || FL_SIMD_FMA ? 3
                                  : 1,
  ROWS_CAP = 6
};

/* Keeps a load of B in its register; gcc would load it again for every row. */
#if defined FL_SIMD_AVX512 || defined FL_SIMD_AVX2
#define TILE_PIN(y, rows)                                                                          \
  if (rows > 1) __asm__("" : "+v"(y))
#else
#define TILE_PIN(y, rows) (void)0
#endif

typedef struct tile {
  size_t rows;              /* 1..RMAX */
  float *c[ROWS_CAP];       /* a row's lanes */
  float keep[ROWS_CAP];     /* read when !fresh */
  bool fresh;               /* start from 0: c is only written */
  const float *a[ROWS_CAP]; /* a row's coefficient of k = 0 */
  size_t a_step;            /* from one k to the next */
  size_t k0, k1;
  const void *b;     /* B[0][0], f32 or f16 */
  size_t ldb;        /* elements from one k to the next */
  size_t lanes;      /* a multiple of 8 */
  const char *ahead; /* memory wanted next, as large as B */
} tile;

FL_VEC vf b_load(const void *b, bool f16, size_t i) {
  return f16 ? vf_load_f16((const uint16_t *)b + i) : vf_load((const float *)b + i);
}

/* Asks for the next block's memory at the pace at which this one is used: 32 values a step. Into
 * the second-level cache, as for weights (gemm_small_isa.c). */
FL_VEC void tile_ahead(const char *ahead, size_t step, bool f16) {
  __builtin_prefetch(ahead + step * (f16 ? 64 : 128), 0, 2);
  if (!f16) __builtin_prefetch(ahead + step * 128 + 64, 0, 2);
}

/* Lanes [first, first + 32). */
FL_VEC void tile_block(const tile *t, size_t first, int rows, bool f16, bool ahead) {
  vf acc[ROWS_CAP][NV];
  const float *a[ROWS_CAP];
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++) {
    a[r] = t->a[r];
#pragma GCC unroll 8
    for (int v = 0; v < NV; v++)
      acc[r][v] = t->fresh ? vf_zero() : vf_load(t->c[r] + first + v * VF) * t->keep[r];
  }
  const size_t step = t->a_step, ldb = t->ldb, end = t->k1;
  const void *b = t->b;
  for (size_t k = t->k0, ia = k * step, ib = k * ldb + first; k < end; k++, ia += step, ib += ldb) {
    vf x[ROWS_CAP];
    if (ahead) tile_ahead(t->ahead, first + k, f16);
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) x[r] = vf_set1(a[r][ia]);
#pragma GCC unroll 8
    for (int v = 0; v < NV; v++) {
      vf y = b_load(b, f16, ib + (size_t)v * VF);
      TILE_PIN(y, rows);
#pragma GCC unroll 6
      for (int r = 0; r < rows; r++) acc[r][v] = vf_fma(x[r], y, acc[r][v]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
    for (int v = 0; v < NV; v++) vf_store(t->c[r] + first + v * VF, acc[r][v]);
}

/* Lanes [first, first + m), m <= VF, of row r: the end of a head_dim that 32 does not divide. */
FL_VEC void tile_rest(const tile *t, size_t first, size_t m, size_t r, bool f16) {
  vf acc = t->fresh ? vf_zero() : vm_load(t->c[r] + first, m) * t->keep[r];
  for (size_t k = t->k0; k < t->k1; k++) {
    size_t at = k * t->ldb + first;
    uint16_t h[VF] = { 0 };
    if (f16) memcpy(h, (const uint16_t *)t->b + at, m * sizeof *h);
    vf y = f16 ? vf_load_f16(h) : vm_load((const float *)t->b + at, m);
    acc = vf_fma(vf_set1(t->a[r][k * t->a_step]), y, acc);
  }
  vm_store(t->c[r] + first, acc, m);
}

FL_VEC void tile_all(const tile *t, int rows, bool f16, bool ahead) {
  size_t d = 0;
  for (; t->lanes - d >= FL_KV_ROWS; d += FL_KV_ROWS) tile_block(t, d, rows, f16, ahead);
  for (; d < t->lanes; d += VF) {
    size_t m = t->lanes - d < VF ? t->lanes - d : VF;
    for (size_t r = 0; r < t->rows; r++) tile_rest(t, d, m, r, f16);
  }
}

FL_VEC void tile_switch(const tile *t, bool f16, bool ahead) {
  switch (t->rows) {
  case 1: tile_all(t, 1, f16, ahead); break;
  case 2: tile_all(t, 2, f16, ahead); break;
  case 3: tile_all(t, 3, f16, ahead); break;
#if VF == 16
  case 4: tile_all(t, 4, f16, ahead); break;
  case 5: tile_all(t, 5, f16, ahead); break;
  case 6: tile_all(t, 6, f16, ahead); break;
#endif
  default: break;
  }
}

static inline void tile_mul(const tile *t) { tile_switch(t, false, false); }
static inline void tile_mul_ahead(const tile *t) { tile_switch(t, false, true); }
static inline void tile_mul_f16(const tile *t) { tile_switch(t, true, true); }

/* How many of n rows to take at once: as even as RMAX allows. */
static inline size_t tile_step(size_t n) {
  size_t parts = (n + RMAX - 1) / RMAX;
  return parts ? (n + parts - 1) / parts : 1;
}

#endif
