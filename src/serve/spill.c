/* spill.c - the folder of spilled slots: what is in it, what leaves it. */
#include "serve/spill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/spill_io.h"

struct fl_spill {
  char *dir;
  fl_lock *lock;
  fl_spill_shape shape;
  char model_hash[FL_HASH_TEXT];
  fl_spill_file **file;
  size_t n, cap;             /* cap: the limit, places are there for one more */
  uint64_t clock, next_name;
  fl_spill_stats stats;
  bool told;                 /* of a failure */
};

static const char ending[] = ".flslot";

static bool parse_name(const char *name, uint64_t *number) {
  char *end;
  if (strncmp(name, "slot-", 5) != 0 || strlen(name) != 5 + 16 + strlen(ending)) return false;
  *number = strtoull(name + 5, &end, 16);
  return end == name + 21 && strcmp(end, ending) == 0;
}

static bool is_leftover(const char *name) {
  size_t n = strlen(name);
  return strncmp(name, "slot-", 5) == 0 && n > 4 && strcmp(name + n - 4, ".tmp") == 0;
}

static void remove_named(const fl_spill *s, const char *name) {
  char *path = fl_fs_join(s->dir, name);
  if (path != NULL) (void)fl_fs_remove(path);
  fl_free(path);
}

static void forget(fl_spill *s, size_t i) {
  remove_named(s, s->file[i]->name);
  fl_spill_file_release(s->file[i]);
  fl_free(s->file[i]);
  s->file[i] = s->file[--s->n];
}

static void drop_oldest(fl_spill *s) {
  size_t at = 0;
  for (size_t i = 1; i < s->n; i++)
    if (s->file[i]->used < s->file[at]->used) at = i;
  forget(s, at);
}

/* The list takes f over; name is copied. */
static int list_file(fl_spill *s, fl_spill_file *f, const char *name) {
  fl_spill_file *e = fl_calloc(1, sizeof *e);
  f->name = fl_strdup(name);
  if (e == NULL || f->name == NULL) {
    fl_free(e);
    fl_spill_file_release(f);
    return FL_ENOMEM;
  }
  *e = *f;
  e->used = ++s->clock;
  s->file[s->n++] = e;
  while (s->n > s->cap) drop_oldest(s);
  return FL_OK;
}

/* --- opening --- */

static void look_at(fl_spill *s, const char *name) {
  fl_spill_file f = { 0 };
  fl_err why = { 0 };
  uint64_t number;
  if (is_leftover(name)) remove_named(s, name);
  if (!parse_name(name, &number)) return;
  if (number >= s->next_name) s->next_name = number + 1;
  char *path = fl_fs_join(s->dir, name);
  int rc = path != NULL ? fl_spill_read_head(&s->shape, path, &f, &why) : FL_ENOMEM;
  if (rc == FL_OK) rc = list_file(s, &f, name);
  if (rc == FL_EINPUT) {
    s->stats.damaged++;
    fl_warn("%s", why.text);
    remove_named(s, name);
  }
  fl_free(path);
}

static int open_dir(fl_spill *s, fl_err *err) {
  char **names = NULL;
  size_t n = 0;
  bool made = !fl_fs_is_dir(s->dir);
  int rc = fl_fs_mkdir(s->dir, err);
  if (rc != FL_OK) return rc;
  if (made) (void)chmod(s->dir, 0700); /* what people say is in there */
  char *lock = fl_fs_join(s->dir, "lock");
  rc = lock != NULL ? fl_lock_take(&s->lock, lock, err) : FL_ENOMEM;
  fl_free(lock);
  if (rc == FL_OK) rc = fl_fs_list(&names, &n, s->dir, err);
  if (rc != FL_OK) return rc;
  for (size_t i = 0; i < n; i++) look_at(s, names[i]); /* in the order of their making */
  fl_fs_list_free(names, n);
  return FL_OK;
}

int fl_spill_open(fl_spill **out, const char *dir, size_t max_files, const fl_model *model,
                  const fl_kv_pool *pool, fl_err *err) {
  const fl_hparams *hp = fl_model_hparams(model);
  fl_spill *s = fl_calloc(1, sizeof *s);
  int rc = FL_ENOMEM;
  if (s != NULL) {
    s->cap = max_files;
    snprintf(s->model_hash, sizeof s->model_hash, "%s", fl_model_hash(model));
    s->shape = (fl_spill_shape){ .pool = pool, .model_hash = s->model_hash, .n_ctx = hp->n_ctx,
                                 .n_vocab = hp->n_vocab };
    s->dir = fl_strdup(dir);
    s->file = fl_calloc(max_files + 1, sizeof *s->file);
    if (s->dir != NULL && s->file != NULL) rc = open_dir(s, err);
  }
  if (rc != FL_OK) {
    fl_spill_close(s);
    return rc == FL_ENOMEM ? fl_fail(err, rc, "%s: not enough memory", dir) : rc;
  }
  *out = s;
  return FL_OK;
}

