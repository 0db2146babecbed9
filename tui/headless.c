/* headless.c - the facts as text and JSON. */
#include "tui/headless.h"
#include "tui/text.h"

#include <math.h>
#include <poll.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "tui/format.h"

/* --- lines ----------------------------------------------------------------------------------- */

static void put_doc(fl_buf *out, const tui_feed *f, uint32_t id) {
  const tui_doc *d = tui_snapshot_doc(&f->snap, id);
  char buf[32];
  size_t n;
  if (!d) {
    fl_buf_printf(out, "document %u", id);
    return;
  }
  const char *name = tui_feed_doc_name(f, d, buf, sizeof buf, &n);
  tui_text_clean(out, name, tui_text_fit(name, n, 80), false);
}

/* A text member of the event's line, at most `cols` columns. */
static void put_member(fl_buf *out, tui_feed *f, size_t event, const char *key, size_t cols) {
  const fl_json *j = tui_feed_detail(f, event);
  const char *s = NULL;
  if (!j || !fl_json_get_str(j, key, &s)) return;
  size_t len = strlen(s), fit = tui_text_fit(s, len, cols);
  tui_text_clean(out, s, fit, false);
  if (fit < len) fl_buf_puts(out, "...");
}

static void round_line(fl_buf *out, tui_feed *f, const tui_rec_round *r) {
  const tui_snapshot *s = &f->snap;
  char a[TUI_FMT], b[TUI_FMT];
  double left = tui_snapshot_seconds_left(s);
  fl_buf_printf(out, "round %s", tui_fmt_u32(a, r->round));
  if (s->rounds != TUI_NONE) fl_buf_printf(out, "/%u", s->rounds);
  fl_buf_puts(out, " ");
  put_doc(out, f, r->doc);
  fl_buf_printf(out, " loss %s lr %s", tui_fmt_num(a, (double)r->loss, 4),
                tui_fmt_sci(b, (double)r->lr));
  fl_buf_printf(out, " %s tokens in %s", tui_fmt_u32(a, r->tokens),
                tui_fmt_secs(b, (double)r->seconds));
  if (!isnan(left)) fl_buf_printf(out, ", %s left", tui_fmt_secs(a, left));
}

static void numbers(fl_buf *out, const tui_feed *f, tui_ref ref) {
  const uint32_t *v = tui_store_numbers(&f->store, ref);
  for (uint32_t i = 0; i < ref.n; i++) {
    if (i) fl_buf_puts(out, ", ");
    put_doc(out, f, v[i]);
  }
}

static void rotate_line(fl_buf *out, const tui_feed *f, const tui_rec_rotate *r) {
  fl_buf_puts(out, "rotation: out ");
  numbers(out, f, r->out);
  fl_buf_puts(out, "; in ");
  numbers(out, f, r->in);
}

static void run_line(fl_buf *out, const tui_feed *f, const tui_rec_run *r) {
  const struct {
    const char *before;
    tui_ref text;
  } parts[] = {
    { "run: ", r->cmd }, { " with ", r->model_name }, { " on ", r->host }, { ", ", r->isa }
  };
  char a[TUI_FMT], b[TUI_FMT];
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    size_t n;
    const char *s = tui_store_str(&f->store, parts[i].text, &n);
    if (n == 0) continue;
    fl_buf_puts(out, parts[i].before);
    tui_text_clean(out, s, tui_text_fit(s, n, 80), false);
  }
  fl_buf_printf(out, ", %s threads, %s documents", tui_fmt_u32(a, r->threads),
                tui_fmt_u32(b, r->docs));
  fl_buf_printf(out, ", budget %s, rounds %s", tui_fmt_u32(a, r->budget),
                tui_fmt_u32(b, r->rounds));
}

static void study_line(fl_buf *out, tui_feed *f, const tui_rec_study *r) {
  fl_buf_puts(out, r->rejected ? "rejected " : "study ");
  put_doc(out, f, r->doc);
  fl_buf_printf(out, " %s: ",
                r->rejected ? tui_rejections[r->rejected < TUI_REJECTIONS ? r->rejected : 5]
                            : tui_study_kinds[r->kind < TUI_KINDS_OF_STUDY ? r->kind : 0]);
  put_member(out, f, r->rec.event, "request", 100);
}

static void save_line(fl_buf *out, const tui_rec_save *r) {
  char a[TUI_FMT], b[TUI_FMT];
  fl_buf_printf(out, "saved: round %s, generation %s", tui_fmt_u32(a, r->round),
                tui_fmt_u32(b, r->generation));
  fl_buf_printf(out, ", %s in %s", tui_fmt_bytes(a, (double)r->bytes),
                tui_fmt_secs(b, (double)r->seconds));
}

