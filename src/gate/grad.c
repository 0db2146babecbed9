/* grad.c - grad: the analytic gradient of the training loss with respect to cartridge rows
 * against central differences of that loss.
 *
 * Two cartridges captured from the documents stand before a piece of the text whose last rows are
 * supervised with made-up teacher entries. Single values are too small to measure in single
 * precision, so slopes along directions are compared: for each layer, K and V apart, the gradient's
 * own direction (the slope is then its norm), and the whole gradient with random signs. The step is
 * chosen by how far the loss moves: from WIDEST, well above its rounding, down by quarters, and the
 * best agreement counts: curvature and, in mixtures of experts, flips of routing spoil wide ones,
 * rounding spoils narrow ones, and a wrong gradient agrees at none. One Richardson extrapolation
 * over h and h/2 removes the h^2 term. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "cartridge/adam.h"
#include "gate/gate.h"
#include "train/step.h"

enum { N_PARTS = 2, CONV_ROWS = 24, CONV_SUP = 12, ENTRIES = 4, SIGN_TRIALS = 4 };
static const double widest = 0.02;
enum { N_STEPS = 4 };

typedef struct grad_gate {
  gate_run *g;
  gate_model m;
  fl_stepper *stepper;
  fl_cartridge cart[N_PARTS];
  fl_adam adam[N_PARTS];
  fl_rows grad[N_PARTS], dir[N_PARTS], keep[N_PARTS];
  fl_trainable trainee[N_PARTS];
  fl_conv conv;
  size_t parts[N_PARTS];
} grad_gate;

static fl_step_conv step_conv(const grad_gate *s) {
  return (fl_step_conv){ .conv = &s->conv, .parts = s->parts, .n_parts = N_PARTS };
}

static int make_cartridges(grad_gate *s, const int32_t *ids, size_t p, fl_err *err) {
  const fl_model *model = s->m.model;
  const fl_hparams *hp = fl_model_hparams(model);
  fl_kv_pool *pool = NULL;
  fl_seq *seq = NULL;
  int rc = fl_kv_pool_new(&pool, hp, fl_model_kernels(model), FL_KV_F32, 0, err);
  if (rc == FL_OK) rc = fl_seq_new(&seq, pool, err);
  if (rc == FL_OK) rc = fl_pass_prefill(s->m.pass, seq, ids, N_PARTS * p, NULL, err);
  for (size_t i = 0; i < N_PARTS && rc == FL_OK; i++) {
    size_t frozen = s->g->opt->train.frozen;
    rc = fl_cartridge_capture(&s->cart[i], hp, seq, i * p, p, frozen, err);
    if (rc == FL_OK) rc = fl_adam_init(&s->adam[i], hp, &s->cart[i], err);
    if (rc == FL_OK) rc = fl_cart_grad_init(&s->grad[i], hp, &s->cart[i], err);
    if (rc == FL_OK) rc = fl_cart_grad_init(&s->dir[i], hp, &s->cart[i], err);
    if (rc == FL_OK) rc = fl_rows_init(&s->keep[i], hp, p, err);
    if (rc != FL_OK) break;
    memcpy(s->keep[i].block, s->cart[i].rows.block, s->keep[i].n_values * sizeof(float));
    s->trainee[i] = (fl_trainable){ &s->cart[i], &s->adam[i], &s->grad[i] };
    s->parts[i] = i;
  }
  if (seq) fl_seq_free(seq);
  if (pool) fl_kv_pool_free(pool);
  return rc;
}

/* Teacher entries: the token that follows and some others, drawn by seed; 0.9 of mass. */
static int make_conv(grad_gate *s, const int32_t *ids, size_t n_vocab, fl_err *err) {
  fl_conv *c = &s->conv;
  fl_rng rng = fl_rng_stream(s->g->opt->train.seed, FL_RNG_TEST, 0, 0, 0);
  fl_ids_append(&c->tokens, ids, CONV_ROWS);
  c->sup = fl_calloc(CONV_SUP, sizeof *c->sup);
  c->targets.n_rows = CONV_SUP;
  c->targets.first = fl_calloc(CONV_SUP + 1, sizeof *c->targets.first);
  c->targets.id = fl_calloc(CONV_SUP * ENTRIES, sizeof *c->targets.id);
  c->targets.prob = fl_calloc(CONV_SUP * ENTRIES, sizeof *c->targets.prob);
  c->request = fl_strdup("");
  c->answer = fl_strdup("");
  if (c->tokens.oom || !c->sup || !c->targets.first || !c->targets.id || !c->targets.prob)
    return fl_fail(err, FL_ENOMEM, "not enough memory");
  for (uint32_t r = 0; r < CONV_SUP; r++) {
    c->sup[r] = CONV_ROWS - CONV_SUP - 1 + r;
    c->targets.first[r + 1] = (r + 1) * ENTRIES;
    for (uint32_t e = 0; e < ENTRIES; e++) {
      c->targets.id[r * ENTRIES + e] =
          e == 0 ? ids[c->sup[r] + 1] : (int32_t)fl_rng_below(&rng, n_vocab);
      c->targets.prob[r * ENTRIES + e] = e == 0 ? 0.6f : 0.1f;
    }
  }
  return FL_OK;
}