void fl_spill_close(fl_spill *s) {
  if (s == NULL) return;
  for (size_t i = 0; i < s->n; i++) {
    fl_spill_file_release(s->file[i]);
    fl_free(s->file[i]);
  }
  fl_free(s->file);
  fl_lock_drop(s->lock);
  fl_free(s->dir);
  fl_free(s);
}

/* --- saving --- */

/* True when a file begins with these tokens already. */
static bool covered(const fl_spill *s, const fl_spill_item *it) {
  for (size_t i = 0; i < s->n; i++) {
    const fl_spill_file *f = s->file[i];
    if (f->owner == it->owner && strcmp(f->print, it->prefix->print) == 0 && f->n >= it->n &&
        fl_common_ids(f->ids, f->n, it->ids, it->n) == it->n)
      return true;
  }
  return false;
}

/* Files that are beginnings of the new one. */
static void drop_contained(fl_spill *s, const fl_spill_item *it) {
  for (size_t i = s->n; i-- > 0;) {
    const fl_spill_file *f = s->file[i];
    if (f->owner == it->owner && strcmp(f->print, it->prefix->print) == 0 && f->n < it->n &&
        fl_common_ids(f->ids, f->n, it->ids, it->n) == f->n)
      forget(s, i);
  }
}

static int describe(const fl_spill_item *it, fl_spill_file *f) {
  *f = (fl_spill_file){ .n = it->n, .n_docs = it->prefix->n_docs, .prefix_rows = it->prefix->rows,
                         .owner = it->owner };
  f->ids = fl_calloc(it->n, sizeof *f->ids);
  f->doc = fl_calloc(it->prefix->n_docs + 1, sizeof *f->doc);
  if (f->ids == NULL || f->doc == NULL) {
    fl_spill_file_release(f);
    return FL_ENOMEM;
  }
  memcpy(f->ids, it->ids, it->n * sizeof *f->ids);
  memcpy(f->doc, it->prefix->doc, it->prefix->n_docs * sizeof *f->doc);
  snprintf(f->print, sizeof f->print, "%s", it->prefix->print);
  snprintf(f->key, sizeof f->key, "%s", it->key);
  return FL_OK;
}

void fl_spill_save(fl_spill *s, const fl_spill_item *it) {
  char name[40];
  fl_spill_file f;
  fl_err why = { 0 };
  if (it->n < FL_SPILL_MIN || s->cap == 0 || covered(s, it)) return;
  snprintf(name, sizeof name, "slot-%016llx%s", (unsigned long long)s->next_name++, ending);
  int rc = fl_spill_write(&s->shape, s->dir, name, it, &why);
  if (rc == FL_OK) {
    drop_contained(s, it);
    rc = describe(it, &f);
    if (rc == FL_OK) rc = list_file(s, &f, name);
    if (rc != FL_OK) remove_named(s, name);
  }
  if (rc == FL_OK) {
    s->stats.saved++;
    return;
  }
  s->stats.skipped++;
  if (!s->told) fl_warn("%s; rows of evicted conversations are lost", why.text);
  s->told = true;
}

/* --- restoring --- */

fl_spill_file *fl_spill_find(fl_spill *s, const fl_prefix *prefix, uint32_t owner,
                             const int32_t *ids, size_t n, size_t *common) {
  fl_spill_file *best = NULL;
  size_t most = 0;
  for (size_t i = 0; i < s->n; i++) {
    fl_spill_file *f = s->file[i];
    if (f->owner != owner || f->prefix_rows != prefix->rows) continue;
    if (strcmp(f->print, prefix->print) != 0) continue;
    size_t m = fl_common_ids(f->ids, f->n, ids, n);
    if (m <= most) continue;
    most = m;
    best = f;
  }
  *common = most;
  return best;
}

static size_t place_of(const fl_spill *s, const fl_spill_file *file) {
  size_t i = 0;
  while (s->file[i] != file) i++;
  return i;
}

int fl_spill_restore(fl_spill *s, fl_spill_file *file, fl_seq *seq, size_t n) {
  fl_err why = { 0 };
  char *path = fl_fs_join(s->dir, file->name);
  int rc = path != NULL ? fl_spill_read_rows(&s->shape, path, file, seq, n, &why) : FL_ENOMEM;
  fl_free(path);
  if (rc == FL_OK) {
    file->used = ++s->clock;
    s->stats.restored++;
  } else if (rc != FL_EFULL && rc != FL_ENOMEM) {
    s->stats.damaged++;
    fl_warn("%s", why.text);
    forget(s, place_of(s, file));
  }
  return rc;
}

size_t fl_spill_n(const fl_spill *s) { return s->n; }
const fl_spill_file *fl_spill_at(const fl_spill *s, size_t i) { return s->file[i]; }
fl_spill_stats fl_spill_stats_of(const fl_spill *s) { return s->stats; }
