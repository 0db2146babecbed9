/* sampler.h - from logits to a token. Order: biases and penalties, temperature, top-k, top-p,
 * min-p, one draw. Temperature 0 is greedy (ties: lowest id). A draw consumes exactly one number of
 * the stream per committed token. */
#ifndef FL_MODEL_SAMPLER_H
#define FL_MODEL_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rng.h"
#include "kernels/kernels.h"

typedef struct fl_logit_bias {
  int32_t token; /* in [0, n_vocab) */
  float bias;    /* added to its logit */
} fl_logit_bias;

typedef struct fl_sampling {
  double temperature;        /* 0: greedy */
  size_t top_k;              /* 0: off */
  double top_p;              /* 1: off */
  double min_p;              /* 0: off */
  double repeat_penalty;     /* 1: off; applied to the last `repeat_last` tokens */
  size_t repeat_last;        /* 0: all */
  double presence;           /* taken from the logit of each token that the answer has; 0: off */
  double frequency;          /* the same, times how often it has it */
  const fl_logit_bias *bias; /* [n_bias], borrowed */
  size_t n_bias;
} fl_sampling;

#define FL_SAMPLING_GREEDY ((fl_sampling){ .temperature = 0, .top_p = 1, .repeat_penalty = 1 })

typedef struct fl_sampler fl_sampler; /* scratch for one vocabulary; not shared between threads */
int fl_sampler_new(fl_sampler **out, const fl_kernels *kern, size_t n_vocab, fl_err *err);
void fl_sampler_free(fl_sampler *s);
/* logits [n_vocab]. recent[n_recent]: the answer's tokens so far, for the penalties. */
int32_t fl_sampler_pick(fl_sampler *s, const float *logits, const fl_sampling *p,
                        const int32_t *recent, size_t n_recent, fl_rng *rng);

#endif
