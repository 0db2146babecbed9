/* gemv_isa.c - widening of panels and the product with few rows, one build per level.
 *
 * Few rows: the product is bound by the bandwidth of reading the panels. P panels of G vectors and R
 * rows are in flight, R * P * G independent chains, enough to hide the latency of the fused
 * multiply-add. Per output the arithmetic is that of the micro-kernel: within a k-block a chain from
 * 0 in ascending k, blocks added in ascending order.
 */
#include "kernels/gemv_isa.h"

#include <stdbool.h>

#include "kernels/simd.h"

/* VF lanes [g * VF, ...) of input k. `scale` is used by Q8_0 alone. */
FL_VEC vf step(fl_dtype type, const uint8_t *base, size_t nr, size_t k, size_t g, const vf scale) {
  switch (type) {
  case FL_F32:
    return vf_load((const float *)(const void *)base + k * nr + g * VF);
  case FL_F16:
    return vf_load_f16((const uint16_t *)(const void *)base + k * nr + g * VF);
  case FL_BF16:
    return vf_load_bf16((const uint16_t *)(const void *)base + k * nr + g * VF);
  default: { /* Q8_0 */
    const uint8_t *block = base + (k / FL_Q8_BLOCK) * nr * (FL_Q8_BLOCK + 2);
    const int8_t *q = (const int8_t *)(block + 2 * nr) + (k % FL_Q8_BLOCK) * nr + g * VF;
    return vf_load_i8(q) * scale;
  }
  }
}

FL_VEC vf scale_of(fl_dtype type, const uint8_t *base, size_t nr, size_t k, size_t g) {
  if (type != FL_Q8_0) return vf_zero();
  const uint8_t *block = base + (k / FL_Q8_BLOCK) * nr * (FL_Q8_BLOCK + 2);
  return vf_load_f16((const uint16_t *)(const void *)block + g * VF);
}

/* --- widening ---------------------------------------------------------------------------------- */

FL_VEC void widen_native(fl_dtype type, float *out, size_t ld, const uint8_t *base, size_t nr,
                         size_t k0, size_t n) {
  for (size_t k = k0; k < k0 + n;) {
    size_t end = type == FL_Q8_0 ? (k / FL_Q8_BLOCK + 1) * FL_Q8_BLOCK : k0 + n;
    if (end > k0 + n) end = k0 + n;
    for (size_t g = 0; g < nr / VF; g++) {
      vf s = scale_of(type, base, nr, k, g);
      for (size_t i = k; i < end; i++)
        vf_store(out + (i - k0) * ld + g * VF, step(type, base, nr, i, g, s));
    }
    k = end;
  }
}

/* Widths that are no multiple of VF: lane by lane, through the type's own conversion. */
static void widen_lanes(const fl_panels *w, float *out, size_t ld, size_t panel, size_t k0,
                        size_t n) {
  for (size_t k = k0; k < k0 + n; k++)
    for (size_t l = 0; l < w->nr; l++) out[(k - k0) * ld + l] = fl_panel_value(w, panel, k, l);
}

static void widen_raw(const fl_panels *w, float *out, size_t ld, const uint8_t *base, size_t k0,
                      size_t n) {
  float piece[FL_KC];
  for (size_t k = k0; k < k0 + n;) {
    size_t first = k / FL_KC * FL_KC;
    size_t len = w->n_in - first < FL_KC ? w->n_in - first : FL_KC;
    size_t end = first + len < k0 + n ? first + len : k0 + n;
    size_t bytes = len / w->traits->block * w->traits->bytes;
    const uint8_t *at = base + first / w->traits->block * w->traits->bytes * w->nr;
    for (size_t l = 0; l < w->nr; l++) {
      w->traits->dequantise(piece, at + l * bytes, len);
      for (size_t i = k; i < end; i++) out[(i - k0) * ld + l] = piece[i - first];
    }
    k = end;
  }
}

static void widen(const fl_panels *w, float *out, size_t ld, size_t panel, size_t k0, size_t n) {
  const uint8_t *base = fl_panel_base(w, panel);
  if (w->raw) {
    widen_raw(w, out, ld, base, k0, n);
  } else if (w->nr % VF != 0) {
    widen_lanes(w, out, ld, panel, k0, n);
  } else {
    switch (w->traits->type) {
    case FL_F32: widen_native(FL_F32, out, ld, base, w->nr, k0, n); break;
    case FL_F16: widen_native(FL_F16, out, ld, base, w->nr, k0, n); break;
    case FL_BF16: widen_native(FL_BF16, out, ld, base, w->nr, k0, n); break;
    default: widen_native(FL_Q8_0, out, ld, base, w->nr, k0, n); break;
    }
  }
}

