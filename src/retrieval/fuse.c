/* fuse.c - see fuse.h. */
#include "retrieval/fuse.h"

#include <stdbool.h>
#include <stdlib.h>

const char *const fl_rag_by_words[] = { "hybrid", "lexical", "embedding", NULL };

double fl_fuse_score(fl_rag_by by, double words, double cosine) {
  if (by == FL_RAG_LEXICAL) return words;
  if (by == FL_RAG_EMBEDDING) return cosine;
  return (1 - FL_FUSE_COSINE) * words + (cosine > 0 ? FL_FUSE_COSINE * cosine : 0);
}

static int compare(double a, double b, const fl_hit *x, const fl_hit *y) {
  if (a != b) return a > b ? -1 : 1;
  return (x->doc > y->doc) - (x->doc < y->doc);
}

static int by_words(const void *a, const void *b) {
  const fl_hit *x = a, *y = b;
  return compare(x->words, y->words, x, y);
}

static int by_cosine(const void *a, const void *b) {
  const fl_hit *x = a, *y = b;
  return compare(x->cosine, y->cosine, x, y);
}

static int by_score(const void *a, const void *b) {
  const fl_hit *x = a, *y = b;
  return compare(x->score, y->score, x, y);
}

void fl_fuse(fl_hit *v, size_t n, fl_rag_by by) {
  qsort(v, n, sizeof *v, by_words);
  for (size_t i = 0; i < n; i++) v[i].words_rank = v[i].words > 0 ? (uint32_t)i + 1 : 0;
  qsort(v, n, sizeof *v, by_cosine);
  for (size_t i = 0; i < n; i++) {
    v[i].cosine_rank = v[i].cosine >= -1 ? (uint32_t)i + 1 : 0;
    v[i].score = fl_fuse_score(by, v[i].words, v[i].cosine);
  }
  qsort(v, n, sizeof *v, by_score);
}

void fl_fuse_gains(fl_hit *v, size_t n, double full) {
  for (size_t i = 0; i < n && full > 0; i++) v[i].score += v[i].gain / full;
  qsort(v, n, sizeof *v, by_score);
}

static bool found(const fl_hit *h, const fl_rag_options *o, double least_cosine) {
  bool by_word = h->words_rank > 0 && h->words_rank <= o->chunks;
  bool by_chunk = h->cosine_rank > 0 && h->cosine >= least_cosine;
  return o->by == FL_RAG_LEXICAL     ? by_word
         : o->by == FL_RAG_EMBEDDING ? by_chunk
                                     : by_word || by_chunk;
}

void fl_fuse_choose(fl_hits *h, const fl_hit *v, size_t n, const fl_rag_options *o,
                    double least_cosine) {
  h->n_ranked = h->n_docs = 0;
  for (size_t i = 0; i < n && h->n_ranked < FL_RANKED_DOCS; i++) {
    if (v[i].words_rank == 0 && v[i].cosine_rank == 0) continue;
    h->ranked[h->n_ranked++] = v[i];
    if (h->n_docs < o->docs && v[i].score >= o->floor && found(&v[i], o, least_cosine))
      h->doc[h->n_docs++] = v[i];
  }
  h->margin = h->n_ranked > 1 ? h->ranked[0].score - h->ranked[1].score : 0;
}
