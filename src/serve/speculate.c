/* speculate.c - the suffix index by chains of token pairs; the arithmetic of the gate. */
#include "serve/speculate.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

enum {
  CHAIN = 64, /* positions compared for one draft */
  FIRST_BITS = 8,
  PROBE = 2, /* tokens of a probe */
  PAUSE_MIN = 32,
  PAUSE_MAX = 1024 /* chances between probes */
};

/* --- the index --- */

static uint32_t slot_of(const fl_suffix *s, int32_t a, int32_t b) {
  uint64_t x = ((uint64_t)(uint32_t)a << 32 | (uint32_t)b) * UINT64_C(0x9E3779B97F4A7C15);
  return (uint32_t)(x >> (64 - s->bits));
}

/* Position i ends the pair (i - 1, i). */
static void link_pair(fl_suffix *s, size_t i) {
  if (i == 0 || s->ids.data[i] < 0 || s->ids.data[i - 1] < 0) return;
  uint32_t at = slot_of(s, s->ids.data[i - 1], s->ids.data[i]);
  s->prev[i] = s->head[at];
  s->head[at] = (uint32_t)i + 1;
}

/* Room for n tokens in all; the table keeps as many places as tokens. */
static int make_room(fl_suffix *s, size_t n) {
  size_t cap = s->cap > 0 ? s->cap : (size_t)1 << FIRST_BITS;
  unsigned bits = s->bits > 0 ? s->bits : FIRST_BITS;
  if (n <= s->cap) return FL_OK;
  if (n >= UINT32_MAX / 2) return FL_ENOMEM;
  while (cap < n) {
    cap *= 2;
    bits++;
  }
  uint32_t *prev = fl_reallocarray(s->prev, cap, sizeof *prev);
  if (prev == NULL) return FL_ENOMEM;
  s->prev = prev;
  uint32_t *head = fl_calloc((size_t)1 << bits, sizeof *head);
  if (head == NULL) return FL_ENOMEM;
  fl_free(s->head);
  s->head = head;
  s->bits = bits;
  s->cap = cap;
  for (size_t i = 1; i < s->ids.len; i++) link_pair(s, i);
  return FL_OK;
}

int fl_suffix_append(fl_suffix *s, const int32_t *ids, size_t n) {
  size_t had = s->ids.len;
  if (n == 0) return FL_OK;
  int rc = make_room(s, had + n);
  if (rc != FL_OK) return rc;
  fl_ids_append(&s->ids, ids, n);
  if (s->ids.oom) {
    s->ids.oom = false;
    return FL_ENOMEM;
  }
  for (size_t i = had; i < had + n; i++) link_pair(s, i);
  return FL_OK;
}

int fl_suffix_reserve(fl_suffix *s, size_t n) {
  if (make_room(s, n) == FL_OK)
    for (size_t i = 0; i < s->cap; i++) fl_ids_push(&s->ids, -1);
  if (s->cap < n || s->ids.oom) {
    fl_suffix_release(s);
    return FL_ENOMEM;
  }
  memset(s->prev, 0, s->cap * sizeof *s->prev);
  fl_suffix_reset(s);
  return FL_OK;
}

void fl_suffix_reset(fl_suffix *s) {
  fl_ids_reset(&s->ids);
  if (s->head != NULL) memset(s->head, 0, ((size_t)1 << s->bits) * sizeof *s->head);
}

void fl_suffix_release(fl_suffix *s) {
  fl_ids_release(&s->ids);
  fl_free(s->head);
  fl_free(s->prev);
  *s = (fl_suffix){ 0 };
}

static size_t agreement(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b) {
  size_t most = n_a < n_b ? n_a : n_b, n = 0;
  if (most > FL_MATCH_MAX) most = FL_MATCH_MAX;
  while (n < most && a[n_a - 1 - n] == b[n_b - 1 - n] && a[n_a - 1 - n] >= 0) n++;
  return n;
}

size_t fl_suffix_match(const fl_suffix *s, const int32_t *tail, size_t n, size_t *next) {
  size_t best = 0;
  if (n < FL_MATCH_MIN || s->ids.len == 0 || tail[n - 1] < 0 || tail[n - 2] < 0) return 0;
  uint32_t at = s->head[slot_of(s, tail[n - 2], tail[n - 1])];
  for (int k = 0; at != 0 && k < CHAIN; k++, at = s->prev[at - 1]) {
    if (at >= s->ids.len || s->ids.data[at] < 0) continue; /* nothing follows there */
    size_t m = agreement(s->ids.data, at, tail, n);
    if (m < FL_MATCH_MIN || m <= best) continue;
    best = m;
    *next = at;
    if (m == FL_MATCH_MAX) break;
  }
  return best;
}

