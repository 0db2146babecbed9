/* step.c - one step: compose, forward, loss, backward, optimizer. Which conversations are this
 * rank's: shard.h; they are numbered here as they are there, in `local`.
 *
 * A conversation stands behind the cartridges' own arrays, which the pass lays out layer by layer:
 * no composed prefix is held. Conversations are cut into groups, in order: as many as fit a pass
 * when packing, one otherwise. The pass adds every span's contribution to a gradient in span order,
 * so a cartridge's gradient is the same sum, term by term, however the conversations were grouped.
 * What follows the last supervised row of a conversation decides nothing and is not run; what
 * stands before the first is silent.
 */
#include "train/step.h"

#include <assert.h>
#include <math.h>

#include "base/clock.h"
#include "base/mem.h"
#include "train/shard.h"

struct fl_stepper {
  const fl_model *model;
  fl_team *team;
  fl_pass *pass;
  fl_stepper_limits lim;
  size_t pass_rows, pass_convs;
  size_t n_grad_parts;
  fl_arena arena;          /* of the arrays */
  fl_prefix_part *prefix;  /* [max_convs, max_parts] of the running group */
  fl_span *span;           /* [max_convs] */
  fl_grad_span *grad_span; /* [max_convs] */
  fl_grad_part *grad_part; /* [max_convs, max_parts] */
  size_t *row;             /* [max_sup] */
  fl_target_row *target;   /* [max_sup] */
  double *row_loss;        /* [max_sup] */
  fl_shard shard;
  const struct job *running; /* while its groups run */
};

/* One call's arguments. */
typedef struct job {
  fl_stepper *s;
  const fl_trainable *trainables;
  size_t n_trainees;
  const fl_step_conv *convs;
  size_t n_convs;
  bool pack, backward;
  bool *lent;           /* [n_trainees] gradients of this step alone */
  float scale;          /* of the loss: 1 / supervised rows */
  double loss, teacher; /* sums over supervised rows */
  size_t n_sup, n_rows;
  fl_err *err;
} job;

/* Rows and gradients that lie in files are in memory one layer at a time. */
static void layer_rests(void *ctx, size_t layer) {
  const job *j = ((const fl_stepper *)ctx)->running;
  for (size_t i = 0; i < j->n_trainees; i++) {
    const fl_trainable *t = &j->trainables[i];
    fl_rows_evict_pages_layer(&t->cart->rows, layer);
    if (t->grad && t->grad->block) fl_rows_evict_pages_layer(t->grad, layer);
  }
}

/* The at-th of this rank's conversations. */
static const fl_step_conv *own(const job *j, size_t at) { return &j->convs[j->s->shard.local[at]]; }

/* --- birth --------------------------------------------------------------------------------- */

static void carve_scratch(fl_arena *a, void *ctx) {
  fl_stepper *s = ctx;
  const fl_stepper_limits *l = &s->lim;
  s->prefix = fl_arena_take(a, s->n_grad_parts, sizeof *s->prefix);
  s->span = fl_arena_take(a, l->max_convs, sizeof *s->span);
  s->grad_span = fl_arena_take(a, l->max_convs, sizeof *s->grad_span);
  s->grad_part = fl_arena_take(a, s->n_grad_parts, sizeof *s->grad_part);
  s->row = fl_arena_take(a, l->max_sup, sizeof *s->row);
  s->target = fl_arena_take(a, l->max_sup, sizeof *s->target);
  s->row_loss = fl_arena_take(a, l->max_sup, sizeof *s->row_loss);
}

static int alloc_scratch(fl_stepper *s, fl_err *err) {
  const fl_stepper_limits *l = &s->lim;
  if (!fl_mul_size(l->max_convs, l->max_parts, &s->n_grad_parts))
    return fl_fail(err, FL_ENOMEM, "too many conversations in a step; lower --accum");
  if (fl_arena_lay_out(&s->arena, carve_scratch, s) != FL_OK)
    return fl_fail(err, FL_ENOMEM, "out of memory for a training step; lower --accum");
  return fl_shard_init(&s->shard, l->dist, l->max_convs, l->max_parts, err);
}

