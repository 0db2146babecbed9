/* rotate.c - see rotate.h. Selection by repeated scans: budgets and document counts are small, and
 * the order of equal documents is then plain to see. */
#include "trainer/rotate.h"

#include <math.h>

typedef enum state { ABSENT, RESIDENT, LEAVING } state;

typedef struct pick { /* how full memory is while choosing */
  size_t n;
  uint64_t bytes;
} pick;

static state state_of(const fl_rot_doc *d, const size_t *leaving, size_t n_leaving, size_t i) {
  for (size_t k = 0; k < n_leaving; k++)
    if (leaving[k] == i) return LEAVING;
  return d[i].resident ? RESIDENT : ABSENT;
}

static bool contains(const size_t *v, size_t n, size_t x) {
  for (size_t i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

static bool fits(const pick *p, const fl_rot_limits *l, uint64_t bytes) {
  if (p->n >= l->budget) return false;
  if (l->budget_bytes == 0 || p->n == 0) return true;
  return bytes <= l->budget_bytes && p->bytes <= l->budget_bytes - bytes;
}

/* a comes before b: marked first, then fewer steps, then the lower id. */
static bool comes_before(const fl_rot_doc *a, const fl_rot_doc *b) {
  if (a->marked != b->marked) return a->marked;
  if (a->steps != b->steps) return a->steps < b->steps;
  return a->id < b->id;
}

/* a leaves before b: unmarked first, then more steps, then the lower id. */
static bool leaves_before(const fl_rot_doc *a, const fl_rot_doc *b) {
  if (a->marked != b->marked) return b->marked;
  if (a->steps != b->steps) return a->steps > b->steps;
  return a->id < b->id;
}

/* Adds documents of `from` to in[] while they fit, best first. */
static void fill_from(const fl_rot_doc *d, size_t n, const fl_rot_limits *l, state from,
                      const size_t *leaving, size_t n_leaving, pick *p, size_t *in, size_t *n_in) {
  for (;;) {
    size_t best = n;
    for (size_t i = 0; i < n; i++) {
      if (state_of(d, leaving, n_leaving, i) != from || contains(in, *n_in, i)) continue;
      if (!fits(p, l, d[i].bytes)) continue;
      if (best == n || comes_before(&d[i], &d[best])) best = i;
    }
    if (best == n) return;
    in[(*n_in)++] = best;
    p->n++;
    p->bytes += d[best].bytes;
  }
}

static void sort_positions(size_t *v, size_t n) {
  for (size_t i = 1; i < n; i++)
    for (size_t j = i; j > 0 && v[j] < v[j - 1]; j--) {
      size_t t = v[j];
      v[j] = v[j - 1];
      v[j - 1] = t;
    }
}

static pick residents(const fl_rot_doc *d, size_t n) {
  pick p = { 0 };
  for (size_t i = 0; i < n; i++) {
    if (!d[i].resident) continue;
    p.n++;
    p.bytes += d[i].bytes;
  }
  return p;
}

void fl_rotate_fill(const fl_rot_doc *d, size_t n, const fl_rot_limits *l, size_t *in,
                    size_t *n_in) {
  pick p = residents(d, n);
  *n_in = 0;
  fill_from(d, n, l, ABSENT, NULL, 0, &p, in, n_in);
  sort_positions(in, *n_in);
}

static size_t choose_leaving(const fl_rot_doc *d, size_t n, size_t want, size_t *leaving) {
  size_t n_leaving = 0;
  while (n_leaving < want) {
    size_t best = n;
    for (size_t i = 0; i < n; i++) {
      if (!d[i].resident || contains(leaving, n_leaving, i)) continue;
      if (best == n || leaves_before(&d[i], &d[best])) best = i;
    }
    if (best == n) break;
    leaving[n_leaving++] = best;
  }
  return n_leaving;
}

void fl_rotate_trim(const fl_rot_doc *d, size_t n, const fl_rot_limits *l, size_t *out,
                    size_t *n_out) {
  const pick p = residents(d, n);
  const size_t all = choose_leaving(d, n, p.n, out); /* everybody, in the order of leaving */
  uint64_t bytes = p.bytes;
  size_t k = 0;
  while (p.n - k > 1 && (p.n - k > l->budget || (l->budget_bytes > 0 && bytes > l->budget_bytes)))
    bytes -= d[out[k++]].bytes;
  *n_out = k < all ? k : all;
  sort_positions(out, *n_out);
}

/* Drops what stands in both lists. */
static void cancel_common(size_t *a, size_t *n_a, size_t *b, size_t *n_b) {
  size_t keep = 0;
  for (size_t i = 0; i < *n_a; i++) {
    size_t j = 0;
    while (j < *n_b && b[j] != a[i]) j++;
    if (j == *n_b) {
      a[keep++] = a[i];
      continue;
    }
    for (size_t k = j + 1; k < *n_b; k++) b[k - 1] = b[k];
    (*n_b)--;
  }
  *n_a = keep;
}

void fl_rotate(const fl_rot_doc *d, size_t n, const fl_rot_limits *l, double evict_frac,
               size_t *out, size_t *n_out, size_t *in, size_t *n_in) {
  pick p = residents(d, n);
  *n_out = *n_in = 0;
  if (p.n == 0 || p.n == n) return; /* nobody to change places with */
  size_t want = (size_t)ceil(evict_frac * (double)p.n);
  if (want < 1) want = 1;
  *n_out = choose_leaving(d, n, want, out);
  for (size_t i = 0; i < *n_out; i++) {
    p.n--;
    p.bytes -= d[out[i]].bytes;
  }
  fill_from(d, n, l, ABSENT, out, *n_out, &p, in, n_in);
  fill_from(d, n, l, LEAVING, out, *n_out, &p, in, n_in);
  cancel_common(out, n_out, in, n_in);
  sort_positions(out, *n_out);
  sort_positions(in, *n_in);
}

/* (a.targeted + 1) / weight(a) < (b.targeted + 1) / weight(b), without rounding. */
static bool more_due(const fl_rot_doc *a, const fl_rot_doc *b) {
  unsigned __int128 wa = a->tokens > 0 ? a->tokens : 1, wb = b->tokens > 0 ? b->tokens : 1;
  unsigned __int128 left = ((unsigned __int128)a->targeted + 1) * wb;
  unsigned __int128 right = ((unsigned __int128)b->targeted + 1) * wa;
  return left != right ? left < right : a->id < b->id;
}

size_t fl_rotate_target(const fl_rot_doc *d, size_t n) {
  size_t best = n;
  for (size_t i = 0; i < n; i++)
    if (d[i].resident && (best == n || more_due(&d[i], &d[best]))) best = i;
  return best;
}
