/* score.c - see score.h. Items wait in a row; every pass takes rows of as many as fit, so
 * that a long one goes through in slices and short ones share a pass. */
#include "eval/score.h"

#include <math.h>

#include "base/mem.h"

void eval_items_release(eval_item *item, size_t n) {
  for (size_t i = 0; i < n; i++) fl_ids_release(&item[i].tokens);
}

double eval_nll(const float *logits, size_t n_vocab, int32_t id) {
  float most = logits[0];
  double sum = 0;
  for (size_t i = 1; i < n_vocab; i++)
    if (logits[i] > most) most = logits[i];
  for (size_t i = 0; i < n_vocab; i++) sum += exp((double)logits[i] - most);
  return log(sum) + most - logits[id];
}

typedef struct weigher {
  fl_pass *pass;
  eval_item *item;
  size_t n, n_vocab, max_out;
  fl_seq **seq;  /* [n] fork that grows; NULL before the first and after the last slice */
  size_t *done;  /* [n] tokens that went through */
  fl_span *span; /* [max_spans] */
  size_t *of;    /* [max_spans] whose */
  size_t max_spans;
  float *logits; /* [max_out, n_vocab] */
  size_t *row;   /* [max_out] of the pass */
  size_t *at;    /* [max_out] item * 2^32 + token that the row predicts */
  size_t n_rows;
} weigher;

/* The last token of an item predicts nothing that is asked for. */
static size_t rows_of(const eval_item *e) { return e->tokens.len - 1; }

static void flush(weigher *w) {
  fl_pass_logits(w->pass, w->row, w->n_rows, w->logits);
  for (size_t i = 0; i < w->n_rows; i++) {
    eval_item *e = &w->item[w->at[i] >> 32];
    int32_t id = e->tokens.data[w->at[i] & UINT32_MAX];
    e->nll += eval_nll(w->logits + i * w->n_vocab, w->n_vocab, id);
  }
  w->n_rows = 0;
}

static void take_rows(weigher *w, size_t n_spans) {
  size_t first = 0; /* row of the pass where the span begins */
  for (size_t s = 0; s < n_spans; s++) {
    size_t i = w->of[s], n = w->span[s].n_rows;
    for (size_t r = 0; r < n; r++) {
      size_t predicts = w->done[i] + r + 1;
      if (predicts < w->item[i].n_prompt) continue;
      w->row[w->n_rows] = first + r;
      w->at[w->n_rows] = i << 32 | predicts;
      if (++w->n_rows == w->max_out) flush(w);
    }
    first += n;
    w->done[i] += n;
  }
  if (w->n_rows > 0) flush(w);
}

static int one_pass(weigher *w, fl_err *err) {
  size_t room = fl_pass_max_rows(w->pass), n_spans = 0;
  int rc = FL_OK;
  for (size_t i = 0; i < w->n && room > 0 && n_spans < w->max_spans; i++) {
    const eval_item *e = &w->item[i];
    size_t left = rows_of(e) - w->done[i];
    if (left == 0) continue;
    if (!w->seq[i]) rc = fl_seq_fork(&w->seq[i], e->prefix, fl_seq_rows(e->prefix), err);
    if (rc != FL_OK) return rc;
    size_t n = left < room ? left : room, next = w->done[i] + 1; /* what its first row predicts */
    size_t silent = e->n_prompt > next ? e->n_prompt - next : 0;
    w->span[n_spans] = (fl_span){ .seq = w->seq[i],
                                  .tokens = e->tokens.data + w->done[i],
                                  .n_rows = n,
                                  .n_no_output = silent < n ? silent : n };
    w->of[n_spans++] = i;
    room -= n;
  }
  rc = fl_pass_forward(w->pass, w->span, n_spans, err);
  if (rc == FL_OK) take_rows(w, n_spans);
  for (size_t s = 0; s < n_spans && rc == FL_OK; s++) {
    size_t i = w->of[s];
    if (w->done[i] < rows_of(&w->item[i])) continue;
    fl_seq_free(w->seq[i]);
    w->seq[i] = NULL;
  }
  return rc;
}

static bool any_left(const weigher *w) {
  for (size_t i = 0; i < w->n; i++)
    if (w->done[i] < rows_of(&w->item[i])) return true;
  return false;
}

int eval_weigh(fl_pass *pass, eval_item *item, size_t n, size_t max_spans, size_t max_out_rows,
               fl_err *err) {
  const size_t n_vocab = fl_model_hparams(fl_pass_model(pass))->n_vocab;
  weigher w = { .pass = pass,
                .item = item,
                .n = n,
                .n_vocab = n_vocab,
                .max_out = max_out_rows,
                .max_spans = max_spans };
  int rc = FL_OK;
  w.seq = fl_calloc(n + 1, sizeof *w.seq);
  w.done = fl_calloc(n + 1, sizeof *w.done);
  w.span = fl_calloc(max_spans, sizeof *w.span);
  w.of = fl_calloc(max_spans, sizeof *w.of);
  w.logits = fl_calloc(max_out_rows, n_vocab * sizeof *w.logits);
  w.row = fl_calloc(max_out_rows, sizeof *w.row);
  w.at = fl_calloc(max_out_rows, sizeof *w.at);
  if (!w.seq || !w.done || !w.span || !w.of || !w.logits || !w.row || !w.at)
    rc = fl_fail(err, FL_ENOMEM, "not enough memory to weigh answers");
  for (size_t i = 0; i < n; i++) item[i].nll = 0;
  while (rc == FL_OK && any_left(&w)) rc = one_pass(&w, err);
  for (size_t i = 0; w.seq && i < n; i++)
    if (w.seq[i]) fl_seq_free(w.seq[i]);
  fl_free(w.seq);
  fl_free(w.done);
  fl_free(w.span);
  fl_free(w.of);
  fl_free(w.logits);
  fl_free(w.row);
  fl_free(w.at);
  return rc;
}