static void heldout_line(fl_buf *out, const tui_feed *f, const tui_rec_heldout *r) {
  char a[TUI_FMT], b[TUI_FMT], c[TUI_FMT];
  fl_buf_puts(out, "held-out ");
  put_doc(out, f, r->doc);
  fl_buf_printf(out, ": alone %s, together %s", tui_fmt_num(a, (double)r->alone, 4),
                tui_fmt_num(b, (double)r->composed, 4));
  if (!isnan(r->teacher)) fl_buf_printf(out, ", teacher %s", tui_fmt_num(c, (double)r->teacher, 4));
}

static void request_line(fl_buf *out, const tui_rec_request *r) {
  char a[TUI_FMT], b[TUI_FMT], c[TUI_FMT];
  fl_buf_printf(out, "request: status %s, %s + %s tokens", tui_fmt_u32(a, r->status),
                tui_fmt_u32(b, r->prompt_tokens), tui_fmt_u32(c, r->completion_tokens));
  fl_buf_printf(out, ", first token %s, %s", tui_fmt_secs(a, (double)r->ttft_s),
                tui_fmt_secs(b, (double)r->seconds));
}

/* The kinds that are mostly words. */
static void text_line(fl_buf *out, tui_feed *f, size_t event, tui_kind kind, const void *rec) {
  char a[TUI_FMT];
  const tui_rec_control *ctl = rec;
  switch (kind) {
  case TUI_EV_RETRIEVE:
    fl_buf_puts(out, "retrieve: ");
    put_member(out, f, event, "query", 100);
    break;
  case TUI_EV_ANSWER:
    fl_buf_puts(out, "answer: ");
    put_member(out, f, event, "text", 200);
    break;
  case TUI_EV_ERROR:
    fl_buf_puts(out, "error: ");
    put_member(out, f, event, "text", 400);
    put_member(out, f, event, "message", 400); /* a server's word for it */
    break;
  case TUI_EV_CONTROL:
    fl_buf_printf(out, "control: %s %s", tui_control_cmds[ctl->cmd], tui_control_keys[ctl->key]);
    if (!isnan(ctl->value)) fl_buf_printf(out, " %s", tui_fmt_sci(a, (double)ctl->value));
    break;
  default: break;
  }
}

void tui_headless_line(fl_buf *out, tui_feed *f, size_t event) {
  const void *r = tui_store_tick_rec(&f->store, event);
  tui_kind kind = (tui_kind)f->store.tick[event].kind;
  double t = tui_store_t(&f->store, event);
  char date[TUI_FMT], clock[TUI_FMT], a[TUI_FMT];
  if (kind == TUI_EV_COVERAGE || kind == TUI_EV_DOC) return;
  if (kind == TUI_EV_RUN && tui_snapshot_run_again(&f->store, f->store.tick[event].at)) return;
  tui_fmt_date(date, t);
  tui_fmt_clock(clock, t);
  fl_buf_printf(out, "%.10s %s ", date, clock);
  switch (kind) {
  case TUI_EV_RUN: run_line(out, f, r); break;
  case TUI_EV_STUDY: study_line(out, f, r); break;
  case TUI_EV_ROUND: round_line(out, f, r); break;
  case TUI_EV_ROTATE: rotate_line(out, f, r); break;
  case TUI_EV_HELDOUT: heldout_line(out, f, r); break;
  case TUI_EV_SAVE: save_line(out, r); break;
  case TUI_EV_INDEX:
    fl_buf_printf(out, "index: %s chunks", tui_fmt_u32(a, ((const tui_rec_index *)r)->chunks));
    break;
  case TUI_EV_REQUEST: request_line(out, r); break;
  case TUI_EV_END:
    fl_buf_printf(out, "end: %s, round %s", tui_end_states[((const tui_rec_end *)r)->status],
                  tui_fmt_u32(a, ((const tui_rec_end *)r)->round));
    break;
  default: text_line(out, f, event, kind, r); break;
  }
  fl_buf_putc(out, '\n');
}

/* --- the loop -------------------------------------------------------------------------------- */

static const char *const states[] = { "waiting", "reading", "foreign", "live",    "paused",
                                      "quiet",   "gone",    "done",    "stopped", "failed" };

const char *tui_headless_state(const tui_feed *f) { return states[tui_feed_status(f)]; }

static int flush(fl_buf *out, FILE *to, fl_err *err) {
  if (out->oom) return fl_fail(err, FL_ENOMEM, "watch: no memory for the output");
  if (out->len && fwrite(out->data, 1, out->len, to) != out->len)
    return fl_fail(err, FL_EFAIL, "watch: the output cannot be written; is the pipe closed?");
  if (fflush(to) != 0)
    return fl_fail(err, FL_EFAIL, "watch: the output cannot be written; is the disk full?");
  fl_buf_reset(out);
  return FL_OK;
}

