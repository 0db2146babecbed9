/* cond.h - conditions that are waited for up to a moment of fl_now_s(), whatever is done to the
 * calendar meanwhile. */
#ifndef FL_BASE_COND_H
#define FL_BASE_COND_H

#include <pthread.h>
#include <stdbool.h>

/* For fl_cond_wait; pthread_cond_destroy ends it. */
void fl_cond_init(pthread_cond_t *c);
/* As pthread_cond_wait, which may return for no reason, but false when it is until_s; INFINITY:
 * never. */
bool fl_cond_wait(pthread_cond_t *c, pthread_mutex_t *mu, double until_s);

#endif
