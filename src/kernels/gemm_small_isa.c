/* gemm_small_isa.c - widening of panels and the product with few rows, one build per level.
 *
 * Few rows: the product is bound by the bandwidth of reading the panels. P panels of G vectors and
 * R rows are in flight, R * P * G independent chains, enough to hide the latency of the fused
 * multiply-add. Per output the arithmetic is that of the micro-kernel: within a k-block a chain
 * from 0 in ascending k, blocks added in ascending order.
 */
#include "kernels/gemm_small_isa.h"

#include <stdbool.h>

#include "kernels/mapped_isa.h"
#include "kernels/panel_read.h"

/* Widths that the vector loops know, those of BLIS's kernels for machines of the level; whole
 * vectors and multiples of 8. Others go lane by lane. */
enum { NARROW = VF == 4 ? 8 : 16, WIDE = 2 * NARROW };

static bool fits(size_t nr) { return nr == NARROW || nr == WIDE; }

/* BLIS's kernels for AVX-512 have wide panels; a narrow one is made for AVX2. */
static bool is_faster(size_t nr) { return VF == 16 && nr == NARROW; }

/* --- widening --------------------------------------------------------------------------------- */

/* kind and G (vectors in a panel's width) are constants wherever this is inlined. */
FL_VEC void widen_width(fl_panel_kind kind, const fl_panel_format *f, size_t G, float *out,
                        size_t ld, const uint8_t *panel, size_t k0, size_t n) {
  const size_t nr = G * VF;
  for (size_t k = k0; k < k0 + n;) {
    const run r = run_at(kind, f, panel, nr, k, k0 + n);
    affine a[4];
#pragma GCC unroll 4
    for (size_t g = 0; g < G; g++) a[g] = affine_at(kind, f, panel, nr, k, g * VF);
    for (size_t i = 0; i < r.n; i += step_of(kind))
#pragma GCC unroll 8
      for (size_t u = 0; u < step_of(kind); u++, out += ld)
#pragma GCC unroll 4
        for (size_t g = 0; g < G; g++)
          vf_store(out + g * VF, value_at(kind, r.base, nr, r.i + i, u, g * VF, a[g]));
    k += r.n;
  }
}

FL_VEC void widen_kind(fl_panel_kind kind, const fl_panels *w, float *out, size_t ld,
                       const uint8_t *panel, size_t k0, size_t n) {
  if (w->nr == WIDE) widen_width(kind, w->form, WIDE / VF, out, ld, panel, k0, n);
  else widen_width(kind, w->form, NARROW / VF, out, ld, panel, k0, n);
}

static void widen_lanes(const fl_panels *w, float *out, size_t ld, size_t panel, size_t k0,
                        size_t n) {
  for (size_t k = k0; k < k0 + n; k++)
    for (size_t l = 0; l < w->nr; l++) out[(k - k0) * ld + l] = fl_panel_value(w, panel, k, l);
}

static void widen(const fl_panels *w, float *out, size_t ld, size_t panel, size_t k0, size_t n) {
  if (!w->data) {
    w->kern->borrow->widen(w, out, ld, panel, k0, n);
    return;
  }
  const uint8_t *at = fl_panel_base(w, panel);
  if (!fits(w->nr)) {
    widen_lanes(w, out, ld, panel, k0, n);
    return;
  }
  switch (w->form->kind) {
  case FL_PANEL_F32: widen_kind(FL_PANEL_F32, w, out, ld, at, k0, n); break;
  case FL_PANEL_F16: widen_kind(FL_PANEL_F16, w, out, ld, at, k0, n); break;
  case FL_PANEL_BF16: widen_kind(FL_PANEL_BF16, w, out, ld, at, k0, n); break;
  case FL_PANEL_I8: widen_kind(FL_PANEL_I8, w, out, ld, at, k0, n); break;
  case FL_PANEL_4BIT: widen_kind(FL_PANEL_4BIT, w, out, ld, at, k0, n); break;
  case FL_PANEL_5BIT: widen_kind(FL_PANEL_5BIT, w, out, ld, at, k0, n); break;
  case FL_PANEL_6BIT: widen_kind(FL_PANEL_6BIT, w, out, ld, at, k0, n); break;
  }
}

/* --- transposition ---------------------------------------------------------------------------- */

#if VF >= 8
/* Three rounds of exchanges between rows 1, 2 and 4 apart. */
typedef float vt __attribute__((vector_size(32)));
enum { T = 8 };

