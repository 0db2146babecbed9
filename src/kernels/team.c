/* team.c - a fixed pool of threads that run one function together.
 *
 * Every wait goes through a gate: a counter that somebody advances. A waiter spins for a few
 * microseconds (regions follow one another closely in a forward pass), then yields the processor
 * (on a shared machine the thread it waits for may need it), then sleeps on a condition variable.
 *
 * Beside other programs yielding is the wrong thing to do: newer schedulers (Linux since 6.18) take
 * a whole time slice from a thread for each yield that somebody else uses, and a team that yielded
 * on came down to a few regions a second. Whoever sleeps keeps its share. So a yield that comes
 * back late makes the next waits go to sleep at once.
 *
 * Why no wake-up is lost: a waiter raises `sleepers` and then reads `value`, the advancer writes
 * `value` and then reads `sleepers`, all sequentially consistent. Either the waiter sees the new
 * value, or the advancer sees the sleeper, and its broadcast waits for the mutex that the waiter
 * holds from before its look at `value` until it sleeps.
 */
#include "kernels/team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

enum {
  SPINS = 100, /* a few microseconds; more cost up to 10 times on a machine that has other work */
  YIELDS = 1000,
  PENALTY_MIN = 8, /* waits after it that sleep at once */
  PENALTY_MAX = 16384,
  THREADS_MAX = 1024
};
static const double late_s = 5e-4; /* a yield that another program used */

typedef struct gate {
  _Alignas(FL_ALIGN) atomic_uint value;
  atomic_uint sleepers;
  pthread_mutex_t mutex;
  pthread_cond_t moved;
} gate;

typedef struct worker {
  fl_team *team;
  pthread_t thread;
  unsigned rank;
} worker;

struct fl_team {
  gate start, done, barrier;
  _Alignas(FL_ALIGN) atomic_uint pending; /* workers that still run fn */
  _Alignas(FL_ALIGN) atomic_uint arrived; /* ranks in the barrier */
  _Alignas(FL_ALIGN) atomic_uint crowded; /* waits that are still to sleep without yielding */
  atomic_uint penalty; /* what `crowded` was set to last, less what went well since */
  /* Written by the caller before it advances `start`, read by workers after. */
  _Alignas(FL_ALIGN) fl_team_fn *fn;
  void *ctx;
  bool stop;
  unsigned n, n_started, spins;
  fl_work work;    /* the caller's alone */
  worker *workers; /* [n - 1], rank i + 1 */
};

static inline void pause_cpu(void) {
#if defined __x86_64__ || defined __i386__
  __builtin_ia32_pause();
#elif defined __aarch64__
  __asm__ volatile("yield");
#endif
}

static void gate_init(gate *g) {
  atomic_init(&g->value, 0);
  atomic_init(&g->sleepers, 0);
  pthread_mutex_init(&g->mutex, NULL);
  pthread_cond_init(&g->moved, NULL);
}

static void gate_release(gate *g) {
  pthread_cond_destroy(&g->moved);
  pthread_mutex_destroy(&g->mutex);
}

static void gate_advance(gate *g) {
  atomic_fetch_add(&g->value, 1);
  if (atomic_load(&g->sleepers) == 0) return;
  pthread_mutex_lock(&g->mutex);
  pthread_cond_broadcast(&g->moved);
  pthread_mutex_unlock(&g->mutex);
}

static void gate_sleep(gate *g, unsigned old) {
  pthread_mutex_lock(&g->mutex);
  atomic_fetch_add(&g->sleepers, 1);
  while (atomic_load(&g->value) == old) pthread_cond_wait(&g->moved, &g->mutex);
  atomic_fetch_sub(&g->sleepers, 1);
  pthread_mutex_unlock(&g->mutex);
}

/* True when the gate moved. After a late yield twice as many waits are to sleep as after the last
 * one; a wait that ended well halves that. */
static bool gate_yield(fl_team *t, gate *g, unsigned old) {
  unsigned penalty = atomic_load_explicit(&t->penalty, memory_order_relaxed);
  double before = fl_now_s();
  for (unsigned i = 0; i < YIELDS; i++) {
    if (atomic_load_explicit(&g->value, memory_order_acquire) != old) {
      if (penalty > 0) atomic_store_explicit(&t->penalty, penalty / 2, memory_order_relaxed);
      return true;
    }
    sched_yield();
    const double after = fl_now_s();
    if (after - before > late_s) {
      penalty = penalty == 0 ? PENALTY_MIN : penalty < PENALTY_MAX ? 2 * penalty : penalty;
      atomic_store_explicit(&t->penalty, penalty, memory_order_relaxed);
      atomic_store_explicit(&t->crowded, penalty, memory_order_relaxed);
      return false;
    }
    before = after;
  }
  return false;
}

