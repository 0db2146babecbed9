/* job_events.c - see job_events.h. The eventfd is readable while something waits that is to wake
 * the reader. */
#include "http/job_events.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

static const double pause_s = 0.005;

struct fl_job_events {
  pthread_mutex_t mu;
  atomic_int refs;
  int event;
  size_t max_bytes;
  bool rarely;        /* nobody waits for pieces */
  bool overrun;       /* text was dropped: nobody read */
  bool pausing;       /* the reader will look by itself: pieces need not wake it */
  double pause_until; /* the reader's; 0: it does not pause */
  fl_job_event waiting;
};

int fl_job_events_new(fl_job_events **out, size_t max_bytes, bool rarely, fl_err *err) {
  fl_job_events *b = fl_calloc(1, sizeof *b);
  if (b == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for a request");
  b->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (b->event < 0) {
    fl_free(b);
    return fl_fail(err, FL_EBUSY, "the server has no file descriptor left; try again later");
  }
  pthread_mutex_init(&b->mu, NULL);
  atomic_init(&b->refs, 1);
  b->max_bytes = max_bytes;
  b->rarely = rarely;
  *out = b;
  return FL_OK;
}

void fl_job_events_unref(fl_job_events *b) {
  if (b == NULL || atomic_fetch_sub(&b->refs, 1) > 1) return;
  fl_job_event_release(&b->waiting);
  close(b->event);
  pthread_mutex_destroy(&b->mu);
  fl_free(b);
}

static void raise_event(const fl_job_events *b) {
  const uint64_t one = 1;
  while (write(b->event, &one, sizeof one) < 0 && errno == EINTR) {}
}

/* --- on the engine's thread --- */

static bool on_event(void *ctx, fl_job_event *e) {
  fl_job_events *b = ctx;
  const bool ended = e->ended, piece = e->text.len > 0 || e->n_tokens > 0;
  pthread_mutex_lock(&b->mu);
  fl_job_event *w = &b->waiting;
  const bool full = piece && w->text.len + w->bytes.len + e->text.len > b->max_bytes;
  if (full) b->overrun = true;
  else fl_job_event_merge(w, e);
  const bool go_on = !full && !w->lost, much = w->text.len + w->bytes.len > b->max_bytes / 2;
  if (ended || much || !go_on || (!b->rarely && !b->pausing)) raise_event(b);
  pthread_mutex_unlock(&b->mu);
  if (ended) fl_job_events_unref(b);
  return go_on;
}

fl_job_sink fl_job_events_sink(fl_job_events *b) {
  atomic_fetch_add(&b->refs, 1);
  return (fl_job_sink){ .ctx = b, .on_event = on_event };
}

/* --- on the connection's thread --- */

/* A client that closes only its sending half is taken for gone, too: nothing tells the two apart
 * before something is sent, and then it would be late. */
enum { GONE = POLLRDHUP | POLLHUP | POLLERR | POLLNVAL };

bool fl_client_gone(int client) {
  struct pollfd p = { .fd = client, .events = POLLRDHUP };
  return client >= 0 && poll(&p, 1, 0) > 0 && (p.revents & GONE) != 0;
}

static int poll_for(struct pollfd p[3], double seconds) {
  const int ms = (int)ceil(fmin(fmax(seconds, 0), 3600) * 1e3);
  int n;
  do n = poll(p, 3, ms);
  while (n < 0 && errno == EINTR);
  return n;
}

/* Whether pieces came meanwhile. */
static bool end_pause(fl_job_events *b) {
  pthread_mutex_lock(&b->mu);
  b->pausing = false;
  b->pause_until = 0;
  const bool any = b->waiting.text.len > 0 || b->waiting.n_tokens > 0;
  pthread_mutex_unlock(&b->mu);
  return any;
}

fl_wait fl_job_events_wait(fl_job_events *b, int client, int stop, double timeout_s) {
  struct pollfd p[3] = { { .fd = b->event, .events = POLLIN },
                         { .fd = client, .events = POLLRDHUP },
                         { .fd = stop, .events = POLLIN } };
  int n = 0;
  if (b->pause_until > 0) {
    n = poll_for(p, b->pause_until - fl_now_s()); /* the end of the answer wakes it */
    if (end_pause(b) && n <= 0) return FL_WAIT_EVENTS;
  }
  if (n <= 0) n = poll_for(p, timeout_s);
  if (n <= 0) return FL_WAIT_TIME;
  if ((p[1].revents & GONE) != 0) return FL_WAIT_GONE;
  if (p[0].revents != 0) return FL_WAIT_EVENTS;
  return FL_WAIT_STOP;
}

void fl_job_events_take(fl_job_events *b, fl_job_event *out, bool *overrun) {
  uint64_t count;
  pthread_mutex_lock(&b->mu);
  while (read(b->event, &count, sizeof count) < 0 && errno == EINTR) {}
  *out = b->waiting;
  *overrun = b->overrun;
  b->waiting = (fl_job_event){ 0 };
  b->pausing = !b->rarely && out->text.len > 0 && !out->ended;
  b->pause_until = b->pausing ? fl_now_s() + pause_s : 0;
  pthread_mutex_unlock(&b->mu);
}
