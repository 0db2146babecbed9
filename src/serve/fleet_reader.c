/* fleet_reader.c - see loader.h. */
#include "serve/fleet_reader.h"

#include <math.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/cond.h"
#include "retrieval/retrieval.h"

struct fl_fleet_reader {
  fl_fleet_reader_options o;
  char *dir, *path;
  pthread_t thread;
  pthread_mutex_t mu;
  pthread_cond_t change;
  struct stat seen; /* the thread's: of the file that was read last; size -1: none */

  /* Under mu. */
  fl_fetch_plan *supply; /* to be read */
  bool asked;            /* for a look */
  fl_loaded out;         /* not taken yet */
  bool busy, stop;       /* with the disk; to end, and nobody wants anything any more */
};

static void loaded_release(fl_loaded *l) {
  fl_manifest_release(&l->now);
  fl_index_free(l->index);
  fl_fetch_plan_free(l->supply);
  *l = (fl_loaded){ 0 };
}

static void loader_free(fl_fleet_reader *w) {
  if (w->o.gone != NULL) w->o.gone(w->o.ctx);
  pthread_cond_destroy(&w->change);
  pthread_mutex_destroy(&w->mu);
  loaded_release(&w->out);
  fl_fetch_plan_free(w->supply);
  fl_free(w->dir);
  fl_free(w->path);
  fl_free(w);
}

/* --- with the disk --- */

static bool is_seen(fl_fleet_reader *w) {
  struct stat st;
  if (stat(w->path, &st) != 0) return false; /* reading it will say why */
  const bool same = st.st_ino == w->seen.st_ino && st.st_dev == w->seen.st_dev &&
                    st.st_size == w->seen.st_size && st.st_mtim.tv_sec == w->seen.st_mtim.tv_sec &&
                    st.st_mtim.tv_nsec == w->seen.st_mtim.tv_nsec;
  w->seen = st;
  return same;
}

static void go_to_disk(const fl_fleet_reader *w) {
  if (w->o.reading != NULL) w->o.reading(w->o.reading_ctx);
}

/* The manifest and its index; one that cannot be read is asked for again by who needs it. */
static void look(fl_fleet_reader *w, fl_loaded *l) {
  l->any = true;
  l->rc = fl_manifest_load(&l->now, w->dir, &l->err);
  if (l->rc != FL_OK) w->seen.st_size = -1; /* again the next time */
  else l->index_rc = fl_manifest_read_index(&l->index, &l->now, w->dir, w->o.dim, &l->index_err);
}

static void load(fl_fleet_reader *w, fl_fetch_plan *s, fl_loaded *l) {
  go_to_disk(w);
  l->supply = s;
  l->supply_rc = fl_fetch_plan_read(l->supply, &l->supply_err);
  if (l->supply_rc == FL_ENOENT) look(w, l);
}

/* --- the thread --- */

/* What was found goes to who takes it next; a manifest that nobody took is out of date. Under
 * mu. */
static void hand_over(fl_fleet_reader *w, fl_loaded *l) {
  if (l->any) {
    fl_manifest_release(&w->out.now);
    fl_index_free(w->out.index);
    w->out.any = true;
    w->out.rc = l->rc;
    w->out.err = l->err;
    w->out.now = l->now;
    w->out.index = l->index;
    w->out.index_rc = l->index_rc;
    w->out.index_err = l->index_err;
  }
  if (l->supply == NULL) return;
  w->out.supply = l->supply;
  w->out.supply_rc = l->supply_rc;
  w->out.supply_err = l->supply_err;
}

/* Under mu: waits for its turn, something that is wanted or a stop. */
static void wait_for_work(fl_fleet_reader *w, double until) {
  while (!w->stop && w->supply == NULL && !w->asked && fl_cond_wait(&w->change, &w->mu, until))
    continue;
}

static double next_look(const fl_fleet_reader *w) {
  return w->o.every_s > 0 ? fl_now_s() + w->o.every_s : (double)INFINITY;
}

/* What is wanted, and what it is time for. */
static void work_once(fl_fleet_reader *w, fl_fetch_plan *s, bool asked, double *until,
                      fl_loaded *l) {
  if (s != NULL) load(w, s, l);
  if (asked && !l->any) {
    go_to_disk(w);
    look(w, l);
  }
  if (fl_now_s() < *until) return;
  if (!l->any && !is_seen(w)) look(w, l);
  *until = next_look(w);
}

static void *run(void *arg) {
  fl_fleet_reader *w = arg;
  double until = next_look(w);
  pthread_mutex_lock(&w->mu);
  for (;;) {
    fl_loaded l = { 0 };
    wait_for_work(w, until);
    if (w->stop) break;
    fl_fetch_plan *s = w->supply;
    const bool asked = w->asked;
    w->supply = NULL;
    w->asked = false;
    w->busy = true;
    pthread_mutex_unlock(&w->mu);
    work_once(w, s, asked, &until, &l);
    pthread_mutex_lock(&w->mu);
    w->busy = false;
    const bool any = l.any || l.supply != NULL;
    hand_over(w, &l);
    if (w->stop) { /* left behind: nobody else has it any more */
      pthread_mutex_unlock(&w->mu);
      loader_free(w);
      return NULL;
    }
    pthread_mutex_unlock(&w->mu);
    if (any) w->o.ready(w->o.ctx);
    pthread_mutex_lock(&w->mu);
  }
  pthread_mutex_unlock(&w->mu);
  return NULL;
}

/* --- others --- */

int fl_fleet_reader_start(fl_fleet_reader **out, const fl_fleet_reader_options *o, fl_err *err) {
  fl_fleet_reader *w = fl_calloc(1, sizeof *w);
  if (w == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for the server");
  pthread_mutex_init(&w->mu, NULL);
  fl_cond_init(&w->change);
  w->dir = fl_strdup(o->dir);
  w->path = fl_fs_join(o->dir, FL_MANIFEST_FILE);
  w->seen.st_size = -1;
  w->o = *o;
  int rc = w->dir != NULL && w->path != NULL
               ? FL_OK
               : fl_fail(err, FL_ENOMEM, "not enough memory for the server");
  if (rc == FL_OK && pthread_create(&w->thread, NULL, run, w) != 0)
    rc = fl_fail(err, FL_EFAIL, "the system gives no thread to read the fleet");
  if (rc == FL_OK) {
    *out = w;
    return rc;
  }
  w->o.gone = NULL; /* the caller's, still */
  loader_free(w);
  return rc;
}

void fl_fleet_reader_begin(fl_fleet_reader *w, fl_fetch_plan *s) {
  pthread_mutex_lock(&w->mu);
  w->supply = s;
  pthread_cond_signal(&w->change);
  pthread_mutex_unlock(&w->mu);
}

void fl_fleet_reader_look(fl_fleet_reader *w) {
  pthread_mutex_lock(&w->mu);
  w->asked = true;
  pthread_cond_signal(&w->change);
  pthread_mutex_unlock(&w->mu);
}

void fl_fleet_reader_take(fl_fleet_reader *w, fl_loaded *out) {
  pthread_mutex_lock(&w->mu);
  *out = w->out;
  w->out = (fl_loaded){ 0 };
  pthread_mutex_unlock(&w->mu);
}

void fl_fleet_reader_stop(fl_fleet_reader *w) {
  if (w == NULL) return;
  pthread_mutex_lock(&w->mu);
  w->stop = true;
  const bool left = w->busy;
  if (left) pthread_detach(w->thread);
  pthread_cond_signal(&w->change);
  pthread_mutex_unlock(&w->mu);
  if (left) return;
  pthread_join(w->thread, NULL);
  loader_free(w);
}
