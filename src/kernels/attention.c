/* attention.c - cuts attention into tiles and pieces, and gives each to a thread.
 *
 * Work is laid out in one order (span, kv head, rows ascending). Every thread walks the whole list
 * and takes the next piece that nobody has as it comes to need one, so that a thread that another
 * program slows down does not hold up the others. Who takes what cannot show in the results.
 */
#include "kernels/attention.h"

#include <stdatomic.h>

#include "base/mem.h"
#include "kernels/attention_bwd_isa.h"
#include "kernels/attention_isa.h"
#include "kernels/pointwise.h"
#include "kernels/table.h"

#define PAGE ((size_t)FL_KV_ROWS)

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Floats of scratch of one thread, in whole cache lines. */
static size_t rank_floats(const fl_attn *a) {
  size_t fwd = fl_attn_tile_floats(a->head_dim), bwd = fl_attn_piece_floats(a->head_dim);
  return ((fwd > bwd ? fwd : bwd) + 15) / 16 * 16;
}

size_t fl_attention_scratch(const fl_attn *a, const fl_team *team) {
  return rank_floats(a) * sizeof(float) * fl_team_size(team);
}

/* --- turns ------------------------------------------------------------------------------------ */

/* A thread's walk through the list. */
typedef struct walk {
  atomic_size_t *next; /* the first piece that nobody has taken; shared */
  size_t at, mine;     /* the piece that is offered, and the one that this thread has taken */
  unsigned rank;
} walk;

static size_t take_next(walk *w) {
  return atomic_fetch_add_explicit(w->next, 1, memory_order_relaxed);
}

static walk walk_start(atomic_size_t *next, unsigned rank) {
  walk w = { .next = next, .rank = rank };
  w.mine = take_next(&w);
  return w;
}

/* Whether the piece that is offered now is this thread's; after its work comes walk_done(). */
static bool walk_takes(walk *w) { return w->at++ == w->mine; }
static void walk_done(walk *w) { w->mine = take_next(w); }

/* --- forward ---------------------------------------------------------------------------------- */

typedef struct forward {
  const fl_kernels *k;
  const fl_attn *a;
  const fl_attn_span *spans;
  size_t n_spans;
  float *out, *stat, *scratch;
  const float *q;
  size_t ldo, ldq;
  size_t tile_q, tile_h; /* most queries and heads of a tile */
  atomic_size_t next;
} forward;

/* Tiles as large as registers and caches like them, but enough of them for every thread; heads of
 * a group share loads and are parted only where threads would have nothing to do. */
static void choose_tile(forward *f, size_t n_ranks) {
  size_t units = 0, group = f->a->n_heads / f->a->kv_heads;
  for (size_t s = 0; s < f->n_spans; s++) units += f->spans[s].n_q * f->a->kv_heads;
  f->tile_q = f->tile_h = 1;
  if (units == 0) return;
  f->tile_h = least(group, FL_ATTN_ROWS);
  if (n_ranks > units) f->tile_h = least(f->tile_h, (group * units + n_ranks - 1) / n_ranks);
  size_t rows = FL_ATTN_ROWS, even = units * group / (4 * n_ranks);
  if (n_ranks > 1 && even < rows) rows = even > 12 ? even : 12;
  if (units < 2 * n_ranks) rows = f->tile_h; /* the few there are, one by one */
  f->tile_q = rows > f->tile_h ? rows / f->tile_h : 1;
}

static void run_tile(const forward *f, const fl_attn_span *s, size_t kv, size_t h0, size_t n_h,
                     size_t i0, size_t n_q, unsigned rank) {
  const fl_attn *a = f->a;
  size_t hd = a->head_dim, head = kv * (a->n_heads / a->kv_heads) + h0, row = s->q_first + i0;
  size_t kv_bytes = kv * PAGE * hd * (a->kv_f16 ? sizeof(uint16_t) : sizeof(float));
  fl_attn_tile t = { .a = a,
                     .pages = s->pages,
                     .n_q = n_q,
                     .n_h = n_h,
                     .ldq = f->ldq,
                     .ldo = f->ldo,
                     .k_at = a->k_offset + kv_bytes,
                     .v_at = a->v_offset + kv_bytes,
                     .pos0 = s->n_rows - s->n_q + i0,
                     .q = f->q + row * f->ldq + head * hd,
                     .out = f->out + row * f->ldo + head * hd,
                     .stat = f->stat ? f->stat + row * a->n_heads + head : NULL,
                     .scratch = f->scratch + rank * rank_floats(a) };
  f->k->attention->tile(&t);
}

