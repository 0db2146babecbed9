/* fleet.c - a fleet as an object: listings, workspaces, texts, cartridges on disk, commits. Opening
 * and reconciling: open.c; training: loop.c. */
#include "fleet/fleet.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "fleet/hooks.h"
#include "fleet/state.h"
#include "fleet/text_cache.h"

void fl_fleet_leave_nothing(const char *dir, fl_lock *lock, const char *made) {
  static const char *const name[] = { FL_EVENTS_FILE, FL_EVENTS_OLDER_FILE, FL_LOCK_FILE,
                                      FL_MANIFEST_FILE };
  enum { LOCK = 2, MANIFEST = 3, N };
  char *path[N];
  for (size_t i = 0; i < N; i++) path[i] = fl_fs_join(dir, name[i]);
  if (path[MANIFEST] == NULL || path[LOCK] == NULL || fl_fs_exists(path[MANIFEST])) {
    fl_lock_drop(lock);
  } else {
    for (size_t i = 0; i < LOCK; i++)
      if (path[i] != NULL) (void)fl_fs_remove(path[i]);
    fl_lock_remove(lock, path[LOCK]);
    if (made != NULL) fl_fs_unmake_dir(dir, made);
  }
  for (size_t i = 0; i < N; i++) fl_free(path[i]);
}

void fl_fleet_close(fl_fleet *f) {
  if (f == NULL) return;
  for (size_t i = 0; i < FL_N_ATTACHED; i++) fl_fleet_attach(f, (fl_attached)i, NULL, NULL);
  fl_pass_free(f->pass);
  fl_kv_pool_free(f->pool[FL_KV_F32]);
  fl_kv_pool_free(f->pool[FL_KV_F16]);
  fl_manifest_release(&f->m);
  for (size_t i = 0; i < f->n_old; i++) fl_manifest_release(&f->old[i]);
  fl_free(f->old);
  fl_text_cache_free(f->texts);
  fl_free(f->source_of);
  fl_events_close(f->log);
  fl_buf_release(&f->run);
  if (f->fresh) fl_fleet_leave_nothing(f->dir, f->lock, f->made_dir);
  else fl_lock_drop(f->lock);
  fl_free(f->made_dir);
  fl_free(f->dir);
  fl_free(f);
}

void fl_fleet_attach(fl_fleet *f, fl_attached what, void *p, void (*free)(void *p)) {
  fl_attachment *a = &f->with[what];
  if (a->p != NULL) a->free(a->p);
  *a = (fl_attachment){ .p = p, .free = free };
}

/* --- listings --- */

size_t fl_fleet_n_docs(const fl_fleet *f) { return f->m.n; }

void fl_fleet_doc(const fl_fleet *f, size_t i, fl_doc_info *out) {
  const fl_doc_entry *d = &f->m.doc[i];
  *out = (fl_doc_info){ .id = d->id,
                        .name = d->name,
                        .hash = d->hash != NULL ? d->hash : "",
                        .tokens = (size_t)d->tokens,
                        .rows = (size_t)d->rows,
                        .steps = d->steps,
                        .resident = d->resident };
}

static const char *base_name(const char *s) {
  const char *slash = strrchr(s, '/');
  return slash != NULL ? slash + 1 : s;
}

static bool same_stem(const char *base, const char *name) {
  const char *dot = strrchr(base, '.');
  size_t n = dot != NULL && dot > base ? (size_t)(dot - base) : strlen(base);
  return strlen(name) == n && memcmp(base, name, n) == 0;
}

int fl_fleet_find(const fl_fleet *f, const char *name, size_t *out) {
  if (fl_manifest_find(&f->m, name, out)) return FL_OK;
  for (int by_stem = 0; by_stem < 2; by_stem++) {
    size_t found = 0, at = 0;
    for (size_t i = 0; i < f->m.n; i++) {
      const char *base = base_name(f->m.doc[i].name);
      bool same = by_stem ? same_stem(base, name) : strcmp(base, name) == 0;
      if (!same) continue;
      found++;
      at = i;
    }
    if (found == 1) {
      *out = at;
      return FL_OK;
    }
  }
  return FL_ENOENT;
}

uint64_t fl_fleet_rounds(const fl_fleet *f) { return f->m.rounds; }
uint64_t fl_fleet_generation(const fl_fleet *f) { return fl_manifest_generation(&f->m); }
const char *fl_fleet_dir(const fl_fleet *f) { return f->dir; }
fl_events *fl_fleet_events(fl_fleet *f) { return f->log; }
fl_model *fl_fleet_model(const fl_fleet *f) { return f->model; }

/* --- workspaces --- */

int fl_fleet_workspace(fl_fleet *f, fl_kv_type type, fl_err *err) {
  const fl_pass_options o = { .max_rows = FL_PASS_ROWS, .max_spans = FL_PASS_SPANS };
  int rc = FL_OK;
  if (f->pass == NULL) rc = fl_pass_new(&f->pass, f->model, f->team, &o, err);
  if (rc == FL_OK && f->pool[type] == NULL)
    rc = fl_kv_pool_new(&f->pool[type], fl_model_hparams(f->model), fl_model_kernels(f->model),
                        type, 0, err);
  return rc;
}

