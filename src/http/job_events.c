/* job_events.c - see job_events.h. An eventfd is raised with news that is to wake the reader and
 * lowered by a take. */
#include "http/job_events.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"

static const double rest_s = 0.005;

struct fl_job_events {
  pthread_mutex_t mu;
  atomic_int refs;
  int event;
  size_t max_bytes;
  bool rarely;       /* nobody waits for pieces */
  bool lost;         /* for lack of memory */
  bool resting;      /* the reader will look by itself: pieces need not wake it */
  double rest_until; /* the reader's; 0: it does not rest */
  fl_job_event news;
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

void fl_job_event_release(fl_job_event *n) {
  for (size_t i = 0; i < n->n_docs; i++) fl_free(n->docs[i].name);
  fl_free(n->docs);
  fl_buf_release(&n->text);
  fl_buf_release(&n->bytes);
  fl_free(n->token);
  fl_free(n->top);
  fl_free(n->stop_string);
  fl_free(n->error);
  *n = (fl_job_event){ 0 };
}

void fl_job_events_unref(fl_job_events *b) {
  if (b == NULL || atomic_fetch_sub(&b->refs, 1) > 1) return;
  fl_job_event_release(&b->news);
  close(b->event);
  pthread_mutex_destroy(&b->mu);
  fl_free(b);
}

static void raise_event(const fl_job_events *b) {
  const uint64_t one = 1;
  while (write(b->event, &one, sizeof one) < 0 && errno == EINTR) {}
}

/* --- on the engine's thread --- */

static void on_start(void *ctx, const fl_job_start *s) {
  fl_job_events *b = ctx;
  pthread_mutex_lock(&b->mu);
  fl_job_event *n = &b->news;
  n->started = true;
  n->rows = s->rows;
  n->prompt_tokens = s->prompt_tokens;
  n->cached_tokens = s->cached_tokens;
  n->queue_s = s->queue_s;
  n->docs = s->n_docs > 0 ? fl_calloc(s->n_docs, sizeof *n->docs) : NULL;
  for (size_t i = 0; n->docs != NULL && i < s->n_docs; i++) {
    char *name = fl_strdup(s->docs[i].name);
    if (name == NULL) break;
    n->docs[n->n_docs++] =
        (fl_job_event_doc){ s->docs[i].id, name, s->docs[i].why, s->docs[i].rows };
  }
  b->lost = b->lost || n->n_docs < s->n_docs;
  if (!b->rarely) raise_event(b);
  pthread_mutex_unlock(&b->mu);
}

static bool room_for_tokens(fl_job_event *n, size_t more, size_t n_top) {
  size_t cap = n->cap > 0 ? n->cap : 16;
  if (n->n_tokens + more <= n->cap) return true;
  while (cap < n->n_tokens + more) cap *= 2;
  fl_job_event_token *token = fl_reallocarray(n->token, cap, sizeof *token);
  if (token == NULL) return false;
  n->token = token;
  if (n_top > 0) {
    fl_job_event_token *top = fl_reallocarray(n->top, cap, n_top * sizeof *top);
    if (top == NULL) return false;
    n->top = top;
  }
  n->cap = cap;
  return true;
}

static fl_job_event_token copy_token(fl_job_event *n, const fl_job_logprob *p) {
  const fl_job_event_token t = { p->token, p->logprob, n->bytes.len, p->len };
  fl_buf_append(&n->bytes, p->text, p->len);
  return t;
}

static bool copy_tokens(fl_job_event *n, const fl_job_delta *d) {
  if (d->n_tokens == 0) return true;
  n->n_top = d->n_top;
  if (!room_for_tokens(n, d->n_tokens, d->n_top)) return false;
  for (size_t i = 0; i < d->n_tokens; i++) {
    n->token[n->n_tokens] = copy_token(n, &d->token[i]);
    for (size_t j = 0; j < d->n_top; j++)
      n->top[n->n_tokens * d->n_top + j] = copy_token(n, &d->top[i * d->n_top + j]);
    n->n_tokens++;
  }
  return !n->bytes.oom;
}

static bool on_delta(void *ctx, const fl_job_delta *d) {
  fl_job_events *b = ctx;
  pthread_mutex_lock(&b->mu);
  fl_job_event *n = &b->news;
  const bool full = n->text.len + n->bytes.len + d->len > b->max_bytes;
  if (full) {
    n->overrun = true;
  } else {
    fl_buf_append(&n->text, d->text, d->len);
    if (!copy_tokens(n, d) || n->text.oom) b->lost = true;
  }
  const bool go_on = !full && !b->lost;
  const bool much = n->text.len + n->bytes.len > b->max_bytes / 2;
  if ((!b->rarely && !b->resting) || much || !go_on) raise_event(b);
  pthread_mutex_unlock(&b->mu);
  return go_on;
}

static void on_end(void *ctx, const fl_job_end *e) {
  fl_job_events *b = ctx;
  pthread_mutex_lock(&b->mu);
  fl_job_event *n = &b->news;
  n->ended = true;
  n->finish = e->finish;
  n->code = e->code;
  n->completion_tokens = e->completion_tokens;
  n->drafted = e->drafted;
  n->accepted = e->accepted;
  n->ttft_s = e->ttft_s;
  n->seconds = e->seconds;
  n->stop_string = e->stop_string != NULL ? fl_strdup(e->stop_string) : NULL;
  n->error = e->error != NULL ? fl_strdup(e->error) : NULL;
  raise_event(b);
  pthread_mutex_unlock(&b->mu);
  fl_job_events_unref(b);
}

fl_job_sink fl_job_events_sink(fl_job_events *b) {
  atomic_fetch_add(&b->refs, 1);
  return (fl_job_sink){ .ctx = b, .on_start = on_start, .on_delta = on_delta, .on_end = on_end };
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
static bool end_rest(fl_job_events *b) {
  pthread_mutex_lock(&b->mu);
  b->resting = false;
  b->rest_until = 0;
  const bool any = b->news.text.len > 0 || b->news.n_tokens > 0;
  pthread_mutex_unlock(&b->mu);
  return any;
}

fl_wait fl_job_events_wait(fl_job_events *b, int client, int stop, double timeout_s) {
  struct pollfd p[3] = { { .fd = b->event, .events = POLLIN },
                         { .fd = client, .events = POLLRDHUP },
                         { .fd = stop, .events = POLLIN } };
  int n = 0;
  if (b->rest_until > 0) {
    n = poll_for(p, b->rest_until - fl_now_s()); /* the end of the answer wakes it */
    if (end_rest(b) && n <= 0) return FL_WAIT_EVENTS;
  }
  if (n <= 0) n = poll_for(p, timeout_s);
  if (n <= 0) return FL_WAIT_TIME;
  if ((p[1].revents & GONE) != 0) return FL_WAIT_GONE;
  if (p[0].revents != 0) return FL_WAIT_EVENTS;
  return FL_WAIT_STOP;
}

int fl_job_events_take(fl_job_events *b, fl_job_event *out) {
  uint64_t count;
  pthread_mutex_lock(&b->mu);
  while (read(b->event, &count, sizeof count) < 0 && errno == EINTR) {}
  *out = b->news;
  b->news = (fl_job_event){ 0 };
  const bool lost = b->lost;
  b->resting = !b->rarely && out->text.len > 0 && !out->ended;
  b->rest_until = b->resting ? fl_now_s() + rest_s : 0;
  pthread_mutex_unlock(&b->mu);
  return lost ? FL_ENOMEM : FL_OK;
}
