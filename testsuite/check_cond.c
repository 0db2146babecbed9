/* check_cond.c - waiting up to a moment. */
#include <math.h>

#include "base/clock.h"
#include "base/cond.h"
#include "suite.h"

typedef struct post {
  pthread_mutex_t mu;
  pthread_cond_t changed;
  bool done;
} post;

static void *change(void *arg) {
  post *p = arg;
  pthread_mutex_lock(&p->mu);
  p->done = true;
  pthread_cond_signal(&p->changed);
  pthread_mutex_unlock(&p->mu);
  return NULL;
}

static void post_init(post *p) {
  *p = (post){ .done = false };
  pthread_mutex_init(&p->mu, NULL);
  fl_cond_init(&p->changed);
}

static void post_end(post *p) {
  pthread_cond_destroy(&p->changed);
  pthread_mutex_destroy(&p->mu);
}

/* Nobody signals: the moment ends it, and not before. */
START_TEST(a_moment_ends_it) {
  static const double after_s[] = { -5, 0, 0.02 };
  post p;
  post_init(&p);
  pthread_mutex_lock(&p.mu);
  for (int i = 0; i < 3; i++) {
    const double until = fl_now_s() + after_s[i];
    while (fl_cond_wait(&p.changed, &p.mu, until)) continue;
    ck_assert_double_ge(fl_now_s(), until - 1e-6); /* whole nanoseconds of a double's microsecond */
  }
  pthread_mutex_unlock(&p.mu);
  post_end(&p);
}
END_TEST

START_TEST(somebody_signals) {
  const double until_s[] = { INFINITY, fl_now_s() + 3600 };
  for (int i = 0; i < 2; i++) {
    post p;
    pthread_t t;
    post_init(&p);
    pthread_mutex_lock(&p.mu);
    ck_assert_int_eq(pthread_create(&t, NULL, change, &p), 0);
    while (!p.done) ck_assert(fl_cond_wait(&p.changed, &p.mu, until_s[i]));
    pthread_mutex_unlock(&p.mu);
    pthread_join(t, NULL);
    post_end(&p);
  }
}
END_TEST

Suite *suite_cond(void);
Suite *suite_cond(void) {
  Suite *s = suite_create("cond");
  TCase *t = tcase_create("core");
  tcase_add_test(t, a_moment_ends_it);
  tcase_add_test(t, somebody_signals);
  suite_add_tcase(s, t);
  return s;
}
