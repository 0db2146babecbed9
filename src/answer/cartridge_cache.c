/* cartridge_cache.c - see cartridge_cache.h. They come from disk when they are first asked for, or
 * by way of a fetch plan, for those who may not wait. */
#include "answer/cartridge_cache.h"

#include <string.h>

#include "answer/answer.h"
#include "base/mem.h"

static void free_cache(void *p) {
  fl_cartridge_cache *x = p;
  for (size_t i = 0; i < x->n; i++) {
    fl_cartridge_release(&x->place[i].cart);
    fl_free(x->place[i].file);
  }
  fl_free(x->place);
  fl_free(x);
}

int fl_cache_of(fl_cartridge_cache **out, fl_fleet *f, fl_err *err) {
  *out = fl_fleet_attachment(f, FL_WITH_CACHE);
  if (*out != NULL) return FL_OK;
  const size_t n = f->opts.budget > FL_CACHE_MIN ? f->opts.budget : FL_CACHE_MIN;
  fl_cartridge_cache *x = fl_calloc(1, sizeof *x);
  if (x != NULL) x->place = fl_calloc(n, sizeof *x->place);
  if (x == NULL || x->place == NULL) {
    fl_free(x);
    return fl_fail(err, FL_ENOMEM, "%s: not enough memory", f->dir);
  }
  x->n = n;
  fl_fleet_attach(f, FL_WITH_CACHE, x, free_cache);
  *out = x;
  return FL_OK;
}

static fl_cached *find(const fl_cartridge_cache *x, const char *file) {
  for (size_t i = 0; x != NULL && i < x->n; i++)
    if (x->place[i].file != NULL && strcmp(x->place[i].file, file) == 0) return &x->place[i];
  return NULL;
}

bool fl_cache_holds(const fl_cartridge_cache *x, const char *file) { return find(x, file) != NULL; }

bool fl_cache_has(const fl_fleet *f, size_t i) {
  return find(fl_fleet_attachment(f, FL_WITH_CACHE), f->m.doc[i].cart_file) != NULL;
}

const fl_cartridge *fl_cache_find(fl_fleet *f, size_t i) {
  fl_cartridge_cache *x = fl_fleet_attachment(f, FL_WITH_CACHE);
  fl_cached *c = find(x, f->m.doc[i].cart_file);
  if (c == NULL) return NULL;
  c->used = ++x->clock;
  return &c->cart;
}

/* An empty place: that of the cartridge used longest ago, which goes. */
static fl_cached *make_room(fl_cartridge_cache *x) {
  fl_cached *best = &x->place[0];
  for (size_t i = 1; i < x->n; i++)
    if (x->place[i].used < best->used) best = &x->place[i];
  fl_cartridge_release(&best->cart);
  fl_free(best->file);
  *best = (fl_cached){ 0 };
  return best;
}

void fl_cache_put(fl_cartridge_cache *x, fl_cartridge *c, char **file) {
  fl_cached *to = make_room(x);
  *to = (fl_cached){ .cart = *c, .file = *file, .used = ++x->clock };
  *c = (fl_cartridge){ 0 };
  *file = NULL;
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
  fl_cartridge_cache *x = NULL;
  fl_cartridge c = { 0 };
  char *file = NULL;
  *out = f->rows_of != NULL ? f->rows_of(f->rows_ctx, i) : NULL;
  if (*out == NULL) *out = fl_cache_find(f, i);
  if (*out != NULL) return FL_OK;
  if (f->off_disk)
    return fl_fail(err, FL_EBUSY, "%s: not in memory now; try again", f->m.doc[i].name);
  int rc = fl_cache_of(&x, f, err);
  if (rc == FL_OK) (void)make_room(x); /* before the next one takes memory */
  if (rc == FL_OK) rc = read_retrying(f, i, &c, &file, err);
  if (rc == FL_OK) fl_cache_put(x, &c, &file);
  if (rc == FL_OK) *out = fl_cache_find(f, i);
  return rc;
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
