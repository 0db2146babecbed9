/* settings.h - what the dashboard remembers between two calls, in
 * $XDG_CONFIG_HOME/flotilla/watch.conf (~/.config without the variable): "name value" lines;
 * unknown names and bad values are ignored, so that versions can share the file. */
#ifndef FL_TUI_SETTINGS_H
#define FL_TUI_SETTINGS_H

#include <stdbool.h>

#include "base/err.h"
#include "tui/tui.h"

typedef struct fl_settings {
  int view; /* fl_view_id */
  int sort; /* column of the fleet table */
  bool sort_down;
  int smoothing; /* half-life in rounds: 0, 5, 20, 100, 500 */
  bool log_scale, held_out;
  int curves; /* what the loss view shows */
  bool ascii;
  int color; /* fl_tui_color */
  bool mouse;
} fl_settings;

void fl_settings_default(fl_settings *s);
/* Missing or unreadable: the defaults stay. */
void fl_settings_load(fl_settings *s);
int fl_settings_save(const fl_settings *s, fl_err *err);

#endif
