/* heldout_eval.c - held-out conversations: made once, evaluated alone and beside the others. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "trainer/ranks.h"

/* --- making them --- */

typedef struct batch {  /* of documents that have none yet */
  size_t *slot;         /* [most] */
  size_t n, most, each; /* each: conversations of a document */
  fl_conv_plan *plan;   /* [most * each] and so on */
  const fl_doc_text **text;
  fl_conv *conv;
  bool *ok;
  fl_arena arena; /* of all these */
} batch;

static void carve_batch(fl_arena *a, void *ctx) {
  batch *b = ctx;
  const size_t n = b->most * b->each;
  b->slot = fl_arena_take(a, b->most, sizeof *b->slot);
  b->plan = fl_arena_take(a, n, sizeof *b->plan);
  b->text = fl_arena_take(a, n, sizeof *b->text);
  b->conv = fl_arena_take(a, n, sizeof *b->conv);
  b->ok = fl_arena_take(a, n, sizeof *b->ok);
}

static int batch_init(batch *b, size_t most, size_t each, fl_err *err) {
  *b = (batch){ .most = most, .each = each };
  if (fl_arena_lay_out(&b->arena, carve_batch, b) == FL_OK) return FL_OK;
  return fl_fail(err, FL_ENOMEM, "not enough memory for held-out conversations");
}

static void batch_release(batch *b) {
  for (size_t i = 0; b->conv != NULL && i < b->most * b->each; i++) fl_conv_release(&b->conv[i]);
  fl_arena_release(&b->arena);
}

static void batch_add(batch *b, const fl_trainer *t, size_t slot) {
  const fl_resident *s = t->res.slot[slot];
  const size_t at = b->n * b->each;
  fl_heldout_plan(t->f, s, b->each, b->plan + at);
  for (size_t i = 0; i < b->each; i++) b->text[at + i] = &s->text;
  b->slot[b->n++] = slot;
}

/* Hands out what was made and writes it, so that no later end of the run loses it; by rank 0, and
 * only when all ranks have read the file. */
static int batch_keep(batch *b, fl_trainer *t, bool first, fl_err *err) {
  const bool writes = fl_dist_leads(t->f->dist);
  int rc = writes && first ? fl_heldout_clean(&t->res, t->f, err) : FL_OK;
  for (size_t k = 0; rc == FL_OK && k < b->n; k++) {
    const size_t at = k * b->each;
    rc = fl_heldout_take(t->res.slot[b->slot[k]], b->conv + at, b->ok + at, b->each, err);
  }
  if (rc == FL_OK && writes) rc = fl_heldout_add(&t->res, t->f, b->slot, b->n, err);
  return fl_dist_agree(t->f->dist, "heldout", rc, err);
}

/* Makes what was added, by all ranks, and empties the batch. No log: these conversations are no
 * part of the training. */
static int batch_run(batch *b, fl_trainer *t, bool first, fl_err *err) {
  int rc =
      fl_ranks_make(t, FL_OK, b->conv, b->ok, b->plan, b->text, b->n * b->each, false, NULL, err);
  if (rc == FL_OK) rc = batch_keep(b, t, first, err);
  for (size_t i = 0; i < b->n * b->each; i++) fl_conv_release(&b->conv[i]);
  b->n = 0;
  return rc;
}

static int make_missing(fl_trainer *t, size_t each, fl_err *err) {
  batch b;
  bool first = true;
  int rc = batch_init(&b, fl_ranks_room(t) / each, each, err);
  for (size_t i = 0; rc == FL_OK && i < t->res.n; i++) {
    if (t->res.slot[i]->heldout_known) continue;
    fl_hooks_note(t->f, t->hooks, t->f->m.doc[t->res.slot[i]->doc].name, "held-out conversations");
    batch_add(&b, t, i);
    if (b.n < b.most) continue;
    rc = batch_run(&b, t, first, err);
    first = false;
  }
  if (rc == FL_OK && b.n > 0) rc = batch_run(&b, t, first, err);
  batch_release(&b);
  return rc;
}

int fl_trainer_heldout(fl_trainer *t, fl_err *err) {
  size_t n = t->f->opts.heldout < t->plan.max_convs ? t->f->opts.heldout : t->plan.max_convs;
  if (n == 0) return FL_OK;
  int rc = fl_heldout_read(&t->res, t->f, &t->plan.conv, err);
  if (rc == FL_OK) rc = make_missing(t, n, err);
  /* Nobody reads the file again before it is written. */
  return rc == FL_OK ? fl_trainer_share(t, rc, err) : rc;
}

