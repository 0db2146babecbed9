/* store.h - a log, decoded once: compact records by kind and a timeline that gives their order.
 *
 * Everything the dashboard shows is a fold over a prefix of the timeline (snapshot.h), so that the
 * end of a live run and any moment of a finished one are the same thing. Long texts (requests,
 * answers, queries) stay in the file; a record keeps where its line lies.
 */
#ifndef TUI_STORE_H
#define TUI_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "tui/records.h"
#include "tui/words.h"

/* Its time is tui_store_t: what a tick holds counts from the first one of its TUI_TICKS_A_BASE, in
 * single precision (a millisecond as long as those lie within hours). */
enum { TUI_TICKS_A_BASE = 256 };
typedef struct tui_tick {
  float dt;
  uint32_t kind : 4; /* tui_kind */
  uint32_t at : 28;  /* index in the records of that kind */
} tui_tick;

/* The optimizer steps that a document was last said to have. */
typedef struct tui_steps {
  uint32_t doc, steps;
} tui_steps;

typedef struct tui_table {
  void *rec;
  size_t n, cap;
} tui_table;

typedef struct tui_store {
  tui_table kind[TUI_EV_KINDS];
  tui_tick *tick;
  size_t n_ticks, cap_ticks;
  double *base; /* ceil(n_ticks / TUI_TICKS_A_BASE) */
  size_t cap_base;
  char *bytes;
  size_t n_bytes, cap_bytes;
  uint32_t *number;
  size_t n_numbers, cap_numbers;
  uint32_t *last_study;        /* by document id modulo a power of two: newest study record */
  tui_steps *known_steps;      /* likewise */
  tui_ref last_resident;       /* of the newest round that had one */
  size_t n_damaged, n_unknown; /* lines left out; and why they matter: shown to the user */
  size_t n_lines;
} tui_store;

/* Decodes one line (without its newline) and adds it. FL_OK also for damaged and unknown lines,
 * which are counted; FL_ENOMEM otherwise. */
int tui_store_add(tui_store *s, const char *line, size_t len, tui_line_ref where);
void tui_store_reset(tui_store *s); /* empties, keeps memory */
void tui_store_release(tui_store *s);

/* The record of a kind; the caller knows its type. Valid until the next tui_store_add. */
const void *tui_store_rec(const tui_store *s, tui_kind kind, size_t i);
/* The record at a place of the timeline. */
static inline const void *tui_store_tick_rec(const tui_store *s, size_t event) {
  return tui_store_rec(s, (tui_kind)s->tick[event].kind, s->tick[event].at);
}
/* When it was, in seconds since 1970; never decreasing (a clock set back is held). */
static inline double tui_store_t(const tui_store *s, size_t event) {
  return s->base[event / TUI_TICKS_A_BASE] + (double)s->tick[event].dt;
}
/* Whether a line that says `t` can be that event's. */
static inline bool tui_store_is_at(const tui_store *s, size_t event, double t) {
  return (float)(t - s->base[event / TUI_TICKS_A_BASE]) == s->tick[event].dt;
}
/* A pooled string, not NUL-terminated. */
const char *tui_store_str(const tui_store *s, tui_ref ref, size_t *n);
static inline const uint32_t *tui_store_numbers(const tui_store *s, tui_ref ref) {
  return s->number + ref.at;
}
/* The number of events with t <= `t`. */
size_t tui_store_seek(const tui_store *s, double t);

#endif
