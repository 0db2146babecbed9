/* sampler.c - candidates are kept as (logit, id) pairs, sorted only as far as needed. */
#include "model/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/loss.h"
#include "kernels/pointwise.h"

typedef struct candidate {
  float logit;
  int32_t id;
} candidate;

struct fl_sampler {
  const fl_kernels *kern;
  size_t n_vocab;
  candidate *cand; /* [n_vocab] */
  float *penalised; /* [n_vocab] */
};

int fl_sampler_new(fl_sampler **out, const fl_kernels *kern, size_t n_vocab, fl_err *err) {
  fl_sampler *s = fl_calloc(1, sizeof *s);
  if (s != NULL) {
    s->cand = fl_calloc(n_vocab, sizeof *s->cand);
    s->penalised = fl_aligned_calloc(n_vocab, sizeof *s->penalised);
  }
  if (s == NULL || s->cand == NULL || s->penalised == NULL) {
    fl_sampler_free(s);
    return fl_fail(err, FL_ENOMEM, "out of memory");
  }
  s->kern = kern;
  s->n_vocab = n_vocab;
  *out = s;
  return FL_OK;
}

void fl_sampler_free(fl_sampler *s) {
  if (s == NULL) return;
  fl_free(s->cand);
  fl_free(s->penalised);
  fl_free(s);
}

/* Each distinct recent token once: positive logits are divided, negative multiplied (Keskar et al.
 * 2019, CTRL, section 4.1). */
static void penalise(float *logits, const fl_sampling *p, const int32_t *recent, size_t n) {
  size_t first = p->repeat_last != 0 && n > p->repeat_last ? n - p->repeat_last : 0;
  float f = (float)p->repeat_penalty;
  for (size_t i = first; i < n; i++) {
    size_t j = first;
    while (recent[j] != recent[i]) j++;
    if (j < i) continue;
    logits[recent[i]] = logits[recent[i]] > 0 ? logits[recent[i]] / f : logits[recent[i]] * f;
  }
}

/* Higher logit first, then lower id: a total order. */
static int by_logit(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
  return x->id < y->id ? -1 : x->id > y->id;
}

/* The candidates that can matter, best first. Without top-k those whose probability is under 1e-9
 * of the best one's are left out: they have no part in a draw of 53 bits worth the sorting. */
static size_t candidates(fl_sampler *s, const float *logits, const fl_sampling *p) {
  float best = fl_max(s->kern, logits, s->n_vocab);
  float least = best - (float)(20.7 * (p->temperature > 1e-3 ? p->temperature : 1e-3));
  size_t n = 0;
  for (size_t i = 0; i < s->n_vocab; i++)
    if (logits[i] >= least) s->cand[n++] = (candidate){ logits[i], (int32_t)i };
  qsort(s->cand, n, sizeof *s->cand, by_logit);
  return p->top_k != 0 && p->top_k < n ? p->top_k : n;
}

static double weight(const fl_sampler *s, const fl_sampling *p, size_t i) {
  return exp(((double)s->cand[i].logit - (double)s->cand[0].logit) / p->temperature);
}

/* Cuts the list by top-p and min-p; at least one stays. Returns its length and the weights' sum. */
static size_t truncate_list(const fl_sampler *s, const fl_sampling *p, size_t n, double *sum) {
  double all = 0, cum = 0;
  size_t keep = 0;
  for (size_t i = 0; i < n; i++) all += weight(s, p, i);
  for (; keep < n; keep++) {
    double w = weight(s, p, keep);
    if (keep > 0 && (cum >= p->top_p * all || w < p->min_p)) break;
    cum += w;
  }
  *sum = cum;
  return keep;
}

int32_t fl_sampler_pick(fl_sampler *s, const float *logits, const fl_sampling *p, const int32_t *recent,
                        size_t n_recent, fl_rng *rng) {
  double sum, at, cum = 0;
  size_t n;
  if (p->repeat_penalty != 1 && p->repeat_penalty > 0 && n_recent > 0) {
    memcpy(s->penalised, logits, s->n_vocab * sizeof *logits);
    penalise(s->penalised, p, recent, n_recent);
    logits = s->penalised;
  }
  if (!(p->temperature > 0)) return fl_argmax(logits, s->n_vocab);
  n = candidates(s, logits, p);
  n = truncate_list(s, p, n, &sum);
  at = fl_rng_unit(rng) * sum;
  for (size_t i = 0; i < n; i++) {
    cum += weight(s, p, i);
    if (at < cum) return s->cand[i].id;
  }
  return s->cand[n - 1].id;
}
