/* retrieval.c - vectors of texts by the model, building the index, answering a query. */
#include "retrieval/retrieval.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "fleet/state.h"
#include "retrieval/fleet_words.h"
#include "retrieval/likelihood.h"
#include "study/study.h"

int fl_embed_ids(fl_ids *out, const fl_model *m, const char *text, size_t len, fl_err *err) {
  fl_buf b = { 0 };
  fl_buf_append(&b, text, len);
  fl_buf_puts(&b, FL_EMBED_SUFFIX);
  int rc = b.oom ? fl_fail(err, FL_ENOMEM, "not enough memory to embed a text")
                 : fl_tokenize(fl_model_tokenizer(m), out, b.data, b.len, FL_TOK_BOS, err);
  fl_buf_release(&b);
  return rc;
}

/* A text longer than one forward is run in slices. */
static int embed_long(fl_fleet *f, fl_seq *seq, const fl_ids *ids, float *out, fl_err *err) {
  size_t last = 0;
  int rc = fl_pass_prefill(f->pass, seq, ids->data, ids->len, &last, err);
  if (rc == FL_OK) fl_pass_hidden(f->pass, &last, 1, out);
  return rc;
}

/* Several texts in one forward; by the row rule each gives what it would give alone. */
static int embed_group(fl_fleet *f, const fl_ids *ids, size_t n, float *out, fl_err *err) {
  fl_span span[FL_PASS_SPANS];
  fl_seq *seq[FL_PASS_SPANS] = { NULL };
  size_t row[FL_PASS_SPANS], end = 0;
  int rc = FL_OK;
  for (size_t i = 0; rc == FL_OK && i < n; i++) {
    rc = fl_seq_new(&seq[i], f->pool[FL_KV_F32], err);
    end += ids[i].len;
    row[i] = end - 1;
    span[i] = (fl_span){
      .seq = seq[i], .tokens = ids[i].data, .n_rows = ids[i].len, .n_no_output = ids[i].len - 1
    };
  }
  if (rc == FL_OK && end > FL_PASS_ROWS) {
    rc = embed_long(f, seq[0], &ids[0], out, err);
  } else if (rc == FL_OK) {
    rc = fl_pass_forward(f->pass, span, n, err);
    if (rc == FL_OK) fl_pass_hidden(f->pass, row, n, out);
  }
  for (size_t i = 0; i < n; i++) fl_seq_free(seq[i]);
  return rc;
}

int fl_embed(fl_fleet *f, const char *const *text, const size_t *len, size_t n, float *out,
             fl_err *err) {
  size_t dim = fl_model_hparams(f->model)->d_model;
  fl_ids ids[FL_PASS_SPANS] = { { 0 } };
  int rc = fl_fleet_workspace(f, FL_KV_F32, err);
  size_t i = 0;
  while (rc == FL_OK && i < n) {
    size_t held = 0, rows = 0;
    while (rc == FL_OK && i + held < n && held < FL_PASS_SPANS) {
      fl_ids_reset(&ids[held]);
      rc = fl_embed_ids(&ids[held], f->model, text[i + held], len[i + held], err);
      if (rc != FL_OK || (held > 0 && rows + ids[held].len > FL_PASS_ROWS)) break;
      rows += ids[held++].len;
    }
    if (rc == FL_OK) rc = embed_group(f, ids, held, out + i * dim, err);
    i += held;
  }
  for (size_t k = 0; k < FL_PASS_SPANS; k++) fl_ids_release(&ids[k]);
  return rc;
}

/* --- building --- */

enum { GROUP = 16 }; /* pieces between two looks at the poll hook */

static int add_pieces(fl_fleet *f, fl_index *x, size_t doc, const fl_doc_text *t,
                      const fl_train_hooks *hooks, float *v, fl_err *err) {
  size_t chunk = (size_t)f->m.embed_chunk, n = fl_chunk_count(t->n_tokens, chunk);
  int rc = FL_OK;
  for (size_t i = 0; rc == FL_OK && i < n; i += GROUP) {
    const char *text[GROUP];
    size_t len[GROUP], held = n - i < GROUP ? n - i : GROUP;
    if (fl_hooks_poll(hooks) != FL_OK) return FL_EINTR;
    for (size_t k = 0; k < held; k++) {
      size_t first, end;
      fl_chunk_span(t->n_tokens, chunk, i + k, &first, &end);
      text[k] = fl_doc_text_span(t, first, end, &len[k]);
    }
    rc = fl_embed(f, text, len, held, v, err);
    for (size_t k = 0; rc == FL_OK && k < held; k++)
      if (fl_index_add(x, v + k * x->dim, doc) != FL_OK)
        rc = fl_fail(err, FL_ENOMEM, "not enough memory for the retrieval index");
  }
  return rc;
}

