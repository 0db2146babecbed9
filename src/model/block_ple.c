/* block_ple.c - per-layer embeddings (gemma4): each layer gets an input of its own from the token,
 * gated by the hidden state.
 *
 *   e = (norm(embedding Wp^T / sqrt(d)) + table[token] sqrt(n)) / sqrt 2      once, for all layers
 *   x += norm((act(x Wg^T) * e) Wo^T)                                         in each layer
 */
#include <math.h>
#include <string.h>

#include "model/internal.h"

typedef struct ple {
  size_t n, width, at; /* a layer's columns, all layers', the layer's first */
  const fl_ple_weights *w;
  const fl_tape *t;
  float *g;               /* [rows, n] gate before its activation */
  size_t rows;            /* of the layer's output */
  const uint32_t *row_of; /* their numbers; NULL: all rows */
} ple;

static ple ple_of(const fl_pass *p, size_t layer, const fl_tape *t) {
  const fl_hparams *hp = &p->model->hp;
  return (ple){ .n = hp->n_embd_per_layer,
                .width = hp->n_layers * hp->n_embd_per_layer,
                .at = layer * hp->n_embd_per_layer,
                .w = p->model->weights.layer[layer].ple,
                .t = t,
                .g = t != NULL ? t->ple_g : p->ple_g,
                .rows = fl_rows_out(p, layer),
                .row_of = layer >= p->last_kv_layer ? p->output_row : NULL };
}

/* The layer's own input at one of its rows. */
static const float *input_at(const fl_pass *p, const ple *c, size_t r) {
  return p->ple_in + (c->row_of != NULL ? c->row_of[r] : r) * c->width + c->at;
}

static void input_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const ple *c = ctx;
  const fl_hparams *hp = &p->model->hp;
  const fl_kernels *k = p->model->kern;
  const fl_tensor_info *e = p->model->weights.ple_embd;
  const fl_dtype_traits *d = fl_dtype_get(e->ggml_type);
  size_t row_bytes = c->width / d->block * d->bytes, layer_bytes = c->n / d->block * d->bytes;
  for (size_t r = first; r < end; r++) {
    float *row = p->ple_in + r * c->width, *tab = p->ple_a + r * c->n;
    const char *src = (const char *)e->data + (size_t)p->row_token[r] * row_bytes;
    fl_scale(k, row, 1.0f / sqrtf((float)hp->d_model), c->width);
    fl_rmsnorm(k, row, row, p->model->weights.ple_norm, hp->n_layers, c->n, c->n, c->n,
               hp->rms_eps);
    for (size_t l = 0; l < hp->n_layers; l++) {
      d->dequantise(tab, src + l * layer_bytes, c->n);
      fl_axpy(k, row + l * c->n, sqrtf((float)c->n), tab, c->n);
    }
    fl_scale(k, row, 0.70710678118654752f, c->width);
  }
}

void fl_ple_inputs(fl_pass *p) {
  ple c = ple_of(p, 0, NULL);
  if (c.n == 0) return;
  fl_linear_forward(&p->model->weights.ple_proj, p->team, p->ple_in, c.width, p->x,
                    p->model->hp.d_model, p->n_rows, p->scratch);
  fl_pass_rows(p, input_rows, &c, p->n_rows, 4 * c.width);
}

static void gate_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const ple *c = ctx;
  for (size_t r = first; r < end; r++)
    fl_glu(p->model->kern, p->ple_a + r * c->n, c->g + r * c->n, input_at(p, c, r), c->n,
           p->model->hp.act);
}

static void add_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const ple *c = ctx;
  size_t d = p->model->hp.d_model, at = first * d, n = (end - first) * d;
  if (c->t != NULL) memcpy(c->t->ple_y + at, p->h + at, n * sizeof *p->h);
  fl_rmsnorm(p->model->kern, p->h + at, p->h + at, c->w->post_norm, end - first, d, d, d,
             p->model->hp.rms_eps);
  fl_add(p->model->kern, p->x + at, p->h + at, n);
}

void fl_ple_fwd(fl_pass *p, size_t layer, fl_tape *t) {
  ple c = ple_of(p, layer, t);
  size_t d = p->model->hp.d_model;
  fl_linear_forward(&c.w->gate, p->team, c.g, c.n, p->x, d, c.rows, p->scratch);
  fl_pass_rows(p, gate_rows, &c, c.rows, 4 * c.n);
  fl_linear_forward(&c.w->out, p->team, p->h, d, p->ple_a, c.n, c.rows, p->scratch);
  fl_pass_rows(p, add_rows, &c, c.rows, 2 * d);
}

static void add_bwd_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const ple *c = ctx;
  size_t d = p->model->hp.d_model, at = first * d;
  fl_rmsnorm_bwd(p->model->kern, p->dy + at, p->dx + at, c->t->ple_y + at, c->w->post_norm,
                 end - first, d, d, d, d, p->model->hp.rms_eps, false);
}

static void gate_bwd_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const ple *c = ctx;
  const fl_kernels *k = p->model->kern;
  for (size_t r = first; r < end; r++) {
    float *da = p->ple_a + r * c->n;
    fl_mul(k, da, input_at(p, c, r), c->n);
    fl_act_bwd(k, da, da, c->t->ple_g + r * c->n, c->n, p->model->hp.act);
  }
}

static void input_bwd_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  size_t d = p->model->hp.d_model;
  (void)ctx;
  fl_add(p->model->kern, p->dx + first * d, p->dh + first * d, (end - first) * d);
}

void fl_ple_bwd(fl_pass *p, size_t layer, const fl_tape *t) {
  ple c = ple_of(p, layer, t);
  size_t d = p->model->hp.d_model, n = c.rows;
  fl_pass_rows(p, add_bwd_rows, &c, n, 4 * d);
  fl_linear_backward(&c.w->out, p->team, p->ple_a, c.n, p->dy, d, n, p->scratch);
  fl_pass_rows(p, gate_bwd_rows, &c, n, 4 * c.n);
  fl_linear_backward(&c.w->gate, p->team, p->dh, d, p->ple_a, c.n, n, p->scratch);
  fl_pass_rows(p, input_bwd_rows, &c, n, 2 * d);
}
