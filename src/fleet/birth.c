/* birth.c - before the first round: cartridges that are not born yet, and the index. */
#include <string.h>

#include "base/mem.h"
#include "fleet/initial.h"
#include "fleet/retrieval.h"
#include "fleet/trainer.h"

enum { BIRTHS_A_COMMIT = 32 };

static int birth(fl_fleet *f, size_t i, fl_commit *c, fl_err *err) {
  fl_mdoc *d = &f->m.doc[i];
  fl_cartridge cart = { 0 };
  fl_provenance prov;
  fl_buf own = { 0 };
  char *path = NULL;
  int rc = fl_fleet_text(f, i, &own, err);
  if (rc == FL_OK) rc = fl_fleet_initial(&cart, f, i, own.data, own.len, err);
  fl_fleet_provenance(f, d, fl_manifest_generation(&f->m), &prov);
  if (rc == FL_OK) rc = fl_commit_path(&path, c, d->cart_file, err);
  if (rc == FL_OK) rc = fl_cartridge_write(path, &cart, &prov, err);
  if (rc == FL_OK) d->rows = cart.rows.n_rows;
  else fl_err_prefix(err, "%s", d->name);
  fl_cartridge_release(&cart);
  fl_buf_release(&own);
  fl_free(path);
  return rc;
}

typedef struct births { /* that wait for their commit */
  fl_commit c;
  size_t doc[BIRTHS_A_COMMIT], n;
} births;

/* With it alone they are born: nothing that is saved in between may name a file that this commit
 * still gives up. */
static int commit_births(fl_fleet *f, births *b, fl_err *err) {
  for (size_t k = 0; k < b->n; k++) f->m.doc[b->doc[k]].born = true;
  int rc = fl_fleet_commit(f, &b->c, "birth", err);
  if (rc != FL_OK && !b->c.in_place)
    for (size_t k = 0; k < b->n; k++) f->m.doc[b->doc[k]].born = false;
  b->n = 0;
  return rc;
}

int fl_trainer_births(fl_trainer *t, fl_err *err) {
  fl_fleet *f = t->f;
  births b = { .c.dir = f->dir };
  int rc = FL_OK;
  for (size_t i = 0; rc == FL_OK && i < f->m.n; i++) {
    if (f->m.doc[i].born) continue;
    if (fl_trainer_poll(t)) break;
    fl_hooks_note(f, t->hooks, f->m.doc[i].name, "birth");
    rc = fl_fleet_workspace(f, FL_KV_F32, err);
    if (rc == FL_OK) rc = birth(f, i, &b.c, err);
    if (rc == FL_OK) b.doc[b.n++] = i;
    if (rc == FL_OK && b.n == BIRTHS_A_COMMIT) rc = commit_births(f, &b, err);
  }
  if (rc != FL_OK) {
    fl_commit_abandon(&b.c);
    return rc;
  }
  if (f->unsaved || b.n > 0) rc = commit_births(f, &b, err);
  return rc == FL_OK && t->stop ? FL_EINTR : rc;
}

/* Takes `name` over; where its commit did not go through, the index is what it was. */
static int commit_index(fl_fleet *f, char *name, fl_commit *c, fl_err *err) {
  char *before = f->m.index_file;
  const uint64_t dim = f->m.embed_dim;
  f->m.index_file = name;
  f->m.embed_dim = f->index->dim;
  const int rc = fl_fleet_commit(f, c, "index", err);
  const bool named = rc == FL_OK || c->in_place;
  if (!named) {
    f->m.index_file = before;
    f->m.embed_dim = dim;
  }
  fl_free(named ? before : name);
  return rc;
}

static void log_index(const fl_fleet *f, double seconds) {
  fl_event e;
  fl_event_begin(&e, "index");
  fl_event_int(&e, "chunks", (int64_t)f->index->n);
  fl_event_int(&e, "dim", (int64_t)f->index->dim);
  fl_event_num(&e, "seconds", seconds);
  fl_event_emit(f->log, &e);
}

int fl_index_rebuild(fl_fleet *f, const fl_train_hooks *hooks, fl_err *err) {
  double began = fl_now_s();
  fl_commit c = { .dir = f->dir };
  char *path = NULL;
  int rc = fl_index_build(f, hooks, err);
  if (rc != FL_OK) return rc;
  if (f->m.index_file != NULL) f->m.edits++; /* its name must differ from the one in use */
  char *name = fl_index_file_name(fl_manifest_generation(&f->m));
  const fl_index_meta meta = { f->m.model_hash, (size_t)f->m.embed_chunk };
  if (name == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory for the index", f->dir);
  rc = fl_commit_path(&path, &c, name, err);
  if (rc == FL_OK) rc = fl_index_write(path, f->index, &meta, err);
  fl_free(path);
  if (rc != FL_OK) {
    fl_commit_abandon(&c);
    fl_free(name);
    return rc;
  }
  rc = commit_index(f, name, &c, err);
  if (rc == FL_OK) log_index(f, fl_now_s() - began);
  return rc;
}

static int poll_trainer(void *ctx) { return fl_trainer_poll(ctx) ? FL_EINTR : FL_OK; }

static void pass_progress_on(void *ctx, const fl_progress *p) {
  const fl_trainer *t = ctx;
  if (t->hooks != NULL && t->hooks->progress != NULL) t->hooks->progress(t->hooks->ctx, p);
}

int fl_trainer_index(fl_trainer *t, fl_err *err) {
  if (t->f->m.index_file != NULL) return FL_OK;
  const fl_train_hooks hooks = { .ctx = t, .poll = poll_trainer, .progress = pass_progress_on };
  return fl_index_rebuild(t->f, &hooks, err);
}
