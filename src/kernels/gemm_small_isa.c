/* gemm_small_isa.c - the product with few rows, one build per level.
 *
 * It is bound by the bandwidth of reading the panels. P panels of G vectors and R rows are in
 * flight, R * P * G independent chains, enough to hide the latency of the fused multiply-add. Per
 * output the arithmetic is that of the micro-kernel: within a k-block a chain from 0 in ascending
 * k, blocks added in ascending order.
 */
#include "kernels/gemm_small_isa.h"

#include <stdbool.h>

#include "kernels/dequant_isa.h"
#include "kernels/dequant_read.h"
#include "kernels/simd_math.h"

/* BLIS's kernels for AVX-512 have wide panels; a narrow one is made for AVX2. */
static bool is_faster(size_t nr) { return VF == 16 && nr == NARROW; }

/* One k-block of some panels and rows. */
typedef struct block {
  const fl_panel_format *format;
  size_t R, P, G;       /* rows, panels, vectors in a panel's width */
  const uint8_t *panel; /* the first panel's base */
  size_t stride;        /* bytes from panel to panel */
  size_t k0, k1;
  const float *x; /* [R, n_in], stride ldx */
  size_t ldx;
  float *y; /* [R][P * nr], stride ldy */
  size_t ldy;
  bool add;                /* y += instead of = */
  const uint8_t *prefetch; /* what to ask memory for meanwhile, of every panel... */
  size_t prefetch_step;    /* ...so many bytes on with every input */
  size_t prefetch_stride;  /* from panel to panel */
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

/* How many inputs between two prefetches: some 32 bytes of a panel. 0: no prefetch (a single row
 * of float weights is bound by memory already, one of packed bits by arithmetic). */
FL_VEC size_t prefetch_every(fl_panel_kind kind, size_t R) {
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
FL_VEC void gemm_block(fl_panel_kind kind, size_t R, size_t P, size_t G, const block *b) {
  const size_t nr = G * VF, PG = P * G, stride = b->stride, every = prefetch_every(kind, R);
  const uint8_t *prefetch = b->prefetch;
  vf acc[CHAINS];
#pragma GCC unroll 20
  for (size_t i = 0; i < R * PG; i++) acc[i] = vf_zero();
  for (size_t k = b->k0; k < b->k1;) {
    const run r = run_at(kind, b->format, b->panel, nr, k, b->k1);
    affine a[CHAINS];
#pragma GCC unroll 20
    for (size_t i = 0; i < PG; i++)
      a[i] = affine_at(kind, b->format, b->panel + i / G * stride, nr, k, i % G * VF);
    for (size_t j = 0; j < r.n; j += step_of(kind))
#pragma GCC unroll 8
      for (size_t u = 0; u < step_of(kind); u++) {
        vf v[CHAINS];
        values_at(kind, v, P, G, r.base, stride, r.i + j, u, a);
        chain_step(acc, R, PG, v, b->x + k + j + u, b->ldx);
        if (every > 0 && u % every == 0) {
#pragma GCC unroll 8
          for (size_t i = 0; i < P; i++)
            __builtin_prefetch(prefetch + i * b->prefetch_stride, 0, 2);
          prefetch += every * b->prefetch_step;
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
FL_VEC void gemm_panels(fl_panel_kind kind, size_t R, size_t G, const block *b) {
  const size_t in_flight = panels_in_flight(kind, R, G);
  if (in_flight > 1 && b->P > 1) gemm_block(kind, R, in_flight, G, b);
  else gemm_block(kind, R, 1, G, b);
}

FL_VEC void gemm_rows(fl_panel_kind kind, size_t G, const block *b) {
  const size_t most = rows_at_once(G);
  switch (is_bits(kind) ? 1 : b->R) {
  case 1: gemm_panels(kind, 1, G, b); break;
  case 2: gemm_panels(kind, 2, G, b); break;
  case 3: gemm_panels(kind, 3, G, b); break;
  case 4: gemm_panels(kind, most < 4 ? most : 4, G, b); break;
  case 5: gemm_panels(kind, most < 5 ? most : 5, G, b); break;
  case 6: gemm_panels(kind, most < 6 ? most : 6, G, b); break;
  case 7: gemm_panels(kind, most < 7 ? most : 7, G, b); break;
  default: gemm_panels(kind, most, G, b); break;
  }
}

FL_VEC void gemm_widths(fl_panel_kind kind, const block *b) {
  if (b->G == WIDE / VF) gemm_rows(kind, WIDE / VF, b);
  else gemm_rows(kind, NARROW / VF, b);
}

typedef void block_fn(const block *b);

static void gemm_f32(const block *b) { gemm_widths(FL_PANEL_F32, b); }
static void gemm_f16(const block *b) { gemm_widths(FL_PANEL_F16, b); }
static void gemm_bf16(const block *b) { gemm_widths(FL_PANEL_BF16, b); }
static void gemm_i8(const block *b) { gemm_widths(FL_PANEL_I8, b); }
static void gemm_4bit(const block *b) { gemm_widths(FL_PANEL_4BIT, b); }
static void gemm_5bit(const block *b) { gemm_widths(FL_PANEL_5BIT, b); }
static void gemm_6bit(const block *b) { gemm_widths(FL_PANEL_6BIT, b); }

static block_fn *const gemm_of_kind[] = {
  [FL_PANEL_F32] = gemm_f32,   [FL_PANEL_F16] = gemm_f16,   [FL_PANEL_BF16] = gemm_bf16,
  [FL_PANEL_I8] = gemm_i8,     [FL_PANEL_4BIT] = gemm_4bit, [FL_PANEL_5BIT] = gemm_5bit,
  [FL_PANEL_6BIT] = gemm_6bit,
};

/* Rows of the next pass when `left` are left: evenly, 7 is 4 + 3. */
static size_t pass_rows(size_t left, size_t G) {
  size_t most = rows_at_once(G), passes = (left + most - 1) / most;
  return (left + passes - 1) / passes;
}

/* Whether the rows read a widened copy of each block rather than widen it in every pass, or in a
 * pass whose rows need the registers: measured. */
static bool reads_f32_copy(const fl_panels *w, size_t m) {
  if (!w->data) return true; /* mapped: there are no panels to read */
  if (is_bits(w->format->kind)) return m > 1;
  return w->format->kind == FL_PANEL_I8 && m > (VF == 16 ? rows_at_once(1) : 5);
}

/* What the panels of one call share. */
typedef struct panel_walk {
  const fl_gemm_small *f;
  block b;   /* all but the panels, the rows and the inputs */
  bool copy; /* the rows read a widened copy of each block, in buf */
  float *buf;
  size_t kc_bytes; /* of FL_KC inputs of a packed panel */
  size_t in_flight;
} panel_walk;

static panel_walk panel_walk_of(const fl_gemm_small *f, float *buf) {
  const fl_panels *w = f->w;
  const bool copy = reads_f32_copy(w, f->m);
  const fl_panel_format *format = copy ? fl_panel_format_of(FL_F32) : w->format;
  panel_walk p = { .f = f,
                   .copy = copy,
                   .buf = buf,
                   .kc_bytes = FL_KC / w->format->block * w->format->bytes * w->nr };
  p.b = (block){ .format = format,
                 .G = w->nr / VF,
                 .ldx = f->ldx,
                 .stride = copy ? FL_KC * w->nr * sizeof *buf : w->panel_bytes };
  const size_t most = rows_at_once(p.b.G), passes = (f->m + most - 1) / most;
  if (w->data) {
    p.b.prefetch_stride = w->panel_bytes;
    p.b.prefetch_step = p.kc_bytes / FL_KC / passes;
  }
  /* Passes of up to three rows are all alike (pass_rows), those of more take one panel. */
  p.in_flight = panels_in_flight(format->kind, pass_rows(f->m, p.b.G), p.b.G);
  return p;
}

/* What is read after inputs [k0, k0 + FL_KC) of panel p, n panels being in flight. */
static const uint8_t *next_block(const panel_walk *walk, size_t p, size_t n, size_t k0) {
  const fl_panels *w = walk->f->w;
  if (!w->data) return (const uint8_t *)walk->buf;
  if (k0 + FL_KC >= w->n_in) return fl_panel_base(w, p + n < w->n_panels ? p + n : p);
  return fl_panel_base(w, p) + (k0 / FL_KC + 1) * walk->kc_bytes;
}

/* Panels [p, p + n) of all rows: y [m][n * nr], stride ldy. Every pass over a k-block every for its
 * share of the next one: without that, arithmetic and memory would wait for each other. Into the
 * second-level cache: what waits on its way into the first takes the place that loads need. */
static void gemm_group(panel_walk *walk, size_t p, size_t n, float *y, size_t ldy) {
  const fl_gemm_small *f = walk->f;
  const fl_panels *w = f->w;
  block *b = &walk->b;
  b->P = n;
  b->ldy = ldy;
  b->panel = walk->copy ? (const uint8_t *)walk->buf : fl_panel_base(w, p);
  for (size_t k0 = 0; k0 < w->n_in; k0 += FL_KC) {
    const size_t len = w->n_in - k0 < FL_KC ? w->n_in - k0 : FL_KC;
    for (size_t i = 0; walk->copy && i < n; i++)
      w->kern->dequant->dequant(w, walk->buf + i * FL_KC * w->nr, w->nr, p + i, k0, len);
    b->k0 = walk->copy ? 0 : k0;
    b->k1 = b->k0 + len;
    b->add = k0 > 0;
    b->prefetch = next_block(walk, p, n, k0);
    for (size_t r = 0; r < f->m; r += b->R, b->prefetch += b->prefetch_step * FL_KC) {
      b->R = pass_rows(f->m - r, b->G);
      b->x = f->x + r * f->ldx + (k0 - b->k0);
      b->y = y + r * ldy;
      gemm_of_kind[b->format->kind](b);
    }
  }
}

/* The same where the panels' last lanes are past the outputs asked for. */
static void gemm_edge(panel_walk *walk, size_t p, size_t n) {
  float y[FL_SMALL_ROWS *
          WIDE]; /* of many rows one panel is in flight, of few FL_SMALL_LANES a row */
  const fl_gemm_small *f = walk->f;
  const size_t width = n * f->w->nr, at = p * f->w->nr - f->out0;
  gemm_group(walk, p, n, y, width);
  for (size_t r = 0; r < f->m; r++)
    memcpy(f->y + r * f->ldy + at, y + r * width, (f->n - at) * sizeof *y);
}

static void gemm_small(const fl_gemm_small *f, size_t p0, size_t p1, float *buf) {
  panel_walk walk = panel_walk_of(f, buf);
  const size_t nr = f->w->nr;
  for (size_t p = p0, n; p < p1; p += n) {
    n = p1 - p < walk.in_flight ? 1 : walk.in_flight;
    const size_t at = p * nr - f->out0;
    if (at + n * nr > f->n) gemm_edge(&walk, p, n);
    else gemm_group(&walk, p, n, f->y + at, f->ldy);
  }
}

/* What a lone row has in flight: whole groups for two and three rows as well. */
static size_t gemm_grain(size_t m) { return m > SIDE_BY_SIDE ? 1 : CHAINS_WANTED / (NARROW / VF); }

static void gemm_f32_panel(size_t m, size_t k, const float *x, size_t ldx, const float *b,
                           size_t nr, float *c, size_t ldc, bool add) {
  block one = { .format = fl_panel_format_of(FL_F32),
                .P = 1,
                .G = nr / VF,
                .panel = (const uint8_t *)b,
                .k1 = k,
                .ldx = ldx,
                .ldy = ldc,
                .add = add,
                .prefetch = (const uint8_t *)b };
  for (size_t r = 0; r < m; r += one.R) {
    one.R = pass_rows(m - r, one.G);
    one.x = x + r * ldx;
    one.y = c + r * ldc;
    gemm_f32(&one);
  }
}

const struct fl_gemm_small_ops FL_ISA_TABLE(fl_gemm_small_ops) = {
  .fits = fits,
  .is_faster = is_faster,
  .f32_panel = gemm_f32_panel,
  .run = gemm_small,
  .grain = gemm_grain,
};
