/* spill.c - the folder of spilled slots: what is in it, what leaves it. */
#include "serve/spill.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/spill_io.h"

/* What the other thread is to write. It reads f, seq and name and sets rc and why, then `written`
 * under mu; the engine's thread owns the list's other ends. */
typedef struct job {
  struct job *next;          /* younger; under mu */
  fl_spill_file f;
  fl_seq *seq;
  char name[40];
  int rc;
  fl_err why;
  bool written;              /* under mu */
} job;

/* What it is to read. It reads f, n and seq, writes rows of seq, and sets rc and why, then `done`
 * under mu. */
struct fl_spill_reading {
  fl_spill_reading *next;    /* younger; under mu */
  fl_spill_file f;           /* a copy: the list may drop it */
  fl_seq *seq;
  size_t n;
  int rc;
  fl_err why;
  bool done;                 /* under mu */
  bool abandoned, remove;    /* the engine's: nobody waits; the file has left the list */
};

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
  pthread_t thread;
  bool has_thread;
  pthread_mutex_t mu;
  pthread_cond_t work, done; /* for the other thread, from it */
  job *first;                /* the oldest; changed by the engine's thread, under mu */
  size_t n_jobs;
  fl_spill_reading *reading; /* the same */
  void (*ready)(void *ctx);
  void *ready_ctx;
  bool stop;                 /* under mu */
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
  bool read = false;
  for (fl_spill_reading *r = s->reading; r != NULL; r = r->next) {
    if (strcmp(r->f.name, s->file[i]->name) != 0) continue;
    read = r->remove = true; /* whoever ends last removes it */
  }
  if (!read) remove_named(s, s->file[i]->name);
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

/* --- the other thread --- */

static job *to_write(fl_spill *s) {
  job *j = s->first;
  while (j != NULL && j->written) j = j->next;
  return j;
}

static fl_spill_reading *to_read(fl_spill *s) {
  fl_spill_reading *r = s->reading;
  while (r != NULL && r->done) r = r->next;
  return r;
}

/* Both are called with mu held and give it up meanwhile. */
static void write_one(fl_spill *s, job *j) {
  pthread_mutex_unlock(&s->mu);
  int rc = fl_spill_write(&s->shape, s->dir, j->name, &j->f, j->seq, &j->why);
  pthread_mutex_lock(&s->mu);
  j->rc = rc;
  j->written = true;
  pthread_cond_signal(&s->done);
}

static void read_one(fl_spill *s, fl_spill_reading *r) {
  pthread_mutex_unlock(&s->mu);
  char *path = fl_fs_join(s->dir, r->f.name);
  int rc = path != NULL ? fl_spill_read_rows(&s->shape, path, &r->f, r->seq, r->n, &r->why)
                        : FL_ENOMEM;
  fl_free(path);
  pthread_mutex_lock(&s->mu);
  r->rc = rc;
  r->done = true;
  pthread_cond_signal(&s->done);
  if (s->ready == NULL) return;
  pthread_mutex_unlock(&s->mu);
  s->ready(s->ready_ctx);
  pthread_mutex_lock(&s->mu);
}

static void *run(void *arg) {
  fl_spill *s = arg;
  pthread_mutex_lock(&s->mu);
  for (;;) {
    fl_spill_reading *r = to_read(s);
    job *j = r == NULL ? to_write(s) : NULL;
    if (r != NULL) read_one(s, r);
    else if (j != NULL) write_one(s, j);
    else if (s->stop) break;
    else pthread_cond_wait(&s->work, &s->mu);
  }
  pthread_mutex_unlock(&s->mu);
  return NULL;
}

static void add_job(fl_spill *s, job *j) {
  pthread_mutex_lock(&s->mu);
  job **at = &s->first;
  while (*at != NULL) at = &(*at)->next;
  *at = j;
  pthread_cond_signal(&s->work);
  pthread_mutex_unlock(&s->mu);
  s->n_jobs++;
}

