/* spill.h - rows of evicted conversations on disk; they survive a restart.
 *
 * A file holds the rows behind a prefix, not those of the prefix: it fits where the prefix has the
 * same digest. Layout, little-endian:
 *   "FLSLOT1\n", u32 cache type (0 f32, 1 f16), u32 layers, u64 tokens n, u64 prefix rows,
 *   u32 documents, u32 owner, three texts of 40 bytes: model hash, prefix digest, conversation
 *   per layer u32 kv heads, u32 head dimension (0, 0: the layer has no rows of its own)
 *   u32 [documents] ids, i32 [n] tokens
 *   per layer with rows: K [n, kv heads, head dimension], V the same, in the cache's type
 *   40 bytes: XXH3 of all before
 * Files are a cache: they are written without waiting for the disk, checked when they are read, and
 * removed when anything is wrong with them. When the disk is full or hangs the rows are lost and
 * computed again; no job fails. The folder is locked, so that two servers do not remove each
 * other's files.
 *
 * One thread, the engine's, calls all of this and waits for no disk. A worker writes, reads and
 * removes the files (spill_disk.h). Files that it has written are listed, and the pages of their
 * rows freed, by the calls below.
 */
#ifndef FL_SERVE_SPILL_H
#define FL_SERVE_SPILL_H

#include "serve/prefix_cache.h"

enum { FL_SPILL_MIN = 32 }; /* tokens that are worth a file */

typedef struct fl_spill_file {
  struct fl_spill_file *next; /* of those to be removed */
  char *name;                 /* in the folder */
  char digest[FL_HASH_TEXT], key[FL_HASH_TEXT];
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
/* Writes what was saved. After 2 s without progress the disk is no longer waited for, and what is
 * not written is lost. */
void fl_spill_close(fl_spill *s);

/* Called on the worker's thread; set before anything is saved or read. */
typedef struct fl_spill_hooks {
  void (*ready)(void *ctx); /* a file was read or written; must not call the functions below */
  void *ready_ctx;          /* used up to fl_spill_close */
  void (*disk)(void *ctx);  /* before it uses the disk, for tests that hold it up; may be NULL */
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
/* Takes over *seq (the prefix and at least n rows) for writing and sets it to NULL, unless the item
 * is too short, a file holds it already, or FL_SPILL_WAITING items are not written yet. A file that
 * was written replaces those whose tokens it begins with; beyond the limit, the longest unused are
 * removed. A failure is counted, and warned of once. */
enum { FL_SPILL_WAITING = 4 };
void fl_spill_save(fl_spill *s, const fl_spill_item *it, fl_seq **seq);
/* Lists the files that have been written by now. */
void fl_spill_collect(fl_spill *s);

/* Frees pages of rows that are saved and not written yet. */
typedef enum fl_spill_room {
  FL_SPILL_FREED, /* some pages, just now */
  FL_SPILL_LATER, /* none yet: the disk is writing them */
  FL_SPILL_EMPTY  /* there are no such rows */
} fl_spill_room;
/* When the disk has stalled, rows that wait for it are given up. */
fl_spill_room fl_spill_make_room(fl_spill *s);
bool fl_spill_holds_rows(const fl_spill *s);
/* The disk has made no progress for 2 s, and may make none for long. */
bool fl_spill_stalled(fl_spill *s);
/* For tests and the end: waits until everything is written, read and removed, and lists it. False:
 * the disk has stalled. */
bool fl_spill_wait(fl_spill *s);

/* The owner's file with the longest beginning of ids[0..n) behind this prefix; *common = its
 * length. NULL: none, or the disk has stalled. */
fl_spill_file *fl_spill_find(fl_spill *s, const fl_prefix *prefix, uint32_t owner,
                             const int32_t *ids, size_t n, size_t *common);
/* The same among rows that are not written yet and so still in memory: a sequence to fork, borrowed
 * until the next call. */
const fl_seq *fl_spill_unwritten(const fl_spill *s, const fl_prefix *prefix, uint32_t owner,
                                 const int32_t *ids, size_t n, size_t *common);

/* The reading of a file. */
typedef struct fl_spill_job fl_spill_job;
/* Begins to read the file's first n rows into seq behind those of the prefix; room for them is
 * reserved. Nobody else uses seq until the reading has ended or was dropped. FL_ENOMEM. */
int fl_spill_read(fl_spill_job **out, fl_spill *s, const fl_spill_file *file, fl_seq *seq,
                  size_t n);
bool fl_spill_read_done(fl_spill *s, const fl_spill_job *j);
/* Ends a reading, and waits for it if it is not done. FL_OK: seq is n rows longer. Otherwise seq is
 * as before, and a bad file is removed. */
int fl_spill_read_end(fl_spill *s, fl_spill_job *j);
/* Nobody waits for this reading any more: seq is as before and the caller's, at once. */
void fl_spill_read_drop(fl_spill *s, fl_spill_job *j);

size_t fl_spill_n(const fl_spill *s);
const fl_spill_file *fl_spill_at(const fl_spill *s, size_t i);
typedef struct fl_spill_stats {
  uint64_t saved, restored, skipped, damaged;
} fl_spill_stats;
fl_spill_stats fl_spill_stats_of(const fl_spill *s);

#endif
