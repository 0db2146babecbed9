/* fleet_reader.c - see fleet_reader.h. */
#include "serve/fleet_reader.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/worker.h"
#include "retrieval/retrieval.h"
#include "serve/engine.h"

struct fl_fleet_reader {
  fl_fleet_reader_options o;
  char *dir, *path; /* of the fleet, of its manifest */
  fl_worker *worker;
  fl_task fetch, poll_manifest;
  struct stat seen; /* the thread's: of the manifest at the last poll; size -1: to be read again */

  /* Under the worker's lock. */
  fl_fetch_plan *plan; /* to be fetched; the thread's while it is */
  bool asked;          /* for the manifest, changed or not */
  fl_fleet_read out;   /* not taken yet */
};

static void manifest_read_release(fl_manifest_read *m) {
  fl_manifest_release(&m->now);
  fl_index_free(m->index);
}

static void release(void *ctx) {
  fl_fleet_reader *r = ctx;
  if (r->o.release != NULL) r->o.release(r->o.ctx);
  manifest_read_release(&r->out.manifest);
  fl_fetch_plan_free(r->out.plan);
  fl_fetch_plan_free(r->plan);
  fl_free(r->dir);
  fl_free(r->path);
  fl_free(r);
}

/* --- on the thread --- */

static void before_disk(const fl_fleet_reader *r) {
  if (r->o.reading != NULL) r->o.reading(r->o.reading_ctx);
}

/* Whether the manifest is the one of the last poll. */
static bool is_seen(fl_fleet_reader *r) {
  struct stat st;
  if (stat(r->path, &st) != 0) return false; /* reading it will say why */
  const bool same = st.st_ino == r->seen.st_ino && st.st_dev == r->seen.st_dev &&
                    st.st_size == r->seen.st_size && st.st_mtim.tv_sec == r->seen.st_mtim.tv_sec &&
                    st.st_mtim.tv_nsec == r->seen.st_mtim.tv_nsec;
  r->seen = st;
  return same;
}

static void read_manifest(fl_fleet_reader *r, fl_manifest_read *m) {
  m->any = true;
  m->rc = fl_manifest_load(&m->now, r->dir, &m->err);
  if (m->rc != FL_OK) r->seen.st_size = -1;
  else m->index_rc = fl_manifest_read_index(&m->index, &m->now, r->dir, r->o.dim, &m->index_err);
}

/* Under the lock. A manifest that nobody has taken yet is out of date. */
static void publish(fl_fleet_reader *r, const fl_manifest_read *m) {
  if (!m->any) return;
  manifest_read_release(&r->out.manifest);
  r->out.manifest = *m;
}

/* Where a file has gone, the plan comes back together with the manifest that may explain it. */
static void run_fetch(fl_task *t) {
  fl_fleet_reader *r = t->ctx;
  fl_manifest_read m = { 0 };
  before_disk(r);
  fl_fetch_plan_read(r->plan);
  if (r->plan->rc == FL_ENOENT) read_manifest(r, &m);
  fl_worker_lock(r->worker);
  publish(r, &m);
  r->out.plan = r->plan;
  r->plan = NULL;
  fl_worker_unlock(r->worker);
}

static void run_poll_manifest(fl_task *t) {
  fl_fleet_reader *r = t->ctx;
  fl_manifest_read m = { 0 };
  fl_worker_lock(r->worker);
  const bool asked = r->asked;
  r->asked = false;
  fl_worker_unlock(r->worker);
  if (asked) before_disk(r);
  if (asked || !is_seen(r)) read_manifest(r, &m);
  fl_worker_lock(r->worker);
  publish(r, &m);
  if (r->o.every_s > 0) fl_worker_submit(r->worker, t, fl_now_s() + r->o.every_s);
  fl_worker_unlock(r->worker);
}

static void tell_ready(fl_task *t) {
  const fl_fleet_reader *r = t->ctx;
  if (r->out.manifest.any || r->out.plan != NULL) r->o.ready(r->o.ctx);
}

/* --- on others --- */

int fl_fleet_reader_start(fl_fleet_reader **out, const fl_fleet_reader_options *o, fl_err *err) {
  fl_fleet_reader *r = fl_calloc(1, sizeof *r);
  if (r == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for the server");
  const fl_worker_options w = { .patience_s = FL_DISK_PATIENCE_S, .release = release, .ctx = r };
  r->o = *o;
  r->dir = fl_strdup(o->dir);
  r->path = fl_fs_join(o->dir, FL_MANIFEST_FILE);
  r->seen.st_size = -1;
  r->fetch = (fl_task){ .run = run_fetch, .done = tell_ready, .ctx = r };
  r->poll_manifest = (fl_task){ .run = run_poll_manifest, .done = tell_ready, .ctx = r, .rank = 1 };
  const int rc = r->dir != NULL && r->path != NULL
                     ? fl_worker_start(&r->worker, &w, err)
                     : fl_fail(err, FL_ENOMEM, "not enough memory for the server");
  if (rc != FL_OK) {
    r->o.release = NULL; /* its ctx is the caller's, still */
    release(r);
    return rc;
  }
  fl_worker_lock(r->worker);
  if (o->every_s > 0) fl_worker_submit(r->worker, &r->poll_manifest, fl_now_s() + o->every_s);
  fl_worker_unlock(r->worker);
  *out = r;
  return FL_OK;
}

void fl_fleet_reader_fetch(fl_fleet_reader *r, fl_fetch_plan *plan) {
  fl_worker_lock(r->worker);
  r->plan = plan;
  fl_worker_submit(r->worker, &r->fetch, 0);
  fl_worker_unlock(r->worker);
}

void fl_fleet_reader_poll_manifest(fl_fleet_reader *r) {
  fl_worker_lock(r->worker);
  r->asked = true;
  fl_worker_submit(r->worker, &r->poll_manifest, 0);
  fl_worker_unlock(r->worker);
}

bool fl_fleet_reader_stalled(fl_fleet_reader *r) { return fl_worker_stalled(r->worker); }

void fl_fleet_reader_take(fl_fleet_reader *r, fl_fleet_read *out) {
  fl_worker_lock(r->worker);
  *out = r->out;
  r->out = (fl_fleet_read){ 0 };
  fl_worker_unlock(r->worker);
}

void fl_fleet_reader_stop(fl_fleet_reader *r) {
  if (r != NULL) (void)fl_worker_close(r->worker);
}
