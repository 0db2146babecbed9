/* hits.h - what a search asks for and what it finds. */
#ifndef FL_RETRIEVAL_HITS_H
#define FL_RETRIEVAL_HITS_H

#include <stddef.h>

#include "base/err.h"

typedef struct fl_rag_options {
  size_t docs, chunks; /* documents at most; pieces considered */
  double floor;        /* documents whose best piece scores under it are dropped; -1: none */
} fl_rag_options;
typedef struct fl_hit {
  size_t doc;
  size_t chunk;
  double score;
} fl_hit; /* doc: index in fleet */
enum { FL_RANKED_DOCS = 32 };
typedef struct fl_hits {
  fl_hit *chunk; /* best pieces, descending */
  size_t n_chunks;
  fl_hit *doc; /* chosen documents with their best piece, in best-piece order */
  size_t n_docs;
  fl_hit *ranked; /* the best documents, chosen or not, at most FL_RANKED_DOCS */
  size_t n_ranked;
  double margin; /* best document's score minus the next one's (0 if only one) */
} fl_hits;
void fl_hits_release(fl_hits *h);

#endif
