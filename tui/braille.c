/* braille.c - dots and lines. */
#include "tui/braille.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"

int tui_plot_init(tui_plot *p, int w, int h) {
  size_t n = (size_t)w * (size_t)h;
  uint8_t *cells = fl_calloc(n, 2);
  if (!cells) return FL_ENOMEM;
  *p = (tui_plot){ cells, cells + n, w, h };
  return FL_OK;
}

void tui_plot_release(tui_plot *p) {
  fl_free(p->dots);
  *p = (tui_plot){ 0 };
}

void tui_plot_dot(tui_plot *p, int x, int y, tui_style st) {
  static const uint8_t bit[4][2] = {
    { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 }
  };
  if (x < 0 || y < 0 || x >= 2 * p->w || y >= 4 * p->h) return;
  size_t at = (size_t)(y / 4) * (size_t)p->w + (size_t)(x / 2);
  p->dots[at] |= bit[y % 4][x % 2];
  p->style[at] = (uint8_t)st;
}

void tui_plot_line(tui_plot *p, int x0, int y0, int x1, int y1, tui_style st) {
  int dx = abs(x1 - x0), dy = -abs(y1 - y0);
  int sx = x0 < x1 ? 1 : -1, sy = y0 < y1 ? 1 : -1;
  int err = dx + dy;
  for (;;) {
    tui_plot_dot(p, x0, y0, st);
    if (x0 == x1 && y0 == y1) return;
    int e2 = 2 * err;
    if (e2 >= dy) {
      err += dy;
      x0 += sx;
    }
    if (e2 <= dx) {
      err += dx;
      y0 += sy;
    }
  }
}

void tui_plot_draw(const tui_plot *p, tui_canvas *c, int x, int y) {
  for (int row = 0; row < p->h; row++)
    for (int col = 0; col < p->w; col++) {
      size_t at = (size_t)row * (size_t)p->w + (size_t)col;
      if (p->dots[at])
        tui_put_cp(c, x + col, y + row, (tui_style)p->style[at], 0x2800u + p->dots[at]);
    }
}
