/* hits.h - what a search asks for and what it finds. */
#ifndef FL_RETRIEVAL_HITS_H
#define FL_RETRIEVAL_HITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Which of the two rankings counts: both, words alone, vectors alone. */
typedef enum fl_rag_by { FL_RAG_HYBRID, FL_RAG_LEXICAL, FL_RAG_EMBEDDING } fl_rag_by;
extern const char *const fl_rag_by_words[]; /* in that order, NULL at the end */

typedef struct fl_rag_options {
  size_t docs, chunks; /* documents at most; chunks and passages considered */
  double floor;        /* documents that score under it are dropped; -1: none */
  int by;              /* fl_rag_by */
  size_t rerank;       /* best documents whose best passages the model weighs; 0: none */
} fl_rag_options;

/* A document, a chunk of it (what has one vector) or a passage of it (what the index of words
 * finds). A rank counts documents from 1 on; 0: that ranking has not found it. */
typedef struct fl_hit {
  size_t doc;       /* position in the fleet */
  size_t chunk;     /* in the index; of a document its best */
  double score;     /* by which it is ranked (fuse.h) */
  size_t passage;   /* number in the document; of a document its best */
  double cosine;    /* of the chunk, centred */
  double words;     /* share of what the question's words can give, from 0 to 1 */
  uint64_t matched; /* bit i: it holds fl_hits.word[i] */
  double gain;      /* by how much its best passage makes the question likelier; 0: not weighed */
  uint32_t cosine_rank, words_rank;
} fl_hit;

enum { FL_RANKED_DOCS = 32 };
typedef struct fl_hits {
  fl_hit *chunk; /* best chunks by their cosines alone; none where words alone are asked */
  size_t n_chunks;
  fl_hit *passage; /* best passages; none where there is no index of words */
  size_t n_passages;
  fl_hit *doc; /* chosen documents, best first */
  size_t n_docs;
  fl_hit *ranked; /* the best documents, chosen or not, at most FL_RANKED_DOCS */
  size_t n_ranked;
  double margin; /* best document's score minus the next one's (0 if only one) */
  char **word;   /* of the question, as they were looked for */
  size_t n_words;
} fl_hits;
void fl_hits_release(fl_hits *h);

/* Why a document was found, with memory of its own. */
enum { FL_MATCHED_BYTES = 64 };
typedef struct fl_evidence {
  double score, cosine, words, gain;
  uint32_t cosine_rank, words_rank; /* 0: that ranking has not found it */
  char matched[FL_MATCHED_BYTES];   /* words of the question that it holds, a space between */
} fl_evidence;
void fl_hits_evidence(const fl_hits *h, const fl_hit *hit, fl_evidence *out);

#endif
