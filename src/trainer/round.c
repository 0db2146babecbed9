/* round.c - one round: choose the target, make or draw its conversations, draw what they see, step.
 * The fleet's counters change only after the step went through. */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "study/echo.h"
#include "trainer/dataset.h"
#include "trainer/state.h"
#include "trainer/distractors.h"

typedef struct round {
  fl_trainer *t;
  uint64_t number; /* of this round, from 1 */
  size_t slot;     /* of the target */
  fl_resident *s;
  fl_doc_entry *d;
  size_t n;             /* conversations asked for */
  const fl_conv **used; /* [n] one that is there already, NULL: a fresh one */
  fl_conv_plan *plan;   /* [n_fresh] */
  fl_conv *fresh;       /* [n_fresh] */
  bool *ok;             /* [n_fresh] */
  size_t n_fresh;
  fl_step_conv *conv; /* [n] what the step gets */
  size_t *parts;      /* [n, max_parts] */
  uint32_t *draw;     /* [residents] */
  size_t n_convs;
  fl_study_stats stats;
  fl_arena arena; /* of the arrays */
} round_t;

static void round_release(round_t *r) {
  for (size_t i = 0; r->fresh != NULL && i < r->n_fresh; i++) fl_conv_release(&r->fresh[i]);
  fl_arena_release(&r->arena);
}

static void carve_round(fl_arena *a, void *ctx) {
  round_t *r = ctx;
  const size_t n = r->n;
  r->used = fl_arena_take(a, n, sizeof *r->used);
  r->plan = fl_arena_take(a, n, sizeof *r->plan);
  r->fresh = fl_arena_take(a, n, sizeof *r->fresh);
  r->ok = fl_arena_take(a, n, sizeof *r->ok);
  r->conv = fl_arena_take(a, n, sizeof *r->conv);
  r->parts = fl_arena_take(a, n, r->t->plan.max_parts * sizeof *r->parts);
  r->draw = fl_arena_take(a, r->t->res.n + 1, sizeof *r->draw);
}

static int round_alloc(round_t *r, fl_err *err) {
  if (fl_arena_lay_out(&r->arena, carve_round, r) == FL_OK) return FL_OK;
  return fl_fail(err, FL_ENOMEM, "not enough memory for a round; lower --accum");
}

