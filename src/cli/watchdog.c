/* watchdog.c - see watchdog.h. */
#include "cli/watchdog.h"

#include <math.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/worker.h"

struct stop_guard {
  fl_worker *worker;
  fl_task give_up;
  double seconds;
  fl_events *log; /* under the lock, as the next */
  bool dismissed;
};

/* Under the lock, so that nobody dismisses it meanwhile. */
static _Noreturn void end_process(const stop_guard *g) {
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

static void give_up(fl_task *t) {
  const stop_guard *g = t->ctx;
  fl_worker_lock(g->worker);
  if (!g->dismissed) end_process(g);
  fl_worker_unlock(g->worker);
}

stop_guard *stop_guard_start(double seconds, fl_events *log) {
  stop_guard *g = fl_calloc(1, sizeof *g);
  if (g == NULL) return NULL;
  const fl_worker_options o = { .patience_s = (double)INFINITY, .release = fl_free, .ctx = g };
  g->seconds = seconds;
  g->log = log;
  g->give_up = (fl_task){ .run = give_up, .ctx = g };
  if (fl_worker_start(&g->worker, &o, NULL) != FL_OK) {
    fl_free(g);
    return NULL;
  }
  fl_worker_lock(g->worker);
  fl_worker_submit(g->worker, &g->give_up, fl_now_s() + seconds);
  fl_worker_unlock(g->worker);
  return g;
}

void stop_guard_forget_log(stop_guard *g) {
  if (g == NULL) return;
  fl_worker_lock(g->worker);
  g->log = NULL;
  fl_worker_unlock(g->worker);
}

void stop_guard_dismiss(stop_guard *g) {
  if (g == NULL) return;
  fl_worker_lock(g->worker);
  g->dismissed = true;
  fl_worker_unlock(g->worker);
  (void)fl_worker_close(g->worker);
}
