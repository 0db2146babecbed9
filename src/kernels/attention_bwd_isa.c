/* attention_bwd_isa.c - backward attention, compiled once per instruction-set level.
 *
 * With P = exp(s - stat), D = dout . out and dP = dout . V per row (Dao et al. 2022, algorithm 4):
 *     dS = scale * P * (dP - D) * (1 - (s / cap)^2 where capped)
 *     dQ += dS . K      dK += dS^T . q      dV += P^T . dout
 * Pages are the outer loop: K and V are turned once per page, dK and dV of the page are gathered in
 * scratch over all rows and written once. A block of rows is packed so that the rows of a group lie
 * evenly. Every sum is a chain through memory, so where blocks begin does not show.
 */
#include "kernels/attention_bwd_isa.h"

#include <math.h>

#include "kernels/attention_tile.h"
#include "kernels/table.h"

#define PAGE ((size_t)FL_KV_ROWS)
#define ROWS ((size_t)FL_ATTN_BWD_ROWS)
#define PACKED ((size_t)FL_ATTN_BWD_PACKED)

typedef struct work {
  const fl_attn_piece *t;
  size_t head_dim, window; /* window: at most n_rows, no bound is that */
  float *kt;               /* [PAGE, head_dim] */
  float *vt;               /* [head_dim, PAGE] */
  float *dk, *dv;          /* [PAGE, head_dim] */
  bool whole;              /* all rows of the piece are packed, not just a block's */
  float *q, *dout;         /* [PACKED, head_dim]: packed rows */
  float *delta;            /* [PACKED]: their D */
  float *p, *ds;           /* [ROWS, PAGE] */
} work;

/* A block of packed rows. */
typedef struct packed {
  size_t r, n; /* of the piece's */
  const float *q, *dout, *delta;
} packed;

static void start(work *w, const fl_attn_piece *t) {
  size_t hd = t->a->head_dim, window = t->a->window;
  float *p = t->scratch;
  *w = (work){ .t = t, .head_dim = hd, .kt = p };
  w->window = window && window < t->n_rows ? window : t->n_rows;
  w->vt = p += PAGE * hd;
  w->dk = p += PAGE * hd;
  w->dv = p += PAGE * hd;
  w->q = p += PAGE * hd;
  w->dout = p += PACKED * hd;
  w->delta = p += PACKED * hd;
  w->p = p += PACKED;
  w->ds = p + ROWS * PAGE;
}

static void transpose(float *out, const float *in, size_t rows, size_t cols) {
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < cols; j++) out[j * rows + i] = in[i * cols + j];
}

static float row_dot(const float *a, const float *b, size_t n) {
  vf s = vf_zero();
  for (size_t i = 0; i < n; i += VF) s = vf_fma(vm_load(a + i, n - i), vm_load(b + i, n - i), s);
  return vm_sum(s);
}

/* Packs rows [r, r + n) and their D, from slot `to` on. */
static void pack(const work *w, size_t r, size_t n, size_t to) {
  const fl_attn_piece *t = w->t;
  size_t hd = w->head_dim;
  for (size_t j = 0; j < n; j++, to++) {
    size_t i = (r + j) / t->n_h, at = (r + j) % t->n_h * hd;
    const float *dout = t->dout + i * t->lddo + at;
    memcpy(w->q + to * hd, t->q + i * t->ldq + at, hd * sizeof *w->q);
    memcpy(w->dout + to * hd, dout, hd * sizeof *dout);
    w->delta[to] = row_dot(dout, t->out + i * t->ldo + at, hd);
  }
}

static packed rows_at(const work *w, size_t r, size_t n) {
  const size_t at = w->whole ? r - w->t->row0 : 0;
  if (!w->whole) pack(w, r, n, 0);
  return (packed){ .r = r,
                   .n = n,
                   .q = w->q + at * w->head_dim,
                   .dout = w->dout + at * w->head_dim,
                   .delta = w->delta + at };
}

/* c[n, lanes] (=, or += unless fresh) a[n, depth] . B[depth, lanes], all of them packed; a_row and
 * a_step are the distances between two rows' and two depths' coefficients. */
static void product(float *c, const float *a, size_t a_row, size_t a_step, const float *b, size_t n,
                    size_t depth, size_t lanes, bool fresh) {
  size_t step = tile_step(n);
  tile x = { .fresh = fresh, .a_step = a_step, .k1 = depth, .b = b, .ldb = lanes, .lanes = lanes };
  for (size_t r = 0; r < n; r += step) {
    x.rows = n - r < step ? n - r : step;
    for (size_t j = 0; j < x.rows; j++) {
      x.a[j] = a + (r + j) * a_row;
      x.c[j] = c + (r + j) * lanes;
      x.keep[j] = 1.0f;
    }
    tile_mul(&x);
  }
}

/* From scores q . K in p and dP in ds to P and dS, for one row that sees keys [lo, hi). */
static void row_grad(const fl_attn *a, float *p, float *ds, float stat, float delta, size_t lo,
                     size_t hi) {
  for (size_t v = 0; v < PAGE; v += VF) {
    vf s = vf_load(p + v) * a->scale, slope = vf_set1(a->scale);
    if (a->softcap != 0) {
      s = vm_softcap(s, a->softcap);
      vf t = s / a->softcap;
      slope = slope * vf_fma(-t, t, vf_set1(1.0f));
    }
    vf prob = vm_exp(s - stat);
    vf grad = prob * (vf_load(ds + v) - delta) * slope;
    vf_store(p + v, vm_keep_range(prob, v, lo, hi, 0));
    vf_store(ds + v, vm_keep_range(grad, v, lo, hi, 0));
  }
}

