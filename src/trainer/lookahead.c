/* lookahead.c - see lookahead.h. */
#include "trainer/lookahead.h"

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "trainer/ranks.h"

typedef struct batch { /* of one generation: what is asked for, then what is foretold */
  fl_conv_plan *plan;
  const fl_doc_text **text;
  fl_conv *conv;
  bool *ok;
  size_t n, most;
  size_t room;
  fl_arena arena; /* of the arrays */
} batch;

int fl_lookahead_init(fl_lookahead *a, size_t convs, fl_err *err) {
  const size_t cap = 2 * convs;
  a->plan = fl_calloc(cap, sizeof *a->plan);
  a->conv = fl_calloc(cap, sizeof *a->conv);
  a->ok = fl_calloc(cap, sizeof *a->ok);
  if (a->plan != NULL && a->conv != NULL && a->ok != NULL) return FL_OK;
  return fl_fail(err, FL_ENOMEM, "not enough memory for a round; lower --accum");
}

void fl_lookahead_release(fl_lookahead *a) {
  for (size_t i = 0; i < a->n; i++) fl_conv_release(&a->conv[i]);
  fl_free(a->plan);
  fl_free(a->conv);
  fl_free(a->ok);
  *a = (fl_lookahead){ 0 };
}

/* --- what was made before --- */

static bool same_plan(const fl_conv_plan *a, const fl_conv_plan *b) {
  return a->doc == b->doc && a->round == b->round && a->conv == b->conv && a->draw == b->draw;
}

static size_t find(const fl_lookahead *a, const fl_conv_plan *plan) {
  size_t i = 0;
  while (i < a->n && !same_plan(&a->plan[i], plan)) i++;
  return i;
}

/* The last one takes its place. */
static void take_out(fl_lookahead *a, size_t i) {
  a->n--;
  a->plan[i] = a->plan[a->n];
  a->conv[i] = a->conv[a->n];
  a->ok[i] = a->ok[a->n];
  a->conv[a->n] = (fl_conv){ 0 };
}

static void drop_past(fl_lookahead *a, uint32_t round) {
  for (size_t i = a->n; i-- > 0;) {
    if (a->plan[i].round > round) continue;
    fl_conv_release(&a->conv[i]);
    take_out(a, i);
  }
}

/* --- what will be asked for --- */

bool fl_lookahead_is_fresh(const fl_train_options *o, uint32_t doc, uint64_t round, size_t j,
                           bool any_kept, fl_rng *g) {
  *g = fl_rng_stream(o->seed, FL_RNG_REPLAY, doc, (uint32_t)round, (uint32_t)j);
  double u = fl_rng_unit(g);
  return !any_kept || u * o->replay < 1;
}

/* The last round before the set of residents may change. */
static uint64_t horizon(const fl_trainer *t, uint64_t round) {
  const size_t every = t->f->opts.rotate_every;
  const bool rotates = every > 0 && t->res.n < t->f->m.n;
  const uint64_t last = rotates ? (round + every - 1) / every * every : t->last_round;
  return last < t->last_round ? last : t->last_round;
}

static void add(const fl_lookahead *a, batch *b, fl_conv_plan plan, const fl_doc_text *text) {
  if (find(a, &plan) < a->n) return;
  b->plan[b->n] = plan;
  b->text[b->n++] = text;
}

