/* spill.h - rows of evicted conversations on disk; they survive a restart.
 *
 * A file holds the rows behind a prefix, not the prefix: it fits where a composition has the same
 * fingerprint. Layout, little-endian:
 *   "FLSLOT1\n", u32 cache type (0 f32, 1 f16), u32 layers, u64 tokens n, u64 prefix rows,
 *   u32 documents, u32 owner, three texts of 40 bytes: model hash, prefix fingerprint, conversation
 *   per layer u32 kv heads, u32 head dimension (0, 0: the layer has no rows of its own)
 *   u32 [documents] ids, i32 [n] tokens
 *   per layer with rows: K [n, kv heads, head dimension], V the same, in the cache's type
 *   40 bytes: XXH3 of all before
 * A file is a cache and no more: it is written without waiting for the disk, checked when it is
 * read, and thrown away when anything is wrong with it. A full disk, or one that hangs, costs the
 * rows, not the job: they are computed again. The folder is locked, so that two servers do not tidy
 * each other's files away.
 *
 * One thread, the engine's, calls all of this, and waits for no disk. A second one writes, reads
 * and removes the files (spill_disk.h). What it has written is listed, and its pages are given
 * back, by the calls below.
 */
#ifndef FL_SERVE_SPILL_H
#define FL_SERVE_SPILL_H

#include "serve/prefix_cache.h"

enum { FL_SPILL_MIN = 32 }; /* tokens that are worth a file */

typedef struct fl_spill_file {
  struct fl_spill_file *next; /* of those to be removed */
  char *name;                 /* in the folder */
  char print[FL_HASH_TEXT], key[FL_HASH_TEXT];
  uint32_t *doc; /* [n_docs] ids */
  size_t n_docs, prefix_rows;
  uint32_t owner;
  int32_t *ids; /* [n] */
  size_t n;
  uint64_t used;
} fl_spill_file;

typedef struct fl_spill fl_spill;

/* Takes the folder (made if missing) and lists its files; those of other models stay untouched,
 * damaged ones are removed. FL_EBUSY: another server uses it. */
int fl_spill_open(fl_spill **out, const char *dir, size_t max_files, const fl_model *model,
                  const fl_kv_pool *pool, fl_err *err);
/* Finishes what it was given. A disk that stands still is waited for no longer than 2 s: then what
 * is not written is lost. */
void fl_spill_close(fl_spill *s);

/* Both on the other thread; set before anything is written or read. */
typedef struct fl_spill_hooks {
  void (*ready)(void *ctx); /* a reading is done, or a file is written; must not call back */
  void *ready_ctx;          /* used up to fl_spill_close */
  void (*disk)(void *ctx);  /* for tests: it is about to wait for the disk; may be NULL */
  void *disk_ctx;
} fl_spill_hooks;
void fl_spill_set_hooks(fl_spill *s, const fl_spill_hooks *h);

typedef struct fl_spill_item {
  const fl_prefix *prefix;
  const int32_t *ids;
  size_t n;
  const char *key;
  uint32_t owner;
} fl_spill_item;
/* Takes *seq (the prefix and at least n rows) over for writing and sets it to NULL, unless the item
 * is too short, a file holds it already, or FL_SPILL_WAITING items are not written yet. When a file
 * is written those that it contains go, and the longest unused beyond the limit. A failure is
 * counted and told on stderr once. */
enum { FL_SPILL_WAITING = 4 };
void fl_spill_save(fl_spill *s, const fl_spill_item *it, fl_seq **seq);
/* Lists what has been written by now. */
void fl_spill_collect(fl_spill *s);

/* For whoever needs the pages of rows that are to be written. */
typedef enum fl_spill_room {
  FL_SPILL_FREED, /* some came back just now */
  FL_SPILL_LATER, /* some will, as soon as the disk has taken them */
  FL_SPILL_EMPTY  /* it has none */
} fl_spill_room;
/* Rows that the disk does not take are given up. */
fl_spill_room fl_spill_make_room(fl_spill *s);
bool fl_spill_holds_rows(const fl_spill *s);
/* The disk has not moved for 2 s: nothing that is asked of it will come soon. */
bool fl_spill_stalled(fl_spill *s);
/* For tests and the end: waits until all is written, read and removed, and lists it. False: the
 * disk stands. */
bool fl_spill_wait(fl_spill *s);

/* The owner's file with most of ids[0..n) behind this prefix; *common = how many. NULL: none, or
 * none that a disk which stands would give. */
fl_spill_file *fl_spill_find(fl_spill *s, const fl_prefix *prefix, uint32_t owner,
                             const int32_t *ids, size_t n, size_t *common);
/* The same of rows that are not written yet, and therefore in memory: a sequence to fork, the
 * spill's; it lives until the next call. */
const fl_seq *fl_spill_unwritten(const fl_spill *s, const fl_prefix *prefix, uint32_t owner,
                                 const int32_t *ids, size_t n, size_t *common);

/* Rows on their way from a file. */
typedef struct fl_spill_job fl_spill_job;
/* Has the first n rows (<= file's) written behind the prefix's of seq, which has room for them
 * reserved. Until it ends or is dropped nobody touches seq. FL_ENOMEM. */
int fl_spill_read(fl_spill_job **out, fl_spill *s, const fl_spill_file *file, fl_seq *seq,
                  size_t n);
bool fl_spill_read_done(fl_spill *s, const fl_spill_job *r);
/* Frees r; waits for it when it is not done. FL_OK: seq is n rows longer. Otherwise it is as
 * before, and a bad file is removed. */
int fl_spill_read_end(fl_spill *s, fl_spill_job *r);
/* Nobody waits for r any more: seq is as before at once, r is freed some time. */
void fl_spill_read_drop(fl_spill *s, fl_spill_job *r);

size_t fl_spill_n(const fl_spill *s);
const fl_spill_file *fl_spill_at(const fl_spill *s, size_t i);
typedef struct fl_spill_stats {
  uint64_t saved, restored, skipped, damaged;
} fl_spill_stats;
fl_spill_stats fl_spill_stats_of(const fl_spill *s);

#endif
