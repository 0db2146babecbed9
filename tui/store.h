/* store.h - a log, decoded once: compact records by kind and a timeline that gives their order.
 *
 * Everything the dashboard shows is a fold over a prefix of the timeline (snapshot.h), so that the
 * end of a live run and any moment of a finished one are the same thing. Long texts (requests,
 * answers, queries) stay in the file; a record keeps where its line lies.
 *
 * Unknown is not zero: a member that a line lacks is FL_NONE in a uint32_t, NaN in a float, and an
 * empty reference for strings and arrays.
 */
#ifndef FL_TUI_STORE_H
#define FL_TUI_STORE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define FL_NONE UINT32_MAX

/* The number, or NaN for FL_NONE. */
static inline double fl_known(uint32_t v) { return v == FL_NONE ? (double)NAN : (double)v; }

typedef enum fl_kind {
  FL_EV_RUN,
  FL_EV_DOC,
  FL_EV_STUDY,
  FL_EV_ROUND,
  FL_EV_ROTATE,
  FL_EV_HELDOUT,
  FL_EV_COVERAGE,
  FL_EV_SAVE,
  FL_EV_INDEX,
  FL_EV_RETRIEVE,
  FL_EV_ANSWER,
  FL_EV_REQUEST,
  FL_EV_CONTROL,
  FL_EV_ERROR,
  FL_EV_END,
  FL_EV_KINDS
} fl_kind;

/* Where a line lies; packed, because there are a million of them. */
enum { FL_LINE_MAX = (1 << 22) - 1, FL_FILES_MAX = 16 };
typedef struct fl_line_ref {
  uint64_t offset : 38;
  uint64_t len : 22;
  uint64_t file : 4; /* which of the files that a rotated log went through (reader.h) */
} __attribute__((packed, aligned(4))) fl_line_ref;

typedef struct fl_ref {
  uint32_t at, n; /* in the pool of bytes or of numbers */
} fl_ref;

/* Every record begins with these two. */
typedef struct fl_rec {
  fl_line_ref line;
  uint32_t event; /* index in the timeline */
} fl_rec;

typedef struct fl_rec_run {
  fl_rec rec;
  fl_ref cmd, version, model_name, host, isa, kernel; /* bytes */
  uint32_t pid, threads, cpus, rounds, round0, docs, budget, resumed, continued;
  float mem_bytes, peak_gflops, peak_gbs;
} fl_rec_run;

typedef struct fl_rec_doc {
  fl_rec rec;
  uint32_t doc, tokens, rows, steps, resident, marked;
  uint32_t state; /* 0 unknown, then "new" "kept" "changed" "removed" */
  fl_ref name;
} fl_rec_doc;

typedef struct fl_rec_study {
  fl_rec rec;
  uint32_t doc, round, first, end, tokens;
  uint32_t prev; /* the document's study record before this one, or FL_NONE */
  uint32_t kind : 4, rejected : 4, replayed : 2, conv : 22; /* see fl_study_kinds, fl_rejections */
} fl_rec_study;

typedef struct fl_rec_round {
  fl_rec rec;
  uint32_t round, doc, tokens, gen_tokens;
  float loss, lr, grad_norm;
  float seconds, gen_s, teacher_s, student_s, opt_s, io_s;
  float rss, peak_rss, resident_bytes;
  float gflop, gbyte; /* work of the round, where the trainer counts it */
  fl_ref steps;       /* numbers: document, steps, ...; without those that are known already */
  fl_ref resident;    /* numbers; shared by rounds that have the same */
} fl_rec_round;

typedef struct fl_rec_rotate {
  fl_rec rec;
  uint32_t round;
  fl_ref out, in; /* numbers */
} fl_rec_rotate;

typedef struct fl_rec_heldout {
  fl_rec rec;
  uint32_t round, doc, convs;
  float alone, composed, teacher; /* the last is NaN in older logs */
} fl_rec_heldout;

typedef struct fl_rec_coverage {
  fl_rec rec;
  uint32_t doc, tokens;
  fl_ref spans; /* numbers: first, end, first, end, ... */
} fl_rec_coverage;

typedef struct fl_rec_save {
  fl_rec rec;
  uint32_t round, generation;
  float bytes, seconds;
  uint32_t reason; /* see fl_save_reasons */
} fl_rec_save;

typedef struct fl_rec_index {
  fl_rec rec;
  uint32_t chunks, dim;
  float seconds;
} fl_rec_index;

