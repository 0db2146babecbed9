/* dist_util.h - ranks that are threads of one process: the transport of fl_dist over shared
 * memory. */
#ifndef FL_TESTSUITE_DIST_UTIL_H
#define FL_TESTSUITE_DIST_UTIL_H

#include <pthread.h>
#include <string.h>

#include "suite.h"
#include "train/dist.h"

enum { RANKS_MAX = 8 };

typedef struct ranks ranks;
typedef struct rank_thread {
  ranks *all;
  size_t rank;
  fl_dist *dist;
  pthread_t thread;
} rank_thread;

struct ranks {
  size_t n;
  pthread_barrier_t here;
  const void *given[RANKS_MAX]; /* what each rank brought to the running call */
  void (*run)(void *ctx, fl_dist *d);
  void *ctx;
  size_t broken_at; /* the call of this number fails on every rank; 0: none */
  size_t n_calls[RANKS_MAX];
  rank_thread thread[RANKS_MAX];
};

static inline bool rank_breaks(rank_thread *t) {
  return ++t->all->n_calls[t->rank] == t->all->broken_at;
}

static inline int rank_gather_each(void *ctx, void *all, const void *mine, const size_t *n_bytes) {
  rank_thread *t = ctx;
  char *to = all;
  if (rank_breaks(t)) return FL_EFAIL;
  t->all->given[t->rank] = mine;
  pthread_barrier_wait(&t->all->here);
  for (size_t r = 0; r < t->all->n; to += n_bytes[r++])
    if (n_bytes[r] > 0) memcpy(to, t->all->given[r], n_bytes[r]);
  pthread_barrier_wait(&t->all->here);
  return FL_OK;
}

static inline int rank_gather(void *ctx, void *all, const void *mine, size_t n_bytes) {
  size_t each[RANKS_MAX];
  for (size_t r = 0; r < RANKS_MAX; r++) each[r] = n_bytes;
  return rank_gather_each(ctx, all, mine, each);
}

static inline int rank_scatter(void *ctx, void *mine, const void *block, const size_t *n_bytes,
                               size_t root) {
  rank_thread *t = ctx;
  size_t at = 0;
  if (rank_breaks(t)) return FL_EFAIL;
  if (t->rank == root) t->all->given[root] = block;
  pthread_barrier_wait(&t->all->here);
  for (size_t r = 0; r < t->rank; r++) at += n_bytes[r];
  memcpy(mine, (const char *)t->all->given[root] + at, n_bytes[t->rank]);
  pthread_barrier_wait(&t->all->here);
  return FL_OK;
}

static const fl_dist_ops rank_ops = { rank_gather, rank_gather_each, rank_scatter };

static inline void *rank_main(void *arg) {
  rank_thread *t = arg;
  t->all->run(t->all->ctx, t->dist);
  return NULL;
}

/* Runs run(ctx, dist) on n ranks and waits for all; with n == 1 dist is NULL. */
static inline void run_ranks_breaking(size_t n, size_t broken_at, void (*run)(void *, fl_dist *),
                                      void *ctx) {
  ranks r = { .n = n, .run = run, .ctx = ctx, .broken_at = broken_at };
  if (n == 1) {
    run(ctx, NULL);
    return;
  }
  pthread_barrier_init(&r.here, NULL, (unsigned)n);
  for (size_t i = 0; i < n; i++) {
    r.thread[i] = (rank_thread){ .all = &r, .rank = i };
    ck_assert_int_eq(fl_dist_new(&r.thread[i].dist, i, n, &rank_ops, &r.thread[i], NULL), FL_OK);
  }
  for (size_t i = 0; i < n; i++)
    ck_assert_int_eq(pthread_create(&r.thread[i].thread, NULL, rank_main, &r.thread[i]), 0);
  for (size_t i = 0; i < n; i++) pthread_join(r.thread[i].thread, NULL);
  for (size_t i = 0; i < n; i++) fl_dist_free(r.thread[i].dist);
  pthread_barrier_destroy(&r.here);
}

static inline void run_ranks(size_t n, void (*run)(void *, fl_dist *), void *ctx) {
  run_ranks_breaking(n, 0, run, ctx);
}

#endif
