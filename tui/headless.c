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

static void put_doc(fl_buf *out, const fl_feed *f, uint32_t id) {
  const fl_doc *d = fl_snapshot_doc(&f->snap, id);
  char buf[32];
  size_t n;
  if (!d) {
    fl_buf_printf(out, "document %u", id);
    return;
  }
  const char *name = fl_feed_doc_name(f, d, buf, sizeof buf, &n);
  fl_text_clean(out, name, fl_text_fit(name, n, 80), false);
}

/* A text member of the event's line, at most `cols` columns. */
static void put_member(fl_buf *out, fl_feed *f, size_t event, const char *key, size_t cols) {
  const fl_json *j = fl_feed_detail(f, event);
  const char *s = NULL;
  if (!j || !fl_json_get_str(j, key, &s)) return;
  size_t len = strlen(s), fit = fl_text_fit(s, len, cols);
  fl_text_clean(out, s, fit, false);
  if (fit < len) fl_buf_puts(out, "...");
}

static void round_line(fl_buf *out, fl_feed *f, const fl_rec_round *r) {
  const fl_snapshot *s = &f->snap;
  char a[FL_FMT], b[FL_FMT];
  double left = fl_snapshot_seconds_left(s);
  fl_buf_printf(out, "round %s", fl_fmt_u32(a, r->round));
  if (s->rounds != FL_NONE) fl_buf_printf(out, "/%u", s->rounds);
  fl_buf_puts(out, " ");
  put_doc(out, f, r->doc);
  fl_buf_printf(out, " loss %s lr %s", fl_fmt_num(a, (double)r->loss, 4),
                fl_fmt_sci(b, (double)r->lr));
  fl_buf_printf(out, " %s tokens in %s", fl_fmt_u32(a, r->tokens),
                fl_fmt_secs(b, (double)r->seconds));
  if (!isnan(left)) fl_buf_printf(out, ", %s left", fl_fmt_secs(a, left));
}

static void numbers(fl_buf *out, const fl_feed *f, fl_ref ref) {
  const uint32_t *v = fl_store_numbers(&f->store, ref);
  for (uint32_t i = 0; i < ref.n; i++) {
    if (i) fl_buf_puts(out, ", ");
    put_doc(out, f, v[i]);
  }
}

static void rotate_line(fl_buf *out, const fl_feed *f, const fl_rec_rotate *r) {
  fl_buf_puts(out, "rotation: out ");
  numbers(out, f, r->out);
  fl_buf_puts(out, "; in ");
  numbers(out, f, r->in);
}

static void run_line(fl_buf *out, const fl_feed *f, const fl_rec_run *r) {
  const struct {
    const char *before;
    fl_ref text;
  } parts[] = {
    { "run: ", r->cmd }, { " with ", r->model_name }, { " on ", r->host }, { ", ", r->isa }
  };
  char a[FL_FMT], b[FL_FMT];
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    size_t n;
    const char *s = fl_store_str(&f->store, parts[i].text, &n);
    if (n == 0) continue;
    fl_buf_puts(out, parts[i].before);
    fl_text_clean(out, s, fl_text_fit(s, n, 80), false);
  }
  fl_buf_printf(out, ", %s threads, %s documents", fl_fmt_u32(a, r->threads),
                fl_fmt_u32(b, r->docs));
  fl_buf_printf(out, ", budget %s, rounds %s", fl_fmt_u32(a, r->budget), fl_fmt_u32(b, r->rounds));
}

static void study_line(fl_buf *out, fl_feed *f, const fl_rec_study *r) {
  fl_buf_puts(out, r->rejected ? "rejected " : "study ");
  put_doc(out, f, r->doc);
  fl_buf_printf(out, " %s: ",
                r->rejected ? fl_rejections[r->rejected < 6 ? r->rejected : 5]
                            : fl_study_kinds[r->kind < 8 ? r->kind : 0]);
  put_member(out, f, r->rec.event, "request", 100);
}

static void save_line(fl_buf *out, const fl_rec_save *r) {
  char a[FL_FMT], b[FL_FMT];
  fl_buf_printf(out, "saved: round %s, generation %s", fl_fmt_u32(a, r->round),
                fl_fmt_u32(b, r->generation));
  fl_buf_printf(out, ", %s in %s", fl_fmt_bytes(a, (double)r->bytes),
                fl_fmt_secs(b, (double)r->seconds));
}