/* rows = kept + t * direction on the trainable rows; the loss there. */
static int loss_at(grad_gate *s, double t, double *loss, fl_err *err) {
  for (size_t i = 0; i < N_PARTS; i++) {
    const fl_rows *d = &s->dir[i], *base = &s->keep[i];
    for (size_t l = 0; l < d->n_layers; l++) {
      size_t n = d->n_rows * d->width[l], skip = s->cart[i].frozen * d->width[l];
      for (size_t j = 0; j < n; j++) {
        s->cart[i].rows.k[l][skip + j] = (float)(base->k[l][skip + j] + t * d->k[l][j]);
        s->cart[i].rows.v[l][skip + j] = (float)(base->v[l][skip + j] + t * d->v[l][j]);
      }
    }
  }
  fl_step_conv sc = step_conv(s);
  fl_step_result r;
  int rc = fl_step_eval(s->stepper, s->trainee, N_PARTS, &sc, 1, &r, err);
  if (rc == FL_OK) *loss = r.loss;
  return rc;
}

static int slope(grad_gate *s, double h, double *out, fl_err *err) {
  double up, down;
  int rc = loss_at(s, h, &up, err);
  if (rc == FL_OK) rc = loss_at(s, -h, &down, err);
  if (rc == FL_OK) *out = (up - down) / (2 * h);
  return rc;
}

/* *off = |measured - expected| at the best of the steps; the slope `scale` sets their size. */
static int slope_error(grad_gate *s, double expected, double scale, double *off, fl_err *err) {
  double h = widest / fmax(fabs(scale), 1e-6);
  *off = INFINITY;
  for (int i = 0; i < N_STEPS; i++, h /= 4) {
    double wide, narrow;
    int rc = slope(s, h, &wide, err);
    if (rc == FL_OK) rc = slope(s, h / 2, &narrow, err);
    if (rc != FL_OK) return rc;
    *off = fmin(*off, fabs((4 * narrow - wide) / 3 - expected));
    if (*off <= s->g->opt->tol * fabs(scale) / 8) break;
  }
  return FL_OK;
}

/* dir = the gradient of one layer's K or V over all parts, of length 1; returns the norm. */
static double block_direction(grad_gate *s, size_t layer, bool value) {
  double sum = 0;
  for (size_t i = 0; i < N_PARTS; i++) {
    size_t n = s->grad[i].n_rows * s->grad[i].width[layer];
    const float *g = value ? s->grad[i].v[layer] : s->grad[i].k[layer];
    fl_rows_zero(&s->dir[i]);
    for (size_t j = 0; j < n; j++) sum += (double)g[j] * g[j];
  }
  double norm = sqrt(sum);
  for (size_t i = 0; i < N_PARTS && norm > 0; i++) {
    size_t n = s->grad[i].n_rows * s->grad[i].width[layer];
    const float *g = value ? s->grad[i].v[layer] : s->grad[i].k[layer];
    float *d = value ? s->dir[i].v[layer] : s->dir[i].k[layer];
    for (size_t j = 0; j < n; j++) d[j] = (float)(g[j] / norm);
  }
  return norm;
}

/* dir = the whole gradient with random signs; returns the slope along it, *norm the full one. */
static double sign_direction(grad_gate *s, uint32_t trial, double *norm) {
  fl_rng rng = fl_rng_stream(s->g->opt->train.seed, FL_RNG_TEST, 1, trial, 0);
  double sum = 0, dot = 0;
  for (size_t i = 0; i < N_PARTS; i++)
    for (size_t j = 0; j < s->grad[i].n_values; j++)
      sum += (double)s->grad[i].block[j] * s->grad[i].block[j];
  *norm = sqrt(sum);
  for (size_t i = 0; i < N_PARTS; i++)
    for (size_t j = 0; j < s->grad[i].n_values; j++) {
      double g = s->grad[i].block[j], sign = fl_rng_below(&rng, 2) ? 1 : -1;
      s->dir[i].block[j] = (float)(sign * g / *norm);
      dot += g * s->dir[i].block[j];
    }
  return dot;
}

