/* records.h - what is kept of a line of the event log, by kind of event (flotilla-events(5)).
 *
 * Unknown is not zero: a member that a line lacks is TUI_NONE in a uint32_t, NaN in a float, and an
 * empty reference for strings and arrays.
 */
#ifndef TUI_RECORDS_H
#define TUI_RECORDS_H

#include <math.h>
#include <stdint.h>

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
  float seconds, gen_s, student_s, opt_s, io_s;
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

#endif
