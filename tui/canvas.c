/* canvas.c - drawing on the grid of cells. */
#include "tui/canvas.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/utf8.h"

static const fl_cell blank = { .cp = ' ', .style = ST_TEXT, .width = 1 };

int fl_canvas_resize(fl_canvas *c, int w, int h) {
  size_t n;
  if (!fl_mul_size((size_t)w, (size_t)h, &n)) return FL_ENOMEM;
  fl_cell *cells = fl_calloc(n, sizeof *cells);
  if (!cells) return FL_ENOMEM;
  fl_free(c->cells);
  c->cells = cells;
  c->w = w;
  c->h = h;
  fl_canvas_clear(c);
  return FL_OK;
}

void fl_canvas_release(fl_canvas *c) {
  fl_free(c->cells);
  *c = (fl_canvas){ 0 };
}

void fl_canvas_clear(fl_canvas *c) {
  size_t n = (size_t)c->w * (size_t)c->h;
  for (size_t i = 0; i < n; i++) c->cells[i] = blank;
  c->clip = (fl_rect){ 0, 0, c->w, c->h };
  c->cursor_x = c->cursor_y = -1;
  c->collisions = 0;
}

void fl_canvas_clip(fl_canvas *c, fl_rect r) {
  int x1 = r.x + r.w, y1 = r.y + r.h;
  if (r.x < 0) r.x = 0;
  if (r.y < 0) r.y = 0;
  if (x1 > c->w) x1 = c->w;
  if (y1 > c->h) y1 = c->h;
  c->clip = (fl_rect){ r.x, r.y, x1 > r.x ? x1 - r.x : 0, y1 > r.y ? y1 - r.y : 0 };
}

static bool inside(const fl_canvas *c, int x, int y, int width) {
  return x >= c->clip.x && y >= c->clip.y && x + width <= c->clip.x + c->clip.w &&
         y < c->clip.y + c->clip.h;
}

/* A wide glyph of which one half is overwritten loses the other. */
static void detach_halves(fl_canvas *c, int x, int y) {
  fl_cell *cell = fl_canvas_at(c, x, y);
  if (cell->cp == 0 && x > 0) {
    fl_cell *left = cell - 1;
    *left = (fl_cell){ .cp = ' ', .style = left->style, .width = 1 };
  } else if (cell->width == 2 && x + 1 < c->w) {
    cell[1] = (fl_cell){ .cp = ' ', .style = cell->style, .width = 1 };
  }
}

static void set_glyph(fl_canvas *c, int x, int y, fl_style st, const fl_glyph *g) {
  if (!inside(c, x, y, g->width)) return;
  fl_glyph ascii = { .width = 1 };
  if (c->ascii && g->cp >= 0x80) {
    ascii.cp = (unsigned char)fl_text_ascii(g->cp);
    /* two columns stay two columns, so that the layout is the same in both modes */
    if (g->width == 2) set_glyph(c, x + 1, y, st, &(fl_glyph){ .cp = '?', .width = 1 });
    g = &ascii;
  }
  detach_halves(c, x, y);
  fl_cell *cell = fl_canvas_at(c, x, y);
  cell->cp = g->cp;
  memcpy(cell->comb, c->ascii ? ascii.comb : g->comb, sizeof cell->comb);
  cell->style = (uint8_t)st;
  cell->width = (uint8_t)g->width;
  cell->text = false;
  if (g->width == 2) {
    detach_halves(c, x + 1, y);
    *fl_canvas_at(c, x + 1, y) = (fl_cell){ .cp = 0, .style = (uint8_t)st, .width = 0 };
    *cell = (fl_cell){ g->cp, { g->comb[0], g->comb[1] }, (uint8_t)st, 2, false };
  }
}

int fl_put_cp(fl_canvas *c, int x, int y, fl_style st, uint32_t cp) {
  int width = fl_text_width(cp);
  if (width < 1) return 0;
  set_glyph(c, x, y, st, &(fl_glyph){ .cp = cp, .width = width });
  return width;
}

static int put_n(fl_canvas *c, int x, int y, fl_style st, const char *s, size_t len) {
  size_t at = 0;
  int used = 0;
  fl_glyph g;
  while (fl_text_next(&g, s, len, &at)) {
    if (inside(c, x + used, y, g.width)) {
      const fl_cell *old = fl_canvas_at(c, x + used, y);
      if (old->text && old->cp != ' ') c->collisions++;
      set_glyph(c, x + used, y, st, &g);
      fl_canvas_at(c, x + used, y)->text = true;
    }
    used += g.width;
  }
  return used;
}

