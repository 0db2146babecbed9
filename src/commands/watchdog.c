/* watchdog.c - see watchdog.h. */
#include "commands/watchdog.h"

#include <pthread.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/cond.h"

struct stop_guard {
  pthread_t thread;
  pthread_mutex_t mu;
  pthread_cond_t change;
  double seconds, until_s;
  fl_events *log; /* under mu, as the next */
  bool dismissed;
};

static _Noreturn void give_up(const stop_guard *g) {
  const unsigned long long left = fl_events_drain(g->log, 0);
  if (left > 0)
    fl_error("not stopped after %.0f s, so it is ended: a disk does not answer; %llu events are "
             "not in the event log",
             g->seconds, left);
  else
    fl_error("not stopped after %.0f s, so it is ended: a disk does not answer, or a pass of the "
             "model takes as long",
             g->seconds);
  _exit(fl_exit_status(FL_EFAIL));
}

static void *watch(void *arg) {
  stop_guard *g = arg;
  pthread_mutex_lock(&g->mu);
  while (!g->dismissed && fl_cond_wait(&g->change, &g->mu, g->until_s)) continue;
  if (!g->dismissed) give_up(g);
  pthread_mutex_unlock(&g->mu);
  return NULL;
}

static void guard_free(stop_guard *g) {
  pthread_cond_destroy(&g->change);
  pthread_mutex_destroy(&g->mu);
  fl_free(g);
}

stop_guard *stop_guard_start(double seconds, fl_events *log) {
  stop_guard *g = fl_calloc(1, sizeof *g);
  if (g == NULL) return NULL;
  g->seconds = seconds;
  g->log = log;
  g->until_s = fl_now_s() + seconds;
  pthread_mutex_init(&g->mu, NULL);
  fl_cond_init(&g->change);
  if (pthread_create(&g->thread, NULL, watch, g) == 0) return g;
  guard_free(g);
  return NULL;
}

void stop_guard_forget_log(stop_guard *g) {
  if (g == NULL) return;
  pthread_mutex_lock(&g->mu);
  g->log = NULL;
  pthread_mutex_unlock(&g->mu);
}

void stop_guard_dismiss(stop_guard *g) {
  if (g == NULL) return;
  pthread_mutex_lock(&g->mu);
  g->dismissed = true;
  pthread_cond_signal(&g->change);
  pthread_mutex_unlock(&g->mu);
  pthread_join(g->thread, NULL);
  guard_free(g);
}