FL_VEC void transpose_block(size_t rows, float *out, size_t ldo, const float *in, size_t ldi) {
  vt a[8] = { 0 }, b[8];
#pragma GCC unroll 8
  for (size_t i = 0; i < rows; i++) memcpy(&a[i], in + i * ldi, sizeof a[i]);
#pragma GCC unroll 4
  for (size_t i = 0; i < 8; i += 2) {
    b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 2
  for (size_t h = 0; h < 8; h += 4)
#pragma GCC unroll 2
    for (size_t i = 0; i < 2; i++) {
      const vt lo = b[h + i], hi = b[h + i + 2];
      a[h + 2 * i] = __builtin_shufflevector(lo, hi, 0, 1, 8, 9, 4, 5, 12, 13);
      a[h + 2 * i + 1] = __builtin_shufflevector(lo, hi, 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; i++) {
    vt lo = __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    vt hi = __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    memcpy(out + i * ldo, &lo, rows * sizeof *out);
    memcpy(out + (i + 4) * ldo, &hi, rows * sizeof *out);
  }
}
#else
typedef float vt __attribute__((vector_size(16)));
enum { T = 4 };

FL_VEC void transpose_block(size_t rows, float *out, size_t ldo, const float *in, size_t ldi) {
  vt a[4] = { 0 }, b[4];
#pragma GCC unroll 4
  for (size_t i = 0; i < rows; i++) memcpy(&a[i], in + i * ldi, sizeof a[i]);
  b[0] = __builtin_shufflevector(a[0], a[1], 0, 4, 1, 5);
  b[1] = __builtin_shufflevector(a[0], a[1], 2, 6, 3, 7);
  b[2] = __builtin_shufflevector(a[2], a[3], 0, 4, 1, 5);
  b[3] = __builtin_shufflevector(a[2], a[3], 2, 6, 3, 7);
  a[0] = __builtin_shufflevector(b[0], b[2], 0, 1, 4, 5);
  a[1] = __builtin_shufflevector(b[0], b[2], 2, 3, 6, 7);
  a[2] = __builtin_shufflevector(b[1], b[3], 0, 1, 4, 5);
  a[3] = __builtin_shufflevector(b[1], b[3], 2, 3, 6, 7);
  for (size_t i = 0; i < 4; i++) memcpy(out + i * ldo, &a[i], rows * sizeof *out);
}
#endif

/* Blocks of `rows` rows, up to T and constant wherever this is inlined, by T columns. */
FL_VEC void transpose_rows(size_t rows, float *out, size_t ldo, const float *in, size_t ldi,
                           size_t n_cols) {
  const size_t whole = n_cols / T * T;
  for (size_t c = 0; c < whole; c += T) transpose_block(rows, out + c * ldo, ldo, in + c, ldi);
  for (size_t r = 0; r < rows && whole < n_cols; r++)
    for (size_t c = whole; c < n_cols; c++) out[c * ldo + r] = in[r * ldi + c];
}

static void transpose(float *out, size_t ldo, const float *in, size_t ldi, size_t n_rows,
                      size_t n_cols) {
  for (; n_rows >= T; n_rows -= T, in += T * ldi, out += T)
    transpose_rows(T, out, ldo, in, ldi, n_cols);
  /* Micro-kernels have tiles of 6 and 12 rows. */
  if (n_rows == T / 2) transpose_rows(T / 2, out, ldo, in, ldi, n_cols);
  else if (n_rows == T / 4 * 3) transpose_rows(T / 4 * 3, out, ldo, in, ldi, n_cols);
  else
    for (size_t r = 0; r < n_rows; r++)
      for (size_t c = 0; c < n_cols; c++) out[c * ldo + r] = in[r * ldi + c];
}

/* --- few rows --------------------------------------------------------------------------------- */

/* One k-block of some panels and rows. */
typedef struct block {
  const fl_panel_format *form;
  size_t R, P, G;       /* rows, panels, vectors in a panel's width */
  const uint8_t *panel; /* the first panel's base */
  size_t stride;        /* bytes from panel to panel */
  size_t k0, k1;
  const float *x; /* [R, n_in], stride ldx */
  size_t ldx;
  float *y; /* [R][P * nr], stride ldy */
  size_t ldy;
  bool add;             /* y += instead of = */
  const uint8_t *ahead; /* what to ask memory for meanwhile, of every panel... */
  size_t ahead_step;    /* ...so many bytes on with every input */
  size_t ahead_stride;  /* from panel to panel */
} block;

enum { CHAINS = 20 }; /* R * P * G at most */

/* One input of the chains: v[P * G] are the weights, x the input of the first row. */
FL_VEC void chain_step(vf *acc, size_t R, size_t PG, const vf *v, const float *x, size_t ldx) {
#pragma GCC unroll 8
  for (size_t r = 0; r < R; r++)
#pragma GCC unroll 20
    for (size_t i = 0; i < PG; i++)
      acc[r * PG + i] = vf_fma(vf_set1(x[r * ldx]), v[i], acc[r * PG + i]);
}

/* Inputs from one request for what comes next to the following: some 32 bytes of a panel. A lone
 * row of elements that need no work reads as fast as memory gives, of bits it waits for arithmetic:
 * 0. */
FL_VEC size_t asks_every(fl_panel_kind kind, size_t R) {
  if (kind == FL_PANEL_I8) return 2;
  return R > 1 ? 1 : 0;
}

/* v [P * G]: the weights of input i + u of a run, of panels `stride` apart. int8 are made in
 * stages, all vectors in each, or the processor would hold too many that wait for one another. */
FL_VEC void values_at(fl_panel_kind kind, vf *v, size_t P, size_t G, const uint8_t *base,
                      size_t stride, size_t i, size_t u, const affine *a) {
  const size_t nr = G * VF, PG = P * G;
  if (kind != FL_PANEL_I8) {
#pragma GCC unroll 20
    for (size_t n = 0; n < PG; n++)
      v[n] = value_at(kind, base + n / G * stride, nr, i, u, n % G * VF, a[n]);
    return;
  }
#pragma GCC unroll 20
  for (size_t n = 0; n < PG; n++) v[n] = (vf)int8_at(base + n / G * stride, nr, i, u, n % G * VF);
#pragma GCC unroll 20
  for (size_t n = 0; n < PG; n++) vf_settle(&v[n]);
#pragma GCC unroll 20
  for (size_t n = 0; n < PG; n++) v[n] = vf_from_i32((vi)v[n]);
#pragma GCC unroll 20
  for (size_t n = 0; n < PG; n++) vf_settle(&v[n]);
#pragma GCC unroll 20
  for (size_t n = 0; n < PG; n++) v[n] *= a[n].scale;
#pragma GCC unroll 20
  for (size_t n = 0; n < PG; n++) vf_settle(&v[n]);
}

/* kind, R, P and G are constants wherever this is inlined (and R, P, G those of b); nr = G * VF. */
FL_VEC void few_block(fl_panel_kind kind, size_t R, size_t P, size_t G, const block *b) {
  const size_t nr = G * VF, PG = P * G, stride = b->stride, asks = asks_every(kind, R);
  const uint8_t *ahead = b->ahead;
  vf acc[CHAINS];
#pragma GCC unroll 20
  for (size_t i = 0; i < R * PG; i++) acc[i] = vf_zero();
  for (size_t k = b->k0; k < b->k1;) {
    const run r = run_at(kind, b->form, b->panel, nr, k, b->k1);
    affine a[CHAINS];
#pragma GCC unroll 20
    for (size_t i = 0; i < PG; i++)
      a[i] = affine_at(kind, b->form, b->panel + i / G * stride, nr, k, i % G * VF);
    for (size_t j = 0; j < r.n; j += step_of(kind))
#pragma GCC unroll 8
      for (size_t u = 0; u < step_of(kind); u++) {
        vf v[CHAINS];
        values_at(kind, v, P, G, r.base, stride, r.i + j, u, a);
        chain_step(acc, R, PG, v, b->x + k + j + u, b->ldx);
        if (asks > 0 && u % asks == 0) {
#pragma GCC unroll 8
          for (size_t i = 0; i < P; i++) __builtin_prefetch(ahead + i * b->ahead_stride, 0, 2);
          ahead += asks * b->ahead_step;
        }
      }
    k += r.n;
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < R; r++)
#pragma GCC unroll 20
    for (size_t i = 0; i < PG; i++) {
      float *y = b->y + r * b->ldy + i * VF;
      vf_store(y, b->add ? vf_load(y) + acc[r * PG + i] : acc[r * PG + i]);
    }
}

enum { CHAINS_WANTED = 8, SIDE_BY_SIDE = 3 /* rows up to which several panels are in flight */ };

/* Panels in flight for R rows of one pass: as many chains as hide a multiply-add's latency and no
 * more than there are registers for. A rest of fewer panels goes one by one. */
FL_VEC size_t panels_in_flight(fl_panel_kind kind, size_t R, size_t G) {
  /* Taking bits apart takes time too, and scales take registers, of which AVX-512 has enough. */
  const size_t chains = kind >= FL_PANEL_I8 && VF < 16 ? CHAINS_WANTED / 2 : CHAINS_WANTED;
  size_t p = chains / (R * G);
  return R > SIDE_BY_SIDE || p == 0 ? 1 : p;
}

/* Rows of one pass over a k-block; more rows go over it again, from the first-level cache. AVX-512
 * has twice the registers. */
FL_VEC size_t rows_at_once(size_t G) { return G == 4 ? 3 : VF == 16 ? 8 : 6; }

/* A group of as many panels as R rows have in flight, or a single one. */
FL_VEC void few_panels(fl_panel_kind kind, size_t R, size_t G, const block *b) {
  const size_t in_flight = panels_in_flight(kind, R, G);
  if (in_flight > 1 && b->P > 1) few_block(kind, R, in_flight, G, b);
  else few_block(kind, R, 1, G, b);
}

FL_VEC void few_rows(fl_panel_kind kind, size_t G, const block *b) {
  const size_t most = rows_at_once(G);
  switch (is_bits(kind) ? 1 : b->R) {
  case 1: few_panels(kind, 1, G, b); break;
  case 2: few_panels(kind, 2, G, b); break;
  case 3: few_panels(kind, 3, G, b); break;
  case 4: few_panels(kind, most < 4 ? most : 4, G, b); break;
  case 5: few_panels(kind, most < 5 ? most : 5, G, b); break;
  case 6: few_panels(kind, most < 6 ? most : 6, G, b); break;
  case 7: few_panels(kind, most < 7 ? most : 7, G, b); break;
  default: few_panels(kind, most, G, b); break;
  }
}

FL_VEC void few_widths(fl_panel_kind kind, const block *b) {
  if (b->G == WIDE / VF) few_rows(kind, WIDE / VF, b);
  else few_rows(kind, NARROW / VF, b);
}

typedef void block_fn(const block *b);

static void few_f32(const block *b) { few_widths(FL_PANEL_F32, b); }
static void few_f16(const block *b) { few_widths(FL_PANEL_F16, b); }
static void few_bf16(const block *b) { few_widths(FL_PANEL_BF16, b); }
static void few_i8(const block *b) { few_widths(FL_PANEL_I8, b); }
static void few_4bit(const block *b) { few_widths(FL_PANEL_4BIT, b); }
static void few_5bit(const block *b) { few_widths(FL_PANEL_5BIT, b); }
static void few_6bit(const block *b) { few_widths(FL_PANEL_6BIT, b); }

static block_fn *const few_of_kind[] = {
  [FL_PANEL_F32] = few_f32,   [FL_PANEL_F16] = few_f16,   [FL_PANEL_BF16] = few_bf16,
  [FL_PANEL_I8] = few_i8,     [FL_PANEL_4BIT] = few_4bit, [FL_PANEL_5BIT] = few_5bit,
  [FL_PANEL_6BIT] = few_6bit,
};

/* Rows of the next pass when `left` are left: evenly, 7 is 4 + 3. */
static size_t pass_rows(size_t left, size_t G) {
  size_t most = rows_at_once(G), passes = (left + most - 1) / most;
  return (left + passes - 1) / passes;
}

/* Whether the rows read a widened copy of each block rather than widen it in every pass, or in a
 * pass whose rows need the registers: measured. */
static bool takes_copy(const fl_panels *w, size_t m) {
  if (!w->data) return true; /* borrowed: there are no panels to read */
  if (is_bits(w->form->kind)) return m > 1;
  return w->form->kind == FL_PANEL_I8 && m > (VF == 16 ? rows_at_once(1) : 5);
}

/* What the panels of one call have in common. */
typedef struct plan {
  const fl_gemm_small *f;
  block b;   /* all but the panels, the rows and the inputs */
  bool copy; /* the rows read a widened copy of each block, in buf */
  float *buf;
  size_t kc_bytes; /* of FL_KC inputs of a packed panel */
  size_t in_flight;
} plan;

static plan plan_of(const fl_gemm_small *f, float *buf) {
  const fl_panels *w = f->w;
  const bool copy = takes_copy(w, f->m);
  const fl_panel_format *form = copy ? fl_panel_format_of(FL_F32) : w->form;
  plan p = {
    .f = f, .copy = copy, .buf = buf, .kc_bytes = FL_KC / w->form->block * w->form->bytes * w->nr
  };
  p.b = (block){ .form = form,
                 .G = w->nr / VF,
                 .ldx = f->ldx,
                 .stride = copy ? FL_KC * w->nr * sizeof *buf : w->panel_bytes };
  const size_t most = rows_at_once(p.b.G), passes = (f->m + most - 1) / most;
  if (w->data) {
    p.b.ahead_stride = w->panel_bytes;
    p.b.ahead_step = p.kc_bytes / FL_KC / passes;
  }
  /* Passes of up to three rows are all alike (pass_rows), those of more take one panel. */
  p.in_flight = panels_in_flight(form->kind, pass_rows(f->m, p.b.G), p.b.G);
  return p;
}

/* What is read after inputs [k0, k0 + FL_KC) of panel p, n panels being in flight. */
static const uint8_t *after(const plan *pl, size_t p, size_t n, size_t k0) {
  const fl_panels *w = pl->f->w;
  if (!w->data) return (const uint8_t *)pl->buf;
  if (k0 + FL_KC >= w->n_in) return fl_panel_base(w, p + n < w->n_panels ? p + n : p);
  return fl_panel_base(w, p) + (k0 / FL_KC + 1) * pl->kc_bytes;
}

/* Panels [p, p + n) of all rows: y [m][n * nr], stride ldy. Every pass over a k-block asks for its
 * share of the next one: without that, arithmetic and memory would wait for each other. Into the
 * second-level cache: what waits on its way into the first takes the place that loads need. */
static void few_group(plan *pl, size_t p, size_t n, float *y, size_t ldy) {
  const fl_gemm_small *f = pl->f;
  const fl_panels *w = f->w;
  block *b = &pl->b;
  b->P = n;
  b->ldy = ldy;
  b->panel = pl->copy ? (const uint8_t *)pl->buf : fl_panel_base(w, p);
  for (size_t k0 = 0; k0 < w->n_in; k0 += FL_KC) {
    const size_t len = w->n_in - k0 < FL_KC ? w->n_in - k0 : FL_KC;
    for (size_t i = 0; pl->copy && i < n; i++)
      widen(w, pl->buf + i * FL_KC * w->nr, w->nr, p + i, k0, len);
    b->k0 = pl->copy ? 0 : k0;
    b->k1 = b->k0 + len;
    b->add = k0 > 0;
    b->ahead = after(pl, p, n, k0);
    for (size_t r = 0; r < f->m; r += b->R, b->ahead += b->ahead_step * FL_KC) {
      b->R = pass_rows(f->m - r, b->G);
      b->x = f->x + r * f->ldx + (k0 - b->k0);
      b->y = y + r * ldy;
      few_of_kind[b->form->kind](b);
    }
  }
}

/* The same where the panels' last lanes are past the outputs asked for. */
static void few_edge(plan *pl, size_t p, size_t n) {
  float y[FL_SMALL_ROWS *
          WIDE]; /* of many rows one panel is in flight, of few FL_SMALL_LANES a row */
  const fl_gemm_small *f = pl->f;
  const size_t width = n * f->w->nr, at = p * f->w->nr - f->out0;
  few_group(pl, p, n, y, width);
  for (size_t r = 0; r < f->m; r++)
    memcpy(f->y + r * f->ldy + at, y + r * width, (f->n - at) * sizeof *y);
}

static void few(const fl_gemm_small *f, size_t p0, size_t p1, float *buf) {
  plan pl = plan_of(f, buf);
  const size_t nr = f->w->nr;
  for (size_t p = p0, n; p < p1; p += n) {
    n = p1 - p < pl.in_flight ? 1 : pl.in_flight;
    const size_t at = p * nr - f->out0;
    if (at + n * nr > f->n) few_edge(&pl, p, n);
    else few_group(&pl, p, n, f->y + at, f->ldy);
  }
}

/* What a lone row has in flight: whole groups for two and three rows as well. */
static size_t few_grain(size_t m) { return m > SIDE_BY_SIDE ? 1 : CHAINS_WANTED / (NARROW / VF); }

static void few_widened(size_t m, size_t k, const float *x, size_t ldx, const float *b, size_t nr,
                        float *c, size_t ldc, bool add) {
  block one = { .form = fl_panel_format_of(FL_F32),
                .P = 1,
                .G = nr / VF,
                .panel = (const uint8_t *)b,
                .k1 = k,
                .ldx = ldx,
                .ldy = ldc,
                .add = add,
                .ahead = (const uint8_t *)b };
  for (size_t r = 0; r < m; r += one.R) {
    one.R = pass_rows(m - r, one.G);
    one.x = x + r * ldx;
    one.y = c + r * ldc;
    few_f32(&one);
  }
}

const struct fl_gemm_small_ops FL_ISA_TABLE(fl_gemm_small_ops) = {
  .widen = widen,
  .transpose = transpose,
  .few_fits = fits,
  .few_is_faster = is_faster,
  .few_widened = few_widened,
  .few = few,
  .few_grain = few_grain,
};
