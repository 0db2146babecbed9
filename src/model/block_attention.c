/* block_attention.c - the attention of a layer, forward and backward.
 *
 *   h = norm(x);  [q k v] = h Wqkv^T (+ bias);  q, k: norm by head, rotary at the row's position;
 *   k, v go to the pages that attention reads;  a = attention(q, pages);  x += [norm](a Wo^T)
 */
#include <string.h>

#include "model/stages.h"

size_t fl_layer_qkv_cols(const fl_hparams *hp, size_t layer) {
  const fl_layer_hparams *l = &hp->layer[layer];
  size_t kv = l->kv_from == (int32_t)layer ? l->kv_heads : 0;
  return (l->n_heads + 2 * kv) * l->head_dim;
}

/* What the row functions below need to know. */
typedef struct block {
  size_t layer, q, kv, ld; /* columns of q, of k; row stride of qkv */
  bool put;                /* k and v go to the pages */
  const fl_layer_hparams *l;
  const fl_layer_weights *w;
  fl_tape *t;
  const float *raw;       /* backward: the tape's qkv */
  const size_t *kv_first; /* backward: a span's first row in dk/dv */
  const float *dk, *dv;   /* backward: rows of K/V gradients of all spans */
  size_t n_q;             /* rows that have a query */
  const uint32_t *row_of; /* their numbers; NULL: all rows have one */
} block;

static block block_of(fl_pass *p, size_t layer, fl_tape *t) {
  const fl_layer_hparams *l = &p->model->hp.layer[layer];
  const fl_layer_weights *w = &p->model->weights.layer[layer];
  return (block){ .layer = layer,
                  .q = l->n_heads * l->head_dim,
                  .kv = l->kv_heads * l->head_dim,
                  .ld = fl_layer_qkv_cols(&p->model->hp, layer),
                  .l = l,
                  .w = w,
                  .t = t,
                  .n_q = fl_rows_out(p, layer),
                  .row_of = layer >= p->last_kv_layer ? p->output_row : NULL };
}

static const float *rope_row(const fl_pass *p, const block *c, size_t row) {
  return p->rope[c->l->rope_set] + row * 2 * p->model->hp.rope[c->l->rope_set].half;
}

/* The number of the i-th query's row. */
static size_t query_row(const block *c, size_t i) { return c->row_of != NULL ? c->row_of[i] : i; }

/* Norm by head and rotary on n_heads heads of one row, in place. */
static void norm_rope(const fl_pass *p, const block *c, float *x, size_t n_heads, const float *norm,
                      size_t row) {
  const fl_hparams *hp = &p->model->hp;
  size_t hd = c->l->head_dim;
  if (norm != NULL) fl_rmsnorm(p->model->kern, x, x, norm, n_heads, hd, hd, hd, hp->rms_eps);
  fl_rope_row(p->model->kern, x, n_heads, hd, hp->rope[c->l->rope_set].half, rope_row(p, c, row),
              hp->rope_interleaved, false);
}

static void attn_norm_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const block *c = ctx;
  size_t d = p->model->hp.d_model;
  if (c->t != NULL)
    memcpy(c->t->x_in + first * d, p->x + first * d, (end - first) * d * sizeof *p->x);
  fl_rmsnorm(p->model->kern, p->h + first * d, p->x + first * d, c->w->attn_norm, end - first, d, d,
             d, p->model->hp.rms_eps);
}

/* h Wqkv^T. In the last layer with K/V rows of its own: k and v of all rows,
 * then q of the rows with an output, which are moved together. */
static void project(fl_pass *p, const block *c, size_t n) {
  const size_t d = p->model->hp.d_model;
  if (c->n_q == n) {
    fl_linear_forward(&c->w->qkv, p->team, p->qkv, c->ld, p->h, d, n, p->scratch);
    return;
  }
  fl_linear_columns(&c->w->qkv, p->team, p->qkv, c->ld, p->h, d, n, c->q, c->ld, p->scratch);
  fl_output_rows_gather(p, p->h);
  fl_output_rows_gather(p, p->x);
  fl_linear_columns(&c->w->qkv, p->team, p->qkv, c->ld, p->h, d, c->n_q, 0, c->q, p->scratch);
}

/* q of one query in p->qkv from the raw projection to what attention sees. */
static void finish_q(const fl_pass *p, const block *c, float *row, size_t i) {
  norm_rope(p, c, row, c->l->n_heads, c->w->q_norm, query_row(c, i));
}

/* k and v of one row of p->qkv from the raw projections to what attention sees, into the pages. */
static void put_kv(fl_pass *p, const block *c, float *row, size_t r) {
  const fl_layer_hparams *l = c->l;
  float *k = row + c->q, *v = k + c->kv;
  norm_rope(p, c, k, l->kv_heads, c->w->k_norm, r);
  if (p->model->hp.v_norm)
    fl_rmsnorm(p->model->kern, v, v, NULL, l->kv_heads, l->head_dim, l->head_dim, l->head_dim,
               p->model->hp.rms_eps);
  fl_pages_put(p, c->layer, r, k, v);
}

