/* feed.c - a fleet being watched. */
#include "tui/feed.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/events.h"
#include "base/fs.h"
#include "base/mem.h"

static const double ping_every_s = 2;
static const double quiet_after_s = 10; /* without an event and without a ping's answer */
enum { FOLD_SLICE = 20000, PINGS_PATIENCE = 5 };

/* The last components of a path, at most that many, without slashes at the end. */
static char *last_components(const char *path, int components) {
  const char *end = path + strlen(path);
  while (end > path + 1 && end[-1] == '/') end--;
  const char *p = end;
  while (components-- > 0) {
    while (p > path && p[-1] == '/') p--;
    while (p > path && p[-1] != '/') p--;
  }
  return fl_strndup(p, (size_t)(end - p));
}

int fl_feed_open(fl_feed *f, const char *path) {
  *f = (fl_feed){ .follow = true };
  fl_snapshot_init(&f->snap);
  size_t n = strlen(path);
  bool is_file = n > 6 && strcmp(path + n - 6, ".jsonl") == 0 && !fl_fs_is_dir(path);
  const char *slash = strrchr(path, '/');
  f->dir = !is_file ? fl_strdup(path)
           : slash  ? fl_strndup(path, slash == path ? 1 : (size_t)(slash - path))
                    : fl_strdup(".");
  f->label = last_components(path, 1);
  char *log = is_file ? fl_strdup(path) : fl_fs_join(path, FL_EVENTS_FILE);
  int rc = f->dir && f->label && log ? fl_reader_open(&f->reader, log) : FL_ENOMEM;
  fl_free(log);
  if (rc != FL_OK) fl_feed_close(f);
  return rc;
}

int fl_feed_tell_apart(fl_feed *f, const char *const *path, size_t n) {
  char *longer[FL_FEEDS_MAX] = { 0 }; /* set when all have been compared by what they have */
  int rc = FL_OK;
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; rc == FL_OK && k < n && !longer[i]; k++) {
      if (k == i || strcmp(f[i].label, f[k].label) != 0) continue;
      longer[i] = last_components(path[i], 2);
      if (!longer[i]) rc = FL_ENOMEM;
    }
  for (size_t i = 0; i < n; i++) {
    if (!longer[i]) continue;
    fl_free(f[i].label);
    f[i].label = longer[i];
  }
  return rc;
}

static void drop_details(fl_feed *f) {
  for (size_t i = 0; i < FL_DETAILS; i++) fl_json_free(f->detail[i].json);
  memset(f->detail, 0, sizeof f->detail);
}

void fl_feed_close(fl_feed *f) {
  drop_details(f);
  fl_link_release(&f->ping);
  fl_snapshot_release(&f->snap);
  fl_store_release(&f->store);
  fl_reader_close(&f->reader);
  fl_free(f->dir);
  fl_free(f->label);
  *f = (fl_feed){ 0 };
}

static void on_ping(void *ctx, const fl_json *reply, bool last) {
  fl_feed *f = ctx;
  if (!last) return;
  fl_json_get_bool(reply, "paused", &f->paused);
}

/* How the log ends, wherever the cursor stands; *run is the run that is meant, or NULL. */
static fl_run_state tail_state(const fl_feed *f, const fl_rec_run **run) {
  const fl_store *st = &f->store;
  *run = NULL;
  for (size_t i = st->kind[FL_EV_RUN].n; i-- > 0 && !*run;) {
    const fl_rec_run *r = fl_store_rec(st, FL_EV_RUN, i);
    if (fl_snapshot_run_kind(st, r) != FL_RUN_IS_PASSING) *run = r;
  }
  if (!*run) return FL_RUN_NONE;
  size_t n_ends = st->kind[FL_EV_END].n;
  if (n_ends == 0) return FL_RUN_ACTIVE;
  const fl_rec_end *end = fl_store_rec(st, FL_EV_END, n_ends - 1);
  return end->rec.event > (*run)->rec.event ? fl_snapshot_end_state(end) : FL_RUN_ACTIVE;
}