/* --- transposition ------------------------------------------------------------------------------ */

typedef float v4 __attribute__((vector_size(16)));

FL_VEC v4 v4_load(const float *p) {
  v4 v;
  memcpy(&v, p, sizeof v);
  return v;
}

FL_VEC void transpose_4x4(float *out, size_t ldo, const float *in, size_t ldi) {
  v4 a = v4_load(in), b = v4_load(in + ldi), c = v4_load(in + 2 * ldi), d = v4_load(in + 3 * ldi);
  v4 ab_lo = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  v4 ab_hi = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  v4 cd_lo = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  v4 cd_hi = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  v4 row[4] = {
    __builtin_shufflevector(ab_lo, cd_lo, 0, 1, 4, 5),
    __builtin_shufflevector(ab_lo, cd_lo, 2, 3, 6, 7),
    __builtin_shufflevector(ab_hi, cd_hi, 0, 1, 4, 5),
    __builtin_shufflevector(ab_hi, cd_hi, 2, 3, 6, 7),
  };
  for (size_t i = 0; i < 4; i++) memcpy(out + i * ldo, &row[i], sizeof row[i]);
}

static void transpose(float *out, size_t ldo, const float *in, size_t ldi, size_t n_rows,
                      size_t n_cols) {
  size_t r4 = n_rows / 4 * 4, c4 = n_cols / 4 * 4;
  for (size_t r = 0; r < r4; r += 4)
    for (size_t c = 0; c < c4; c += 4) transpose_4x4(out + c * ldo + r, ldo, in + r * ldi + c, ldi);
  for (size_t r = 0; r < n_rows; r++)
    for (size_t c = r < r4 ? c4 : 0; c < n_cols; c++) out[c * ldo + r] = in[r * ldi + c];
}

/* --- few rows ----------------------------------------------------------------------------------- */

/* One k-block of some panels and rows. */
typedef struct block {
  const uint8_t *panel; /* the first panel's base; k counts from it */
  size_t stride;        /* bytes from panel to panel */
  size_t k0, k1;
  const float *x; /* [R], stride ldx: the values that meet k = 0, 1, ... */
  size_t ldx;
  float *y; /* [R][P * nr], stride ldy */
  size_t ldy;
  bool add; /* y += instead of = */
} block;

enum { CHAINS = 16 }; /* R * P * G at most */