/* Returns when the gate's value is no longer `old`. */
static void gate_wait(fl_team *t, gate *g, unsigned old) {
  for (unsigned i = 0; i < t->spins; i++) {
    if (atomic_load_explicit(&g->value, memory_order_acquire) != old) return;
    pause_cpu();
  }
  const unsigned crowded = atomic_load_explicit(&t->crowded, memory_order_relaxed);
  if (crowded > 0) atomic_store_explicit(&t->crowded, crowded - 1, memory_order_relaxed);
  else if (gate_yield(t, g, old)) return;
  gate_sleep(g, old);
}

static void *worker_main(void *arg) {
  worker *w = arg;
  fl_team *t = w->team;
  for (unsigned seen = 0;; seen++) {
    gate_wait(t, &t->start, seen);
    if (t->stop) return NULL;
    t->fn(t->ctx, w->rank, t->n);
    if (atomic_fetch_sub(&t->pending, 1) == 1) gate_advance(&t->done);
  }
}

static unsigned cores_available(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  int n = CPU_COUNT(&set);
  return n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : (unsigned)n;
}

/* Starts the workers with all signals blocked, so that handlers run on the program's own thread. */
static int start_workers(fl_team *t) {
  sigset_t all, before;
  sigfillset(&all);
  /* Faults come to the thread that makes them: blocked, they would end the process without a
   * word. */
  static const int faults[] = { SIGBUS, SIGSEGV, SIGFPE, SIGILL };
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&all, faults[i]);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int rc = 0;
  for (unsigned i = 0; i + 1 < t->n && rc == 0; i++) {
    worker *w = &t->workers[i];
    *w = (worker){ .team = t, .rank = i + 1 };
    rc = pthread_create(&w->thread, NULL, worker_main, w);
    if (rc == 0) t->n_started++;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return rc;
}

int fl_team_new(fl_team **out, unsigned n_threads, fl_err *err) {
  if (n_threads > THREADS_MAX)
    return fl_fail(err, FL_EUSAGE, "%u threads are too many; at most %d", n_threads, THREADS_MAX);
  unsigned cores = cores_available();
  fl_team *t = fl_aligned_calloc(1, sizeof *t);
  if (!t) return fl_fail(err, FL_ENOMEM, "no memory for a team of threads");
  t->n = n_threads ? n_threads : cores;
  t->spins = t->n > cores ? 0 : SPINS; /* more threads than cores: whoever spins is in the way */
  gate_init(&t->start);
  gate_init(&t->done);
  gate_init(&t->barrier);
  int rc = FL_OK;
  t->workers = fl_calloc(t->n, sizeof *t->workers);
  if (!t->workers) rc = fl_fail(err, FL_ENOMEM, "no memory for a team of threads");
  int started = rc == FL_OK ? start_workers(t) : 0;
  if (started != 0)
    rc = fl_fail(err, FL_EFAIL, "thread %u of %u does not start (%s); ask for fewer with --threads",
                 t->n_started + 2, t->n, strerror(started));
  if (rc != FL_OK) {
    fl_team_free(t);
    return rc;
  }
  *out = t;
  return FL_OK;
}

void fl_team_free(fl_team *t) {
  if (!t) return;
  t->stop = true;
  gate_advance(&t->start);
  for (unsigned i = 0; i < t->n_started; i++) pthread_join(t->workers[i].thread, NULL);
  gate_release(&t->start);
  gate_release(&t->done);
  gate_release(&t->barrier);
  fl_free(t->workers);
  fl_free(t);
}

unsigned fl_team_size(const fl_team *t) { return t ? t->n : 1; }

void fl_team_count(fl_team *t, double flop, double bytes) {
  if (!t) return;
  t->work.flop += flop;
  t->work.bytes += bytes;
}

fl_work fl_team_work(const fl_team *t) { return t ? t->work : (fl_work){ 0 }; }

void fl_team_run(fl_team *t, fl_team_fn *fn, void *ctx) {
  if (!t || t->n == 1) {
    fn(ctx, 0, 1);
    return;
  }
  t->fn = fn;
  t->ctx = ctx;
  atomic_store(&t->pending, t->n - 1);
  unsigned seen = atomic_load(&t->done.value);
  gate_advance(&t->start);
  fn(ctx, 0, t->n);
  gate_wait(t, &t->done, seen);
}

void fl_team_barrier(fl_team *t) {
  if (!t || t->n == 1) return;
  unsigned seen = atomic_load(&t->barrier.value);
  if (atomic_fetch_add(&t->arrived, 1) + 1 < t->n) {
    gate_wait(t, &t->barrier, seen);
    return;
  }
  atomic_store(&t->arrived, 0);
  gate_advance(&t->barrier);
}