/* Whether the process that the log names is there. Only on the machine that it ran on; a process
 * of another user is there as well as ours. */
static void look_for_process(fl_feed *f, const fl_rec_run *run) {
  f->process_gone = f->process_here = false;
  char host[256] = "";
  size_t n;
  if (!run || run->pid == FL_NONE || run->pid == 0 || run->pid > INT32_MAX) return;
  const char *name = fl_store_str(&f->store, run->host, &n);
  if (gethostname(host, sizeof host - 1) != 0) return;
  if (n == 0 || strlen(host) != n || memcmp(host, name, n) != 0) return;
  f->process_gone = kill((pid_t)run->pid, 0) != 0 && errno == ESRCH;
  f->process_here = !f->process_gone;
}

static bool check_life(fl_feed *f) {
  double now = fl_now_s();
  bool changed = false;
  if (fl_link_poll(&f->ping, on_ping, f)) {
    changed = f->ping.state != FL_LINK_WAITING;
    if (f->ping.state == FL_LINK_DONE) f->reachable = true, f->refused = false;
    else if (f->ping.state == FL_LINK_FAILED) f->reachable = false;
  }
  const fl_rec_run *run;
  if (now < f->ping_due || !f->caught_up) return changed;
  f->ping_due = now + ping_every_s;
  if (tail_state(f, &run) != FL_RUN_ACTIVE) return changed;
  bool was_gone = f->process_gone;
  look_for_process(f, run);
  /* a trainer that answers a question or saves may take its time for a ping */
  if (f->ping.state == FL_LINK_WAITING && ++f->pings_missed < PINGS_PATIENCE)
    return changed || was_gone != f->process_gone;
  if (f->ping.state == FL_LINK_WAITING) f->reachable = false;
  f->pings_missed = 0;
  fl_json *request = fl_json_object();
  if (request) fl_json_set_str(request, "cmd", "ping");
  fl_link_start(&f->ping, f->dir, request);
  if (f->ping.state == FL_LINK_FAILED) {
    changed |= f->reachable;
    f->reachable = false;
    f->refused = f->ping.absent;
  }
  return changed || was_gone != f->process_gone;
}

static void fold_to(fl_feed *f, size_t event) {
  if (event > f->store.n_ticks) event = f->store.n_ticks;
  if (fl_snapshot_fold(&f->snap, &f->store, event) != FL_OK)
    snprintf(f->error, sizeof f->error, "no memory for the state of the run");
  f->cursor = f->snap.applied;
}

static bool read_log(fl_feed *f, double seconds, bool *more) {
  size_t lines = f->store.n_lines;
  fl_reader_state state;
  fl_err err = { 0 };
  bool had_error = f->error[0] != '\0';
  f->error[0] = '\0';
  if (fl_reader_poll(&f->reader, &f->store, seconds, &state, &err) != FL_OK) {
    snprintf(f->error, sizeof f->error, "%.*s", (int)sizeof f->error - 1, err.text);
    return true;
  }
  if (state == FL_READER_RESET) {
    fl_store_reset(&f->store);
    fl_snapshot_release(&f->snap);
    drop_details(f);
    f->cursor = 0;
    f->follow = true;
    *more = true;
    return true;
  }
  *more = state == FL_READER_MORE;
  if (!*more && !f->caught_up) {
    f->caught_up = true;
    return true;
  }
  if (lines != f->store.n_lines && f->caught_up) f->heard = fl_now_s();
  return lines != f->store.n_lines || had_error;
}

bool fl_feed_poll(fl_feed *f, double seconds, bool *more) {
  double until = fl_now_s() + seconds;
  *more = false;
  bool changed = read_log(f, seconds, more);
  while (f->follow && f->snap.applied < f->store.n_ticks) {
    fold_to(f, f->snap.applied + FOLD_SLICE);
    changed = true;
    if (f->error[0] || fl_now_s() >= until) break;
  }
  if (f->follow && f->snap.applied < f->store.n_ticks && !f->error[0]) *more = true;
  return check_life(f) || changed;
}

