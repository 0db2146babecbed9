/* block_ffn.c - the dense feed-forward half of a block, forward and backward.
 *
 *   h = norm(x);  [g u] = h [Wg Wu]^T;  x += [norm]((act(g) * u) Wd^T)
 */
#include <string.h>

#include "model/internal.h"

typedef struct half {
  size_t ff;
  const fl_layer_weights *w;
  fl_tape *t;
  const float *gu;
} half;

static void ffn_norm_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const half *c = ctx;
  size_t d = p->model->hp.d_model, at = first * d;
  fl_rmsnorm(p->model->kern, p->h + at, p->x + at, c->w->ffn_norm, end - first, d, d, d,
             p->model->hp.rms_eps);
}

/* act(g) * u into the shared buffer p->glu [rows, ff], for every row. */
static void glu_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const half *c = ctx;
  for (size_t r = first; r < end; r++) {
    const float *g = c->gu + r * 2 * c->ff;
    fl_glu(p->model->kern, p->glu + r * c->ff, g, g + c->ff, c->ff, p->model->hp.act);
  }
}

static void residual_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const half *c = ctx;
  size_t d = p->model->hp.d_model, at = first * d, n = (end - first) * d;
  if (c->w->post_ffn_norm != NULL) {
    if (c->t != NULL) memcpy(c->t->ffn_y + at, p->h + at, n * sizeof *p->h);
    fl_rmsnorm(p->model->kern, p->h + at, p->h + at, c->w->post_ffn_norm, end - first, d, d, d,
               p->model->hp.rms_eps);
  }
  fl_add(p->model->kern, p->x + at, p->h + at, n);
}

void fl_ffn_half_fwd(fl_pass *p, size_t layer, fl_tape *t) {
  size_t d = p->model->hp.d_model, n = p->n_rows;
  half c = { .ff = p->model->hp.layer[layer].n_ff, .w = &p->model->weights.layer[layer], .t = t };
  float *gu = t != NULL ? t->gate_up : p->gu;
  c.gu = gu;
  fl_pass_rows(p, ffn_norm_rows, &c, n, d);
  fl_proj_forward(&c.w->gate_up, p->team, gu, 2 * c.ff, p->h, d, n, p->scratch);
  /* Run again for its backward, only what the tape lacks is needed. */
  if (p->rerun && c.w->post_ffn_norm == NULL) return;
  fl_pass_rows(p, glu_rows, &c, n, 4 * c.ff);
  fl_proj_forward(&c.w->ffn_down, p->team, p->h, d, p->glu, c.ff, n, p->scratch);
  fl_pass_rows(p, residual_rows, &c, n, d);
}

static void post_norm_bwd_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const half *c = ctx;
  size_t d = p->model->hp.d_model, at = first * d;
  fl_rmsnorm_bwd(p->model->kern, p->dy + at, p->dx + at, c->t->ffn_y + at, c->w->post_ffn_norm,
                 end - first, d, d, d, d, p->model->hp.rms_eps, false);
}

static void glu_bwd_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const half *c = ctx;
  for (size_t r = first; r < end; r++) {
    const float *g = c->gu + r * 2 * c->ff;
    float *dg = p->dgu + r * 2 * c->ff;
    fl_glu_bwd(p->model->kern, dg, dg + c->ff, p->glu + r * c->ff, g, g + c->ff, c->ff,
               p->model->hp.act);
  }
}

static void ffn_norm_bwd_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const half *c = ctx;
  size_t d = p->model->hp.d_model, at = first * d;
  fl_rmsnorm_bwd(p->model->kern, p->dx + at, p->dh + at, c->t->x_mid + at, c->w->ffn_norm,
                 end - first, d, d, d, d, p->model->hp.rms_eps, true);
}

void fl_ffn_half_bwd(fl_pass *p, size_t layer, const fl_tape *t) {
  size_t d = p->model->hp.d_model, n = p->n_rows;
  half c = { .ff = p->model->hp.layer[layer].n_ff, .w = &p->model->weights.layer[layer],
             .t = (fl_tape *)(uintptr_t)t, .gu = t->gate_up };
  const float *dy = p->dx;
  if (c.w->post_ffn_norm != NULL) {
    fl_pass_rows(p, post_norm_bwd_rows, &c, n, 4 * d);
    dy = p->dy;
  }
  fl_proj_backward(&c.w->ffn_down, p->team, p->glu, c.ff, dy, d, n, p->scratch);
  fl_pass_rows(p, glu_bwd_rows, &c, n, 8 * c.ff);
  fl_proj_backward(&c.w->gate_up, p->team, p->dh, d, p->dgu, 2 * c.ff, n, p->scratch);
  fl_pass_rows(p, ffn_norm_bwd_rows, &c, n, 4 * d);
}
