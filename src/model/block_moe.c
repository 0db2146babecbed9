/* block_moe.c - router and experts, forward and backward.
 *
 *   P = softmax(r Wr^T);  the `used` largest (ties: lower id);  w = P / sum of them, times the
 *   expert's scale where there is one;  out = sum over the chosen experts, ascending, of
 *   fma(w, expert(in), .)
 * The order of that sum is by expert, so a row's value does not depend on the rows beside it.
 * Switch-style routing: Shazeer et al. 2017; renormalised top-k as in Mixtral.
 */
#include <string.h>

#include "model/internal.h"

typedef struct moe {
  size_t rows, d, ff, n_experts, used;
  const fl_moe_weights *w;
  const fl_tape *t;
  size_t e; /* expert at work */
  const float *dy;
} moe;

static moe moe_of(const fl_pass *p, size_t layer, const fl_tape *t) {
  const fl_hparams *hp = &p->model->hp;
  return (moe){ .rows = fl_rows_out(p, layer),
                .d = hp->d_model,
                .ff = hp->n_ff_expert,
                .n_experts = hp->n_experts,
                .used = hp->n_experts_used,
                .w = p->model->weights.layer[layer].moe,
                .t = t != NULL ? t : &p->moe.t };
}

void fl_moe_layout_tape(fl_pass *p, fl_tape *t) {
  const fl_hparams *hp = &p->model->hp;
  size_t rows = p->opt.max_rows;
  t->router = fl_arena_take(&p->arena, rows * hp->n_experts, sizeof(float));
  t->expert = fl_arena_take(&p->arena, rows * hp->n_experts_used, sizeof(int32_t));
  t->weight = fl_arena_take(&p->arena, rows * hp->n_experts_used, sizeof(float));
  t->moe_gu =
      fl_arena_take(&p->arena, rows * hp->n_experts_used, 2 * hp->n_ff_expert * sizeof(float));
  t->dense_y = fl_arena_take(&p->arena, rows * hp->d_model, sizeof(float));
  t->moe_y = fl_arena_take(&p->arena, rows * hp->d_model, sizeof(float));
}

void fl_moe_layout(fl_pass *p) {
  const fl_hparams *hp = &p->model->hp;
  fl_moe_space *m = &p->moe;
  size_t rows = p->opt.max_rows, d = rows * hp->d_model, f = sizeof(float);
  if (hp->n_experts == 0) return;
  m->in = fl_arena_take(&p->arena, d, f);
  m->router_in = fl_arena_take(&p->arena, d, f);
  m->out = fl_arena_take(&p->arena, d, f);
  m->xe = fl_arena_take(&p->arena, d, f);
  m->ye = fl_arena_take(&p->arena, d, f);
  m->h = fl_arena_take(&p->arena, rows * hp->n_ff_expert, f);
  m->order = fl_arena_take(&p->arena, rows * hp->n_experts_used, sizeof *m->order);
  m->first = fl_arena_take(&p->arena, hp->n_experts + 1, sizeof *m->first);
  if (!p->opt.record) {
    fl_moe_layout_tape(p, &m->t);
    return;
  }
  m->dweight = fl_arena_take(&p->arena, rows * hp->n_experts_used, f);
  m->drouter = fl_arena_take(&p->arena, rows * hp->n_experts, f);
  m->dgu = fl_arena_take(&p->arena, rows * 2 * hp->n_ff_expert, f);
  m->din = fl_arena_take(&p->arena, d, f);
  m->drouter_in = fl_arena_take(&p->arena, d, f);
}

size_t fl_moe_scratch(const fl_pass *p, size_t layer) {
  const fl_moe_weights *w = p->model->weights.layer[layer].moe;
  size_t rows = p->opt.max_rows, most = 0;
  if (w == NULL) return 0;
  for (size_t e = 0; e < p->model->hp.n_experts; e++) {
    size_t a = fl_linear_scratch(&w->gate_up[e], p->team, rows);
    size_t b = fl_linear_scratch(&w->down[e], p->team, rows);
    most = a > most ? a : most;
    most = b > most ? b : most;
  }
  if (fl_linear_scratch(&w->router, p->team, rows) > most)
    most = fl_linear_scratch(&w->router, p->team, rows);
  return most;
}

