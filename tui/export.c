/* export.c - the canvas as SVG. Block, frame and braille characters are drawn as shapes, because
 * fonts differ in them; everything else is text in a monospaced font, run by run. */
#include "tui/export.h"

#include <string.h>

#include "base/utf8.h"

enum { CELL_W = 9, CELL_H = 18, BASELINE = 13, FONT = 15 };

static void put_glyph(fl_buf *out, const tui_cell *cell) {
  char utf8[4];
  switch (cell->cp) {
  case '&': fl_buf_puts(out, "&amp;"); return;
  case '<': fl_buf_puts(out, "&lt;"); return;
  case '>': fl_buf_puts(out, "&gt;"); return;
  default: break;
  }
  fl_buf_append(out, utf8, fl_utf8_encode(utf8, cell->cp));
  for (size_t i = 0; i < TUI_COMBINING_MAX && cell->comb[i]; i++)
    fl_buf_append(out, utf8, fl_utf8_encode(utf8, cell->comb[i]));
}

static void rect(fl_buf *out, double x, double y, double w, double h, uint32_t rgb) {
  fl_buf_printf(out, "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"#%06x\"/>\n", x, y,
                w, h, rgb);
}

static void braille(fl_buf *out, double x, double y, uint32_t dots, uint32_t rgb) {
  static const struct {
    uint8_t bit, col, row;
  } place[8] = { { 0x01, 0, 0 }, { 0x02, 0, 1 }, { 0x04, 0, 2 }, { 0x40, 0, 3 },
                 { 0x08, 1, 0 }, { 0x10, 1, 1 }, { 0x20, 1, 2 }, { 0x80, 1, 3 } };
  for (int i = 0; i < 8; i++)
    if (dots & place[i].bit)
      fl_buf_printf(out, "<circle cx=\"%g\" cy=\"%g\" r=\"1.4\" fill=\"#%06x\"/>\n",
                    x + CELL_W * (0.25 + 0.5 * place[i].col),
                    y + CELL_H * (0.125 + 0.25 * place[i].row), rgb);
}

/* True if the cell was drawn as a shape. */
static bool shape(fl_buf *out, int col, int row, uint32_t cp, uint32_t rgb) {
  double x = col * CELL_W, y = row * CELL_H, mx = x + CELL_W / 2.0, my = y + CELL_H / 2.0;
  bool left = cp == 0x2500 || cp == 0x2510 || cp == 0x2518;
  bool right = cp == 0x2500 || cp == 0x250C || cp == 0x2514;
  bool up = cp == 0x2502 || cp == 0x2514 || cp == 0x2518;
  bool down = cp == 0x2502 || cp == 0x250C || cp == 0x2510;
  if (cp > 0x2800 && cp <= 0x28FF) {
    braille(out, x, y, cp - 0x2800, rgb);
    return true;
  }
  if (cp >= 0x2588 && cp <= 0x258F) { /* left eighths */
    rect(out, x, y + 2, CELL_W * (0x2590 - cp) / 8.0, CELL_H - 4, rgb);
    return true;
  }
  if (cp >= 0x2581 && cp <= 0x2587) { /* lower eighths */
    double h = CELL_H * (cp - 0x2580) / 8.0;
    rect(out, x, y + CELL_H - h, CELL_W, h, rgb);
    return true;
  }
  if (left) rect(out, x, my, CELL_W / 2.0 + 1, 1, rgb);
  if (right) rect(out, mx, my, CELL_W / 2.0 + 1, 1, rgb);
  if (up) rect(out, mx, y, 1, CELL_H / 2.0 + 1, rgb);
  if (down) rect(out, mx, my, 1, CELL_H / 2.0, rgb);
  return left || right || up || down;
}

static bool plain(const tui_cell *cell) {
  uint32_t cp = cell->cp;
  return !((cp >= 0x2500 && cp <= 0x2590) || (cp >= 0x2800 && cp <= 0x28FF)) && cell->width < 2;
}

/* Equal cells in a row are one shape: a line, a bar, or the background behind blanks. */
static int same_cells(fl_buf *out, const tui_canvas *c, int x, int y) {
  const tui_cell *cell = tui_canvas_at(c, x, y);
  const tui_look *look = tui_style_look(cell->style);
  int end = x + 1;
  double px = x * CELL_W, py = y * CELL_H;
  while (end < c->w && tui_canvas_at(c, end, y)->cp == cell->cp &&
         tui_canvas_at(c, end, y)->style == cell->style)
    end++;
  double w = (end - x) * CELL_W;
  if (look->bg_rgb) rect(out, px, py, w, CELL_H, look->bg_rgb);
  if (cell->cp == 0x2500) rect(out, px, py + CELL_H / 2.0, w, 1, look->rgb);
  if (cell->cp == 0x2588) rect(out, px, py + 2, w, CELL_H - 4, look->rgb);
  return end;
}

/* Draws cells from x on that can share one text element; returns where the next run begins. */
static int run(fl_buf *out, const tui_canvas *c, int x, int y) {
  const tui_cell *cell = tui_canvas_at(c, x, y);
  const tui_look *look = tui_style_look(cell->style);
  int end = x + 1;
  if (cell->cp == 0) return end;
  if (cell->cp == 0x2500 || cell->cp == 0x2588 || cell->cp == ' ') return same_cells(out, c, x, y);
  if (look->bg_rgb)
    rect(out, x * CELL_W, y * CELL_H, CELL_W * (cell->width ? cell->width : 1), CELL_H,
         look->bg_rgb);
  if (shape(out, x, y, cell->cp, look->rgb)) return end;
  if (plain(cell))
    while (end < c->w && tui_canvas_at(c, end, y)->style == cell->style &&
           plain(tui_canvas_at(c, end, y)) && tui_canvas_at(c, end, y)->cp > ' ')
      end++;
  if (look->bg_rgb && end > x + 1)
    rect(out, (x + 1) * CELL_W, y * CELL_H, (end - x - 1) * CELL_W, CELL_H, look->bg_rgb);
  fl_buf_printf(out, "<text x=\"%d\" y=\"%d\" fill=\"#%06x\"%s textLength=\"%d\">", x * CELL_W,
                y * CELL_H + BASELINE, look->rgb,
                look->attr & TUI_ATTR_BOLD ? " font-weight=\"bold\"" : "",
                (cell->width == 2 ? 2 : end - x) * CELL_W);
  for (int i = x; i < end; i++) put_glyph(out, tui_canvas_at(c, i, y));
  fl_buf_puts(out, "</text>\n");
  return end;
}

void tui_export_svg(fl_buf *out, const tui_canvas *c) {
  int w = c->w * CELL_W, h = c->h * CELL_H;
  fl_buf_printf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "viewBox=\"0 0 %d %d\">\n<title>flotilla watch</title>\n"
                "<g font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" "
                "font-size=\"%d\">\n",
                w, h, w, h, FONT);
  rect(out, 0, 0, w, h, 0x141414);
  for (int y = 0; y < c->h; y++)
    for (int x = 0; x < c->w;) x = run(out, c, x, y);
  fl_buf_puts(out, "</g>\n</svg>\n");
}
