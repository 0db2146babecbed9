/* tui.h - the dashboard: a viewer of event logs (flotilla-events(5)) with a control socket.
 *
 * It only ever reads a fleet folder; what it asks of a trainer goes through the socket. One call
 * runs until the user leaves, the log ends (headless) or a signal comes. Not reentrant: a process
 * has one terminal.
 */
#ifndef FL_TUI_TUI_H
#define FL_TUI_TUI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

typedef enum fl_tui_color {
  FL_TUI_COLOR_AUTO, /* what the terminal can do; none under NO_COLOR */
  FL_TUI_COLOR_NONE,
  FL_TUI_COLOR_8,
  FL_TUI_COLOR_16,
  FL_TUI_COLOR_256
} fl_tui_color;

typedef struct fl_tui_options {
  const char *const *fleets; /* fleet folders (or event logs by name *.jsonl), borrowed */
  size_t n_fleets;           /* 1 to 8 */
  fl_tui_color color;
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
} fl_tui_options;

/* FL_OK: left by the user or at the end of the log. FL_EINTR: ended by SIGTERM, SIGHUP or SIGINT,
 * the terminal restored. FL_EUSAGE, FL_ENOENT, FL_EFAIL with a sentence. */
int fl_tui_watch(const fl_tui_options *opt, fl_err *err);

/* The names of the views, NULL-terminated, in the order of their number keys. */
extern const char *const fl_tui_views[];

#endif
