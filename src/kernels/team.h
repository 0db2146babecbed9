/* team.h - a fixed set of threads that run one function together.
 *
 * Work is divided by rank alone (static ownership), so what a thread computes never depends on
 * timing. Threads that wait spin for a few microseconds, then yield, then sleep on a futex: a
 * process beside us loses nothing. The calling thread is rank 0.
 */
#ifndef FL_KERNELS_TEAM_H
#define FL_KERNELS_TEAM_H

#include <stddef.h>

#include "base/err.h"

typedef struct fl_team fl_team;

int fl_team_new(fl_team **out, unsigned n_threads, fl_err *err); /* 1..1024; 0: cores available */
void fl_team_free(fl_team *t);
unsigned fl_team_size(const fl_team *t); /* NULL counts as 1 */

typedef void fl_team_fn(void *ctx, unsigned rank, unsigned n_ranks);
/* Runs fn(ctx, rank, n) on every thread and returns when all are done. Not reentrant; one caller at
 * a time. A NULL team runs fn(ctx, 0, 1). */
void fl_team_run(fl_team *t, fl_team_fn *fn, void *ctx);
/* Waits inside fn until every rank has arrived. */
void fl_team_barrier(fl_team *t);

/* Work that a team was given since its birth: what the matrix products, by far the most of it,
 * multiply (a multiply-add counts two) and read of weights. */
typedef struct fl_work {
  double flop, bytes;
} fl_work;
/* By its caller, outside fn; t may be NULL. */
void fl_team_count(fl_team *t, double flop, double bytes);
fl_work fl_team_work(const fl_team *t);

/* [*first, *end) = the rank's share of n items, contiguous, sizes differing by at most one. */
static inline void fl_thread_range(size_t n, unsigned rank, unsigned n_ranks, size_t *first,
                                   size_t *end) {
  size_t base = n / n_ranks, extra = n % n_ranks;
  *first = base * rank + (rank < extra ? rank : extra);
  *end = *first + base + (rank < extra ? 1 : 0);
}

#endif
