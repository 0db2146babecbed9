/* select.h - which documents a conversation stands behind.
 *
 * The choice of the first turn sticks: to the conversation's id, or without one to the hash of its
 * whole opening. With `adaptive` a later turn may change it, when documents outside score better by
 * the margin. A conversation whose opening no document fits is asked anew at each turn.
 */
#ifndef FL_SERVE_SELECT_H
#define FL_SERVE_SELECT_H

#include "serve/prefix.h"

typedef struct fl_sticky {
  char key[FL_HASH_TEXT]; /* of a conversation */
  fl_selection docs;
  char print[FL_HASH_TEXT]; /* the prefix it stands behind; "" not known */
  uint64_t used;
} fl_sticky;

typedef struct fl_stickies {
  fl_sticky **entry;
  size_t n, cap; /* the longest unused goes when all cap places are taken */
  uint64_t clock;
} fl_stickies;

int fl_stickies_init(fl_stickies *s, size_t cap);
void fl_stickies_release(fl_stickies *s);
fl_sticky *fl_stickies_find(fl_stickies *s, const char *key);
/* Sets the choice of a conversation. FL_ENOMEM: it is not remembered. */
int fl_stickies_put(fl_stickies *s, const char *key, const fl_selection *docs, const char *print);

typedef struct fl_select_options {
  fl_rag_options rag;
  bool adaptive;
  double margin;
} fl_select_options;

/* *out = the documents for this turn. known: the conversation's choice so far, NULL at the first
 * turn. query: the last user's message. *kept: the choice is the one known. */
int fl_select(fl_selection *out, bool *kept, fl_fleet *f, const fl_select_options *o,
              const fl_sticky *known, const char *query, size_t len, fl_err *err);

/* Whether documents outside the choice win over it: hits scored for the present turn. Pure. */
bool fl_select_switches(const fl_select_options *o, const size_t *chosen, size_t n_chosen,
                        const fl_hits *hits);

#endif