static int size_pass(fl_stepper *s, fl_err *err) {
  const fl_stepper_limits *l = &s->lim;
  if (!l->max_convs || !l->max_conv_rows || !l->max_sup || !l->max_parts)
    return fl_fail(err, FL_EUSAGE, "a training step needs room for at least one conversation");
  s->pass_convs = l->pack ? l->max_convs : 1;
  if (!fl_mul_size(s->pass_convs, l->max_conv_rows, &s->pass_rows))
    return fl_fail(err, FL_ENOMEM, "too many conversations in a step; lower --accum");
  if (l->max_pass_rows > 0 && l->max_pass_rows < s->pass_rows)
    s->pass_rows = l->max_pass_rows > l->max_conv_rows ? l->max_pass_rows : l->max_conv_rows;
  return FL_OK;
}

int fl_stepper_new(fl_stepper **out, const fl_model *m, fl_team *team, const fl_stepper_limits *l,
                   fl_err *err) {
  fl_stepper *s = fl_calloc(1, sizeof *s);
  if (!s) return fl_fail(err, FL_ENOMEM, "out of memory for a training step");
  s->model = m;
  s->team = team;
  s->lim = *l;
  int rc = size_pass(s, err);
  if (rc == FL_OK) rc = alloc_scratch(s, err);
  const fl_pass_options opt = { .max_rows = s->pass_rows,
                                .max_spans = s->pass_convs,
                                .max_out_rows = l->max_sup,
                                .max_prefix = l->max_prefix,
                                .record = true,
                                .checkpoint = l->checkpoint,
                                .layer_done = layer_rests,
                                .ctx = s };
  if (rc == FL_OK) rc = fl_pass_new(&s->pass, m, team, &opt, err);
  if (rc != FL_OK) {
    fl_stepper_free(s);
    return rc;
  }
  *out = s;
  return FL_OK;
}

void fl_stepper_free(fl_stepper *s) {
  if (!s) return;
  fl_pass_free(s->pass);
  fl_arena_release(&s->arena);
  fl_shard_release(&s->shard);
  fl_free(s);
}

const double *fl_stepper_losses(const fl_stepper *s) { return s->shard.loss; }

/* --- checks -------------------------------------------------------------------------------- */

/* Rows of a conversation that matter: up to the last supervised one. */
static size_t conv_rows(const fl_conv *c) { return (size_t)c->sup[c->targets.n_rows - 1] + 1; }

/* Of these, rows before the first supervised one. */
static size_t conv_silent(const fl_conv *c) { return c->sup[0]; }

/* Conversations may come from a file. */
static bool conv_is_sound(const fl_conv *c, size_t n_vocab) {
  const fl_targets *t = &c->targets;
  if (t->n_rows == 0 || t->first[0] != 0) return false;
  for (size_t i = 0; i < t->n_rows; i++) {
    if (c->sup[i] >= c->tokens.len || (i > 0 && c->sup[i] <= c->sup[i - 1])) return false;
    if (t->first[i + 1] <= t->first[i]) return false;
  }
  for (size_t i = 0; i < t->first[t->n_rows]; i++)
    if (t->id[i] < 0 || (size_t)t->id[i] >= n_vocab) return false;
  return true;
}

static int check_conv(const job *j, const fl_step_conv *sc) {
  const fl_stepper_limits *l = &j->s->lim;
  size_t prefix_rows = 0;
  if (!conv_is_sound(sc->conv, fl_model_hparams(j->s->model)->n_vocab))
    return fl_fail(j->err, FL_EINPUT,
                   "a conversation's supervised rows or teacher entries are "
                   "damaged; make it again");
  if (sc->n_parts > l->max_parts)
    return fl_fail(j->err, FL_EINPUT,
                   "a conversation sees %zu cartridges, at most %zu were "
                   "planned for",
                   sc->n_parts, l->max_parts);
  for (size_t i = 0; i < sc->n_parts; i++) {
    assert(sc->parts[i] < j->n_trainees);
    const fl_cartridge *cart = j->trainables[sc->parts[i]].cart;
    int rc = fl_cartridge_fits(cart, fl_model_hparams(j->s->model), "a cartridge", j->err);
    if (rc != FL_OK) return rc;
    prefix_rows += cart->rows.n_rows;
  }
  if (prefix_rows > l->max_prefix || conv_rows(sc->conv) > l->max_conv_rows ||
      sc->conv->targets.n_rows > l->max_sup)
    return fl_fail(j->err, FL_EINPUT,
                   "a conversation of %zu rows, %zu of them supervised, behind "
                   "%zu cartridge rows is larger than planned for (%zu, %zu, %zu)",
                   conv_rows(sc->conv), sc->conv->targets.n_rows, prefix_rows, l->max_conv_rows,
                   l->max_sup, l->max_prefix);
  return FL_OK;
}

