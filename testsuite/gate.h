/* gate.h - stands for a disk that hangs: threads that are about to use it wait here while the gate
 * is shut. Static, as a thread that was left behind at a stop may still stand in it. */
#ifndef FL_TESTSUITE_GATE_H
#define FL_TESTSUITE_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct gate {
  pthread_mutex_t mu;
  pthread_cond_t moved;
  bool shut;
  size_t came, passes; /* since it was shut; how many may go through nevertheless */
} gate;
#define GATE_OPEN                                                                                  \
  { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0, 0 }

static inline void stand_at_gate(void *ctx) {
  gate *g = ctx;
  pthread_mutex_lock(&g->mu);
  const size_t number = ++g->came;
  pthread_cond_broadcast(&g->moved);
  while (g->shut && number > g->passes) pthread_cond_wait(&g->moved, &g->mu);
  pthread_mutex_unlock(&g->mu);
}

static inline void open_gate(gate *g) {
  pthread_mutex_lock(&g->mu);
  g->shut = false;
  pthread_cond_broadcast(&g->moved);
  pthread_mutex_unlock(&g->mu);
}

static inline void shut_gate(gate *g, size_t passes) {
  pthread_mutex_lock(&g->mu);
  g->shut = true;
  g->came = 0;
  g->passes = passes;
  pthread_mutex_unlock(&g->mu);
}

/* Waits until somebody stands there; how many have come. */
static inline size_t wait_at_gate(gate *g) {
  pthread_mutex_lock(&g->mu);
  while (g->came <= g->passes) pthread_cond_wait(&g->moved, &g->mu);
  const size_t n = g->came;
  pthread_mutex_unlock(&g->mu);
  return n;
}

#endif
