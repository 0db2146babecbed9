/* check_worker.c - the order of tasks, the clock of progress, and a thread that is left behind. */
#include <math.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/worker.h"
#include "suite.h"

enum { TASKS = 8 };

/* What a test and its worker share; static, for a thread that is left behind. */
typedef struct bench {
  fl_worker *worker;
  fl_task hang, task[TASKS];
  int pipe[2]; /* a disk: it hangs until something is written */

  /* Under the worker's lock. */
  int order[4 * TASKS], n_runs, n_done;

  /* Outlives the worker. */
  pthread_mutex_t mu;
  pthread_cond_t change;
  bool reading;
  int released;
} bench;

static bench b = { .mu = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER };

static void read_pipe(fl_task *t) {
  char byte;
  (void)t;
  pthread_mutex_lock(&b.mu);
  b.reading = true;
  pthread_cond_broadcast(&b.change);
  pthread_mutex_unlock(&b.mu);
  ck_assert_int_eq(read(b.pipe[0], &byte, 1), 1);
}

static void note(fl_task *t) {
  fl_worker_lock(b.worker);
  b.order[b.n_runs++] = (int)(t - b.task);
  fl_worker_unlock(b.worker);
}

static void count_done(fl_task *t) {
  ck_assert_ptr_eq(t->ctx, &b);
  b.n_done++;
}

static void release(void *ctx) {
  bench *x = ctx;
  pthread_mutex_lock(&x->mu);
  x->released++;
  pthread_cond_broadcast(&x->change);
  pthread_mutex_unlock(&x->mu);
}

static void begin(double patience_s) {
  const fl_worker_options o = { .patience_s = patience_s, .release = release, .ctx = &b };
  ck_assert_int_eq(pipe(b.pipe), 0);
  b.hang = (fl_task){ .run = read_pipe, .done = count_done, .ctx = &b };
  for (int i = 0; i < TASKS; i++)
    b.task[i] = (fl_task){ .run = note, .done = count_done, .ctx = &b };
  ck_assert_int_eq(fl_worker_start(&b.worker, &o, NULL), FL_OK);
}

static void submit(fl_task *t, double due_s) {
  fl_worker_lock(b.worker);
  fl_worker_submit(b.worker, t, due_s);
  fl_worker_unlock(b.worker);
}

/* The worker is in a read that does not return. */
static void hang(void) {
  submit(&b.hang, 0);
  pthread_mutex_lock(&b.mu);
  while (!b.reading) pthread_cond_wait(&b.change, &b.mu);
  b.reading = false;
  pthread_mutex_unlock(&b.mu);
}

static void go_on(void) { ck_assert_int_eq(write(b.pipe[1], "x", 1), 1); }

static void wait_released(void) {
  pthread_mutex_lock(&b.mu);
  while (b.released == 0) pthread_cond_wait(&b.change, &b.mu);
  pthread_mutex_unlock(&b.mu);
}

static void check_order(const int *want, int n) {
  ck_assert(fl_worker_wait(b.worker, NULL, INFINITY));
  ck_assert_int_eq(b.n_runs, n);
  for (int i = 0; i < n; i++) ck_assert_int_eq(b.order[i], want[i]);
}

START_TEST(the_lowest_rank_first_then_the_oldest) {
  static const int rank[TASKS] = { 2, 0, 1, 2, 0, -1, 1, 2 },
                   want[TASKS] = { 5, 1, 4, 2, 6, 0, 3, 7 };
  begin(1e9);
  hang();
  for (int i = 0; i < TASKS; i++) {
    b.task[i].rank = rank[i];
    submit(&b.task[i], 0);
  }
  go_on();
  check_order(want, TASKS);
  ck_assert_int_eq(b.n_done, TASKS + 1);
  ck_assert(!fl_worker_close(b.worker));
  ck_assert_int_eq(b.released, 1);
}
END_TEST

static void again_at_first(fl_task *t) {
  note(t);
  fl_worker_lock(b.worker);
  if (b.n_runs == 1) fl_worker_submit(b.worker, t, 0);
  ck_assert(fl_worker_has(b.worker, t));
  fl_worker_unlock(b.worker);
}

/* Twice in the queue is once; in the queue while it runs is once more. */
START_TEST(a_task_is_submitted_again) {
  static const int want[] = { 0, 0, 1 };
  begin(1e9);
  b.task[0].run = again_at_first;
  b.task[1].rank = 1;
  hang();
  for (int i = 0; i < 3; i++) submit(&b.task[0], 0);
  submit(&b.task[1], 0);
  go_on();
  check_order(want, 3);
  fl_worker_close(b.worker);
}
END_TEST

/* A task waits for its moment while others run; an earlier moment counts, a later one does not. */
START_TEST(a_task_has_its_moment) {
  static const int want[] = { 3, 1, 0, 2 };
  begin(1e9);
  const double now = fl_now_s();
  submit(&b.task[0], INFINITY);
  submit(&b.task[1], now + 0.02);
  submit(&b.task[1], now + 1e6);
  submit(&b.task[2], INFINITY);
  submit(&b.task[3], 0);
  ck_assert(fl_worker_wait(b.worker, &b.task[1], INFINITY));
  ck_assert_double_ge(fl_now_s(), now + 0.02 - 1e-6);
  fl_worker_lock(b.worker);
  ck_assert(fl_worker_has(b.worker, &b.task[0]));
  ck_assert(!fl_worker_has(b.worker, &b.task[1]));
  ck_assert_int_eq(b.n_runs, 2);
  fl_worker_unlock(b.worker);
  submit(&b.task[0], 0);
  ck_assert(fl_worker_wait(b.worker, &b.task[0], INFINITY));
  submit(&b.task[2], now);
  check_order(want, 4);
  fl_worker_close(b.worker);
}
END_TEST

