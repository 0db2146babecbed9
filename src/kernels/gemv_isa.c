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

/* What turns the elements of one run of inputs into values: nothing but for Q8_0, whose blocks have
 * a scale per lane. `base` is where the run's elements begin, [inputs][nr]. */
typedef struct run {
  const uint8_t *base;
  size_t end; /* the run goes up to this input */
} run;

/* The run of a panel that begins at input k, which for Q8_0 may lie inside a block. */
FL_VEC run run_at(fl_dtype type, const uint8_t *panel, size_t nr, size_t k, size_t k1) {
  switch (type) {
  case FL_F32: return (run){ panel + k * nr * 4, k1 };
  case FL_F16:
  case FL_BF16: return (run){ panel + k * nr * 2, k1 };
  default: { /* Q8_0 */
    size_t block = k / FL_Q8_BLOCK, end = (block + 1) * FL_Q8_BLOCK;
    const uint8_t *at = panel + block * nr * (FL_Q8_BLOCK + 2);
    return (run){ at + 2 * nr + k % FL_Q8_BLOCK * nr, end < k1 ? end : k1 };
  }
  }
}

/* Lanes [g * VF, + VF) of the scales of the run at k. */
FL_VEC vf scale_at(fl_dtype type, const uint8_t *panel, size_t nr, size_t k, size_t g) {
  if (type != FL_Q8_0) return vf_zero();
  const uint8_t *at = panel + k / FL_Q8_BLOCK * nr * (FL_Q8_BLOCK + 2);
  return vf_load_f16((const uint16_t *)(const void *)at + g * VF);
}

FL_VEC size_t width_of(fl_dtype type) { return type == FL_F32 ? 4 : type == FL_Q8_0 ? 1 : 2; }

/* Elements [i, i + VF) of a run. */
FL_VEC vf element(fl_dtype type, const uint8_t *base, size_t i, vf scale) {
  switch (type) {
  case FL_F32: return vf_load((const float *)(const void *)base + i);
  case FL_F16: return vf_load_f16((const uint16_t *)(const void *)base + i);
  case FL_BF16: return vf_load_bf16((const uint16_t *)(const void *)base + i);
  default: return vf_load_i8((const int8_t *)base + i) * scale;
  }
}

static bool few_fits(size_t nr) { return nr == VF || nr == 2 * VF || nr == 4 * VF; }

/* --- widening ---------------------------------------------------------------------------------- */

/* type and G (vectors in a panel's width) are constants wherever this is inlined. */
FL_VEC void widen_width(fl_dtype type, size_t G, float *out, size_t ld, const uint8_t *panel,
                        size_t k0, size_t n) {
  const size_t nr = G * VF;
  for (size_t k = k0; k < k0 + n;) {
    run r = run_at(type, panel, nr, k, k0 + n);
    vf scale[4];
#pragma GCC unroll 4
    for (size_t g = 0; g < G; g++) scale[g] = scale_at(type, panel, nr, k, g);
    for (const uint8_t *base = r.base; k < r.end; k++, base += nr * width_of(type), out += ld)
#pragma GCC unroll 4
      for (size_t g = 0; g < G; g++)
        vf_store(out + g * VF, element(type, base, g * VF, scale[g]));
  }
}

FL_VEC void widen_native(fl_dtype type, float *out, size_t ld, const uint8_t *panel, size_t nr,
                         size_t k0, size_t n) {
  switch (nr / VF) {
  case 1: widen_width(type, 1, out, ld, panel, k0, n); break;
  case 2: widen_width(type, 2, out, ld, panel, k0, n); break;
  default: widen_width(type, 4, out, ld, panel, k0, n); break;
  }
}

