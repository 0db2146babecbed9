/* search.c - see search.h. Every document is a candidate; each ranking notes in it what it found,
 * and fuse.h makes one order of them. */
#include "retrieval/search.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "retrieval/fuse.h"

enum { LEXICAL_DOCS = 256 }; /* the rest has next to none of the words */

typedef struct finder {
  const fl_index *x;
  const fl_rag_options *o;
  fl_hit *doc; /* [n_docs], at their positions until they are fused */
  size_t n_docs;
  double least_cosine; /* of the best o->chunks chunks */
  fl_hits hits;
  double full; /* of the words */
} finder;

static int no_memory(fl_err *err) {
  return fl_fail(err, FL_ENOMEM, "not enough memory to search the retrieval index");
}

/* --- by vectors --- */

static double dot(const float *a, const float *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += (double)a[i] * b[i];
  return sum;
}

/* Among the best so far, best first; of equal ones the first stays first. */
static void take_chunk(fl_hit *best, size_t *n, size_t most, const fl_hit *h) {
  size_t at = *n;
  if (*n == most) {
    if (most == 0 || h->score <= best[most - 1].score) return;
    at--;
  } else {
    ++*n;
  }
  for (; at > 0 && best[at - 1].score < h->score; at--) best[at] = best[at - 1];
  best[at] = *h;
}

static int find_by_vector(finder *w, const float *vector, fl_err *err) {
  const fl_index *x = w->x;
  const size_t most = w->o->chunks < x->n ? w->o->chunks : x->n;
  w->hits.chunk = fl_calloc(most + 1, sizeof *w->hits.chunk);
  if (w->hits.chunk == NULL) return no_memory(err);
  for (size_t i = 0; i < x->n; i++) {
    double cosine = dot(x->vector + i * x->dim, vector, x->dim);
    fl_hit *d = &w->doc[x->doc[i]];
    fl_hit h = { .doc = (size_t)x->doc[i], .chunk = i, .score = cosine, .cosine = cosine };
    if (cosine > d->cosine) {
      d->cosine = cosine;
      d->chunk = i;
    }
    take_chunk(w->hits.chunk, &w->hits.n_chunks, most, &h);
  }
  if (w->hits.n_chunks > 0) w->least_cosine = w->hits.chunk[w->hits.n_chunks - 1].cosine;
  return FL_OK;
}

/* --- by words --- */

static int by_score(const void *a, const void *b) {
  const fl_hit *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  if (x->doc != y->doc) return x->doc < y->doc ? -1 : 1;
  return (x->passage > y->passage) - (x->passage < y->passage);
}

static bool position(const fl_manifest *m, uint32_t id, size_t *out) {
  for (size_t i = 0; i < m->n; i++)
    if (m->doc[i].id == id) {
      *out = i;
      return true;
    }
  return false;
}

/* Passages are ranked by their own words and their document's vector. */
static int take_passages(finder *w, const fl_manifest *m, const fl_lexical_hits *l, fl_err *err) {
  fl_hit *v = fl_calloc(l->n_passages + 1, sizeof *v);
  if (v == NULL) return no_memory(err);
  w->hits.passage = v;
  for (size_t i = 0; i < l->n_passages; i++) {
    size_t at;
    if (!position(m, l->passage[i].doc, &at)) continue;
    fl_hit *h = &v[w->hits.n_passages++];
    *h = (fl_hit){ .doc = at,
                   .passage = l->passage[i].passage,
                   .matched = l->passage[i].words,
                   .words = l->passage[i].score / l->full,
                   .cosine = w->doc[at].cosine,
                   .chunk = w->doc[at].chunk };
    h->score = fl_fuse_score((fl_rag_by)w->o->by, h->words, h->cosine);
  }
  qsort(v, w->hits.n_passages, sizeof *v, by_score);
  return FL_OK;
}

static void take_documents(finder *w, const fl_manifest *m, const fl_lexical_hits *l) {
  for (size_t i = 0; i < l->n_docs; i++) {
    size_t at;
    if (!position(m, l->doc[i].doc, &at)) continue;
    fl_hit *d = &w->doc[at];
    d->words = l->doc[i].score / l->full;
    d->passage = l->doc[i].passage;
    d->matched = l->doc[i].words;
  }
}

static int find_by_words(finder *w, const fl_manifest *m, const fl_question *q, fl_err *err) {
  fl_lexical_hits l = { 0 };
  size_t docs = w->n_docs < LEXICAL_DOCS ? w->n_docs : LEXICAL_DOCS;
  int rc = fl_lexical_search(w->x->lexical, q->text, q->len, w->o->chunks, docs, &l, err);
  if (rc != FL_OK) return rc;
  if (l.full > 0) {
    take_documents(w, m, &l);
    rc = take_passages(w, m, &l, err);
    w->full = l.full;
  }
  w->hits.word = l.word;
  w->hits.n_words = l.n_words;
  l.word = NULL;
  l.n_words = 0;
  fl_lexical_hits_release(&l);
  return rc;
}

/* --- by the model --- */