static int check_job(job *j) {
  if (j->n_convs == 0 || j->n_convs > j->s->lim.max_convs)
    return fl_fail(j->err, FL_EINPUT, "a step of %zu conversations where 1 to %zu were planned for",
                   j->n_convs, j->s->lim.max_convs);
  for (size_t i = 0; i < j->n_convs; i++) {
    int rc = check_conv(j, &j->convs[i]);
    if (rc != FL_OK) return rc;
    j->n_sup += j->convs[i].conv->targets.n_rows;
    j->n_rows += conv_rows(j->convs[i].conv);
    j->teacher += fl_targets_entropy(&j->convs[i].conv->targets);
  }
  j->scale = (float)(1.0 / (double)j->n_sup);
  return FL_OK;
}

/* --- groups -------------------------------------------------------------------------------- */

/* The end of the group that begins at conversation `first`. */
static size_t group_end(const job *j, size_t first) {
  const fl_stepper *s = j->s;
  size_t rows = 0, sup = 0, end = first;
  while (end < s->shard.n_local) {
    const fl_conv *c = own(j, end)->conv;
    rows += conv_rows(c);
    sup += c->targets.n_rows;
    if (end > first &&
        (!j->pack || end - first == s->pass_convs || rows > s->pass_rows || sup > s->lim.max_sup))
      break;
    end++;
  }
  return end;
}

static void gather_spans(job *j, size_t first, size_t n) {
  fl_stepper *s = j->s;
  fl_prefix_part *part = s->prefix;
  for (size_t i = 0; i < n; i++) {
    const fl_step_conv *c = own(j, first + i);
    size_t position = 0;
    s->span[i] = (fl_span){ .tokens = c->conv->tokens.data,
                            .n_rows = conv_rows(c->conv),
                            .n_no_output = conv_silent(c->conv),
                            .parts = part,
                            .n_parts = c->n_parts };
    for (size_t k = 0; k < c->n_parts; k++) {
      const fl_cartridge *cart = j->trainables[c->parts[k]].cart;
      *part++ = (fl_prefix_part){ cart->rows.n_rows, cart->rows.k, cart->rows.v };
      position = fl_position_after(cart, position, s->lim.positions);
    }
    s->span[i].position = position;
  }
}

/* Supervised rows of the group, numbered over its spans; returns their number. */
static size_t gather_targets(const job *j, size_t first, size_t n) {
  fl_stepper *s = j->s;
  size_t at = 0, row0 = 0;
  for (size_t i = 0; i < n; i++) {
    const fl_conv *c = own(j, first + i)->conv;
    const fl_targets *t = &c->targets;
    for (size_t r = 0; r < t->n_rows; r++, at++) {
      s->row[at] = row0 + c->sup[r];
      s->target[at] = (fl_target_row){ .id = t->id + t->first[r],
                                       .prob = t->prob + t->first[r],
                                       .n = t->first[r + 1] - t->first[r] };
    }
    row0 += conv_rows(c);
  }
  return at;
}