static void heldout_line(fl_buf *out, const fl_feed *f, const fl_rec_heldout *r) {
  char a[FL_FMT], b[FL_FMT], c[FL_FMT];
  fl_buf_puts(out, "held-out ");
  put_doc(out, f, r->doc);
  fl_buf_printf(out, ": alone %s, together %s", fl_fmt_num(a, (double)r->alone, 4),
                fl_fmt_num(b, (double)r->composed, 4));
  if (!isnan(r->teacher)) fl_buf_printf(out, ", teacher %s", fl_fmt_num(c, (double)r->teacher, 4));
}

static void request_line(fl_buf *out, const fl_rec_request *r) {
  char a[FL_FMT], b[FL_FMT], c[FL_FMT];
  fl_buf_printf(out, "request: status %s, %s + %s tokens", fl_fmt_u32(a, r->status),
                fl_fmt_u32(b, r->prompt_tokens), fl_fmt_u32(c, r->completion_tokens));
  fl_buf_printf(out, ", first token %s, %s", fl_fmt_secs(a, (double)r->ttft_s),
                fl_fmt_secs(b, (double)r->seconds));
}

/* The kinds that are mostly words. */
static void text_line(fl_buf *out, fl_feed *f, size_t event, fl_kind kind, const void *rec) {
  char a[FL_FMT];
  const fl_rec_control *ctl = rec;
  switch (kind) {
  case FL_EV_RETRIEVE:
    fl_buf_puts(out, "retrieve: ");
    put_member(out, f, event, "query", 100);
    break;
  case FL_EV_ANSWER:
    fl_buf_puts(out, "answer: ");
    put_member(out, f, event, "text", 200);
    break;
  case FL_EV_ERROR:
    fl_buf_puts(out, "error: ");
    put_member(out, f, event, "text", 400);
    put_member(out, f, event, "message", 400); /* a server's word for it */
    break;
  case FL_EV_CONTROL:
    fl_buf_printf(out, "control: %s %s", fl_control_cmds[ctl->cmd], fl_control_keys[ctl->key]);
    if (!isnan(ctl->value)) fl_buf_printf(out, " %s", fl_fmt_sci(a, (double)ctl->value));
    break;
  default: break;
  }
}

void fl_headless_line(fl_buf *out, fl_feed *f, size_t event) {
  const void *r = fl_store_tick_rec(&f->store, event);
  fl_kind kind = (fl_kind)f->store.tick[event].kind;
  double t = fl_store_t(&f->store, event);
  char date[FL_FMT], clock[FL_FMT], a[FL_FMT];
  if (kind == FL_EV_COVERAGE || kind == FL_EV_DOC) return;
  if (kind == FL_EV_RUN && fl_snapshot_run_again(&f->store, f->store.tick[event].at)) return;
  fl_fmt_date(date, t);
  fl_fmt_clock(clock, t);
  fl_buf_printf(out, "%.10s %s ", date, clock);
  switch (kind) {
  case FL_EV_RUN: run_line(out, f, r); break;
  case FL_EV_STUDY: study_line(out, f, r); break;
  case FL_EV_ROUND: round_line(out, f, r); break;
  case FL_EV_ROTATE: rotate_line(out, f, r); break;
  case FL_EV_HELDOUT: heldout_line(out, f, r); break;
  case FL_EV_SAVE: save_line(out, r); break;
  case FL_EV_INDEX:
    fl_buf_printf(out, "index: %s chunks", fl_fmt_u32(a, ((const fl_rec_index *)r)->chunks));
    break;
  case FL_EV_REQUEST: request_line(out, r); break;
  case FL_EV_END:
    fl_buf_printf(out, "end: %s, round %s", fl_end_states[((const fl_rec_end *)r)->status],
                  fl_fmt_u32(a, ((const fl_rec_end *)r)->round));
    break;
  default: text_line(out, f, event, kind, r); break;
  }
  fl_buf_putc(out, '\n');
}

/* --- the loop -------------------------------------------------------------------------------- */

static const char *const states[] = { "waiting", "reading", "foreign", "live",    "paused",
                                      "quiet",   "gone",    "done",    "stopped", "failed" };

const char *fl_headless_state(const fl_feed *f) { return states[fl_feed_status(f)]; }

static int flush(fl_buf *out, FILE *to, fl_err *err) {
  if (out->oom) return fl_fail(err, FL_ENOMEM, "watch: no memory for the output");
  if (out->len && fwrite(out->data, 1, out->len, to) != out->len)
    return fl_fail(err, FL_EFAIL, "watch: the output cannot be written; is the pipe closed?");
  if (fflush(to) != 0)
    return fl_fail(err, FL_EFAIL, "watch: the output cannot be written; is the disk full?");
  fl_buf_reset(out);
  return FL_OK;
}