static int once(const tui_options *opt, tui_feed *f, fl_buf *out, fl_err *err) {
  bool more = true;
  while (more && !f->error[0]) tui_feed_poll(f, 1, &more);
  if (f->error[0]) return fl_fail(err, FL_EFAIL, "%s", f->error);
  /* one ping, so that the state is that of now and not of the log */
  for (int i = 0; i < 20 && f->ping.state == TUI_LINK_WAITING; i++) {
    struct pollfd p = { .fd = f->ping.fd, .events = POLLIN };
    poll(&p, 1, 50);
    tui_feed_poll(f, 0, &more);
  }
  if (!opt->json) tui_headless_text(out, f);
  else if (tui_headless_json(out, f) != FL_OK) return fl_fail(err, FL_ENOMEM, "watch: no memory");
  return flush(out, opt->out, err);
}

/* Writes the events that are not yet folded, each in the state right after it. */
static int catch_up(const tui_options *opt, tui_feed *f, fl_buf *out, fl_err *err) {
  while (f->cursor < f->store.n_ticks) {
    size_t event = f->cursor;
    tui_feed_seek(f, event + 1);
    if (f->error[0]) return fl_fail(err, FL_ENOMEM, "%s", f->error);
    if (!opt->json) tui_headless_line(out, f, event);
    else if (f->store.tick[event].kind == TUI_EV_ROUND && tui_headless_json(out, f) != FL_OK)
      return fl_fail(err, FL_ENOMEM, "watch: no memory");
    if (out->len > 1 << 16) {
      int rc = flush(out, opt->out, err);
      if (rc != FL_OK) return rc;
    }
  }
  return flush(out, opt->out, err);
}

static bool ended(const tui_feed *f) {
  tui_feed_state st = tui_feed_status(f);
  return st == TUI_FEED_DONE || st == TUI_FEED_STOPPED || st == TUI_FEED_FAILED ||
         st == TUI_FEED_DEAD || st == TUI_FEED_FOREIGN;
}

static int follow(const tui_options *opt, tui_feed *feed, fl_buf *out, fl_err *err) {
  for (;;) {
    bool any_more = false, all_ended = true;
    for (size_t i = 0; i < opt->n_fleets; i++) {
      tui_feed *f = &feed[i];
      bool more;
      f->follow = false; /* the lines are written event by event */
      tui_feed_poll(f, 0.2, &more);
      if (f->error[0]) return fl_fail(err, FL_EFAIL, "%s", f->error);
      int rc = catch_up(opt, f, out, err);
      if (rc != FL_OK) return rc;
      any_more |= more;
      all_ended &= ended(f);
    }
    if (all_ended && !any_more) return FL_OK;
    if (!any_more) poll(NULL, 0, 250);
  }
}

static int say_how_it_ended(const tui_options *opt, const tui_feed *f, fl_err *err) {
  if (tui_feed_status(f) == TUI_FEED_FOREIGN)
    return fl_fail(err, FL_EINPUT,
                   "%s: not one line of it is an event of flotilla; give a fleet "
                   "folder",
                   f->reader.path);
  if (tui_feed_status(f) == TUI_FEED_DEAD && !opt->json)
    fprintf(opt->out,
            "the trainer of %s is gone without a goodbye; go on with `flotilla train "
            "--resume`\n",
            f->label);
  return FL_OK;
}

int tui_headless(const tui_options *opt, fl_err *err) {
  fl_buf out = { 0 };
  size_t n = 0;
  int rc = FL_OK;
  if (opt->n_fleets < 1 || opt->n_fleets > 8 || !opt->out)
    return fl_fail(err, FL_EUSAGE, "watch: give 1 to 8 fleet folders");
  tui_feed *feed = fl_calloc(opt->n_fleets, sizeof *feed);
  if (!feed) return fl_fail(err, FL_ENOMEM, "watch: no memory");
  for (; rc == FL_OK && n < opt->n_fleets; n++) {
    if (!opt->wait && !fl_fs_exists(opt->fleets[n])) {
      rc = fl_fail(err, FL_ENOENT, "%s: no such fleet folder; give one that `flotilla train` made",
                   opt->fleets[n]);
      break;
    }
    rc = tui_feed_open(&feed[n], opt->fleets[n]);
    if (rc != FL_OK) fl_fail(err, rc, "watch: no memory for %s", opt->fleets[n]);
  }
  if (rc == FL_OK) rc = tui_feed_tell_apart(feed, opt->fleets, n);
  for (size_t i = 0; rc == FL_OK && opt->once && i < n; i++) rc = once(opt, &feed[i], &out, err);
  if (rc == FL_OK && !opt->once) rc = follow(opt, feed, &out, err);
  for (size_t i = 0; rc == FL_OK && i < n; i++) rc = say_how_it_ended(opt, &feed[i], err);
  for (size_t i = 0; i < n; i++) tui_feed_close(&feed[i]);
  fl_free(feed);
  fl_buf_release(&out);
  return rc;
}
