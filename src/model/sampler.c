/* sampler.c - candidates are (logit, id) pairs, best first. A draw mostly falls among a few of the
 * best, so the list is sorted in slices: those within a factor of 16 of the best weight, then the
 * next factor of 16, only as far as the cuts and the draw ask. */
#include "model/sampler.h"

#include <math.h>
#include <stdbool.h>
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
  candidate *cand;  /* [n_vocab] */
  candidate *spare; /* [n_vocab] for sorting */
  float *adjusted;  /* [n_vocab] logits with biases and penalties */
  float *weight;    /* [n_vocab] exp((logit - best) / temperature) */
};

int fl_sampler_new(fl_sampler **out, const fl_kernels *kern, size_t n_vocab, fl_err *err) {
  fl_sampler *s = fl_calloc(1, sizeof *s);
  if (s != NULL) {
    s->cand = fl_calloc(n_vocab, sizeof *s->cand);
    s->spare = fl_calloc(n_vocab, sizeof *s->spare);
    s->adjusted = fl_aligned_calloc(n_vocab, sizeof *s->adjusted);
    s->weight = fl_aligned_calloc(n_vocab, sizeof *s->weight);
  }
  if (s == NULL || s->cand == NULL || s->spare == NULL || s->adjusted == NULL ||
      s->weight == NULL) {
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
  fl_free(s->spare);
  fl_free(s->adjusted);
  fl_free(s->weight);
  fl_free(s);
}

/* --- biases and penalties --- */

/* Each distinct recent token once: positive logits are divided, negative multiplied (Keskar et al.
 * 2019, CTRL, section 4.1). */
static void penalise_repeats(float *logits, const fl_sampling *p, const int32_t *recent, size_t n) {
  size_t first = p->repeat_last != 0 && n > p->repeat_last ? n - p->repeat_last : 0;
  float f = (float)p->repeat_penalty;
  for (size_t i = first; i < n; i++) {
    size_t j = first;
    while (recent[j] != recent[i]) j++;
    if (j < i) continue;
    logits[recent[i]] = logits[recent[i]] > 0 ? logits[recent[i]] / f : logits[recent[i]] * f;
  }
}

/* logit -= presence + frequency * count, as in OpenAI's interface. Counts stand where weights
 * will. */
static void penalise_counts(fl_sampler *s, float *logits, const fl_sampling *p,
                            const int32_t *recent, size_t n) {
  float *count = s->weight;
  for (size_t i = 0; i < n; i++) count[recent[i]] = 0;
  for (size_t i = 0; i < n; i++) count[recent[i]]++;
  for (size_t i = 0; i < n; i++) {
    float *c = &count[recent[i]];
    if (*c > 0) logits[recent[i]] -= (float)(p->presence + p->frequency * (double)*c);
    *c = 0;
  }
}

static const float *adjust(fl_sampler *s, const float *logits, const fl_sampling *p,
                           const int32_t *recent, size_t n) {
  const bool repeats = p->repeat_penalty != 1 && p->repeat_penalty > 0 && n > 0;
  const bool counts = (p->presence != 0 || p->frequency != 0) && n > 0;
  if (!repeats && !counts && p->n_bias == 0) return logits;
  memcpy(s->adjusted, logits, s->n_vocab * sizeof *logits);
  if (repeats) penalise_repeats(s->adjusted, p, recent, n);
  if (counts) penalise_counts(s, s->adjusted, p, recent, n);
  for (size_t i = 0; i < p->n_bias; i++) s->adjusted[p->bias[i].token] += p->bias[i].bias;
  return s->adjusted;
}

/* --- the list --- */

typedef struct list {
  fl_sampler *s;
  const float *logits;
  size_t n;           /* sorted so far */
  float least;        /* they are those with logits from here on */
  float slice, floor; /* of logits */
} list;

/* Higher logit first, then lower id: a total order. */
static int by_logit(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
  return x->id < y->id ? -1 : x->id > y->id;
}

/* Unsigned numbers in the order of falling logits; the zeros are one. */
static uint32_t falling(float logit) {
  uint32_t u;
  logit += 0.0f;
  memcpy(&u, &logit, sizeof u);
  return u & 0x80000000u ? u : ~u & 0x7fffffffu;
}

/* By digits, least significant first: stable, and the ids are in order. */
static void sort_by_digits(candidate *cand, candidate *spare, size_t n) {
  enum { BITS = 11, VALUES = 1 << BITS, DIGITS = 3 };
  candidate *from = cand, *to = spare;
  for (int d = 0; d < DIGITS; d++) {
    size_t place[VALUES] = { 0 }, sum = 0;
    for (size_t i = 0; i < n; i++) place[falling(from[i].logit) >> d * BITS & (VALUES - 1)]++;
    for (size_t v = 0; v < VALUES; v++) {
      const size_t count = place[v];
      place[v] = sum;
      sum += count;
    }
    for (size_t i = 0; i < n; i++)
      to[place[falling(from[i].logit) >> d * BITS & (VALUES - 1)]++] = from[i];
    candidate *const swap = from;
    from = to;
    to = swap;
  }
  memcpy(cand, from, n * sizeof *cand); /* an odd number of digits leaves it in the spare one */
}

/* A slice, whose ids are in order. */
static void sort(const fl_sampler *s, candidate *cand, size_t n) {
  enum { MANY = 1024 }; /* a flat distribution */
  if (n < MANY) qsort(cand, n, sizeof *cand, by_logit);
  else sort_by_digits(cand, s->spare, n);
}

/* Makes the list longer than n; false when there are no more. Candidates whose weight is under 1e-9
 * of the best one's are left out: they have no part in a draw worth the sorting. */
static bool extend(list *l, size_t n) {
  fl_sampler *s = l->s;
  while (l->n <= n && l->least > l->floor) {
    const float above = l->least;
    const size_t had = l->n;
    l->least = fmaxf(fminf(above - l->slice, nextafterf(above, -INFINITY)), l->floor);
    for (size_t i = 0; i < s->n_vocab; i++)
      if (l->logits[i] >= l->least && l->logits[i] < above)
        s->cand[l->n++] = (candidate){ l->logits[i], (int32_t)i };
    sort(s, s->cand + had, l->n - had);
  }
  return l->n > n;
}

/* Weights of all and their sum; a list that is empty yet. */
static double begin(list *l, fl_sampler *s, const float *logits, double temperature) {
  const double t = temperature > 1e-3 ? temperature : 1e-3;
  const float best = fl_max(s->kern, logits, s->n_vocab), scale = (float)(1 / t);
  double sum = 0;
  for (size_t i = 0; i < s->n_vocab; i++)
    s->weight[i] = fmaxf((logits[i] - best) * scale, -80); /* no smaller than floats can tell */
  fl_exp_scaled(s->kern, s->weight, s->weight, s->n_vocab, 0, 1);
  for (size_t i = 0; i < s->n_vocab; i++) sum += (double)s->weight[i];
  *l = (list){ .s = s,
               .logits = logits,
               .least = nextafterf(best, INFINITY),
               .slice = (float)(2.7726 * t),
               .floor = best - (float)(20.7 * t) };
  return sum;
}

static double weight(const list *l, size_t i) { return (double)l->s->weight[l->s->cand[i].id]; }

/* Cuts the list by top-k, top-p and min-p; at least one stays. Returns its length and the weights'
 * sum. `all`: the sum before the cuts. */
static size_t cut(list *l, const fl_sampling *p, double all, double *sum) {
  double cum = 0;
  size_t most = SIZE_MAX, keep = 0;
  if (p->top_k != 0) {
    (void)extend(l, p->top_k - 1);
    most = p->top_k < l->n ? p->top_k : l->n;
    all = 0;
    for (size_t i = 0; i < most; i++) all += weight(l, i);
  }
  for (; keep < most && extend(l, keep); keep++) {
    double w = weight(l, keep);
    if (keep > 0 && (cum >= p->top_p * all || w < p->min_p)) break;
    cum += w;
  }
  *sum = cum;
  return keep;
}

int32_t fl_sampler_pick(fl_sampler *s, const float *logits, const fl_sampling *p,
                        const int32_t *recent, size_t n_recent, fl_rng *rng) {
  list l;
  double sum, at, cum = 0;
  size_t n = SIZE_MAX, i = 0;
  logits = adjust(s, logits, p, recent, n_recent);
  if (!(p->temperature > 0)) return fl_argmax(logits, s->n_vocab);
  sum = begin(&l, s, logits, p->temperature);
  if (p->top_k != 0 || p->top_p < 1 || p->min_p > 0) n = cut(&l, p, sum, &sum);
  at = fl_rng_unit(rng) * sum;
  for (; i < n && extend(&l, i); i++) {
    cum += weight(&l, i);
    if (at < cum) return s->cand[i].id;
  }
  return i > 0 ? s->cand[i - 1].id : fl_argmax(logits, s->n_vocab); /* rounding, or no number */
}
