/* rebuild.c - the index made anew and committed as part of a generation. */
#include "base/clock.h"
#include "base/mem.h"
#include "fleet/state.h"
#include "retrieval/retrieval.h"

/* Takes `name` over; where its commit did not go through, the index is what it was. */
static int commit_index(fl_fleet *f, char *name, fl_commit *c, fl_err *err) {
  char *before = f->m.index_file;
  const uint64_t dim = f->m.embed_dim;
  f->m.index_file = name;
  f->m.embed_dim = fl_fleet_index_of(f)->dim;
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
  fl_event_int(&e, "chunks", (int64_t)fl_fleet_index_of(f)->n);
  fl_event_int(&e, "dim", (int64_t)fl_fleet_index_of(f)->dim);
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
  if (rc == FL_OK) rc = fl_index_write(path, fl_fleet_index_of(f), &meta, err);
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

int fl_fleet_index(fl_fleet *f, const fl_train_hooks *hooks, fl_err *err) {
  if (f->read_only) return fl_fail(err, FL_EUSAGE, "%s: opened for reading only", f->dir);
  return fl_index_rebuild(f, hooks, err);
}