void fl_draft_make(fl_draft *d, const fl_suffix *const *source, size_t n_sources,
                   const int32_t *tail, size_t n_tail, size_t max) {
  const fl_suffix *from = NULL;
  size_t at = 0;
  d->n = d->match = 0;
  for (size_t i = 0; i < n_sources; i++) {
    size_t next = 0, m = source[i] != NULL ? fl_suffix_match(source[i], tail, n_tail, &next) : 0;
    if (m <= d->match) continue;
    d->match = m;
    from = source[i];
    at = next;
  }
  if (max > FL_DRAFT_MAX) max = FL_DRAFT_MAX;
  if (max > 2 * (1 + d->match)) max = 2 * (1 + d->match);
  if (from == NULL) return;
  while (d->n < max && at < from->ids.len && from->ids.data[at] >= 0)
    d->token[d->n++] = from->ids.data[at++];
}

/* --- costs --- */

/* A faster step counts at once, a slower one little by little: it is mostly other work that makes a
 * step slow. */
void fl_cost_learn(fl_cost *c, size_t rows, double seconds) {
  if (rows == 0 || rows > FL_COST_ROWS || !(seconds > 0)) return;
  float *t = &c->seconds[rows], x = (float)seconds;
  if (c->n[rows] < FL_COST_SURE) { /* the fastest of the first */
    *t = c->n[rows]++ > 0 && *t < x ? *t : x;
    return;
  }
  if (*t > 0 && x > 4 * *t) x = 4 * *t;
  *t = *t > 0 ? *t + (x < *t ? 0.5f : 0.05f) * (x - *t) : x;
}

/* Before anything is measured: reading the weights costs as much as some rows. */
static double guess(size_t rows) { return 8 + (double)rows; }

/* Interpolated from the nearest numbers of rows that were measured at least `sure` times; negative:
 * there are none. */
static double between(const fl_cost *c, size_t rows, size_t sure) {
  size_t low = rows, high = rows;
  while (low > 0 && c->n[low] < sure) low--;
  while (high <= FL_COST_ROWS && c->n[high] < sure) high++;
  if (low == 0 && high > FL_COST_ROWS) return -1;
  if (low == 0) return (double)c->seconds[high] * guess(rows) / guess(high);
  double a = (double)c->seconds[low];
  if (low == high) return a;
  if (high > FL_COST_ROWS) return a * guess(rows) / guess(low);
  double b = (double)c->seconds[high];
  return a + (b - a) * (double)(rows - low) / (double)(high - low);
}

double fl_cost_of(const fl_cost *c, size_t rows) {
  if (rows > FL_COST_ROWS) rows = FL_COST_ROWS;
  double x = between(c, rows, FL_COST_SURE);
  if (x < 0) x = between(c, rows, 1);
  if (x < 0) return guess(rows);
  return c->n[rows] > 0 ? fmin(x, (double)c->seconds[rows]) : x;
}

/* --- the gate --- */

static size_t class_of(size_t match) { return match < 4 ? 0 : match < 8 ? 1 : 2; }

void fl_gate_init(fl_gate *g) {
  *g = (fl_gate){ .hit = { 0.4, 0.6, 0.8 }, .pause = { PAUSE_MIN, PAUSE_MIN, PAUSE_MIN } };
}

size_t fl_gate_length(fl_gate *g, const fl_cost *c, size_t match, size_t rows, size_t jobs,
                      size_t max) {
  size_t k = class_of(match), best = 0;
  double expected = 0, p = 1, gain = 1.02 * (double)jobs / fl_cost_of(c, rows);
  if (max == 0) return 0;
  for (size_t d = 1; d <= max; d++) {
    p *= g->hit[k];
    expected += p;
    double rate = ((double)jobs + expected) / fl_cost_of(c, rows + d);
    if (rate <= gain) continue;
    gain = rate;
    best = d;
  }
  if (best > 0) return best;
  /* Where more rows cost so much that even a right draft gains little, none is tried. */
  if (max > PROBE) max = PROBE;
  const double probed = (double)(jobs + max) / fl_cost_of(c, rows + max);
  if (probed < 1.2 * (double)jobs / fl_cost_of(c, rows)) return 0;
  if (g->wait[k] == 0) g->wait[k] = g->pause[k];
  if (--g->wait[k] > 0) return 0;
  return max;
}

void fl_gate_learn(fl_gate *g, size_t match, size_t drafted, size_t accepted) {
  size_t k = class_of(match);
  if (drafted == 0) return;
  for (size_t i = 0; i < accepted; i++) g->hit[k] += 0.1 * (1 - g->hit[k]);
  if (accepted < drafted) g->hit[k] -= 0.2 * g->hit[k];
  if (accepted > 0) g->pause[k] = PAUSE_MIN;
  else if (g->pause[k] < PAUSE_MAX) g->pause[k] *= 2;
}
