/* step.c - one step: compose, forward, loss, backward, optimizer. Which conversations are this
 * rank's: spread.h; they are numbered here as they are there, in `mine`.
 *
 * Conversations that see the same parts in the same order share the pages of one composed prefix.
 * They are cut into groups, in order: as many as fit a pass when packing, one otherwise. The pass
 * adds every span's contribution to a gradient in span order, so a cartridge's gradient is the same
 * sum, term by term, however the conversations were grouped. What follows the last supervised row
 * of a conversation decides nothing and is not run.
 */
#include "train/step.h"

#include <assert.h>
#include <math.h>

#include "base/fs.h"
#include "base/mem.h"
#include "train/spread.h"

typedef struct prefix { /* composed rows of one list of parts */
  const size_t *parts;
  size_t n_parts;
  fl_seq *seq;
} prefix;

struct fl_stepper {
  const fl_model *model;
  fl_team *team;
  fl_pass *pass;
  fl_kv_pool *pool;
  fl_stepper_limits lim;
  size_t pass_rows, pass_convs;
  prefix *prefix;             /* [max_convs] of the running step */
  size_t n_prefix;
  fl_seq **seq;               /* [max_convs] of the running group */
  fl_span *span;              /* [max_convs] */
  fl_grad_span *grad_span;    /* [max_convs] */
  fl_grad_part *grad_part;    /* [max_convs, max_parts] */
  const fl_cartridge **part;  /* [max_parts] */
  size_t *row;                /* [max_sup] */
  fl_target_row *target;      /* [max_sup] */
  double *row_loss;           /* [max_sup] */
  fl_spread spread;
};

/* One call's arguments. */
typedef struct job {
  fl_stepper *s;
  const fl_trainee *trainees;
  size_t n_trainees;
  const fl_step_conv *convs;
  size_t n_convs;
  bool pack, backward;
  float scale;   /* of the loss: 1 / supervised rows */
  double loss;   /* sum over supervised rows */
  size_t n_sup, n_rows;
  fl_err *err;
} job;

/* The at-th of this rank's conversations. */
static const fl_step_conv *own(const job *j, size_t at) {
  return &j->convs[j->s->spread.mine[at]];
}

/* --- birth --------------------------------------------------------------------------------- */

static int alloc_scratch(fl_stepper *s, fl_err *err) {
  const fl_stepper_limits *l = &s->lim;
  size_t n_grad_parts;
  if (!fl_mul_size(l->max_convs, l->max_parts, &n_grad_parts))
    return fl_fail(err, FL_ENOMEM, "too many conversations in a step; lower --accum");
  s->prefix = fl_calloc(l->max_convs, sizeof *s->prefix);
  s->seq = fl_calloc(l->max_convs, sizeof *s->seq);
  s->span = fl_calloc(l->max_convs, sizeof *s->span);
  s->grad_span = fl_calloc(l->max_convs, sizeof *s->grad_span);
  s->grad_part = fl_calloc(n_grad_parts, sizeof *s->grad_part);
  s->part = fl_calloc(l->max_parts, sizeof *s->part);
  s->row = fl_calloc(l->max_sup, sizeof *s->row);
  s->target = fl_calloc(l->max_sup, sizeof *s->target);
  s->row_loss = fl_calloc(l->max_sup, sizeof *s->row_loss);
  if (!s->prefix || !s->seq || !s->span || !s->grad_span || !s->grad_part || !s->part || !s->row ||
      !s->target || !s->row_loss)
    return fl_fail(err, FL_ENOMEM, "out of memory for a training step; lower --accum");
  return fl_spread_init(&s->spread, l->dist, l->max_convs, l->max_parts, err);
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
  if (rc == FL_OK)
    rc = fl_kv_pool_new(&s->pool, fl_model_hparams(m), fl_model_kernels(m), FL_KV_F32, 0, err);
  const fl_pass_options opt = { .max_rows = s->pass_rows,
                                .max_spans = s->pass_convs,
                                .max_out_rows = l->max_sup,
                                .max_prefix = l->max_prefix,
                                .record = true,
                                .checkpoint = l->checkpoint };
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
  fl_kv_pool_free(s->pool);
  fl_free(s->prefix);
  fl_free(s->seq);
  fl_free(s->span);
  fl_free(s->grad_span);
  fl_free(s->grad_part);
  fl_free(s->part);
  fl_free(s->row);
  fl_free(s->target);
  fl_free(s->row_loss);
  fl_spread_release(&s->spread);
  fl_free(s);
}

/* --- checks -------------------------------------------------------------------------------- */

