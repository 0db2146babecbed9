/* snapshot.c - one function a kind of event, and the fold over them. */
#include "tui/snapshot.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tui/snapshot_doc.h"

void tui_snapshot_init(tui_snapshot *s) {
  *s = (tui_snapshot){ .t = NAN,
                       .t0 = NAN,
                       .run_at = TUI_NONE,
                       .run_t = NAN,
                       .round = TUI_NONE,
                       .rounds = TUI_NONE,
                       .budget = TUI_NONE,
                       .target = TUI_NONE,
                       .loss = NAN,
                       .loss_mean = NAN,
                       .lr = NAN,
                       .grad_norm = NAN,
                       .round_s = NAN,
                       .rss = NAN,
                       .peak_rss = NAN,
                       .resident_bytes = NAN,
                       .tok_s = NAN,
                       .gen_tok_s = NAN,
                       .round_at = TUI_NONE,
                       .saved_round = TUI_NONE,
                       .generation = TUI_NONE,
                       .saved_t = NAN,
                       .saved_bytes = NAN,
                       .save_s = NAN,
                       .chunks = TUI_NONE,
                       .dim = TUI_NONE,
                       .last_rotate = TUI_NONE,
                       .last_error = TUI_NONE,
                       .request_s = NAN,
                       .ttft_s = NAN,
                       .queue_s = NAN };
}

void tui_snapshot_release(tui_snapshot *s) {
  for (size_t i = 0; i < s->n_docs; i++) tui_doc_release(&s->doc[i]);
  fl_free(s->doc);
  fl_free(s->doc_hash);
  tui_curves_release(&s->curves);
  tui_series_release(&s->rate.s);
  tui_series_release(&s->memory.s);
  tui_snapshot_init(s);
}

static double mix(double mean, double value, double weight) {
  if (isnan(value)) return mean;
  return isnan(mean) ? value : mean + (value - mean) * weight;
}

static void go_back(tui_snapshot *s, uint32_t round) {
  tui_curves_truncate(&s->curves, round);
  tui_thin_truncate(&s->rate, round);
  tui_thin_truncate(&s->memory, round);
  for (size_t i = 0; i < s->n_docs; i++) tui_curves_truncate(&s->doc[i].curves, round);
}

tui_run_kind tui_snapshot_run_kind(const tui_store *st, const tui_rec_run *r) {
  size_t n;
  const char *cmd = tui_store_str(st, r->cmd, &n);
  if (n == 0 || (n == 5 && memcmp(cmd, "train", 5) == 0)) return TUI_RUN_IS_TRAINER;
  return n == 5 && memcmp(cmd, "serve", 5) == 0 ? TUI_RUN_IS_SERVER : TUI_RUN_IS_PASSING;
}

tui_run_state tui_snapshot_end_state(const tui_rec_end *r) {
  return r->status == TUI_END_ERROR    ? TUI_RUN_FAILED
         : r->status == TUI_END_SIGNAL ? TUI_RUN_STOPPED
                                       : TUI_RUN_DONE;
}

static bool same_text(const tui_store *st, tui_ref a, tui_ref b) {
  size_t n, m;
  const char *s = tui_store_str(st, a, &n), *t = tui_store_str(st, b, &m);
  return n == m && memcmp(s, t, n) == 0;
}

bool tui_snapshot_run_again(const tui_store *st, uint32_t at) {
  const tui_rec_run *r = tui_store_rec(st, TUI_EV_RUN, at);
  if (r->continued != 1) return false;
  for (uint32_t i = at; i-- > 0;) {
    const tui_rec_run *was = tui_store_rec(st, TUI_EV_RUN, i);
    if (was->pid == r->pid && same_text(st, was->host, r->host)) return true;
  }
  return false;
}

static int on_run(tui_snapshot *s, const tui_store *st, const tui_rec_run *r, uint32_t at) {
  tui_run_kind kind = tui_snapshot_run_kind(st, r);
  if (kind == TUI_RUN_IS_PASSING || tui_snapshot_run_again(st, at)) return FL_OK;
  s->run_at = at;
  s->run_t = s->t;
  s->state = TUI_RUN_ACTIVE;
  s->is_server = kind == TUI_RUN_IS_SERVER;
  s->paused = false;
  if (s->is_server) return FL_OK;
  s->rounds = r->rounds;
  s->budget = r->budget;
  if (r->round0 != TUI_NONE) {
    if (s->round != TUI_NONE && s->round > r->round0) go_back(s, r->round0);
    s->round = r->round0;
  }
  for (size_t i = 0; i < s->n_docs; i++) s->doc[i].residency = TUI_ON_DISK;
  return FL_OK;
}

