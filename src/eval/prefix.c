/* prefix.c - what stands before a question in each arm.
 *
 * The text arms hold what a reader of retrieved text would hold in the same memory: the best
 * passages by the same retrieval, best first, wrapped as documents are, cut to as many tokens as
 * the retrieved cartridges have rows (or four times that). */
#include <string.h>

#include "base/mem.h"
#include "cartridge/cartridge.h"
#include "eval/state.h"

enum { PIECES = 256 };
static const char between[] = "\n</document>\n\n<document>\n";

static bool wants_hits(eval_arm a) {
  return a == EVAL_RETRIEVED || a == EVAL_TEXT || a == EVAL_TEXT4;
}

static int retrieve(eval_state *b, fl_hits *hits, const fl_rag_options *rag, fl_err *err) {
  for (size_t i = 0; i < b->q->n; i++) {
    const char *question = b->q->q[i].question;
    if (b->o->stop()) return FL_EINTR;
    int rc = fl_fleet_retrieve(b->f, question, strlen(question), rag, &hits[i], err);
    if (rc == FL_ENOENT)
      return fl_fail(err, FL_EFAIL, "the fleet has no index; make it with flotilla index");
    if (rc != FL_OK) return rc;
  }
  return FL_OK;
}

int eval_retrieve(eval_state *b, eval_arm arm, fl_err *err) {
  int rc = FL_OK;
  if (!wants_hits(arm)) return FL_OK;
  if (!b->have_hits) rc = retrieve(b, b->hits, b->o->rag, err);
  if (rc != FL_OK) return rc;
  b->have_hits = true;
  if (arm == EVAL_RETRIEVED || b->have_pieces) return FL_OK;
  fl_rag_options many = *b->o->rag;
  many.chunks = PIECES;
  rc = retrieve(b, b->pieces, &many, err);
  b->have_pieces = rc == FL_OK;
  return rc;
}

static int compare_sizes(size_t a, size_t b) { return (a > b) - (a < b); }

static int compare_hits(const fl_hits *a, const fl_hits *b) {
  int c = compare_sizes(a->n_docs, b->n_docs);
  for (size_t i = 0; c == 0 && i < a->n_docs; i++) c = compare_sizes(a->doc[i].doc, b->doc[i].doc);
  return c;
}

int eval_compare_prefix(const eval_state *b, eval_arm arm, size_t i, size_t j) {
  switch (arm) {
  case EVAL_BARE:
  case EVAL_ALL: return 0;
  case EVAL_RETRIEVED: return compare_hits(&b->hits[i], &b->hits[j]);
  case EVAL_TEXT:
  case EVAL_TEXT4: return compare_sizes(i, j);
  case EVAL_CONTEXT:
  case EVAL_ORACLE: break;
  }
  return compare_sizes(b->q->q[i].doc_index, b->q->q[j].doc_index);
}

static int document(const eval_text **out, eval_state *b, size_t doc, fl_err *err) {
  eval_text *t = &b->text[doc];
  int rc = FL_OK;
  if (!t->known) {
    rc = fl_fleet_doc_text(b->f, doc, &t->text, err);
    if (rc == FL_OK && t->text.oom) rc = fl_fail(err, FL_ENOMEM, "not enough memory for a text");
    if (rc == FL_OK)
      rc = fl_doc_text_init(&t->tokens, fl_model_tokenizer(b->model),
                            t->text.data ? t->text.data : "", t->text.len, err);
    t->known = rc == FL_OK;
  }
  if (rc == FL_OK) *out = t;
  return rc;
}

static int read_ids(eval_state *b, fl_seq *seq, const fl_ids *ids, const char *what, fl_err *err) {
  const size_t n_ctx = fl_model_hparams(b->model)->n_ctx;
  if (ids->oom) return fl_fail(err, FL_ENOMEM, "not enough memory for a text");
  if (ids->len + b->o->max_new >= n_ctx)
    return fl_fail(err, FL_EUSAGE,
                   "%s: its %zu tokens do not fit the model's context of %zu; "
                   "leave the arm out of --arms",
                   what, ids->len, n_ctx);
  return fl_pass_prefill(b->pass, seq, ids->data, ids->len, NULL, err);
}

static int read_document(eval_state *b, fl_seq *seq, size_t doc, size_t *n_read, fl_err *err) {
  const eval_text *t;
  fl_doc_info info;
  fl_ids ids = { 0 };
  fl_fleet_doc(b->f, doc, &info);
  int rc = document(&t, b, doc, err);
  if (rc == FL_OK)
    rc = fl_wrapped_system(&ids, b->model, t->text.data ? t->text.data : "", t->text.len, 0, err);
  if (rc == FL_OK) rc = read_ids(b, seq, &ids, info.name, err);
  *n_read = ids.len;
  fl_ids_release(&ids);
  return rc;
}

