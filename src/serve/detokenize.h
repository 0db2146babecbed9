/* detokenize.h - from tokens to pieces of text that may be shown.
 *
 * What goes out is whole UTF-8 (bytes that are none become U+FFFD), never reaches into a stop
 * string, and never is the beginning of one that the next token may complete. A token's log
 * probability goes out with the piece that holds its last byte.
 */
#ifndef FL_SERVE_DETOKENIZE_H
#define FL_SERVE_DETOKENIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "serve/job_event.h"
#include "text/tokenizer.h"

typedef struct fl_pending_token fl_pending_token;

typedef struct fl_detokenizer {
  const fl_tokenizer *tok;
  bool special; /* control tokens show as text */
  bool logprobs;
  size_t n_top;
  char **stop; /* borrowed */
  size_t n_stop;
  fl_buf raw;              /* bytes that do not make a character yet */
  fl_buf text;             /* checked text, all of it */
  size_t sent;             /* bytes of it that went out */
  fl_pending_token *token; /* logprobs: tokens that did not go out */
  size_t n_tokens, cap;
  fl_job_token *top; /* [cap * n_top] alternatives of them */
} fl_detokenizer;

void fl_detokenizer_init(fl_detokenizer *d, const fl_tokenizer *tok, bool special, char **stop,
                         size_t n_stop, bool logprobs, size_t n_top);
void fl_detokenizer_release(fl_detokenizer *d);

/* Takes a token; logits [n_vocab] of the row that decided it (NULL without logprobs). *stopped =
 * index of the stop string that is complete now, -1: none. FL_ENOMEM. */
int fl_detokenizer_token(fl_detokenizer *d, int32_t token, const float *logits, size_t n_vocab,
                         int *stopped);
/* Appends the next piece, of text and tokens, to *out; there may be nothing to show. `last`:
 * nothing is held back any more. FL_ENOMEM: part of it may be in *out. */
int fl_detokenizer_piece(fl_detokenizer *d, bool last, fl_job_event *out);
/* All text that was or will be shown. */
const char *fl_detokenizer_text(const fl_detokenizer *d, size_t *len);

#endif
