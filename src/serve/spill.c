/* spill.c - the list of spilled files, and the jobs of the disk that change it. */
#include "serve/spill.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/spill_disk.h"

struct fl_spill {
  fl_lock *lock;
  fl_spill_disk *disk;
  fl_spill_file **file;
  size_t n, cap; /* cap: the limit, places are there for one more */
  uint64_t clock, next_name;
  fl_spill_job *jobs; /* given to the disk and not settled, the oldest first */
  size_t n_writes;    /* of them */
  fl_spill_stats stats;
  bool warned; /* of a failure */
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
  char *path = fl_fs_join(s->disk->dir, name);
  if (path != NULL) (void)fl_fs_remove(path);
  fl_free(path);
}

/* A reading of the file that was submitted already still comes first. */
static void forget(fl_spill *s, size_t i) {
  fl_spill_disk_remove(s->disk, s->file[i]);
  s->file[i] = s->file[--s->n];
}

static void drop_oldest(fl_spill *s) {
  size_t at = 0;
  for (size_t i = 1; i < s->n; i++)
    if (s->file[i]->used < s->file[at]->used) at = i;
  forget(s, at);
}

/* The list owns f. */
static void list_file(fl_spill *s, fl_spill_file *f) {
  f->used = ++s->clock;
  s->file[s->n++] = f;
  while (s->n > s->cap) drop_oldest(s);
}

/* --- opening --- */

static void list_name(fl_spill *s, const char *name) {
  fl_err why = { 0 };
  uint64_t number;
  if (is_leftover(name)) remove_named(s, name);
  if (!parse_name(name, &number)) return;
  if (number >= s->next_name) s->next_name = number + 1;
  char *path = fl_fs_join(s->disk->dir, name);
  fl_spill_file *f = fl_calloc(1, sizeof *f);
  int rc =
      path != NULL && f != NULL ? fl_spill_read_head(&s->disk->shape, path, f, &why) : FL_ENOMEM;
  if (rc == FL_OK && (f->name = fl_strdup(name)) == NULL) rc = FL_ENOMEM;
  if (rc == FL_OK) list_file(s, f);
  else fl_spill_file_free(f);
  if (rc == FL_EINPUT) {
    s->stats.damaged++;
    fl_warn("%s", why.text);
    remove_named(s, name);
  }
  fl_free(path);
}

static int lock_dir(fl_spill *s, const char *dir, fl_err *err) {
  bool made = !fl_fs_is_dir(dir);
  int rc = fl_fs_mkdir(dir, err);
  if (rc != FL_OK) return rc;
  if (made) (void)chmod(dir, 0700); /* what people say is in there */
  char *lock = fl_fs_join(dir, "lock");
  rc = lock != NULL ? fl_lock_take(&s->lock, lock, err) : FL_ENOMEM;
  fl_free(lock);
  return rc;
}

static int list_dir(fl_spill *s, fl_err *err) {
  char **names = NULL;
  size_t n = 0;
  int rc = fl_fs_list(&names, &n, s->disk->dir, err);
  if (rc != FL_OK) return rc;
  for (size_t i = 0; i < n; i++) list_name(s, names[i]); /* in the order in which they were made */
  fl_fs_list_free(names, n);
  return FL_OK;
}

int fl_spill_open(fl_spill **out, const char *dir, size_t max_files, const fl_model *model,
                  const fl_kv_pool *pool, fl_err *err) {
  const fl_hparams *hp = fl_model_hparams(model);
  const fl_spill_shape shape = { .type = fl_kv_pool_type(pool),
                                 .layer = fl_kv_layer_at(pool, 0),
                                 .n_layers = fl_kv_n_layers(pool),
                                 .model_hash = fl_model_hash(model),
                                 .n_ctx = hp->n_ctx,
                                 .n_vocab = hp->n_vocab };
  fl_spill *s = fl_calloc(1, sizeof *s);
  int rc = FL_ENOMEM;
  if (s != NULL) s->file = fl_calloc(max_files + 1, sizeof *s->file);
  if (s != NULL && s->file != NULL) {
    s->cap = max_files;
    rc = lock_dir(s, dir, err);
  }
  if (rc == FL_OK) rc = fl_spill_disk_start(&s->disk, dir, &shape, err);
  if (rc == FL_OK) rc = list_dir(s, err);
  if (rc != FL_OK) {
    fl_spill_close(s);
    return rc == FL_ENOMEM ? fl_fail(err, rc, "%s: not enough memory", dir) : rc;
  }
  *out = s;
  return FL_OK;
}

void fl_spill_set_hooks(fl_spill *s, const fl_spill_hooks *h) { s->disk->hooks = *h; }

