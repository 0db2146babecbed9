/* warm_start.c - what a restart learns from the spilled conversations: which documents each of them
 * was given, and the ids of the answers in it. */
#include <string.h>

#include "serve/engine_state.h"

static void restore_documents(fl_engine *e, const fl_spill_file *f) {
  fl_selection s = { .n = f->n_docs };
  if (f->n_docs == 0 || e->fleet == NULL) return;
  memcpy(s.doc, f->doc, f->n_docs * sizeof *s.doc);
  fl_affinities_put(&e->affinities, f->key, &s, f->digest); /* the key is the owner's own */
}

/* The text that the client saw of ids[0..n), as it was delivered. */
static void restore_answer(fl_engine *e, const fl_spill_file *f, size_t first, size_t n) {
  const fl_ids before = { .data = f->ids, .len = first };
  fl_detokenizer d;
  fl_job_event piece = { 0 };
  char scope[FL_SCOPE_TEXT];
  int rc = FL_OK, stopped;
  fl_answers_scope(scope, f->digest, f->owner);
  fl_detokenizer_init(&d, fl_model_tokenizer(e->model), false, NULL, 0, false, 0);
  for (size_t i = 0; rc == FL_OK && i < n; i++)
    rc = fl_detokenizer_token(&d, f->ids[first + i], NULL, 0, &stopped);
  if (rc == FL_OK) rc = fl_detokenizer_piece(&d, true, &piece);
  if (rc == FL_OK)
    fl_answers_add(&e->answers, scope, &before, d.text.data != NULL ? d.text.data : "", d.text.len,
                   f->ids + first, n);
  fl_detokenizer_release(&d);
  fl_job_event_release(&piece);
}

/* An answer lies between the tokens that open an assistant's message and the one that ends it.
 * Texts hold no control tokens, so neither can be mistaken. */
static void restore_answers(fl_engine *e, const fl_spill_file *f) {
  const fl_ids *opener = &e->prompter.opener[0];
  const int32_t close =
      fl_chat_end_of_turn(fl_model_template(e->model), fl_model_tokenizer(e->model));
  for (size_t at = 0; opener->len > 0 && at + opener->len <= f->n; at++) {
    if (memcmp(f->ids + at, opener->data, opener->len * sizeof *opener->data) != 0) continue;
    size_t first = at + opener->len, end = first;
    while (end < f->n && f->ids[end] != close) end++;
    restore_answer(e, f, first, end - first); /* one that is cut short will match nothing */
    at = end - 1;
  }
}

void fl_engine_warm_start(fl_engine *e) {
  for (size_t i = 0; i < fl_spill_n(e->spill); i++) {
    restore_documents(e, fl_spill_at(e->spill, i));
    restore_answers(e, fl_spill_at(e->spill, i));
  }
}
