/* retrieval.h - which documents a question is about.
 *
 * A document is cut in pieces of `embed_chunk` tokens (at UTF-8 boundaries; a last piece under
 * FL_PIECE_MIN tokens is dropped unless it is the only one). A piece's vector is the model's hidden
 * state, after the final norm, at the last token of the piece followed by a fixed request for its
 * subject; no cartridge is loaded. Vectors are normalised, the centroid of all is subtracted, and
 * they are normalised again; so is a query's. Scores are dot products.
 *
 * File (index.g*.safetensors): embeddings F32 [n, dim], centroid F32 [dim], chunk_doc I64 [n] (the
 * position of the document in the manifest), and the recipe in the metadata.
 */
#ifndef FL_FLEET_RETRIEVAL_H
#define FL_FLEET_RETRIEVAL_H

#include "fleet/fleet.h"
#include "study/study.h"

enum { FL_PIECE_MIN = 32 };
#define FL_EMBED_SUFFIX "\n\nThe main subject of the text above, in a single word:"
#define FL_EMBED_RECIPE "last hidden state/1: {piece}" FL_EMBED_SUFFIX

/* Number of pieces of a document, and piece i as a token span. */
size_t fl_piece_count(size_t n_tokens, size_t embed_chunk);
void fl_piece_span(size_t n_tokens, size_t embed_chunk, size_t i, size_t *first, size_t *end);

struct fl_index {
  size_t n, dim;
  float *vector;   /* [n, dim] */
  float *centroid; /* [dim] */
  int64_t *doc;    /* [n] position of the document */
  size_t cap;      /* rows of room, while building */
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

/* Scores against a centred query. */
int fl_index_search(const fl_index *x, const float *query, size_t n_docs, const fl_rag_options *o,
                    fl_hits *out, fl_err *err);

/* Vectors of texts: out [n, d_model], raw. */
int fl_embed(fl_fleet *f, const char *const *text, const size_t *len, size_t n, float *out,
             fl_err *err);
/* Builds f->index from all documents; nothing is written. */
int fl_index_build(fl_fleet *f, const fl_train_hooks *hooks, fl_err *err);
/* Gives the index's memory back; the next query reads it again. A trainer does so before its rounds
 * and after every query, so that its memory does not grow with the number of documents. */
void fl_index_forget(fl_fleet *f);

#endif
