/* loss.h - sparse distillation loss over a vocabulary (the teacher's top k, not renormalised).
 *
 *   loss_r = sum over kept entries of -p_e * (logit[id_e] - lse(logit row))
 *   dlogit = scale * (P * softmax - p at kept ids),  P = sum of the row's kept p
 */
#ifndef FL_KERNELS_LOSS_H
#define FL_KERNELS_LOSS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

/* Teacher entries of one row. */
typedef struct fl_target_row {
  const int32_t *id; /* in [0, n_vocab), which the reader of a study file has checked */
  const float *prob;
  size_t n; /* >= 1 */
} fl_target_row;

/* Picks the top-k probabilities of a logits row up to `mass` (the entry that crosses it is kept),
 * descending, ties by lower id: id[], prob[] have room for k; returns the number kept (>= 1).
 * Probabilities are exp(logit - lse) of the whole row, not renormalised. NaN ranks last. */
size_t fl_topk_probs(const fl_kernels *k, int32_t *id, float *prob, const float *logits,
                     size_t n_vocab, size_t top_k, double mass);

/* Returns the row's loss; writes dlogits = scale * gradient (may be the logits buffer itself). */
double fl_distill_row(const fl_kernels *k, float *dlogits, const float *logits, size_t n_vocab,
                      const fl_target_row *target, float scale);

/* arg max, ties by lower id; NaN is never it, unless there is nothing else (then 0). */
int32_t fl_argmax(const float *x, size_t n);

#endif
