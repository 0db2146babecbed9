/* term.h - the terminal. term.c and input.c are the only files that include curses.
 *
 * Whatever ends the process, the terminal is given back as it was: on return by fl_term_close, on a
 * signal that asks to leave by the caller (fl_term_signal tells), on a crash by a handler that
 * writes a string made beforehand. Only SIGKILL cannot be met.
 */
#ifndef FL_TUI_TERM_H
#define FL_TUI_TERM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "tui/canvas.h"
#include "tui/keys.h"
#include "tui/tui.h"

typedef struct fl_term {
  void *screen;      /* curses' own */
  fl_canvas painted; /* what the terminal shows; h == 0: nothing known */
  int colors;        /* 0: none, 8, 16 or 256 */
  bool utf8;
  int press_x, press_y; /* of the last mouse press, for double clicks */
  double press_t;
} fl_term;

/* FL_EFAIL with a sentence when there is no terminal or its kind is unknown. One at a time. */
int fl_term_open(fl_term *t, bool mouse, fl_err *err);
void fl_term_close(fl_term *t);
/* Chooses among what the terminal can do; AUTO respects NO_COLOR. Repaints everything. */
void fl_term_set_color(fl_term *t, fl_tui_color color);
void fl_term_size(const fl_term *t, int *w, int *h);
/* Brings the screen to the canvas; only cells that changed are sent. */
void fl_term_paint(fl_term *t, const fl_canvas *c);
/* The signal that asked to leave, 0: none. */
int fl_term_signal(void);
/* A descriptor that gets readable when such a signal came. */
int fl_term_signal_fd(void);

/* The next key that is waiting; false: none. Never blocks. FL_KEY_RESIZE when the size changed. */
bool fl_input_next(fl_term *t, fl_key *out);
/* Once, after the screen was opened. */
void fl_input_open(bool mouse);

#endif
