/* head.c - the end of the model: final norm, logits, loss. They read the rows that are asked for
 * where the last layer left them (output_rows.c).
 */
#include <assert.h>
#include <string.h>

#include "model/internal.h"

/* Where the last layer left a row. */
static size_t output_of(const fl_pass *p, size_t row) {
  assert(row < p->n_rows && p->place[row] != FL_NO_OUTPUT);
  return p->place[row];
}

typedef struct gather {
  const size_t *rows;
  float *out;
} gather;

static void gather_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const gather *g = ctx;
  size_t d = p->model->hp.d_model;
  for (size_t i = first; i < end; i++)
    fl_rmsnorm(p->model->kern, g->out + i * d, p->x + output_of(p, g->rows[i]) * d,
               p->model->weights.out_norm, 1, d, d, d, p->model->hp.rms_eps);
}

void fl_pass_hidden(fl_pass *p, const size_t *rows, size_t n, float *out) {
  gather g = { .rows = rows, .out = out };
  fl_pass_rows(p, gather_rows, &g, n, p->model->hp.d_model);
}

/* logits [n, n_vocab] of normed rows h. */
static void head_forward(fl_pass *p, float *logits, const float *h, size_t n) {
  const fl_hparams *hp = &p->model->hp;
  fl_matmul(p->model->weights.head, p->team, logits, hp->n_vocab, h, hp->d_model, n, p->scratch);
  if (hp->logit_softcap != 0)
    fl_softcap(p->model->kern, logits, logits, n * hp->n_vocab, hp->logit_softcap);
}

void fl_pass_logits(fl_pass *p, const size_t *rows, size_t n, float *logits) {
  size_t d_vocab = p->model->hp.n_vocab, block = p->opt.max_out_rows;
  for (size_t at = 0; at < n; at += block) {
    size_t take = n - at < block ? n - at : block;
    fl_pass_hidden(p, rows + at, take, p->out_h);
    head_forward(p, logits + at * d_vocab, p->out_h, take);
  }
}

/* ---- loss ---- */

typedef struct loss_block {
  const size_t *rows;
  const fl_target_row *targets;
  float scale;
  double *losses;
} loss_block;

static void loss_rows_fn(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const loss_block *b = ctx;
  const fl_hparams *hp = &p->model->hp;
  for (size_t i = first; i < end; i++) {
    const float *y = p->loss_logits + i * hp->n_vocab;
    float *dy = p->loss_dlogits + i * hp->n_vocab;
    b->losses[i] = fl_distill_row(p->model->kern, dy, y, hp->n_vocab, &b->targets[i], b->scale);
    if (hp->logit_softcap != 0)
      fl_softcap_bwd(p->model->kern, dy, dy, y, hp->n_vocab, hp->logit_softcap);
  }
}

static void loss_norm_bwd_rows(fl_pass *p, const void *ctx, size_t first, size_t end) {
  const loss_block *b = ctx;
  size_t d = p->model->hp.d_model;
  for (size_t i = first; i < end; i++) {
    const size_t at = output_of(p, b->rows[i]) * d;
    fl_rmsnorm_bwd(p->model->kern, p->dx + at, p->dh + i * d, p->x + at, p->model->weights.out_norm,
                   1, d, d, d, d, p->model->hp.rms_eps, false);
  }
}

void fl_pass_loss(fl_pass *p, const size_t *rows, const fl_target_row *targets, size_t n,
                  float scale, double *losses) {
  const fl_hparams *hp = &p->model->hp;
  memset(p->dx, 0, p->n_output_rows * hp->d_model * sizeof *p->dx);
  for (size_t at = 0; at < n; at += p->loss_rows) {
    size_t take = n - at < p->loss_rows ? n - at : p->loss_rows;
    const loss_block b = {
      .rows = rows + at, .targets = targets + at, .scale = scale, .losses = losses + at
    };
    fl_pass_hidden(p, b.rows, take, p->out_h);
    head_forward(p, p->loss_logits, p->out_h, take);
    fl_pass_rows(p, loss_rows_fn, &b, take, 4 * hp->n_vocab);
    fl_matmul_dx(p->model->weights.head, p->team, p->dh, hp->d_model, p->loss_dlogits, hp->n_vocab,
                 take, false, p->scratch);
    fl_pass_rows(p, loss_norm_bwd_rows, &b, take, 4 * hp->d_model);
  }
}
