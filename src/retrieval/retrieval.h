/* retrieval.h - which documents a question is about: by the vectors of their chunks and by their
 * words (lexical.h), fused by the rule of fuse.h.
 *
 * A document is cut in pieces of `embed_chunk` tokens (at UTF-8 boundaries; a last piece under
 * FL_INDEX_CHUNK_MIN tokens is dropped unless it is the only one). A piece's vector is the model's
 * hidden state, after the final norm, at the last token of the piece followed by a fixed request
 * for its subject; no cartridge is loaded. Vectors are normalised, the centroid of all is
 * subtracted, and they are normalised again; so is a query's. Scores are dot products.
 */
#ifndef FL_RETRIEVAL_RETRIEVAL_H
#define FL_RETRIEVAL_RETRIEVAL_H

#include "fleet/hooks.h"
#include "fleet/manifest.h"
#include "retrieval/index.h"
#include "retrieval/search.h"

enum { FL_INDEX_CHUNK_MIN = 32 };
#define FL_EMBED_SUFFIX "\n\nThe main subject of the text above, in a single word:"
#define FL_EMBED_RECIPE "last hidden state/1: {piece}" FL_EMBED_SUFFIX
/* Appends the ids of a text by the recipe; its vector is the last one's hidden state. */
int fl_embed_ids(fl_ids *out, const fl_model *m, const char *text, size_t len, fl_err *err);

/* Number of pieces of a document, and piece i as a token span. */
size_t fl_chunk_count(size_t n_tokens, size_t embed_chunk);
void fl_chunk_span(size_t n_tokens, size_t embed_chunk, size_t i, size_t *first, size_t *end);

/* The index is read when it is first needed, or now: FL_ENOENT when the fleet has none. Where its
 * words are missing or damaged, they are read from the documents again, and where these are gone
 * too, vectors alone count; both with a warning. */
int fl_fleet_load_index(fl_fleet *f, fl_err *err);
/* FL_ENOENT when the fleet has no index; FL_EINPUT when words alone are asked and it has none. */
int fl_fleet_retrieve(fl_fleet *f, const char *query, size_t len, const fl_rag_options *o,
                      fl_hits *out, fl_err *err);
/* The same with the query's vector [d_model], made by the index's recipe elsewhere; changes it. The
 * model is not run: nothing is weighed anew. */
int fl_fleet_retrieve_by(fl_fleet *f, const char *query, size_t len, float *vector,
                         const fl_rag_options *o, fl_hits *out, fl_err *err);
/* Appends the members of a retrieve event from "query" on, without braces. */
void fl_hits_print(fl_buf *b, const fl_fleet *f, const char *query, size_t len,
                   const fl_rag_options *o, const fl_hits *h);

/* [*first, *end) = the tokens of a document's text of n_tokens that a piece stands for. FL_EINPUT
 * when the text has no such piece. */
int fl_fleet_chunk_span(const fl_fleet *f, const fl_hit *piece, size_t n_tokens, size_t *first,
                        size_t *end, fl_err *err);

/* Builds or rebuilds the index and commits it. */
int fl_fleet_index(fl_fleet *f, const fl_train_hooks *hooks, fl_err *err);

/* The index of a manifest, for fl_fleet_follow. dim: the model's width. FL_ENOENT: it names none,
 * or a file that is missing. */
int fl_manifest_read_index(fl_index **out, const fl_manifest *m, const char *dir, size_t dim,
                           fl_err *err);
/* The index in memory, or NULL; a new one takes its place. */
fl_index *fl_fleet_index_of(const fl_fleet *f);
void fl_fleet_index_set(fl_fleet *f, fl_index *x);

/* Vectors of texts: out [n, d_model], raw. */
int fl_embed(fl_fleet *f, const char *const *text, const size_t *len, size_t n, float *out,
             fl_err *err);
/* Builds f->index from all documents; nothing is written. */
int fl_index_build(fl_fleet *f, const fl_train_hooks *hooks, fl_err *err);
/* Gives the index's memory back; the next query reads it again. A trainer does so before its rounds
 * and after every query, so that its memory does not grow with the number of documents. */
void fl_index_forget(fl_fleet *f);
/* Builds, writes and commits the index, vectors and words; a rebuild of an existing one is an edit.
 * whole: nothing of the words of before is used. */
int fl_index_rebuild(fl_fleet *f, bool whole, const fl_train_hooks *hooks, fl_err *err);
/* Writes and commits the words alone, where a fleet from before has none or they are damaged. */
int fl_index_add_words(fl_fleet *f, const fl_train_hooks *hooks, fl_err *err);
/* Appends the text of a passage of the index of words, its headings before it. */
int fl_fleet_passage(fl_fleet *f, const fl_hit *passage, fl_buf *out, fl_err *err);

#endif
