/* cond.c - see cond.h. */
#include "base/cond.h"

#include <errno.h>
#include <math.h>
#include <time.h>

/* The clock of fl_now_s(). */
void fl_cond_init(pthread_cond_t *c) {
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(c, &attr);
  pthread_condattr_destroy(&attr);
}

bool fl_cond_wait(pthread_cond_t *c, pthread_mutex_t *mu, double until_s) {
  if (!(until_s < 1e15)) return pthread_cond_wait(c, mu) == 0;
  const double whole = floor(until_s);
  const struct timespec t = { .tv_sec = (time_t)whole, .tv_nsec = (long)((until_s - whole) * 1e9) };
  return pthread_cond_timedwait(c, mu, &t) != ETIMEDOUT;
}
