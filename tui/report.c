/* report.c - the state of a fleet as one JSON object, and as a few lines. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/format.h"
#include "tui/headless.h"
#include "tui/text.h"

static const char *const residencies[] = { "disk", "memory", "training", "evicted" };

/* Many come from single precision; nine digits would show its noise. */
static bool num(fl_json *o, const char *key, double v) {
  char digits[32];
  snprintf(digits, sizeof digits, "%.7g", v);
  return fl_json_set_num(o, key, isfinite(v) && fabs(v) < 1e7 ? strtod(digits, NULL) : v);
}
static bool u32(fl_json *o, const char *key, uint32_t v) { return num(o, key, tui_known(v)); }

/* A pooled or named text with everything that is not printable taken out. */
static bool text(fl_json *o, const char *key, const char *s, size_t n) {
  fl_buf b = { 0 };
  tui_text_clean(&b, s, n, false);
  bool ok = !b.oom && fl_json_set_str(o, key, b.data ? b.data : "");
  fl_buf_release(&b);
  return ok;
}

static fl_json *document(const tui_feed *f, const tui_doc *d) {
  fl_json *o = fl_json_object();
  char buf[32];
  size_t n;
  const char *name = tui_feed_doc_name(f, d, buf, sizeof buf, &n);
  bool ok = o && u32(o, "doc", d->id) && text(o, "name", name, n) && u32(o, "tokens", d->tokens) &&
            u32(o, "rows", d->rows) && u32(o, "steps", d->steps) &&
            fl_json_set_str(o, "residency", residencies[d->residency]) &&
            fl_json_set_str(o, "state", tui_doc_states[d->state < 5 ? d->state : 0]) &&
            num(o, "loss", d->loss) && num(o, "held_out", d->alone) &&
            num(o, "held_out_together", d->composed) && num(o, "held_out_teacher", d->teacher) &&
            num(o, "coverage", tui_doc_coverage(d)) && u32(o, "last_round", d->last_round) &&
            u32(o, "conversations", d->convs) && u32(o, "rejected", d->rejected) &&
            fl_json_set_bool(o, "marked", d->marked);
  if (ok) return o;
  fl_json_free(o);
  return NULL;
}

static bool documents(fl_json *root, const tui_feed *f) {
  fl_json *all = fl_json_array();
  bool ok = all && fl_json_set(root, "documents", all);
  for (size_t i = 0; ok && i < f->snap.n_docs; i++) {
    fl_json *d = document(f, &f->snap.doc[i]);
    ok = d && fl_json_push(all, d);
  }
  return ok;
}

static double per_second(double work, double seconds) {
  return seconds > 0 ? work / seconds : (double)NAN;
}

static bool cost(fl_json *root, const tui_snapshot *s) {
  const tui_cost *c = &s->cost;
  fl_json *o = fl_json_object();
  if (!o || !fl_json_set(root, "cost", o)) return false;
  return num(o, "seconds", c->seconds) && num(o, "generate_s", c->gen_s) &&
         num(o, "student_s", c->student_s) && num(o, "optimiser_s", c->opt_s) &&
         num(o, "io_s", c->io_s) && num(o, "round_s", s->round_s) &&
         num(o, "tokens_per_s", s->tok_s) && num(o, "generated_tokens_per_s", s->gen_tok_s) &&
         num(o, "rss_bytes", s->rss) && num(o, "peak_rss_bytes", s->peak_rss) &&
         num(o, "resident_bytes", s->resident_bytes) && num(o, "written_bytes", s->bytes_written) &&
         num(o, "gflops", per_second(s->last.gflop, s->last.seconds)) &&
         num(o, "peak_gflops", s->run ? (double)s->run->peak_gflops : (double)NAN) &&
         num(o, "read_gbs", per_second(s->last.gbyte, s->last.seconds)) &&
         num(o, "peak_gbs", s->run ? (double)s->run->peak_gbs : (double)NAN);
}

static bool counts(fl_json *root, const tui_feed *f) {
  const tui_snapshot *s = &f->snap;
  return num(root, "conversations", (double)s->n_study) &&
         num(root, "rejected", (double)s->n_rejected) &&
         num(root, "rotations", (double)s->n_rotations) &&
         num(root, "queries", (double)s->n_retrieves) &&
         num(root, "answers", (double)s->n_answers) &&
         num(root, "requests", (double)s->n_requests) && num(root, "errors", (double)s->n_errors) &&
         num(root, "events", (double)f->store.n_ticks) &&
         num(root, "damaged_lines", (double)(f->store.n_damaged + f->reader.n_too_long)) &&
         num(root, "unknown_events", (double)f->store.n_unknown);
}

