/* block_ffn.c - the feed-forward of a layer, forward and backward.
 *
 *   dense:   h = norm(x);  [g u] = h [Wg Wu]^T;  y = (act(g) * u) Wd^T
 *   experts: y = experts(norm(x))                                      (qwen3moe)
 *   both:    y = norm1(dense) + norm2(experts(norm(x)))                (gemma4, in parallel)
 *   x += [norm](y);  then the per-layer embedding's addition and the output scale, where there are
 */
#include <string.h>

#include "model/internal.h"

typedef struct block {
  size_t ff;
  const fl_layer_weights *w;
  const fl_moe_weights *m; /* NULL: no experts */
  const fl_tape *t;
  const float *gu;
  bool both; /* dense and experts in parallel */
} block;

static block block_of(const fl_pass *p, size_t layer, const fl_tape *t) {
  const fl_layer_weights *w = &p->model->weights.layer[layer];
  size_t ff = p->model->hp.layer[layer].n_ff;
  return (block){ .ff = ff,
                  .w = w,
                  .m = w->moe,
                  .t = t,
                  .gu = t != NULL ? t->gate_up : p->gu,
                  .both = w->moe != NULL && ff != 0 };
}

/* y = norm(x) over rows [first, end). */
static void norm(const fl_pass *p, float *y, const float *x, const float *w, size_t first,
                 size_t end) {
  size_t d = p->model->hp.d_model;
  fl_rmsnorm(p->model->kern, y + first * d, x + first * d, w, end - first, d, d, d,
             p->model->hp.rms_eps);
}

static void norm_bwd(const fl_pass *p, float *dx, const float *dy, const float *x, const float *w,
                     size_t first, size_t end, bool add) {
  size_t d = p->model->hp.d_model, at = first * d;
  fl_rmsnorm_bwd(p->model->kern, dx + at, dy + at, x + at, w, end - first, d, d, d, d,
                 p->model->hp.rms_eps, add);
}

static void keep(const fl_pass *p, float *dst, const float *src, size_t first, size_t end) {
  size_t d = p->model->hp.d_model;
  if (dst != NULL) memcpy(dst + first * d, src + first * d, (end - first) * d * sizeof *dst);
}

/* ---- forward ---- */

static void input_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const block *c = ctx;
  norm(p, p->h, p->x, c->w->ffn_norm, first, end);
  if (c->m == NULL) return;
  if (c->both) {
    norm(p, p->moe.in, p->x, c->m->pre_norm, first, end);
    norm(p, p->moe.router_in, p->x, c->m->router_scale, first, end);
  } else {
    keep(p, p->moe.in, p->h, first, end);
    keep(p, p->moe.router_in, p->h, first, end);
  }
}

/* act(g) * u into the shared buffer p->glu [rows, ff]. */
static void glu_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const block *c = ctx;
  for (size_t r = first; r < end; r++) {
    const float *g = c->gu + r * 2 * c->ff;
    fl_glu(p->model->kern, p->glu + r * c->ff, g, g + c->ff, c->ff, p->model->hp.act);
  }
}

/* Branches into p->h, the post norm, the residual. */
static void output_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const block *c = ctx;
  const fl_kernels *k = p->model->kern;
  size_t d = p->model->hp.d_model, at = first * d, n = (end - first) * d;
  if (c->both) {
    keep(p, c->t != NULL ? c->t->dense_y : NULL, p->h, first, end);
    keep(p, c->t != NULL ? c->t->moe_y : NULL, p->moe.out, first, end);
    norm(p, p->h, p->h, c->m->dense_post_norm, first, end);
    norm(p, p->moe.out, p->moe.out, c->m->post_norm, first, end);
    fl_add(k, p->h + at, p->moe.out + at, n);
  } else if (c->m != NULL) {
    keep(p, p->h, p->moe.out, first, end);
  }
  if (c->w->post_ffn_norm != NULL) {
    keep(p, c->t != NULL ? c->t->ffn_y : NULL, p->h, first, end);
    norm(p, p->h, p->h, c->w->post_ffn_norm, first, end);
  }
  fl_add(k, p->x + at, p->h + at, n);
}

static void scale_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const block *c = ctx;
  size_t d = p->model->hp.d_model;
  fl_scale(p->model->kern, p->x + first * d, c->w->out_scale, (end - first) * d);
}

