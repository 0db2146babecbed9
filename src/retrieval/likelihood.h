/* likelihood.h - how likely the model holds a question behind a text: what a passage that answers
 * it makes likelier. */
#ifndef FL_RETRIEVAL_LIKELIHOOD_H
#define FL_RETRIEVAL_LIKELIHOOD_H

#include "fleet/fleet.h"

/* Stands between the text and the question. */
#define FL_LIKELIHOOD_REQUEST "\n\nA question that the text above answers: "

/* *out = the sum of the question's log-probabilities behind the text (natural logarithm), of its
 * first FL_LIKELIHOOD_TOKENS tokens. A text that does not fit is cut at its end. */
enum { FL_LIKELIHOOD_TOKENS = 128, FL_LIKELIHOOD_TEXT = 2048 /* bytes */ };
int fl_likelihood(double *out, fl_fleet *f, const char *text, size_t text_len, const char *question,
                  size_t len, fl_err *err);

#endif
