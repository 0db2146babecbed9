/* layout.h - where everything stands: a pure function of the size, the view and two wishes. No pane
 * overlaps another and none leaves the screen, at any size (check_layout.c sweeps them). */
#ifndef FL_TUI_LAYOUT_H
#define FL_TUI_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/canvas.h"

typedef enum fl_view_id {
  FL_VIEW_FLEET,
  FL_VIEW_LOSS,
  FL_VIEW_RETRIEVAL,
  FL_VIEW_CHAT,
  FL_VIEW_STUDY,
  FL_VIEW_COST,
  FL_VIEWS
} fl_view_id;

typedef enum fl_pane {
  FL_PANE_HEADER, /* one row: fleet, state, progress, time left */
  FL_PANE_TABS,   /* one row */
  FL_PANE_TOP,    /* map, reading, query, counts */
  FL_PANE_MAIN,   /* always there */
  FL_PANE_SIDE,
  FL_PANE_LOWER,
  FL_PANE_STATUS, /* one row: time slider, messages, prompt */
  FL_PANE_KEYS,   /* one row */
  FL_PANES
} fl_pane;

enum { FL_MIN_W = 60, FL_MIN_H = 15 };

typedef struct fl_layout {
  bool too_small;         /* then no pane is set; a sentence says so */
  fl_rect pane[FL_PANES]; /* w == 0: not there */
} fl_layout;

typedef struct fl_wish {
  size_t n_docs; /* cells that the residency map would like */
  bool split;    /* chat: two columns; fleet and study: the opened item beside or below */
} fl_wish;

void fl_layout_make(fl_layout *out, fl_view_id view, int w, int h, fl_wish wish);

#endif
