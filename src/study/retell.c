/* retell.c - see retell.h. */
#include "study/retell.h"

#include <string.h>

#include "base/mem.h"

enum { CUE = 8 /* tokens of the text that the request quotes */ };

void fl_retold_release(fl_retold *r) {
  for (size_t i = 0; i < r->n; i++) fl_ids_release(&r->conv[i]);
  fl_free(r->conv);
  *r = (fl_retold){ 0 };
}

static size_t byte_of(const fl_doc_text *d, size_t token) {
  return token == 0 ? 0 : d->token_end[token - 1];
}

/* What is asked; `first` is the first token of the answer. */
static void request(fl_buf *b, const fl_doc_text *d, size_t first) {
  if (first == 0) {
    fl_buf_puts(b, "Repeat the document word for word, from its beginning.");
    return;
  }
  const size_t cue = first > CUE ? first - CUE : 0, from = byte_of(d, cue);
  fl_buf_puts(b, "Repeat the document word for word, from behind these words on: \"");
  fl_buf_append(b, d->text + from, byte_of(d, first) - from);
  fl_buf_puts(b, "\"");
}

static int one(fl_ids *out, const fl_doc_text *d, size_t first, size_t end, const fl_tokenizer *t,
               fl_template tpl, fl_err *err) {
  const size_t from = byte_of(d, first), len = byte_of(d, end) - from;
  const int32_t stop = fl_chat_end_of_turn(tpl, t);
  fl_buf ask = { 0 };
  request(&ask, d, first);
  int rc = ask.oom ? FL_ENOMEM : FL_OK;
  if (rc == FL_OK) rc = fl_chat_user(out, tpl, t, ask.data, ask.len, true, false, err);
  if (rc == FL_OK) rc = fl_tokenize(t, out, d->text + from, len, 0, err);
  if (rc == FL_OK && stop >= 0) fl_ids_push(out, stop);
  if (rc == FL_ENOMEM || out->oom) rc = fl_fail(err, FL_ENOMEM, "not enough memory for a document");
  fl_buf_release(&ask);
  return rc;
}

int fl_retell(fl_retold *out, const fl_doc_text *doc, const fl_tokenizer *t, fl_template tpl,
              const fl_retell_options *o, fl_err *err) {
  const size_t all = doc->n_tokens, pieces = (all + o->piece - 1) / o->piece;
  size_t n = pieces < o->max_pieces ? pieces : o->max_pieces;
  if (n == 0) n = 1;
  fl_retold r = { .conv = fl_calloc(n, sizeof *r.conv) };
  int rc = r.conv != NULL ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory for a document");
  for (size_t i = 0; rc == FL_OK && i < n; i++) {
    const size_t first = i * all / n, next = (i + 1) * all / n;
    const size_t end = next - first < o->piece ? next : first + o->piece;
    rc = one(&r.conv[r.n++], doc, first, end, t, tpl, err);
  }
  if (rc == FL_OK) {
    *out = r;
    return FL_OK;
  }
  fl_retold_release(&r);
  return rc;
}
