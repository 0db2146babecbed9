/* scan.h - a fast reader of one JSON line of known kind: no tree, no allocation, one pass.
 *
 * The event log is written by programs that put one flat object on a line; the few nested members
 * are skipped as a whole and looked at again only where they are wanted. Anything that is not an
 * object with balanced brackets and closed strings is damage. Numbers follow JSON's grammar.
 */
#ifndef TUI_SCAN_H
#define TUI_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

typedef struct tui_slice {
  const char *p;
  size_t n;
} tui_slice;

typedef struct tui_scan {
  const char *p, *end;
  bool first;
} tui_scan;

typedef struct tui_member {
  tui_slice key;   /* escapes not undone: a key with one matches nothing we know */
  tui_slice value; /* strings without their quotes, escapes not undone */
  char type;       /* 's'tring, 'n'umber, 't'rue, 'f'alse, 'z' null, 'a'rray, 'o'bject */
} tui_member;

/* False when the line does not begin with an object. */
bool tui_scan_begin(tui_scan *s, const char *line, size_t len);
/* 1 and a member; 0 at the end of a whole object; -1 for damage. */
int tui_scan_next(tui_scan *s, tui_member *out);

/* The elements of an array's slice (type 'a', brackets included), same results. `key` is empty. */
bool tui_scan_begin_array(tui_scan *s, tui_slice array);
int tui_scan_element(tui_scan *s, tui_member *out);

/* False if it is no JSON number; the value is right to the last bit for up to 15 digits. */
bool tui_scan_number(double *out, tui_slice v);
/* Whole numbers in 0..2^32-2 only. */
bool tui_scan_u32(uint32_t *out, tui_slice v);

/* Appends a string value with its escapes undone, at most max bytes (whole UTF-8 sequences). */
void tui_scan_unescape(fl_buf *out, tui_slice v, size_t max);

static inline bool tui_slice_is(tui_slice s, const char *word, size_t n) {
  return s.n == n && __builtin_memcmp(s.p, word, n) == 0;
}

#endif