void fl_fleet_evict_pages(fl_fleet *f) {
  if (f->pass != NULL) fl_pass_evict_pages(f->pass);
  for (size_t i = 0; i < 2; i++)
    if (f->pool[i] != NULL) fl_kv_pool_trim(f->pool[i]);
}

/* --- texts --- */

static int check_hash(const char *name, const char *now, const char *then, fl_err *err) {
  if (then == NULL || strcmp(now, then) == 0) return FL_OK;
  return fl_fail(err, FL_EINPUT,
                 "%s: changed since the fleet was trained; train with --resume "
                 "--update first",
                 name);
}

static int read_by_name(const char *name, const char *hash, fl_buf *out, fl_err *err) {
  fl_source_list l = { 0 };
  int rc = fl_source_read(&l, &name, 1, false, err);
  if (rc == FL_OK) rc = check_hash(name, l.doc[0].hash, hash, err);
  if (rc == FL_OK) fl_buf_append(out, l.doc[0].text, l.doc[0].len);
  if (rc == FL_OK && out->oom) rc = fl_fail(err, FL_ENOMEM, "%s: not enough memory", name);
  fl_source_release(&l);
  return rc;
}

/* Stands between the texts of a merged fleet's members. */
static const char empty_line[] = "\n\n";

int fl_doc_entry_text(const fl_doc_entry *d, const fl_member *m, size_t n, fl_buf *out,
                      fl_err *err) {
  if (n == 0) return read_by_name(d->name, d->hash, out, err);
  int rc = FL_OK;
  for (size_t k = 0; rc == FL_OK && k < n; k++) {
    if (k > 0) fl_buf_puts(out, empty_line);
    rc = read_by_name(m[k].name, m[k].hash, out, err);
  }
  return rc;
}

int fl_fleet_text(const fl_fleet *f, size_t i, fl_buf *out, fl_err *err) {
  const bool merged = f->texts != NULL && f->m.n_members > 0; /* may be read before it is listed */
  if (i >= f->m.n && !merged) return fl_fail(err, FL_ENOENT, "%s: no document %zu", f->dir, i);
  if (f->texts == NULL)
    return fl_doc_entry_text(&f->m.doc[i], f->m.member, f->m.n_members, out, err);
  if (f->m.n_members == 0) return fl_text_cache_read(f->texts, f->source_of[i], out, err);
  int rc = FL_OK;
  for (size_t k = 0; rc == FL_OK && k < f->m.n_members; k++) {
    if (k > 0) fl_buf_puts(out, empty_line);
    rc = fl_text_cache_read(f->texts, f->source_of[k], out, err);
  }
  return rc;
}

/* --- cartridges on disk --- */

void fl_fleet_provenance(const fl_fleet *f, const fl_doc_entry *d, uint64_t gen,
                         fl_provenance *out) {
  *out = (fl_provenance){ .model_name = f->m.model_name,
                          .model_hash = f->m.model_hash,
                          .tokenizer_hash = f->m.tokenizer_hash,
                          .doc_name = d->name,
                          .doc_hash = d->hash,
                          .version = (char *)(uintptr_t)PACKAGE_VERSION,
                          .steps = d->steps,
                          .generation = gen,
                          .seed = f->opts.seed };
}

static int check_file(const fl_doc_entry *d, const char *model_hash, const fl_provenance *prov,
                      const fl_cartridge *c, const char *path, fl_err *err) {
  if (prov->model_hash != NULL && model_hash != NULL && strcmp(prov->model_hash, model_hash) != 0)
    return fl_fail(err, FL_EINPUT, "%s: made for another model; restore it or train with --redo %s",
                   path, d->name);
  if (prov->doc_hash != NULL && d->hash != NULL && strcmp(prov->doc_hash, d->hash) != 0)
    return fl_fail(err, FL_EINPUT, "%s: made of another text; restore it or train with --redo %s",
                   path, d->name);
  if (d->rows > 0 && c->rows.n_rows != d->rows)
    return fl_fail(err, FL_EINPUT,
                   "%s: holds %zu rows where the manifest says %llu; restore it or "
                   "train with --redo %s",
                   path, c->rows.n_rows, (unsigned long long)d->rows, d->name);
  if (prov->model_hash != NULL && c->steps != d->steps)
    return fl_fail(err, FL_EINPUT,
                   "%s: of step %llu where the manifest says %llu; restore it or "
                   "train with --redo %s",
                   path, (unsigned long long)c->steps, (unsigned long long)d->steps, d->name);
  return FL_OK;
}

