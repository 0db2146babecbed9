/* conns.c - see conns.h. One thread sleeps until the nearest deadline. */
#include "http/conns.h"

#include <math.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/cond.h"

struct fl_conn {
  fl_conn *next, *prev;
  int fd;
  bool surplus;
  size_t replies;  /* its thread's */
  double deadline; /* monotonic seconds; INFINITY: none */
};

struct fl_conns {
  pthread_mutex_t mu;
  pthread_cond_t wake;
  pthread_t thread;
  fl_conn *first;
  double asleep_until;
  bool stop;
};

static void shut(fl_conn *c) {
  shutdown(c->fd, SHUT_RDWR);
  c->deadline = INFINITY;
}

/* Ends what is late; returns the nearest deadline of the others. */
static double sweep(fl_conns *c, double now) {
  double nearest = INFINITY;
  for (fl_conn *n = c->first; n != NULL; n = n->next) {
    if (n->deadline <= now) shut(n);
    nearest = fmin(nearest, n->deadline);
  }
  return nearest;
}

/* A process that was stopped for a while (SIGSTOP, a frozen container) does not blame its clients:
 * what the watcher overslept does not count. */
static void forgive(fl_conns *c, double overslept_s) {
  for (fl_conn *n = c->first; n != NULL && overslept_s > 1; n = n->next) n->deadline += overslept_s;
}

static void *watch(void *arg) {
  fl_conns *c = arg;
  pthread_mutex_lock(&c->mu);
  while (!c->stop) {
    const double now = fl_now_s();
    forgive(c, now - c->asleep_until);
    c->asleep_until = sweep(c, now);
    /* Often enough to notice having been stopped. */
    if (!isinf(c->asleep_until)) c->asleep_until = fmin(c->asleep_until, now + 1);
    (void)fl_cond_wait(&c->wake, &c->mu, c->asleep_until);
  }
  pthread_mutex_unlock(&c->mu);
  return NULL;
}

int fl_conns_start(fl_conns **out, fl_err *err) {
  fl_conns *c = fl_calloc(1, sizeof *c);
  if (c == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for the server");
  pthread_mutex_init(&c->mu, NULL);
  fl_cond_init(&c->wake);
  c->asleep_until = INFINITY;
  if (pthread_create(&c->thread, NULL, watch, c) != 0) {
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->mu);
    fl_free(c);
    return fl_fail(err, FL_EFAIL, "the system gives no thread for the server");
  }
  *out = c;
  return FL_OK;
}

void fl_conns_stop(fl_conns *c) {
  if (c == NULL) return;
  pthread_mutex_lock(&c->mu);
  c->stop = true;
  pthread_cond_signal(&c->wake);
  pthread_mutex_unlock(&c->mu);
  pthread_join(c->thread, NULL);
  pthread_cond_destroy(&c->wake);
  pthread_mutex_destroy(&c->mu);
  fl_free(c);
}

static void set_deadline(fl_conns *c, fl_conn *n, double seconds_s) {
  n->deadline = seconds_s > 0 ? fl_now_s() + seconds_s : (double)INFINITY;
  if (n->deadline < c->asleep_until) pthread_cond_signal(&c->wake);
}

fl_conn *fl_conns_add(fl_conns *c, int fd, bool surplus, double seconds_s) {
  fl_conn *n = fl_calloc(1, sizeof *n);
  if (n == NULL) return NULL;
  n->fd = fd;
  n->surplus = surplus;
  pthread_mutex_lock(&c->mu);
  n->next = c->first;
  if (c->first != NULL) c->first->prev = n;
  c->first = n;
  set_deadline(c, n, seconds_s);
  pthread_mutex_unlock(&c->mu);
  return n;
}

void fl_conns_remove(fl_conns *c, fl_conn *n) {
  if (n == NULL) return;
  pthread_mutex_lock(&c->mu);
  if (n->prev != NULL) n->prev->next = n->next;
  else c->first = n->next;
  if (n->next != NULL) n->next->prev = n->prev;
  pthread_mutex_unlock(&c->mu);
  fl_free(n);
}

void fl_conns_phase(fl_conns *c, fl_conn *n, double seconds_s) {
  if (n == NULL) return;
  pthread_mutex_lock(&c->mu);
  set_deadline(c, n, seconds_s);
  pthread_mutex_unlock(&c->mu);
}

void fl_conns_shut_all(fl_conns *c) {
  pthread_mutex_lock(&c->mu);
  for (fl_conn *n = c->first; n != NULL; n = n->next) shut(n);
  pthread_mutex_unlock(&c->mu);
}

int fl_conn_fd(const fl_conn *n) { return n != NULL ? n->fd : -1; }

size_t fl_conn_count(fl_conn *n) { return n != NULL ? ++n->replies : 0; }

bool fl_conn_surplus(const fl_conn *n) { return n == NULL || n->surplus; }
