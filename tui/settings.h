/* settings.h - what the dashboard remembers between two calls, in
 * $XDG_CONFIG_HOME/flotilla/watch.conf (~/.config without the variable): "name value" lines;
 * unknown names and bad values are ignored, so that versions can share the file. */
#ifndef TUI_SETTINGS_H
#define TUI_SETTINGS_H

#include <stdbool.h>

#include "base/err.h"
#include "tui/tui.h"

typedef struct tui_settings {
  int view; /* tui_view_id */
  int sort; /* column of the fleet table */
  bool sort_down;
  int smoothing; /* half-life in rounds: 0, 5, 20, 100, 500 */
  bool log_scale, held_out;
  int curves; /* what the loss view shows */
  bool ascii;
  int color; /* tui_color */
  bool mouse;
} tui_settings;

void tui_settings_default(tui_settings *s);
/* Missing or unreadable: the defaults stay. */
void tui_settings_load(tui_settings *s);
int tui_settings_save(const tui_settings *s, fl_err *err);

#endif
