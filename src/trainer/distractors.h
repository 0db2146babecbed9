/* distractors.h - which cartridges a conversation sees: one draw per conversation (arXiv
 * 2606.04557, section on mixed visibility; the published code draws once per group). */
#ifndef FL_TRAINER_DISTRACTORS_H
#define FL_TRAINER_DISTRACTORS_H

#include <stddef.h>
#include <stdint.h>

typedef struct fl_distractor_options {
  uint64_t seed;
  double p_iso;        /* probability of seeing the target alone */
  size_t distract_max; /* others beside it otherwise: 1..distract_max */
} fl_distractor_options;

/* parts[0..return value) = positions in 0..n-1 of the visible residents in the order in which they
 * stand in the prefix; the target is always among them. A pure function of (seed, document, round,
 * conversation) and of n, target, and the options. parts has room for n; target < n. */
size_t fl_distractors_draw(const fl_distractor_options *o, uint32_t doc, uint32_t round,
                           uint32_t conv, size_t target, size_t n, uint32_t *parts);

#endif