/* --- their loss --- */

/* Losses of slot i's held-out conversations behind the given parts. */
static int loss_behind(fl_trainer *t, size_t i, const size_t *parts, size_t n_parts,
                       fl_step_result *r, fl_err *err) {
  const fl_resident *s = t->res.slot[i];
  size_t n = s->n_heldout < t->plan.max_convs ? s->n_heldout : t->plan.max_convs;
  fl_step_conv *c = fl_calloc(n, sizeof *c);
  if (c == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for the held-out loss");
  for (size_t k = 0; k < n; k++)
    c[k] = (fl_step_conv){ .conv = &s->heldout[k], .parts = parts, .n_parts = n_parts };
  int rc = fl_step_eval(t->stepper, t->res.trainee, t->res.n, c, n, r, err);
  fl_free(c);
  return rc;
}

/* The document and as many others as a step allows, in the order of the manifest. */
static size_t parts_around(const fl_trainer *t, size_t i, size_t *parts) {
  size_t n = 0, most = t->plan.max_parts;
  for (size_t k = 0; k < t->res.n; k++) {
    bool room = n + (k < i ? 1 : 0) < most; /* a place is kept for i */
    if (k == i || room) parts[n++] = k;
  }
  return n;
}

typedef struct figure { /* of one resident */
  double alone, composed, teacher;
  uint64_t known;
} figure;

static int figure_of(fl_trainer *t, size_t i, size_t *parts, figure *out, fl_err *err) {
  fl_step_result alone = { 0 }, composed = { .loss = NAN };
  int rc = loss_behind(t, i, &i, 1, &alone, err);
  size_t n = parts_around(t, i, parts);
  if (rc == FL_OK && n > 1) rc = loss_behind(t, i, parts, n, &composed, err);
  if (rc == FL_OK) *out = (figure){ alone.loss, composed.loss, alone.teacher, 1 };
  return rc;
}

/* Every rank's share of the residents, until a stop; all [ranks, residents]. */
static int figures(fl_trainer *t, figure *mine, figure *all, size_t *parts, fl_err *err) {
  fl_dist *d = t->f->dist;
  int rc = FL_OK;
  for (size_t i = fl_dist_rank(d); rc == FL_OK && i < t->res.n; i += fl_dist_count(d)) {
    if (t->res.slot[i]->n_heldout == 0) continue;
    if (fl_trainer_poll(t)) break;
    rc = figure_of(t, i, parts, &mine[i], err);
  }
  return fl_dist_gather(d, "heldout", rc, all, mine, t->res.n * sizeof *mine, err);
}

static void log_figures(const fl_trainer *t, const figure *all) {
  for (size_t i = 0; i < t->res.n; i++) {
    const figure *g = &all[i % fl_dist_count(t->f->dist) * t->res.n + i];
    const fl_resident *s = t->res.slot[i];
    if (g->known) fl_log_heldout(t, s->doc, g->alone, g->composed, g->teacher, s->n_heldout);
  }
}

static int ask_questions(fl_trainer *t, fl_err *err) {
  if (t->hooks == NULL || t->hooks->evaluate == NULL || fl_trainer_poll(t)) return FL_OK;
  return t->hooks->evaluate(t->hooks->ctx, t->f, t->f->m.rounds, err);
}

int fl_trainer_evaluate(fl_trainer *t, fl_err *err) {
  const size_t n = t->res.n + 1;
  size_t *parts = fl_calloc(n, sizeof *parts);
  figure *mine = fl_calloc(n, sizeof *mine);
  figure *all = fl_calloc(n, fl_dist_count(t->f->dist) * sizeof *all);
  int rc = parts != NULL && mine != NULL && all != NULL
               ? figures(t, mine, all, parts, err)
               : fl_fail(err, FL_ENOMEM, "not enough memory for the held-out loss");
  if (rc == FL_OK) log_figures(t, all);
  fl_free(parts);
  fl_free(mine);
  fl_free(all);
  if (rc == FL_OK) rc = ask_questions(t, err);
  return fl_trainer_share(t, rc, err);
}