bool fl_feed_served(const fl_feed *f) {
  size_t n = f->store.n_ticks;
  return n > 0 && f->store.tick[n - 1].kind == FL_EV_REQUEST;
}

fl_feed_state fl_feed_status(const fl_feed *f) {
  const fl_store *st = &f->store;
  if (!f->caught_up) return FL_FEED_READING;
  if (st->n_ticks == 0)
    return st->n_lines || f->reader.n_too_long ? FL_FEED_FOREIGN : FL_FEED_WAITING;
  const fl_rec_run *run;
  bool fresh = f->heard > 0 && fl_now_s() - f->heard < quiet_after_s;
  /* A server may outlive the trainer whose run the log told of last. */
  if (fresh && fl_feed_served(f)) return FL_FEED_LIVE;
  switch (tail_state(f, &run)) {
  case FL_RUN_DONE: return FL_FEED_DONE;
  case FL_RUN_STOPPED: return FL_FEED_STOPPED;
  case FL_RUN_FAILED: return FL_FEED_FAILED;
  case FL_RUN_NONE: return FL_FEED_QUIET;
  case FL_RUN_ACTIVE: break;
  }
  if (f->process_gone && !f->reachable) return FL_FEED_DEAD;
  if (f->reachable) return f->paused ? FL_FEED_PAUSED : FL_FEED_LIVE;
  if (fresh || (f->process_here && !f->refused))
    return f->snap.paused ? FL_FEED_PAUSED : FL_FEED_LIVE;
  return FL_FEED_QUIET;
}

double fl_feed_seconds_left(const fl_feed *f) {
  return fl_feed_status(f) == FL_FEED_DEAD ? (double)NAN : fl_snapshot_seconds_left(&f->snap);
}

void fl_feed_seek(fl_feed *f, size_t event) {
  f->follow = event >= f->store.n_ticks;
  fold_to(f, event);
}

void fl_feed_step(fl_feed *f, int direction) {
  const fl_store *st = &f->store;
  size_t at = f->cursor;
  if (direction > 0) {
    while (at < st->n_ticks && st->tick[at].kind != FL_EV_ROUND) at++;
    fl_feed_seek(f, at < st->n_ticks ? at + 1 : at);
    return;
  }
  /* back to just behind the round before the one that is shown */
  while (at > 0 && st->tick[at - 1].kind != FL_EV_ROUND) at--;
  if (at > 0) at--;
  while (at > 0 && st->tick[at - 1].kind != FL_EV_ROUND) at--;
  fl_feed_seek(f, at);
}

const fl_json *fl_feed_detail(fl_feed *f, size_t event) {
  if (event >= f->store.n_ticks) return NULL;
  for (size_t i = 0; i < FL_DETAILS; i++)
    if (f->detail[i].used && f->detail[i].event == event) return f->detail[i].json;
  const fl_rec *r = fl_store_tick_rec(&f->store, event);
  fl_detail *d = &f->detail[f->detail_next];
  f->detail_next = (f->detail_next + 1) % FL_DETAILS;
  fl_json_free(d->json);
  *d = (fl_detail){ event, NULL, true };
  fl_buf line = { 0 };
  double t;
  if (fl_reader_line(&f->reader, r->line, &line) &&
      fl_json_parse(&d->json, line.data, line.len, NULL) == FL_OK &&
      !(fl_json_get_num(d->json, "t", &t) && fl_store_is_at(&f->store, event, t))) {
    /* not the line that was read: the file was written over, or a clock was set back */
    const char *ev = NULL;
    fl_json_get_str(d->json, "ev", &ev);
    if (!ev || strcmp(ev, fl_event_names[f->store.tick[event].kind]) != 0) {
      fl_json_free(d->json);
      d->json = NULL;
    }
  }
  fl_buf_release(&line);
  return d->json;
}

const char *fl_feed_doc_name(const fl_feed *f, const fl_doc *d, char *buf, size_t size, size_t *n) {
  if (d->name.n) return fl_store_str(&f->store, d->name, n);
  int k = snprintf(buf, size, "document %u", d->id);
  *n = k > 0 ? (size_t)k : 0;
  return buf;
}
