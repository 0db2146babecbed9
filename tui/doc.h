/* doc.h - one document of a run at one moment; see snapshot.h. */
#ifndef TUI_DOC_H
#define TUI_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tui/records.h"
#include "tui/series.h"

enum { TUI_HEAT = 128 };

typedef enum tui_residency {
  TUI_ON_DISK,
  TUI_RESIDENT,
  TUI_TRAINING, /* resident and the target of the last round */
  TUI_EVICTED   /* left memory in the last rotation */
} tui_residency;

typedef struct tui_span {
  uint32_t first, end; /* tokens, half open */
} tui_span;

/* Losses by round, nats per token: of training, and held out alone, together, the teacher's own. */
typedef struct tui_curves {
  tui_series loss, alone, composed, teacher;
} tui_curves;

typedef struct tui_doc {
  uint32_t id;
  tui_ref name;          /* in the store */
  uint32_t tokens, rows; /* TUI_NONE: unknown */
  uint32_t steps;        /* optimizer steps so far */
  uint32_t state;        /* tui_doc_states */
  tui_residency residency;
  double loss;            /* last round that had it as target, nats per token */
  double alone, composed; /* held out, nats per token */
  double teacher;         /* the teacher's own there */
  uint32_t held_round;    /* when they were measured; TUI_NONE: never */
  uint32_t last_round;    /* as target; TUI_NONE: never */
  double last_t;
  uint32_t rounds; /* as target */
  uint32_t convs, rejected;
  bool marked;
  uint32_t last_study; /* record, TUI_NONE: none */
  tui_span *span;      /* sorted, disjoint */
  size_t n_spans, cap_spans;
  uint16_t heat[TUI_HEAT]; /* conversations by place in the document */
  tui_curves curves;
} tui_doc;

/* Tokens that its spans cover. */
uint32_t tui_doc_covered(const tui_doc *d);
/* 0..1, NaN when its length is unknown. */
double tui_doc_coverage(const tui_doc *d);
/* The held-out loss was measured before the document was last trained. */
bool tui_doc_held_is_old(const tui_doc *d);

#endif
