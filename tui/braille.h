/* braille.h - a plot of dots, 2 x 4 a cell (braille patterns; text.h maps them to ASCII). A cell
 * has one colour: that of the curve that touched it last. */
#ifndef TUI_BRAILLE_H
#define TUI_BRAILLE_H

#include <stdint.h>

#include "tui/canvas.h"

typedef struct tui_plot {
  uint8_t *dots, *style; /* [h, w] cells */
  int w, h;              /* cells; the plot is 2w x 4h dots, y downwards */
} tui_plot;

int tui_plot_init(tui_plot *p, int w, int h); /* w, h >= 1 */
void tui_plot_release(tui_plot *p);
void tui_plot_dot(tui_plot *p, int x, int y, tui_style st); /* outside: ignored */
/* A straight line, both ends included. Ends may lie outside, within +-1e6. */
void tui_plot_line(tui_plot *p, int x0, int y0, int x1, int y1, tui_style st);
void tui_plot_draw(const tui_plot *p, tui_canvas *c, int x, int y);

#endif