/* Other widths: lane by lane. */
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
  } else if (!few_fits(w->nr)) {
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

#if VF >= 8
/* Three rounds of exchanges between rows 1, 2 and 4 apart. */
typedef float vt __attribute__((vector_size(32)));
enum { T = 8 };

FL_VEC void transpose_block(float *out, size_t ldo, const float *in, size_t ldi) {
  vt a[8], b[8];
#pragma GCC unroll 8
  for (size_t i = 0; i < 8; i++) memcpy(&a[i], in + i * ldi, sizeof a[i]);
#pragma GCC unroll 4
  for (size_t i = 0; i < 8; i += 2) {
    b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 4
  for (size_t i = 0; i < 8; i += i % 4 == 1 ? 3 : 1) {
    a[i] = __builtin_shufflevector(b[i], b[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    a[i + 2] = __builtin_shufflevector(b[i], b[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
  }
  const size_t from[4] = { 0, 2, 1, 3 };
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; i++) {
    vt lo = __builtin_shufflevector(a[from[i]], a[from[i] + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    vt hi = __builtin_shufflevector(a[from[i]], a[from[i] + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    memcpy(out + i * ldo, &lo, sizeof lo);
    memcpy(out + (i + 4) * ldo, &hi, sizeof hi);
  }
}
#else
typedef float vt __attribute__((vector_size(16)));
enum { T = 4 };

FL_VEC void transpose_block(float *out, size_t ldo, const float *in, size_t ldi) {
  vt a[4], b[4];
  for (size_t i = 0; i < 4; i++) memcpy(&a[i], in + i * ldi, sizeof a[i]);
  b[0] = __builtin_shufflevector(a[0], a[1], 0, 4, 1, 5);
  b[1] = __builtin_shufflevector(a[0], a[1], 2, 6, 3, 7);
  b[2] = __builtin_shufflevector(a[2], a[3], 0, 4, 1, 5);
  b[3] = __builtin_shufflevector(a[2], a[3], 2, 6, 3, 7);
  a[0] = __builtin_shufflevector(b[0], b[2], 0, 1, 4, 5);
  a[1] = __builtin_shufflevector(b[0], b[2], 2, 3, 6, 7);
  a[2] = __builtin_shufflevector(b[1], b[3], 0, 1, 4, 5);
  a[3] = __builtin_shufflevector(b[1], b[3], 2, 3, 6, 7);
  for (size_t i = 0; i < 4; i++) memcpy(out + i * ldo, &a[i], sizeof a[i]);
}
#endif

static void transpose(float *out, size_t ldo, const float *in, size_t ldi, size_t n_rows,
                      size_t n_cols) {
  size_t whole_r = n_rows / T * T, whole_c = n_cols / T * T;
  for (size_t r = 0; r < whole_r; r += T)
    for (size_t c = 0; c < whole_c; c += T)
      transpose_block(out + c * ldo + r, ldo, in + r * ldi + c, ldi);
  for (size_t r = 0; r < n_rows; r++)
    for (size_t c = r < whole_r ? whole_c : 0; c < n_cols; c++) out[c * ldo + r] = in[r * ldi + c];
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

enum { CHAINS = 20 }; /* R * P * G at most */

/* R, P, G and type are constants wherever this is inlined; nr = G * VF. */
FL_VEC void few_block(fl_dtype type, size_t R, size_t P, size_t G, const block *b) {
  vf acc[CHAINS];
  const size_t nr = G * VF;
#pragma GCC unroll 16
  for (size_t i = 0; i < R * P * G; i++) acc[i] = vf_zero();
  for (size_t k = b->k0; k < b->k1;) {
    const run span = run_at(type, b->panel, nr, k, b->k1);
    vf scale[CHAINS];
#pragma GCC unroll 16
    for (size_t i = 0; i < P * G; i++)
      scale[i] = scale_at(type, b->panel + i / G * b->stride, nr, k, i % G);
    for (const uint8_t *base = span.base; k < span.end; k++, base += nr * width_of(type)) {
#pragma GCC unroll 16
      for (size_t i = 0; i < P * G; i++) {
        vf v = element(type, base + i / G * b->stride, i % G * VF, scale[i]);
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

/* Panels in flight for R rows of vectors G to a panel: as many chains as hide a multiply-add's
 * latency and no more than there are registers for. A rest of fewer panels goes one by one. */
FL_VEC size_t panels_in_flight(size_t R, size_t G) {
  size_t p = R == 3 ? 4 / G : 8 / (R * G);
  return p == 0 ? 1 : p;
}

/* Rows of one pass over a k-block; more rows go over it again, from the first-level cache. */
FL_VEC size_t rows_at_once(size_t G) { return G == 4 ? 3 : 5; }

FL_VEC void few_by_rows(fl_dtype type, size_t R, bool one, size_t G, const block *b) {
  switch (R) {
  case 1:
    if (one) few_block(type, 1, 1, G, b);
    else few_block(type, 1, panels_in_flight(1, G), G, b);
    break;
  case 2:
    if (one) few_block(type, 2, 1, G, b);
    else few_block(type, 2, panels_in_flight(2, G), G, b);
    break;
  case 3:
    if (one) few_block(type, 3, 1, G, b);
    else few_block(type, 3, panels_in_flight(3, G), G, b);
    break;
  case 4: few_block(type, 4, 1, G, b); break;
  default: few_block(type, 5, 1, G, b); break;
  }
}

FL_VEC void few_by_width(fl_dtype type, size_t R, size_t P, size_t G, const block *b) {
  switch (G) {
  case 1: few_by_rows(type, R, P == 1, 1, b); break;
  case 2: few_by_rows(type, R, P == 1, 2, b); break;
  default: few_by_rows(type, R, P == 1, 4, b); break;
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

/* Rows of the next pass when `left` are left: evenly, 7 is 4 + 3. */
static size_t pass_rows(size_t left, size_t G) {
  size_t most = rows_at_once(G), passes = (left + most - 1) / most;
  return (left + passes - 1) / passes;
}

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
    for (size_t r = 0; r < f->m;) {
      b.x = f->x + r * f->ldx + (w->raw ? k0 : 0);
      b.y = y + r * ldy;
      size_t rows = pass_rows(f->m - r, w->nr / VF);
      fn(rows, n, w->nr / VF, &b);
      r += rows;
    }
  }
}

static void few(const fl_few *f, size_t p0, size_t p1, float *buf) {
  float y[FL_FEW_ROWS * FL_FEW_LANES];
  const size_t nr = f->w->nr;
  /* Passes of up to three rows are all alike (pass_rows), those of more take one panel. */
  size_t rows = pass_rows(f->m, nr / VF), in_flight = rows > 3 ? 1 : panels_in_flight(rows, nr / VF);
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

const struct fl_gemv_ops FL_ISA_TABLE(fl_gemv_ops) = {
  .fused = FL_SIMD_FMA,
  .lanes = VF,
  .widen = widen,
  .transpose = transpose,
  .few_fits = few_fits,
  .few = few,
};