static int add_document(fl_fleet *f, fl_index *x, size_t doc, const fl_train_hooks *hooks, float *v,
                        fl_err *err) {
  fl_buf own = { 0 };
  fl_doc_text t = { 0 };
  int rc = fl_fleet_text(f, doc, &own, err);
  if (rc == FL_OK) rc = fl_doc_text_init(&t, fl_model_tokenizer(f->model), own.data, own.len, err);
  fl_buf_release(&own); /* copied */
  if (rc == FL_OK) rc = add_pieces(f, x, doc, &t, hooks, v, err);
  if (rc != FL_OK && rc != FL_EINTR) fl_err_prefix(err, "%s", f->m.doc[doc].name);
  fl_doc_text_release(&t);
  fl_buf_release(&own);
  return rc;
}

/* The time left is by tokens; it is told once a tenth has been done. */
static void tell_progress(const fl_fleet *f, const fl_train_hooks *hooks, size_t i, double began) {
  uint64_t done = 0, all = 0;
  if (hooks == NULL || hooks->progress == NULL) return;
  for (size_t k = 0; k < f->m.n; k++) {
    all += f->m.doc[k].tokens;
    if (k < i) done += f->m.doc[k].tokens;
  }
  const double took = fl_now_s() - began;
  fl_progress p = { .round = f->m.rounds,
                    .doc = f->m.doc[i].name,
                    .note = "index",
                    .at = i + 1,
                    .of = f->m.n,
                    .elapsed_s = took };
  if (done > 0 && done >= all / 10) p.left_s = took * (double)(all - done) / (double)done;
  hooks->progress(hooks->ctx, &p);
}

int fl_index_build(fl_fleet *f, const fl_train_hooks *hooks, fl_err *err) {
  const double began = fl_now_s();
  size_t dim = fl_model_hparams(f->model)->d_model;
  fl_index *x = NULL;
  float *v = fl_calloc(GROUP * dim, sizeof *v);
  int rc = v == NULL ? fl_fail(err, FL_ENOMEM, "not enough memory for the retrieval index")
                     : fl_index_new(&x, dim, err);
  for (size_t i = 0; rc == FL_OK && i < f->m.n; i++) {
    tell_progress(f, hooks, i, began);
    rc = add_document(f, x, i, hooks, v, err);
  }
  if (rc == FL_OK) {
    fl_index_finish(x);
    fl_fleet_index_set(f, x);
    x = NULL;
  }
  fl_index_free(x);
  fl_free(v);
  return rc;
}

static void free_index(void *p) { fl_index_free(p); }

fl_index *fl_fleet_index_of(const fl_fleet *f) { return fl_fleet_attachment(f, FL_WITH_INDEX); }

void fl_fleet_index_set(fl_fleet *f, fl_index *x) {
  fl_fleet_attach(f, FL_WITH_INDEX, x, free_index);
}

void fl_index_forget(fl_fleet *f) { fl_fleet_index_set(f, NULL); }

/* --- asking --- */

