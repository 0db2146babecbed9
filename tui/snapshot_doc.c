/* snapshot_doc.c - the documents of a snapshot: finding them, what was read of them, the worst. */
#include "tui/snapshot_doc.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

enum { SPANS_MAX = 4096 };

void fl_curves_truncate(fl_curves *c, uint32_t last) {
  fl_series_truncate(&c->loss, last);
  fl_series_truncate(&c->alone, last);
  fl_series_truncate(&c->composed, last);
  fl_series_truncate(&c->teacher, last);
}

void fl_curves_release(fl_curves *c) {
  fl_series_release(&c->loss);
  fl_series_release(&c->alone);
  fl_series_release(&c->composed);
  fl_series_release(&c->teacher);
}

void fl_doc_release(fl_doc *d) {
  fl_free(d->span);
  fl_curves_release(&d->curves);
}

static size_t slot_of(const fl_snapshot *s, uint32_t id) {
  size_t i = (id * 2654435761u) & (s->hash_size - 1);
  while (s->doc_hash[i] && s->doc[s->doc_hash[i] - 1].id != id) i = (i + 1) & (s->hash_size - 1);
  return i;
}

fl_doc *fl_snapshot_doc(const fl_snapshot *s, uint32_t id) {
  if (s->hash_size == 0 || id == FL_NONE) return NULL;
  uint32_t place = s->doc_hash[slot_of(s, id)];
  return place ? &s->doc[place - 1] : NULL;
}

static int grow_hash(fl_snapshot *s) {
  size_t size = s->hash_size ? s->hash_size * 2 : 64;
  uint32_t *hash = fl_calloc(size, sizeof *hash);
  if (!hash) return FL_ENOMEM;
  fl_free(s->doc_hash);
  s->doc_hash = hash;
  s->hash_size = size;
  for (size_t i = 0; i < s->n_docs; i++) hash[slot_of(s, s->doc[i].id)] = (uint32_t)i + 1;
  return FL_OK;
}

int fl_snapshot_need_doc(fl_snapshot *s, uint32_t id, fl_doc **out) {
  *out = fl_snapshot_doc(s, id);
  if (*out || id == FL_NONE) return FL_OK;
  if (s->n_docs == FL_DOCS_MAX) return FL_OK;
  if (s->n_docs == s->cap_docs) {
    size_t cap = s->cap_docs ? s->cap_docs * 2 : 16;
    fl_doc *doc = fl_reallocarray(s->doc, cap, sizeof *doc);
    if (!doc) return FL_ENOMEM;
    s->doc = doc;
    s->cap_docs = cap;
  }
  if ((s->n_docs + 1) * 2 > s->hash_size && grow_hash(s) != FL_OK) return FL_ENOMEM;
  fl_doc *d = &s->doc[s->n_docs];
  *d = (fl_doc){ .id = id,
                 .tokens = FL_NONE,
                 .rows = FL_NONE,
                 .steps = FL_NONE,
                 .loss = NAN,
                 .alone = NAN,
                 .composed = NAN,
                 .teacher = NAN,
                 .held_round = FL_NONE,
                 .last_round = FL_NONE,
                 .last_t = NAN,
                 .last_study = FL_NONE };
  s->doc_hash[slot_of(s, id)] = (uint32_t)++s->n_docs;
  *out = d;
  return FL_OK;
}

int fl_doc_add_span(fl_doc *d, uint32_t first, uint32_t end) {
  if (end <= first || end == FL_NONE) return FL_OK;
  size_t lo = 0;
  while (lo < d->n_spans && d->span[lo].end < first) lo++;
  size_t hi = lo;
  while (hi < d->n_spans && d->span[hi].first <= end) {
    if (d->span[hi].first < first) first = d->span[hi].first;
    if (d->span[hi].end > end) end = d->span[hi].end;
    hi++;
  }
  if (hi == lo) {
    if (d->n_spans == SPANS_MAX) return FL_OK;
    if (d->n_spans == d->cap_spans) {
      size_t cap = d->cap_spans ? d->cap_spans * 2 : 4;
      fl_span *span = fl_reallocarray(d->span, cap, sizeof *span);
      if (!span) return FL_ENOMEM;
      d->span = span;
      d->cap_spans = cap;
    }
    memmove(d->span + lo + 1, d->span + lo, (d->n_spans - lo) * sizeof *d->span);
    d->n_spans++;
  } else if (hi > lo + 1) {
    memmove(d->span + lo + 1, d->span + hi, (d->n_spans - hi) * sizeof *d->span);
    d->n_spans -= hi - lo - 1;
  }
  d->span[lo] = (fl_span){ first, end };
  return FL_OK;
}

void fl_doc_add_heat(fl_doc *d, uint32_t first, uint32_t end) {
  if (d->tokens == FL_NONE || d->tokens == 0 || end <= first) return;
  uint64_t a = (uint64_t)first * FL_HEAT / d->tokens;
  uint64_t b = ((uint64_t)end * FL_HEAT + d->tokens - 1) / d->tokens;
  for (uint64_t i = a; i < b && i < FL_HEAT; i++)
    if (d->heat[i] < UINT16_MAX) d->heat[i]++;
}

uint32_t fl_doc_covered(const fl_doc *d) {
  uint64_t n = 0;
  for (size_t i = 0; i < d->n_spans; i++) n += d->span[i].end - d->span[i].first;
  return n < FL_NONE ? (uint32_t)n : FL_NONE - 1;
}

double fl_doc_coverage(const fl_doc *d) {
  if (d->tokens == FL_NONE || d->tokens == 0) return NAN;
  double part = (double)fl_doc_covered(d) / d->tokens;
  return part > 1 ? 1 : part;
}

bool fl_doc_held_is_old(const fl_doc *d) {
  return d->last_round != FL_NONE && (d->held_round == FL_NONE || d->held_round < d->last_round);
}

double fl_doc_badness(const fl_snapshot *s, const fl_doc *d, fl_worst_by by) {
  if (d->state == 4) return NAN; /* removed */
  if (by == FL_WORST_BY_LOSS) return d->loss;
  if (d->held_round == FL_NONE || (s->round != FL_NONE && d->held_round < s->round / 2)) return NAN;
  return fmax(d->alone, d->composed); /* the one that is a number, if one is not */
}

fl_worst_by fl_snapshot_worst_by(const fl_snapshot *s) {
  for (size_t i = 0; i < s->n_docs; i++)
    if (!isnan(fl_doc_badness(s, &s->doc[i], FL_WORST_BY_HELD))) return FL_WORST_BY_HELD;
  return FL_WORST_BY_LOSS;
}

size_t fl_snapshot_count(const fl_snapshot *s, fl_residency r) {
  size_t n = 0;
  for (size_t i = 0; i < s->n_docs; i++) {
    fl_residency have = s->doc[i].residency;
    n += have == r || (r == FL_RESIDENT && have == FL_TRAINING);
  }
  return n;
}

size_t fl_snapshot_worst(const fl_snapshot *s) {
  size_t worst = SIZE_MAX, known = 0;
  fl_worst_by by = fl_snapshot_worst_by(s);
  for (size_t i = 0; i < s->n_docs; i++) {
    double b = fl_doc_badness(s, &s->doc[i], by);
    if (isnan(b)) continue;
    known++;
    if (worst == SIZE_MAX || b > fl_doc_badness(s, &s->doc[worst], by)) worst = i;
  }
  return known > 1 ? worst : SIZE_MAX; /* one alone is not the worst */
}
