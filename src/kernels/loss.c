/* loss.c - the teacher's top-k and the student's sparse loss.
 *
 * The k best of a row are kept in a heap whose root is the worst of them; a vector scan finds the
 * next value above the root, so a vocabulary of 150,000 costs one pass and a few hundred steps.
 */
#include "kernels/loss.h"

#include <math.h>

#include "kernels/loss_isa.h"
#include "kernels/pointwise.h"
#include "kernels/table.h"

/* True if entry (x, i) ranks below (y, j): smaller, or equal with the higher id. */
static bool below(float x, int32_t i, float y, int32_t j) { return x < y || (x == y && i > j); }

/* Places (x, i) in the heap of n whose root is empty: the worst entry comes to the root. */
static void sift(float *val, int32_t *id, size_t n, float x, int32_t i) {
  size_t at = 0;
  for (size_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && below(val[child + 1], id[child + 1], val[child], id[child])) child++;
    if (below(x, i, val[child], id[child])) break;
    val[at] = val[child];
    id[at] = id[child];
  }
  val[at] = x;
  id[at] = i;
}

/* Leaves the n best of `logits` in val, id, descending. */
static void select_best(const fl_kernels *k, float *val, int32_t *id, size_t n, const float *logits,
                        size_t n_vocab) {
  for (size_t i = 0; i < n; i++) {
    val[i] = -INFINITY;
    id[i] = INT32_MAX; /* no entry: below all */
  }
  for (size_t i = 0; i < n; i++) /* NaN counts as the smallest */
    sift(val, id, n, logits[i] > -INFINITY ? logits[i] : -INFINITY, (int32_t)i);
  size_t at = k->loss->next_above(logits, n, n_vocab, val[0]);
  while (at < n_vocab) { /* an equal one later has the higher id: it loses */
    sift(val, id, n, logits[at], (int32_t)at);
    at = k->loss->next_above(logits, at + 1, n_vocab, val[0]);
  }
  for (size_t last = n; last-- > 1;) { /* the worst goes to the end */
    float x = val[last];
    int32_t i = id[last];
    val[last] = val[0];
    id[last] = id[0];
    sift(val, id, last, x, i);
  }
}

static double log_sum_exp(const fl_kernels *k, const float *logits, size_t n) {
  float top = fl_max(k, logits, n);
  return (double)top + log((double)fl_sum_exp(k, logits, n, top));
}

size_t fl_topk_probs(const fl_kernels *k, int32_t *id, float *prob, const float *logits,
                     size_t n_vocab, size_t top_k, double mass) {
  size_t n = top_k < n_vocab ? (top_k > 0 ? top_k : 1) : n_vocab, kept = 0;
  double lse = log_sum_exp(k, logits, n_vocab), sum = 0;
  select_best(k, prob, id, n, logits, n_vocab);
  do {
    double p = exp((double)prob[kept] - lse);
    prob[kept++] = (float)p;
    sum += p;
  } while (kept < n && sum < mass);
  return kept;
}

double fl_distill_row(const fl_kernels *k, float *dlogits, const float *logits, size_t n_vocab,
                      const fl_target_row *target, float scale) {
  float top = fl_max(k, logits, n_vocab), sum = fl_sum_exp(k, logits, n_vocab, top);
  double lse = (double)top + log((double)sum), loss = 0, kept = 0;
  for (size_t e = 0; e < target->n; e++) {
    double p = target->prob[e];
    loss -= p * ((double)logits[target->id[e]] - lse);
    kept += p;
  }
  fl_exp_scaled(k, dlogits, logits, n_vocab, top, (float)(kept * (double)scale / (double)sum));
  for (size_t e = 0; e < target->n; e++) dlogits[target->id[e]] -= scale * target->prob[e];
  return loss;
}

/* The value in lanes of its own, so that one comparison need not wait for the last; then where. */
int32_t fl_argmax(const float *x, size_t n) {
  enum { LANES = 16 };
  float lane[LANES], best = -INFINITY;
  for (size_t j = 0; j < LANES; j++) lane[j] = -INFINITY;
  size_t whole = n - n % LANES, i = 0;
  for (; i < whole; i += LANES)
    for (size_t j = 0; j < LANES; j++) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
  for (size_t j = 0; j < LANES; j++) best = lane[j] > best ? lane[j] : best;
  for (; i < n; i++) best = x[i] > best ? x[i] : best;
  for (i = 0; i < n; i++)
    if (x[i] == best) return (int32_t)i;
  return 0; /* NaN alone */
}