int fl_doc_entry_read_cartridge(const fl_doc_entry *d, const char *dir, const char *model_hash,
                                const fl_hparams *hp, fl_cartridge *out, fl_err *err) {
  fl_cartridge c = { 0 };
  fl_provenance prov = { 0 };
  if (!d->born)
    return fl_fail(err, FL_ENOENT, "%s: has no cartridge yet; train with --resume", d->name);
  char *path = fl_fs_join(dir, d->cart_file);
  if (path == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory", d->name);
  fl_err why = { 0 };
  int rc = fl_cartridge_read(&c, &prov, path, hp, &why);
  if (rc == FL_EINPUT) fl_fail(err, rc, "%s, or train with --redo %s", why.text, d->name);
  else if (rc != FL_OK && err != NULL) *err = why;
  if (rc == FL_OK) rc = check_file(d, model_hash, &prov, &c, path, err);
  if (rc == FL_OK) {
    c.steps = d->steps; /* files by other programs carry no steps */
    *out = c;
    c = (fl_cartridge){ 0 };
  }
  fl_cartridge_release(&c);
  fl_provenance_release(&prov);
  fl_free(path);
  return rc;
}

int fl_fleet_read_cartridge(const fl_fleet *f, size_t i, fl_cartridge *out, fl_err *err) {
  return fl_doc_entry_read_cartridge(&f->m.doc[i], f->dir, f->m.model_hash,
                                     fl_model_hparams(f->model), out, err);
}

/* --- following a trainer --- */

/* The same documents in the same order: listings stay valid and fields are taken over. */
static bool same_documents(const fl_manifest *a, const fl_manifest *b) {
  if (a->n != b->n || a->n_members != b->n_members) return false;
  for (size_t i = 0; i < a->n; i++) {
    const char *x = a->doc[i].hash, *y = b->doc[i].hash;
    if (a->doc[i].id != b->doc[i].id || strcmp(a->doc[i].name, b->doc[i].name) != 0) return false;
    if (x == NULL || y == NULL || strcmp(x, y) != 0) return false;
  }
  return true;
}

static void swap_strings(char **a, char **b) {
  char *t = *a;
  *a = *b;
  *b = t;
}

/* b becomes the current manifest; a's names and hashes, which callers may hold, move into it. */
static void take_over(fl_manifest *a, fl_manifest *b) {
  for (size_t i = 0; i < a->n; i++) {
    swap_strings(&a->doc[i].name, &b->doc[i].name);
    swap_strings(&a->doc[i].hash, &b->doc[i].hash);
  }
  fl_manifest_release(a);
  *a = *b;
  *b = (fl_manifest){ 0 };
}

static int keep_old(fl_fleet *f, fl_manifest *now, fl_err *err) {
  fl_manifest *p = fl_reallocarray(f->old, f->n_old + 1, sizeof *p);
  if (p == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory to follow it", f->dir);
  f->old = p;
  f->old[f->n_old++] = f->m;
  f->m = *now;
  *now = (fl_manifest){ 0 };
  return FL_OK;
}

static bool same_text(const char *a, const char *b) {
  return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

int fl_fleet_reload(fl_fleet *f, bool *changed, fl_err *err) {
  fl_manifest now = { 0 };
  int rc = fl_manifest_load(&now, f->dir, err);
  return rc == FL_OK ? fl_fleet_take(f, &now, changed, err) : rc;
}

bool fl_fleet_moved_on(fl_fleet *f) {
  bool changed = false;
  return f->read_only && fl_fleet_reload(f, &changed, NULL) == FL_OK && changed;
}

int fl_fleet_take(fl_fleet *f, fl_manifest *now, bool *changed, fl_err *err) {
  bool differs = now->rounds != f->m.rounds || now->edits != f->m.edits || now->n != f->m.n;
  bool index = !same_text(now->index_file, f->m.index_file) ||
               !same_text(now->lexical_file, f->m.lexical_file);
  int rc = FL_OK;
  if (f->model != NULL && !now->foreign && strcmp(now->model_hash, fl_model_hash(f->model)) != 0)
    rc = fl_fail(err, FL_EINPUT, "%s: was made anew for another model; open it again", f->dir);
  else if (same_documents(&f->m, now)) take_over(&f->m, now);
  else rc = keep_old(f, now, err);
  fl_manifest_release(now);
  if (rc != FL_OK) return rc;
  if (index || differs) fl_fleet_attach(f, FL_WITH_INDEX, NULL, NULL);
  *changed = differs || index;
  return FL_OK;
}

/* --- commits --- */

int fl_fleet_commit(fl_fleet *f, fl_commit *c, const char *reason, fl_err *err) {
  double began = fl_now_s();
  int rc = fl_commit_finish(c, &f->m, err);
  if (rc != FL_OK) {
    fl_err_prefix(err, "the last saved generation is whole, the new one was given up");
    return rc;
  }
  f->unsaved = false;
  fl_event e;
  fl_event_begin(&e, "save");
  fl_event_int(&e, "round", (int64_t)f->m.rounds);
  fl_event_int(&e, "generation", (int64_t)fl_manifest_generation(&f->m));
  fl_event_int(&e, "bytes", (int64_t)c->bytes);
  fl_event_num(&e, "seconds", fl_now_s() - began);
  fl_event_str(&e, "reason", reason);
  fl_event_emit(f->log, &e);
  return FL_OK;
}

void fl_hooks_note(const fl_fleet *f, const fl_train_hooks *h, const char *doc, const char *note) {
  if (h == NULL || h->progress == NULL) return;
  fl_progress p = { .round = f->m.rounds, .doc = doc, .note = note };
  h->progress(h->ctx, &p);
}
