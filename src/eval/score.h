/* score.h - how likely given texts are behind given rows (teacher forcing). */
#ifndef FL_EVAL_SCORE_H
#define FL_EVAL_SCORE_H

#include "base/buf.h"
#include "model/pass.h"

/* tokens = prompt, then what is weighed. */
typedef struct eval_item {
  const fl_seq *prefix; /* what stands before, left as it is */
  fl_ids tokens;        /* owned */
  size_t n_prompt;      /* >= 1 */
  double nll;           /* result: sum of -log p over tokens[n_prompt..), nats */
} eval_item;
void eval_items_release(eval_item *item, size_t n);

/* Weighs n items, packed into passes of pass_max_rows rows; what one gets does not depend on the
 * others. Every item needs something behind its prompt. pass: not recording. */
int eval_weigh(fl_pass *pass, eval_item *item, size_t n, size_t max_spans, size_t max_out_rows,
               fl_err *err);

/* -log softmax(logits)[id], nats; sums in double, index ascending. */
double eval_nll(const float *logits, size_t n_vocab, int32_t id);

#endif
