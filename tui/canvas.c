/* canvas.c - drawing on the grid of cells. */
#include "tui/canvas.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/utf8.h"

static const tui_cell blank = { .cp = ' ', .style = ST_TEXT, .width = 1 };

int tui_canvas_resize(tui_canvas *c, int w, int h) {
  size_t n;
  if (!fl_mul_size((size_t)w, (size_t)h, &n)) return FL_ENOMEM;
  tui_cell *cells = fl_calloc(n, sizeof *cells);
  if (!cells) return FL_ENOMEM;
  fl_free(c->cells);
  c->cells = cells;
  c->w = w;
  c->h = h;
  tui_canvas_clear(c);
  return FL_OK;
}

void tui_canvas_release(tui_canvas *c) {
  fl_free(c->cells);
  *c = (tui_canvas){ 0 };
}

void tui_canvas_clear(tui_canvas *c) {
  size_t n = (size_t)c->w * (size_t)c->h;
  for (size_t i = 0; i < n; i++) c->cells[i] = blank;
  c->clip = (tui_rect){ 0, 0, c->w, c->h };
  c->cursor_x = c->cursor_y = -1;
  c->collisions = 0;
}

void tui_canvas_clip(tui_canvas *c, tui_rect r) {
  int x1 = r.x + r.w, y1 = r.y + r.h;
  if (r.x < 0) r.x = 0;
  if (r.y < 0) r.y = 0;
  if (x1 > c->w) x1 = c->w;
  if (y1 > c->h) y1 = c->h;
  c->clip = (tui_rect){ r.x, r.y, x1 > r.x ? x1 - r.x : 0, y1 > r.y ? y1 - r.y : 0 };
}

static bool inside(const tui_canvas *c, int x, int y, int width) {
  return x >= c->clip.x && y >= c->clip.y && x + width <= c->clip.x + c->clip.w &&
         y < c->clip.y + c->clip.h;
}

/* A wide glyph of which one half is overwritten loses the other. */
static void detach_halves(tui_canvas *c, int x, int y) {
  tui_cell *cell = tui_canvas_at(c, x, y);
  if (cell->cp == 0 && x > 0) {
    tui_cell *left = cell - 1;
    *left = (tui_cell){ .cp = ' ', .style = left->style, .width = 1 };
  } else if (cell->width == 2 && x + 1 < c->w) {
    cell[1] = (tui_cell){ .cp = ' ', .style = cell->style, .width = 1 };
  }
}

static void set_glyph(tui_canvas *c, int x, int y, tui_style st, const tui_glyph *g) {
  if (!inside(c, x, y, g->width)) return;
  tui_glyph ascii = { .width = 1 };
  if (c->ascii && g->cp >= 0x80) {
    ascii.cp = (unsigned char)tui_text_ascii(g->cp);
    /* two columns stay two columns, so that the layout is the same in both modes */
    if (g->width == 2) set_glyph(c, x + 1, y, st, &(tui_glyph){ .cp = '?', .width = 1 });
    g = &ascii;
  }
  detach_halves(c, x, y);
  tui_cell *cell = tui_canvas_at(c, x, y);
  cell->cp = g->cp;
  memcpy(cell->comb, c->ascii ? ascii.comb : g->comb, sizeof cell->comb);
  cell->style = (uint8_t)st;
  cell->width = (uint8_t)g->width;
  cell->text = false;
  if (g->width == 2) {
    detach_halves(c, x + 1, y);
    *tui_canvas_at(c, x + 1, y) = (tui_cell){ .cp = 0, .style = (uint8_t)st, .width = 0 };
    *cell = (tui_cell){ g->cp, { g->comb[0], g->comb[1] }, (uint8_t)st, 2, false };
  }
}

int tui_put_cp(tui_canvas *c, int x, int y, tui_style st, uint32_t cp) {
  int width = tui_text_width(cp);
  if (width < 1) return 0;
  set_glyph(c, x, y, st, &(tui_glyph){ .cp = cp, .width = width });
  return width;
}

static int put_n(tui_canvas *c, int x, int y, tui_style st, const char *s, size_t len) {
  size_t at = 0;
  int used = 0;
  tui_glyph g;
  while (tui_text_next(&g, s, len, &at)) {
    if (inside(c, x + used, y, g.width)) {
      const tui_cell *old = tui_canvas_at(c, x + used, y);
      if (old->text && old->cp != ' ') c->collisions++;
      set_glyph(c, x + used, y, st, &g);
      tui_canvas_at(c, x + used, y)->text = true;
    }
    used += g.width;
  }
  return used;
}

