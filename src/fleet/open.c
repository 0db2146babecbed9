/* open.c - opening a fleet: for reading beside a trainer, or as its one writer. */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "fleet/options.h"
#include "fleet/reconcile.h"
#include "fleet/state.h"
#include "fleet/texts.h"

static int oom(const char *dir, fl_err *err) {
  return fl_fail(err, FL_ENOMEM, "%s: not enough memory to open the fleet", dir);
}

/* A fleet by another program says nothing of its model: ours is taken at its word, once. */
static int adopt_model(fl_fleet *f, fl_err *err) {
  if (f->model == NULL) return FL_OK;
  if (!fl_set_string(&f->m.model_name, fl_model_name(f->model)) ||
      !fl_set_string(&f->m.model_hash, fl_model_hash(f->model)) ||
      !fl_set_string(&f->m.tokenizer_hash, fl_model_tokenizer_hash(f->model)))
    return oom(f->dir, err);
  return FL_OK;
}

static int check_model(fl_fleet *f, fl_err *err) {
  if (f->m.foreign) {
    fl_warn("%s: made by another program, which notes neither model nor texts; taken to belong to "
            "this model and to the documents as they are now", f->dir);
    return adopt_model(f, err);
  }
  if (f->model == NULL) return FL_OK;
  if (strcmp(f->m.model_hash, fl_model_hash(f->model)) != 0)
    return fl_fail(err, FL_EINPUT, "%s: the fleet in %s was made for another model (%s, %s); use "
                   "that one", fl_model_path(f->model), f->dir, f->m.model_name, f->m.model_hash);
  if (strcmp(f->m.tokenizer_hash, fl_model_tokenizer_hash(f->model)) != 0)
    return fl_fail(err, FL_EINPUT, "%s: its tokenizer is not the one that the fleet in %s was made "
                   "with; use the original file", fl_model_path(f->model), f->dir);
  return FL_OK;
}

static int open_log(fl_fleet *f, fl_err *err) {
  char *path = fl_fs_join(f->dir, "events.jsonl");
  if (path == NULL) return oom(f->dir, err);
  int rc = fl_events_open(&f->log, path, err);
  fl_free(path);
  return rc;
}

static int open_reader(fl_fleet *f, const fl_open_options *how, fl_err *err) {
  f->read_only = true;
  int rc = fl_manifest_load(&f->m, f->dir, err);
  if (rc == FL_ENOENT && err != NULL)
    return fl_fail(err, rc, "%s: no fleet here (%s is missing); flotilla train makes one", f->dir,
                   FL_MANIFEST_FILE);
  if (rc == FL_OK) rc = check_model(f, err);
  f->opts = f->m.opts;
  if (rc == FL_OK && how->log_events) (void)open_log(f, NULL);
  return rc;
}

/* What files were made with holds; everything else is as given now. */
static void take_flags(fl_fleet *f, const fl_train_options *o) {
  const fl_train_options kept = f->m.opts;
  if (o != NULL) f->opts = *o;
  else f->opts = kept;
  f->opts.p = kept.p;
  f->opts.frozen = kept.frozen;
  f->opts.embed_chunk = kept.embed_chunk;
  f->opts.positions = kept.positions;
  if (!f->m.foreign) f->opts.seed = kept.seed;
  f->m.opts = f->opts;
}

static int open_existing(fl_fleet *f, const fl_train_options *o, const fl_open_options *how,
                         fl_err *err) {
  int rc = fl_manifest_load(&f->m, f->dir, err);
  if (rc == FL_OK) rc = check_model(f, err);
  if (rc != FL_OK) return rc;
  fl_commit_sweep(f->dir, &f->m);
  take_flags(f, o);
  return fl_reconcile(f, how, err);
}

static int open_new(fl_fleet *f, const fl_train_options *o, const fl_open_options *how,
                    fl_err *err) {
  f->opts = *o;
  f->m = (fl_manifest){ .p = o->p, .frozen = o->frozen, .embed_chunk = o->embed_chunk, .opts = *o };
  int rc = adopt_model(f, err);
  if (rc == FL_OK) rc = fl_reconcile_new(f, how->merge, err);
  if (rc == FL_OK) fl_commit_sweep(f->dir, &f->m); /* of a creation that was cut short */
  return rc;
}

static int take_lock(fl_fleet *f, fl_err *err) {
  char *path = fl_fs_join(f->dir, "lock");
  if (path == NULL) return oom(f->dir, err);
  int rc = fl_lock_take(&f->lock, path, err);
  if (rc == FL_EBUSY) fl_err_prefix(err, "%s is being trained", f->dir);
  fl_free(path);
  return rc;
}

static bool has_manifest(const char *dir) {
  char *path = fl_fs_join(dir, FL_MANIFEST_FILE);
  bool there = path != NULL && fl_fs_exists(path);
  fl_free(path);
  return there;
}

static int open_writer(fl_fleet *f, const fl_train_options *o, const fl_open_options *how,
                       fl_err *err) {
  bool there = has_manifest(f->dir);
  if (there && !how->resume)
    return fl_fail(err, FL_EUSAGE, "%s: holds a fleet already; continue it with --resume or name "
                   "another folder", f->dir);
  if (!there && how->resume)
    return fl_fail(err, FL_ENOENT, "%s: no fleet to resume; leave --resume out to make one",
                   f->dir);
  int rc = o != NULL ? fl_train_options_check(o, err) : FL_OK;
  if (rc == FL_OK) rc = fl_fs_mkdir(f->dir, err);
  if (rc == FL_OK) rc = take_lock(f, err);
  if (rc != FL_OK) return rc;
  /* Another trainer may have made or changed it before the lock was ours. */
  if (has_manifest(f->dir) != there)
    return fl_fail(err, FL_EBUSY, "%s: another process has just made or removed a fleet here; try "
                   "again", f->dir);
  rc = fl_texts_new(&f->texts, f->dir, f->sources, err);
  if (rc == FL_OK) rc = there ? open_existing(f, o, how, err) : open_new(f, o, how, err);
  f->sources = NULL;
  return rc == FL_OK ? open_log(f, err) : rc;
}

int fl_fleet_open(fl_fleet **out, const char *dir, fl_model *model, fl_team *team,
                  const fl_source_list *docs, const fl_train_options *opts,
                  const fl_open_options *how, fl_err *err) {
  fl_fleet *f = fl_calloc(1, sizeof *f);
  if (f == NULL) return oom(dir, err);
  f->dir = fl_strdup(dir);
  f->model = model;
  f->team = team;
  f->sources = docs;
  int rc = FL_OK;
  if (f->dir == NULL)
    rc = oom(dir, err);
  else if (how->read_only)
    rc = open_reader(f, how, err);
  else if (model == NULL || docs == NULL || docs->n == 0 || (opts == NULL && !how->resume))
    rc = fl_fail(err, FL_EUSAGE, "%s: a model and documents are needed to write a fleet", dir);
  else
    rc = open_writer(f, opts, how, err);
  if (rc != FL_OK) {
    fl_fleet_close(f);
    return rc;
  }
  *out = f;
  return FL_OK;
}
