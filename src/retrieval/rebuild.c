/* rebuild.c - the index made anew, vectors and words, and committed as part of a generation. */
#include <string.h>
#include "base/clock.h"
#include "base/mem.h"
#include "fleet/state.h"
#include "retrieval/fleet_words.h"
#include "retrieval/retrieval.h"

/* The files of a commit that are to take the place of those in use; NULL: they stay. */
typedef struct files {
  char *index, *lexical;
} files;

static void release(files *x) {
  fl_free(x->index);
  fl_free(x->lexical);
}

static void swap(char **a, char **b) {
  char *t = *a;
  *a = *b;
  *b = t;
}

/* Takes the files over, used up; where their commit did not go through, the index is what it was.
 */
static int commit_files(fl_fleet *f, files *x, fl_commit *c, fl_err *err) {
  const uint64_t dim = f->m.embed_dim;
  const bool index = x->index != NULL, lexical = x->lexical != NULL;
  if (index) f->m.embed_dim = fl_fleet_index_of(f)->dim;
  if (index) swap(&f->m.index_file, &x->index);
  if (lexical) swap(&f->m.lexical_file, &x->lexical);
  const int rc = fl_fleet_commit(f, c, "index", err);
  if (rc != FL_OK && !c->in_place) {
    if (index) swap(&f->m.index_file, &x->index);
    if (lexical) swap(&f->m.lexical_file, &x->lexical);
    f->m.embed_dim = dim;
  }
  release(x);
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

static int write_vectors(fl_fleet *f, fl_commit *c, char **name, fl_err *err) {
  const fl_index_meta meta = { f->m.model_hash, (size_t)f->m.embed_chunk };
  char *path = NULL, *file = fl_index_file_name(fl_manifest_generation(&f->m));
  if (file == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory for the index", f->dir);
  int rc = fl_commit_path(&path, c, file, err);
  if (rc == FL_OK) rc = fl_index_write(path, fl_fleet_index_of(f), &meta, err);
  fl_free(path);
  if (rc == FL_OK) *name = file;
  else fl_free(file);
  return rc;
}

/* Whether the present generation's name is the one in use. */
static bool names_words(const fl_fleet *f) {
  char *name = fl_lexical_file_name(fl_manifest_generation(&f->m));
  bool used = name != NULL && f->m.lexical_file != NULL && strcmp(name, f->m.lexical_file) == 0;
  fl_free(name);
  return used;
}

static int rebuild(fl_fleet *f, bool vectors, bool whole, const fl_train_hooks *hooks,
                   fl_err *err) {
  fl_commit c = { .dir = f->dir };
  files x = { 0 };
  fl_lexical *words = NULL;
  if ((vectors && f->m.index_file != NULL) || names_words(f)) f->m.edits++;
  int rc = vectors ? write_vectors(f, &c, &x.index, err) : FL_OK;
  if (rc == FL_OK) rc = fl_fleet_words_write(&words, &x.lexical, f, &c, whole, hooks, err);
  if (rc != FL_OK) {
    fl_commit_abandon(&c);
    release(&x);
    return rc;
  }
  rc = commit_files(f, &x, &c, err);
  fl_index *index = fl_fleet_index_of(f);
  if (index != NULL && rc == FL_OK) {
    fl_lexical_close(index->lexical);
    index->lexical = words;
  } else {
    fl_lexical_close(words);
  }
  return rc;
}

int fl_index_rebuild(fl_fleet *f, bool whole, const fl_train_hooks *hooks, fl_err *err) {
  double began = fl_now_s();
  int rc = fl_index_build(f, hooks, err);
  if (rc == FL_OK) rc = rebuild(f, true, whole, hooks, err);
  if (rc == FL_OK) log_index(f, fl_now_s() - began);
  return rc;
}

int fl_index_add_words(fl_fleet *f, const fl_train_hooks *hooks, fl_err *err) {
  fl_lexical *x = NULL;
  /* Ranks find out by the manifest alone that there is something to read again. */
  if (f->m.lexical_file != NULL && fl_dist_count(f->dist) > 1) return FL_OK;
  int rc = fl_manifest_open_words(&x, &f->m, f->dir, NULL);
  fl_lexical_close(x);
  if (rc != FL_ENOENT && rc != FL_EINPUT) return FL_OK;
  f->m.edits++;
  return rebuild(f, false, true, hooks, err);
}

int fl_fleet_index(fl_fleet *f, const fl_train_hooks *hooks, fl_err *err) {
  if (f->read_only) return fl_fail(err, FL_EUSAGE, "%s: opened for reading only", f->dir);
  return fl_index_rebuild(f, true, hooks, err);
}
