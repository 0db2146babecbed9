/* spill_disk.c - see spill_disk.h. */
#include "serve/spill_disk.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/cond.h"
#include "serve/engine.h"

enum { LOOKS = 20 }; /* in FL_DISK_PATIENCE_S, by those who wait */

struct fl_spill_disk {
  char *dir;
  char model_hash[FL_HASH_TEXT];
  fl_kv_layer *layer;
  fl_spill_shape shape; /* of the above */
  fl_spill_hooks hooks;
  pthread_t thread;
  pthread_mutex_t mu;
  pthread_cond_t work, done; /* for the thread, from it */

  /* Under mu; the lists are changed by the engine's thread alone, but for `gone`. */
  fl_spill_write *write; /* the oldest */
  fl_spill_reading *reading;
  fl_spill_file *gone;   /* to be removed */
  bool busy, stop, left; /* left: to itself, nobody else has it any more */
  uint64_t moves;        /* grows whenever the disk has taken or given something */
  double moved;          /* clock of the last time */
};

static void disk_free(fl_spill_disk *d) {
  for (fl_spill_write *w; (w = d->write) != NULL;) {
    d->write = w->next;
    fl_spill_file_free(w->f);
    fl_free(w);
  }
  for (fl_spill_reading *r; (r = d->reading) != NULL;) {
    d->reading = r->next;
    fl_spill_file_release(&r->f);
    fl_free(r);
  }
  for (fl_spill_file *f; (f = d->gone) != NULL;) {
    d->gone = f->next;
    fl_spill_file_free(f);
  }
  pthread_mutex_destroy(&d->mu);
  pthread_cond_destroy(&d->work);
  pthread_cond_destroy(&d->done);
  fl_free(d->layer);
  fl_free(d->dir);
  fl_free(d);
}

/* --- the thread --- */

static void touch(fl_spill_disk *d) {
  d->moves++;
  d->moved = fl_now_s();
}

static void go_to_disk(fl_spill_disk *d) {
  pthread_mutex_lock(&d->mu);
  const fl_spill_hooks h = d->hooks;
  pthread_mutex_unlock(&d->mu);
  if (h.disk != NULL) h.disk(h.disk_ctx);
}

typedef struct lent {
  fl_spill_disk *d;
  fl_seq *const *seq; /* under mu */
} lent;

static fl_seq *borrow(void *ctx) {
  const lent *l = ctx;
  go_to_disk(l->d);
  pthread_mutex_lock(&l->d->mu);
  touch(l->d);
  if (*l->seq == NULL) pthread_mutex_unlock(&l->d->mu);
  return *l->seq;
}

static void give_back(void *ctx) {
  const lent *l = ctx;
  pthread_mutex_unlock(&l->d->mu);
}

/* These are called with mu held and give it up meanwhile. */
static void write_one(fl_spill_disk *d, fl_spill_write *w) {
  lent l = { d, &w->seq };
  const fl_spill_rows rows = { &l, borrow, give_back };
  pthread_mutex_unlock(&d->mu);
  const int rc = fl_spill_write_file(&d->shape, d->dir, w->f, &rows, &w->why);
  pthread_mutex_lock(&d->mu);
  w->rc = rc;
  w->done = true;
}

static void read_one(fl_spill_disk *d, fl_spill_reading *r) {
  lent l = { d, &r->seq };
  const fl_spill_rows rows = { &l, borrow, give_back };
  pthread_mutex_unlock(&d->mu);
  char *path = fl_fs_join(d->dir, r->f.name);
  const int rc =
      path != NULL ? fl_spill_read_rows(&d->shape, path, &r->f, &rows, r->n, &r->why) : FL_ENOMEM;
  fl_free(path);
  pthread_mutex_lock(&d->mu);
  r->rc = rc;
  r->done = true;
}

static void remove_one(fl_spill_disk *d) {
  fl_spill_file *f = d->gone;
  d->gone = f->next;
  pthread_mutex_unlock(&d->mu);
  go_to_disk(d);
  char *path = fl_fs_join(d->dir, f->name);
  if (path != NULL) (void)fl_fs_remove(path);
  fl_free(path);
  fl_spill_file_free(f);
  pthread_mutex_lock(&d->mu);
}

