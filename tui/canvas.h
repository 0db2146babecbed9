/* canvas.h - the picture of a screen: a grid of cells with glyphs and styles, without a terminal.
 * Views draw here; term.c paints it, export.c writes it, tests compare it. Drawing never leaves
 * the clip rectangle and all text passes the sanitiser of text.h.
 */
#ifndef FL_TUI_CANVAS_H
#define FL_TUI_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "tui/style.h"
#include "tui/text.h"

typedef struct fl_rect {
  int x, y, w, h;
} fl_rect;

typedef struct fl_cell {
  uint32_t cp; /* 0: right half of the wide glyph on its left */
  uint32_t comb[FL_COMBINING_MAX];
  uint8_t style, width;
  bool text; /* part of a text, not of a frame, a bar or a curve */
} fl_cell;

typedef struct fl_canvas {
  fl_cell *cells; /* [h, w] */
  int w, h;
  fl_rect clip;
  bool ascii;
  int cursor_x, cursor_y; /* where the terminal's cursor is to stand; -1: hidden */
  size_t collisions;      /* glyphs of a text drawn over another's: a fault of the layout */
} fl_canvas;

/* w, h >= 1. On failure nothing changes. May be called again to change the size. */
int fl_canvas_resize(fl_canvas *c, int w, int h);
void fl_canvas_release(fl_canvas *c);
void fl_canvas_clear(fl_canvas *c); /* blanks, clip on everything, cursor hidden */
void fl_canvas_clip(fl_canvas *c, fl_rect r);

static inline fl_cell *fl_canvas_at(const fl_canvas *c, int x, int y) {
  return &c->cells[(size_t)y * (size_t)c->w + (size_t)x];
}

/* Each returns the number of columns used. */
int fl_put_cp(fl_canvas *c, int x, int y, fl_style st, uint32_t cp);
int fl_put(fl_canvas *c, int x, int y, fl_style st, const char *s);
int fl_putf(fl_canvas *c, int x, int y, fl_style st, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* At most `cols` columns; what does not fit ends in an ellipsis. */
int fl_put_fit(fl_canvas *c, int x, int y, int cols, fl_style st, const char *s, size_t len);
/* Right-aligned so that it ends before column x. */
int fl_put_right(fl_canvas *c, int x, int y, fl_style st, const char *s);

void fl_fill(fl_canvas *c, fl_rect r, fl_style st, uint32_t cp);
/* Changes the style only. */
void fl_tint(fl_canvas *c, fl_rect r, fl_style st);
/* A frame with a title; returns the inside. */
fl_rect fl_frame(fl_canvas *c, fl_rect r, const char *title);
/* A horizontal bar of `part` in 0..1 with eighths of a cell. */
void fl_bar(fl_canvas *c, int x, int y, int cols, double part, fl_style st);

/* Appends the picture as lines of text without trailing blanks. */
void fl_canvas_text(const fl_canvas *c, fl_buf *out);

#endif