static int on_doc(tui_snapshot *s, const tui_rec_doc *r) {
  tui_doc *d;
  int rc = tui_snapshot_need_doc(s, r->doc, &d);
  if (!d) return rc;
  if (r->name.n) d->name = r->name;
  if (r->tokens != TUI_NONE) d->tokens = r->tokens;
  if (r->rows != TUI_NONE) d->rows = r->rows;
  if (r->steps != TUI_NONE) d->steps = r->steps;
  if (r->resident != TUI_NONE) d->residency = r->resident ? TUI_RESIDENT : TUI_ON_DISK;
  if (r->state) d->state = r->state;
  if (r->marked != TUI_NONE) d->marked = r->marked == 1;
  return rc;
}

static int on_study(tui_snapshot *s, const tui_rec_study *r, uint32_t at) {
  tui_doc *d;
  int rc = tui_snapshot_need_doc(s, r->doc, &d);
  if (r->rejected) {
    s->n_rejected++;
    s->by_rejection[r->rejected < TUI_REJECTIONS ? r->rejected : 0]++;
  } else {
    s->n_study++;
    s->by_kind[r->kind < TUI_KINDS_OF_STUDY ? r->kind : 0]++;
    if (r->replayed) s->n_replayed++;
  }
  if (!d) return rc;
  d->last_study = at;
  if (r->rejected) {
    d->rejected++;
    return FL_OK;
  }
  d->convs++;
  if (r->first == TUI_NONE || r->end == TUI_NONE) return FL_OK;
  tui_doc_add_heat(d, r->first, r->end);
  return tui_doc_add_span(d, r->first, r->end);
}

static int set_resident(tui_snapshot *s, const tui_store *st, tui_ref now) {
  const uint32_t *ids = tui_store_numbers(st, now), *was = tui_store_numbers(st, s->resident);
  size_t n = now.n;
  /* Mostly nothing has changed since the round before; the walk over all documents is saved. */
  if (n == s->resident.n && memcmp(ids, was, n * sizeof *ids) == 0) return FL_OK;
  s->resident = now;
  for (size_t i = 0; i < s->n_docs; i++)
    if (s->doc[i].residency != TUI_EVICTED) s->doc[i].residency = TUI_ON_DISK;
  for (size_t i = 0; i < n; i++) {
    tui_doc *d;
    int rc = tui_snapshot_need_doc(s, ids[i], &d);
    if (rc != FL_OK) return rc;
    if (d) d->residency = TUI_RESIDENT;
  }
  return FL_OK;
}

static void add_known(double *sum, double v) {
  if (!isnan(v)) *sum += v;
}

static void add_cost(tui_snapshot *s, const tui_rec_round *r) {
  tui_cost c = { .seconds = (double)r->seconds,
                 .gen_s = (double)r->gen_s,
                 .student_s = (double)r->student_s,
                 .opt_s = (double)r->opt_s,
                 .io_s = (double)r->io_s,
                 .gen_tokens = tui_known(r->gen_tokens),
                 .tokens = tui_known(r->tokens),
                 .rounds = 1,
                 .gflop = (double)r->gflop,
                 .gbyte = (double)r->gbyte };
  s->last = c;
  tui_cost *sum = &s->cost;
  add_known(&sum->seconds, c.seconds);
  add_known(&sum->gen_s, c.gen_s);
  add_known(&sum->student_s, c.student_s);
  add_known(&sum->opt_s, c.opt_s);
  add_known(&sum->io_s, c.io_s);
  add_known(&sum->gen_tokens, c.gen_tokens);
  add_known(&sum->tokens, c.tokens);
  add_known(&sum->rounds, c.rounds);
  add_known(&sum->gflop, c.gflop);
  add_known(&sum->gbyte, c.gbyte);
  s->round_s = mix(s->round_s, c.seconds, 0.1);
  if (c.seconds > 0) s->tok_s = c.tokens / c.seconds;
  if (c.gen_s > 0) s->gen_tok_s = c.gen_tokens / c.gen_s;
  s->rss = (double)r->rss;
  s->peak_rss = fmax((double)r->peak_rss, s->peak_rss);
  s->resident_bytes = (double)r->resident_bytes;
}

static int push_curves(tui_snapshot *s, const tui_rec_round *r, tui_doc *d) {
  const double tok = r->seconds > 0 ? tui_known(r->tokens) / (double)r->seconds : (double)NAN;
  int rc = tui_series_push(&s->curves.loss, r->round, (double)r->loss);
  if (rc == FL_OK) rc = tui_thin_push(&s->rate, r->round, tok);
  if (rc == FL_OK) rc = tui_thin_push(&s->memory, r->round, (double)r->rss);
  if (rc == FL_OK && d) rc = tui_series_push(&d->curves.loss, r->round, (double)r->loss);
  return rc;
}