static fl_spill_write *to_write(const fl_spill_disk *d) {
  fl_spill_write *w = d->write;
  while (w != NULL && w->done) w = w->next;
  return w;
}

static fl_spill_reading *to_read(const fl_spill_disk *d) {
  fl_spill_reading *r = d->reading;
  while (r != NULL && r->done) r = r->next;
  return r;
}

static bool has_work(const fl_spill_disk *d) {
  return d->busy || to_read(d) != NULL || d->gone != NULL || to_write(d) != NULL;
}

static void work_once(fl_spill_disk *d) {
  fl_spill_reading *r = to_read(d);
  const bool removes = r == NULL && d->gone != NULL;
  d->busy = true;
  touch(d);
  if (r != NULL) read_one(d, r);
  else if (removes) remove_one(d);
  else write_one(d, to_write(d));
  d->busy = false;
  touch(d);
  pthread_cond_signal(&d->done);
  if (!removes && !d->left && d->hooks.ready != NULL) d->hooks.ready(d->hooks.ready_ctx);
}

static void *run(void *arg) {
  fl_spill_disk *d = arg;
  pthread_mutex_lock(&d->mu);
  while (!d->left) {
    if (has_work(d)) work_once(d);
    else if (d->stop) break;
    else pthread_cond_wait(&d->work, &d->mu);
  }
  const bool left = d->left;
  pthread_mutex_unlock(&d->mu);
  if (left) disk_free(d);
  return NULL;
}

/* --- start and stop --- */

static bool copy_shape(fl_spill_disk *d, const fl_spill_shape *s) {
  d->layer = fl_calloc(s->n_layers + 1, sizeof *d->layer);
  if (d->layer == NULL) return false;
  memcpy(d->layer, s->layer, s->n_layers * sizeof *d->layer);
  snprintf(d->model_hash, sizeof d->model_hash, "%s", s->model_hash);
  d->shape = *s;
  d->shape.layer = d->layer;
  d->shape.model_hash = d->model_hash;
  return true;
}