void fl_ffn_block_fwd(fl_pass *p, size_t layer, fl_tape *t) {
  size_t d = p->model->hp.d_model, n = fl_rows_out(p, layer);
  block c = block_of(p, layer, t);
  float *gu = t != NULL ? t->gate_up : p->gu;
  fl_pass_rows(p, input_rows, &c, n, 2 * d);
  if (c.ff != 0) fl_linear_forward(&c.w->gate_up, p->team, gu, 2 * c.ff, p->h, d, n, p->scratch);
  /* Run again for its backward, a plain block has all that the tape lacked. */
  if (p->recomputing && c.m == NULL && c.w->post_ffn_norm == NULL && c.w->ple == NULL) return;
  if (c.ff != 0) {
    fl_pass_rows(p, glu_rows, &c, n, 4 * c.ff);
    fl_linear_forward(&c.w->ffn_down, p->team, p->h, d, p->glu, c.ff, n, p->scratch);
  }
  if (c.m != NULL) fl_moe_fwd(p, layer, t);
  fl_pass_rows(p, output_rows, &c, n, 2 * d);
  if (c.w->ple != NULL) fl_ple_fwd(p, layer, t);
  if (c.w->out_scale != 1) fl_pass_rows(p, scale_rows, &c, n, d);
}

/* ---- backward: p->dx is the gradient of the output and becomes that of x_mid ---- */

static void scale_bwd_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const block *c = ctx;
  size_t d = p->model->hp.d_model;
  fl_scale(p->model->kern, p->dx + first * d, c->w->out_scale, (end - first) * d);
}

/* p->dy = gradient of the sum of branches. */
static void post_norm_bwd_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const block *c = ctx;
  norm_bwd(p, p->dy, p->dx, c->t->ffn_y, c->w->post_ffn_norm, first, end, false);
}

/* The experts' branch: p->moe.out is free in the backward and takes its gradient. */
static void branch_bwd_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const block *c = ctx;
  norm_bwd(p, p->moe.out, p->dy, c->t->moe_y, c->m->post_norm, first, end, false);
  norm_bwd(p, p->dy, p->dy, c->t->dense_y, c->m->dense_post_norm, first, end, false);
}

static void glu_bwd_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const block *c = ctx;
  for (size_t r = first; r < end; r++) {
    const float *g = c->gu + r * 2 * c->ff;
    float *dg = p->dgu + r * 2 * c->ff;
    fl_glu_bwd(p->model->kern, dg, dg + c->ff, p->glu + r * c->ff, g, g + c->ff, c->ff,
               p->model->hp.act);
  }
}

static void input_bwd_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const block *c = ctx;
  size_t d = p->model->hp.d_model, at = first * d, n = (end - first) * d;
  if (c->both) {
    norm_bwd(p, p->dx, p->moe.din, c->t->x_mid, c->m->pre_norm, first, end, true);
    norm_bwd(p, p->dx, p->moe.drouter_in, c->t->x_mid, c->m->router_scale, first, end, true);
  } else if (c->m != NULL) {
    keep(p, p->dh, p->moe.din, first, end);
    fl_add(p->model->kern, p->dh + at, p->moe.drouter_in + at, n);
  }
  norm_bwd(p, p->dx, p->dh, c->t->x_mid, c->w->ffn_norm, first, end, true);
}

void fl_ffn_block_bwd(fl_pass *p, size_t layer, const fl_tape *t) {
  size_t d = p->model->hp.d_model, n = fl_rows_out(p, layer);
  block c = block_of(p, layer, t);
  const float *dy = p->dx;
  if (c.w->out_scale != 1) fl_pass_rows(p, scale_bwd_rows, &c, n, d);
  if (c.w->ple != NULL) fl_ple_bwd(p, layer, t);
  if (c.w->post_ffn_norm != NULL) {
    fl_pass_rows(p, post_norm_bwd_rows, &c, n, 4 * d);
    dy = p->dy;
  }
  if (c.both) fl_pass_rows(p, branch_bwd_rows, &c, n, 8 * d);
  if (c.m != NULL) fl_moe_bwd(p, layer, t, c.both ? p->moe.out : dy);
  if (c.ff != 0) {
    fl_linear_backward(&c.w->ffn_down, p->team, p->glu, c.ff, dy, d, n, p->scratch);
    fl_pass_rows(p, glu_bwd_rows, &c, n, 8 * c.ff);
    fl_linear_backward(&c.w->gate_up, p->team, p->dh, d, p->dgu, 2 * c.ff, n, p->scratch);
  }
  fl_pass_rows(p, input_bwd_rows, &c, n, 8 * d);
}
