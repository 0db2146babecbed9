/* tui.h - the dashboard: a viewer of event logs (flotilla-events(5)) with a control socket.
 *
 * It only ever reads a fleet folder; what it asks of a trainer goes through the socket. One call
 * runs until the user leaves, the log ends (headless) or a signal comes. Not reentrant: a process
 * has one terminal.
 */
#ifndef TUI_TUI_H
#define TUI_TUI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

typedef enum tui_color {
  TUI_COLOR_AUTO, /* what the terminal can do; none under NO_COLOR */
  TUI_COLOR_NONE,
  TUI_COLOR_8,
  TUI_COLOR_16,
  TUI_COLOR_256
} tui_color;

typedef struct tui_options {
  const char *const *fleets; /* fleet folders (or event logs by name *.jsonl), borrowed */
  size_t n_fleets;           /* 1 to 8 */
  tui_color color;
  bool ascii; /* also the case in a locale without UTF-8 */
  bool no_mouse;
  bool headless;    /* lines on `out` instead of a screen; no terminal needed */
  bool once;        /* what is known now, then return */
  bool json;        /* with once: one JSON object; headless: the facts as JSON lines */
  const char *view; /* "fleet" "loss" "retrieval" "chat" "study" "cost"; NULL: as last */
  double speed;     /* > 0: play the log from its beginning at this speed */
  bool leave;       /* some seconds after the run's end, unless a key is pressed */
  bool wait;        /* a fleet folder may not exist yet: wait for it */
  FILE *out;        /* for headless and once; borrowed */
} tui_options;

/* FL_OK: left by the user or at the end of the log. FL_EINTR: ended by SIGTERM, SIGHUP or SIGINT,
 * the terminal restored. FL_EUSAGE, FL_ENOENT, FL_EFAIL with a sentence. */
int tui_watch(const tui_options *opt, fl_err *err);

/* The names of the views, NULL-terminated, in the order of their number keys. */
extern const char *const tui_view_names[];

#endif