int fl_spill_disk_start(fl_spill_disk **out, const char *dir, const fl_spill_shape *shape,
                        fl_err *err) {
  fl_spill_disk *d = fl_calloc(1, sizeof *d);
  int rc = FL_OK;
  if (d == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory", dir);
  pthread_mutex_init(&d->mu, NULL);
  pthread_cond_init(&d->work, NULL);
  fl_cond_init(&d->done);
  d->dir = fl_strdup(dir);
  if (d->dir == NULL || !copy_shape(d, shape))
    rc = fl_fail(err, FL_ENOMEM, "%s: not enough memory", dir);
  if (rc == FL_OK && pthread_create(&d->thread, NULL, run, d) != 0)
    rc = fl_fail(err, FL_EFAIL, "the system gives no thread for %s", dir);
  if (rc == FL_OK) *out = d;
  else disk_free(d);
  return rc;
}

void fl_spill_disk_hooks(fl_spill_disk *d, const fl_spill_hooks *h) {
  pthread_mutex_lock(&d->mu);
  d->hooks = *h;
  pthread_mutex_unlock(&d->mu);
}

/* Under mu. */
static bool stands(const fl_spill_disk *d) {
  return d->busy && fl_now_s() - d->moved > FL_DISK_PATIENCE_S;
}

/* Counts looks and not seconds alone: a process that was stopped for a while blames no disk. */
bool fl_spill_disk_wait(fl_spill_disk *d) {
  pthread_mutex_lock(&d->mu);
  uint64_t seen = d->moves;
  for (int looks = stands(d) ? LOOKS - 1 : 0; has_work(d) && looks < LOOKS; looks++) {
    (void)fl_cond_wait(&d->done, &d->mu, fl_now_s() + FL_DISK_PATIENCE_S / LOOKS);
    if (d->moves == seen) continue;
    seen = d->moves;
    looks = -1;
  }
  const bool all = !has_work(d);
  pthread_mutex_unlock(&d->mu);
  return all;
}

void fl_spill_disk_stop(fl_spill_disk *d, bool left) {
  if (d == NULL) return;
  pthread_mutex_lock(&d->mu);
  for (fl_spill_write *w = d->write; w != NULL; w = w->next) {
    fl_seq_free(w->seq);
    w->seq = NULL;
  }
  for (fl_spill_reading *r = d->reading; r != NULL; r = r->next) r->seq = NULL;
  d->stop = true;
  d->left = left;
  if (left) pthread_detach(d->thread);
  pthread_cond_signal(&d->work);
  pthread_mutex_unlock(&d->mu);
  if (left) return;
  pthread_join(d->thread, NULL);
  disk_free(d);
}

bool fl_spill_disk_stands(fl_spill_disk *d) {
  pthread_mutex_lock(&d->mu);
  const bool yes = stands(d);
  pthread_mutex_unlock(&d->mu);
  return yes;
}

/* --- writing --- */

void fl_spill_disk_write(fl_spill_disk *d, fl_spill_write *w) {
  pthread_mutex_lock(&d->mu);
  fl_spill_write **at = &d->write;
  while (*at != NULL) at = &(*at)->next;
  *at = w;
  pthread_cond_signal(&d->work);
  pthread_mutex_unlock(&d->mu);
}

fl_spill_write *fl_spill_disk_written(fl_spill_disk *d) {
  pthread_mutex_lock(&d->mu);
  fl_spill_write *w = d->write;
  if (w != NULL && w->done) d->write = w->next;
  else w = NULL;
  pthread_mutex_unlock(&d->mu);
  return w;
}

const fl_spill_write *fl_spill_disk_first(const fl_spill_disk *d) { return d->write; }

bool fl_spill_disk_take_back(fl_spill_disk *d) {
  pthread_mutex_lock(&d->mu);
  fl_spill_write *w = d->write;
  while (w != NULL && w->seq == NULL) w = w->next;
  if (w != NULL) {
    fl_seq_free(w->seq);
    w->seq = NULL;
  }
  pthread_mutex_unlock(&d->mu);
  return w != NULL;
}

/* --- reading --- */

void fl_spill_disk_read(fl_spill_disk *d, fl_spill_reading *r) {
  pthread_mutex_lock(&d->mu);
  fl_spill_reading **at = &d->reading;
  while (*at != NULL) at = &(*at)->next;
  *at = r;
  pthread_cond_signal(&d->work);
  pthread_mutex_unlock(&d->mu);
}

bool fl_spill_disk_read_done(fl_spill_disk *d, const fl_spill_reading *r) {
  pthread_mutex_lock(&d->mu);
  const bool done = r->done;
  pthread_mutex_unlock(&d->mu);
  return done;
}

/* Under mu. */
static void unlink_reading(fl_spill_disk *d, const fl_spill_reading *r) {
  fl_spill_reading **at = &d->reading;
  while (*at != r) at = &(*at)->next;
  *at = r->next;
}

void fl_spill_disk_read_end(fl_spill_disk *d, fl_spill_reading *r) {
  pthread_mutex_lock(&d->mu);
  while (!r->done) pthread_cond_wait(&d->done, &d->mu);
  unlink_reading(d, r);
  pthread_mutex_unlock(&d->mu);
}

void fl_spill_disk_read_drop(fl_spill_disk *d, fl_spill_reading *r) {
  pthread_mutex_lock(&d->mu);
  r->seq = NULL;
  pthread_mutex_unlock(&d->mu);
}

fl_spill_reading *fl_spill_disk_dropped(fl_spill_disk *d) {
  pthread_mutex_lock(&d->mu);
  fl_spill_reading *r = d->reading;
  while (r != NULL && !(r->done && r->seq == NULL)) r = r->next;
  if (r != NULL) unlink_reading(d, r);
  pthread_mutex_unlock(&d->mu);
  return r;
}

/* --- removing --- */

void fl_spill_disk_remove(fl_spill_disk *d, fl_spill_file *f) {
  pthread_mutex_lock(&d->mu);
  f->next = d->gone;
  d->gone = f;
  pthread_cond_signal(&d->work);
  pthread_mutex_unlock(&d->mu);
}