START_TEST(a_wait_ends_at_its_moment) {
  begin(1e9);
  hang();
  submit(&b.task[0], 0);
  ck_assert(!fl_worker_wait(b.worker, NULL, 0));
  ck_assert(!fl_worker_wait(b.worker, &b.task[0], fl_now_s() + 0.01));
  ck_assert(!fl_worker_wait(b.worker, &b.hang, 0));
  ck_assert(fl_worker_wait(b.worker, &b.task[1], 0)); /* was never submitted */
  go_on();
  ck_assert(fl_worker_wait(b.worker, NULL, INFINITY));
  fl_worker_close(b.worker);
}
END_TEST

/* With no patience at all, what runs has stalled as soon as its clock has moved; without a task
 * there is nothing that could. */
START_TEST(stalled_is_running_without_progress) {
  begin(0);
  ck_assert(!fl_worker_stalled(b.worker));
  submit(&b.task[0], INFINITY);
  ck_assert(!fl_worker_stalled(b.worker));
  hang();
  while (!fl_worker_stalled(b.worker)) continue;
  ck_assert(!fl_worker_finish(b.worker));
  submit(&b.task[0], 0);
  go_on();
  ck_assert(fl_worker_wait(b.worker, NULL, INFINITY));
  ck_assert(!fl_worker_stalled(b.worker));
  ck_assert(fl_worker_finish(b.worker));
  fl_worker_close(b.worker);
}
END_TEST

START_TEST(patience_is_counted_from_the_last_progress) {
  begin(0.5);
  hang();
  ck_assert(!fl_worker_finish(b.worker));
  ck_assert(fl_worker_stalled(b.worker));
  fl_worker_progress(b.worker);
  ck_assert(!fl_worker_stalled(b.worker));
  go_on();
  ck_assert(fl_worker_finish(b.worker));
  fl_worker_close(b.worker);
}
END_TEST

static void slow_but_sure(fl_task *t) {
  const double until = fl_now_s() + 1.25;
  (void)t;
  pthread_mutex_lock(&b.mu);
  while (fl_now_s() < until) {
    fl_worker_progress(b.worker);
    (void)fl_cond_wait(&b.change, &b.mu, fl_now_s() + 0.001);
  }
  pthread_mutex_unlock(&b.mu);
}

/* Work that takes longer than the patience is waited for while it goes on. */
START_TEST(progress_is_waited_for) {
  pthread_cond_destroy(&b.change);
  fl_cond_init(&b.change);
  begin(0.5);
  b.task[0].run = slow_but_sure;
  submit(&b.task[0], 0);
  ck_assert(fl_worker_finish(b.worker));
  fl_worker_close(b.worker);
}
END_TEST

/* It hangs: nobody waits, nothing else is run, nobody is told any more; the context lives until the
 * thread comes back, and goes then. */
START_TEST(a_hung_worker_is_left_behind) {
  begin(1e9);
  hang();
  submit(&b.task[0], 0);
  submit(&b.task[1], INFINITY);
  ck_assert(fl_worker_close(b.worker));
  ck_assert(!b.task[0].queued && !b.task[1].queued);
  pthread_mutex_lock(&b.mu);
  ck_assert_int_eq(b.released, 0);
  pthread_mutex_unlock(&b.mu);
  go_on();
  wait_released();
  ck_assert_int_eq(b.n_runs + b.n_done, 0);
  ck_assert_int_eq(b.released, 1);
}
END_TEST

/* One that does not hang takes its thread along, whatever waits for a moment to come. */
START_TEST(an_idle_worker_is_closed) {
  ck_assert(!fl_worker_close(NULL));
  begin(1e9);
  submit(&b.task[0], INFINITY);
  submit(&b.task[1], 0);
  ck_assert(fl_worker_wait(b.worker, &b.task[1], INFINITY));
  ck_assert(!fl_worker_close(b.worker));
  ck_assert_int_eq(b.released, 1);
  ck_assert_int_eq(b.n_runs, 1);
}
END_TEST

Suite *suite_worker(void);
Suite *suite_worker(void) {
  Suite *s = suite_create("worker");
  TCase *t = tcase_create("core");
  tcase_add_test(t, the_lowest_rank_first_then_the_oldest);
  tcase_add_test(t, a_task_is_submitted_again);
  tcase_add_test(t, a_task_has_its_moment);
  tcase_add_test(t, a_wait_ends_at_its_moment);
  tcase_add_test(t, stalled_is_running_without_progress);
  tcase_add_test(t, patience_is_counted_from_the_last_progress);
  tcase_add_test(t, progress_is_waited_for);
  tcase_add_test(t, a_hung_worker_is_left_behind);
  tcase_add_test(t, an_idle_worker_is_closed);
  suite_add_tcase(s, t);
  return s;
}
