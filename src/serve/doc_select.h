/* doc_select.h - which documents a conversation stands behind.
 *
 * The documents chosen for the first question are kept for the whole conversation, which is known
 * by its id, or without one by the hash of its opening. With `adaptive` a later question may change
 * them, when other documents score better by the margin. Where no document fitted so far, each
 * question is searched for again.
 */
#ifndef FL_SERVE_DOC_SELECT_H
#define FL_SERVE_DOC_SELECT_H

#include "retrieval/retrieval.h"
#include "serve/prefix_cache.h"

typedef struct fl_affinity {
  char key[FL_HASH_TEXT]; /* of a conversation */
  fl_selection docs;
  char digest[FL_HASH_TEXT]; /* the prefix it stands behind; "" not known */
  uint64_t used;
} fl_affinity;

typedef struct fl_affinities {
  fl_affinity *entry;
  size_t n, cap; /* the longest unused goes when all cap places are taken */
  uint64_t clock;
} fl_affinities;

int fl_affinities_init(fl_affinities *s, size_t cap);
void fl_affinities_release(fl_affinities *s);
fl_affinity *fl_affinities_find(fl_affinities *s, const char *key);
/* Sets the choice of a conversation. */
void fl_affinities_put(fl_affinities *s, const char *key, const fl_selection *docs,
                       const char *digest);

typedef struct fl_doc_select_options {
  fl_rag_options rag;
  bool adaptive;
  double margin;
} fl_doc_select_options;

/* *out = the documents for this turn. known: the conversation's choice so far, NULL at the first
 * turn. query: the last user's message. *kept: the choice is the one known. */
int fl_doc_select(fl_selection *out, bool *kept, fl_fleet *f, const fl_doc_select_options *o,
                  const fl_affinity *known, const char *query, size_t len, fl_err *err);

/* Whether documents outside the choice win over it: hits scored for the present turn. Pure. */
bool fl_doc_select_switches(const fl_doc_select_options *o, const size_t *chosen, size_t n_chosen,
                            const fl_hits *hits);

#endif
