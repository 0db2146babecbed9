/* events.c - making events, and the ways that their lines go: to memory, to a file at once, to a
 * file by way of a thread.
 *
 * With a thread there are two buffers: callers append to `waiting`, the thread takes it as a whole
 * and writes it while they go on with an empty one.
 */
#include "base/events.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/events_file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/worker.h"

static const double close_s = 5; /* for a thread to write what waits */

struct fl_events {
  fl_events_file *file; /* NULL: kept in memory */
  pthread_mutex_t mu;   /* of the file, when written at once */
  atomic_bool warned;   /* of an event that there was no memory for */
  fl_buf lines;         /* in memory */

  fl_worker *worker; /* NULL: written at once; else the log's other owner */
  fl_task write;
  size_t max_bytes;
  /* Under the worker's lock. */
  fl_buf waiting;
  uint64_t n_waiting, n_writing; /* lines of it, and those that the thread has in hand */
  uint64_t n_dropped;            /* since the thread took the last lines */
  bool warned_of_drops;          /* since then, too */
  bool hung;                     /* the last drain was in vain */
};

static int new_log(fl_events **out, fl_err *err) {
  fl_events *log = fl_calloc(1, sizeof *log);
  if (log == NULL) return fl_fail(err, FL_ENOMEM, "no memory to keep events");
  pthread_mutex_init(&log->mu, NULL);
  *out = log;
  return FL_OK;
}

static void release(void *ctx) {
  fl_events *log = ctx;
  fl_events_file_close(log->file);
  pthread_mutex_destroy(&log->mu);
  fl_buf_release(&log->lines);
  fl_buf_release(&log->waiting);
  fl_free(log);
}

int fl_events_open(fl_events **out, const char *path, uint64_t part_bytes, fl_err *err) {
  fl_events *log = NULL;
  int rc = new_log(&log, err);
  if (rc == FL_OK) rc = fl_events_file_open(&log->file, path, part_bytes, err);
  if (rc == FL_OK) *out = log;
  else fl_events_close(log);
  return rc;
}

int fl_events_memory(fl_events **out, fl_err *err) { return new_log(out, err); }

const fl_buf *fl_events_lines(const fl_events *log) { return &log->lines; }

void fl_events_close(fl_events *log) {
  if (log == NULL) return;
  if (log->worker == NULL) {
    release(log);
    return;
  }
  const bool written = fl_worker_wait(log->worker, NULL, fl_now_s() + (log->hung ? 0 : close_s));
  if (!written) fl_events_file_head(log->file, NULL, NULL); /* what it speaks of may go */
  (void)fl_worker_close(log->worker);
}

void fl_events_head(fl_events *log, fl_events_head_fn *head, void *ctx) {
  if (log != NULL && log->file != NULL) fl_events_file_head(log->file, head, ctx);
}

/* --- by way of a thread --- */

static void write_waiting(fl_task *t) {
  fl_events *log = t->ctx;
  fl_worker_lock(log->worker);
  fl_buf lines = log->waiting;
  log->waiting = (fl_buf){ 0 };
  log->n_writing = log->n_waiting;
  log->n_waiting = 0;
  if (log->n_dropped > 0) fl_events_file_missed(log->file, log->n_dropped);
  log->n_dropped = 0;
  log->warned_of_drops = false;
  fl_worker_unlock(log->worker);
  fl_events_file_write(log->file, lines.data, lines.len);
  fl_buf_release(&lines);
  fl_worker_lock(log->worker);
  log->n_writing = 0;
  fl_worker_unlock(log->worker);
}

int fl_events_behind(fl_events *log, size_t max_bytes, fl_err *err) {
  if (log == NULL || log->file == NULL || log->worker != NULL) return FL_OK;
  const fl_worker_options o = { .patience_s = close_s, .release = release, .ctx = log };
  log->write = (fl_task){ .run = write_waiting, .ctx = log };
  log->max_bytes = max_bytes;
  return fl_worker_start(&log->worker, &o, err);
}

static void put(fl_events *log, const char *lines, size_t len) {
  const uint64_t n = fl_events_count(lines, len);
  fl_worker_lock(log->worker);
  const size_t before = log->waiting.len;
  const bool room = before <= log->max_bytes && len <= log->max_bytes - before;
  if (room) fl_buf_append(&log->waiting, lines, len);
  const bool taken = room && !log->waiting.oom;
  log->waiting.oom = false; /* what it holds is whole */
  if (taken) log->n_waiting += n;
  else log->n_dropped += n;
  if (taken) fl_worker_submit(log->worker, &log->write, 0);
  const bool warn = !taken && !log->warned_of_drops;
  log->warned_of_drops |= warn;
  fl_worker_unlock(log->worker);
  if (warn)
    fl_warn("%s: does not take events as fast as they come; some are left out from now on",
            fl_events_file_path(log->file));
}

uint64_t fl_events_drain(fl_events *log, double seconds) {
  if (log == NULL || log->worker == NULL) return 0;
  const bool written = fl_worker_wait(log->worker, NULL, fl_now_s() + seconds);
  fl_worker_lock(log->worker);
  const uint64_t left = written ? 0 : log->n_waiting + log->n_writing;
  const uint64_t n = left > 0 ? left + log->n_dropped : 0;
  log->hung = left > 0;
  fl_worker_unlock(log->worker);
  return n;
}

uint64_t fl_events_lost(const fl_events *log) {
  if (log == NULL || log->file == NULL) return 0;
  uint64_t dropped = 0;
  if (log->worker != NULL) {
    fl_worker_lock(log->worker);
    dropped = log->n_dropped;
    fl_worker_unlock(log->worker);
  }
  return dropped + fl_events_file_lost(log->file);
}

/* --- making --- */

void fl_event_begin(fl_event *e, const char *kind) {
  long long ms = llround(fl_wall_s() * 1000);
  *e = (fl_event){ 0 };
  fl_jsonw_open(&e->text, NULL, '{');
  fl_buf_printf(&e->text, "\"t\":%lld.%03lld", ms / 1000, ms % 1000);
  fl_jsonw_str(&e->text, "ev", kind);
}

void fl_events_append(fl_events *log, const char *lines, size_t len) {
  if (log == NULL || len == 0) return;
  if (log->file == NULL) {
    fl_buf_append(&log->lines, lines, len);
  } else if (log->worker != NULL) {
    put(log, lines, len);
  } else {
    pthread_mutex_lock(&log->mu);
    fl_events_file_write(log->file, lines, len);
    pthread_mutex_unlock(&log->mu);
  }
}

void fl_event_emit(fl_events *log, fl_event *e) {
  fl_buf_puts(&e->text, "}\n");
  if (!e->text.oom) {
    fl_events_append(log, e->text.data, e->text.len);
  } else if (log != NULL && !atomic_exchange(&log->warned, true)) {
    fl_warn("%s: no memory for an event; it is left out",
            log->file != NULL ? fl_events_file_path(log->file) : "events");
  }
  fl_buf_release(&e->text);
}
