/* feed.c - a fleet being watched. */
#include "tui/feed.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
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

int tui_feed_open(tui_feed *f, const char *path) {
  *f = (tui_feed){ .follow = true };
  tui_snapshot_init(&f->snap);
  size_t n = strlen(path);
  bool is_file = n > 6 && strcmp(path + n - 6, ".jsonl") == 0 && !fl_fs_is_dir(path);
  const char *slash = strrchr(path, '/');
  f->dir = !is_file ? fl_strdup(path)
           : slash  ? fl_strndup(path, slash == path ? 1 : (size_t)(slash - path))
                    : fl_strdup(".");
  f->label = last_components(path, 1);
  char *log = is_file ? fl_strdup(path) : fl_fs_join(path, FL_EVENTS_FILE);
  int rc = f->dir && f->label && log ? tui_reader_open(&f->reader, log) : FL_ENOMEM;
  fl_free(log);
  if (rc != FL_OK) tui_feed_close(f);
  return rc;
}

int tui_feed_tell_apart(tui_feed *f, const char *const *path, size_t n) {
  char *longer[TUI_FEEDS_MAX] = { 0 }; /* set when all have been compared by what they have */
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

static void drop_details(tui_feed *f) {
  for (size_t i = 0; i < TUI_DETAILS; i++) fl_json_free(f->detail[i].json);
  memset(f->detail, 0, sizeof f->detail);
}

void tui_feed_close(tui_feed *f) {
  drop_details(f);
  tui_link_release(&f->ping);
  tui_snapshot_release(&f->snap);
  tui_store_release(&f->store);
  tui_reader_close(&f->reader);
  fl_free(f->dir);
  fl_free(f->label);
  *f = (tui_feed){ 0 };
}

static void on_ping(void *ctx, const fl_json *reply, bool last) {
  tui_feed *f = ctx;
  if (!last) return;
  fl_json_get_bool(reply, "paused", &f->paused);
}

/* How the log ends, wherever the cursor stands; *run is the run that is meant, or NULL. */
static tui_run_state tail_state(const tui_feed *f, const tui_rec_run **run) {
  const tui_store *st = &f->store;
  *run = NULL;
  for (size_t i = st->kind[TUI_EV_RUN].n; i-- > 0 && !*run;) {
    const tui_rec_run *r = tui_store_rec(st, TUI_EV_RUN, i);
    if (tui_snapshot_run_kind(st, r) != TUI_RUN_IS_PASSING) *run = r;
  }
  if (!*run) return TUI_RUN_NONE;
  size_t n_ends = st->kind[TUI_EV_END].n;
  if (n_ends == 0) return TUI_RUN_ACTIVE;
  const tui_rec_end *end = tui_store_rec(st, TUI_EV_END, n_ends - 1);
  return end->rec.event > (*run)->rec.event ? tui_snapshot_end_state(end) : TUI_RUN_ACTIVE;
}

/* Whether the process that the log names is there. Only on the machine that it ran on; a process
 * of another user is there as well as ours. */
static void look_for_process(tui_feed *f, const tui_rec_run *run) {
  f->process_gone = f->process_here = false;
  char host[256] = "";
  size_t n;
  if (!run || run->pid == TUI_NONE || run->pid == 0 || run->pid > INT32_MAX) return;
  const char *name = tui_store_str(&f->store, run->host, &n);
  if (gethostname(host, sizeof host - 1) != 0) return;
  if (n == 0 || strlen(host) != n || memcmp(host, name, n) != 0) return;
  f->process_gone = kill((pid_t)run->pid, 0) != 0 && errno == ESRCH;
  f->process_here = !f->process_gone;
}

static bool check_life(tui_feed *f) {
  double now = fl_now_s();
  bool changed = false;
  if (tui_link_poll(&f->ping, on_ping, f)) {
    changed = f->ping.state != TUI_LINK_WAITING;
    if (f->ping.state == TUI_LINK_DONE) f->reachable = true, f->refused = false;
    else if (f->ping.state == TUI_LINK_FAILED) f->reachable = false;
  }
  const tui_rec_run *run;
  if (now < f->ping_due || !f->caught_up) return changed;
  f->ping_due = now + ping_every_s;
  if (tail_state(f, &run) != TUI_RUN_ACTIVE) return changed;
  bool was_gone = f->process_gone;
  look_for_process(f, run);
  /* a trainer that answers a question or saves may take its time for a ping */
  if (f->ping.state == TUI_LINK_WAITING && ++f->pings_missed < PINGS_PATIENCE)
    return changed || was_gone != f->process_gone;
  if (f->ping.state == TUI_LINK_WAITING) f->reachable = false;
  f->pings_missed = 0;
  fl_json *request = fl_json_object();
  if (request) fl_json_set_str(request, "cmd", "ping");
  tui_link_start(&f->ping, f->dir, request);
  if (f->ping.state == TUI_LINK_FAILED) {
    changed |= f->reachable;
    f->reachable = false;
    f->refused = f->ping.absent;
  }
  return changed || was_gone != f->process_gone;
}

static void fold_to(tui_feed *f, size_t event) {
  if (event > f->store.n_ticks) event = f->store.n_ticks;
  if (tui_snapshot_fold(&f->snap, &f->store, event) != FL_OK)
    snprintf(f->error, sizeof f->error, "no memory for the state of the run");
  f->cursor = f->snap.applied;
}

static bool read_log(tui_feed *f, double seconds, bool *more) {
  size_t lines = f->store.n_lines;
  tui_reader_state state;
  fl_err err = { 0 };
  bool had_error = f->error[0] != '\0';
  f->error[0] = '\0';
  if (tui_reader_poll(&f->reader, &f->store, seconds, &state, &err) != FL_OK) {
    snprintf(f->error, sizeof f->error, "%.*s", (int)sizeof f->error - 1, err.text);
    return true;
  }
  if (state == TUI_READER_RESET) {
    tui_store_reset(&f->store);
    tui_snapshot_release(&f->snap);
    drop_details(f);
    f->cursor = 0;
    f->follow = true;
    *more = true;
    return true;
  }
  *more = state == TUI_READER_MORE;
  if (!*more && !f->caught_up) {
    f->caught_up = true;
    return true;
  }
  if (lines != f->store.n_lines && f->caught_up) f->heard = fl_now_s();
  return lines != f->store.n_lines || had_error;
}

bool tui_feed_poll(tui_feed *f, double seconds, bool *more) {
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

bool tui_feed_served(const tui_feed *f) {
  size_t n = f->store.n_ticks;
  return n > 0 && f->store.tick[n - 1].kind == TUI_EV_REQUEST;
}

tui_feed_state tui_feed_status(const tui_feed *f) {
  const tui_store *st = &f->store;
  if (!f->caught_up) return TUI_FEED_READING;
  if (st->n_ticks == 0)
    return st->n_lines || f->reader.n_too_long ? TUI_FEED_FOREIGN : TUI_FEED_WAITING;
  const tui_rec_run *run;
  bool fresh = f->heard > 0 && fl_now_s() - f->heard < quiet_after_s;
  /* A server may outlive the trainer whose run the log told of last. */
  if (fresh && tui_feed_served(f)) return TUI_FEED_LIVE;
  switch (tail_state(f, &run)) {
  case TUI_RUN_DONE: return TUI_FEED_DONE;
  case TUI_RUN_STOPPED: return TUI_FEED_STOPPED;
  case TUI_RUN_FAILED: return TUI_FEED_FAILED;
  case TUI_RUN_NONE: return TUI_FEED_QUIET;
  case TUI_RUN_ACTIVE: break;
  }
  if (f->process_gone && !f->reachable) return TUI_FEED_DEAD;
  if (f->reachable) return f->paused ? TUI_FEED_PAUSED : TUI_FEED_LIVE;
  if (fresh || (f->process_here && !f->refused))
    return f->snap.paused ? TUI_FEED_PAUSED : TUI_FEED_LIVE;
  return TUI_FEED_QUIET;
}

double tui_feed_seconds_left(const tui_feed *f) {
  return tui_feed_status(f) == TUI_FEED_DEAD ? (double)NAN : tui_snapshot_seconds_left(&f->snap);
}

void tui_feed_seek(tui_feed *f, size_t event) {
  f->follow = event >= f->store.n_ticks;
  fold_to(f, event);
}

void tui_feed_step(tui_feed *f, int direction) {
  const tui_store *st = &f->store;
  size_t at = f->cursor;
  if (direction > 0) {
    while (at < st->n_ticks && st->tick[at].kind != TUI_EV_ROUND) at++;
    tui_feed_seek(f, at < st->n_ticks ? at + 1 : at);
    return;
  }
  /* back to just behind the round before the one that is shown */
  while (at > 0 && st->tick[at - 1].kind != TUI_EV_ROUND) at--;
  if (at > 0) at--;
  while (at > 0 && st->tick[at - 1].kind != TUI_EV_ROUND) at--;
  tui_feed_seek(f, at);
}

const fl_json *tui_feed_detail(tui_feed *f, size_t event) {
  if (event >= f->store.n_ticks) return NULL;
  for (size_t i = 0; i < TUI_DETAILS; i++)
    if (f->detail[i].used && f->detail[i].event == event) return f->detail[i].json;
  const tui_rec *r = tui_store_tick_rec(&f->store, event);
  tui_detail *d = &f->detail[f->detail_next];
  f->detail_next = (f->detail_next + 1) % TUI_DETAILS;
  fl_json_free(d->json);
  *d = (tui_detail){ event, NULL, true };
  fl_buf line = { 0 };
  double t;
  if (tui_reader_line(&f->reader, r->line, &line) &&
      fl_json_parse(&d->json, line.data, line.len, NULL) == FL_OK &&
      !(fl_json_get_num(d->json, "t", &t) && tui_store_is_at(&f->store, event, t))) {
    /* not the line that was read: the file was written over, or a clock was set back */
    const char *ev = NULL;
    fl_json_get_str(d->json, "ev", &ev);
    if (!ev || strcmp(ev, tui_event_names[f->store.tick[event].kind]) != 0) {
      fl_json_free(d->json);
      d->json = NULL;
    }
  }
  fl_buf_release(&line);
  return d->json;
}

const char *tui_feed_doc_name(const tui_feed *f, const tui_doc *d, char *buf, size_t size,
                              size_t *n) {
  if (d->name.n) return tui_store_str(&f->store, d->name, n);
  int k = snprintf(buf, size, "document %u", d->id);
  *n = k > 0 ? (size_t)k : 0;
  return buf;
}