void fl_spill_close(fl_spill *s) {
  if (s == NULL) return;
  if (s->disk != NULL) (void)fl_spill_wait(s);
  fl_spill_disk_close(s->disk, s->jobs);
  for (size_t i = 0; i < s->n; i++) fl_spill_file_free(s->file[i]);
  fl_free(s->file);
  fl_lock_drop(s->lock);
  fl_free(s);
}

/* --- saving --- */

static bool begins_with(const fl_spill_file *f, const fl_spill_item *it) {
  return f->owner == it->owner && strcmp(f->digest, it->prefix->digest) == 0 && f->n >= it->n &&
         fl_common_ids(f->ids, f->n, it->ids, it->n) == it->n;
}

/* It writes, and its rows were not taken away. */
static bool has_rows(const fl_spill_job *j) { return j->writes && j->seq != NULL; }

/* True when a file begins with these tokens, or will once it is written. */
static bool covered(const fl_spill *s, const fl_spill_item *it) {
  for (size_t i = 0; i < s->n; i++)
    if (begins_with(s->file[i], it)) return true;
  for (const fl_spill_job *w = s->jobs; w != NULL; w = w->next)
    if (has_rows(w) && begins_with(w->f, it)) return true;
  return false;
}

/* Files whose tokens the new one begins with. */
static void drop_contained(fl_spill *s, const fl_spill_file *whole) {
  for (size_t i = s->n; i-- > 0;) {
    const fl_spill_file *f = s->file[i];
    if (f->owner == whole->owner && strcmp(f->digest, whole->digest) == 0 && f->n < whole->n &&
        fl_common_ids(f->ids, f->n, whole->ids, whole->n) == f->n)
      forget(s, i);
  }
}

static int describe(fl_spill *s, const fl_spill_item *it, fl_spill_file *f) {
  f->n = it->n;
  f->n_docs = it->prefix->n_docs;
  f->prefix_rows = it->prefix->rows;
  f->owner = it->owner;
  f->name = fl_asprintf("slot-%016llx%s", (unsigned long long)s->next_name++, ending);
  f->ids = fl_calloc(it->n, sizeof *f->ids);
  f->doc = fl_calloc(it->prefix->n_docs + 1, sizeof *f->doc);
  if (f->name == NULL || f->ids == NULL || f->doc == NULL) return FL_ENOMEM;
  memcpy(f->ids, it->ids, it->n * sizeof *f->ids);
  memcpy(f->doc, it->prefix->doc, it->prefix->n_docs * sizeof *f->doc);
  snprintf(f->digest, sizeof f->digest, "%s", it->prefix->digest);
  snprintf(f->key, sizeof f->key, "%s", it->key);
  return FL_OK;
}

static void skip(fl_spill *s, const char *why) {
  s->stats.skipped++;
  if (!s->warned) fl_warn("%s; rows of evicted conversations are lost", why);
  s->warned = true;
}

static fl_spill_job *submit(fl_spill *s, fl_spill_job *j) {
  fl_spill_job **at = &s->jobs;
  while (*at != NULL) at = &(*at)->next;
  *at = j;
  s->n_writes += j->writes;
  fl_spill_disk_submit(s->disk, j);
  return j;
}

static fl_spill_job *new_job(void) {
  fl_spill_job *j = fl_calloc(1, sizeof *j);
  if (j != NULL && (j->f = fl_calloc(1, sizeof *j->f)) != NULL) return j;
  fl_free(j);
  return NULL;
}

void fl_spill_save(fl_spill *s, const fl_spill_item *it, fl_seq **seq) {
  fl_spill_collect(s);
  if (it->n < FL_SPILL_MIN || s->cap == 0 || covered(s, it)) return;
  if (s->n_writes >= FL_SPILL_WAITING) {
    skip(s, "the disk of the spilled slots is slower than they come");
    return;
  }
  fl_spill_job *j = new_job();
  if (j == NULL || describe(s, it, j->f) != FL_OK) {
    fl_spill_job_free(j);
    skip(s, "not enough memory");
    return;
  }
  j->writes = true;
  j->seq = *seq;
  *seq = NULL;
  submit(s, j);
}

/* The file's place in the list or, if it could not be written, none. */
static void settle_write(fl_spill *s, fl_spill_job *j) {
  fl_seq_free(j->seq);
  s->n_writes--;
  if (j->rc == FL_OK) {
    s->stats.saved++;
    drop_contained(s, j->f);
    list_file(s, j->f);
    j->f = NULL;
  } else {
    skip(s, j->why.text[0] != '\0' ? j->why.text : "not enough memory");
  }
}

/* The oldest job whose rows are not written yet. */
static fl_spill_job *first_unwritten(const fl_spill *s) {
  fl_spill_job *j = s->jobs;
  while (j != NULL && !has_rows(j)) j = j->next;
  return j;
}

