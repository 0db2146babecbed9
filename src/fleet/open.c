/* open.c - opening a fleet: for reading beside a trainer, or as its one writer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "fleet/fleet_dir.h"
#include "fleet/reconcile.h"
#include "fleet/state.h"
#include "fleet/text_cache.h"
#include "fleet/train_options.h"

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
            "this model and to the documents as they are now",
            f->dir);
    return adopt_model(f, err);
  }
  if (f->model == NULL) return FL_OK;
  if (strcmp(f->m.model_hash, fl_model_hash(f->model)) != 0)
    return fl_fail(err, FL_EINPUT,
                   "%s: the fleet in %s was made for another model (%s, %s); use "
                   "that one",
                   fl_model_path(f->model), f->dir, f->m.model_name, f->m.model_hash);
  if (strcmp(f->m.tokenizer_hash, fl_model_tokenizer_hash(f->model)) != 0)
    return fl_fail(err, FL_EINPUT,
                   "%s: its tokenizer is not the one that the fleet in %s was made "
                   "with; use the original file",
                   fl_model_path(f->model), f->dir);
  return FL_OK;
}

static int open_log(fl_fleet *f, const fl_open_options *how, fl_err *err) {
  char *path = fl_fs_join(f->dir, FL_EVENTS_FILE);
  if (path == NULL) return oom(f->dir, err);
  int rc = fl_events_open(&f->log, path, how->log_bytes, err);
  fl_free(path);
  return rc;
}

static int open_reader(fl_fleet *f, const fl_open_options *how, fl_err *err) {
  f->read_only = true;
  int rc = fl_fleet_dir_load(&f->m, f->dir, err);
  if (rc == FL_OK) rc = check_model(f, err);
  f->opts = f->m.opts;
  if (rc == FL_OK && how->log_events) (void)open_log(f, how, NULL);
  return rc;
}

/* What files were made with holds; everything else is as given now. */
static void take_flags(fl_fleet *f, const fl_train_options *o) {
  f->opts = o != NULL ? *o : f->m.opts;
  const uint64_t seed = f->opts.seed;
  fl_train_options_keep_birth(&f->opts, &f->m.opts);
  if (f->m.foreign) f->opts.seed = seed;
  f->m.opts = f->opts;
}

static int open_existing(fl_fleet *f, const fl_train_options *o, const fl_open_options *how,
                         fl_err *err) {
  int rc = fl_manifest_load(&f->m, f->dir, err);
  if (rc == FL_OK) rc = check_model(f, err);
  if (rc != FL_OK) return rc;
  if (fl_dist_leads(f->dist)) fl_commit_sweep(f->dir, &f->m);
  take_flags(f, o);
  return fl_reconcile(f, how, err);
}

static int open_new(fl_fleet *f, const fl_train_options *o, const fl_open_options *how,
                    fl_err *err) {
  f->opts = *o;
  f->m = (fl_manifest){ .p = o->p, .frozen = o->frozen, .embed_chunk = o->embed_chunk, .opts = *o };
  int rc = adopt_model(f, err);
  if (rc == FL_OK) rc = fl_reconcile_new(f, how->merge, err);
  if (rc == FL_OK && fl_dist_leads(f->dist))
    fl_commit_sweep(f->dir, &f->m); /* of a creation that was cut short */
  return rc;
}

static int take_lock(fl_fleet *f, fl_err *err) {
  char *path = fl_fs_join(f->dir, FL_LOCK_FILE);
  if (path == NULL) return oom(f->dir, err);
  int rc = fl_lock_take(&f->lock, path, err);
  if (rc == FL_EBUSY) fl_err_prefix(err, "%s is being trained", f->dir);
  fl_free(path);
  return rc;
}

static bool has_own_files(const char *dir) {
  static const char *const name[] = { FL_EVENTS_FILE, FL_EVENTS_OLDER_FILE, FL_LOCK_FILE,
                                      FL_TRAIN_LOG_FILE };
  bool there = false;
  for (size_t i = 0; i < sizeof name / sizeof *name && !there; i++) {
    char *path = fl_fs_join(dir, name[i]);
    there = path == NULL || fl_fs_exists(path);
    fl_free(path);
  }
  return there;
}

static int open_writer(fl_fleet *f, const fl_train_options *o, const fl_open_options *how,
                       fl_err *err) {
  bool there;
  int rc = fl_fleet_dir_check(&there, f->dir, how->resume, err);
  if (rc == FL_OK && o != NULL) rc = fl_train_options_check(o, err);
  if (rc == FL_OK && fl_dist_leads(f->dist)) rc = fl_fs_mkdir_made(&f->made_dir, f->dir, err);
  if (rc == FL_OK && fl_dist_leads(f->dist)) {
    f->fresh = !there && !has_own_files(f->dir);
    rc = take_lock(f, err);
  }
  if (rc != FL_OK) return rc;
  /* Another trainer may have made or changed it before the lock was ours. */
  if (fl_fleet_dir_exists(f->dir) != there)
    return fl_fail(err, FL_EBUSY,
                   "%s: another process has just made or removed a fleet here; try "
                   "again",
                   f->dir);
  rc = fl_text_cache_new(&f->texts, f->dir, f->sources, err);
  if (rc == FL_OK) rc = there ? open_existing(f, o, how, err) : open_new(f, o, how, err);
  f->sources = NULL;
  return rc == FL_OK && fl_dist_leads(f->dist) ? open_log(f, how, err) : rc;
}

