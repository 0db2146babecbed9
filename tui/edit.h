/* edit.h - one line of input: UTF-8, a cursor, a history of what was entered before. */
#ifndef FL_TUI_EDIT_H
#define FL_TUI_EDIT_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/canvas.h"
#include "tui/keys.h"

enum { FL_EDIT_MAX = 2000, FL_EDIT_HISTORY = 32 };

typedef struct fl_edit {
  char text[FL_EDIT_MAX + 1];     /* valid UTF-8, NUL-terminated */
  size_t len, cursor;             /* bytes; the cursor stands between characters */
  char *history[FL_EDIT_HISTORY]; /* oldest first */
  size_t n_history, browsing;     /* browsing == n_history: the line itself */
} fl_edit;

void fl_edit_set(fl_edit *e, const char *text); /* cut to fit */
void fl_edit_release(fl_edit *e);
/* True if the key belonged to the line. Enter, Esc, Tab and function keys never do. */
bool fl_edit_key(fl_edit *e, const fl_key *k);
/* Puts the text into the history (if it is not its last entry) and empties the line. */
void fl_edit_accept(fl_edit *e);
/* Draws in `cols` columns, scrolled so that the cursor shows; sets the terminal's cursor. */
void fl_edit_draw(const fl_edit *e, fl_canvas *c, int x, int y, int cols, bool focus);

#endif