/* P and dS of a block over the page that starts at key row `base`. */
static void block_grad(const work *w, const packed *b, size_t base, const float *key) {
  const fl_attn_piece *t = w->t;
  size_t hd = w->head_dim;
  product(w->p, b->q, hd, 1, key, b->n, hd, PAGE, true);
  product(w->ds, b->dout, hd, 1, w->vt, b->n, hd, PAGE, true);
  for (size_t j = 0; j < b->n; j++) {
    size_t i = (b->r + j) / t->n_h, h = (b->r + j) % t->n_h, pos = t->pos0 + i;
    size_t first = pos + 1 > w->window ? pos + 1 - w->window : 0;
    size_t lo = first > base ? first - base : 0;
    size_t hi = pos + 1 - base < PAGE ? pos + 1 - base : PAGE;
    row_grad(t->a, w->p + j * PAGE, w->ds + j * PAGE, t->stat[i * t->a->n_heads + h], b->delta[j],
             lo, hi);
  }
}

/* dq += dS . K; the rows of dq lie as the model has them. */
static void add_dq(const work *w, size_t r, size_t n) {
  const fl_attn_piece *t = w->t;
  size_t step = tile_step(n), hd = w->head_dim;
  tile x = { .a_step = 1, .k1 = PAGE, .b = w->kt, .ldb = hd, .lanes = hd };
  for (size_t j0 = 0; j0 < n; j0 += step) {
    x.rows = n - j0 < step ? n - j0 : step;
    for (size_t j = 0; j < x.rows; j++) {
      size_t row = r + j0 + j;
      x.a[j] = w->ds + (j0 + j) * PAGE;
      x.c[j] = t->dq + row / t->n_h * t->lddq + row % t->n_h * hd;
      x.keep[j] = 1.0f;
    }
    tile_mul(&x);
  }
}

static void write_dkv(const work *w, size_t base) {
  const fl_attn_piece *t = w->t;
  size_t hd = w->head_dim, ld = t->a->kv_heads * hd;
  size_t end = t->n_rows - base < PAGE ? t->n_rows - base : PAGE;
  for (size_t j = t->dkv_from > base ? t->dkv_from - base : 0; j < end; j++) {
    size_t at = (base + j - t->dkv_from) * ld;
    memcpy(t->dk + at, w->dk + j * hd, hd * sizeof *w->dk);
    memcpy(t->dv + at, w->dv + j * hd, hd * sizeof *w->dv);
  }
}

/* The rows of this piece that see some of the page: [*r0, *r1). */
static void rows_of_page(const work *w, size_t base, size_t *r0, size_t *r1) {
  const fl_attn_piece *t = w->t;
  size_t past = base + PAGE + w->window - 1; /* the first position that sees no more */
  size_t i0 = base > t->pos0 ? base - t->pos0 : 0;
  size_t i1 = past <= t->pos0 ? 0 : past - t->pos0 < t->n_q ? past - t->pos0 : t->n_q;
  *r0 = i0 * t->n_h > t->row0 ? i0 * t->n_h : t->row0;
  *r1 = i1 * t->n_h < t->row1 ? i1 * t->n_h : t->row1;
  if (*r1 < *r0) *r1 = *r0;
}

static void page_grad(const work *w, size_t page) {
  const fl_attn_piece *t = w->t;
  size_t hd = w->head_dim, base = page * PAGE, r0, r1;
  const char *mem = t->pages[page];
  const float *key = (const void *)(mem + t->k_at), *val = (const void *)(mem + t->v_at);
  bool want_dkv = t->want_dkv && base + PAGE > t->dkv_from;
  rows_of_page(w, base, &r0, &r1);
  if (r0 < r1) {
    transpose(w->vt, val, PAGE, hd);
    if (t->want_dq) transpose(w->kt, key, hd, PAGE);
  }
  memset(w->dk, 0, PAGE * hd * sizeof *w->dk);
  memset(w->dv, 0, PAGE * hd * sizeof *w->dv);
  for (size_t r = r0; r < r1; r += ROWS) {
    const packed b = rows_at(w, r, r1 - r < ROWS ? r1 - r : ROWS);
    block_grad(w, &b, base, key);
    if (t->want_dq) add_dq(w, b.r, b.n);
    if (!want_dkv) continue;
    product(w->dk, w->ds, 1, PAGE, b.q, PAGE, b.n, hd, false);
    product(w->dv, w->p, 1, PAGE, b.dout, PAGE, b.n, hd, false);
  }
  if (want_dkv) write_dkv(w, base);
}

static void run_piece(const fl_attn_piece *t) {
  work w;
  start(&w, t);
  for (size_t r = t->row0; t->want_dq && r < t->row1; r++)
    memset(t->dq + r / t->n_h * t->lddq + r % t->n_h * w.head_dim, 0, w.head_dim * sizeof *t->dq);
  w.whole = t->row1 - t->row0 <= PACKED && t->page1 - t->page0 > 1;
  if (w.whole) pack(&w, t->row0, t->row1 - t->row0, 0);
  for (size_t page = t->page0; page < t->page1; page++) page_grad(&w, page);
}

extern const struct fl_attention_bwd_ops FL_ISA_TABLE(fl_attention_bwd_ops);
const struct fl_attention_bwd_ops FL_ISA_TABLE(fl_attention_bwd_ops) = { .piece = run_piece };
