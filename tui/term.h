/* term.h - the terminal. term.c and input.c are the only files that include curses.
 *
 * Whatever ends the process, the terminal is given back as it was: on return by tui_term_close, on
 * a signal that asks to leave by the caller (tui_term_signal tells), on a crash by a handler that
 * writes a string made beforehand. Only SIGKILL cannot be met.
 */
#ifndef TUI_TERM_H
#define TUI_TERM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "tui/canvas.h"
#include "tui/keys.h"
#include "tui/tui.h"

typedef struct tui_term {
  void *screen;       /* curses' own */
  tui_canvas painted; /* what the terminal shows; h == 0: nothing known */
  int colors;         /* 0: none, 8, 16 or 256 */
  bool utf8;
  int press_x, press_y; /* of the last mouse press, for double clicks */
  double press_t;
} tui_term;

/* FL_EFAIL with a sentence when there is no terminal or its kind is unknown. One at a time. */
int tui_term_open(tui_term *t, bool mouse, fl_err *err);
void tui_term_close(tui_term *t);
/* Chooses among what the terminal can do; AUTO respects NO_COLOR. Repaints everything. */
void tui_term_set_color(tui_term *t, tui_color color);
void tui_term_size(const tui_term *t, int *w, int *h);
/* Brings the screen to the canvas; only cells that changed are sent. */
void tui_term_paint(tui_term *t, const tui_canvas *c);
/* The signal that asked to leave, 0: none. */
int tui_term_signal(void);
/* A descriptor that gets readable when such a signal came. */
int tui_term_signal_fd(void);

/* The next key that is waiting; false: none. Never blocks. TUI_KEY_RESIZE when the size changed. */
bool tui_input_next(tui_term *t, tui_key *out);
/* Once, after the screen was opened. */
void tui_input_open(bool mouse);

#endif
