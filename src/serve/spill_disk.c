/* spill_disk.c - see spill_disk.h. */
#include "serve/spill_disk.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "serve/engine.h"

enum { READS, REMOVES, WRITES }; /* ranks */

void fl_spill_job_free(fl_spill_job *j) {
  if (j != NULL) fl_spill_file_free(j->f);
  fl_free(j);
}

static void disk_free(void *ctx) {
  fl_spill_disk *d = ctx;
  for (fl_spill_job *j; (j = d->rest) != NULL;) {
    d->rest = j->next;
    fl_spill_job_free(j);
  }
  for (fl_spill_file *f; (f = d->unwanted) != NULL;) {
    d->unwanted = f->next;
    fl_spill_file_free(f);
  }
  fl_free(d->layer);
  fl_free(d->dir);
  fl_free(d);
}

/* --- on the thread --- */

static void before_disk(const fl_spill_disk *d) {
  if (d->hooks.disk != NULL) d->hooks.disk(d->hooks.disk_ctx);
}

static fl_seq *borrow(void *ctx) {
  const fl_spill_job *j = ctx;
  fl_spill_disk *d = j->task.ctx;
  before_disk(d);
  fl_worker_progress(d->worker);
  fl_worker_lock(d->worker);
  fl_seq *seq = j->seq;
  if (seq == NULL) fl_worker_unlock(d->worker);
  return seq;
}

static void give_back(void *ctx) {
  const fl_spill_job *j = ctx;
  fl_worker_unlock(((fl_spill_disk *)j->task.ctx)->worker);
}

static void run_job(fl_task *t) {
  fl_spill_disk *d = t->ctx;
  fl_spill_job *j = (fl_spill_job *)t; /* its first member */
  const fl_spill_rows rows = { j, borrow, give_back };
  if (j->writes) {
    j->rc = fl_spill_write_file(&d->shape, d->dir, j->f, &rows, &j->why);
    return;
  }
  char *path = fl_fs_join(d->dir, j->f->name);
  j->rc =
      path != NULL ? fl_spill_read_rows(&d->shape, path, j->f, &rows, j->n, &j->why) : FL_ENOMEM;
  fl_free(path);
}

static void tell_ready(fl_task *t) {
  const fl_spill_disk *d = t->ctx;
  if (d->hooks.ready != NULL) d->hooks.ready(d->hooks.ready_ctx);
}

static void remove_one(fl_task *t) {
  fl_spill_disk *d = t->ctx;
  fl_worker_lock(d->worker);
  fl_spill_file *f = d->unwanted;
  d->unwanted = f->next;
  if (d->unwanted != NULL) fl_worker_submit(d->worker, t, 0);
  fl_worker_unlock(d->worker);
  before_disk(d);
  char *path = fl_fs_join(d->dir, f->name);
  if (path != NULL) (void)fl_fs_remove(path);
  fl_free(path);
  fl_spill_file_free(f);
}

/* --- on the engine's --- */

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
  if (d == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory", dir);
  const fl_worker_options o = { .patience_s = FL_DISK_PATIENCE_S, .release = disk_free, .ctx = d };
  d->removal = (fl_task){ .run = remove_one, .ctx = d, .rank = REMOVES };
  d->dir = fl_strdup(dir);
  int rc = d->dir != NULL && copy_shape(d, shape)
               ? fl_worker_start(&d->worker, &o, err)
               : fl_fail(err, FL_ENOMEM, "%s: not enough memory", dir);
  if (rc == FL_OK) *out = d;
  else disk_free(d);
  return rc;
}

void fl_spill_disk_submit(fl_spill_disk *d, fl_spill_job *j) {
  j->task =
      (fl_task){ .run = run_job, .done = tell_ready, .ctx = d, .rank = j->writes ? WRITES : READS };
  fl_worker_lock(d->worker);
  fl_worker_submit(d->worker, &j->task, 0);
  fl_worker_unlock(d->worker);
}

bool fl_spill_disk_done(fl_spill_disk *d, const fl_spill_job *j) {
  fl_worker_lock(d->worker);
  const bool done = !fl_worker_has(d->worker, &j->task);
  fl_worker_unlock(d->worker);
  return done;
}

fl_seq *fl_spill_disk_take_rows(fl_spill_disk *d, fl_spill_job *j) {
  fl_worker_lock(d->worker);
  fl_seq *seq = j->seq;
  j->seq = NULL;
  fl_worker_unlock(d->worker);
  return seq;
}

void fl_spill_disk_remove(fl_spill_disk *d, fl_spill_file *f) {
  fl_worker_lock(d->worker);
  f->next = d->unwanted;
  d->unwanted = f;
  fl_worker_submit(d->worker, &d->removal, 0);
  fl_worker_unlock(d->worker);
}

void fl_spill_disk_close(fl_spill_disk *d, fl_spill_job *rest) {
  if (d == NULL) return;
  for (fl_spill_job *j = rest; j != NULL; j = j->next) {
    fl_seq *seq = fl_spill_disk_take_rows(d, j);
    if (j->writes) fl_seq_free(seq);
  }
  fl_worker_lock(d->worker);
  d->rest = rest;
  fl_worker_unlock(d->worker);
  (void)fl_worker_close(d->worker);
}
