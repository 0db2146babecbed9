/* state.h - what the arms of an evaluation share. Private to the eval files. */
#ifndef FL_EVAL_STATE_H
#define FL_EVAL_STATE_H

#include "answer/prefix.h"
#include "eval/eval.h"
#include "model/pass.h"

struct eval_state {
  fl_fleet *f;
  const fl_model *model;
  const eval_questions *q;
  const eval_options *o;
  fl_pass *pass;
  fl_kv_pool *pool;
  fl_hits *hits;   /* [n questions]: documents as ask chooses them; empty until retrieved */
  fl_hits *chunks; /* [n questions]: many chunks for the text arms */
  bool have_hits, have_chunks;
  fl_doc_reader *texts;
  size_t n_docs;
};

/* Whether the arm depends on what a search finds. */
bool eval_arm_searches(eval_arm arm);
/* Retrieval for every question, once; nothing to do for arms that need none. */
int eval_retrieve(eval_state *b, eval_arm arm, fl_err *err);
/* Whether two questions stand behind the same rows in this arm. */
int eval_compare_prefix(const eval_state *b, eval_arm arm, size_t i, size_t j);
/* *out = a new sequence with what stands before question i; *n_read: tokens read as text. */
int eval_prefix(fl_seq **out, size_t *n_read, eval_state *b, eval_arm arm, size_t i, fl_err *err);

#endif