int tui_put(tui_canvas *c, int x, int y, tui_style st, const char *s) {
  return put_n(c, x, y, st, s, strlen(s));
}

int tui_putf(tui_canvas *c, int x, int y, tui_style st, const char *fmt, ...) {
  char line[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  return put_n(c, x, y, st, line, strlen(line));
}

int tui_put_fit(tui_canvas *c, int x, int y, int cols, tui_style st, const char *s, size_t len) {
  if (cols <= 0) return 0;
  size_t fit = tui_text_fit(s, len, (size_t)cols);
  if (fit == len) return put_n(c, x, y, st, s, len);
  fit = tui_text_fit(s, len, (size_t)cols - 1);
  int used = put_n(c, x, y, st, s, fit);
  return used + tui_put_cp(c, x + used, y, st, 0x2026);
}

int tui_put_right(tui_canvas *c, int x, int y, tui_style st, const char *s) {
  int cols = (int)tui_text_columns(s, strlen(s));
  return tui_put(c, x - cols, y, st, s);
}

void tui_fill(tui_canvas *c, tui_rect r, tui_style st, uint32_t cp) {
  for (int y = r.y; y < r.y + r.h; y++)
    for (int x = r.x; x < r.x + r.w; x++) tui_put_cp(c, x, y, st, cp);
}

void tui_tint(tui_canvas *c, tui_rect r, tui_style st) {
  for (int y = r.y; y < r.y + r.h; y++)
    for (int x = r.x; x < r.x + r.w; x++)
      if (inside(c, x, y, 1)) tui_canvas_at(c, x, y)->style = (uint8_t)st;
}

tui_rect tui_frame(tui_canvas *c, tui_rect r, const char *title) {
  if (r.w < 2 || r.h < 2) return (tui_rect){ r.x, r.y, 0, 0 };
  int right = r.x + r.w - 1, bottom = r.y + r.h - 1;
  tui_fill(c, (tui_rect){ r.x + 1, r.y, r.w - 2, 1 }, ST_FRAME, 0x2500);
  tui_fill(c, (tui_rect){ r.x + 1, bottom, r.w - 2, 1 }, ST_FRAME, 0x2500);
  tui_fill(c, (tui_rect){ r.x, r.y + 1, 1, r.h - 2 }, ST_FRAME, 0x2502);
  tui_fill(c, (tui_rect){ right, r.y + 1, 1, r.h - 2 }, ST_FRAME, 0x2502);
  tui_put_cp(c, r.x, r.y, ST_FRAME, 0x250C);
  tui_put_cp(c, right, r.y, ST_FRAME, 0x2510);
  tui_put_cp(c, r.x, bottom, ST_FRAME, 0x2514);
  tui_put_cp(c, right, bottom, ST_FRAME, 0x2518);
  if (title && r.w > 6) {
    int n = tui_put_fit(c, r.x + 2, r.y, r.w - 5, ST_TITLE, title, strlen(title));
    tui_put_cp(c, r.x + 1, r.y, ST_FRAME, ' ');
    tui_put_cp(c, r.x + 2 + n, r.y, ST_FRAME, ' ');
  }
  return (tui_rect){ r.x + 1, r.y + 1, r.w - 2, r.h - 2 };
}

void tui_bar(tui_canvas *c, int x, int y, int cols, double part, tui_style st) {
  if (cols <= 0) return;
  if (!(part > 0)) part = 0;
  if (part > 1) part = 1;
  int eighths = (int)lround(part * cols * 8);
  for (int i = 0; i < cols; i++) {
    int fill = eighths - i * 8;
    if (fill >= 8) tui_put_cp(c, x + i, y, st, 0x2588);
    else if (fill > 0) tui_put_cp(c, x + i, y, st, (uint32_t)(0x2590 - fill));
    else tui_put_cp(c, x + i, y, ST_FRAME, 0x00B7);
  }
}

void tui_canvas_text(const tui_canvas *c, fl_buf *out) {
  for (int y = 0; y < c->h; y++) {
    int end = c->w;
    while (end > 0 && tui_canvas_at(c, end - 1, y)->cp == ' ') end--;
    for (int x = 0; x < end; x++) {
      const tui_cell *cell = tui_canvas_at(c, x, y);
      char utf8[4];
      if (cell->cp == 0) continue;
      fl_buf_append(out, utf8, fl_utf8_encode(utf8, cell->cp));
      for (size_t k = 0; k < TUI_COMBINING_MAX && cell->comb[k]; k++)
        fl_buf_append(out, utf8, fl_utf8_encode(utf8, cell->comb[k]));
    }
    fl_buf_putc(out, '\n');
  }
}