/* Offers the tiles of one span. */
static void walk_span(const forward *f, const fl_attn_span *s, walk *w) {
  size_t group = f->a->n_heads / f->a->kv_heads;
  size_t per_kv = (group + f->tile_h - 1) / f->tile_h;
  for (size_t u = 0; u < f->a->kv_heads * per_kv; u++) {
    size_t kv = u / per_kv, h0 = u % per_kv * f->tile_h, n_h = least(f->tile_h, group - h0);
    for (size_t i = 0; i < s->n_q; i += f->tile_q) {
      if (!walk_takes(w)) continue;
      run_tile(f, s, kv, h0, n_h, i, least(f->tile_q, s->n_q - i), w->rank);
      walk_done(w);
    }
  }
}

static void forward_rank(void *ctx, unsigned rank, unsigned n_ranks) {
  forward *f = ctx;
  walk w = walk_start(&f->next, rank);
  (void)n_ranks;
  for (size_t s = 0; s < f->n_spans; s++) walk_span(f, &f->spans[s], &w);
}

void fl_attention(const fl_kernels *k, fl_team *team, const fl_attn *a, const fl_attn_span *spans,
                  size_t n_spans, float *out, size_t ldo, const float *q, size_t ldq, float *stat,
                  void *scratch) {
  forward f = { .k = k,
                .a = a,
                .spans = spans,
                .n_spans = n_spans,
                .out = out,
                .stat = stat,
                .scratch = scratch,
                .q = q,
                .ldo = ldo,
                .ldq = ldq };
  choose_tile(&f, fl_team_size(team));
  fl_team_run(team, forward_rank, &f);
}

/* --- backward --------------------------------------------------------------------------------- */

typedef struct backward {
  const fl_kernels *k;
  const fl_attn *a;
  const fl_attn_span *spans;
  const fl_attn_grad_span *grads;
  size_t n_spans;
  float *dq, *scratch;
  const float *q, *out, *dout, *stat;
  size_t ldq, ldo, lddo, lddq;
  bool parted; /* fewer units than threads: dK, dV by page and dQ by rows */
  atomic_size_t next;
} backward;

static fl_attn_piece whole_unit(const backward *b, size_t s, size_t kv, unsigned rank) {
  const fl_attn *a = b->a;
  const fl_attn_span *sp = &b->spans[s];
  size_t hd = a->head_dim, group = a->n_heads / a->kv_heads, at = kv * group * hd;
  size_t kv_bytes = kv * PAGE * hd * sizeof(float), row = sp->q_first;
  return (fl_attn_piece){ .a = a,
                          .pages = sp->pages,
                          .k_at = a->k_offset + kv_bytes,
                          .v_at = a->v_offset + kv_bytes,
                          .n_rows = sp->n_rows,
                          .pos0 = sp->n_rows - sp->n_q,
                          .n_q = sp->n_q,
                          .n_h = group,
                          .row1 = sp->n_q * group,
                          .page1 = (sp->n_rows + PAGE - 1) / PAGE,
                          .want_dq = true,
                          .want_dkv = true,
                          .q = b->q + row * b->ldq + at,
                          .out = b->out + row * b->ldo + at,
                          .dout = b->dout + row * b->lddo + at,
                          .dq = b->dq + row * b->lddq + at,
                          .ldq = b->ldq,
                          .ldo = b->ldo,
                          .lddo = b->lddo,
                          .lddq = b->lddq,
                          .stat = b->stat + row * a->n_heads + kv * group,
                          .dk = b->grads[s].dk + kv * hd,
                          .dv = b->grads[s].dv + kv * hd,
                          .dkv_from = b->grads[s].dkv_from,
                          .scratch = b->scratch + rank * rank_floats(a) };
}

static void offer(const backward *b, const fl_attn_piece *p, walk *w) {
  if (!walk_takes(w)) return;
  b->k->attention_bwd->piece(p);
  walk_done(w);
}

/* One unit in parts: each page's dK and dV, then dQ of blocks of rows. */
static void walk_parts(const backward *b, const fl_attn_piece *unit, walk *w) {
  fl_attn_piece p = *unit;
  p.want_dq = false;
  for (p.page0 = unit->dkv_from / PAGE; p.page0 < unit->page1; p.page0++) {
    p.page1 = p.page0 + 1;
    offer(b, &p, w);
  }
  p = *unit;
  p.want_dkv = false;
  for (; p.row0 < unit->row1; p.row0 = p.row1) {
    p.row1 = least(p.row0 + FL_ATTN_BWD_ROWS, unit->row1);
    offer(b, &p, w);
  }
}