/* The oldest, when it is written or by waiting for that. */
static job *take_written(fl_spill *s, bool wait) {
  pthread_mutex_lock(&s->mu);
  while (wait && s->first != NULL && !s->first->written) pthread_cond_wait(&s->done, &s->mu);
  job *j = s->first != NULL && s->first->written ? s->first : NULL;
  if (j != NULL) s->first = j->next;
  pthread_mutex_unlock(&s->mu);
  s->n_jobs -= j != NULL;
  return j;
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
    pthread_mutex_init(&s->mu, NULL);
    pthread_cond_init(&s->work, NULL);
    pthread_cond_init(&s->done, NULL);
    s->cap = max_files;
    snprintf(s->model_hash, sizeof s->model_hash, "%s", fl_model_hash(model));
    s->shape = (fl_spill_shape){ .pool = pool, .model_hash = s->model_hash, .n_ctx = hp->n_ctx,
                                 .n_vocab = hp->n_vocab };
    s->dir = fl_strdup(dir);
    s->file = fl_calloc(max_files + 1, sizeof *s->file);
    if (s->dir != NULL && s->file != NULL) rc = open_dir(s, err);
  }
  if (rc == FL_OK) {
    s->has_thread = pthread_create(&s->thread, NULL, run, s) == 0;
    if (!s->has_thread) rc = fl_fail(err, FL_EFAIL, "the system gives no thread for %s", dir);
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
  while (fl_spill_wait(s)) continue;
  if (s->has_thread) {
    pthread_mutex_lock(&s->mu);
    s->stop = true;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->mu);
    pthread_join(s->thread, NULL);
  }
  pthread_mutex_destroy(&s->mu);
  pthread_cond_destroy(&s->work);
  pthread_cond_destroy(&s->done);
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

static bool begins_with(const fl_spill_file *f, const fl_spill_item *it) {
  return f->owner == it->owner && strcmp(f->print, it->prefix->print) == 0 && f->n >= it->n &&
         fl_common_ids(f->ids, f->n, it->ids, it->n) == it->n;
}

/* True when a file begins with these tokens already, or will. */
static bool covered(const fl_spill *s, const fl_spill_item *it) {
  for (size_t i = 0; i < s->n; i++)
    if (begins_with(s->file[i], it)) return true;
  for (const job *j = s->first; j != NULL; j = j->next)
    if (begins_with(&j->f, it)) return true;
  return false;
}

