/* slots.h - conversations in memory: which rows they have, which they share, which are evicted.
 *
 * States of a slot, and the function that makes each transition:
 *
 *             fl_slots_open                fl_slots_close
 *     FREE ------------------> BUSY -----------------------> IDLE
 *      ^ |                     ^ ^                            |
 *      | | fl_slots_open       | |  fl_slots_open (goes on)   |
 *      | +-------> READING ----+ +----------------------------+
 *      |             fl_slots_ready                           |
 *      +------------------------------------------------------+
 *             eviction (by fl_slots_open), spilled to disk where that is on
 *
 *   FREE     no rows, no prefix
 *   READING  belongs to a job whose rows are read from a file; nobody else uses `seq`. When the
 * disk stalls, the job goes on without those rows BUSY     a job runs in it; others may fork its
 * rows, nobody takes them away IDLE     keeps its rows for the next question of the conversation
 *
 * Invariants:
 *   1. Rows of a slot = rows of its prefix + one for each of `ids`, in order; `prefix` is held
 *      once.
 *   2. Pages in use (those of rows that wait to be written included) + `loading_bytes` + pages that
 *      the jobs in slots may still need (`reserved_rows`) never exceed the limit. So a running job
 *      never fails for lack of room. Prefixes use the same pages.
 *   3. Every job has a slot of its own; the second job of a conversation forks the first.
 *   4. The last token of a prompt is always run again: its row decides the first token.
 *
 * One thread: the engine's.
 */
#ifndef FL_SERVE_SLOTS_H
#define FL_SERVE_SLOTS_H

#include "serve/prefix_cache.h"
#include "serve/spill.h"

typedef enum fl_slot_state {
  FL_SLOT_FREE,
  FL_SLOT_READING,
  FL_SLOT_BUSY,
  FL_SLOT_IDLE
} fl_slot_state;

typedef struct fl_slot {
  fl_slot_state state;
  fl_seq *seq;
  fl_prefix *prefix;
  fl_ids ids;
  char key[FL_HASH_TEXT]; /* the conversation that used it last */
  uint32_t owner;         /* others never use its rows */
  size_t reserved_rows;   /* BUSY, READING: all that its job may need */
  fl_spill_job *reading;  /* READING */
  size_t reading_rows;    /* READING: that it will add */
  uint64_t used;
} fl_slot;

typedef struct fl_slots {
  fl_slot *slot;
  size_t n;
  fl_kv_pool *pool;
  fl_prefixes *prefixes;
  fl_spill *spill; /* NULL: evicted rows are lost */
  size_t page_bytes, max_pages;
  size_t loading_bytes; /* of cartridges that are being read; the limit covers them, too */
  uint64_t clock;
} fl_slots;

int fl_slots_init(fl_slots *s, size_t n, fl_kv_pool *pool, size_t max_bytes, fl_prefixes *prefixes,
                  fl_spill *spill, fl_err *err);
/* Spills what is worth a file, then frees everything; no job may be left. */
void fl_slots_release(fl_slots *s);

typedef struct fl_slot_wish {
  fl_prefix *prefix;
  const int32_t *ids; /* the prompt, at least one */
  size_t n;
  size_t rows; /* prefix, prompt and answer at most */
  const char *key;
  uint32_t owner;
} fl_slot_wish;

/* *out = a BUSY slot whose ids are the longest beginning of the prompt that memory has rows of, at
 * most n - 1; the caller runs the rest. Or a READING one, when a file has more. FL_EBUSY: all slots
 * are busy. FL_EFULL: the rows do not fit now, even with all idle slots and unused prefixes
 * evicted. */
int fl_slots_open(fl_slot **out, fl_slots *s, const fl_slot_wish *w, fl_err *err);
/* Makes a READING slot BUSY once its file was read; true: it is BUSY. ids: those it was opened
 * with. When the file was bad it has the prefix's rows alone. */
bool fl_slots_ready(fl_slots *s, fl_slot *slot, const int32_t *ids);
void fl_slots_close(fl_slots *s, fl_slot *slot);
/* Evicts, but for `keep` (may be NULL), until so many rows fit; FL_EFULL: they do not. */
int fl_slots_make_room(fl_slots *s, size_t rows, const fl_prefix *keep, fl_err *err);
/* True when that many rows would not fit even if they were alone. */
bool fl_slots_too_large(const fl_slots *s, size_t rows);

#endif