static int once(const fl_tui_options *opt, fl_feed *f, fl_buf *out, fl_err *err) {
  bool more = true;
  while (more && !f->error[0]) fl_feed_poll(f, 1, &more);
  if (f->error[0]) return fl_fail(err, FL_EFAIL, "%s", f->error);
  /* one ping, so that the state is that of now and not of the log */
  for (int i = 0; i < 20 && f->ping.state == FL_LINK_WAITING; i++) {
    struct pollfd p = { .fd = f->ping.fd, .events = POLLIN };
    poll(&p, 1, 50);
    fl_feed_poll(f, 0, &more);
  }
  if (!opt->json) fl_headless_text(out, f);
  else if (fl_headless_json(out, f) != FL_OK) return fl_fail(err, FL_ENOMEM, "watch: no memory");
  return flush(out, opt->out, err);
}

/* Writes the events that are not yet folded, each in the state right after it. */
static int catch_up(const fl_tui_options *opt, fl_feed *f, fl_buf *out, fl_err *err) {
  while (f->cursor < f->store.n_ticks) {
    size_t event = f->cursor;
    fl_feed_seek(f, event + 1);
    if (f->error[0]) return fl_fail(err, FL_ENOMEM, "%s", f->error);
    if (!opt->json) fl_headless_line(out, f, event);
    else if (f->store.tick[event].kind == FL_EV_ROUND && fl_headless_json(out, f) != FL_OK)
      return fl_fail(err, FL_ENOMEM, "watch: no memory");
    if (out->len > 1 << 16) {
      int rc = flush(out, opt->out, err);
      if (rc != FL_OK) return rc;
    }
  }
  return flush(out, opt->out, err);
}

static bool ended(const fl_feed *f) {
  fl_feed_state st = fl_feed_status(f);
  return st == FL_FEED_DONE || st == FL_FEED_STOPPED || st == FL_FEED_FAILED ||
         st == FL_FEED_DEAD || st == FL_FEED_FOREIGN;
}

static int follow(const fl_tui_options *opt, fl_feed *feed, fl_buf *out, fl_err *err) {
  for (;;) {
    bool any_more = false, all_ended = true;
    for (size_t i = 0; i < opt->n_fleets; i++) {
      fl_feed *f = &feed[i];
      bool more;
      f->follow = false; /* the lines are written event by event */
      fl_feed_poll(f, 0.2, &more);
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

static int say_how_it_ended(const fl_tui_options *opt, const fl_feed *f, fl_err *err) {
  if (fl_feed_status(f) == FL_FEED_FOREIGN)
    return fl_fail(err, FL_EINPUT,
                   "%s: not one line of it is an event of flotilla; give a fleet "
                   "folder",
                   f->reader.path);
  if (fl_feed_status(f) == FL_FEED_DEAD && !opt->json)
    fprintf(opt->out,
            "the trainer of %s is gone without a goodbye; go on with `flotilla train "
            "--resume`\n",
            f->label);
  return FL_OK;
}

int fl_headless(const fl_tui_options *opt, fl_err *err) {
  fl_buf out = { 0 };
  size_t n = 0;
  int rc = FL_OK;
  if (opt->n_fleets < 1 || opt->n_fleets > 8 || !opt->out)
    return fl_fail(err, FL_EUSAGE, "watch: give 1 to 8 fleet folders");
  fl_feed *feed = fl_calloc(opt->n_fleets, sizeof *feed);
  if (!feed) return fl_fail(err, FL_ENOMEM, "watch: no memory");
  for (; rc == FL_OK && n < opt->n_fleets; n++) {
    if (!opt->wait && !fl_fs_exists(opt->fleets[n])) {
      rc = fl_fail(err, FL_ENOENT, "%s: no such fleet folder; give one that `flotilla train` made",
                   opt->fleets[n]);
      break;
    }
    rc = fl_feed_open(&feed[n], opt->fleets[n]);
    if (rc != FL_OK) fl_fail(err, rc, "watch: no memory for %s", opt->fleets[n]);
  }
  if (rc == FL_OK) rc = fl_feed_tell_apart(feed, opt->fleets, n);
  for (size_t i = 0; rc == FL_OK && opt->once && i < n; i++) rc = once(opt, &feed[i], &out, err);
  if (rc == FL_OK && !opt->once) rc = follow(opt, feed, &out, err);
  for (size_t i = 0; rc == FL_OK && i < n; i++) rc = say_how_it_ended(opt, &feed[i], err);
  for (size_t i = 0; i < n; i++) fl_feed_close(&feed[i]);
  fl_free(feed);
  fl_buf_release(&out);
  return rc;
}
