/* likelihood.c - see likelihood.h. */
#include "retrieval/likelihood.h"

#include <math.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "fleet/state.h"

enum { OUT_ROWS = 8 }; /* rows of logits at a time */

static double log_prob(const float *logits, size_t n, int32_t token) {
  float most = logits[0];
  double sum = 0;
  for (size_t i = 1; i < n; i++)
    if (logits[i] > most) most = logits[i];
  for (size_t i = 0; i < n; i++) sum += exp((double)logits[i] - most);
  return (double)logits[token] - most - log(sum);
}

static int tokenize(const fl_fleet *f, fl_ids *out, const char *text, size_t text_len,
                    fl_err *err) {
  fl_buf b = { 0 };
  size_t n = text_len;
  if (n > FL_LIKELIHOOD_TEXT) n = fl_utf8_whole_prefix(text, FL_LIKELIHOOD_TEXT);
  fl_buf_append(&b, text, n);
  fl_buf_puts(&b, FL_LIKELIHOOD_REQUEST);
  int rc = b.oom ? fl_fail(err, FL_ENOMEM, "not enough memory to weigh a passage")
                 : fl_tokenize(fl_model_tokenizer(f->model), out, b.data, b.len, FL_TOK_BOS, err);
  fl_buf_release(&b);
  return rc;
}

/* Row i of the last forward predicts token i of the question. */
static int add_up(double *out, fl_fleet *f, const fl_ids *question, fl_err *err) {
  const size_t n_vocab = fl_model_hparams(f->model)->n_vocab;
  float *logits = fl_calloc(OUT_ROWS * n_vocab, sizeof *logits);
  double sum = 0;
  if (logits == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory to weigh a passage");
  for (size_t i = 0; i < question->len; i += OUT_ROWS) {
    size_t row[OUT_ROWS], n = question->len - i < OUT_ROWS ? question->len - i : OUT_ROWS;
    for (size_t k = 0; k < n; k++) row[k] = i + k;
    fl_pass_logits(f->pass, row, n, logits);
    for (size_t k = 0; k < n; k++)
      sum += log_prob(logits + k * n_vocab, n_vocab, question->data[i + k]);
  }
  fl_free(logits);
  *out = sum;
  return FL_OK;
}

int fl_likelihood(double *out, fl_fleet *f, const char *text, size_t text_len, const char *question,
                  size_t len, fl_err *err) {
  fl_ids before = { 0 }, asked = { 0 };
  fl_seq *seq = NULL;
  int rc = fl_fleet_workspace(f, FL_KV_F32, err);
  if (rc == FL_OK) rc = tokenize(f, &before, text, text_len, err);
  if (rc == FL_OK) rc = fl_tokenize(fl_model_tokenizer(f->model), &asked, question, len, 0, err);
  if (rc == FL_OK && asked.len > FL_LIKELIHOOD_TOKENS) asked.len = FL_LIKELIHOOD_TOKENS;
  if (rc == FL_OK) rc = fl_seq_new(&seq, f->pool[FL_KV_F32], err);
  size_t n = before.len; /* the last of them predicts the question's first token */
  if (rc == FL_OK && n > 1) rc = fl_pass_prefill(f->pass, seq, before.data, n - 1, NULL, err);
  if (rc == FL_OK && n > 0) {
    int32_t last = before.data[n - 1];
    fl_ids_reset(&before);
    fl_ids_push(&before, last);
    if (asked.len > 0) fl_ids_append(&before, asked.data, asked.len - 1);
    fl_span span = { .seq = seq, .tokens = before.data, .n_rows = before.len };
    rc = before.oom ? fl_fail(err, FL_ENOMEM, "not enough memory to weigh a passage")
                    : fl_pass_forward(f->pass, &span, 1, err);
  }
  if (rc == FL_OK) rc = add_up(out, f, &asked, err);
  if (seq != NULL) fl_seq_free(seq);
  fl_ids_release(&before);
  fl_ids_release(&asked);
  return rc;
}
