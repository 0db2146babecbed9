/* check_team.c - the pool of threads: every rank runs once per region, memory is visible across a
 * region and a barrier, and waits end whichever way they wait (spinning, yielding, asleep). */
#include "kernels/team.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "suite.h"

enum { MAX_RANKS = 8 };

typedef struct counts {
  fl_team *team;
  unsigned n;               /* as the function saw it */
  unsigned runs[MAX_RANKS]; /* written by the rank alone */
  unsigned long sum[MAX_RANKS];
} counts;

static void count_run(void *ctx, unsigned rank, unsigned n_ranks) {
  counts *c = ctx;
  if (rank == 0) c->n = n_ranks;
  c->runs[rank]++;
}

START_TEST(every_rank_runs_once) {
  unsigned n = (unsigned)_i;
  fl_team *t = NULL;
  ck_assert_int_eq(fl_team_new(&t, n, NULL), FL_OK);
  ck_assert_uint_eq(fl_team_size(t), n);
  counts c = { .team = t };
  for (int i = 0; i < 1000; i++) fl_team_run(t, count_run, &c);
  ck_assert_uint_eq(c.n, n);
  for (unsigned r = 0; r < MAX_RANKS; r++) ck_assert_uint_eq(c.runs[r], r < n ? 1000u : 0u);
  fl_team_free(t);
}
END_TEST

/* Each step reads what the neighbour wrote in the step before: wrong without a working barrier. */
static void pass_round(void *ctx, unsigned rank, unsigned n_ranks) {
  counts *c = ctx;
  for (int step = 0; step < 300; step++) {
    unsigned long next = c->sum[(rank + 1) % n_ranks] + 1;
    fl_team_barrier(c->team);
    c->sum[rank] = next;
    fl_team_barrier(c->team);
  }
}

START_TEST(barrier_orders_memory) {
  counts c = { 0 };
  ck_assert_int_eq(fl_team_new(&c.team, (unsigned)_i, NULL), FL_OK);
  fl_team_run(c.team, pass_round, &c);
  for (int r = 0; r < _i; r++) ck_assert_uint_eq(c.sum[r], 300);
  fl_team_free(c.team);
}
END_TEST

/* Rank 1 comes so late that the others have gone to sleep in the barrier. */
static void late_rank(void *ctx, unsigned rank, unsigned n_ranks) {
  counts *c = ctx;
  (void)n_ranks;
  if (rank == 1)
    for (int i = 0; i < 20000; i++) sched_yield();
  fl_team_barrier(c->team);
  c->runs[rank]++;
}

START_TEST(sleepers_wake) {
  counts c = { 0 };
  ck_assert_int_eq(fl_team_new(&c.team, 3, NULL), FL_OK);
  for (int i = 0; i < 5; i++) {
    fl_team_run(c.team, late_rank, &c);
    for (int j = 0; j < 20000; j++) sched_yield(); /* workers pass their yields and sleep */
  }
  for (int r = 0; r < 3; r++) ck_assert_uint_eq(c.runs[r], 5);
  fl_team_free(c.team);
}
END_TEST

START_TEST(null_team_is_the_caller) {
  counts c = { 0 };
  ck_assert_uint_eq(fl_team_size(NULL), 1);
  fl_team_run(NULL, count_run, &c);
  fl_team_barrier(NULL);
  ck_assert_uint_eq(c.n, 1);
  ck_assert_uint_eq(c.runs[0], 1);
  fl_team_free(NULL);
}
END_TEST

START_TEST(zero_means_the_cores) {
  fl_team *t = NULL;
  ck_assert_int_eq(fl_team_new(&t, 0, NULL), FL_OK);
  ck_assert_uint_ge(fl_team_size(t), 1);
  ck_assert_uint_le(fl_team_size(t), (unsigned)sysconf(_SC_NPROCESSORS_CONF));
  fl_team_free(t);
}
END_TEST

START_TEST(too_many_is_refused) {
  fl_team *t = NULL;
  fl_err err = { 0 };
  ck_assert_int_eq(fl_team_new(&t, 1025, &err), FL_EUSAGE);
  ck_assert_ptr_null(t);
  ck_assert_ptr_nonnull(strstr(err.text, "1025"));
}
END_TEST

START_TEST(memory_faults) {
  for (size_t n = 1; n <= 2; n++) {
    fl_team *t = NULL;
    fl_mem_fault_after(n);
    int rc = fl_team_new(&t, 2, NULL);
    fl_mem_fault_after(0);
    ck_assert_int_eq(rc, FL_ENOMEM);
    ck_assert_ptr_null(t);
  }
}
END_TEST

START_TEST(shares_cover) {
  for (size_t n = 0; n < 40; n++)
    for (unsigned ranks = 1; ranks < 9; ranks++) {
      size_t at = 0, first, end;
      for (unsigned r = 0; r < ranks; r++) {
        fl_thread_range(n, r, ranks, &first, &end);
        ck_assert_uint_eq(first, at);
        ck_assert_uint_le(end - first, n / ranks + 1);
        at = end;
      }
      ck_assert_uint_eq(at, n);
    }
}
END_TEST

Suite *suite_team(void);
Suite *suite_team(void) {
  Suite *s = suite_create("team");
  TCase *core = tcase_create("core");
  tcase_add_loop_test(core, every_rank_runs_once, 1, 6);
  tcase_add_loop_test(core, barrier_orders_memory, 1, 5);
  tcase_add_test(core, sleepers_wake);
  tcase_add_test(core, null_team_is_the_caller);
  tcase_add_test(core, zero_means_the_cores);
  tcase_add_test(core, shares_cover);
  tcase_set_timeout(core, 60);
  suite_add_tcase(s, core);
  TCase *errors = tcase_create("errors");
  tcase_add_test(errors, too_many_is_refused);
  tcase_add_test(errors, memory_faults);
  suite_add_tcase(s, errors);
  return s;
}