static int on_round(tui_snapshot *s, const tui_store *st, const tui_rec_round *r, uint32_t at) {
  tui_doc *d;
  if (r->round == TUI_NONE) return FL_OK;
  tui_doc *before = tui_snapshot_doc(s, s->target);
  if (before && before->residency == TUI_TRAINING) before->residency = TUI_RESIDENT;
  int rc = FL_OK;
  if (r->resident.n) rc = set_resident(s, st, r->resident);
  const uint32_t *pair = tui_store_numbers(st, r->steps);
  for (uint32_t i = 0; rc == FL_OK && i + 1 < r->steps.n; i += 2) {
    rc = tui_snapshot_need_doc(s, pair[i], &d);
    if (d) d->steps = pair[i + 1];
  }
  if (rc == FL_OK) rc = tui_snapshot_need_doc(s, r->doc, &d);
  if (rc != FL_OK) return rc;
  s->round = r->round;
  s->round_at = at;
  s->target = r->doc;
  s->loss = (double)r->loss;
  s->loss_mean = mix(s->loss_mean, s->loss, 0.1);
  s->lr = (double)r->lr;
  s->grad_norm = (double)r->grad_norm;
  add_cost(s, r);
  if (d) {
    d->residency = TUI_TRAINING;
    d->loss = (double)r->loss;
    d->last_round = r->round;
    d->last_t = s->t;
    d->rounds++;
  }
  return push_curves(s, r, d);
}

static int on_rotate(tui_snapshot *s, const tui_store *st, const tui_rec_rotate *r, uint32_t at) {
  tui_doc *d;
  int rc = FL_OK;
  s->n_rotations++;
  s->last_rotate = at;
  s->resident = (tui_ref){ 0, 0 };
  for (size_t i = 0; i < s->n_docs; i++)
    if (s->doc[i].residency == TUI_EVICTED) s->doc[i].residency = TUI_ON_DISK;
  const uint32_t *id = tui_store_numbers(st, r->out);
  for (uint32_t i = 0; rc == FL_OK && i < r->out.n; i++) {
    rc = tui_snapshot_need_doc(s, id[i], &d);
    if (d) d->residency = TUI_EVICTED;
  }
  id = tui_store_numbers(st, r->in);
  for (uint32_t i = 0; rc == FL_OK && i < r->in.n; i++) {
    rc = tui_snapshot_need_doc(s, id[i], &d);
    if (d) d->residency = TUI_RESIDENT;
  }
  return rc;
}

/* A sum over the documents' latest values, kept up to date value by value. */
static void replace_in(tui_mean *m, double *old, double now) {
  if (isnan(now)) return;
  if (isnan(*old)) m->n++;
  else m->sum -= *old;
  m->sum += now;
  *old = now;
}

/* A document's value, and the fleet's: the mean of what the documents last had. */
static int push_held(tui_series *of_doc, tui_series *of_fleet, tui_mean *m, double *old,
                     uint32_t round, double now) {
  replace_in(m, old, now);
  int rc = tui_series_push(of_doc, round, now);
  if (rc == FL_OK && m->n) rc = tui_series_push(of_fleet, round, m->sum / (double)m->n);
  return rc;
}

static int on_heldout(tui_snapshot *s, const tui_rec_heldout *r) {
  tui_doc *d;
  int rc = tui_snapshot_need_doc(s, r->doc, &d);
  if (!d || r->round == TUI_NONE) return rc;
  d->held_round = r->round;
  rc = push_held(&d->curves.alone, &s->curves.alone, &s->mean_alone, &d->alone, r->round,
                 (double)r->alone);
  if (rc == FL_OK)
    rc = push_held(&d->curves.composed, &s->curves.composed, &s->mean_composed, &d->composed,
                   r->round, (double)r->composed);
  if (rc == FL_OK)
    rc = push_held(&d->curves.teacher, &s->curves.teacher, &s->mean_teacher, &d->teacher, r->round,
                   (double)r->teacher);
  return rc;
}

static int on_coverage(tui_snapshot *s, const tui_store *st, const tui_rec_coverage *r) {
  tui_doc *d;
  int rc = tui_snapshot_need_doc(s, r->doc, &d);
  if (!d) return rc;
  if (d->tokens == TUI_NONE) d->tokens = r->tokens;
  const uint32_t *v = tui_store_numbers(st, r->spans);
  for (uint32_t i = 0; rc == FL_OK && i + 1 < r->spans.n; i += 2)
    rc = tui_doc_add_span(d, v[i], v[i + 1]);
  return rc;
}

static void on_save(tui_snapshot *s, const tui_rec_save *r) {
  s->saved_round = r->round;
  s->generation = r->generation;
  s->save_reason = r->reason;
  s->saved_t = s->t;
  s->saved_bytes = (double)r->bytes;
  s->save_s = (double)r->seconds;
  if (!isnan(r->bytes)) s->bytes_written += (double)r->bytes;
}

