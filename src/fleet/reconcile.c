/* reconcile.c - see reconcile.h.
 *
 * What each difference does:
 *   in the fleet, not given           refused, unless --remove names it
 *   given, not in the fleet           joins (allow_add), else refused
 *   given with another text           refused, unless --update: born again
 *   named by --redo                   born again from its present text
 * Anything that changes texts drops the index, which is then rebuilt before the next round. */
#include "fleet/reconcile.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/study.h"

static int oom(const fl_fleet *f, fl_err *err) {
  return fl_fail(err, FL_ENOMEM, "%s: not enough memory to open the fleet", f->dir);
}

static bool in_list(const char *const *list, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(list[i], name) == 0) return true;
  return false;
}

static int count_tokens(const fl_fleet *f, const char *name, const char *text, size_t len,
                        uint64_t *out, fl_err *err) {
  fl_doc_text t = { 0 };
  int rc = fl_doc_text_init(&t, fl_model_tokenizer(f->model), text, len, err);
  if (rc != FL_OK) {
    fl_err_prefix(err, "%s", name);
    return rc;
  }
  *out = t.n_tokens;
  fl_doc_text_release(&t);
  return *out > 0 ? FL_OK : fl_fail(err, FL_EINPUT, "%s: holds no token; leave it out", name);
}

/* Back to before birth, with the text that is there now. */
static int start_over(fl_fleet *f, fl_doc_entry *d, const char *hash, uint64_t tokens,
                      fl_err *err) {
  if (!fl_set_string(&d->hash, hash) || !fl_set_string(&d->study_file, NULL) ||
      fl_doc_entry_name_files(d, fl_manifest_generation(&f->m)) != FL_OK)
    return oom(f, err);
  fl_coverage_release(&d->coverage);
  d->tokens = tokens;
  d->rows = d->steps = d->targeted = d->made = d->kept = 0;
  d->born = false;
  f->unsaved = true;
  return FL_OK;
}

static void drop_index(fl_fleet *f) {
  (void)fl_set_string(&f->m.index_file, NULL);
  f->m.embed_dim = 0;
}

/* One edit for all changes of one opening. */
static void edit(fl_fleet *f, bool *edited) {
  if (!*edited) f->m.edits++;
  *edited = true;
  f->unsaved = true;
}

/* --- one cartridge for all documents --- */

static int by_name(const void *a, const void *b) {
  const fl_source_doc *const *x = a, *const *y = b;
  return strcmp((*x)->name, (*y)->name);
}

static int sorted_sources(const fl_fleet *f, const fl_source_doc ***out, fl_err *err) {
  const fl_source_doc **v = fl_calloc(f->sources->n + 1, sizeof *v);
  if (v == NULL) return oom(f, err);
  for (size_t i = 0; i < f->sources->n; i++) v[i] = &f->sources->doc[i];
  qsort(v, f->sources->n, sizeof *v, by_name);
  *out = v;
  return FL_OK;
}

/* Member k is the k-th source by name. */
static int map_members(fl_fleet *f, const fl_source_doc *const *v, fl_err *err) {
  size_t *of = fl_calloc(f->sources->n + 1, sizeof *of);
  if (of == NULL) return oom(f, err);
  for (size_t k = 0; k < f->sources->n; k++) of[k] = (size_t)(v[k] - f->sources->doc);
  fl_free(f->source_of);
  f->source_of = of;
  return FL_OK;
}

static int set_members(fl_fleet *f, fl_err *err) {
  const fl_source_doc **v = NULL;
  fl_manifest *m = &f->m;
  int rc = sorted_sources(f, &v, err);
  if (rc == FL_OK) rc = map_members(f, v, err);
  fl_member *e = rc == FL_OK ? fl_calloc(f->sources->n + 1, sizeof *e) : NULL;
  if (e == NULL) {
    fl_free(v);
    return rc != FL_OK ? rc : oom(f, err);
  }
  for (size_t i = 0; i < m->n_members; i++) {
    fl_free(m->member[i].name);
    fl_free(m->member[i].hash);
  }
  fl_free(m->member);
  m->member = e;
  m->n_members = 0;
  for (size_t i = 0; rc == FL_OK && i < f->sources->n; i++) {
    m->n_members++;
    if (!fl_set_string(&e[i].name, v[i]->name) || !fl_set_string(&e[i].hash, v[i]->hash))
      rc = oom(f, err);
  }
  fl_free(v);
  return rc;
}

