/* snapshot_doc.c - the documents of a snapshot: finding them, what was read of them, the worst. */
#include "tui/snapshot_doc.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

enum { SPANS_MAX = 4096 };

void tui_curves_truncate(tui_curves *c, uint32_t last) {
  tui_series_truncate(&c->loss, last);
  tui_series_truncate(&c->alone, last);
  tui_series_truncate(&c->composed, last);
  tui_series_truncate(&c->teacher, last);
}

void tui_curves_release(tui_curves *c) {
  tui_series_release(&c->loss);
  tui_series_release(&c->alone);
  tui_series_release(&c->composed);
  tui_series_release(&c->teacher);
}

void tui_doc_release(tui_doc *d) {
  fl_free(d->span);
  tui_curves_release(&d->curves);
}

static size_t slot_of(const tui_snapshot *s, uint32_t id) {
  size_t i = (id * 2654435761u) & (s->hash_size - 1);
  while (s->doc_hash[i] && s->doc[s->doc_hash[i] - 1].id != id) i = (i + 1) & (s->hash_size - 1);
  return i;
}

tui_doc *tui_snapshot_doc(const tui_snapshot *s, uint32_t id) {
  if (s->hash_size == 0 || id == TUI_NONE) return NULL;
  uint32_t place = s->doc_hash[slot_of(s, id)];
  return place ? &s->doc[place - 1] : NULL;
}

static int grow_hash(tui_snapshot *s) {
  size_t size = s->hash_size ? s->hash_size * 2 : 64;
  uint32_t *hash = fl_calloc(size, sizeof *hash);
  if (!hash) return FL_ENOMEM;
  fl_free(s->doc_hash);
  s->doc_hash = hash;
  s->hash_size = size;
  for (size_t i = 0; i < s->n_docs; i++) hash[slot_of(s, s->doc[i].id)] = (uint32_t)i + 1;
  return FL_OK;
}

int tui_snapshot_need_doc(tui_snapshot *s, uint32_t id, tui_doc **out) {
  *out = tui_snapshot_doc(s, id);
  if (*out || id == TUI_NONE) return FL_OK;
  if (s->n_docs == TUI_DOCS_MAX) return FL_OK;
  if (s->n_docs == s->cap_docs) {
    size_t cap = s->cap_docs ? s->cap_docs * 2 : 16;
    tui_doc *doc = fl_reallocarray(s->doc, cap, sizeof *doc);
    if (!doc) return FL_ENOMEM;
    s->doc = doc;
    s->cap_docs = cap;
  }
  if ((s->n_docs + 1) * 2 > s->hash_size && grow_hash(s) != FL_OK) return FL_ENOMEM;
  tui_doc *d = &s->doc[s->n_docs];
  *d = (tui_doc){ .id = id,
                  .tokens = TUI_NONE,
                  .rows = TUI_NONE,
                  .steps = TUI_NONE,
                  .loss = NAN,
                  .alone = NAN,
                  .composed = NAN,
                  .teacher = NAN,
                  .held_round = TUI_NONE,
                  .last_round = TUI_NONE,
                  .last_t = NAN,
                  .last_study = TUI_NONE };
  s->doc_hash[slot_of(s, id)] = (uint32_t)++s->n_docs;
  *out = d;
  return FL_OK;
}

int tui_doc_add_span(tui_doc *d, uint32_t first, uint32_t end) {
  if (end <= first || end == TUI_NONE) return FL_OK;
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
      tui_span *span = fl_reallocarray(d->span, cap, sizeof *span);
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
  d->span[lo] = (tui_span){ first, end };
  return FL_OK;
}

void tui_doc_add_heat(tui_doc *d, uint32_t first, uint32_t end) {
  if (d->tokens == TUI_NONE || d->tokens == 0 || end <= first) return;
  uint64_t a = (uint64_t)first * TUI_HEAT / d->tokens;
  uint64_t b = ((uint64_t)end * TUI_HEAT + d->tokens - 1) / d->tokens;
  for (uint64_t i = a; i < b && i < TUI_HEAT; i++)
    if (d->heat[i] < UINT16_MAX) d->heat[i]++;
}

uint32_t tui_doc_covered(const tui_doc *d) {
  uint64_t n = 0;
  for (size_t i = 0; i < d->n_spans; i++) n += d->span[i].end - d->span[i].first;
  return n < TUI_NONE ? (uint32_t)n : TUI_NONE - 1;
}

double tui_doc_coverage(const tui_doc *d) {
  if (d->tokens == TUI_NONE || d->tokens == 0) return NAN;
  double part = (double)tui_doc_covered(d) / d->tokens;
  return part > 1 ? 1 : part;
}

bool tui_doc_held_is_old(const tui_doc *d) {
  return d->last_round != TUI_NONE && (d->held_round == TUI_NONE || d->held_round < d->last_round);
}

double tui_doc_badness(const tui_snapshot *s, const tui_doc *d, tui_worst_by by) {
  if (d->state == 4) return NAN; /* removed */
  if (by == TUI_WORST_BY_LOSS) return d->loss;
  if (d->held_round == TUI_NONE || (s->round != TUI_NONE && d->held_round < s->round / 2))
    return NAN;
  return fmax(d->alone, d->composed); /* the one that is a number, if one is not */
}

tui_worst_by tui_snapshot_worst_by(const tui_snapshot *s) {
  for (size_t i = 0; i < s->n_docs; i++)
    if (!isnan(tui_doc_badness(s, &s->doc[i], TUI_WORST_BY_HELD))) return TUI_WORST_BY_HELD;
  return TUI_WORST_BY_LOSS;
}

size_t tui_snapshot_count(const tui_snapshot *s, tui_residency r) {
  size_t n = 0;
  for (size_t i = 0; i < s->n_docs; i++) {
    tui_residency have = s->doc[i].residency;
    n += have == r || (r == TUI_RESIDENT && have == TUI_TRAINING);
  }
  return n;
}

size_t tui_snapshot_worst(const tui_snapshot *s) {
  size_t worst = SIZE_MAX, known = 0;
  tui_worst_by by = tui_snapshot_worst_by(s);
  for (size_t i = 0; i < s->n_docs; i++) {
    double b = tui_doc_badness(s, &s->doc[i], by);
    if (isnan(b)) continue;
    known++;
    if (worst == SIZE_MAX || b > tui_doc_badness(s, &s->doc[worst], by)) worst = i;
  }
  return known > 1 ? worst : SIZE_MAX; /* one alone is not the worst */
}