/* Files that are beginnings of the new one. */
static void drop_contained(fl_spill *s, const fl_spill_file *whole) {
  for (size_t i = s->n; i-- > 0;) {
    const fl_spill_file *f = s->file[i];
    if (f->owner == whole->owner && strcmp(f->print, whole->print) == 0 && f->n < whole->n &&
        fl_common_ids(f->ids, f->n, whole->ids, whole->n) == f->n)
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

static void skip(fl_spill *s, const char *why) {
  s->stats.skipped++;
  if (!s->told) fl_warn("%s; rows of evicted conversations are lost", why);
  s->told = true;
}

void fl_spill_save(fl_spill *s, const fl_spill_item *it, fl_seq **seq) {
  if (it->n < FL_SPILL_MIN || s->cap == 0 || covered(s, it)) return;
  fl_spill_collect(s);
  if (s->n_jobs >= FL_SPILL_WAITING) (void)fl_spill_wait(s);
  job *j = fl_calloc(1, sizeof *j);
  if (j == NULL || describe(it, &j->f) != FL_OK) {
    fl_free(j);
    skip(s, "not enough memory");
    return;
  }
  snprintf(j->name, sizeof j->name, "slot-%016llx%s", (unsigned long long)s->next_name++, ending);
  j->seq = *seq;
  *seq = NULL;
  add_job(s, j);
}

/* Frees the job. */
static void settle(fl_spill *s, job *j) {
  int rc = j->rc;
  fl_seq_free(j->seq);
  if (rc == FL_OK) {
    drop_contained(s, &j->f);
    rc = list_file(s, &j->f, j->name); /* owns f from now on */
    if (rc != FL_OK) remove_named(s, j->name);
  } else {
    fl_spill_file_release(&j->f);
  }
  if (rc == FL_OK) s->stats.saved++;
  else skip(s, j->why.text[0] != '\0' ? j->why.text : "not enough memory");
  fl_free(j);
}

/* --- reading --- */

static int copy_file(fl_spill_file *to, const fl_spill_file *from) {
  *to = *from;
  to->doc = NULL;
  to->name = fl_strdup(from->name);
  to->ids = fl_calloc(from->n, sizeof *to->ids);
  if (to->name == NULL || to->ids == NULL) {
    fl_spill_file_release(to);
    return FL_ENOMEM;
  }
  memcpy(to->ids, from->ids, from->n * sizeof *to->ids);
  return FL_OK;
}

int fl_spill_read(fl_spill_reading **out, fl_spill *s, const fl_spill_file *file, fl_seq *seq,
                  size_t n) {
  fl_spill_reading *r = fl_calloc(1, sizeof *r);
  if (r == NULL || copy_file(&r->f, file) != FL_OK) {
    fl_free(r);
    return FL_ENOMEM;
  }
  r->seq = seq;
  r->n = n;
  pthread_mutex_lock(&s->mu);
  fl_spill_reading **at = &s->reading;
  while (*at != NULL) at = &(*at)->next;
  *at = r;
  pthread_cond_signal(&s->work);
  pthread_mutex_unlock(&s->mu);
  *out = r;
  return FL_OK;
}

bool fl_spill_read_done(fl_spill *s, const fl_spill_reading *r) {
  pthread_mutex_lock(&s->mu);
  bool done = r->done;
  pthread_mutex_unlock(&s->mu);
  return done;
}

/* The file that a reading was of, now that it is over: used, bad, or no longer wanted. */
static void settle_file(fl_spill *s, const fl_spill_reading *r) {
  const bool bad = r->rc != FL_OK && r->rc != FL_ENOMEM;
  if (r->remove) remove_named(s, r->f.name);
  for (size_t i = s->n; i-- > 0;) {
    if (strcmp(s->file[i]->name, r->f.name) != 0) continue;
    if (bad) forget(s, i);
    else s->file[i]->used = ++s->clock;
  }
  if (r->rc == FL_OK && !r->abandoned) s->stats.restored++;
  if (!bad || r->remove) return;
  s->stats.damaged++;
  fl_warn("%s", r->why.text);
}

int fl_spill_read_end(fl_spill *s, fl_spill_reading *r) {
  pthread_mutex_lock(&s->mu);
  while (!r->done) pthread_cond_wait(&s->done, &s->mu);
  fl_spill_reading **at = &s->reading;
  while (*at != r) at = &(*at)->next;
  *at = r->next;
  pthread_mutex_unlock(&s->mu);
  const int rc = r->rc;
  settle_file(s, r);
  if (r->abandoned) fl_seq_free(r->seq);
  else if (rc == FL_OK) fl_seq_advance(r->seq, r->n);
  fl_spill_file_release(&r->f);
  fl_free(r);
  return rc;
}

void fl_spill_read_abandon(fl_spill_reading *r) { r->abandoned = true; }

/* One of them, when there is one that is done or `wait` is set. */
static bool end_abandoned(fl_spill *s, bool wait) {
  fl_spill_reading *r = s->reading;
  while (r != NULL && (!r->abandoned || (!wait && !fl_spill_read_done(s, r)))) r = r->next;
  if (r != NULL) (void)fl_spill_read_end(s, r);
  return r != NULL;
}

void fl_spill_on_read(fl_spill *s, void (*ready)(void *ctx), void *ctx) {
  s->ready = ready;
  s->ready_ctx = ctx;
}

void fl_spill_collect(fl_spill *s) {
  job *j;
  while ((j = take_written(s, false)) != NULL) settle(s, j);
  while (end_abandoned(s, false)) continue;
}

bool fl_spill_wait(fl_spill *s) {
  job *j = take_written(s, true);
  if (j != NULL) settle(s, j);
  return j != NULL || end_abandoned(s, true);
}

/* --- finding --- */

/* Tokens of ids[0..n) that a file has behind this prefix. */
static size_t shared(const fl_spill_file *f, const fl_prefix *prefix, uint32_t owner,
                     const int32_t *ids, size_t n) {
  if (f->owner != owner || f->prefix_rows != prefix->rows) return 0;
  return strcmp(f->print, prefix->print) == 0 ? fl_common_ids(f->ids, f->n, ids, n) : 0;
}

fl_spill_file *fl_spill_find(fl_spill *s, const fl_prefix *prefix, uint32_t owner,
                             const int32_t *ids, size_t n, size_t *common) {
  fl_spill_file *best = NULL;
  fl_spill_collect(s);
  *common = 0;
  for (size_t i = 0; i < s->n; i++) {
    size_t m = shared(s->file[i], prefix, owner, ids, n);
    if (m <= *common) continue;
    *common = m;
    best = s->file[i];
  }
  return best;
}

const fl_seq *fl_spill_unwritten(const fl_spill *s, const fl_prefix *prefix, uint32_t owner,
                                 const int32_t *ids, size_t n, size_t *common) {
  const fl_seq *best = NULL;
  *common = 0;
  for (const job *j = s->first; j != NULL; j = j->next) {
    size_t m = shared(&j->f, prefix, owner, ids, n);
    if (m <= *common) continue;
    *common = m;
    best = j->seq;
  }
  return best;
}

size_t fl_spill_n(const fl_spill *s) { return s->n; }
const fl_spill_file *fl_spill_at(const fl_spill *s, size_t i) { return s->file[i]; }
fl_spill_stats fl_spill_stats_of(const fl_spill *s) { return s->stats; }
