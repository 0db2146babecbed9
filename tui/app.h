/* app.h - the dashboard without a terminal: what is watched, what is shown, what a key does, how a
 * screen looks. watch.c feeds it keys and time and paints its canvas; tests do the same.
 *
 * Keys go, in this order, to: the open overlay (help, menu, settings, question), the prompt line,
 * a text field that has the focus, the view, the keys that hold everywhere.
 */
#ifndef TUI_APP_H
#define TUI_APP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tui/canvas.h"
#include "tui/control.h"
#include "tui/edit.h"
#include "tui/feed.h"
#include "tui/keys.h"
#include "tui/layout.h"
#include "tui/settings.h"
#include "tui/view_state.h"

enum { TUI_HELP_LINES = 24 };

typedef enum tui_overlay {
  TUI_OVER_NONE,
  TUI_OVER_HELP,
  TUI_OVER_MENU,
  TUI_OVER_SETUP,
  TUI_OVER_STOP
} tui_overlay;
typedef enum tui_prompt {
  TUI_ASK_NOTHING,
  TUI_ASK_SEARCH,
  TUI_ASK_FILTER,
  TUI_ASK_COMMAND
} tui_prompt;

typedef struct tui_app {
  tui_feed feed[TUI_FEEDS_MAX];
  size_t n_feeds, current;
  tui_view_id view;
  tui_settings settings;
  bool settings_changed, quit;

  tui_overlay overlay;
  size_t overlay_row;
  size_t help_scroll;
  tui_prompt prompt;
  tui_edit prompt_edit;
  char search[128];
  char message[256];
  bool message_is_error;
  double message_until; /* fl_now_s() */

  bool playing;
  double speed, play_t, last_tick;
  bool leave;      /* by itself, some seconds after the run's end */
  double leave_at; /* fl_now_s(); 0: the run goes on */

  tui_link command;
  char command_name[64];

  tui_fleet_state fleet;
  tui_loss_state loss;
  tui_retrieval_state retrieval;
  tui_chat_state chat;
  tui_study_state study;

  tui_layout layout; /* as drawn last */
  double now;        /* seconds since 1970 that "ago" counts from; NaN: the log's last event */
} tui_app;

/* One view. Adding one is a line in the table of app.c. */
typedef struct tui_view {
  const char *name;  /* of --view */
  const char *title; /* on its tab */
  void (*draw)(tui_app *a, tui_canvas *c);
  bool (*key)(tui_app *a, const tui_key *k); /* true: taken */
  /* a text field takes this character; NULL: the view has none */
  bool (*typing)(const tui_app *a, uint32_t cp);
  const char *const (*help)[2]; /* {key, what it does}, ends with NULL */
} tui_view;

extern const tui_view *const tui_views[TUI_VIEWS]; /* in the order of tui_view_id */
extern const tui_view tui_view_fleet, tui_view_loss, tui_view_retrieval, tui_view_chat,
    tui_view_study, tui_view_cost;

/* Opens the feeds. FL_OK or a code with a sentence; tui_app_release in any case. */
int tui_app_init(tui_app *a, const tui_options *opt, fl_err *err);
void tui_app_release(tui_app *a);

/* Reads logs and sockets for at most about `seconds`. True when a redraw is due. *more: call again
 * without waiting. */
bool tui_app_tick(tui_app *a, double seconds, bool *more);
void tui_app_key(tui_app *a, const tui_key *k);
void tui_app_show(tui_app *a, tui_view_id view);
/* Draws the whole screen at the canvas's size. */
void tui_app_draw(tui_app *a, tui_canvas *c);
/* Whole seconds until it leaves by itself; 0: it does not. */
int tui_app_leaves_in(const tui_app *a);
/* Seconds until something moves by itself. */
double tui_app_patience(const tui_app *a);

static inline tui_feed *tui_app_feed(tui_app *a) { return &a->feed[a->current]; }
static inline tui_snapshot *tui_app_snap(tui_app *a) { return &a->feed[a->current].snap; }

/* Whether a focused field takes `cp`: while it is empty, digits still switch views and ? helps. */
bool tui_app_field_takes(const tui_edit *field, bool focus, uint32_t cp);

/* A line for the status row; stays for a few seconds. */
void tui_app_say(tui_app *a, bool is_error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "now" for this feed: the wall clock when live, the log's own time otherwise. */
double tui_app_now(const tui_app *a, const tui_feed *f);

/* The wish for the layout. */
tui_wish tui_app_wish(const tui_app *a);

#include "tui/parts.h"

#endif
