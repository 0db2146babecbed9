/* cache.c - cartridges in memory for answers, and composing what a question stands behind. They
 * come from disk when they are first asked for, or by way of a supply, for those who may not
 * wait. */
#include <string.h>

#include "base/mem.h"
#include "fleet/state.h"
#include "fleet/supply.h"
#include "fleet/trainer.h"

void fl_cache_release(fl_fleet *f) {
  for (size_t i = 0; i < f->n_cache; i++) {
    fl_cartridge_release(&f->cache[i].cart);
    fl_free(f->cache[i].file);
  }
  fl_free(f->cache);
  f->cache = NULL;
  f->n_cache = 0;
}

static fl_cached *cache_find(const fl_fleet *f, const char *file) {
  for (size_t i = 0; i < f->n_cache; i++)
    if (f->cache[i].file != NULL && strcmp(f->cache[i].file, file) == 0) return &f->cache[i];
  return NULL;
}

static int cache_init(fl_fleet *f, fl_err *err) {
  if (f->cache != NULL) return FL_OK;
  size_t n = f->opts.budget > FL_CACHE_MIN ? f->opts.budget : FL_CACHE_MIN;
  f->cache = fl_calloc(n, sizeof *f->cache);
  if (f->cache == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory", f->dir);
  f->n_cache = n;
  return FL_OK;
}

static fl_cached *cache_oldest(fl_fleet *f) {
  fl_cached *best = &f->cache[0];
  for (size_t i = 1; i < f->n_cache; i++)
    if (f->cache[i].used < best->used) best = &f->cache[i];
  fl_cartridge_release(&best->cart);
  fl_free(best->file);
  *best = (fl_cached){ 0 };
  return best;
}

/* A document keeps its place in the listing as long as the set of documents does; where a reload
 * moved it, `name` finds it again. */
static int read_retrying(fl_fleet *f, size_t i, fl_cartridge *out, char **file, fl_err *err) {
  int rc;
  for (int left = FL_RELOADS;; left--) {
    fl_err why = { 0 };
    const char *name = f->m.doc[i].name; /* stays valid over a reload */
    rc = fl_fleet_read_cartridge(f, i, out, &why);
    if (rc == FL_ENOENT && left > 0 && fl_fleet_moved_on(f) && fl_manifest_find(&f->m, name, &i))
      continue;
    if (rc != FL_OK && err != NULL) *err = why;
    break;
  }
  if (rc == FL_OK && !fl_set_string(file, f->m.doc[i].cart_file)) {
    fl_cartridge_release(out);
    rc = fl_fail(err, FL_ENOMEM, "%s: not enough memory", f->dir);
  }
  return rc;
}

int fl_fleet_cartridge(fl_fleet *f, size_t i, const fl_cartridge **out, fl_err *err) {
  const fl_cartridge *own = f->trainer != NULL ? fl_trainer_cartridge(f->trainer, i) : NULL;
  if (own != NULL) {
    *out = own;
    return FL_OK;
  }
  int rc = cache_init(f, err);
  if (rc != FL_OK) return rc;
  fl_cached *c = cache_find(f, f->m.doc[i].cart_file);
  if (c == NULL && f->off_disk)
    return fl_fail(err, FL_EBUSY, "%s: not in memory now; try again", f->m.doc[i].name);
  if (c == NULL) {
    c = cache_oldest(f);
    rc = read_retrying(f, i, &c->cart, &c->file, err);
    if (rc != FL_OK) return rc;
  }
  c->used = ++f->clock;
  *out = &c->cart;
  return FL_OK;
}

int fl_fleet_compose(fl_fleet *f, fl_seq *seq, const size_t *docs, size_t n, fl_err *err) {
  int rc = FL_OK;
  for (size_t i = 0; rc == FL_OK && i < n; i++) {
    const fl_cartridge *c = NULL;
    if (docs[i] >= f->m.n) return fl_fail(err, FL_ENOENT, "%s: no document %zu", f->dir, docs[i]);
    rc = fl_fleet_cartridge(f, docs[i], &c, err);
    if (rc == FL_OK) rc = fl_compose(seq, &c, 1, f->opts.positions, err);
  }
  return rc;
}

/* --- by way of a supply --- */

bool fl_cache_has(const fl_fleet *f, size_t i) {
  return cache_find(f, f->m.doc[i].cart_file) != NULL;
}

static const fl_cartridge *supplied(const fl_supply *s, const char *file) {
  for (size_t i = 0; i < s->n; i++)
    if (s->doc[i].read && strcmp(s->doc[i].doc.cart_file, file) == 0) return &s->doc[i].cart;
  return NULL;
}

int fl_supply_compose(const fl_supply *s, fl_fleet *f, fl_seq *seq, size_t i, fl_err *err) {
  fl_cached *known = cache_find(f, f->m.doc[i].cart_file);
  const fl_cartridge *c = known != NULL ? &known->cart : supplied(s, f->m.doc[i].cart_file);
  if (c == NULL) return fl_fail(err, FL_EBUSY, "%s: not read yet", f->m.doc[i].name);
  if (known != NULL) known->used = ++f->clock;
  return fl_compose(seq, &c, 1, f->opts.positions, err);
}

void fl_supply_keep(fl_supply *s, fl_fleet *f) {
  if (cache_init(f, NULL) != FL_OK) return;
  for (size_t i = 0; i < s->n; i++) {
    fl_supply_doc *d = &s->doc[i];
    if (!d->read || cache_find(f, d->doc.cart_file) != NULL) continue;
    fl_cached *c = cache_oldest(f);
    c->file = d->doc.cart_file;
    c->cart = d->cart;
    c->used = ++f->clock;
    d->doc.cart_file = NULL;
    d->cart = (fl_cartridge){ 0 };
    d->read = false;
  }
}