static void gather_grads(const job *j, size_t first, size_t n) {
  fl_stepper *s = j->s;
  fl_grad_part *part = s->grad_part;
  for (size_t i = 0; i < n; i++) {
    const fl_step_conv *c = own(j, first + i);
    s->grad_span[i] = (fl_grad_span){ .parts = part, .n_parts = c->n_parts };
    for (size_t k = 0; k < c->n_parts; k++) {
      const fl_cartridge *cart = j->trainables[c->parts[k]].cart;
      const fl_rows *g =
          fl_shard_grad(&s->shard, j->trainables, j->convs, s->shard.local[first + i], k);
      assert(!g || g->n_rows == cart->rows.n_rows - cart->frozen);
      *part++ = (fl_grad_part){ .n_rows = cart->rows.n_rows,
                                .skip = cart->frozen,
                                .dk = g ? g->k : NULL,
                                .dv = g ? g->v : NULL };
    }
  }
}

/* Row by row within a conversation: the same sum however they were grouped. */
static void add_losses(const job *j, size_t first, size_t n) {
  const double *row = j->s->row_loss;
  for (size_t i = 0; i < n; i++) {
    double loss = 0;
    for (size_t r = 0; r < own(j, first + i)->conv->targets.n_rows; r++) loss += *row++;
    j->s->shard.loss[j->s->shard.local[first + i]] = loss;
  }
}

static int run_group(job *j, size_t first, size_t n) {
  fl_stepper *s = j->s;
  gather_spans(j, first, n);
  int rc = fl_pass_forward(s->pass, s->span, n, j->err);
  if (rc == FL_OK) {
    const size_t n_sup = gather_targets(j, first, n);
    fl_pass_loss(s->pass, s->row, s->target, n_sup, j->scale, s->row_loss);
    add_losses(j, first, n);
    if (j->backward) {
      gather_grads(j, first, n);
      fl_pass_backward(s->pass, s->grad_span);
    }
  }
  return rc;
}

/* --- gradients ----------------------------------------------------------------------------- */

static bool is_visible(const job *j, size_t trainee) {
  for (size_t i = 0; i < j->n_convs; i++)
    for (size_t k = 0; k < j->convs[i].n_parts; k++)
      if (j->convs[i].parts[k] == trainee) return true;
  return false;
}

/* Zeroed gradients; those that the caller gave no room for are lent to what is visible. */
static int open_grads(job *j) {
  int rc = FL_OK;
  if (!j->backward) return FL_OK;
  j->lent = fl_calloc(j->n_trainees + 1, sizeof *j->lent);
  if (!j->lent) return fl_fail(j->err, FL_ENOMEM, "out of memory for a training step");
  for (size_t i = 0; rc == FL_OK && i < j->n_trainees; i++) {
    const fl_trainable *t = &j->trainables[i];
    if (t->grad && t->grad->block) fl_rows_zero(t->grad);
    if (!t->grad || t->grad->block || !is_visible(j, i)) continue;
    rc = fl_cart_grad_init(t->grad, fl_model_hparams(j->s->model), t->cart, j->err);
    j->lent[i] = rc == FL_OK;
    if (rc == FL_OK && j->s->lim.grad_dir) fl_rows_to_file(t->grad, j->s->lim.grad_dir);
  }
  return rc;
}

static void close_grad(const job *j, size_t trainee) {
  if (j->lent && j->lent[trainee]) fl_rows_release(j->trainables[trainee].grad);
}

static void close_grads(job *j) {
  for (size_t i = 0; i < j->n_trainees; i++) close_grad(j, i);
  fl_free(j->lent);
  j->lent = NULL;
}

/* This rank's conversations. */
static int run_own(job *j) {
  fl_stepper *s = j->s;
  int rc = open_grads(j);
  if (rc == FL_OK && j->backward)
    rc = fl_shard_room(&s->shard, j->trainables, j->n_trainees, j->convs, j->err);
  s->running = j;
  for (size_t at = 0, end; rc == FL_OK && at < s->shard.n_local; at = end) {
    end = group_end(j, at);
    rc = run_group(j, at, end - at);
  }
  fl_pass_evict_pages(s->pass);
  return rc;
}

