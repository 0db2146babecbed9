/* retell.h - conversations that have a document repeated, without a model that makes them: the
 * user asks for what stands behind some words of it, and the answer is the text itself. */
#ifndef FL_STUDY_RETELL_H
#define FL_STUDY_RETELL_H

#include "study/study.h"
#include "text/chat.h"

typedef struct fl_retell_options {
  size_t piece;      /* tokens of the text that an answer repeats, at most; >= 1 */
  size_t max_pieces; /* of a text that has more, evenly spaced ones; >= 1 */
} fl_retell_options;

typedef struct fl_retold { /* owned by the caller */
  fl_ids *conv;            /* [n] user's turn, opener, answer, end of turn */
  size_t n;
} fl_retold;
void fl_retold_release(fl_retold *r);

/* The user's turns are those that follow a wrapped document (after_system). A document without
 * tokens has one conversation, whose answer is empty. */
int fl_retell(fl_retold *out, const fl_doc_text *doc, const fl_tokenizer *t, fl_template tpl,
              const fl_retell_options *o, fl_err *err);

#endif
