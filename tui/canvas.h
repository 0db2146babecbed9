/* canvas.h - the picture of a screen: a grid of cells with glyphs and styles, without a terminal.
 * Views draw here; term.c paints it, export.c writes it, tests compare it. Drawing never leaves
 * the clip rectangle and all text passes the sanitiser of text.h.
 */
#ifndef TUI_CANVAS_H
#define TUI_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "tui/style.h"
#include "tui/text.h"

typedef struct tui_rect {
  int x, y, w, h;
} tui_rect;

typedef struct tui_cell {
  uint32_t cp; /* 0: right half of the wide glyph on its left */
  uint32_t comb[TUI_COMBINING_MAX];
  uint8_t style, width;
  bool text; /* part of a text, not of a frame, a bar or a curve */
} tui_cell;

typedef struct tui_canvas {
  tui_cell *cells; /* [h, w] */
  int w, h;
  tui_rect clip;
  bool ascii;
  int cursor_x, cursor_y; /* where the terminal's cursor is to stand; -1: hidden */
  size_t collisions;      /* glyphs of a text drawn over another's: a fault of the layout */
} tui_canvas;

/* w, h >= 1. On failure nothing changes. May be called again to change the size. */
int tui_canvas_resize(tui_canvas *c, int w, int h);
void tui_canvas_release(tui_canvas *c);
void tui_canvas_clear(tui_canvas *c); /* blanks, clip on everything, cursor hidden */
void tui_canvas_clip(tui_canvas *c, tui_rect r);

static inline tui_cell *tui_canvas_at(const tui_canvas *c, int x, int y) {
  return &c->cells[(size_t)y * (size_t)c->w + (size_t)x];
}

/* Each returns the number of columns used. */
int tui_put_cp(tui_canvas *c, int x, int y, tui_style st, uint32_t cp);
int tui_put(tui_canvas *c, int x, int y, tui_style st, const char *s);
int tui_putf(tui_canvas *c, int x, int y, tui_style st, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* At most `cols` columns; what does not fit ends in an ellipsis. */
int tui_put_fit(tui_canvas *c, int x, int y, int cols, tui_style st, const char *s, size_t len);
/* Right-aligned so that it ends before column x. */
int tui_put_right(tui_canvas *c, int x, int y, tui_style st, const char *s);

void tui_fill(tui_canvas *c, tui_rect r, tui_style st, uint32_t cp);
/* Changes the style only. */
void tui_tint(tui_canvas *c, tui_rect r, tui_style st);
/* A frame with a title; returns the inside. */
tui_rect tui_frame(tui_canvas *c, tui_rect r, const char *title);
/* A horizontal bar of `part` in 0..1 with eighths of a cell. */
void tui_bar(tui_canvas *c, int x, int y, int cols, double part, tui_style st);

/* Appends the picture as lines of text without trailing blanks. */
void tui_canvas_text(const tui_canvas *c, fl_buf *out);

#endif
