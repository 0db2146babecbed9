/* store.h - a log, decoded once: compact records by kind and a timeline that gives their order.
 *
 * Everything the dashboard shows is a fold over a prefix of the timeline (snapshot.h), so that the
 * end of a live run and any moment of a finished one are the same thing. Long texts (requests,
 * answers, queries) stay in the file; a record keeps where its line lies.
 *
 * Unknown is not zero: a member that a line lacks is TUI_NONE in a uint32_t, NaN in a float, and an
 * empty reference for strings and arrays.
 */
#ifndef TUI_STORE_H
#define TUI_STORE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define TUI_NONE UINT32_MAX

/* The number, or NaN for TUI_NONE. */
static inline double tui_known(uint32_t v) { return v == TUI_NONE ? (double)NAN : (double)v; }

typedef enum tui_kind {
  TUI_EV_RUN,
  TUI_EV_DOC,
  TUI_EV_STUDY,
  TUI_EV_ROUND,
  TUI_EV_ROTATE,
  TUI_EV_HELDOUT,
  TUI_EV_COVERAGE,
  TUI_EV_SAVE,
  TUI_EV_INDEX,
  TUI_EV_RETRIEVE,
  TUI_EV_ANSWER,
  TUI_EV_REQUEST,
  TUI_EV_CONTROL,
  TUI_EV_ERROR,
  TUI_EV_END,
  TUI_EV_KINDS
} tui_kind;

/* Where a line lies; packed, because there are a million of them. */
enum { TUI_LINE_MAX = (1 << 22) - 1, TUI_FILES_MAX = 16 };
typedef struct tui_line_ref {
  uint64_t offset : 38;
  uint64_t len : 22;
  uint64_t file : 4; /* which of the files that a rotated log went through (reader.h) */
} __attribute__((packed, aligned(4))) tui_line_ref;

typedef struct tui_ref {
  uint32_t at, n; /* in the pool of bytes or of numbers */
} tui_ref;

/* Every record begins with these two. */
typedef struct tui_rec {
  tui_line_ref line;
  uint32_t event; /* index in the timeline */
} tui_rec;

typedef struct tui_rec_run {
  tui_rec rec;
  tui_ref cmd, version, model_name, host, isa, kernel; /* bytes */
  uint32_t pid, threads, cpus, rounds, round0, docs, budget, resumed, continued;
  float mem_bytes, peak_gflops, peak_gbs;
} tui_rec_run;

typedef struct tui_rec_doc {
  tui_rec rec;
  uint32_t doc, tokens, rows, steps, resident, marked;
  uint32_t state; /* 0 unknown, then "new" "kept" "changed" "removed" */
  tui_ref name;
} tui_rec_doc;

typedef struct tui_rec_study {
  tui_rec rec;
  uint32_t doc, round, first, end, tokens;
  uint32_t prev; /* the document's study record before this one, or TUI_NONE */
  uint32_t kind : 4, rejected : 4, replayed : 2,
      conv : 22; /* see tui_study_kinds, tui_rejections */
} tui_rec_study;

typedef struct tui_rec_round {
  tui_rec rec;
  uint32_t round, doc, tokens, gen_tokens;
  float loss, lr, grad_norm;
  float seconds, gen_s, teacher_s, student_s, opt_s, io_s;
  float rss, peak_rss, resident_bytes;
  float gflop, gbyte; /* work of the round, where the trainer counts it */
  tui_ref steps;      /* numbers: document, steps, ...; without those that are known already */
  tui_ref resident;   /* numbers; shared by rounds that have the same */
} tui_rec_round;

typedef struct tui_rec_rotate {
  tui_rec rec;
  uint32_t round;
  tui_ref out, in; /* numbers */
} tui_rec_rotate;

typedef struct tui_rec_heldout {
  tui_rec rec;
  uint32_t round, doc, convs;
  float alone, composed, teacher; /* the last is NaN in older logs */
} tui_rec_heldout;

typedef struct tui_rec_coverage {
  tui_rec rec;
  uint32_t doc, tokens;
  tui_ref spans; /* numbers: first, end, first, end, ... */
} tui_rec_coverage;

typedef struct tui_rec_save {
  tui_rec rec;
  uint32_t round, generation;
  float bytes, seconds;
  uint32_t reason; /* see tui_save_reasons */
} tui_rec_save;

typedef struct tui_rec_index {
  tui_rec rec;
  uint32_t chunks, dim;
  float seconds;
} tui_rec_index;

typedef struct tui_rec_control {
  tui_rec rec;
  uint32_t cmd, key; /* see tui_control_cmds, tui_control_keys */
  uint32_t doc;      /* of "mark" */
  float value;       /* of "set"; 0 or 1 of "mark" */
} tui_rec_control;

/* retrieve and error lines are read again when they are shown */
typedef struct tui_rec_text {
  tui_rec rec;
} tui_rec_text;

typedef struct tui_rec_answer {
  tui_rec rec;
  uint32_t arm; /* see tui_answer_arms */
  uint32_t rows, tokens;
  float seconds, tok_s, ttft_s;
} tui_rec_answer;

typedef struct tui_rec_request {
  tui_rec rec;
  uint32_t status, prompt_tokens, cached_tokens, completion_tokens, rows;
  float queue_s, ttft_s, seconds;
} tui_rec_request;

typedef struct tui_rec_end {
  tui_rec rec;
  uint32_t status; /* see tui_end_states */
  uint32_t round;
  float seconds;
} tui_rec_end;

/* NULL-terminated; entry 0 is "" for an unknown word. */
extern const char *const tui_study_kinds[],
    *const tui_rejections[], *const tui_save_reasons[],
                                 *const tui_answer_arms[],
                                     *const tui_end_states[], *const tui_doc_states[],
                                                                  *const tui_event_names[],
                                                                      *const tui_control_cmds[],
                                                                          *const tui_control_keys[];

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
