/* coverage.h - which token spans of a document self-study has used: a sorted list of disjoint
 * half-open spans, touching ones merged. Zeroed is empty. */
#ifndef FL_FLEET_COVERAGE_H
#define FL_FLEET_COVERAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"

typedef struct fl_cover_span {
  uint64_t first, end;
} fl_cover_span;
typedef struct fl_coverage {
  fl_cover_span *span;
  size_t n, cap;
} fl_coverage;

void fl_coverage_release(fl_coverage *c);
/* FL_ENOMEM with the list unchanged; an empty span changes nothing. */
int fl_coverage_add(fl_coverage *c, uint64_t first, uint64_t end);
uint64_t fl_coverage_tokens(const fl_coverage *c);
/* Appends [[first,end],...] as JSON text, under the key where it is not NULL. */
void fl_coverage_print(fl_buf *out, const char *key, const fl_coverage *c);
/* From such an array: pairs ascending, disjoint, at most `tokens`; FL_EINPUT otherwise. */
int fl_coverage_parse(fl_coverage *out, const fl_json *arr, uint64_t tokens);

#endif
