/* index.h - the vectors of the index: made, written, read. They are searched by search.h.
 *
 * File (index.g*.safetensors): embeddings F32 [n, dim], centroid F32 [dim], chunk_doc I64 [n] (the
 * position of the document in the manifest), and the recipe in the metadata.
 */
#ifndef FL_RETRIEVAL_INDEX_H
#define FL_RETRIEVAL_INDEX_H

#include "retrieval/hits.h"
#include "retrieval/lexical.h"

struct fl_index {
  size_t n, dim;
  float *vector;       /* [n, dim] */
  float *centroid;     /* [dim] */
  int64_t *doc;        /* [n] position of the document */
  size_t cap;          /* rows of room, while building */
  fl_lexical *lexical; /* the words of the same documents, owned; NULL: none */
};
typedef struct fl_index fl_index;

void fl_index_free(fl_index *x);
int fl_index_new(fl_index **out, size_t dim, fl_err *err);
/* Adds a raw vector [dim] of document `doc`. */
int fl_index_add(fl_index *x, const float *v, size_t doc);
/* Normalises, centres, normalises again. A single piece is not centred: it would vanish. */
void fl_index_finish(fl_index *x);
/* The same for a query's raw vector, in place. */
void fl_index_centre(const fl_index *x, float *v);

typedef struct fl_index_meta {
  const char *model_hash;
  size_t embed_chunk;
} fl_index_meta;
int fl_index_write(const char *path, const fl_index *x, const fl_index_meta *meta, fl_err *err);
/* n_docs, dim: what the file must fit. *own_recipe: made by this program's recipe for this model
 * (else scores mean less). FL_EINPUT on anything damaged. */
int fl_index_read(fl_index **out, bool *own_recipe, const char *path, size_t n_docs, size_t dim,
                  const fl_index_meta *meta, fl_err *err);

#endif