int tui_headless_json(fl_buf *out, tui_feed *f) {
  const tui_snapshot *s = &f->snap;
  size_t worst = tui_snapshot_worst(s);
  fl_json *o = fl_json_object();
  bool ok = o && text(o, "fleet", f->label, strlen(f->label)) &&
            fl_json_set_str(o, "state", tui_headless_state(f)) && num(o, "t", s->t) &&
            u32(o, "round", s->round) && u32(o, "rounds", s->rounds) &&
            num(o, "seconds_left", tui_feed_seconds_left(f)) && num(o, "loss", s->loss) &&
            num(o, "loss_mean", s->loss_mean) && num(o, "lr", s->lr) &&
            num(o, "grad_norm", s->grad_norm) && u32(o, "budget", s->budget) &&
            num(o, "resident", (double)tui_snapshot_count(s, TUI_RESIDENT)) &&
            num(o, "worst", worst == SIZE_MAX ? (double)NAN : s->doc[worst].id) &&
            u32(o, "saved_round", s->saved_round) && u32(o, "generation", s->generation) &&
            counts(o, f) && cost(o, s) && documents(o, f);
  if (ok) {
    fl_json_print(out, o, false);
    fl_buf_putc(out, '\n');
  }
  fl_json_free(o);
  return ok && !out->oom ? FL_OK : FL_ENOMEM;
}

static void names_in_memory(fl_buf *out, const tui_feed *f) {
  const tui_snapshot *s = &f->snap;
  bool first = true;
  for (size_t i = 0; i < s->n_docs; i++) {
    const tui_doc *d = &s->doc[i];
    if (d->residency != TUI_RESIDENT && d->residency != TUI_TRAINING) continue;
    char buf[32];
    size_t n;
    const char *name = tui_feed_doc_name(f, d, buf, sizeof buf, &n);
    fl_buf_puts(out, first ? "" : ", ");
    tui_text_clean(out, name, tui_text_fit(name, n, 60), false);
    first = false;
  }
  if (first) fl_buf_puts(out, "none");
}

static void cost_line(fl_buf *out, const tui_snapshot *s) {
  const struct {
    const char *name;
    double seconds;
  } parts[] = { { "generate", s->cost.gen_s },
                { "student", s->cost.student_s },
                { "optimiser", s->cost.opt_s },
                { "files", s->cost.io_s } };
  char a[TUI_FMT], b[TUI_FMT];
  if (s->cost.rounds == 0) return;
  fl_buf_puts(out, "time: ");
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    fl_buf_printf(out, "%s%s %s", i ? ", " : "", parts[i].name, tui_fmt_secs(a, parts[i].seconds));
  fl_buf_printf(out, "; a round %s, %s trained tokens/s\n", tui_fmt_secs(a, s->round_s),
                tui_fmt_num(b, s->tok_s, 1));
  fl_buf_printf(out, "memory: %s, highest %s\n", tui_fmt_bytes(a, s->rss),
                tui_fmt_bytes(b, s->peak_rss));
}

void tui_headless_text(fl_buf *out, tui_feed *f) {
  const tui_snapshot *s = &f->snap;
  char a[TUI_FMT], b[TUI_FMT], c[TUI_FMT];
  size_t worst = tui_snapshot_worst(s);
  tui_text_clean(out, f->label, strlen(f->label), false);
  fl_buf_printf(out, ": %s, round %s", tui_headless_state(f), tui_fmt_u32(a, s->round));
  if (s->rounds != TUI_NONE) fl_buf_printf(out, " of %u", s->rounds);
  double left = tui_feed_seconds_left(f);
  if (!isnan(left)) fl_buf_printf(out, ", %s left", tui_fmt_secs(a, left));
  fl_buf_printf(out, "\nloss %s, mean %s, learning rate %s\n", tui_fmt_num(a, s->loss, 4),
                tui_fmt_num(b, s->loss_mean, 4), tui_fmt_sci(c, s->lr));
  fl_buf_printf(out, "documents %zu, in memory: ", s->n_docs);
  names_in_memory(out, f);
  if (worst != SIZE_MAX) {
    char buf[32];
    size_t n;
    const char *name = tui_feed_doc_name(f, &s->doc[worst], buf, sizeof buf, &n);
    fl_buf_puts(out, "\nworst: ");
    tui_text_clean(out, name, tui_text_fit(name, n, 60), false);
    double at = tui_doc_badness(s, &s->doc[worst], tui_snapshot_worst_by(s));
    fl_buf_printf(out, " at %s", tui_fmt_num(a, at, 4));
  }
  fl_buf_printf(out, "\nsaved: round %s, generation %s\n", tui_fmt_u32(a, s->saved_round),
                tui_fmt_u32(b, s->generation));
  cost_line(out, s);
}