/* Hash and token count of the merged text. */
static int measure_merged(fl_fleet *f, char hash[FL_HASH_TEXT], uint64_t *tokens, fl_err *err) {
  fl_buf own = { 0 };
  int rc = fl_fleet_text(f, 0, &own, err);
  if (rc == FL_OK) {
    fl_hash_bytes(hash, own.data, own.len);
    rc = count_tokens(f, "--merge", own.data, own.len, tokens, err);
  }
  fl_buf_release(&own);
  return rc;
}

/* NULL when the members are those of the manifest, else the first that differs. */
static const char *member_difference(const fl_manifest *m, const fl_source_doc *const *v,
                                     size_t n) {
  for (size_t i = 0; i < n || i < m->n_members; i++) {
    if (i >= n) return m->member[i].name;
    if (i >= m->n_members) return v[i]->name;
    if (strcmp(v[i]->name, m->member[i].name) != 0) return v[i]->name;
    if (strcmp(v[i]->hash, m->member[i].hash) != 0) return v[i]->name;
  }
  return NULL;
}

static int reconcile_merged(fl_fleet *f, const fl_open_options *how, fl_err *err) {
  fl_doc_entry *d = &f->m.doc[0];
  const fl_source_doc **v = NULL;
  char hash[FL_HASH_TEXT];
  uint64_t tokens = 0;
  bool edited = false;
  int rc = sorted_sources(f, &v, err);
  if (rc != FL_OK) return rc;
  const char *differs = member_difference(&f->m, v, f->sources->n);
  rc = map_members(f, v, err);
  fl_free(v);
  if (rc != FL_OK) return rc;
  bool redo = in_list(how->redo, how->n_redo, d->name);
  if (differs == NULL && !redo) return FL_OK;
  if (differs != NULL && !how->update)
    return fl_fail(err, FL_EINPUT,
                   "%s: new, changed or missing in the merged documents; give the "
                   "same ones, or retrain with --update",
                   differs);
  edit(f, &edited);
  rc = set_members(f, err);
  if (rc == FL_OK) rc = measure_merged(f, hash, &tokens, err);
  if (rc == FL_OK) rc = start_over(f, d, hash, tokens, err);
  if (rc == FL_OK && differs != NULL) drop_index(f);
  return rc;
}

static int new_merged(fl_fleet *f, const char *name, fl_err *err) {
  char hash[FL_HASH_TEXT];
  uint64_t tokens = 0;
  int rc = set_members(f, err);
  if (rc == FL_OK) rc = measure_merged(f, hash, &tokens, err);
  return rc == FL_OK ? fl_manifest_add(&f->m, name, hash, tokens, err) : rc;
}

/* --- one cartridge a document --- */

static int add_source(fl_fleet *f, const fl_source_doc *s, fl_err *err) {
  uint64_t tokens = 0;
  int rc = count_tokens(f, s->name, s->text, s->len, &tokens, err);
  return rc == FL_OK ? fl_manifest_add(&f->m, s->name, s->hash, tokens, err) : rc;
}

int fl_reconcile_new(fl_fleet *f, const char *merge, fl_err *err) {
  f->unsaved = true;
  if (merge != NULL) return new_merged(f, merge, err);
  int rc = FL_OK;
  f->source_of = fl_calloc(f->sources->n + 1, sizeof *f->source_of);
  if (f->source_of == NULL) return oom(f, err);
  for (size_t i = 0; rc == FL_OK && i < f->sources->n; i++) {
    f->source_of[i] = i;
    rc = add_source(f, &f->sources->doc[i], err);
  }
  return rc;
}

static int remove_named(fl_fleet *f, const fl_open_options *how, bool *edited, fl_err *err) {
  for (size_t k = 0; k < how->n_remove; k++) {
    size_t at = 0;
    if (!fl_manifest_find(&f->m, how->remove[k], &at))
      return fl_fail(err, FL_EUSAGE,
                     "--remove: no document \"%s\" in the fleet; flotilla info %s "
                     "lists them",
                     how->remove[k], f->dir);
    edit(f, edited);
    fl_manifest_remove(&f->m, at);
    drop_index(f);
  }
  if (f->m.n == 0)
    return fl_fail(err, FL_EUSAGE,
                   "--remove: takes the last document out; delete the folder instead");
  return FL_OK;
}

