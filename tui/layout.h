/* layout.h - where everything stands: a pure function of the size, the view and two wishes. No pane
 * overlaps another and none leaves the screen, at any size (check_layout.c sweeps them). */
#ifndef TUI_LAYOUT_H
#define TUI_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/canvas.h"

typedef enum tui_view_id {
  TUI_VIEW_FLEET,
  TUI_VIEW_LOSS,
  TUI_VIEW_RETRIEVAL,
  TUI_VIEW_CHAT,
  TUI_VIEW_STUDY,
  TUI_VIEW_COST,
  TUI_VIEWS
} tui_view_id;

typedef enum tui_pane {
  TUI_PANE_HEADER, /* one row: fleet, state, progress, time left */
  TUI_PANE_TABS,   /* one row */
  TUI_PANE_TOP,    /* map, reading, query, counts */
  TUI_PANE_MAIN,   /* always there */
  TUI_PANE_SIDE,
  TUI_PANE_LOWER,
  TUI_PANE_STATUS, /* one row: time slider, messages, prompt */
  TUI_PANE_KEYS,   /* one row */
  TUI_PANES
} tui_pane;

enum { TUI_MIN_W = 60, TUI_MIN_H = 15 };

typedef struct tui_layout {
  bool too_small;           /* then no pane is set; a sentence says so */
  tui_rect pane[TUI_PANES]; /* w == 0: not there */
} tui_layout;

typedef struct tui_wish {
  size_t n_docs; /* cells that the residency map would like */
  bool split;    /* chat: two columns; fleet and study: the opened item beside or below */
} tui_wish;

void tui_layout_make(tui_layout *out, tui_view_id view, int w, int h, tui_wish wish);

#endif
