/* attention_isa.c - forward attention of one tile, compiled once per instruction-set level.
 *
 * Pages are taken in ascending order; in each, the rows that see any of it go through scores
 * (key rows as lanes), the online softmax and the product with V (head_dim as lanes), with the
 * running maximum m, sum l and output o of each row kept in scratch between pages.
 *
 * A page that all of those rows see whole is multiplied RMAX rows at a time. In a page that is cut
 * by causality or by the window, V is multiplied query by query over the visible keys alone: rows
 * outside are never read, so what lies there (rows written later, rows given up) cannot matter.
 */
#include "kernels/attention_isa.h"

#include <math.h>

#include "kernels/attention_tile.h"
#include "kernels/simd_math.h"
#include "kernels/simd_narrow.h"
#include "kernels/table.h"

/* Rows per page; as size_t, for positions. */
#define PAGE ((size_t)FL_KV_ROWS)

typedef struct work {
  const fl_attn_tile *t;
  size_t head_dim;
  size_t window;    /* at most the position after the last query's: no bound is that */
  float *s;         /* [rows, PAGE]: scores, then p */
  float *o;         /* [rows, head_dim] */
  float *m, *l, *c; /* [rows]: maximum, sum, factor of the page for o and l */
  float *wide;      /* [PAGE * head_dim]: a page widened from f16 */
} work;

/* What query i sees of the page whose first row is `base`: rows [lo, hi) of it. */
static void visible(const work *w, size_t i, size_t base, size_t *lo, size_t *hi) {
  size_t pos = w->t->pos0 + i;
  size_t first = pos + 1 > w->window ? pos + 1 - w->window : 0;
  *lo = first > base ? (first - base < PAGE ? first - base : PAGE) : 0;
  *hi = pos + 1 > base ? (pos + 1 - base < PAGE ? pos + 1 - base : PAGE) : 0;
  if (*lo > *hi) *lo = *hi;
}

/* A page's K or V as it is used: where it lies, and what lies next in the order of use. That is
 * asked for during the first pass over this one, for a lone query's sake, which reads everything
 * once and would wait for memory. */
typedef struct block {
  const void *at;
  bool f16;
  const char *ahead; /* NULL: already asked for */
} block;

static void multiply(tile *x, block *b) {
  x->b = b->at;
  x->ahead = b->ahead;
  if (b->f16) tile_mul_f16(x);
  else if (b->ahead) tile_mul_ahead(x);
  else tile_mul(x);
  if (!b->f16) b->ahead = NULL;
}

/* s[row] = scale * q . K for rows [r0, r1) of the tile. */
static void scores(const work *w, size_t r0, size_t r1, block *key) {
  const fl_attn_tile *t = w->t;
  size_t step = tile_step(r1 - r0);
  tile x = { .fresh = true, .a_step = 1, .k1 = w->head_dim, .ldb = PAGE, .lanes = PAGE };
  for (size_t r = r0; r < r1; r += step) {
    x.rows = r1 - r < step ? r1 - r : step;
    for (size_t j = 0; j < x.rows; j++) {
      size_t i = (r + j) / t->n_h, h = (r + j) % t->n_h;
      x.a[j] = t->q + i * t->ldq + h * w->head_dim;
      x.c[j] = w->s + (r + j) * PAGE;
    }
    multiply(&x, key);
  }
}

/* o[row] = o[row] * c[row] + p[row] . V over keys [lo, hi), rows [r0, r1). */
static void values(const work *w, size_t r0, size_t r1, size_t lo, size_t hi, block *val) {
  size_t step = tile_step(r1 - r0), hd = w->head_dim;
  tile x = { .a_step = 1, .k0 = lo, .k1 = hi, .ldb = hd, .lanes = hd };
  for (size_t r = r0; r < r1; r += step) {
    x.rows = r1 - r < step ? r1 - r : step;
    for (size_t j = 0; j < x.rows; j++) {
      x.a[j] = w->s + (r + j) * PAGE;
      x.c[j] = w->o + (r + j) * hd;
      x.keep[j] = w->c[r + j];
    }
    multiply(&x, val);
  }
}

/* Scales, caps and masks the scores of one row; returns the new running maximum. */
static float finish_scores(const fl_attn *a, float *s, size_t lo, size_t hi, float m) {
  vf top = vf_set1(-INFINITY);
  for (size_t v = 0; v < NV; v++) {
    vf x = vf_load(s + v * VF) * a->scale;
    if (a->softcap != 0) x = vm_softcap(x, a->softcap);
    if (hi - lo < PAGE) x = vm_keep_range(x, v * VF, lo, hi, -INFINITY);
    top = vf_max(top, x);
    vf_store(s + v * VF, x);
  }
  float best = vm_hmax(top);
  return best > m ? best : m;
}

/* p = exp(s - m) in place; returns their sum. */
static float exponentials(float *s, float m) {
  vf p[NV];
  for (size_t v = 0; v < NV; v++) {
    p[v] = vm_exp(vf_load(s + v * VF) - m);
    vf_store(s + v * VF, p[v]);
  }
  for (size_t h = NV / 2; h > 0; h /= 2)
    for (size_t v = 0; v < h; v++) p[v] = p[v] + p[v + h];
  return vm_sum(p[0]);
}

