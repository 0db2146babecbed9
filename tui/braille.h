/* braille.h - a plot of dots, 2 x 4 a cell (braille patterns; text.h maps them to ASCII). A cell
 * has one colour: that of the curve that touched it last. */
#ifndef FL_TUI_BRAILLE_H
#define FL_TUI_BRAILLE_H

#include <stdint.h>

#include "tui/canvas.h"

typedef struct fl_plot {
  uint8_t *dots, *style; /* [h, w] cells */
  int w, h;              /* cells; the plot is 2w x 4h dots, y downwards */
} fl_plot;

int fl_plot_init(fl_plot *p, int w, int h); /* w, h >= 1 */
void fl_plot_release(fl_plot *p);
void fl_plot_dot(fl_plot *p, int x, int y, fl_style st); /* outside: ignored */
/* A straight line, both ends included. Ends may lie outside, within +-1e6. */
void fl_plot_line(fl_plot *p, int x0, int y0, int x1, int y1, fl_style st);
void fl_plot_draw(const fl_plot *p, fl_canvas *c, int x, int y);

#endif