/* Rows of a conversation that matter: up to the last supervised one. */
static size_t conv_rows(const fl_conv *c) { return (size_t)c->sup[c->targets.n_rows - 1] + 1; }

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
    return fl_fail(j->err, FL_EINPUT, "a conversation's supervised rows or teacher entries are "
                   "damaged; make it again");
  if (sc->n_parts > l->max_parts)
    return fl_fail(j->err, FL_EINPUT, "a conversation sees %zu cartridges, at most %zu were "
                   "planned for", sc->n_parts, l->max_parts);
  for (size_t i = 0; i < sc->n_parts; i++) {
    assert(sc->parts[i] < j->n_trainees);
    prefix_rows += j->trainees[sc->parts[i]].cart->rows.n_rows;
  }
  if (prefix_rows > l->max_prefix || conv_rows(sc->conv) > l->max_conv_rows ||
      sc->conv->targets.n_rows > l->max_sup)
    return fl_fail(j->err, FL_EINPUT, "a conversation of %zu rows, %zu of them supervised, behind "
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
  }
  j->scale = (float)(1.0 / (double)j->n_sup);
  return FL_OK;
}

/* --- prefixes ------------------------------------------------------------------------------ */

static bool same_parts(const prefix *p, const fl_step_conv *c) {
  if (p->n_parts != c->n_parts) return false;
  for (size_t i = 0; i < c->n_parts; i++)
    if (p->parts[i] != c->parts[i]) return false;
  return true;
}

static prefix *find_prefix(fl_stepper *s, const fl_step_conv *c) {
  for (size_t i = 0; i < s->n_prefix; i++)
    if (same_parts(&s->prefix[i], c)) return &s->prefix[i];
  return NULL;
}

static int compose_all(job *j) {
  fl_stepper *s = j->s;
  for (size_t i = 0; i < s->spread.n_mine; i++) {
    const fl_step_conv *c = own(j, i);
    if (find_prefix(s, c)) continue;
    prefix *p = &s->prefix[s->n_prefix];
    *p = (prefix){ .parts = c->parts, .n_parts = c->n_parts };
    int rc = fl_seq_new(&p->seq, s->pool, j->err);
    if (rc != FL_OK) return rc;
    s->n_prefix++;
    for (size_t k = 0; k < c->n_parts; k++) s->part[k] = j->trainees[c->parts[k]].cart;
    rc = fl_compose(p->seq, s->part, c->n_parts, s->lim.positions, j->err);
    if (rc != FL_OK) return rc;
  }
  return FL_OK;
}

static void drop_prefixes(fl_stepper *s) {
  for (size_t i = 0; i < s->n_prefix; i++) fl_seq_free(s->prefix[i].seq);
  s->n_prefix = 0;
}

/* --- groups -------------------------------------------------------------------------------- */

/* The end of the group that begins at conversation `first`. */
static size_t group_end(const job *j, size_t first) {
  const fl_stepper *s = j->s;
  size_t rows = 0, sup = 0, end = first;
  while (end < s->spread.n_mine) {
    const fl_conv *c = own(j, end)->conv;
    rows += conv_rows(c);
    sup += c->targets.n_rows;
    if (end > first && (!j->pack || end - first == s->pass_convs || rows > s->pass_rows ||
                        sup > s->lim.max_sup))
      break;
    end++;
  }
  return end;
}

static int fork_spans(job *j, size_t first, size_t n) {
  fl_stepper *s = j->s;
  for (size_t i = 0; i < n; i++) s->seq[i] = NULL;
  for (size_t i = 0; i < n; i++) {
    const fl_step_conv *c = own(j, first + i);
    const prefix *p = find_prefix(s, c);
    int rc = fl_seq_fork(&s->seq[i], p->seq, fl_seq_rows(p->seq), j->err);
    if (rc != FL_OK) return rc;
    s->span[i] = (fl_span){ .seq = s->seq[i],
                            .tokens = c->conv->tokens.data,
                            .n_rows = conv_rows(c->conv) };
  }
  return FL_OK;
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
      const fl_cartridge *cart = j->trainees[c->parts[k]].cart;
      const fl_rows *g =
          fl_spread_grad(&s->spread, j->trainees, j->convs, s->spread.mine[first + i], k);
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
    j->s->spread.loss[j->s->spread.mine[first + i]] = loss;
  }
}

static int run_group(job *j, size_t first, size_t n) {
  fl_stepper *s = j->s;
  int rc = fork_spans(j, first, n);
  if (rc == FL_OK) rc = fl_pass_forward(s->pass, s->span, n, j->err);
  if (rc == FL_OK) {
    const size_t n_sup = gather_targets(j, first, n);
    fl_pass_loss(s->pass, s->row, s->target, n_sup, j->scale, s->row_loss);
    add_losses(j, first, n);
    if (j->backward) {
      gather_grads(j, first, n);
      fl_pass_backward(s->pass, s->grad_span);
    }
  }
  for (size_t i = 0; i < n; i++) fl_seq_free(s->seq[i]);
  return rc;
}

