/* events_queue.c - see events_queue.h. */
#include "base/events_queue.h"

#include <pthread.h>
#include <string.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/wait.h"

struct fl_events_queue {
  fl_events_file *file;
  size_t max_bytes;
  pthread_t thread;
  pthread_mutex_t mu;
  pthread_cond_t wake;    /* the thread */
  pthread_cond_t written; /* those who drain */

  /* Under mu. */
  fl_buf waiting;
  uint64_t n_waiting;    /* lines of it */
  uint64_t n_writing;    /* lines that the thread has in hand */
  uint64_t n_dropped;    /* since the thread looked */
  bool told;             /* of lines that are dropped, until one is written */
  bool stop, left, gone; /* the thread is to end; is left alone; has ended */
  bool hung;             /* somebody waited in vain */
};

/* Takes what waits into `out`; false when the thread is to end. */
static bool take(fl_events_queue *q, fl_buf *out) {
  pthread_mutex_lock(&q->mu);
  q->n_writing = 0;
  if (q->n_waiting == 0) pthread_cond_broadcast(&q->written);
  while (q->waiting.len == 0 && !q->stop) pthread_cond_wait(&q->wake, &q->mu);
  const fl_buf empty = *out;
  *out = q->waiting;
  q->waiting = empty;
  q->n_writing = q->n_waiting;
  q->n_waiting = 0;
  if (q->n_dropped > 0) fl_events_file_missed(q->file, q->n_dropped);
  q->n_dropped = 0;
  q->told = false;
  const bool left = q->left;
  pthread_mutex_unlock(&q->mu);
  return out->len > 0 && !left;
}

static void *write_all(void *arg) {
  fl_events_queue *q = arg;
  fl_buf lines = { 0 };
  while (take(q, &lines)) {
    fl_events_file_write(q->file, lines.data, lines.len);
    fl_buf_reset(&lines);
  }
  fl_buf_release(&lines);
  pthread_mutex_lock(&q->mu);
  q->gone = true;
  pthread_cond_broadcast(&q->written);
  pthread_mutex_unlock(&q->mu);
  return NULL;
}

static void queue_free(fl_events_queue *q) {
  pthread_cond_destroy(&q->wake);
  pthread_cond_destroy(&q->written);
  pthread_mutex_destroy(&q->mu);
  fl_buf_release(&q->waiting);
  fl_free(q);
}

int fl_events_queue_new(fl_events_queue **out, fl_events_file *file, size_t max_bytes,
                        fl_err *err) {
  fl_events_queue *q = fl_calloc(1, sizeof *q);
  if (q == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for events");
  q->file = file;
  q->max_bytes = max_bytes;
  pthread_mutex_init(&q->mu, NULL);
  pthread_cond_init(&q->wake, NULL);
  fl_cond_init(&q->written);
  if (pthread_create(&q->thread, NULL, write_all, q) != 0) {
    queue_free(q);
    return fl_fail(err, FL_EFAIL, "the system gives no thread for the event log");
  }
  *out = q;
  return FL_OK;
}

void fl_events_queue_put(fl_events_queue *q, const char *lines, size_t len) {
  const uint64_t n = fl_events_count(lines, len);
  bool tell = false;
  pthread_mutex_lock(&q->mu);
  const size_t before = q->waiting.len;
  const bool room = before <= q->max_bytes && len <= q->max_bytes - before;
  if (room) fl_buf_append(&q->waiting, lines, len);
  if (room && !q->waiting.oom) {
    q->n_waiting += n;
    if (before == 0) pthread_cond_signal(&q->wake);
  } else {
    q->waiting.oom = false; /* what it holds is whole */
    q->n_dropped += n;
    tell = !q->told;
    q->told = true;
  }
  pthread_mutex_unlock(&q->mu);
  if (tell)
    fl_warn("%s: does not take events as fast as they come; some are left out from now on",
            fl_events_file_path(q->file));
}

/* Waits until nothing is left, or until the thread has ended where `end` says so; under mu. */
static void await(fl_events_queue *q, double seconds, bool end) {
  const double until = fl_now_s() + seconds;
  while (end ? !q->gone : q->n_waiting + q->n_writing > 0)
    if (!fl_cond_wait(&q->written, &q->mu, until)) break;
}

uint64_t fl_events_queue_drain(fl_events_queue *q, double seconds) {
  pthread_mutex_lock(&q->mu);
  await(q, seconds, false);
  const uint64_t left = q->n_waiting + q->n_writing;
  const uint64_t n = left > 0 ? left + q->n_dropped : 0;
  q->hung = left > 0;
  pthread_mutex_unlock(&q->mu);
  return n;
}

uint64_t fl_events_queue_lost(fl_events_queue *q) {
  pthread_mutex_lock(&q->mu);
  const uint64_t n = q->n_dropped + fl_events_file_lost(q->file);
  pthread_mutex_unlock(&q->mu);
  return n;
}

void fl_events_queue_close(fl_events_queue *q, double seconds) {
  pthread_mutex_lock(&q->mu);
  q->stop = true;
  pthread_cond_signal(&q->wake);
  await(q, q->hung ? 0 : seconds, true);
  const bool gone = q->gone;
  q->left = !gone;
  pthread_mutex_unlock(&q->mu);
  if (!gone) {
    fl_events_file_head(q->file, NULL, NULL); /* what it speaks of may go */
    pthread_detach(q->thread);
    return;
  }
  pthread_join(q->thread, NULL);
  fl_events_file_close(q->file);
  queue_free(q);
}