static double count(uint32_t v) { return v == TUI_NONE ? 0 : v; }

static void on_request(tui_snapshot *s, const tui_rec_request *r) {
  s->n_requests++;
  if (r->status == 429 || r->status == 503) s->n_refused++;
  else if (r->status != TUI_NONE && r->status >= 400) s->n_failed++;
  s->prompt_tokens += count(r->prompt_tokens);
  s->cached_tokens += count(r->cached_tokens);
  s->completion_tokens += count(r->completion_tokens);
  s->request_s = mix(s->request_s, (double)r->seconds, 0.1);
  s->ttft_s = mix(s->ttft_s, (double)r->ttft_s, 0.1);
  s->queue_s = mix(s->queue_s, (double)r->queue_s, 0.1);
}

/* A log may say any number; what no count can be is unknown. */
static uint32_t whole(float v) { return v < 4294967296.0f ? (uint32_t)v : TUI_NONE; }

static int on_control(tui_snapshot *s, const tui_rec_control *r) {
  s->n_controls++;
  switch (r->cmd) {
  case TUI_CMD_PAUSE: s->paused = true; break;
  case TUI_CMD_RESUME: s->paused = false; break;
  case TUI_CMD_SET:
    if (!(r->value >= 0)) break;
    if (r->key == TUI_KEY_LR) s->lr = (double)r->value;
    else if (r->key == TUI_KEY_BUDGET) s->budget = whole(r->value);
    else if (r->key == TUI_KEY_ROUNDS) s->rounds = whole(r->value);
    break;
  case TUI_CMD_MARK: {
    tui_doc *d = tui_snapshot_doc(s, r->doc);
    if (d) d->marked = r->value > 0;
    break;
  }
  default: break;
  }
  return FL_OK;
}

static void on_end(tui_snapshot *s, const tui_rec_end *r) {
  if (s->state == TUI_RUN_NONE) return;
  s->paused = false;
  s->state = tui_snapshot_end_state(r);
  tui_doc *d = tui_snapshot_doc(s, s->target);
  if (d && d->residency == TUI_TRAINING) d->residency = TUI_RESIDENT;
}

static int apply(tui_snapshot *s, const tui_store *st, size_t event) {
  const tui_tick tick = st->tick[event];
  const void *r = tui_store_tick_rec(st, event);
  s->t = tui_store_t(st, event);
  if (isnan(s->t0)) s->t0 = s->t;
  switch ((tui_kind)tick.kind) {
  case TUI_EV_RUN: return on_run(s, st, r, tick.at);
  case TUI_EV_DOC: return on_doc(s, r);
  case TUI_EV_STUDY: return on_study(s, r, tick.at);
  case TUI_EV_ROUND: return on_round(s, st, r, tick.at);
  case TUI_EV_ROTATE: return on_rotate(s, st, r, tick.at);
  case TUI_EV_HELDOUT: return on_heldout(s, r);
  case TUI_EV_COVERAGE: return on_coverage(s, st, r);
  case TUI_EV_SAVE: on_save(s, r); break;
  case TUI_EV_INDEX:
    s->chunks = ((const tui_rec_index *)r)->chunks;
    s->dim = ((const tui_rec_index *)r)->dim;
    break;
  case TUI_EV_RETRIEVE: s->n_retrieves++; break;
  case TUI_EV_ANSWER: s->n_answers++; break;
  case TUI_EV_REQUEST: on_request(s, r); break;
  case TUI_EV_CONTROL: return on_control(s, r);
  case TUI_EV_ERROR:
    s->n_errors++;
    s->last_error = tick.at;
    break;
  case TUI_EV_END: on_end(s, r); break;
  case TUI_EV_KINDS: break;
  }
  return FL_OK;
}

int tui_snapshot_fold(tui_snapshot *s, const tui_store *store, size_t upto) {
  if (upto > store->n_ticks) upto = store->n_ticks;
  if (upto < s->applied) tui_snapshot_release(s);
  int rc = FL_OK;
  while (rc == FL_OK && s->applied < upto) {
    rc = apply(s, store, s->applied);
    if (rc == FL_OK) s->applied++;
  }
  s->run = s->run_at == TUI_NONE ? NULL : tui_store_rec(store, TUI_EV_RUN, s->run_at);
  return rc;
}

double tui_snapshot_seconds_left(const tui_snapshot *s) {
  if (s->state != TUI_RUN_ACTIVE || s->rounds == TUI_NONE || s->round == TUI_NONE) return NAN;
  return s->round >= s->rounds ? 0 : (s->rounds - s->round) * s->round_s;
}