static int run_job(job *j) {
  fl_shard *sp = &j->s->shard;
  int rc = check_job(j);
  if (rc != FL_OK) return rc;
  fl_shard_plan(sp, j->convs, j->n_convs, j->backward);
  rc = run_own(j);
  if (j->backward)
    rc = fl_shard_collect(sp, fl_model_kernels(j->s->model), rc, j->trainables, j->n_trainees,
                          j->convs, j->n_convs, j->err);
  fl_shard_drop(sp);
  for (size_t i = 0; i < j->n_convs; i++) j->loss += sp->loss[i];
  if (rc == FL_OK && !isfinite(j->loss))
    rc = fl_fail(j->err, FL_EFAIL,
                 "the loss is not a finite number; nothing was changed, lower "
                 "--lr or bound the gradient with --clip");
  return rc;
}

/* --- the calls ----------------------------------------------------------------------------- */

/* The norm over all visible cartridges; each is clipped by its own when clip > 0. */
static double norm_and_clip(const job *j, double clip) {
  double sum = 0;
  for (size_t i = 0; i < j->n_trainees; i++) {
    fl_rows *g = j->trainables[i].grad;
    if (!g || !is_visible(j, i)) continue;
    const double norm = fl_rows_norm(g);
    sum += norm * norm;
    if (clip > 0 && norm > clip) fl_rows_scale(g, (float)(clip / norm));
    fl_rows_evict_pages(g);
  }
  return sqrt(sum);
}

static fl_step_result losses(const job *j) {
  return (fl_step_result){ .loss = j->loss / (double)j->n_sup,
                           .teacher = j->teacher / (double)j->n_sup,
                           .n_sup = j->n_sup,
                           .n_rows = j->n_rows };
}

static int grad_job(job *j, double clip, fl_step_result *r) {
  const double start_s = fl_now_s();
  int rc = run_job(j);
  if (rc != FL_OK) return rc;
  const double norm = norm_and_clip(j, clip);
  if (!isfinite(norm))
    return fl_fail(j->err, FL_EFAIL, "the gradient is not finite; nothing was changed, lower --lr");
  *r = losses(j);
  r->grad_norm = norm;
  r->student_s = fl_now_s() - start_s;
  return FL_OK;
}

int fl_step_grad(fl_stepper *s, fl_trainable *trainables, size_t n_trainees,
                 const fl_step_conv *convs, size_t n_convs, fl_step_result *r, fl_err *err) {
  job j = { .s = s,
            .trainables = trainables,
            .n_trainees = n_trainees,
            .convs = convs,
            .n_convs = n_convs,
            .pack = s->lim.pack,
            .backward = true,
            .err = err };
  int rc = grad_job(&j, 0, r);
  close_grads(&j);
  return rc;
}

static void take_steps(job *j, const fl_rate *rate) {
  for (size_t i = 0; i < j->n_trainees; i++) {
    const fl_trainable *t = &j->trainables[i];
    if (!t->grad || !is_visible(j, i)) continue;
    const double lr = fl_rate_at(rate, t->cart->steps);
    fl_adam_step(fl_model_kernels(j->s->model), j->s->team, t->cart, t->adam, t->grad, lr);
    close_grad(j, i);
  }
}

int fl_step(fl_stepper *s, fl_trainable *trainables, size_t n_trainees, const fl_step_conv *convs,
            size_t n_convs, const fl_step_options *o, fl_step_result *r, fl_err *err) {
  job j = { .s = s,
            .trainables = trainables,
            .n_trainees = n_trainees,
            .convs = convs,
            .n_convs = n_convs,
            .pack = o->pack,
            .backward = true,
            .err = err };
  int rc = grad_job(&j, o->clip, r);
  const double start_s = fl_now_s();
  if (rc == FL_OK) take_steps(&j, &o->rate);
  if (rc == FL_OK) r->opt_s = fl_now_s() - start_s;
  close_grads(&j);
  return rc;
}

int fl_step_eval(fl_stepper *s, const fl_trainable *trainables, size_t n_trainees,
                 const fl_step_conv *convs, size_t n_convs, fl_step_result *r, fl_err *err) {
  job j = { .s = s,
            .trainables = trainables,
            .n_trainees = n_trainees,
            .convs = convs,
            .n_convs = n_convs,
            .pack = s->lim.pack,
            .err = err };
  int rc = run_job(&j);
  if (rc == FL_OK) *r = losses(&j);
  return rc;
}