static int gain_of(finder *w, const fl_manifest *m, const fl_question *q, double alone, fl_hit *h,
                   fl_err *err) {
  fl_lexical_passage p = { 0 };
  fl_buf text = { 0 };
  double behind = 0;
  int rc = fl_lexical_read(w->x->lexical, m->doc[h->doc].id, (uint32_t)h->passage, &p, err);
  if (rc == FL_OK) fl_lexical_passage_print(&p, &text);
  if (rc == FL_OK && text.oom) rc = no_memory(err);
  if (rc == FL_OK) rc = q->likelihood(q->ctx, text.data, text.len, &behind, err);
  if (rc == FL_OK) h->gain = behind - alone;
  fl_buf_release(&text);
  fl_lexical_passage_release(&p);
  return rc;
}

/* The first documents that have a passage, up to one that has none. */
static int weigh(finder *w, const fl_manifest *m, const fl_question *q, fl_err *err) {
  double alone = 0;
  size_t n = 0;
  while (n < w->o->rerank && n < w->n_docs && w->doc[n].words_rank > 0) n++;
  int rc = n > 0 ? q->likelihood(q->ctx, "", 0, &alone, err) : FL_OK;
  for (size_t i = 0; rc == FL_OK && i < n; i++) rc = gain_of(w, m, q, alone, &w->doc[i], err);
  if (rc == FL_OK) fl_fuse_gains(w->doc, n, w->full);
  return rc;
}

/* --- both --- */

static int begin(finder *w, fl_err *err) {
  size_t most = w->n_docs < FL_RANKED_DOCS ? w->n_docs : FL_RANKED_DOCS;
  w->doc = fl_calloc(w->n_docs + 1, sizeof *w->doc);
  w->hits.ranked = fl_calloc(most + 1, sizeof *w->hits.ranked);
  w->hits.doc = fl_calloc(most + 1, sizeof *w->hits.doc);
  if (w->doc == NULL || w->hits.ranked == NULL || w->hits.doc == NULL) return no_memory(err);
  for (size_t i = 0; i < w->n_docs; i++) w->doc[i] = (fl_hit){ .doc = i, .cosine = -2 };
  return FL_OK;
}

static int finish(finder *w, int rc, fl_hits *out) {
  if (rc == FL_OK) {
    fl_fuse_choose(&w->hits, w->doc, w->n_docs, w->o, w->least_cosine);
    *out = w->hits;
  } else {
    fl_hits_release(&w->hits);
  }
  fl_free(w->doc);
  return rc;
}

int fl_search(fl_hits *out, const fl_index *x, const fl_manifest *m, const fl_question *q,
              const fl_rag_options *o, fl_err *err) {
  fl_rag_options by = *o;
  if (x->lexical == NULL) by.by = FL_RAG_EMBEDDING;
  finder w = { .x = x, .o = &by, .n_docs = m->n };
  int rc = begin(&w, err);
  if (rc == FL_OK && by.by != FL_RAG_LEXICAL && q->vector != NULL)
    rc = find_by_vector(&w, q->vector, err);
  if (rc == FL_OK && by.by != FL_RAG_EMBEDDING) rc = find_by_words(&w, m, q, err);
  if (rc == FL_OK) fl_fuse(w.doc, w.n_docs, (fl_rag_by)by.by);
  if (rc == FL_OK && by.rerank > 0 && w.full > 0 && q->likelihood != NULL)
    rc = weigh(&w, m, q, err);
  return finish(&w, rc, out);
}

int fl_index_search(const fl_index *x, const float *query, size_t n_docs, const fl_rag_options *o,
                    fl_hits *out, fl_err *err) {
  fl_rag_options by = *o;
  by.by = FL_RAG_EMBEDDING;
  finder w = { .x = x, .o = &by, .n_docs = n_docs };
  int rc = begin(&w, err);
  if (rc == FL_OK) rc = find_by_vector(&w, query, err);
  if (rc == FL_OK) fl_fuse(w.doc, w.n_docs, FL_RAG_EMBEDDING);
  return finish(&w, rc, out);
}

void fl_hits_release(fl_hits *h) {
  for (size_t i = 0; i < h->n_words; i++) fl_free(h->word[i]);
  fl_free(h->word);
  fl_free(h->chunk);
  fl_free(h->passage);
  fl_free(h->doc);
  fl_free(h->ranked);
  *h = (fl_hits){ 0 };
}

void fl_hits_evidence(const fl_hits *h, const fl_hit *hit, fl_evidence *out) {
  size_t len = 0;
  *out = (fl_evidence){ .score = hit->score,
                        .cosine = hit->cosine,
                        .words = hit->words,
                        .gain = hit->gain,
                        .cosine_rank = hit->cosine_rank,
                        .words_rank = hit->words_rank };
  for (size_t i = 0; i < h->n_words; i++) {
    size_t n = strlen(h->word[i]);
    if (!(hit->matched >> i & 1) || len + n + 2 > sizeof out->matched) continue;
    if (len > 0) out->matched[len++] = ' ';
    memcpy(out->matched + len, h->word[i], n + 1);
    len += n;
  }
}
