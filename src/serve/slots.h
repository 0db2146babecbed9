/* slots.h - conversations in memory: who has rows, who may use whose, who goes.
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
 *   READING  a job stands in it, and its rows come from a file; nobody touches `seq`, unless the
 *            disk stands still: then the job goes on without them
 *   BUSY     a job runs in it; rows may be taken by others (a fork), never taken away
 *   IDLE     keeps its rows for the conversation's next turn
 *
 * Invariants:
 *   1. Rows of a slot = rows of its prefix + one for each of `ids`, in order; `prefix` is held
 *      once.
 *   2. Pages in use, those of rows on their way to disk among them, + what cartridges take that
 *      are being read + pages that the slots of jobs may still need (`reserved_rows`) never exceed
 * the limit, so a running job never fails for lack of room. The same holds for prefixes.
 *   3. A job stands in a slot of its own; two jobs of one conversation fork.
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
  uint32_t owner;         /* whose it is: others never see its rows */
  size_t reserved_rows;   /* BUSY, READING: rows in all that its job may need */
  fl_spill_job *reading;  /* READING */
  size_t reading_rows;    /* READING: rows that it brings */
  uint64_t used;
} fl_slot;

typedef struct fl_slots {
  fl_slot *slot;
  size_t n;
  fl_kv_pool *pool;
  fl_prefixes *prefixes;
  fl_spill *spill; /* NULL: evicted rows are lost */
  size_t page_bytes, max_pages;
  size_t loading_bytes; /* that the limit covers, too: of cartridges being read */
  uint64_t clock;
} fl_slots;

int fl_slots_init(fl_slots *s, size_t n, fl_kv_pool *pool, size_t max_bytes, fl_prefixes *prefixes,
                  fl_spill *spill, fl_err *err);
/* Spills what deserves it, then frees all; jobs must be gone. */
void fl_slots_release(fl_slots *s);

typedef struct fl_slot_wish {
  fl_prefix *prefix;
  const int32_t *ids; /* the prompt, at least one */
  size_t n;
  size_t rows; /* prefix, prompt and answer at most */
  const char *key;
  uint32_t owner;
} fl_slot_wish;

/* *out = a BUSY slot whose ids are the longest known beginning of the prompt, at most n - 1 of
 * them; the caller runs the rest. Or a READING one, when a file knows more. FL_EBUSY: all slots are
 * busy. FL_EFULL: the rows do not fit now; idle slots and unused prefixes are gone by then. */
int fl_slots_open(fl_slot **out, fl_slots *s, const fl_slot_wish *w, fl_err *err);
/* Whether a slot is BUSY by now. ids: of the wish, still. Without the rows of a bad file it has
 * only the prefix's. */
bool fl_slots_ready(fl_slots *s, fl_slot *slot, const int32_t *ids);
void fl_slots_close(fl_slots *s, fl_slot *slot);
/* Evicts until so many rows fit; FL_EFULL. keep may be NULL. */
int fl_slots_make_room(fl_slots *s, size_t rows, const fl_prefix *keep, fl_err *err);
/* True when that many rows could never fit, with nobody else there. */
bool fl_slots_too_large(const fl_slots *s, size_t rows);

#endif