/* Adds the conversations of the rounds after `round`, whose target had n of its own. */
static int foretell(const fl_trainer *t, uint64_t round, size_t slot, size_t n, batch *b,
                    fl_err *err) {
  const fl_train_options *o = &t->f->opts;
  const uint64_t last = horizon(t, round);
  fl_rot_doc *d = fl_calloc(t->f->m.n, sizeof *d);
  size_t *made = fl_calloc(t->res.n, sizeof *made);
  if (d == NULL || made == NULL) {
    fl_free(d);
    fl_free(made);
    return fl_fail(err, FL_ENOMEM, "not enough memory for a round");
  }
  fl_rot_docs(t->f, d);
  d[t->res.slot[slot]->doc].targeted++;
  made[slot] = n;
  for (uint64_t next = round + 1; next <= last && b->n < b->most; next++) {
    const size_t doc = fl_rotate_target(d, t->f->m.n), s = fl_residency_slot(&t->res, doc);
    const fl_resident *r = t->res.slot[s];
    d[doc].targeted++;
    for (size_t j = 0; r->n_given == 0 && j < o->accum && b->n < b->most; j++) {
      const bool any_kept = r->kept.n > 0 || (made[s] > 0 && o->replay > 1);
      fl_rng g;
      if (!fl_lookahead_is_fresh(o, d[doc].id, next, j, any_kept, &g)) continue;
      const fl_conv_plan plan = { .doc = d[doc].id,
                                  .round = (uint32_t)next,
                                  .conv = (uint32_t)j,
                                  .draw = (uint32_t)(t->f->m.doc[doc].made + made[s]) };
      add(&t->ahead, b, plan, &r->text);
      made[s]++;
    }
  }
  fl_free(d);
  fl_free(made);
  return FL_OK;
}

/* --- making --- */

static void carve_batch(fl_arena *a, void *ctx) {
  batch *b = ctx;
  b->plan = fl_arena_take(a, b->room, sizeof *b->plan);
  b->text = fl_arena_take(a, b->room, sizeof *b->text);
  b->conv = fl_arena_take(a, b->room, sizeof *b->conv);
  b->ok = fl_arena_take(a, b->room, sizeof *b->ok);
}

static int batch_init(batch *b, size_t room, fl_err *err) {
  b->room = room;
  if (fl_arena_lay_out(&b->arena, carve_batch, b) == FL_OK) return FL_OK;
  return fl_fail(err, FL_ENOMEM, "not enough memory for a round; lower --accum");
}

static void batch_release(batch *b) {
  for (size_t i = 0; b->conv != NULL && i < b->n; i++) fl_conv_release(&b->conv[i]);
  fl_arena_release(&b->arena);
}

/* What was made joins what is there. At most one batch lies there between rounds: a new one goes
 * beyond that by no more than what its round takes at once. */
static void put_by(fl_lookahead *a, batch *b) {
  for (size_t i = 0; i < b->n; i++, a->n++) {
    a->plan[a->n] = b->plan[i];
    a->conv[a->n] = b->conv[i];
    a->ok[a->n] = b->ok[i];
    b->conv[i] = (fl_conv){ 0 };
  }
}

int fl_lookahead_get(fl_trainer *t, size_t slot, const fl_conv_plan *plan, size_t n, fl_conv *out,
                     bool *ok, fl_study_stats *stats, fl_err *err) {
  fl_lookahead *a = &t->ahead;
  batch b = { 0 };
  if (n == 0) return FL_OK;
  const uint32_t round = plan[0].round;
  drop_past(a, round - 1);
  const size_t most = fl_ranks_room(t);
  int rc = batch_init(&b, most, err);
  for (size_t i = 0; rc == FL_OK && i < n; i++) add(a, &b, plan[i], &t->res.slot[slot]->text);
  if (rc == FL_OK && b.n > 0) {
    const size_t room = most > a->n ? most - a->n : 0;
    b.most = room > b.n ? room : b.n;
    rc = foretell(t, round, slot, n, &b, err);
    rc = fl_ranks_make(t, rc, b.conv, b.ok, b.plan, b.text, b.n, true, stats, err);
    if (rc == FL_OK) put_by(a, &b);
  }
  batch_release(&b);
  for (size_t i = 0; rc == FL_OK && i < n; i++) {
    const size_t at = find(a, &plan[i]);
    out[i] = a->conv[at];
    ok[i] = a->ok[at];
    take_out(a, at);
  }
  return rc;
}
