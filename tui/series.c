/* series.c - points and their pyramid. */
#include "tui/series.h"

#include <math.h>

#include "base/err.h"
#include "base/mem.h"

/* Points below a bucket of a level; -1 is the level of the points themselves. */
static size_t span_of(int level) {
  size_t span = 1;
  for (int i = -1; i < level; i++) span *= TUI_SERIES_FAN;
  return span;
}

static size_t buckets_of(const tui_series *s, int level) {
  size_t span = span_of(level);
  return (s->n + span - 1) / span;
}

static int reserve(void **p, size_t *cap, size_t need, size_t size) {
  if (need <= *cap) return FL_OK;
  size_t grown = *cap ? *cap + *cap / 2 : 16;
  if (grown < need) grown = need;
  void *q = fl_reallocarray(*p, grown, size);
  if (!q) return FL_ENOMEM;
  *p = q;
  *cap = grown;
  return FL_OK;
}

static void add(tui_bucket *b, tui_point p, size_t n_before) {
  if (n_before == 0) *b = (tui_bucket){ p.x, p.y, p.y, 0 };
  if (p.y < b->min) b->min = p.y;
  if (p.y > b->max) b->max = p.y;
  b->mean += (p.y - b->mean) / (float)(n_before + 1);
}

int tui_series_push(tui_series *s, uint32_t x, double y) {
  if (!isfinite(y) || fabs(y) > 1e30) return FL_OK;
  if (s->n && s->point[s->n - 1].x >= x) {
    if (x == 0) tui_series_reset(s);
    else tui_series_truncate(s, x - 1);
  }
  void *pt = s->point;
  if (reserve(&pt, &s->cap, s->n + 1, sizeof *s->point) != FL_OK) return FL_ENOMEM;
  s->point = pt;
  for (int l = 0; l < TUI_SERIES_LEVELS; l++) {
    void *b = s->level[l].bucket;
    size_t need = s->n / span_of(l) + 1;
    if (reserve(&b, &s->level[l].cap, need, sizeof(tui_bucket)) != FL_OK) return FL_ENOMEM;
    s->level[l].bucket = b;
  }
  tui_point p = { x, (float)y };
  for (int l = 0; l < TUI_SERIES_LEVELS; l++) {
    size_t span = span_of(l);
    add(&s->level[l].bucket[s->n / span], p, s->n % span);
  }
  s->point[s->n++] = p;
  return FL_OK;
}

