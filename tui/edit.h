/* edit.h - one line of input: UTF-8, a cursor, a history of what was entered before. */
#ifndef TUI_EDIT_H
#define TUI_EDIT_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/canvas.h"
#include "tui/keys.h"

enum { TUI_EDIT_MAX = 2000, TUI_EDIT_HISTORY = 32 };

typedef struct tui_edit {
  char text[TUI_EDIT_MAX + 1];     /* valid UTF-8, NUL-terminated */
  size_t len, cursor;              /* bytes; the cursor stands between characters */
  char *history[TUI_EDIT_HISTORY]; /* oldest first */
  size_t n_history, browsing;      /* browsing == n_history: the line itself */
} tui_edit;

void tui_edit_set(tui_edit *e, const char *text); /* cut to fit */
void tui_edit_release(tui_edit *e);
/* True if the key belonged to the line. Enter, Esc, Tab and function keys never do. */
bool tui_edit_key(tui_edit *e, const tui_key *k);
/* Puts the text into the history (if it is not its last entry) and empties the line. */
void tui_edit_accept(tui_edit *e);
/* Draws in `cols` columns, scrolled so that the cursor shows; sets the terminal's cursor. */
void tui_edit_draw(const tui_edit *e, tui_canvas *c, int x, int y, int cols, bool focus);

#endif
