/* follow.c - see follow.h. */
#include "serve/follow.h"

#include <pthread.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/wait.h"

struct fl_follower {
  char *dir, *path;
  double every_s;
  void (*ready)(void *ctx);
  void *ctx;
  pthread_t thread;
  pthread_mutex_t mu;
  pthread_cond_t change;
  struct stat seen;       /* the thread's: of the file that was read last; size -1: none */

  /* Under mu. */
  fl_manifest now;
  int rc;
  fl_err err;
  bool any, stop;
};

static bool is_seen(fl_follower *w) {
  struct stat st;
  if (stat(w->path, &st) != 0) return false; /* reading it will say why */
  const bool same = st.st_ino == w->seen.st_ino && st.st_dev == w->seen.st_dev &&
                    st.st_size == w->seen.st_size &&
                    st.st_mtim.tv_sec == w->seen.st_mtim.tv_sec &&
                    st.st_mtim.tv_nsec == w->seen.st_mtim.tv_nsec;
  w->seen = st;
  return same;
}

static void look(fl_follower *w) {
  fl_manifest now = { 0 };
  fl_err err = { 0 };
  if (is_seen(w)) return;
  const int rc = fl_manifest_load(&now, w->dir, &err);
  if (rc != FL_OK) w->seen.st_size = -1; /* again the next time */
  pthread_mutex_lock(&w->mu);
  fl_manifest_release(&w->now); /* one that nobody has taken */
  w->now = now;
  w->rc = rc;
  w->err = err;
  w->any = true;
  pthread_mutex_unlock(&w->mu);
  w->ready(w->ctx);
}

/* False when the thread is to end. */
static bool wait_for_turn(fl_follower *w) {
  const double until = fl_now_s() + w->every_s;
  pthread_mutex_lock(&w->mu);
  while (!w->stop && fl_cond_wait(&w->change, &w->mu, until)) continue;
  const bool go_on = !w->stop;
  pthread_mutex_unlock(&w->mu);
  return go_on;
}

static void *run(void *arg) {
  fl_follower *w = arg;
  while (wait_for_turn(w)) look(w);
  return NULL;
}

static void follower_free(fl_follower *w) {
  pthread_cond_destroy(&w->change);
  pthread_mutex_destroy(&w->mu);
  fl_manifest_release(&w->now);
  fl_free(w->dir);
  fl_free(w->path);
  fl_free(w);
}

int fl_follower_start(fl_follower **out, const char *dir, double every_s, void (*ready)(void *ctx),
                      void *ctx, fl_err *err) {
  fl_follower *w = fl_calloc(1, sizeof *w);
  if (w == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for the server");
  pthread_mutex_init(&w->mu, NULL);
  fl_cond_init(&w->change);
  w->dir = fl_strdup(dir);
  w->path = fl_fs_join(dir, FL_MANIFEST_FILE);
  w->every_s = every_s;
  w->ready = ready;
  w->ctx = ctx;
  w->seen.st_size = -1;
  int rc = w->dir != NULL && w->path != NULL
               ? FL_OK
               : fl_fail(err, FL_ENOMEM, "not enough memory for the server");
  if (rc == FL_OK && pthread_create(&w->thread, NULL, run, w) != 0)
    rc = fl_fail(err, FL_EFAIL, "the system gives no thread to follow the fleet");
  if (rc == FL_OK) *out = w;
  else follower_free(w);
  return rc;
}

int fl_follower_take(fl_follower *w, fl_manifest *now, bool *any, fl_err *err) {
  int rc = FL_OK;
  pthread_mutex_lock(&w->mu);
  *any = w->any;
  if (w->any) {
    rc = w->rc;
    if (rc == FL_OK) *now = w->now;
    else if (err != NULL) *err = w->err;
    w->now = (fl_manifest){ 0 };
    w->any = false;
  }
  pthread_mutex_unlock(&w->mu);
  return rc;
}

void fl_follower_stop(fl_follower *w) {
  if (w == NULL) return;
  pthread_mutex_lock(&w->mu);
  w->stop = true;
  pthread_cond_signal(&w->change);
  pthread_mutex_unlock(&w->mu);
  pthread_join(w->thread, NULL);
  follower_free(w);
}
