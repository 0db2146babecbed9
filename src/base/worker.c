/* worker.c - see worker.h. */
#include "base/worker.h"

#include <math.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/mem.h"

enum { CHECKS = 20 }; /* during the patience, by who waits as long as there is progress */

struct fl_worker {
  fl_worker_options o;
  pthread_t thread;
  pthread_mutex_t mu;
  pthread_cond_t change; /* of anything below but the two of progress */

  /* Under mu. */
  fl_task *first; /* queued, the oldest first */
  fl_task *running;
  bool closed, left_behind;
  uint64_t n_progress;
  double progress_s; /* when there was progress last */
};

static void worker_free(fl_worker *w) {
  w->o.release(w->o.ctx);
  pthread_cond_destroy(&w->change);
  pthread_mutex_destroy(&w->mu);
  fl_free(w);
}

/* Under mu, as what follows. */
static void progress(fl_worker *w) {
  w->n_progress++;
  w->progress_s = fl_now_s();
}

/* The next task to run, out of the queue. NULL: none before *due. */
static fl_task *take(fl_worker *w, double *due) {
  const double now = fl_now_s();
  fl_task **best = NULL;
  *due = (double)INFINITY;
  for (fl_task **at = &w->first; *at != NULL; at = &(*at)->next) {
    if ((*at)->due > now) *due = fmin(*due, (*at)->due);
    else if (best == NULL || (*at)->rank < (*best)->rank) best = at;
  }
  if (best == NULL) return NULL;
  fl_task *t = *best;
  *best = t->next;
  t->queued = false;
  return t;
}

static void run_one(fl_worker *w, fl_task *t) {
  w->running = t;
  progress(w);
  pthread_mutex_unlock(&w->mu);
  t->run(t);
  pthread_mutex_lock(&w->mu);
  w->running = NULL;
  progress(w);
  if (!w->closed && t->done != NULL) t->done(t);
  pthread_cond_broadcast(&w->change);
}

static void *work(void *arg) {
  fl_worker *w = arg;
  pthread_mutex_lock(&w->mu);
  while (!w->closed) {
    double due;
    fl_task *t = take(w, &due);
    if (t != NULL) run_one(w, t);
    else (void)fl_cond_wait(&w->change, &w->mu, due);
  }
  const bool left_behind = w->left_behind;
  pthread_mutex_unlock(&w->mu);
  if (left_behind) worker_free(w);
  return NULL;
}

int fl_worker_start(fl_worker **out, const fl_worker_options *o, fl_err *err) {
  fl_worker *w = fl_calloc(1, sizeof *w);
  if (w == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for a thread");
  w->o = *o;
  pthread_mutex_init(&w->mu, NULL);
  fl_cond_init(&w->change);
  *out = w; /* for tasks that run at once */
  if (pthread_create(&w->thread, NULL, work, w) == 0) return FL_OK;
  *out = NULL;
  pthread_cond_destroy(&w->change);
  pthread_mutex_destroy(&w->mu);
  fl_free(w);
  return fl_fail(err, FL_EFAIL, "the system gives no thread for work on the disk");
}

void fl_worker_lock(fl_worker *w) { pthread_mutex_lock(&w->mu); }
void fl_worker_unlock(fl_worker *w) { pthread_mutex_unlock(&w->mu); }

void fl_worker_submit(fl_worker *w, fl_task *t, double due_s) {
  if (t->queued) {
    t->due = fmin(t->due, due_s);
  } else {
    fl_task **at = &w->first;
    while (*at != NULL) at = &(*at)->next;
    *at = t;
    t->next = NULL;
    t->due = due_s;
    t->queued = true;
  }
  pthread_cond_broadcast(&w->change);
}

bool fl_worker_has(const fl_worker *w, const fl_task *t) { return t->queued || w->running == t; }

void fl_worker_progress(fl_worker *w) {
  pthread_mutex_lock(&w->mu);
  progress(w);
  pthread_mutex_unlock(&w->mu);
}

bool fl_worker_stalled(fl_worker *w) {
  pthread_mutex_lock(&w->mu);
  const bool yes = w->running != NULL && fl_now_s() - w->progress_s > w->o.patience_s;
  pthread_mutex_unlock(&w->mu);
  return yes;
}

static bool is_busy(const fl_worker *w, const fl_task *t) {
  return t != NULL ? fl_worker_has(w, t) : w->first != NULL || w->running != NULL;
}

bool fl_worker_wait(fl_worker *w, const fl_task *t, double until_s) {
  pthread_mutex_lock(&w->mu);
  while (is_busy(w, t) && fl_cond_wait(&w->change, &w->mu, until_s)) continue;
  const bool done = !is_busy(w, t);
  pthread_mutex_unlock(&w->mu);
  return done;
}

static uint64_t count_progress(fl_worker *w) {
  pthread_mutex_lock(&w->mu);
  const uint64_t n = w->n_progress;
  pthread_mutex_unlock(&w->mu);
  return n;
}

bool fl_worker_finish(fl_worker *w) {
  uint64_t seen = count_progress(w);
  int checks = fl_worker_stalled(w) ? CHECKS - 1 : 0;
  while (!fl_worker_wait(w, NULL, fl_now_s() + w->o.patience_s / CHECKS)) {
    const uint64_t now = count_progress(w);
    checks = now == seen ? checks + 1 : 0;
    seen = now;
    if (checks == CHECKS) return false;
  }
  return true;
}

bool fl_worker_close(fl_worker *w) {
  if (w == NULL) return false;
  pthread_mutex_lock(&w->mu);
  const bool left_behind = w->running != NULL;
  w->closed = true;
  w->left_behind = left_behind;
  for (; w->first != NULL; w->first = w->first->next) w->first->queued = false;
  if (left_behind) pthread_detach(w->thread);
  pthread_cond_broadcast(&w->change);
  pthread_mutex_unlock(&w->mu);
  if (left_behind) return true;
  pthread_join(w->thread, NULL);
  worker_free(w);
  return false;
}