/* ---- forward ---- */

/* The `used` largest of prob[n], best first, ties by lower id. */
static void choose(int32_t *id, const float *prob, size_t n, size_t used) {
  for (size_t k = 0; k < used; k++) {
    int32_t best = -1;
    for (size_t i = 0; i < n; i++) {
      bool taken = false;
      for (size_t j = 0; j < k; j++) taken |= id[j] == (int32_t)i;
      if (!taken && (best < 0 || prob[i] > prob[best])) best = (int32_t)i;
    }
    id[k] = best;
  }
}

static void route_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const moe *c = ctx;
  for (size_t r = first; r < end; r++) {
    float *prob = c->t->router + r * c->n_experts, *w = c->t->weight + r * c->used;
    int32_t *id = c->t->expert + r * c->used;
    float max = fl_max(p->model->kern, prob, c->n_experts);
    float sum = fl_sum_exp(p->model->kern, prob, c->n_experts, max), kept = 0;
    fl_exp_scaled(p->model->kern, prob, prob, c->n_experts, max, 1.0f / sum);
    choose(id, prob, c->n_experts, c->used);
    for (size_t k = 0; k < c->used; k++) kept += prob[id[k]];
    for (size_t k = 0; k < c->used; k++) {
      w[k] = p->model->hp.expert_renorm ? prob[id[k]] / kept : prob[id[k]];
      if (c->w->expert_scale != NULL) w[k] *= c->w->expert_scale[id[k]];
    }
  }
}

/* Counting sort of (row, slot) by expert; rows ascend within one. */
static void sort_rows(fl_pass *p, const moe *c) {
  size_t n = c->rows * c->used, *first = p->moe.first;
  memset(first, 0, (c->n_experts + 1) * sizeof *first);
  for (size_t i = 0; i < n; i++) first[c->t->expert[i] + 1]++;
  for (size_t e = 0; e < c->n_experts; e++) first[e + 1] += first[e];
  for (size_t i = 0; i < n; i++) p->moe.order[first[c->t->expert[i]]++] = (uint32_t)i;
  memmove(first + 1, first, c->n_experts * sizeof *first);
  first[0] = 0;
}

static void gather(fl_pass *p, const moe *c, const float *from) {
  size_t first = p->moe.first[c->e], n = p->moe.first[c->e + 1] - first;
  for (size_t i = 0; i < n; i++)
    memcpy(p->moe.xe + i * c->d, from + p->moe.order[first + i] / c->used * c->d,
           c->d * sizeof(float));
}

static void glu_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const moe *c = ctx;
  for (size_t i = first; i < end; i++) {
    const float *g = c->t->moe_gu + (p->moe.first[c->e] + i) * 2 * c->ff;
    fl_glu(p->model->kern, p->moe.h + i * c->ff, g, g + c->ff, c->ff, p->model->hp.act);
  }
}

/* A row stands at most once among an expert's, so rows are independent. */
static void scatter_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const moe *c = ctx;
  for (size_t i = first; i < end; i++) {
    uint32_t o = p->moe.order[p->moe.first[c->e] + i];
    fl_axpy(p->model->kern, p->moe.out + o / c->used * c->d, c->t->weight[o], p->moe.ye + i * c->d,
            c->d);
  }
}

void fl_moe_fwd(fl_pass *p, size_t layer, fl_tape *t) {
  moe c = moe_of(p, layer, t);
  fl_linear_forward(&c.w->router, p->team, c.t->router, c.n_experts, p->moe.router_in, c.d, c.rows,
                    p->scratch);
  fl_pass_rows(p, route_rows, &c, c.rows, 4 * c.n_experts);
  sort_rows(p, &c);
  memset(p->moe.out, 0, c.rows * c.d * sizeof *p->moe.out);
  for (c.e = 0; c.e < c.n_experts; c.e++) {
    size_t first = p->moe.first[c.e], n = p->moe.first[c.e + 1] - first;
    if (n == 0) continue;
    gather(p, &c, p->moe.in);
    fl_linear_forward(&c.w->gate_up[c.e], p->team, c.t->moe_gu + first * 2 * c.ff, 2 * c.ff,
                      p->moe.xe, c.d, n, p->scratch);
    fl_pass_rows(p, glu_rows, &c, n, 4 * c.ff);
    fl_linear_forward(&c.w->down[c.e], p->team, p->moe.ye, c.d, p->moe.h, c.ff, n, p->scratch);
    fl_pass_rows(p, scatter_rows, &c, n, 2 * c.d);
  }
}