static int match(fl_fleet *f, const fl_open_options *how, bool *edited, fl_err *err) {
  for (size_t k = 0; k < how->n_redo; k++) {
    size_t at = 0;
    if (!fl_manifest_find(&f->m, how->redo[k], &at))
      return fl_fail(err, FL_EUSAGE,
                     "--redo: no document \"%s\" in the fleet; flotilla info %s "
                     "lists them",
                     how->redo[k], f->dir);
  }
  for (size_t i = 0; i < f->m.n; i++) {
    fl_doc_entry *d = &f->m.doc[i];
    const fl_source_doc *s = &f->sources->doc[f->source_of[i]];
    uint64_t tokens = 0;
    if (d->hash == NULL && !fl_set_string(&d->hash, s->hash)) return oom(f, err);
    bool changed = strcmp(d->hash, s->hash) != 0;
    bool redo = in_list(how->redo, how->n_redo, d->name);
    if (!changed && !redo) continue;
    if (changed && !redo && !how->update)
      return fl_fail(err, FL_EINPUT,
                     "%s: changed since it was trained; restore it, or retrain it "
                     "with --update",
                     d->name);
    int rc = count_tokens(f, d->name, s->text, s->len, &tokens, err);
    edit(f, edited);
    if (rc == FL_OK) rc = start_over(f, d, s->hash, tokens, err);
    if (rc != FL_OK) return rc;
    if (changed) drop_index(f);
  }
  return FL_OK;
}

/* Sets source_of for the documents that are there; *fresh[k] = source k belongs to none. */
static int map_sources(fl_fleet *f, const fl_open_options *how, bool *fresh, fl_err *err) {
  size_t n = f->m.n + f->sources->n;
  f->source_of = fl_calloc(n + 1, sizeof *f->source_of);
  if (f->source_of == NULL) return oom(f, err);
  for (size_t i = 0; i < f->m.n; i++) f->source_of[i] = SIZE_MAX;
  for (size_t k = 0; k < f->sources->n; k++) {
    const char *name = f->sources->doc[k].name;
    size_t at = 0;
    if (fl_manifest_find(&f->m, name, &at)) f->source_of[at] = k;
    else fresh[k] = !in_list(how->remove, how->n_remove, name);
  }
  for (size_t i = 0; i < f->m.n; i++)
    if (f->source_of[i] == SIZE_MAX)
      return fl_fail(err, FL_ENOENT,
                     "%s: in the fleet but not among the documents given; give it "
                     "again with --docs, or take it out with --remove",
                     f->m.doc[i].name);
  return FL_OK;
}

static int join(fl_fleet *f, const fl_open_options *how, const bool *fresh, bool *edited,
                fl_err *err) {
  for (size_t k = 0; k < f->sources->n; k++) {
    if (!fresh[k]) continue;
    if (!how->allow_add)
      return fl_fail(err, FL_EUSAGE,
                     "%s: not in the fleet; leave it out, or train it with --resume",
                     f->sources->doc[k].name);
    edit(f, edited);
    f->source_of[f->m.n] = k;
    int rc = add_source(f, &f->sources->doc[k], err);
    if (rc != FL_OK) return rc;
    drop_index(f);
  }
  return FL_OK;
}

static int check_files(const fl_fleet *f, fl_err *err) {
  for (size_t i = 0; i < f->m.n; i++) {
    const fl_doc_entry *d = &f->m.doc[i];
    if (!d->born) continue;
    char *path = fl_fs_join(f->dir, d->cart_file);
    if (path == NULL) return oom(f, err);
    bool there = fl_fs_exists(path);
    int rc = FL_OK;
    if (!there)
      rc =
          fl_fail(err, FL_EINPUT, "%s: missing; restore it or train with --redo %s", path, d->name);
    fl_free(path);
    if (rc != FL_OK) return rc;
  }
  return FL_OK;
}

int fl_reconcile(fl_fleet *f, const fl_open_options *how, fl_err *err) {
  bool edited = false, merged = f->m.n_members > 0;
  if (how->merge != NULL && (!merged || strcmp(how->merge, f->m.doc[0].name) != 0))
    return fl_fail(err, FL_EUSAGE,
                   "--merge: the fleet %s is %s; make the merged one in another "
                   "folder",
                   f->dir, merged ? "merged under another name" : "not merged");
  if (merged && f->m.n != 1)
    return fl_fail(err, FL_EINPUT, "%s: a merged fleet has one document, not %zu; restore %s",
                   f->dir, f->m.n, FL_MANIFEST_FILE);
  int rc = merged ? reconcile_merged(f, how, err) : FL_OK;
  if (!merged) {
    bool *fresh = fl_calloc(f->sources->n + 1, sizeof *fresh);
    if (fresh == NULL) return oom(f, err);
    rc = remove_named(f, how, &edited, err);
    if (rc == FL_OK) rc = map_sources(f, how, fresh, err);
    if (rc == FL_OK) rc = match(f, how, &edited, err);
    if (rc == FL_OK) rc = join(f, how, fresh, &edited, err);
    fl_free(fresh);
  }
  return rc == FL_OK ? check_files(f, err) : rc;
}
