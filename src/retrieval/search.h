/* search.h - the documents of a question, by the vectors and the words of an index. */
#ifndef FL_RETRIEVAL_SEARCH_H
#define FL_RETRIEVAL_SEARCH_H

#include "fleet/manifest.h"
#include "retrieval/index.h"

typedef struct fl_question {
  const char *text;
  size_t len;
  const float *vector; /* [dim], centred; NULL: words alone are asked */
  /* The question's log-likelihood behind a text (of no bytes: behind none); NULL: there is nobody
   * to ask, and nothing is weighed. */
  int (*likelihood)(void *ctx, const char *text, size_t len, double *out, fl_err *err);
  void *ctx;
} fl_question;

/* The manifest says at which position a document of the index of words is; one that it does not
 * have is passed over. Without an index of words, vectors alone count. */
int fl_search(fl_hits *out, const fl_index *x, const fl_manifest *m, const fl_question *q,
              const fl_rag_options *o, fl_err *err);
/* By a centred vector alone. */
int fl_index_search(const fl_index *x, const float *query, size_t n_docs, const fl_rag_options *o,
                    fl_hits *out, fl_err *err);

#endif