static void backward_rank(void *ctx, unsigned rank, unsigned n_ranks) {
  backward *b = ctx;
  walk w = walk_start(&b->next, rank);
  (void)n_ranks;
  for (size_t u = 0; u < b->n_spans * b->a->kv_heads; u++) {
    fl_attn_piece p = whole_unit(b, u / b->a->kv_heads, u % b->a->kv_heads, rank);
    if (b->parted) walk_parts(b, &p, &w);
    else offer(b, &p, &w);
  }
}

void fl_attention_bwd(const fl_kernels *k, fl_team *team, const fl_attn *a,
                      const fl_attn_span *spans, const fl_attn_grad_span *grads, size_t n_spans,
                      float *dq, size_t lddq, const float *dout, size_t lddo, const float *out,
                      size_t ldo, const float *q, size_t ldq, const float *stat, void *scratch) {
  backward b = { .k = k,
                 .a = a,
                 .spans = spans,
                 .grads = grads,
                 .n_spans = n_spans,
                 .dq = dq,
                 .scratch = scratch,
                 .q = q,
                 .out = out,
                 .dout = dout,
                 .stat = stat,
                 .ldq = ldq,
                 .ldo = ldo,
                 .lddo = lddo,
                 .lddq = lddq };
  b.parted = n_spans * a->kv_heads < fl_team_size(team);
  fl_team_run(team, backward_rank, &b);
}

/* --- page layout ------------------------------------------------------------------------------ */

enum { RUN = 64 /* values converted at a time */ };

/* Element of (kv head, value d, row) in K or V, and the distance to the next d. */
static size_t page_index(const fl_attn *a, bool is_key, size_t head, size_t d, size_t row) {
  size_t block = head * PAGE * a->head_dim;
  return block + (is_key ? d * PAGE + row : row * a->head_dim + d);
}

void fl_page_put(const fl_kernels *k, void *page, const fl_attn *a, bool is_key, size_t row_in_page,
                 const float *x) {
  char *base = (char *)page + (is_key ? a->k_offset : a->v_offset);
  size_t step = is_key ? PAGE : 1, n;
  for (size_t at = 0; at < a->kv_heads * a->head_dim; at += n) {
    size_t d = at % a->head_dim;
    n = least(RUN, a->head_dim - d);
    size_t to = page_index(a, is_key, at / a->head_dim, d, row_in_page);
    float *f = (float *)(void *)base + to;
    uint16_t *h = (uint16_t *)(void *)base + to, half[RUN];
    if (a->kv_f16) fl_f32_to_f16_n(k, half, x + at, n);
    for (size_t i = 0; a->kv_f16 && i < n; i++) h[i * step] = half[i];
    for (size_t i = 0; !a->kv_f16 && i < n; i++) f[i * step] = x[at + i];
  }
}

/* A cache line of each row at a time: the keys' lines that it goes to stay in the cache. */
static void turn_keys(float *to, const fl_attn *a, size_t row_in_page, size_t n, const float *x) {
  enum { LINE = FL_ALIGN / sizeof(float) };
  const size_t width = a->kv_heads * a->head_dim;
  for (size_t at = 0, m; at < width; at += m) {
    m = least(LINE, a->head_dim - at % a->head_dim);
    for (size_t r = 0; r < n; r++)
      for (size_t i = 0; i < m; i++) to[(at + i) * PAGE + row_in_page + r] = x[r * width + at + i];
  }
}

void fl_page_put_rows(const fl_kernels *k, void *page, const fl_attn *a, bool is_key,
                      size_t row_in_page, size_t n, const float *x) {
  if (is_key && !a->kv_f16) {
    turn_keys((float *)(void *)((char *)page + a->k_offset), a, row_in_page, n, x);
    return;
  }
  for (size_t r = 0; r < n; r++)
    fl_page_put(k, page, a, is_key, row_in_page + r, x + r * a->kv_heads * a->head_dim);
}

void fl_page_get(const fl_kernels *k, const void *page, const fl_attn *a, bool is_key,
                 size_t row_in_page, float *x) {
  const char *base = (const char *)page + (is_key ? a->k_offset : a->v_offset);
  size_t step = is_key ? PAGE : 1, n;
  for (size_t at = 0; at < a->kv_heads * a->head_dim; at += n) {
    size_t d = at % a->head_dim;
    n = least(RUN, a->head_dim - d);
    size_t from = page_index(a, is_key, at / a->head_dim, d, row_in_page);
    const float *f = (const float *)(const void *)base + from;
    const uint16_t *h = (const uint16_t *)(const void *)base + from;
    uint16_t half[RUN];
    for (size_t i = 0; a->kv_f16 && i < n; i++) half[i] = h[i * step];
    for (size_t i = 0; !a->kv_f16 && i < n; i++) x[at + i] = f[i * step];
    if (a->kv_f16) fl_f16_to_f32_n(k, x + at, half, n);
  }
}