static int choose_target(round_t *r, fl_err *err) {
  fl_fleet *f = r->t->f;
  fl_rot_doc *d = fl_calloc(f->m.n, sizeof *d);
  if (d == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for a round");
  fl_rot_docs(f, d);
  size_t doc = fl_rotate_target(d, f->m.n);
  fl_free(d);
  r->slot = fl_residency_slot(&r->t->res, doc);
  r->s = r->t->res.slot[r->slot];
  r->d = &f->m.doc[doc];
  return FL_OK;
}

/* From a study file: one after the other, in an order drawn for every pass over them. */
static int take_given(round_t *r, fl_err *err) {
  const uint64_t seed = r->t->f->opts.seed;
  uint32_t *scratch = fl_calloc(r->s->n_given, sizeof *scratch);
  if (scratch == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for a round");
  for (size_t j = 0; j < r->n; j++) {
    const uint64_t use = r->d->made + j;
    r->used[j] = &r->s->given[fl_dataset_pick(seed, r->d->id, use, r->s->n_given, scratch)];
  }
  fl_free(scratch);
  return FL_OK;
}

static int plan_conversations(round_t *r, fl_err *err) {
  const fl_train_options *o = &r->t->f->opts;
  if (r->s->n_given > 0) return take_given(r, err);
  for (size_t j = 0; j < r->n; j++) {
    fl_rng g;
    if (!fl_lookahead_is_fresh(o, r->d->id, r->number, j, r->s->kept.n > 0, &g)) {
      r->used[j] = &r->s->kept.conv[fl_rng_below(&g, r->s->kept.n)];
      continue;
    }
    r->plan[r->n_fresh] = (fl_conv_plan){ .doc = r->d->id,
                                          .round = (uint32_t)r->number,
                                          .conv = (uint32_t)j,
                                          .draw = (uint32_t)(r->d->made + r->n_fresh) };
    r->n_fresh++;
  }
  return FL_OK;
}

static void see(round_t *r, size_t j, const fl_conv *c) {
  fl_trainer *t = r->t;
  const fl_distractor_options o = { .seed = t->f->opts.seed,
                                    .p_iso = t->f->opts.p_iso,
                                    .distract_max = t->f->opts.distract_max < t->plan.max_parts - 1
                                                        ? t->f->opts.distract_max
                                                        : t->plan.max_parts - 1 };
  size_t n = fl_distractors_draw(&o, r->d->id, (uint32_t)r->number, (uint32_t)j, r->slot, t->res.n,
                                 r->draw);
  size_t *parts = r->parts + r->n_convs * t->plan.max_parts;
  for (size_t k = 0; k < n; k++) parts[k] = r->draw[k];
  r->conv[r->n_convs++] = (fl_step_conv){ .conv = c, .parts = parts, .n_parts = n };
}

static bool is_said(const fl_conv *list, const bool *ok, size_t n, const fl_conv *c) {
  for (size_t i = 0; i < n; i++)
    if ((ok == NULL || ok[i]) && fl_echo_same(list[i].request, c->request)) return true;
  return false;
}

/* A fresh conversation whose request is that of one that is kept, or of one before it in this
 * round, teaches nothing new. The seeds alone are taken as they come. */
static void drop_same(round_t *r) {
  if (!fl_mix_is_anchored(&r->t->f->opts.kinds)) return;
  for (size_t i = 0; i < r->n_fresh; i++) {
    const fl_conv *c = &r->fresh[i];
    if (!r->ok[i] ||
        !(is_said(r->s->kept.conv, NULL, r->s->kept.n, c) || is_said(r->fresh, r->ok, i, c)))
      continue;
    fl_log_same(r->t, &r->plan[i], c);
    fl_conv_release(&r->fresh[i]);
    r->ok[i] = false;
    r->stats.rejected++;
    r->stats.skipped++;
  }
}

static void lay_out(round_t *r) {
  size_t next = 0;
  for (size_t j = 0; j < r->n; j++) {
    if (r->used[j] != NULL) {
      fl_log_replayed(r->t, r->s->doc, (uint32_t)j, r->used[j]);
      see(r, j, r->used[j]);
    } else if (r->ok[next++]) {
      see(r, j, &r->fresh[next - 1]);
    }
  }
}

static int step(round_t *r, fl_step_result *out, fl_err *err) {
  fl_trainer *t = r->t;
  const fl_step_options so = fl_train_step(&t->f->opts);
  if (r->n_convs == 0) return FL_OK; /* nothing came out; the round counts and goes on */
  return fl_step(t->stepper, t->res.trainee, t->res.n, r->conv, r->n_convs, &so, out, err);
}

/* What a conversation is about; of a chunk that a bot asked something about, all. */
static int cover(const round_t *r, const fl_conv *c) {
  const bool anchored = c->at_end > 0;
  return fl_coverage_add(&r->d->coverage, anchored ? c->at_first : c->first,
                         anchored ? c->at_end : c->end);
}

/* Spans of a study file count where they lie within the document. */
static int cover_given(round_t *r, fl_err *err) {
  for (size_t j = 0; r->s->n_given > 0 && j < r->n; j++) {
    const fl_conv *c = r->used[j];
    if (c->end <= r->d->tokens && cover(r, c) != FL_OK)
      return fl_fail(err, FL_ENOMEM, "not enough memory to note what was covered");
  }
  return FL_OK;
}

/* Everything of the fleet that a round changes. */
static int take_effect(round_t *r, fl_err *err) {
  fl_trainer *t = r->t;
  fl_fleet *f = t->f;
  f->m.rounds = r->number;
  f->unsaved = true;
  r->d->targeted++;
  r->d->made += r->s->n_given > 0 ? r->n : r->n_fresh;
  const uint64_t gen = fl_manifest_generation(&f->m);
  for (size_t i = 0; i < t->res.n; i++) {
    fl_resident *s = t->res.slot[i];
    if (s->cart.steps == f->m.doc[s->doc].steps) continue;
    f->m.doc[s->doc].steps = s->cart.steps;
    fl_resident_touch(s, gen);
  }
  int rc = cover_given(r, err);
  for (size_t i = 0; rc == FL_OK && i < r->n_fresh; i++) {
    if (!r->ok[i]) continue;
    bool stored = cover(r, &r->fresh[i]) == FL_OK;
    if (stored && f->opts.replay > 1) {
      stored = fl_replay_push(&r->s->kept, &r->fresh[i]) == FL_OK;
      r->s->kept_dirty = true;
      r->s->kept_changed = gen;
    }
    if (!stored) rc = fl_fail(err, FL_ENOMEM, "not enough memory to keep a conversation");
  }
  return rc;
}

int fl_trainer_round(fl_trainer *t, fl_err *err) {
  round_t r = { .t = t, .number = t->f->m.rounds + 1, .n = t->f->opts.accum };
  fl_round_report rep = { 0 };
  double began = fl_now_s();
  const fl_work before = fl_team_work(t->f->team);
  if (r.n > t->plan.max_convs) r.n = t->plan.max_convs;
  int rc = choose_target(&r, err);
  if (rc == FL_OK) rc = round_alloc(&r, err);
  if (rc != FL_OK) goto done;
  rc = plan_conversations(&r, err);
  if (rc == FL_OK)
    rc = fl_lookahead_get(t, r.slot, r.plan, r.n_fresh, r.fresh, r.ok, &r.stats, err);
  if (rc == FL_OK) rc = fl_trainer_sync(t, err);
  if (rc != FL_OK) goto done;
  drop_same(&r);
  lay_out(&r);
  const fl_rate rate = fl_train_rate(&t->f->opts);
  rep.lr = fl_rate_at(&rate, r.s->cart.steps);
  rc = step(&r, &rep.step, err);
  if (rc != FL_OK) goto done;
  /* Before the fresh conversations move. */
  rep.doc = r.s->doc;
  rep.conv = r.conv;
  fl_round_gain(&rep.gain, r.conv, fl_stepper_losses(t->stepper), r.n_convs);
  rep.n_convs = r.n_convs;
  rep.n_fresh = r.n_fresh;
  rep.study = r.stats;
  rc = take_effect(&r, err);
  rep.seconds = fl_now_s() - began;
  const fl_work after = fl_team_work(t->f->team);
  rep.work = (fl_work){ after.flop - before.flop, after.bytes - before.bytes };
  if (rc == FL_OK) fl_log_round(t, &rep);
done:
  fl_buf_release(&rep.gain);
  round_release(&r);
  return rc;
}