/* q at the r-th query, k and v at the r-th row. */
static void qkv_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const block *c = ctx;
  bool owner = c->l->kv_from == (int32_t)c->layer;
  for (size_t r = first; r < end; r++) {
    float *row = p->qkv + r * c->ld, *k = row + c->q, *v = k + c->kv;
    if (c->w->qkv_bias != NULL) fl_add(p->model->kern, row, c->w->qkv_bias, c->ld);
    if (owner && c->l->v_from_k) memcpy(v, k, c->kv * sizeof *v);
    if (c->t != NULL) memcpy(c->t->qkv_raw + r * c->ld, row, c->ld * sizeof *row);
    if (r < c->n_q) finish_q(p, c, row, r);
    if (c->put) put_kv(p, c, row, r);
  }
}

static void residual_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const block *c = ctx;
  const fl_kernels *k = p->model->kern;
  size_t d = p->model->hp.d_model, at = first * d, n = (end - first) * d;
  if (c->w->post_attn_norm != NULL) {
    if (c->t != NULL) memcpy(c->t->attn_y + at, p->h + at, n * sizeof *p->h);
    fl_rmsnorm(k, p->h + at, p->h + at, c->w->post_attn_norm, end - first, d, d, d,
               p->model->hp.rms_eps);
  }
  fl_add(k, p->x + at, p->h + at, n);
  if (c->t != NULL) memcpy(c->t->x_mid + at, p->x + at, n * sizeof *p->x);
}

/* From the layer's input to the attention's output. */
static void attend(fl_pass *p, block *c, float *att, float *stat) {
  const size_t n = fl_rows_in(p, c->layer);
  const fl_attn a = fl_layer_attn(p, c->layer);
  fl_pass_rows(p, attn_norm_rows, c, n, p->model->hp.d_model);
  project(p, c, n);
  c->put = fl_pages_open(p, c->layer, p->recomputing);
  fl_pass_rows(p, qkv_rows, c, n, 4 * c->ld);
  fl_output_rows_queries(p, c->layer);
  fl_attention(p->model->kern, p->team, &a, p->attn_span, p->n_spans, att, c->q, p->qkv, c->ld,
               stat, p->scratch);
}

void fl_attention_queries(fl_pass *p, size_t layer, float *stat) {
  block c = block_of(p, layer, NULL);
  attend(p, &c, p->att, stat);
}

void fl_attention_block_fwd(fl_pass *p, size_t layer, fl_tape *t) {
  block c = block_of(p, layer, t);
  size_t d = p->model->hp.d_model;
  float *att = t != NULL ? t->att : p->att;
  attend(p, &c, att, t != NULL ? t->stat : NULL);
  fl_linear_forward(&c.w->attn_out, p->team, p->h, d, att, c.q, c.n_q, p->scratch);
  fl_pass_rows(p, residual_rows, &c, c.n_q, 2 * d);
}

/* ---- backward ---- */

/* q, and k and v where they have left the pages, as the forward had them: from the raw
 * projections. */
static void recompute_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const block *c = ctx;
  for (size_t r = first; r < end; r++) {
    float *row = p->qkv + r * c->ld;
    memcpy(row, c->raw + r * c->ld, (c->put ? c->ld : c->q) * sizeof *row);
    if (r < c->n_q) finish_q(p, c, row, r);
    if (c->put) put_kv(p, c, row, r);
  }
}

static void post_norm_bwd_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const block *c = ctx;
  size_t d = p->model->hp.d_model, at = first * d;
  fl_rmsnorm_bwd(p->model->kern, p->dy + at, p->dx + at, c->t->attn_y + at, c->w->post_attn_norm,
                 end - first, d, d, d, d, p->model->hp.rms_eps, false);
}

/* The gradient of n_heads rotated and normed heads, in place, to that of the raw projection. */
static void norm_rope_bwd(const fl_pass *p, const block *c, float *dx, const float *raw,
                          size_t n_heads, const float *norm, size_t row) {
  const fl_hparams *hp = &p->model->hp;
  size_t hd = c->l->head_dim;
  fl_rope_row(p->model->kern, dx, n_heads, hd, hp->rope[c->l->rope_set].half, rope_row(p, c, row),
              hp->rope_interleaved, true);
  if (norm != NULL)
    fl_rmsnorm_bwd(p->model->kern, dx, dx, raw, norm, n_heads, hd, hd, hd, hd, hp->rms_eps, false);
}

static void dqkv_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const block *c = ctx;
  size_t hd = c->l->head_dim;
  for (size_t r = first; r < end; r++) {
    float *d = p->dqkv + r * c->ld, *dk = d + c->q, *dv = dk + c->kv;
    const float *raw = c->raw + r * c->ld;
    size_t kv_row = c->kv_first[p->row_span[r]] + p->row_pos[r];
    if (r < c->n_q) norm_rope_bwd(p, c, d, raw, c->l->n_heads, c->w->q_norm, query_row(c, r));
    if (c->l->kv_from != (int32_t)c->layer) continue;
    memcpy(dk, c->dk + kv_row * c->kv, c->kv * sizeof *d);
    memcpy(dv, c->dv + kv_row * c->kv, c->kv * sizeof *d);
    norm_rope_bwd(p, c, dk, raw + c->q, c->l->kv_heads, c->w->k_norm, r);
    if (p->model->hp.v_norm)
      fl_rmsnorm_bwd(p->model->kern, dv, dv, raw + c->q + c->kv, NULL, c->l->kv_heads, hd, hd, hd,
                     hd, p->model->hp.rms_eps, false);
    if (c->l->v_from_k) fl_add(p->model->kern, dk, dv, c->kv);
  }
}