/* R, P, G and type are constants wherever this is inlined; nr = G * VF. */
FL_VEC void few_block(fl_dtype type, size_t R, size_t P, size_t G, const block *b) {
  vf acc[CHAINS];
  const size_t nr = G * VF;
#pragma GCC unroll 16
  for (size_t i = 0; i < R * P * G; i++) acc[i] = vf_zero();
  for (size_t k = b->k0; k < b->k1;) {
    size_t end = type == FL_Q8_0 && k + FL_Q8_BLOCK < b->k1 ? k + FL_Q8_BLOCK : b->k1;
    vf scale[CHAINS];
#pragma GCC unroll 16
    for (size_t i = 0; i < P * G; i++)
      scale[i] = scale_of(type, b->panel + i / G * b->stride, nr, k, i % G);
    for (; k < end; k++) {
#pragma GCC unroll 16
      for (size_t i = 0; i < P * G; i++) {
        vf v = step(type, b->panel + i / G * b->stride, nr, k, i % G, scale[i]);
#pragma GCC unroll 8
        for (size_t r = 0; r < R; r++)
          acc[r * P * G + i] = vf_fma(vf_set1(b->x[r * b->ldx + k]), v, acc[r * P * G + i]);
      }
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < R; r++)
#pragma GCC unroll 16
    for (size_t i = 0; i < P * G; i++) {
      float *y = b->y + r * b->ldy + i * VF;
      vf_store(y, b->add ? vf_load(y) + acc[r * P * G + i] : acc[r * P * G + i]);
    }
}

/* Panels in flight for R rows (a group shorter than that goes one by one). */
FL_VEC size_t panels_in_flight(size_t R, size_t G) {
  size_t p = 8 / (R * G);
  return R > 2 || p == 0 ? 1 : p;
}

FL_VEC void few_by_rows(fl_dtype type, size_t R, size_t P, size_t G, const block *b) {
  const bool one = P == 1;
  switch (R) {
  case 1: one ? few_block(type, 1, 1, G, b) : few_block(type, 1, panels_in_flight(1, G), G, b); break;
  case 2: one ? few_block(type, 2, 1, G, b) : few_block(type, 2, panels_in_flight(2, G), G, b); break;
  case 3: few_block(type, 3, 1, G, b); break;
  default: few_block(type, 4, 1, G, b); break;
  }
}

FL_VEC void few_by_width(fl_dtype type, size_t R, size_t P, size_t G, const block *b) {
  switch (G) {
  case 1: few_by_rows(type, R, P, 1, b); break;
  case 2: few_by_rows(type, R, P, 2, b); break;
  default: few_by_rows(type, R, P, 4, b); break;
  }
}

typedef void block_fn(size_t R, size_t P, size_t G, const block *b);
static void few_f32(size_t R, size_t P, size_t G, const block *b) {
  few_by_width(FL_F32, R, P, G, b);
}
static void few_f16(size_t R, size_t P, size_t G, const block *b) {
  few_by_width(FL_F16, R, P, G, b);
}
static void few_bf16(size_t R, size_t P, size_t G, const block *b) {
  few_by_width(FL_BF16, R, P, G, b);
}
static void few_q8_0(size_t R, size_t P, size_t G, const block *b) {
  few_by_width(FL_Q8_0, R, P, G, b);
}

static block_fn *block_of(const fl_panels *w) {
  switch (w->traits->type) {
  case FL_F16: return few_f16;
  case FL_BF16: return few_bf16;
  case FL_Q8_0: return few_q8_0;
  default: return few_f32; /* raw panels are widened first */
  }
}

enum { ROWS_AT_ONCE = 4 };

/* Panels [p, p + n) of all rows: y [m][n * nr]. */
static void few_group(const fl_few *f, size_t p, size_t n, float *y, size_t ldy, float *buf) {
  const fl_panels *w = f->w;
  block_fn *fn = block_of(w);
  for (size_t k0 = 0; k0 < w->n_in; k0 += FL_KC) {
    size_t len = w->n_in - k0 < FL_KC ? w->n_in - k0 : FL_KC;
    block b = { .panel = fl_panel_base(w, p), .stride = w->panel_bytes, .k0 = k0, .k1 = k0 + len,
                .ldx = f->ldx, .ldy = ldy, .add = k0 > 0 };
    if (w->raw) {
      for (size_t i = 0; i < n; i++) widen(w, buf + i * FL_KC * w->nr, w->nr, p + i, k0, len);
      b.panel = (const uint8_t *)buf;
      b.stride = FL_KC * w->nr * sizeof *buf;
      b.k0 = 0;
      b.k1 = len;
    }
    for (size_t r = 0; r < f->m; r += ROWS_AT_ONCE) {
      b.x = f->x + r * f->ldx + (w->raw ? k0 : 0);
      b.y = y + r * ldy;
      fn(f->m - r < ROWS_AT_ONCE ? f->m - r : ROWS_AT_ONCE, n, w->nr / VF, &b);
    }
  }
}

static void few(const fl_few *f, size_t p0, size_t p1, float *buf) {
  float y[FL_FEW_ROWS * FL_FEW_LANES];
  const size_t nr = f->w->nr;
  size_t in_flight = panels_in_flight(f->m, nr / VF);
  for (size_t p = p0; p < p1;) {
    size_t n = p1 - p < in_flight ? 1 : in_flight;
    few_group(f, p, n, y, n * nr, buf);
    size_t o = p * nr, end = (p + n) * nr;
    if (end > f->out0 + f->n) end = f->out0 + f->n;
    for (size_t r = 0; r < f->m; r++)
      memcpy(f->y + r * f->ldy + (o - f->out0), y + r * n * nr, (end - o) * sizeof *y);
    p += n;
  }
}

static bool few_fits(size_t nr) { return nr == VF || nr == 2 * VF || nr == 4 * VF; }

const struct fl_gemv_ops FL_ISA_TABLE(fl_gemv_ops) = {
  .fused = FL_SIMD_FMA,
  .lanes = VF,
  .widen = widen,
  .transpose = transpose,
  .few_fits = few_fits,
  .few = few,
};