/* The online softmax of rows [r0, r1) over one page: s becomes p; m, l and c are set. */
static void softmax(const work *w, size_t r0, size_t r1, size_t base) {
  const fl_attn_tile *t = w->t;
  for (size_t r = r0; r < r1; r++) {
    size_t lo, hi;
    visible(w, r / t->n_h, base, &lo, &hi);
    float m = finish_scores(t->a, w->s + r * PAGE, lo, hi, w->m[r]);
    w->c[r] = w->m[r] - m;
    w->m[r] = m;
  }
  for (size_t r = r0; r < r1; r += VF)
    vm_store(w->c + r, vm_exp(vm_load(w->c + r, r1 - r)), r1 - r);
  for (size_t r = r0; r < r1; r++)
    w->l[r] = w->l[r] * w->c[r] + exponentials(w->s + r * PAGE, w->m[r]);
}

/* f16 is widened in registers for few rows, into scratch for many. */
static block use_block(const work *w, const char *at, const char *next, size_t rows) {
  if (!w->t->a->kv_f16 || rows <= RMAX) return (block){ at, w->t->a->kv_f16, next };
  for (size_t i = 0; i < PAGE * w->head_dim; i += PAGE) {
    tile_ahead(next, i / PAGE, true);
    for (size_t v = 0; v < PAGE; v += VF)
      vf_store(w->wide + i + v, vf_load_f16((const uint16_t *)(const void *)at + i + v));
  }
  return (block){ w->wide, false, NULL };
}

/* One page for the rows of queries [i0, i1), which see some of it; `next` is the page after. */
static void page_step(const work *w, const char *mem, const char *next, size_t base, size_t i0,
                      size_t i1) {
  const fl_attn_tile *t = w->t;
  size_t r0 = i0 * t->n_h, r1 = i1 * t->n_h;
  block key = use_block(w, mem + t->k_at, mem + t->v_at, r1 - r0);
  scores(w, r0, r1, &key);
  softmax(w, r0, r1, base);
  block val = use_block(w, mem + t->v_at, next + t->k_at, r1 - r0);
  size_t lo, hi, last_lo, last_hi;
  visible(w, i0, base, &lo, &hi);
  visible(w, i1 - 1, base, &last_lo, &last_hi);
  if (hi == PAGE && last_lo == 0) { /* hi and lo only grow with the query */
    values(w, r0, r1, 0, PAGE, &val);
    return;
  }
  for (size_t i = i0; i < i1; i++) {
    visible(w, i, base, &lo, &hi);
    values(w, i * t->n_h, (i + 1) * t->n_h, lo, hi, &val);
  }
}

static void start(work *w, const fl_attn_tile *t) {
  size_t rows = t->n_q * t->n_h, hd = t->a->head_dim;
  float *p = t->scratch;
  size_t end = t->pos0 + t->n_q, window = t->a->window;
  *w = (work){ .t = t, .head_dim = hd, .s = p };
  w->window = window && window < end ? window : end;
  w->wide = p += rows * PAGE;
  w->o = p += hd * PAGE;
  w->m = p += rows * hd;
  w->l = p += rows;
  w->c = p + rows;
  memset(w->o, 0, rows * hd * sizeof *w->o);
  memset(w->l, 0, rows * sizeof *w->l);
  for (size_t r = 0; r < rows; r++) w->m[r] = -1e30f;
}

static void finish(const work *w) {
  const fl_attn_tile *t = w->t;
  for (size_t i = 0; i < t->n_q; i++)
    for (size_t h = 0; h < t->n_h; h++) {
      size_t r = i * t->n_h + h, hd = w->head_dim;
      float *out = t->out + i * t->ldo + h * hd;
      for (size_t d = 0; d < hd; d += VF)
        vm_store(out + d, vm_load(w->o + r * hd + d, hd - d) / w->l[r], hd - d);
      if (t->stat) t->stat[i * t->a->n_heads + h] = w->m[r] + logf(w->l[r]);
    }
}

static void run_tile(const fl_attn_tile *t) {
  work w;
  start(&w, t);
  size_t end = t->pos0 + t->n_q, first = t->pos0 + 1 > w.window ? t->pos0 + 1 - w.window : 0;
  for (size_t page = first / PAGE; page * PAGE < end; page++) {
    size_t base = page * PAGE, past = base + PAGE + w.window - 1; /* the first that sees no more */
    size_t i0 = base > t->pos0 ? base - t->pos0 : 0;
    size_t i1 = past < end ? past - t->pos0 : t->n_q;
    const char *mem = t->pages[page], *next = base + PAGE < end ? t->pages[page + 1] : mem;
    page_step(&w, mem, next, base, i0, i1);
  }
  finish(&w);
}

extern const struct fl_attention_ops FL_ISA_TABLE(fl_attention_ops);
const struct fl_attention_ops FL_ISA_TABLE(fl_attention_ops) = { .tile = run_tile };