/* Number of points with x <= last. */
static size_t count_to(const tui_series *s, double last) {
  size_t lo = 0, hi = s->n;
  while (lo < hi) {
    size_t mid = lo + (hi - lo) / 2;
    if (s->point[mid].x <= last) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/* A point or a bucket as a bucket. */
static tui_bucket item(const tui_series *s, int level, size_t i) {
  if (level >= 0) return s->level[level].bucket[i];
  tui_point p = s->point[i];
  return (tui_bucket){ p.x, p.y, p.y, p.y };
}

/* Sums up the last bucket of a level anew from the level below. */
static void rebuild_last(tui_series *s, int level) {
  size_t below = span_of(level - 1), first = s->n / span_of(level) * span_of(level);
  tui_bucket *b = &s->level[level].bucket[first / span_of(level)];
  size_t done = 0;
  for (size_t at = first; at < s->n; at += below) {
    tui_bucket part = item(s, level - 1, at / below);
    size_t n = s->n - at < below ? s->n - at : below;
    if (done == 0) *b = (tui_bucket){ part.x0, part.min, part.max, 0 };
    if (part.min < b->min) b->min = part.min;
    if (part.max > b->max) b->max = part.max;
    done += n;
    b->mean += (part.mean - b->mean) * (float)n / (float)done;
  }
}

void tui_series_truncate(tui_series *s, uint32_t last) {
  size_t n = count_to(s, last);
  if (n == s->n) return;
  s->n = n;
  for (int l = 0; l < TUI_SERIES_LEVELS; l++)
    if (n % span_of(l)) rebuild_last(s, l);
}

void tui_series_reset(tui_series *s) { s->n = 0; }

void tui_series_release(tui_series *s) {
  fl_free(s->point);
  for (int l = 0; l < TUI_SERIES_LEVELS; l++) fl_free(s->level[l].bucket);
  *s = (tui_series){ 0 };
}

double tui_series_at(const tui_series *s, uint32_t at) {
  size_t n = count_to(s, at);
  return n ? (double)s->point[n - 1].y : NAN;
}

static size_t items_of(const tui_series *s, int level) {
  return level < 0 ? s->n : buckets_of(s, level);
}

/* The exponential mean as a running sum of weights and of weighted values, so that the first
 * points count in full (no bias towards a start value). */
typedef struct ema {
  double keep; /* weight left after one point */
  double sum, weight;
} ema;

static void ema_add(ema *e, double y, size_t n) {
  double keep = pow(e->keep, (double)n);
  e->sum = e->sum * keep + y * (1 - keep);
  e->weight = e->weight * keep + (1 - keep);
}

static void column_add(tui_column *c, const tui_bucket *b, size_t n) {
  if (c->n == 0) *c = (tui_column){ b->min, b->max, 0, c->smooth, 0 };
  if (b->min < c->min) c->min = b->min;
  if (b->max > c->max) c->max = b->max;
  c->n += n;
  c->mean += (b->mean - c->mean) * (float)n / (float)c->n;
}

void tui_series_columns(const tui_series *s, double x0, double x1, double half_life,
                        tui_column *col, size_t n_cols) {
  for (size_t i = 0; i < n_cols; i++) col[i] = (tui_column){ NAN, NAN, NAN, NAN, 0 };
  if (n_cols == 0 || s->n == 0 || !(x1 > x0)) return;
  size_t first = count_to(s, x0 - 1), end = count_to(s, x1 - 1);
  size_t lead = half_life > 0 ? (size_t)fmin(10 * half_life, (double)first) : 0;
  /* the coarsest level that still gives a column several items */
  int level = -1;
  while (level + 1 < TUI_SERIES_LEVELS && (end - first) / span_of(level + 1) >= 4 * n_cols) level++;
  size_t span = span_of(level);
  ema e = { .keep = half_life > 0 ? exp2(-1 / half_life) : 0 };
  for (size_t i = (first - lead) / span; i < items_of(s, level) && i * span < end; i++) {
    tui_bucket b = item(s, level, i);
    size_t n = (i + 1) * span <= s->n ? span : s->n - i * span;
    if (half_life > 0) ema_add(&e, (double)b.mean, n);
    double at = ((double)b.x0 - x0) * (double)n_cols / (x1 - x0);
    if (at < 0 || at >= (double)n_cols) continue;
    tui_column *c = &col[(size_t)at];
    column_add(c, &b, n);
    c->smooth = half_life > 0 ? (float)(e.sum / e.weight) : c->mean;
  }
}

/* Points two by two become one. */
static void halve(tui_series *s) {
  size_t n = s->n / 2;
  tui_series_reset(s); /* the points lie where they lay; each is read before its place is written */
  for (size_t i = 0; i < n; i++) {
    tui_point a = s->point[2 * i], b = s->point[2 * i + 1];
    tui_series_push(s, b.x, ((double)a.y + (double)b.y) / 2);
  }
}

int tui_thin_push(tui_thin *t, uint32_t x, double y) {
  size_t stride = t->stride ? t->stride : 1;
  if (!isfinite(y) || fabs(y) > 1e30) return FL_OK;
  if (t->s.n && t->s.point[t->s.n - 1].x >= x) t->n = 0, t->sum = 0;
  if (t->n + 1 < stride) {
    t->sum += y;
    t->n++;
    return FL_OK;
  }
  int rc = tui_series_push(&t->s, x, (t->sum + y) / (double)stride);
  if (rc != FL_OK) return rc;
  t->n = 0;
  t->sum = 0;
  if (t->s.n < TUI_THIN_POINTS) return FL_OK;
  halve(&t->s);
  t->stride = 2 * stride;
  return FL_OK;
}

void tui_thin_truncate(tui_thin *t, uint32_t last) {
  tui_series_truncate(&t->s, last);
  t->n = 0;
  t->sum = 0;
}
