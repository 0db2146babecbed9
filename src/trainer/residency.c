/* residency.c - see residency.h. */
#include "trainer/residency.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "trainer/dataset.h"
#include "trainer/sizes.h"

void fl_resident_drop_heldout(fl_resident *s) {
  for (size_t i = 0; i < s->n_heldout; i++) fl_conv_release(&s->heldout[i]);
  fl_free(s->heldout);
  s->heldout = NULL;
  s->n_heldout = 0;
  s->heldout_known = false;
}

static void resident_free(fl_resident *s) {
  if (s == NULL) return;
  fl_cartridge_release(&s->cart);
  fl_adam_release(&s->adam);
  fl_rows_release(&s->grad);
  fl_doc_text_release(&s->text);
  fl_replay_release(&s->kept);
  for (size_t i = 0; i < s->n_given; i++) fl_conv_release(&s->given[i]);
  fl_free(s->given);
  fl_resident_drop_heldout(s);
  fl_free(s);
}

void fl_residency_release(fl_residency *r) {
  for (size_t i = 0; i < r->n; i++) resident_free(r->slot[i]);
  fl_free(r->slot);
  fl_free(r->trainee);
  *r = (fl_residency){ 0 };
}

size_t fl_residency_slot(const fl_residency *r, size_t doc) {
  size_t i = 0;
  while (i < r->n && r->slot[i]->doc != doc) i++;
  return i;
}

fl_resident *fl_residency_find(const fl_residency *r, size_t doc) {
  size_t i = fl_residency_slot(r, doc);
  return i < r->n ? r->slot[i] : NULL;
}

/* --- loading --- */