/* ---- backward ---- */

/* p->moe.ye holds dy Wd of the expert's rows [n, ff]: the weight's gradient is its product with the
 * expert's activations; scaled by the weight it goes on through the activation. */
static void expert_bwd_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const moe *c = ctx;
  const fl_kernels *k = p->model->kern;
  for (size_t i = first; i < end; i++) {
    size_t at = p->moe.first[c->e] + i;
    uint32_t o = p->moe.order[at];
    const float *g = c->t->moe_gu + at * 2 * c->ff;
    float *dh = p->moe.ye + i * c->ff, *dg = p->moe.dgu + i * 2 * c->ff;
    p->moe.dweight[o] = fl_dot(k, dh, p->moe.h + i * c->ff, c->ff);
    fl_scale(k, dh, c->t->weight[o], c->ff);
    fl_glu_bwd(k, dg, dg + c->ff, dh, g, g + c->ff, c->ff, p->model->hp.act);
  }
}

static void scatter_bwd_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const moe *c = ctx;
  for (size_t i = first; i < end; i++) {
    size_t row = p->moe.order[p->moe.first[c->e] + i] / c->used;
    fl_add(p->model->kern, p->moe.din + row * c->d, p->moe.xe + i * c->d, c->d);
  }
}

/* From the weights' gradients through renormalisation and softmax to the router's logits. */
static void route_bwd_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const moe *c = ctx;
  for (size_t r = first; r < end; r++) {
    const float *prob = c->t->router + r * c->n_experts;
    const int32_t *id = c->t->expert + r * c->used;
    float *dw = p->moe.dweight + r * c->used, *dl = p->moe.drouter + r * c->n_experts;
    float kept = 0, mean = 0, inner = 0;
    for (size_t k = 0; k < c->used; k++) {
      kept += prob[id[k]];
      if (c->w->expert_scale != NULL) dw[k] *= c->w->expert_scale[id[k]];
    }
    if (p->model->hp.expert_renorm) {
      for (size_t k = 0; k < c->used; k++) mean += dw[k] * prob[id[k]] / kept;
      for (size_t k = 0; k < c->used; k++) dw[k] = (dw[k] - mean) / kept;
    }
    for (size_t k = 0; k < c->used; k++) inner += dw[k] * prob[id[k]];
    for (size_t e = 0; e < c->n_experts; e++) dl[e] = -inner * prob[e];
    for (size_t k = 0; k < c->used; k++) dl[id[k]] += dw[k] * prob[id[k]];
  }
}

void fl_moe_bwd(fl_pass *p, size_t layer, const fl_tape *t, const float *dy) {
  moe c = moe_of(p, layer, t);
  sort_rows(p, &c);
  memset(p->moe.din, 0, c.rows * c.d * sizeof *p->moe.din);
  for (c.e = 0; c.e < c.n_experts; c.e++) {
    size_t n = p->moe.first[c.e + 1] - p->moe.first[c.e];
    if (n == 0) continue;
    gather(p, &c, dy);
    fl_linear_backward(&c.w->down[c.e], p->team, p->moe.ye, c.ff, p->moe.xe, c.d, n, p->scratch);
    fl_pass_rows(p, glu_rows, &c, n, 4 * c.ff);
    fl_pass_rows(p, expert_bwd_rows, &c, n, 8 * c.ff);
    fl_linear_backward(&c.w->gate_up[c.e], p->team, p->moe.xe, c.d, p->moe.dgu, 2 * c.ff, n,
                       p->scratch);
    fl_pass_rows(p, scatter_bwd_rows, &c, n, 2 * c.d);
  }
  fl_pass_rows(p, route_bwd_rows, &c, c.rows, 4 * c.n_experts);
  fl_linear_backward(&c.w->router, p->team, p->moe.drouter_in, c.d, p->moe.drouter, c.n_experts,
                     c.rows, p->scratch);
}
