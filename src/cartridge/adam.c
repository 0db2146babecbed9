/* adam.c - Adam on the trainable rows (Kingma & Ba 2015, algorithm 1).
 *
 * For each value, with t the step counted from 1:
 *     m = m + (1 - b1) (g - m)
 *     v = b2 v + (1 - b2) g g
 *     x = x - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
 * Values do not depend on each other, so any split over threads gives the same bits.
 */
#include <math.h>

#include "cartridge/adam.h"

enum { LANES = 16 };

static const double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;

int fl_adam_init(fl_adam *a, const fl_hparams *hp, const fl_cartridge *c, fl_err *err) {
  fl_adam t = { 0 };
  int rc = fl_cart_grad_init(&t.m, hp, c, err);
  if (rc == FL_OK) rc = fl_cart_grad_init(&t.v, hp, c, err);
  if (rc != FL_OK) {
    fl_adam_release(&t);
    return rc;
  }
  *a = t;
  return FL_OK;
}

void fl_adam_release(fl_adam *a) {
  fl_rows_release(&a->m);
  fl_rows_release(&a->v);
  *a = (fl_adam){ 0 };
}

void fl_adam_to_file(fl_adam *a, const char *dir) {
  fl_rows_to_file(&a->m, dir);
  fl_rows_to_file(&a->v, dir);
}

void fl_adam_evict_pages(fl_adam *a) {
  fl_rows_evict_pages(&a->m);
  fl_rows_evict_pages(&a->v);
}

int fl_cart_grad_init(fl_rows *g, const fl_hparams *hp, const fl_cartridge *c, fl_err *err) {
  return fl_rows_init(g, hp, c->rows.n_rows - c->frozen, err);
}

double fl_rate_at(const fl_rate *r, uint64_t steps) {
  double lr = r->lr;
  if (steps < r->warmup) lr *= (double)(steps + 1) / (double)r->warmup;
  if (r->decay == 0) return lr;
  const double past = steps < r->decay ? (double)steps / (double)r->decay : 1;
  return lr * (1 - (1 - r->decay_to) * past);
}

typedef struct adam_coeffs {
  float one_minus_b1, b2, one_minus_b2, step_size, root_bias, eps;
} adam_coeffs;

typedef struct adam_job {
  fl_cartridge *c;
  fl_adam *a;
  const fl_rows *g;
  size_t layer;
  adam_coeffs co;
} adam_job;

static inline void adam_value(float *x, float *m, float *v, float g, const adam_coeffs *co) {
  *m = *m + co->one_minus_b1 * (g - *m);
  *v = co->b2 * *v + co->one_minus_b2 * (g * g);
  *x = *x - co->step_size * (*m / (sqrtf(*v) / co->root_bias + co->eps));
}

/* Whole groups of a constant length first: the compiler vectorises those without a prologue. */
static void adam_range(float *restrict x, float *restrict m, float *restrict v,
                       const float *restrict g, size_t n, const adam_coeffs *co) {
  const adam_coeffs c = *co;
  size_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (size_t j = 0; j < LANES; j++) adam_value(x + i + j, m + i + j, v + i + j, g[i + j], &c);
  for (; i < n; i++) adam_value(x + i, m + i, v + i, g[i], &c);
}

static void adam_run(void *ctx, unsigned rank, unsigned n_ranks) {
  const adam_job *job = ctx;
  fl_rows *x = &job->c->rows;
  const size_t l = job->layer, skip = job->c->frozen * x->width[l];
  size_t first, end;
  fl_thread_range(job->g->n_rows * x->width[l], rank, n_ranks, &first, &end);
  adam_range(x->k[l] + skip + first, job->a->m.k[l] + first, job->a->v.k[l] + first,
             job->g->k[l] + first, end - first, &job->co);
  adam_range(x->v[l] + skip + first, job->a->m.v[l] + first, job->a->v.v[l] + first,
             job->g->v[l] + first, end - first, &job->co);
}

/* Of four arrays of a cartridge's size no more than a layer is in memory where they lie in
 * files. */
static void layer_rests(const adam_job *job) {
  const fl_rows *of[] = { &job->c->rows, &job->a->m, &job->a->v, job->g };
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) fl_rows_evict_pages_layer(of[i], job->layer);
}

void fl_adam_step(const fl_kernels *k, fl_team *team, fl_cartridge *c, fl_adam *a, const fl_rows *g,
                  double lr) {
  (void)k; /* plain loops: the step is bound by memory */
  a->step++;
  const double bias1 = 1 - pow(beta1, (double)a->step), bias2 = 1 - pow(beta2, (double)a->step);
  adam_job job = { .c = c, .a = a, .g = g };
  job.co = (adam_coeffs){ .one_minus_b1 = (float)(1 - beta1),
                          .b2 = (float)beta2,
                          .one_minus_b2 = (float)(1 - beta2),
                          .step_size = (float)(lr / bias1),
                          .root_bias = (float)sqrt(bias2),
                          .eps = (float)epsilon };
  for (; job.layer < c->rows.n_layers; job.layer++) {
    if (c->rows.width[job.layer] == 0) continue;
    fl_team_run(team, adam_run, &job);
    layer_rests(&job);
  }
  c->steps++;
}
