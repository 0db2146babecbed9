/* events.c - what a training writes into the event log (flotilla-events(5)). */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "fleet/train_options.h"
#include "study/note.h"
#include "trainer/state.h"

/* The ids of documents given by their positions. */
static void put_ids(fl_event *e, const char *key, const fl_fleet *f, const size_t *doc, size_t n) {
  fl_jsonw_open(&e->text, key, '[');
  for (size_t i = 0; i < n; i++) fl_jsonw_u64(&e->text, NULL, f->m.doc[doc[i]].id);
  fl_jsonw_close(&e->text, ']');
}

static uint32_t resident_id(const fl_trainer *t, size_t slot) {
  return t->f->m.doc[t->res.slot[slot]->doc].id;
}

static void put_residents(fl_event *e, const fl_trainer *t) {
  fl_jsonw_open(&e->text, "resident", '[');
  for (size_t i = 0; i < t->res.n; i++) fl_jsonw_u64(&e->text, NULL, resident_id(t, i));
  fl_jsonw_close(&e->text, ']');
}

void fl_log_docs(const fl_trainer *t) {
  for (size_t i = 0; i < t->f->m.n; i++)
    fl_log_doc(t->f, i, t->f->m.doc[i].steps > 0 ? "kept" : "new");
}

void fl_log_same(const fl_trainer *t, const fl_conv_plan *plan, const fl_conv *c) {
  if (!fl_dist_leads(t->f->dist)) return;
  fl_study_log(t->f->log, &(fl_study_note){ .plan = plan,
                                            .kind = fl_conv_kind(c),
                                            .first = c->first,
                                            .end = c->end,
                                            .at_first = c->at_first,
                                            .at_end = c->at_end,
                                            .teacher = NAN,
                                            .request = c->request,
                                            .request_len = strlen(c->request),
                                            .why = FL_REJECT_SAME,
                                            .of = "request" });
}

void fl_log_replayed(const fl_trainer *t, size_t doc, uint32_t conv, const fl_conv *c) {
  fl_event e;
  fl_event_begin(&e, "study");
  fl_event_int(&e, "doc", t->f->m.doc[doc].id);
  fl_event_int(&e, "round", (int64_t)t->f->m.rounds + 1);
  fl_event_int(&e, "conv", conv);
  fl_event_str(&e, "kind", fl_conv_kind(c));
  fl_event_int(&e, "first", (int64_t)c->first);
  fl_event_int(&e, "end", (int64_t)c->end);
  fl_event_str(&e, "request", c->request != NULL ? c->request : "");
  fl_event_str(&e, "answer", c->answer != NULL ? c->answer : "");
  fl_event_int(&e, "tokens", (int64_t)c->targets.n_rows);
  fl_event_bool(&e, "replayed", true);
  fl_event_emit(t->f->log, &e);
}

/* The parts each conversation saw, and the steps of everybody who was visible. */
static void put_visibility(fl_event *e, const fl_trainer *t, const fl_round_report *r) {
  fl_buf *b = &e->text;
  fl_jsonw_open(b, "parts", '[');
  for (size_t i = 0; i < r->n_convs; i++) {
    fl_jsonw_open(b, NULL, '[');
    for (size_t k = 0; k < r->conv[i].n_parts; k++)
      fl_jsonw_u64(b, NULL, resident_id(t, r->conv[i].parts[k]));
    fl_jsonw_close(b, ']');
  }
  fl_jsonw_close(b, ']');
  fl_jsonw_open(b, "steps", '{');
  for (size_t i = 0; i < t->res.n; i++) {
    char id[16];
    snprintf(id, sizeof id, "%lu", (unsigned long)resident_id(t, i));
    fl_jsonw_u64(b, id, t->f->m.doc[t->res.slot[i]->doc].steps);
  }
  fl_jsonw_close(b, '}');
}

void fl_round_gain(fl_buf *out, const fl_step_conv *conv, const double *loss, size_t n) {
  fl_jsonw_open(out, NULL, '{');
  for (size_t i = 0; i < n; i++) {
    const char *kind = fl_conv_kind(conv[i].conv);
    double gain = 0;
    size_t tokens = 0, first = 0;
    while (strcmp(fl_conv_kind(conv[first].conv), kind) != 0) first++;
    if (first < i) continue;
    for (size_t j = i; j < n; j++) {
      const fl_conv *c = conv[j].conv;
      if (strcmp(fl_conv_kind(c), kind) != 0) continue;
      gain += loss[j] - fl_targets_entropy(&c->targets);
      tokens += c->targets.n_rows;
    }
    fl_jsonw_num(out, kind, gain / (double)tokens);
  }
  fl_jsonw_close(out, '}');
}

