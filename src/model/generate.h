/* generate.h - lockstep generation of several streams in one batch; finished ones leave it.
 *
 * Each stream has its own sequence (usually forks that share a prefix), sampling and random stream.
 * By the row rule a stream gives the same tokens alone and in any company.
 */
#ifndef FL_MODEL_GENERATE_H
#define FL_MODEL_GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/pass.h"
#include "model/sampler.h"

typedef enum fl_stop { FL_STOP_NONE, FL_STOP_END, FL_STOP_LENGTH, FL_STOP_CALLER } fl_stop;

typedef struct fl_stream {
  fl_seq *seq;           /* grows by prompt and output; borrowed */
  const int32_t *prompt; /* tokens to run first (at least one) */
  size_t n_prompt;
  fl_sampling sampling;
  fl_rng rng;
  size_t max_new;
  /* Results. The end token that stopped it is not in `out` (but its row decided). */
  fl_ids out; /* released by the caller */
  fl_stop stop;
  int32_t stop_token; /* with FL_STOP_END */
} fl_stream;

typedef struct fl_generate_hooks {
  void *ctx;
  /* Sees each row that decides a token, as the model gave it: logits [n_vocab] of stream i, the
   * token taken, its index in the answer (0..; the stopping end token included). May be NULL. */
  void (*on_row)(void *ctx, size_t i, size_t index, const float *logits, int32_t token);
  /* After a token was committed; returning true ends the stream (FL_STOP_CALLER). May be NULL. */
  bool (*on_token)(void *ctx, size_t i, int32_t token);
  /* Polled once a step; true: everything stops, FL_EINTR. May be NULL. */
  bool (*cancelled)(void *ctx);
} fl_generate_hooks;

/* Prompts are run (packed into slices of the pass's max_rows), then tokens are decoded together
 * until every stream stopped. Stops at the model's template end and at end-of-generation ids; a
 * full context ends a stream as max_new does (a prompt that does not fit is an error). The last
 * committed token of a stream may not be in its sequence (it needs no row). The pass needs
 * max_spans >= n; hooks may be NULL. */
int fl_generate(fl_pass *p, fl_stream *streams, size_t n, const fl_generate_hooks *hooks,
                fl_err *err);
void fl_streams_release(fl_stream *streams, size_t n); /* the `out` arrays */

#endif