int fl_manifest_read_index(fl_index **out, const fl_manifest *m, const char *dir, size_t dim,
                           fl_err *err) {
  if (m->index_file == NULL)
    return fl_fail(err, FL_ENOENT, "%s: no retrieval index; build it with flotilla index", dir);
  bool own = false;
  fl_index_meta meta = { m->model_hash, (size_t)m->embed_chunk };
  char *path = fl_fs_join(dir, m->index_file);
  if (path == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory", dir);
  int rc = fl_index_read(out, &own, path, m->n, dim, &meta, err);
  if (rc == FL_OK && !own)
    fl_warn("%s: made by another program or for another model; its scores mean less until it is "
            "rebuilt with flotilla index",
            path);
  fl_free(path);
  if (rc == FL_OK) (void)fl_manifest_open_words(&(*out)->lexical, m, dir, NULL);
  return rc;
}

/* Why there are none: a fleet from before, a lost file or a damaged one. The trainer has the words
 * that it wrote or will write them. */
static void make_words(fl_fleet *f, fl_index *x) {
  fl_err why = { 0 }, gone = { 0 };
  int rc = fl_manifest_open_words(&x->lexical, &f->m, f->dir, &why);
  if (rc == FL_OK) return;
  if (f->rows_of == NULL && fl_fleet_words_make(&x->lexical, f, &gone) == FL_OK) {
    if (rc != FL_ENOENT) fl_warn("%s; until then words are read from the documents", why.text);
  } else {
    fl_warn("%s: without an index of words, searched by vectors alone; make it with flotilla index",
            f->dir);
  }
}

int fl_fleet_load_index(fl_fleet *f, fl_err *err) {
  if (fl_fleet_index_of(f) != NULL) return FL_OK;
  if (f->off_disk)
    return fl_fail(err, FL_EBUSY, "%s: its retrieval index is not in memory now; try again",
                   f->dir);
  const size_t dim = fl_model_hparams(f->model)->d_model;
  for (int left = FL_RELOADS;; left--) {
    fl_err why = { 0 };
    fl_index *x = NULL;
    int rc = fl_manifest_read_index(&x, &f->m, f->dir, dim, &why);
    bool lost = rc == FL_ENOENT || (rc == FL_OK && x->lexical == NULL);
    if (lost && left > 0 && fl_fleet_moved_on(f)) {
      fl_index_free(x);
      continue;
    }
    if (rc == FL_OK && x->lexical == NULL) make_words(f, x);
    if (rc == FL_OK) fl_fleet_index_set(f, x);
    if (rc != FL_OK && err != NULL) *err = why;
    return rc;
  }
}

/* What each ranking says; nothing of one that has not found it. */
static void print_evidence(fl_buf *b, const fl_hits *all, const fl_hit *h) {
  if (h->cosine_rank > 0) {
    fl_jsonw_fixed(b, "cosine", h->cosine, 6);
    fl_jsonw_u64(b, "cosine_rank", h->cosine_rank);
  }
  if (h->gain < 0 || h->gain > 0) fl_jsonw_fixed(b, "gain", h->gain, 6);
  if (h->words_rank == 0) return;
  fl_jsonw_fixed(b, "words", h->words, 6);
  fl_jsonw_u64(b, "words_rank", h->words_rank);
  fl_jsonw_open(b, "matched", '[');
  for (size_t i = 0; i < all->n_words; i++)
    if (h->matched >> i & 1) fl_jsonw_str(b, NULL, all->word[i]);
  fl_jsonw_close(b, ']');
}

typedef enum unit { DOCUMENT, PASSAGE, CHUNK } unit;

static void print_hit(fl_buf *b, const fl_fleet *f, const fl_hits *all, const fl_hit *h,
                      unit what) {
  const fl_doc_entry *d = &f->m.doc[h->doc];
  fl_jsonw_open(b, NULL, '{');
  if (what == CHUNK) fl_jsonw_u64(b, "chunk", h->chunk);
  if (what == PASSAGE) fl_jsonw_u64(b, "passage", h->passage);
  fl_jsonw_u64(b, "doc", d->id);
  if (what == DOCUMENT) fl_jsonw_str(b, "name", d->name);
  fl_jsonw_fixed(b, "score", h->score, 6);
  if (what == DOCUMENT) print_evidence(b, all, h);
  fl_jsonw_close(b, '}');
}

void fl_hits_print(fl_buf *b, const fl_fleet *f, const char *query, size_t len,
                   const fl_rag_options *o, const fl_hits *h) {
  fl_jsonw_strn(b, "query", query, len);
  fl_jsonw_open(b, "chunks", '[');
  for (size_t i = 0; i < h->n_chunks; i++) print_hit(b, f, h, &h->chunk[i], CHUNK);
  fl_jsonw_close(b, ']');
  fl_jsonw_open(b, "passages", '[');
  for (size_t i = 0; i < h->n_passages; i++) print_hit(b, f, h, &h->passage[i], PASSAGE);
  fl_jsonw_close(b, ']');
  fl_jsonw_open(b, "docs", '[');
  for (size_t i = 0; i < h->n_ranked; i++) print_hit(b, f, h, &h->ranked[i], DOCUMENT);
  fl_jsonw_close(b, ']');
  fl_jsonw_open(b, "chosen", '[');
  for (size_t i = 0; i < h->n_docs; i++) fl_jsonw_u64(b, NULL, f->m.doc[h->doc[i].doc].id);
  fl_jsonw_close(b, ']');
  fl_jsonw_str(b, "by", fl_rag_by_words[o->by]);
  fl_jsonw_fixed(b, "floor", o->floor, 6);
  fl_jsonw_fixed(b, "margin", h->margin, 6);
}

static void log_query(fl_fleet *f, const char *query, size_t len, const fl_rag_options *o,
                      const fl_hits *h, double seconds) {
  fl_event e;
  fl_event_begin(&e, "retrieve");
  fl_event_int(&e, "id", (int64_t)f->next_query++);
  fl_hits_print(&e.text, f, query, len, o, h);
  fl_event_num(&e, "seconds", seconds);
  fl_event_emit(f->log, &e);
}

typedef struct asking {
  fl_fleet *f;
  const char *query;
  size_t len;
} asking;

static int likelihood(void *ctx, const char *text, size_t len, double *out, fl_err *err) {
  const asking *a = ctx;
  return fl_likelihood(out, a->f, text, len, a->query, a->len, err);
}

/* vector NULL: words alone are asked. weighs: the fleet's model may be run. */
static int search(fl_fleet *f, const char *query, size_t len, float *vector, bool weighs,
                  const fl_rag_options *o, fl_hits *out, fl_err *err) {
  int rc = fl_fleet_load_index(f, err);
  if (rc != FL_OK) return rc;
  const fl_index *x = fl_fleet_index_of(f);
  if (o->by == FL_RAG_LEXICAL && x->lexical == NULL)
    return fl_fail(err, FL_EINPUT,
                   "%s: no index of words to search in; make it with flotilla index", f->dir);
  if (vector != NULL) fl_index_centre(x, vector);
  asking a = { f, query, len };
  const fl_question q = {
    .text = query, .len = len, .vector = vector, .likelihood = weighs ? likelihood : NULL, .ctx = &a
  };
  return fl_search(out, x, &f->m, &q, o, err);
}

int fl_fleet_retrieve_by(fl_fleet *f, const char *query, size_t len, float *vector,
                         const fl_rag_options *o, fl_hits *out, fl_err *err) {
  return search(f, query, len, vector, false, o, out, err);
}

int fl_fleet_retrieve(fl_fleet *f, const char *query, size_t len, const fl_rag_options *o,
                      fl_hits *out, fl_err *err) {
  double began = fl_now_s();
  if (f->model == NULL) return fl_fail(err, FL_EUSAGE, "%s: opened without a model", f->dir);
  int rc = fl_fleet_load_index(f, err);
  if (rc != FL_OK) return rc;
  float *v = NULL;
  if (o->by != FL_RAG_LEXICAL) {
    v = fl_calloc(fl_fleet_index_of(f)->dim, sizeof *v);
    rc = v != NULL ? fl_embed(f, &query, &len, 1, v, err)
                   : fl_fail(err, FL_ENOMEM, "not enough memory to search");
  }
  if (rc == FL_OK) rc = search(f, query, len, v, true, o, out, err);
  if (rc == FL_OK) log_query(f, query, len, o, out, fl_now_s() - began);
  if (f->rows_of != NULL) fl_index_forget(f);
  fl_free(v);
  return rc;
}

/* The index lists the pieces of a document one after the other. */
static size_t piece_in_document(const fl_index *x, const fl_hit *h) {
  size_t n = 0;
  while (n < h->chunk && x->doc[h->chunk - n - 1] == (int64_t)h->doc) n++;
  return n;
}

int fl_fleet_chunk_span(const fl_fleet *f, const fl_hit *piece, size_t n_tokens, size_t *first,
                        size_t *end, fl_err *err) {
  const fl_index *x = fl_fleet_index_of(f);
  size_t chunk = (size_t)f->m.embed_chunk;
  size_t i = x != NULL ? piece_in_document(x, piece) : SIZE_MAX;
  if (i >= fl_chunk_count(n_tokens, chunk))
    return fl_fail(err, FL_EINPUT,
                   "%s: the index has pieces that the text has not; rebuild it "
                   "with flotilla index",
                   f->m.doc[piece->doc].name);
  fl_chunk_span(n_tokens, chunk, i, first, end);
  return FL_OK;
}

int fl_fleet_passage(fl_fleet *f, const fl_hit *passage, fl_buf *out, fl_err *err) {
  const fl_index *x = fl_fleet_index_of(f);
  fl_lexical_passage p = { 0 };
  if (x == NULL || x->lexical == NULL)
    return fl_fail(err, FL_EUSAGE, "a passage needs a retrieval first");
  int rc =
      fl_lexical_read(x->lexical, f->m.doc[passage->doc].id, (uint32_t)passage->passage, &p, err);
  if (rc != FL_OK) return rc;
  fl_lexical_passage_print(&p, out);
  fl_lexical_passage_release(&p);
  return out->oom ? fl_fail(err, FL_ENOMEM, "not enough memory for a passage") : FL_OK;
}