int fl_put(fl_canvas *c, int x, int y, fl_style st, const char *s) {
  return put_n(c, x, y, st, s, strlen(s));
}

int fl_putf(fl_canvas *c, int x, int y, fl_style st, const char *fmt, ...) {
  char line[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  return put_n(c, x, y, st, line, strlen(line));
}

int fl_put_fit(fl_canvas *c, int x, int y, int cols, fl_style st, const char *s, size_t len) {
  if (cols <= 0) return 0;
  size_t fit = fl_text_fit(s, len, (size_t)cols);
  if (fit == len) return put_n(c, x, y, st, s, len);
  fit = fl_text_fit(s, len, (size_t)cols - 1);
  int used = put_n(c, x, y, st, s, fit);
  return used + fl_put_cp(c, x + used, y, st, 0x2026);
}

int fl_put_right(fl_canvas *c, int x, int y, fl_style st, const char *s) {
  int cols = (int)fl_text_columns(s, strlen(s));
  return fl_put(c, x - cols, y, st, s);
}

void fl_fill(fl_canvas *c, fl_rect r, fl_style st, uint32_t cp) {
  for (int y = r.y; y < r.y + r.h; y++)
    for (int x = r.x; x < r.x + r.w; x++) fl_put_cp(c, x, y, st, cp);
}

void fl_tint(fl_canvas *c, fl_rect r, fl_style st) {
  for (int y = r.y; y < r.y + r.h; y++)
    for (int x = r.x; x < r.x + r.w; x++)
      if (inside(c, x, y, 1)) fl_canvas_at(c, x, y)->style = (uint8_t)st;
}

fl_rect fl_frame(fl_canvas *c, fl_rect r, const char *title) {
  if (r.w < 2 || r.h < 2) return (fl_rect){ r.x, r.y, 0, 0 };
  int right = r.x + r.w - 1, bottom = r.y + r.h - 1;
  fl_fill(c, (fl_rect){ r.x + 1, r.y, r.w - 2, 1 }, ST_FRAME, 0x2500);
  fl_fill(c, (fl_rect){ r.x + 1, bottom, r.w - 2, 1 }, ST_FRAME, 0x2500);
  fl_fill(c, (fl_rect){ r.x, r.y + 1, 1, r.h - 2 }, ST_FRAME, 0x2502);
  fl_fill(c, (fl_rect){ right, r.y + 1, 1, r.h - 2 }, ST_FRAME, 0x2502);
  fl_put_cp(c, r.x, r.y, ST_FRAME, 0x250C);
  fl_put_cp(c, right, r.y, ST_FRAME, 0x2510);
  fl_put_cp(c, r.x, bottom, ST_FRAME, 0x2514);
  fl_put_cp(c, right, bottom, ST_FRAME, 0x2518);
  if (title && r.w > 6) {
    int n = fl_put_fit(c, r.x + 2, r.y, r.w - 5, ST_TITLE, title, strlen(title));
    fl_put_cp(c, r.x + 1, r.y, ST_FRAME, ' ');
    fl_put_cp(c, r.x + 2 + n, r.y, ST_FRAME, ' ');
  }
  return (fl_rect){ r.x + 1, r.y + 1, r.w - 2, r.h - 2 };
}

void fl_bar(fl_canvas *c, int x, int y, int cols, double part, fl_style st) {
  if (cols <= 0) return;
  if (!(part > 0)) part = 0;
  if (part > 1) part = 1;
  int eighths = (int)lround(part * cols * 8);
  for (int i = 0; i < cols; i++) {
    int fill = eighths - i * 8;
    if (fill >= 8) fl_put_cp(c, x + i, y, st, 0x2588);
    else if (fill > 0) fl_put_cp(c, x + i, y, st, (uint32_t)(0x2590 - fill));
    else fl_put_cp(c, x + i, y, ST_FRAME, 0x00B7);
  }
}

void fl_canvas_text(const fl_canvas *c, fl_buf *out) {
  for (int y = 0; y < c->h; y++) {
    int end = c->w;
    while (end > 0 && fl_canvas_at(c, end - 1, y)->cp == ' ') end--;
    for (int x = 0; x < end; x++) {
      const fl_cell *cell = fl_canvas_at(c, x, y);
      char utf8[4];
      if (cell->cp == 0) continue;
      fl_buf_append(out, utf8, fl_utf8_encode(utf8, cell->cp));
      for (size_t k = 0; k < FL_COMBINING_MAX && cell->comb[k]; k++)
        fl_buf_append(out, utf8, fl_utf8_encode(utf8, cell->comb[k]));
    }
    fl_buf_putc(out, '\n');
  }
}