/* This rank's conversations. */
static int run_own(job *j) {
  fl_stepper *s = j->s;
  int rc = FL_OK;
  for (size_t i = 0; j->backward && i < j->n_trainees; i++)
    if (j->trainees[i].grad) fl_rows_zero(j->trainees[i].grad);
  if (j->backward)
    rc = fl_spread_room(&s->spread, j->trainees, j->n_trainees, j->convs, j->err);
  if (rc == FL_OK) rc = compose_all(j);
  for (size_t at = 0, end; rc == FL_OK && at < s->spread.n_mine; at = end) {
    end = group_end(j, at);
    rc = run_group(j, at, end - at);
  }
  drop_prefixes(s);
  return rc;
}

static int run_job(job *j) {
  fl_spread *sp = &j->s->spread;
  int rc = check_job(j);
  if (rc != FL_OK) return rc;
  fl_spread_plan(sp, j->convs, j->n_convs, j->backward);
  rc = run_own(j);
  if (j->backward)
    rc = fl_spread_collect(sp, fl_model_kernels(j->s->model), rc, j->trainees, j->n_trainees,
                           j->convs, j->n_convs, j->err);
  fl_spread_drop(sp);
  for (size_t i = 0; i < j->n_convs; i++) j->loss += sp->loss[i];
  if (rc == FL_OK && !isfinite(j->loss))
    rc = fl_fail(j->err, FL_EFAIL, "the loss is not a finite number; nothing was changed, lower "
                 "--lr or bound the gradient with --clip");
  return rc;
}

/* --- the calls ----------------------------------------------------------------------------- */

static bool is_visible(const job *j, size_t trainee) {
  for (size_t i = 0; i < j->n_convs; i++)
    for (size_t k = 0; k < j->convs[i].n_parts; k++)
      if (j->convs[i].parts[k] == trainee) return true;
  return false;
}

/* The norm over all visible cartridges; each is clipped by its own when clip > 0. */
static double norm_and_clip(const job *j, double clip) {
  double sum = 0;
  for (size_t i = 0; i < j->n_trainees; i++) {
    fl_rows *g = j->trainees[i].grad;
    if (!g || !is_visible(j, i)) continue;
    const double norm = fl_rows_norm(g);
    sum += norm * norm;
    if (clip > 0 && norm > clip) fl_rows_scale(g, (float)(clip / norm));
  }
  return sqrt(sum);
}

static int grad_job(job *j, double clip, fl_step_result *r) {
  const double start_s = fl_now_s();
  int rc = run_job(j);
  if (rc != FL_OK) return rc;
  const double norm = norm_and_clip(j, clip);
  if (!isfinite(norm))
    return fl_fail(j->err, FL_EFAIL, "the gradient is not finite; nothing was changed, lower --lr");
  *r = (fl_step_result){ .loss = j->loss / (double)j->n_sup,
                         .grad_norm = norm,
                         .n_sup = j->n_sup,
                         .n_rows = j->n_rows,
                         .student_s = fl_now_s() - start_s };
  return FL_OK;
}

int fl_step_grad(fl_stepper *s, fl_trainee *trainees, size_t n_trainees, const fl_step_conv *convs,
                 size_t n_convs, fl_step_result *r, fl_err *err) {
  job j = { .s = s, .trainees = trainees, .n_trainees = n_trainees, .convs = convs,
            .n_convs = n_convs, .pack = s->lim.pack, .backward = true, .err = err };
  return grad_job(&j, 0, r);
}

int fl_step(fl_stepper *s, fl_trainee *trainees, size_t n_trainees, const fl_step_conv *convs,
            size_t n_convs, const fl_step_options *o, fl_step_result *r, fl_err *err) {
  job j = { .s = s, .trainees = trainees, .n_trainees = n_trainees, .convs = convs,
            .n_convs = n_convs, .pack = o->pack, .backward = true, .err = err };
  int rc = grad_job(&j, o->clip, r);
  if (rc != FL_OK) return rc;
  const double start_s = fl_now_s();
  for (size_t i = 0; i < n_trainees; i++) {
    const fl_trainee *t = &trainees[i];
    if (!t->grad || !is_visible(&j, i)) continue;
    const double lr = fl_rate_at(&o->rate, t->cart->steps);
    fl_adam_step(fl_model_kernels(s->model), s->team, t->cart, t->adam, t->grad, lr);
  }
  r->opt_s = fl_now_s() - start_s;
  return FL_OK;
}

int fl_step_eval(fl_stepper *s, const fl_trainee *trainees, size_t n_trainees,
                 const fl_step_conv *convs, size_t n_convs, double *loss, size_t *n_sup,
                 fl_err *err) {
  job j = { .s = s, .trainees = trainees, .n_trainees = n_trainees, .convs = convs,
            .n_convs = n_convs, .pack = s->lim.pack, .err = err };
  int rc = run_job(&j);
  if (rc != FL_OK) return rc;
  *loss = j.loss / (double)j.n_sup;
  if (n_sup) *n_sup = j.n_sup;
  return FL_OK;
}
