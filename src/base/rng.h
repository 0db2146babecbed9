/* rng.h - counter-based random numbers: Philox4x32-10 (Salmon et al., SC 2011, "Parallel random
 * numbers: as easy as 1, 2, 3"). A draw is a pure function of its key; there is no state to save
 * and no order of calls. */
#ifndef FL_BASE_RNG_H
#define FL_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

void fl_philox4x32(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);

/* What a draw is for; values are part of the file format (a resumed run must draw the same). */
enum fl_purpose {
  FL_RNG_TARGET = 1,  /* document of a round */
  FL_RNG_CHUNK = 2,   /* chunk length and start */
  FL_RNG_SEED = 3,    /* seed instruction */
  FL_RNG_SAMPLE = 4,  /* bot A's tokens */
  FL_RNG_VISIBLE = 5, /* isolation, number and choice of distractors, order */
  FL_RNG_REPLAY = 6,  /* fresh or kept conversation, and which */
  FL_RNG_INIT = 7,    /* random initialisation of rows */
  FL_RNG_TEST = 8,
  FL_RNG_USER = 9,   /* sampling in ask, chat and serve */
  FL_RNG_THINK = 10, /* whether bot A reasons first */
  FL_RNG_KIND = 11,  /* order of the kinds of conversations */
  FL_RNG_ANCHOR = 12 /* which sentence, and what of it */
};

/* One independent stream: (seed, purpose, document, round, conversation). `index` counts the draws
 * within it and is the only thing that moves. */
typedef struct fl_rng {
  uint64_t seed;
  uint32_t purpose, document, round, conversation;
  uint32_t index;
} fl_rng;

fl_rng fl_rng_stream(uint64_t seed, uint32_t purpose, uint32_t document, uint32_t round,
                     uint32_t conversation);
uint64_t fl_rng_u64(fl_rng *r);
uint64_t fl_rng_below(fl_rng *r, uint64_t n); /* uniform in [0, n), n > 0, unbiased */
double fl_rng_unit(fl_rng *r);                /* uniform in [0, 1), 53 bits */
double fl_rng_normal(fl_rng *r);              /* mean 0, deviation 1 (Box-Muller, two draws) */
void fl_rng_shuffle(fl_rng *r, uint32_t *v, size_t n); /* Fisher-Yates */

#endif
