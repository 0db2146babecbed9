/* coverage.c - see coverage.h. */
#include "fleet/coverage.h"

#include <string.h>

#include "base/json_writer.h"
#include "base/mem.h"

void fl_coverage_release(fl_coverage *c) {
  fl_free(c->span);
  *c = (fl_coverage){ 0 };
}

static int reserve(fl_coverage *c, size_t n) {
  if (n <= c->cap) return FL_OK;
  size_t cap = c->cap ? c->cap * 2 : 8;
  if (cap < n) cap = n;
  fl_cover_span *p = fl_reallocarray(c->span, cap, sizeof *p);
  if (p == NULL) return FL_ENOMEM;
  c->span = p;
  c->cap = cap;
  return FL_OK;
}

int fl_coverage_add(fl_coverage *c, uint64_t first, uint64_t end) {
  if (first >= end) return FL_OK;
  size_t lo = 0; /* spans before lo end before `first` */
  while (lo < c->n && c->span[lo].end < first) lo++;
  size_t hi = lo; /* spans [lo, hi) touch the new one */
  while (hi < c->n && c->span[hi].first <= end) hi++;
  if (hi > lo) {
    if (c->span[lo].first < first) first = c->span[lo].first;
    if (c->span[hi - 1].end > end) end = c->span[hi - 1].end;
    memmove(&c->span[lo + 1], &c->span[hi], (c->n - hi) * sizeof c->span[0]);
    c->n -= hi - lo - 1;
  } else {
    if (reserve(c, c->n + 1) != FL_OK) return FL_ENOMEM;
    memmove(&c->span[lo + 1], &c->span[lo], (c->n - lo) * sizeof c->span[0]);
    c->n++;
  }
  c->span[lo] = (fl_cover_span){ first, end };
  return FL_OK;
}

uint64_t fl_coverage_tokens(const fl_coverage *c) {
  uint64_t n = 0;
  for (size_t i = 0; i < c->n; i++) n += c->span[i].end - c->span[i].first;
  return n;
}

void fl_coverage_print(fl_buf *out, const char *key, const fl_coverage *c) {
  fl_jsonw_open(out, key, '[');
  for (size_t i = 0; i < c->n; i++) {
    fl_jsonw_open(out, NULL, '[');
    fl_jsonw_u64(out, NULL, c->span[i].first);
    fl_jsonw_u64(out, NULL, c->span[i].end);
    fl_jsonw_close(out, ']');
  }
  fl_jsonw_close(out, ']');
}

static bool whole_number(const fl_json *v, uint64_t max, uint64_t *out) {
  double d = 0;
  if (v == NULL || !fl_json_as_num(v, &d)) return false;
  if (!(d >= 0) || d > (double)max || d != (double)(uint64_t)d) return false;
  *out = (uint64_t)d;
  return true;
}

int fl_coverage_parse(fl_coverage *out, const fl_json *arr, uint64_t tokens) {
  fl_coverage c = { 0 };
  int rc = FL_EINPUT;
  if (!fl_json_is_arr(arr)) return rc;
  for (const fl_json *p = fl_json_first(arr); p != NULL; p = fl_json_next(p)) {
    uint64_t first = 0, end = 0;
    if (!fl_json_is_arr(p) || fl_json_len(p) != 2) goto done;
    if (!whole_number(fl_json_at(p, 0), tokens, &first)) goto done;
    if (!whole_number(fl_json_at(p, 1), tokens, &end)) goto done;
    if (first >= end || (c.n > 0 && first <= c.span[c.n - 1].end)) goto done;
    if (reserve(&c, c.n + 1) != FL_OK) {
      rc = FL_ENOMEM;
      goto done;
    }
    c.span[c.n++] = (fl_cover_span){ first, end };
  }
  *out = c;
  return FL_OK;
done:
  fl_coverage_release(&c);
  return rc;
}
