/* merge.h - the merging engine that byte-level BPE, gemma4's BPE and SentencePiece share: a list of
 * symbols and a heap of candidate pairs, best first, leftmost first among equals. n symbols take
 * O(n log n) time and memory that is kept from piece to piece. Private to the text layer. */
#ifndef FL_TEXT_MERGE_H
#define FL_TEXT_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FL_NO_SYMBOL UINT32_MAX

typedef struct fl_symbol {
  uint32_t pos, len;   /* bytes of the piece; len 0: merged into its left neighbour */
  uint32_t prev, next; /* FL_NO_SYMBOL at the ends */
  int32_t id;          /* -1: no token of its own */
} fl_symbol;

typedef struct fl_candidate {
  uint64_t order; /* priority << 32 | left: the least comes first */
  uint32_t right;
  uint32_t len; /* of both symbols: a candidate is stale once it no longer fits */
  int32_t id;   /* what they become */
} fl_candidate;

typedef struct fl_merger {
  fl_symbol *symbol;
  size_t n_symbols, cap_symbols;
  fl_candidate *heap;
  size_t n_heap, cap_heap;
  bool oom;
} fl_merger;

/* Whether two neighbours may merge, with which priority (less is sooner) and into which token. */
typedef bool fl_pair_fn(void *ctx, const fl_symbol *left, const fl_symbol *right,
                        uint32_t *priority, int32_t *id);

void fl_merger_reset(fl_merger *m); /* no symbols; memory kept */
void fl_merger_push(fl_merger *m, uint32_t pos, uint32_t len, int32_t id);
/* Merges until no pair is left. Symbols with len > 0 are then the result, in order. */
void fl_merger_run(fl_merger *m, fl_pair_fn *pair, void *ctx);
void fl_merger_release(fl_merger *m);

#endif