static int check_blocks(grad_gate *s, fl_err *err) {
  double worst = 0;
  size_t n = 0;
  for (size_t l = 0; l < s->grad[0].n_layers; l++)
    for (int value = 0; value < 2 && s->grad[0].width[l] > 0; value++) {
      double norm = block_direction(s, l, value), off;
      if (norm < 1e-5) continue; /* below what single precision can measure */
      int rc = slope_error(s, norm, norm, &off, err);
      if (rc != FL_OK) return rc;
      worst = fmax(worst, off / norm);
      n++;
    }
  fl_json *row = fl_json_object();
  fl_json_set_str(row, "directions", "each layer's K and V");
  fl_json_set_u64(row, "count", n);
  fl_json_set_num(row, "max_relative", worst);
  gate_check(s->g, n > 0 && worst <= s->g->opt->tol, row,
             "each layer's K and V, %zu slopes: largest relative difference %.6f, tolerance %g", n,
             worst, s->g->opt->tol);
  return FL_OK;
}

static int check_signs(grad_gate *s, fl_err *err) {
  double worst = 0;
  for (uint32_t trial = 0; trial < SIGN_TRIALS; trial++) {
    double norm, off, expected = sign_direction(s, trial, &norm);
    int rc = slope_error(s, expected, norm, &off, err);
    if (rc != FL_OK) return rc;
    worst = fmax(worst, off / norm);
  }
  fl_json *row = fl_json_object();
  fl_json_set_str(row, "directions", "random signs");
  fl_json_set_u64(row, "count", SIGN_TRIALS);
  fl_json_set_num(row, "max_relative", worst);
  gate_check(s->g, worst <= s->g->opt->tol, row,
             "random signs, %d slopes: largest difference %.6f of the gradient's norm, "
             "tolerance %g",
             SIGN_TRIALS, worst, s->g->opt->tol);
  return FL_OK;
}

static int analytic(grad_gate *s, fl_err *err) {
  fl_step_conv sc = step_conv(s);
  fl_step_result r = { 0 };
  for (size_t i = 0; i < N_PARTS; i++) fl_rows_zero(&s->grad[i]);
  return fl_step_grad(s->stepper, s->trainee, N_PARTS, &sc, 1, &r, err);
}

static void release(grad_gate *s) {
  for (size_t i = 0; i < N_PARTS; i++) {
    fl_cartridge_release(&s->cart[i]);
    fl_adam_release(&s->adam[i]);
    fl_rows_release(&s->grad[i]);
    fl_rows_release(&s->dir[i]);
    fl_rows_release(&s->keep[i]);
  }
  fl_conv_release(&s->conv);
  if (s->stepper) fl_stepper_free(s->stepper);
  gate_model_close(&s->m);
}

static int run(gate_run *g, fl_err *err) {
  grad_gate s = { .g = g };
  fl_ids ids = { 0 };
  size_t p = g->opt->train.p;
  fl_pass_options opt = { .max_rows = FL_PASS_ROWS, .max_spans = 1 };
  fl_stepper_limits limits = { .max_convs = 1,
                               .max_conv_rows = CONV_ROWS,
                               .max_sup = CONV_SUP,
                               .max_prefix = N_PARTS * p,
                               .max_parts = N_PARTS,
                               .checkpoint = g->opt->train.checkpoint,
                               .pack = g->opt->train.pack,
                               .positions = g->opt->train.positions };
  if (g->opt->train.frozen >= p)
    return fl_fail(err, FL_EUSAGE, "--frozen %zu: leaves none of the %zu rows to train",
                   g->opt->train.frozen, p);
  int rc = gate_model_open(&s.m, g, &opt, err);
  if (rc == FL_OK) rc = gate_ids(&ids, g, s.m.model, N_PARTS * p + CONV_ROWS + 1, err);
  if (rc == FL_OK) rc = fl_stepper_new(&s.stepper, s.m.model, s.m.team, &limits, err);
  if (rc == FL_OK) rc = make_cartridges(&s, ids.data, p, err);
  if (rc == FL_OK)
    rc = make_conv(&s, ids.data + N_PARTS * p, fl_model_hparams(s.m.model)->n_vocab, err);
  if (rc == FL_OK) rc = analytic(&s, err);
  if (rc == FL_OK) rc = check_blocks(&s, err);
  if (rc == FL_OK) rc = check_signs(&s, err);
  fl_ids_release(&ids);
  release(&s);
  return rc;
}

const gate gate_grad = { "grad", "analytic gradients against central differences", run };
