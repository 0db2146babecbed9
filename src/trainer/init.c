/* init.c - before the first round: cartridges that are not born yet, and the index. */
#include <string.h>

#include "base/mem.h"
#include "trainer/init_rows.h"
#include "retrieval/retrieval.h"
#include "trainer/state.h"

enum { BIRTHS_A_COMMIT = 32 };

static int birth(fl_fleet *f, size_t i, fl_commit *c, fl_err *err) {
  fl_doc_entry *d = &f->m.doc[i];
  fl_cartridge cart = { 0 };
  fl_provenance prov;
  fl_buf own = { 0 };
  char *path = NULL;
  int rc = fl_fleet_text(f, i, &own, err);
  if (rc == FL_OK) rc = fl_fleet_init_rows(&cart, f, i, own.data, own.len, err);
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

static int poll_trainer(void *ctx) { return fl_trainer_poll(ctx) ? FL_EINTR : FL_OK; }

static void pass_progress_on(void *ctx, const fl_progress *p) {
  const fl_trainer *t = ctx;
  if (t->hooks != NULL && t->hooks->progress != NULL) t->hooks->progress(t->hooks->ctx, p);
}

int fl_trainer_index(fl_trainer *t, fl_err *err) {
  const fl_train_hooks hooks = { .ctx = t, .poll = poll_trainer, .progress = pass_progress_on };
  if (t->f->m.index_file != NULL) return fl_index_add_words(t->f, &hooks, err);
  return fl_index_rebuild(t->f, false, &hooks, err);
}
