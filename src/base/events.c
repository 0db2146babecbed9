/* events.c - making events, and the ways that their lines go: to memory, to a file at once, to a
 * file by way of a thread. */
#include "base/events.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/events_file.h"
#include "base/events_queue.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"

static const double close_s = 5; /* for a thread to write what waits */

struct fl_events {
  fl_events_file *file;   /* NULL: kept in memory */
  fl_events_queue *queue; /* NULL: written at once; else the file's owner */
  pthread_mutex_t mu;     /* of the file, when written at once */
  atomic_bool told;       /* of an event that there was no memory for */
  fl_buf lines;           /* in memory */
};

static int new_log(fl_events **out, fl_err *err) {
  fl_events *log = fl_calloc(1, sizeof *log);
  if (log == NULL) return fl_fail(err, FL_ENOMEM, "no memory to keep events");
  pthread_mutex_init(&log->mu, NULL);
  *out = log;
  return FL_OK;
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
  if (log->queue != NULL) fl_events_queue_close(log->queue, close_s);
  else fl_events_file_close(log->file);
  pthread_mutex_destroy(&log->mu);
  fl_buf_release(&log->lines);
  fl_free(log);
}

void fl_events_head(fl_events *log, fl_events_head_fn *head, void *ctx) {
  if (log != NULL && log->file != NULL) fl_events_file_head(log->file, head, ctx);
}

int fl_events_behind(fl_events *log, size_t max_bytes, fl_err *err) {
  if (log == NULL || log->file == NULL || log->queue != NULL) return FL_OK;
  return fl_events_queue_new(&log->queue, log->file, max_bytes, err);
}

uint64_t fl_events_drain(fl_events *log, double seconds) {
  return log != NULL && log->queue != NULL ? fl_events_queue_drain(log->queue, seconds) : 0;
}

uint64_t fl_events_lost(const fl_events *log) {
  if (log == NULL || log->file == NULL) return 0;
  return log->queue != NULL ? fl_events_queue_lost(log->queue) : fl_events_file_lost(log->file);
}

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
  } else if (log->queue != NULL) {
    fl_events_queue_put(log->queue, lines, len);
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
  } else if (log != NULL && !atomic_exchange(&log->told, true)) {
    fl_warn("%s: no memory for an event; it is left out",
            log->file != NULL ? fl_events_file_path(log->file) : "events");
  }
  fl_buf_release(&e->text);
}
