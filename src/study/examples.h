/* examples.h - what bot A is told who sees a sentence alone: a dialogue in which others got their
 * question, the sentence last. Small models follow examples where they do not follow rules. Private
 * to the layer. */
#ifndef FL_STUDY_EXAMPLES_H
#define FL_STUDY_EXAMPLES_H

#include "model/model.h"

/* Appends the whole dialogue, opener included; what stands before `shown` is the same for all. */
int fl_examples_render(fl_ids *out, const fl_model *m, const char *shown, fl_err *err);

/* The other way to say it: what bot A is told with the sentence as its document. */
extern const char fl_sentence_instruction[];

#endif