static int add_passage(eval_state *b, fl_buf *text, const fl_hit *hit, fl_err *err) {
  if (text->len > 0) fl_buf_puts(text, between);
  return fl_fleet_passage(b->f, hit, text, err);
}

/* Appends the text of a piece. */
static int add_piece(eval_state *b, fl_buf *text, const fl_hit *hit, fl_err *err) {
  const eval_text *t;
  size_t first, end;
  int rc = document(&t, b, hit->doc, err);
  if (rc == FL_OK) rc = fl_fleet_chunk_span(b->f, hit, t->tokens.n_tokens, &first, &end, err);
  if (rc != FL_OK) return rc;
  if (text->len > 0) fl_buf_puts(text, between);
  size_t at = first > 0 ? t->tokens.token_end[first - 1] : 0;
  fl_buf_append(text, t->tokens.text + at, t->tokens.token_end[end - 1] - at);
  return FL_OK;
}

static size_t rows_of_hits(const eval_state *b, const fl_hits *h) {
  size_t rows = 0;
  for (size_t i = 0; i < h->n_docs; i++) {
    fl_doc_info info;
    fl_fleet_doc(b->f, h->doc[i].doc, &info);
    rows += info.rows;
  }
  return rows;
}

/* Pieces until the budget is full; the last is cut so that the message has exactly its tokens. */
static int read_pieces(eval_state *b, fl_seq *seq, size_t i, size_t times, size_t *n_read,
                       fl_err *err) {
  const fl_hits *pieces = &b->pieces[i];
  size_t budget = rows_of_hits(b, &b->hits[i]) * times;
  fl_buf text = { 0 };
  fl_ids ids = { 0 };
  int rc = FL_OK;
  const size_t n = pieces->n_passages > 0 ? pieces->n_passages : pieces->n_chunks;
  for (size_t k = 0; k < n && ids.len < budget && rc == FL_OK; k++) {
    rc = pieces->n_passages > 0 ? add_passage(b, &text, &pieces->passage[k], err)
                                : add_piece(b, &text, &pieces->chunk[k], err);
    if (rc == FL_OK && text.oom) rc = fl_fail(err, FL_ENOMEM, "not enough memory for a text");
    fl_ids_reset(&ids);
    if (rc == FL_OK) rc = fl_wrapped_system(&ids, b->model, text.data, text.len, 0, err);
  }
  if (rc == FL_OK && ids.len > budget) {
    fl_ids_reset(&ids);
    rc = fl_wrapped_system(&ids, b->model, text.data, text.len, budget, err);
  }
  if (rc == FL_OK && ids.len > 0) rc = read_ids(b, seq, &ids, "retrieved text", err);
  *n_read = ids.len;
  fl_ids_release(&ids);
  fl_buf_release(&text);
  return rc;
}

static int compose(eval_state *b, fl_seq *seq, eval_arm arm, size_t i, fl_err *err) {
  const fl_hits *h = &b->hits[i];
  size_t n = arm == EVAL_ALL ? b->n_docs : arm == EVAL_ORACLE ? 1 : h->n_docs;
  size_t *docs = fl_calloc(n + 1, sizeof *docs);
  if (!docs) return fl_fail(err, FL_ENOMEM, "not enough memory");
  for (size_t k = 0; k < n; k++)
    docs[k] = arm == EVAL_ALL ? k : arm == EVAL_ORACLE ? b->q->q[i].doc_index : h->doc[k].doc;
  int rc = n > 0 ? fl_fleet_compose(b->f, seq, docs, n, err) : FL_OK;
  fl_free(docs);
  const size_t n_ctx = fl_model_hparams(b->model)->n_ctx;
  if (rc == FL_OK && fl_seq_rows(seq) + b->o->max_new >= n_ctx)
    rc = fl_fail(err, FL_EUSAGE,
                 "%s: %zu rows do not fit the model's context of %zu; leave the "
                 "arm out of --arms",
                 eval_arm_names[arm], fl_seq_rows(seq), n_ctx);
  return rc;
}

int eval_prefix(fl_seq **out, size_t *n_read, eval_state *b, eval_arm arm, size_t i, fl_err *err) {
  fl_seq *seq = NULL;
  int rc = fl_seq_new(&seq, b->pool, err);
  *n_read = 0;
  if (rc == FL_OK) {
    switch (arm) {
    case EVAL_BARE: break;
    case EVAL_CONTEXT: rc = read_document(b, seq, b->q->q[i].doc_index, n_read, err); break;
    case EVAL_TEXT: rc = read_pieces(b, seq, i, 1, n_read, err); break;
    case EVAL_TEXT4: rc = read_pieces(b, seq, i, 4, n_read, err); break;
    case EVAL_ORACLE:
    case EVAL_RETRIEVED:
    case EVAL_ALL: rc = compose(b, seq, arm, i, err); break;
    }
  }
  if (rc != FL_OK) {
    if (seq) fl_seq_free(seq);
    return rc;
  }
  *out = seq;
  return FL_OK;
}