static int load_moments(fl_resident *s, const fl_fleet *f, const fl_doc_entry *d, fl_err *err) {
  fl_err why = { 0 };
  char *path = fl_fs_join(f->dir, d->opt_file);
  if (path == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory", d->name);
  int rc = fl_adam_read(&s->adam, path, &s->cart, &why);
  if (rc == FL_ENOENT) {
    /* At birth no moments are written: they are zero. */
    if (d->steps > 0) fl_warn("%s: missing; %s continues with fresh moments", path, d->name);
    rc = fl_adam_init(&s->adam, fl_model_hparams(f->model), &s->cart, err);
  } else if (rc != FL_OK && err != NULL) {
    *err = why;
  }
  fl_free(path);
  return rc;
}

static int load_text(fl_resident *s, const fl_fleet *f, size_t doc, fl_err *err) {
  fl_buf own = { 0 };
  int rc = fl_fleet_text(f, doc, &own, err);
  if (rc == FL_OK)
    rc = fl_doc_text_init(&s->text, fl_model_tokenizer(f->model), own.data, own.len, err);
  s->text.name = f->m.doc[doc].name;
  fl_buf_release(&own);
  return rc;
}

static int load_kept(fl_resident *s, const fl_fleet *f, const fl_doc_entry *d,
                     const fl_conv_limits *limits, fl_err *err) {
  if (d->study_file == NULL) return FL_OK;
  char *path = fl_fs_join(f->dir, d->study_file);
  if (path == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory", d->name);
  fl_err why = { 0 };
  int rc = fl_replay_read(&s->kept, path, limits, &why);
  if (rc == FL_OK && s->kept.n == 0)
    rc = fl_fail(&why, FL_EINPUT, "%s: holds no conversation; restore it", path);
  else if (rc == FL_OK && d->kept > 0 && s->kept.n != d->kept)
    rc = fl_fail(&why, FL_EINPUT,
                 "%s: holds %zu conversations where the manifest says %llu; "
                 "restore it",
                 path, s->kept.n, (unsigned long long)d->kept);
  if (rc == FL_EINPUT) fl_fail(err, rc, "%s, or train with --redo %s", why.text, d->name);
  else if (rc != FL_OK && err != NULL) *err = why;
  fl_free(path);
  return rc;
}

static int insert(fl_residency *r, fl_resident *s) {
  fl_resident **slot = fl_reallocarray(r->slot, r->n + 1, sizeof *slot);
  if (slot == NULL) return FL_ENOMEM;
  r->slot = slot;
  fl_trainable *t = fl_reallocarray(r->trainee, r->n + 1, sizeof *t);
  if (t == NULL) return FL_ENOMEM;
  r->trainee = t;
  size_t at = 0;
  while (at < r->n && slot[at]->doc < s->doc) at++;
  memmove(&slot[at + 1], &slot[at], (r->n - at) * sizeof *slot);
  memmove(&t[at + 1], &t[at], (r->n - at) * sizeof *t);
  slot[at] = s;
  t[at] = (fl_trainable){ .cart = &s->cart, .adam = &s->adam, .grad = &s->grad };
  r->n++;
  return FL_OK;
}

int fl_residency_load(fl_residency *r, const fl_fleet *f, size_t doc, const fl_conv_limits *limits,
                      fl_err *err) {
  const fl_doc_entry *d = &f->m.doc[doc];
  fl_resident *s = fl_calloc(1, sizeof *s);
  if (s == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory to load it", d->name);
  s->doc = doc;
  int rc = fl_fleet_read_cartridge(f, doc, &s->cart, err);
  if (rc == FL_OK) rc = load_moments(s, f, d, err);
  if (rc == FL_OK) fl_train_to_files(&f->opts, f->dir, &s->cart, &s->adam);
  if (rc == FL_OK) rc = load_text(s, f, doc, err);
  if (rc == FL_OK) rc = load_kept(s, f, d, limits, err);
  if (rc == FL_OK)
    rc = fl_dataset_read(fl_fleet_attachment(f, FL_WITH_DATASET), doc, limits, &s->given,
                         &s->n_given, err);
  if (rc == FL_OK && insert(r, s) != FL_OK)
    rc = fl_fail(err, FL_ENOMEM, "%s: not enough memory to load it", d->name);
  if (rc != FL_OK) resident_free(s);
  return rc;
}

void fl_residency_drop(fl_residency *r, size_t doc) {
  size_t at = fl_residency_slot(r, doc);
  if (at == r->n) return;
  resident_free(r->slot[at]);
  memmove(&r->slot[at], &r->slot[at + 1], (r->n - at - 1) * sizeof r->slot[0]);
  memmove(&r->trainee[at], &r->trainee[at + 1], (r->n - at - 1) * sizeof r->trainee[0]);
  r->n--;
}

void fl_resident_touch(fl_resident *s, uint64_t gen) {
  s->dirty = true;
  s->changed = gen;
}

/* --- saving --- */

static int save_rows(fl_resident *s, fl_fleet *f, fl_commit *c, fl_err *err) {
  fl_doc_entry *d = &f->m.doc[s->doc];
  fl_provenance prov;
  char *cart = NULL, *opt = NULL;
  if (fl_doc_entry_name_files(d, s->changed) != FL_OK)
    return fl_fail(err, FL_ENOMEM, "%s: not enough memory to save it", d->name);
  fl_fleet_provenance(f, d, s->changed, &prov);
  int rc = fl_commit_path(&cart, c, d->cart_file, err);
  if (rc == FL_OK) rc = fl_cartridge_write(cart, &s->cart, &prov, err);
  if (rc == FL_OK) rc = fl_commit_path(&opt, c, d->opt_file, err);
  if (rc == FL_OK) rc = fl_adam_write(opt, &s->adam, &s->cart, err);
  fl_adam_evict_pages(&s->adam);
  fl_rows_evict_pages(&s->cart.rows);
  fl_free(cart);
  fl_free(opt);
  return rc;
}

static int save_kept(fl_resident *s, fl_fleet *f, fl_commit *c, fl_err *err) {
  fl_doc_entry *d = &f->m.doc[s->doc];
  const fl_conv_label label = { .doc = d->id, .name = d->name, .hash = d->hash };
  char *name = fl_study_file_name(d->id, s->kept_changed), *path = NULL;
  if (name == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory to save it", d->name);
  int rc = fl_commit_path(&path, c, name, err);
  if (rc == FL_OK) rc = fl_replay_write(path, &s->kept, &label, err);
  if (rc == FL_OK) {
    fl_free(d->study_file);
    d->study_file = name;
    d->kept = s->kept.n;
    name = NULL;
  }
  fl_free(name);
  fl_free(path);
  return rc;
}

int fl_residency_save(fl_residency *r, fl_fleet *f, fl_commit *c, fl_err *err) {
  int rc = FL_OK;
  for (size_t i = 0; rc == FL_OK && i < r->n; i++) {
    fl_resident *s = r->slot[i];
    if (s->dirty) rc = save_rows(s, f, c, err);
    if (rc == FL_OK && s->kept_dirty) rc = save_kept(s, f, c, err);
  }
  return rc;
}

int fl_residency_name(fl_residency *r, fl_fleet *f, fl_err *err) {
  for (size_t i = 0; i < r->n; i++) {
    const fl_resident *s = r->slot[i];
    fl_doc_entry *d = &f->m.doc[s->doc];
    char *kept = s->kept_dirty ? fl_study_file_name(d->id, s->kept_changed) : NULL;
    if ((s->dirty && fl_doc_entry_name_files(d, s->changed) != FL_OK) ||
        (s->kept_dirty && kept == NULL)) {
      fl_free(kept);
      return fl_fail(err, FL_ENOMEM, "%s: not enough memory to follow a save", d->name);
    }
    if (kept == NULL) continue;
    fl_free(d->study_file);
    d->study_file = kept;
    d->kept = s->kept.n;
  }
  return FL_OK;
}

void fl_residency_saved(fl_residency *r) {
  for (size_t i = 0; i < r->n; i++) r->slot[i]->dirty = r->slot[i]->kept_dirty = false;
}

/* --- sizes --- */

uint64_t fl_resident_bytes(const fl_hparams *hp, uint64_t rows) {
  return fl_rows_bytes(hp, rows) * 4; /* rows, two moments, gradient */
}

uint64_t fl_residency_bytes(const fl_residency *r, const fl_hparams *hp) {
  uint64_t n = 0;
  for (size_t i = 0; i < r->n; i++) n += fl_resident_bytes(hp, r->slot[i]->cart.rows.n_rows);
  return n;
}

void fl_rot_docs(const fl_fleet *f, fl_rot_doc *out) {
  const fl_hparams *hp = fl_model_hparams(f->model);
  for (size_t i = 0; i < f->m.n; i++) {
    const fl_doc_entry *d = &f->m.doc[i];
    out[i] = (fl_rot_doc){ .id = d->id,
                           .steps = d->steps,
                           .targeted = d->targeted,
                           .tokens = d->tokens,
                           .resident = d->resident,
                           .marked = d->marked,
                           .bytes = fl_resident_bytes(hp, d->rows > 0 ? d->rows : f->m.p) };
  }
}