static void attn_norm_bwd_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const block *c = ctx;
  size_t d = p->model->hp.d_model, at = first * d;
  fl_rmsnorm_bwd(p->model->kern, p->dx + at, p->dh + at, c->t->x_in + at, c->w->attn_norm,
                 end - first, d, d, d, d, p->model->hp.rms_eps, true);
}

/* Prefix rows of every span into the parts' gradients, spans ascending: a fixed order. */
static void add_prefix(fl_pass *p, const block *c, const fl_grad_span *grads) {
  const fl_kernels *k = p->model->kern;
  for (size_t s = 0; s < p->n_spans; s++) {
    size_t row = c->kv_first[s];
    for (size_t i = 0; i < grads[s].n_parts; i++) {
      const fl_grad_part *g = &grads[s].parts[i];
      size_t from = (row + g->skip) * c->kv, n = (g->n_rows - g->skip) * c->kv;
      if (g->dk != NULL && g->dk[c->layer] != NULL) {
        fl_add(k, g->dk[c->layer], c->dk + from, n);
        fl_add(k, g->dv[c->layer], c->dv + from, n);
      }
      row += g->n_rows;
    }
  }
}

/* Layers whose rows later layers read collect those layers' gradients; returns the accumulator of
 * the layer that owns the rows of `layer`, or -1. */
static int accumulator(const fl_pass *p, const block *c) {
  for (int i = 0; i < 2; i++)
    if (p->acc_of[i] == c->l->kv_from) return i;
  return -1;
}

/* dk, dv of this layer's attention: kept for the owner, or complete. True when complete. */
static bool settle_kv(fl_pass *p, block *c, size_t n_kv_rows) {
  const fl_kernels *k = p->model->kern;
  int acc = accumulator(p, c);
  size_t n = n_kv_rows * c->kv;
  c->dk = p->dk;
  c->dv = p->dv;
  if (acc < 0) return true;
  fl_add(k, p->dk_acc[acc], p->dk, n);
  fl_add(k, p->dv_acc[acc], p->dv, n);
  c->dk = p->dk_acc[acc];
  c->dv = p->dv_acc[acc];
  return c->l->kv_from == (int32_t)c->layer;
}

/* Points each span at its rows of dk, dv; returns the number of rows. */
static size_t place_grads(fl_pass *p, const block *c, size_t *kv_first) {
  size_t at = 0;
  for (size_t s = 0; s < p->n_spans; s++) {
    kv_first[s] = at;
    p->grad_span[s] = (fl_attn_grad_span){ .dk = p->dk + at * c->kv, .dv = p->dv + at * c->kv };
    at += p->attn_span[s].n_rows;
  }
  return at;
}

void fl_attention_block_bwd(fl_pass *p, size_t layer, const fl_tape *t, const fl_grad_span *grads) {
  block c = block_of(p, layer, (fl_tape *)(uintptr_t)t); /* read only here; the struct is shared */
  size_t d = p->model->hp.d_model, n = fl_rows_in(p, layer);
  fl_attn a = fl_layer_attn(p, layer);
  const float *dy = p->dx;
  c.raw = t->qkv_raw;
  c.kv_first = p->kv_first;
  size_t n_kv_rows = place_grads(p, &c, p->kv_first);
  if (c.w->post_attn_norm != NULL) {
    fl_pass_rows(p, post_norm_bwd_rows, &c, c.n_q, 4 * d);
    dy = p->dy;
  }
  fl_linear_backward(&c.w->attn_out, p->team, p->datt, c.q, dy, d, c.n_q, p->scratch);
  c.put = !p->opt.checkpoint && fl_pages_open(p, layer, true);
  fl_pass_rows(p, recompute_rows, &c, c.put ? n : c.n_q, 2 * c.q);
  fl_output_rows_queries(p, layer);
  fl_attention_bwd(p->model->kern, p->team, &a, p->attn_span, p->grad_span, p->n_spans, p->dqkv,
                   c.ld, p->datt, c.q, t->att, c.q, p->qkv, c.ld, t->stat, p->scratch);
  if (settle_kv(p, &c, n_kv_rows)) add_prefix(p, &c, grads);
  if (layer == 0) return;
  fl_pass_rows(p, dqkv_rows, &c, n, 4 * c.ld);
  if (c.n_q < n) {
    fl_output_rows_scatter(p, p->dqkv, c.ld, c.q);
    fl_output_rows_scatter(p, p->dx, d, d);
  }
  fl_linear_backward(&c.w->qkv, p->team, p->dh, d, p->dqkv, c.ld, n, p->scratch);
  fl_pass_rows(p, attn_norm_bwd_rows, &c, n, 4 * d);
}