bool fl_spill_holds_rows(const fl_spill *s) { return first_unwritten(s) != NULL; }

fl_spill_room fl_spill_make_room(fl_spill *s) {
  const size_t before = s->n_writes;
  fl_spill_collect(s);
  if (s->n_writes < before) return FL_SPILL_FREED;
  fl_spill_job *j = first_unwritten(s);
  if (j == NULL) return FL_SPILL_EMPTY;
  if (!fl_spill_stalled(s)) return FL_SPILL_LATER;
  fl_seq_free(fl_spill_disk_take_rows(s->disk, j));
  return FL_SPILL_FREED;
}

bool fl_spill_stalled(fl_spill *s) { return fl_worker_stalled(s->disk->worker); }

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

int fl_spill_read(fl_spill_job **out, fl_spill *s, const fl_spill_file *file, fl_seq *seq,
                  size_t n) {
  fl_spill_job *j = new_job();
  if (j == NULL || copy_file(j->f, file) != FL_OK) {
    fl_spill_job_free(j);
    return FL_ENOMEM;
  }
  j->seq = seq;
  j->n = n;
  *out = submit(s, j);
  return FL_OK;
}

bool fl_spill_read_done(fl_spill *s, const fl_spill_job *j) {
  return fl_spill_disk_done(s->disk, j);
}

/* The file that was read has been used, or is bad. */
static void settle_reading(fl_spill *s, const fl_spill_job *j) {
  const bool bad = j->rc != FL_OK && j->rc != FL_ENOMEM && j->rc != FL_EBUSY;
  for (size_t i = s->n; i-- > 0;) {
    if (strcmp(s->file[i]->name, j->f->name) != 0) continue;
    if (bad) forget(s, i);
    else s->file[i]->used = ++s->clock;
  }
  if (bad) {
    s->stats.damaged++;
    fl_warn("%s", j->why.text);
  }
}

/* Takes a job that is done out of the list and frees it. */
static void settle(fl_spill *s, fl_spill_job **at) {
  fl_spill_job *j = *at;
  *at = j->next;
  if (j->writes) settle_write(s, j);
  else settle_reading(s, j);
  fl_spill_job_free(j);
}

int fl_spill_read_end(fl_spill *s, fl_spill_job *j) {
  (void)fl_worker_wait(s->disk->worker, &j->task, (double)INFINITY);
  const int rc = j->rc;
  if (rc == FL_OK) {
    fl_seq_advance(j->seq, j->n);
    s->stats.restored++;
  }
  fl_spill_job **at = &s->jobs;
  while (*at != j) at = &(*at)->next;
  settle(s, at);
  return rc;
}

void fl_spill_read_drop(fl_spill *s, fl_spill_job *j) {
  (void)fl_spill_disk_take_rows(s->disk, j); /* the caller's */
}

/* A reading that somebody waits for stays until fl_spill_read_end. */
void fl_spill_collect(fl_spill *s) {
  for (fl_spill_job **at = &s->jobs; *at != NULL;) {
    if (((*at)->writes || (*at)->seq == NULL) && fl_spill_disk_done(s->disk, *at)) settle(s, at);
    else at = &(*at)->next;
  }
}

/* A file that is listed may push others out of the list, which are then removed. */
bool fl_spill_wait(fl_spill *s) {
  bool all = fl_worker_finish(s->disk->worker);
  fl_spill_collect(s);
  if (all) all = fl_worker_finish(s->disk->worker);
  return all;
}

/* --- finding --- */

/* Tokens of ids[0..n) that a file has behind this prefix. */
static size_t shared(const fl_spill_file *f, const fl_prefix *prefix, uint32_t owner,
                     const int32_t *ids, size_t n) {
  if (f->owner != owner || f->prefix_rows != prefix->rows) return 0;
  return strcmp(f->digest, prefix->digest) == 0 ? fl_common_ids(f->ids, f->n, ids, n) : 0;
}

fl_spill_file *fl_spill_find(fl_spill *s, const fl_prefix *prefix, uint32_t owner,
                             const int32_t *ids, size_t n, size_t *common) {
  fl_spill_file *best = NULL;
  fl_spill_collect(s);
  *common = 0;
  if (s->n == 0 || fl_spill_stalled(s)) return NULL;
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
  for (const fl_spill_job *j = s->jobs; j != NULL; j = j->next) {
    size_t m = has_rows(j) ? shared(j->f, prefix, owner, ids, n) : 0;
    if (m <= *common) continue;
    *common = m;
    best = j->seq;
  }
  return best;
}

size_t fl_spill_n(const fl_spill *s) { return s->n; }
const fl_spill_file *fl_spill_at(const fl_spill *s, size_t i) { return s->file[i]; }
fl_spill_stats fl_spill_stats_of(const fl_spill *s) { return s->stats; }
