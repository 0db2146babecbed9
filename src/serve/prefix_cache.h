/* prefix_cache.h - composed cartridges, one sequence for each selection of documents and content.
 *
 * A selection is a list of document ids, in order. Its prefix is composed once and forked by every
 * slot that stands behind it: whole pages are shared. Two compositions of one selection are told
 * apart by a digest of their rows, not by the fleet's generation: a document that training
 * left alone stays the same prefix, and what was spilled to disk fits again after a restart. When a
 * new generation changed rows, the old prefix lives as long as slots stand behind it or memory
 * allows, so that conversations can keep theirs.
 *
 * One thread: the engine's.
 */
#ifndef FL_SERVE_PREFIX_CACHE_H
#define FL_SERVE_PREFIX_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "answer/fetch_plan.h"
#include "retrieval/hits.h"
#include "serve/speculate.h"

enum {
  FL_PREFIX_DOCS = 64,   /* documents of a selection at most */
  FL_TEXT_TOKENS = 32768 /* of its texts, for drafts; what is longer is not read */
};

typedef struct fl_selection {
  uint32_t doc[FL_PREFIX_DOCS];    /* ids */
  fl_evidence why[FL_PREFIX_DOCS]; /* zeros for documents that were named */
  size_t n;
} fl_selection;
static inline bool fl_same_docs(const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b) {
  bool same = n_a == n_b;
  for (size_t i = 0; same && i < n_a; i++) same = a[i] == b[i];
  return same;
}

/* Tokens that two lists begin with in common. */
static inline size_t fl_common_ids(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b) {
  size_t n = 0, most = n_a < n_b ? n_a : n_b;
  while (n < most && a[n] == b[n]) n++;
  return n;
}

typedef struct fl_prefix {
  uint32_t doc[FL_PREFIX_DOCS];
  size_t doc_rows[FL_PREFIX_DOCS];
  size_t n_docs;
  uint64_t generation;       /* the last one that these rows were found to belong to */
  char digest[FL_HASH_TEXT]; /* of the rows */
  fl_seq *seq;               /* NULL without documents */
  size_t rows;
  size_t refs; /* slots behind it and jobs that wait for one */
  uint64_t used;
  fl_suffix text;    /* the documents' tokens, for drafts */
  fl_suffix history; /* answers given behind it, of one owner */
  uint32_t history_owner;
} fl_prefix;

typedef struct fl_prefixes {
  fl_kv_pool *pool;
  fl_prefix **entry;
  size_t n, cap;
  uint64_t clock;
} fl_prefixes;

void fl_prefixes_release(fl_prefixes *p); /* all references must be given back */

/* Position in the fleet of a document id; false when it is not there (any more). */
bool fl_doc_by_id(const fl_fleet *f, uint32_t id, size_t *at);
/* Rows that the selection takes; FL_ENOENT when a document is gone. */
int fl_selection_rows(const fl_fleet *f, const fl_selection *s, size_t *rows, fl_err *err);

/* A prefix in memory: of this content (`digest` not NULL), else of the generation. NULL if none. */
fl_prefix *fl_prefix_find(fl_prefixes *p, const fl_selection *s, const char *digest,
                          uint64_t generation);
/* Composes the selection from the fleet as it is now, in pages that must be free. Where an older
 * composition turns out to have the same rows, *out is that one. Does not touch the disk. FL_EBUSY:
 * a cartridge is neither in memory nor in the fetch plan. Without documents fleet and plan may be
 * NULL. */
int fl_prefix_make(fl_prefix **out, fl_prefixes *p, fl_fleet *f, const fl_selection *s,
                   const fl_fetch_plan *from, fl_err *err);
void fl_prefix_hold(fl_prefixes *p, fl_prefix *x);
void fl_prefix_drop(fl_prefix *x);
/* Frees the longest unused one that nobody holds, not `keep`; false when there is none. */
bool fl_prefix_evict(fl_prefixes *p, const fl_prefix *keep);

/* Tokenises the texts of a fetch plan for drafts, unless the prefix has some. */
void fl_prefix_take_texts(fl_prefix *x, const fl_tokenizer *tok, const fl_fetch_plan *from);
/* Remembers an answer for drafts. Those of another owner are forgotten first: the number of drafts
 * that come true would tell what others were answered. */
void fl_prefix_remember(fl_prefix *x, uint32_t owner, const int32_t *ids, size_t n);
/* The answers that may be drafted from; NULL: none. */
static inline const fl_suffix *fl_prefix_history(const fl_prefix *x, uint32_t owner) {
  return x->history_owner == owner ? &x->history : NULL;
}

#endif