/* What a later run needs to know of this one, beside what is checked. The path may differ between
 * ranks, which must not keep them apart: it is set once they have been compared. */
static int note_model(fl_fleet *f, fl_err *err) {
  const char *name = fl_template_name(fl_model_template(f->model));
  char *path = fl_fs_real(fl_model_path(f->model));
  if (f->m.template_name == NULL || strcmp(f->m.template_name, name) != 0) f->unsaved = true;
  const bool ok = path != NULL && fl_set_string(&f->m.template_name, name) &&
                  fl_set_string(&f->m.model_path, path);
  fl_free(path);
  return ok ? FL_OK : oom(f->dir, err);
}

/* --- several ranks --- */

typedef struct print { /* what must be the same on all of them */
  char kernels[64], model[FL_HASH_TEXT], state[FL_HASH_TEXT];
} print;

static int take_print(print *p, fl_fleet *f, fl_err *err) {
  fl_buf text = { 0 };
  memset(p, 0, sizeof *p);
  snprintf(p->kernels, sizeof p->kernels, "%s", fl_kernels_name(fl_model_kernels(f->model)));
  snprintf(p->model, sizeof p->model, "%s", fl_model_hash(f->model));
  if (fl_manifest_print(&f->m, &text) != FL_OK) return oom(f->dir, err);
  fl_hash_bytes(p->state, text.data, text.len);
  fl_buf_release(&text);
  return FL_OK;
}

/* Rows differ by rounding between kinds of machines; the ranks would take different steps. */
static int compare_prints(const print *p, size_t n, const fl_fleet *f, fl_err *err) {
  for (size_t r = 1; r < n; r++) {
    if (memcmp(p[r].kernels, p[0].kernels, sizeof p[r].kernels) != 0)
      return fl_fail(err, FL_EUSAGE,
                     "rank %zu computes with %s, rank 0 with %s: their results "
                     "would differ; take machines of one kind or set FLOTILLA_ISA to a level that "
                     "all have",
                     r, p[r].kernels, p[0].kernels);
    if (memcmp(p[r].model, p[0].model, sizeof p[r].model) != 0)
      return fl_fail(err, FL_EUSAGE,
                     "rank %zu has another model than rank 0; give all the same "
                     "--model",
                     r);
    if (memcmp(p[r].state, p[0].state, sizeof p[r].state) != 0)
      return fl_fail(err, FL_EUSAGE,
                     "rank %zu sees other documents or another fleet in %s than "
                     "rank 0; keep both where all ranks see the same files",
                     r, f->dir);
  }
  return FL_OK;
}

/* Rank 0 takes the lock and cleans up before the others look at the folder. */
static int open_together(fl_fleet *f, const fl_train_options *o, const fl_open_options *how,
                         fl_err *err) {
  const size_t n = fl_dist_count(f->dist);
  print mine = { .kernels = "" }, *all = fl_calloc(n, sizeof *all);
  int rc = all != NULL ? FL_OK : oom(f->dir, err);
  if (rc == FL_OK && fl_dist_leads(f->dist)) rc = open_writer(f, o, how, err);
  rc = fl_dist_agree(f->dist, "open", rc, err);
  if (rc == FL_OK && !fl_dist_leads(f->dist)) rc = open_writer(f, o, how, err);
  if (rc == FL_OK) rc = take_print(&mine, f, err);
  rc = fl_dist_gather(f->dist, "opened", rc, all, &mine, sizeof mine, err);
  if (rc == FL_OK) rc = compare_prints(all, n, f, err);
  fl_free(all);
  return rc;
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
  f->dist = how->dist;
  int rc = FL_OK;
  if (f->dir == NULL) rc = oom(dir, err);
  else if (how->read_only) rc = open_reader(f, how, err);
  else if (model == NULL || docs == NULL || docs->n == 0 || (opts == NULL && !how->resume))
    rc = fl_fail(err, FL_EUSAGE, "%s: a model and documents are needed to write a fleet", dir);
  else if (f->dist != NULL) rc = open_together(f, opts, how, err);
  else rc = open_writer(f, opts, how, err);
  if (rc == FL_OK && !f->read_only) rc = note_model(f, err);
  if (rc != FL_OK) {
    fl_fleet_close(f);
    return rc;
  }
  *out = f;
  return FL_OK;
}