typedef struct fl_rec_control {
  fl_rec rec;
  uint32_t cmd, key; /* see fl_control_cmds, fl_control_keys */
  uint32_t doc;      /* of "mark" */
  float value;       /* of "set"; 0 or 1 of "mark" */
} fl_rec_control;

/* retrieve and error lines are read again when they are shown */
typedef struct fl_rec_text {
  fl_rec rec;
} fl_rec_text;

typedef struct fl_rec_answer {
  fl_rec rec;
  uint32_t arm; /* see fl_answer_arms */
  uint32_t rows, tokens;
  float seconds, tok_s, ttft_s;
} fl_rec_answer;

typedef struct fl_rec_request {
  fl_rec rec;
  uint32_t status, prompt_tokens, cached_tokens, completion_tokens, rows;
  float queue_s, ttft_s, seconds;
} fl_rec_request;

typedef struct fl_rec_end {
  fl_rec rec;
  uint32_t status; /* see fl_end_states */
  uint32_t round;
  float seconds;
} fl_rec_end;

/* NULL-terminated; entry 0 is "" for an unknown word. */
extern const char *const fl_study_kinds[],
    *const fl_rejections[], *const fl_save_reasons[], *const fl_answer_arms[],
                                                          *const fl_end_states[],
                                                              *const fl_doc_states[],
                                                                  *const fl_event_names[],
                                                                      *const fl_control_cmds[],
                                                                          *const fl_control_keys[];

/* Its time is fl_store_t: what a tick holds counts from the first one of its FL_TICKS_A_BASE, in
 * single precision (a millisecond as long as those lie within hours). */
enum { FL_TICKS_A_BASE = 256 };
typedef struct fl_tick {
  float dt;
  uint32_t kind : 4; /* fl_kind */
  uint32_t at : 28;  /* index in the records of that kind */
} fl_tick;

/* The optimizer steps that a document was last said to have. */
typedef struct fl_steps {
  uint32_t doc, steps;
} fl_steps;

typedef struct fl_table {
  void *rec;
  size_t n, cap;
} fl_table;

typedef struct fl_store {
  fl_table kind[FL_EV_KINDS];
  fl_tick *tick;
  size_t n_ticks, cap_ticks;
  double *base; /* ceil(n_ticks / FL_TICKS_A_BASE) */
  size_t cap_base;
  char *bytes;
  size_t n_bytes, cap_bytes;
  uint32_t *number;
  size_t n_numbers, cap_numbers;
  uint32_t *last_study;        /* by document id modulo a power of two: newest study record */
  fl_steps *known_steps;       /* likewise */
  fl_ref last_resident;        /* of the newest round that had one */
  size_t n_damaged, n_unknown; /* lines left out; and why they matter: shown to the user */
  size_t n_lines;
} fl_store;

/* Decodes one line (without its newline) and adds it. FL_OK also for damaged and unknown lines,
 * which are counted; FL_ENOMEM otherwise. */
int fl_store_add(fl_store *s, const char *line, size_t len, fl_line_ref where);
void fl_store_reset(fl_store *s); /* empties, keeps memory */
void fl_store_release(fl_store *s);

/* The record of a kind; the caller knows its type. Valid until the next fl_store_add. */
const void *fl_store_rec(const fl_store *s, fl_kind kind, size_t i);
/* The record at a place of the timeline. */
static inline const void *fl_store_tick_rec(const fl_store *s, size_t event) {
  return fl_store_rec(s, (fl_kind)s->tick[event].kind, s->tick[event].at);
}
/* When it was, in seconds since 1970; never decreasing (a clock set back is held). */
static inline double fl_store_t(const fl_store *s, size_t event) {
  return s->base[event / FL_TICKS_A_BASE] + (double)s->tick[event].dt;
}
/* Whether a line that says `t` can be that event's. */
static inline bool fl_store_is_at(const fl_store *s, size_t event, double t) {
  return (float)(t - s->base[event / FL_TICKS_A_BASE]) == s->tick[event].dt;
}
/* A pooled string, not NUL-terminated. */
const char *fl_store_str(const fl_store *s, fl_ref ref, size_t *n);
static inline const uint32_t *fl_store_numbers(const fl_store *s, fl_ref ref) {
  return s->number + ref.at;
}
/* The number of events with t <= `t`. */
size_t fl_store_seek(const fl_store *s, double t);

#endif