void fl_log_round(fl_trainer *t, const fl_round_report *r) {
  fl_fleet *f = t->f;
  fl_event e;
  fl_event_begin(&e, "round");
  fl_event_int(&e, "round", (int64_t)f->m.rounds);
  fl_event_int(&e, "doc", f->m.doc[r->doc].id);
  fl_event_num(&e, "loss", r->n_convs > 0 ? r->step.loss : NAN);
  fl_event_num(&e, "teacher", r->n_convs > 0 ? r->step.teacher : NAN);
  fl_event_num(&e, "lr", r->lr);
  fl_event_num(&e, "grad_norm", r->n_convs > 0 ? r->step.grad_norm : NAN);
  fl_event_int(&e, "tokens", (int64_t)r->step.n_sup);
  fl_event_int(&e, "rows", (int64_t)r->step.n_rows);
  fl_event_int(&e, "fresh", (int64_t)r->n_fresh);
  if (r->gain.data && !r->gain.oom) fl_jsonw_raw(&e.text, "gain", r->gain.data, r->gain.len);
  put_visibility(&e, t, r);
  fl_event_num(&e, "seconds", r->seconds);
  fl_event_num(&e, "gen_s", r->study.gen_s);
  fl_event_num(&e, "student_s", r->step.student_s);
  fl_event_num(&e, "opt_s", r->step.opt_s);
  fl_event_num(&e, "io_s", t->io_s);
  fl_event_num(&e, "gflop", r->work.flop * 1e-9);
  fl_event_num(&e, "gbyte", r->work.bytes * 1e-9);
  fl_event_int(&e, "gen_tokens", (int64_t)r->study.gen_tokens);
  fl_event_int(&e, "rejected", (int64_t)r->study.rejected);
  fl_event_int(&e, "skipped", (int64_t)r->study.skipped);
  fl_event_int(&e, "rss", (int64_t)fl_rss_bytes());
  fl_event_int(&e, "peak_rss", (int64_t)fl_peak_rss_bytes());
  fl_event_int(&e, "resident_bytes",
               (int64_t)fl_residency_bytes(&t->res, fl_model_hparams(f->model)));
  put_residents(&e, t);
  fl_event_emit(f->log, &e);
  t->io_s = 0;
  if (t->hooks == NULL || t->hooks->progress == NULL) return;
  double elapsed = fl_now_s() - t->began_s;
  const uint64_t done = f->m.rounds - t->first_round;
  /* The end may have been set to before this round while it ran. */
  const uint64_t left = t->last_round > f->m.rounds ? t->last_round - f->m.rounds : 0;
  const fl_progress p = { .round = f->m.rounds,
                          .rounds_total = t->last_round,
                          .doc = f->m.doc[r->doc].name,
                          .loss = r->step.loss,
                          .teacher = r->step.teacher,
                          .lr = r->lr,
                          .tokens = r->step.n_sup,
                          .round_s = r->seconds,
                          .elapsed_s = elapsed,
                          .left_s = elapsed / (double)done * (double)left };
  t->hooks->progress(t->hooks->ctx, &p);
}

void fl_log_rotation(const fl_trainer *t, const size_t *out, size_t n_out, const size_t *in,
                     size_t n_in) {
  fl_event e;
  fl_event_begin(&e, "rotate");
  fl_event_int(&e, "round", (int64_t)t->f->m.rounds);
  put_ids(&e, "out", t->f, out, n_out);
  put_ids(&e, "in", t->f, in, n_in);
  fl_event_emit(t->f->log, &e);
}

void fl_log_coverage(const fl_trainer *t) {
  for (size_t i = 0; i < t->res.n; i++) {
    const fl_doc_entry *d = &t->f->m.doc[t->res.slot[i]->doc];
    fl_event e;
    fl_event_begin(&e, "coverage");
    fl_event_int(&e, "doc", d->id);
    fl_event_int(&e, "tokens", (int64_t)fl_coverage_tokens(&d->coverage));
    fl_coverage_print(&e.text, "spans", &d->coverage);
    fl_event_emit(t->f->log, &e);
  }
}

void fl_log_heldout(const fl_trainer *t, size_t doc, double alone, double composed, double teacher,
                    size_t n) {
  fl_event e;
  fl_event_begin(&e, "heldout");
  fl_event_int(&e, "round", (int64_t)t->f->m.rounds);
  fl_event_int(&e, "doc", t->f->m.doc[doc].id);
  fl_event_num(&e, "alone", alone);
  fl_event_num(&e, "composed", composed);
  fl_event_num(&e, "teacher", teacher);
  fl_event_int(&e, "convs", (int64_t)n);
  fl_event_emit(t->f->log, &e);
}

void fl_log_end(const fl_fleet *f, const char *status, double seconds) {
  fl_event e;
  fl_event_begin(&e, "end");
  fl_event_str(&e, "status", status);
  fl_event_int(&e, "round", (int64_t)f->m.rounds);
  fl_event_num(&e, "seconds", seconds);
  fl_event_emit(f->log, &e);
}
