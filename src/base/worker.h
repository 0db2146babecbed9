/* worker.h - one thread for work that may wait on a disk, for as long as the disk likes.
 *
 * Nobody has to wait for it, not even a stop: a worker that hangs when it is closed is left behind.
 * Tasks and what they share with the others live in one object, the context. The context has two
 * owners, the thread and the one who started it; whichever ends last releases it.
 *
 * The state of a task, and who changes it:
 *
 *             fl_worker_submit          the thread
 *     FREE --------------------> QUEUED ----------> RUNNING ----------> FREE
 *                                  |                 (submitted meanwhile: QUEUED again)
 *                                  +-- fl_worker_close --> FREE, not run
 *
 * One lock guards the queue and whatever the users of the worker put under it. It is never held
 * while a task runs, unless the task takes it.
 */
#ifndef FL_BASE_WORKER_H
#define FL_BASE_WORKER_H

#include <stdbool.h>

#include "base/err.h"

typedef struct fl_task {
  void (*run)(struct fl_task *t);  /* on the thread */
  void (*done)(struct fl_task *t); /* after `run`, on the thread and under the lock, for telling
                                      others; not called once the worker is closed; may be NULL */
  void *ctx;
  int rank; /* the lowest runs first; of equals the one that was submitted first */

  /* The worker's. */
  struct fl_task *next;
  double due;
  bool queued;
} fl_task;

typedef struct fl_worker fl_worker;

typedef struct fl_worker_options {
  double patience_s;          /* without progress for longer than this it has stalled */
  void (*release)(void *ctx); /* called once, when the thread runs no more tasks */
  void *ctx;
} fl_worker_options;

/* After an error the context is the caller's. */
int fl_worker_start(fl_worker **out, const fl_worker_options *o, fl_err *err);

void fl_worker_lock(fl_worker *w);
void fl_worker_unlock(fl_worker *w);

/* Under the lock. Queues a task to run once fl_now_s() has reached due_s (0: as soon as possible);
 * the earlier moment counts for one that is queued already. It must live until it has run. */
void fl_worker_submit(fl_worker *w, fl_task *t, double due_s);
/* Under the lock: it is queued or running. */
bool fl_worker_has(const fl_worker *w, const fl_task *t);

/* A running task says that the disk has answered. */
void fl_worker_progress(fl_worker *w);
/* A task runs and there has been no progress for patience_s. */
bool fl_worker_stalled(fl_worker *w);

/* Waits until t, or with NULL every task, is neither queued nor running; false: not by until_s. */
bool fl_worker_wait(fl_worker *w, const fl_task *t, double until_s);
/* Waits for every task as long as there is progress; false: it has stalled. Time in which this
 * process was stopped does not count as the disk's. */
bool fl_worker_finish(fl_worker *w);

/* No task starts any more. Ends the thread and releases the context; or, true: a task is running,
 * so it is left behind and the thread releases the context when that task returns. NULL: nothing.
 */
bool fl_worker_close(fl_worker *w);

#endif
