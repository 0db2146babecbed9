/* app.h - the dashboard without a terminal: what is watched, what is shown, what a key does, how a
 * screen looks. watch.c feeds it keys and time and paints its canvas; tests do the same.
 *
 * Keys go, in this order, to: the open overlay (help, menu, settings, question), the prompt line,
 * a text field that has the focus, the view, the keys that hold everywhere.
 */
#ifndef FL_TUI_APP_H
#define FL_TUI_APP_H

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

enum { FL_TURNS_MAX = 64, FL_HELP_LINES = 24 };

typedef enum fl_overlay {
  FL_OVER_NONE,
  FL_OVER_HELP,
  FL_OVER_MENU,
  FL_OVER_SETUP,
  FL_OVER_STOP
} fl_overlay;
typedef enum fl_prompt { FL_ASK_NOTHING, FL_ASK_SEARCH, FL_ASK_FILTER, FL_ASK_COMMAND } fl_prompt;

typedef struct fl_fleet_state {
  uint32_t *order; /* places of the documents that are shown, sorted */
  size_t n_order, cap_order;
  uint32_t selected; /* document id; FL_NONE: the first */
  size_t top;        /* first row shown */
  char filter[128];
  bool open;     /* the document's details are shown */
  size_t page;   /* rows of the table as drawn last, for page keys */
  fl_rect table; /* rows as drawn last, for the mouse */
} fl_fleet_state;

typedef struct fl_loss_state {
  double x0, x1; /* rounds in view; fit: the whole run */
  bool fit;
  double cursor; /* round; NaN: the last one */
  fl_rect plot;  /* as drawn last, for the mouse */
} fl_loss_state;

typedef struct fl_retrieval_state {
  fl_edit input;
  bool focus;
  fl_link link;
  fl_json *result; /* what is shown: a reply or an event of the log */
  size_t selected; /* of the recent ones, 0 is the newest; SIZE_MAX: the typed one */
  double due;      /* when what was typed is sent, fl_now_s(); 0: nothing */
} fl_retrieval_state;

typedef struct fl_turn {
  char *question;
  fl_buf answer, bare;
  fl_json *source, *bare_source; /* the last line of the reply, NULL before */
  char error[256];
} fl_turn;

typedef struct fl_chat_state {
  fl_edit input;
  bool focus, split;
  fl_link link, bare_link;
  fl_turn turn[FL_TURNS_MAX];
  size_t n_turns;
  size_t scroll; /* lines back from the newest */
} fl_chat_state;

typedef struct fl_study_state {
  size_t selected; /* 0 is the newest */
  bool held;       /* the user moved: new ones do not move the selection */
  uint32_t record; /* then: which */
  size_t page;
  bool rejected_only;
  bool coverage; /* on a narrow screen: the maps stand below, instead of the conversation */
} fl_study_state;

typedef struct fl_app {
  fl_feed feed[FL_FEEDS_MAX];
  size_t n_feeds, current;
  fl_view_id view;
  fl_settings settings;
  bool settings_changed, quit;

  fl_overlay overlay;
  size_t overlay_row;
  size_t help_scroll;
  fl_prompt prompt;
  fl_edit prompt_edit;
  char search[128];
  char message[256];
  bool message_is_error;
  double message_until; /* fl_now_s() */

  bool playing;
  double speed, play_t, last_tick;
  bool leave;      /* by itself, some seconds after the run's end */
  double leave_at; /* fl_now_s(); 0: the run goes on */

  fl_link command;
  char command_name[64];

  fl_fleet_state fleet;
  fl_loss_state loss;
  fl_retrieval_state retrieval;
  fl_chat_state chat;
  fl_study_state study;

  fl_layout layout; /* as drawn last */
  double now;       /* seconds since 1970 that "ago" counts from; NaN: the log's last event */
} fl_app;

/* One view. Adding one is a line in the table of app.c. */
typedef struct fl_view {
  const char *name;  /* of --view */
  const char *title; /* on its tab */
  void (*draw)(fl_app *a, fl_canvas *c);
  bool (*key)(fl_app *a, const fl_key *k); /* true: taken */
  /* a text field takes this character; NULL: the view has none */
  bool (*typing)(const fl_app *a, uint32_t cp);
  const char *const (*help)[2]; /* {key, what it does}, ends with NULL */
} fl_view;

extern const fl_view *const fl_views[FL_VIEWS]; /* in the order of fl_view_id */
extern const fl_view fl_view_fleet, fl_view_loss, fl_view_retrieval, fl_view_chat, fl_view_study,
    fl_view_cost;

/* Opens the feeds. FL_OK or a code with a sentence; fl_app_release in any case. */
int fl_app_init(fl_app *a, const fl_tui_options *opt, fl_err *err);
void fl_app_release(fl_app *a);

/* Reads logs and sockets for at most about `seconds`. True when a redraw is due. *more: call again
 * without waiting. */
bool fl_app_tick(fl_app *a, double seconds, bool *more);
void fl_app_key(fl_app *a, const fl_key *k);
void fl_app_show(fl_app *a, fl_view_id view);
/* Draws the whole screen at the canvas's size. */
void fl_app_draw(fl_app *a, fl_canvas *c);
/* Whole seconds until it leaves by itself; 0: it does not. */
int fl_app_leaves_in(const fl_app *a);
/* Seconds until something moves by itself. */
double fl_app_patience(const fl_app *a);

static inline fl_feed *fl_app_feed(fl_app *a) { return &a->feed[a->current]; }
static inline fl_snapshot *fl_app_snap(fl_app *a) { return &a->feed[a->current].snap; }

/* Whether a focused field takes `cp`: while it is empty, digits still switch views and ? helps. */
bool fl_app_field_takes(const fl_edit *field, bool focus, uint32_t cp);

/* A line for the status row; stays for a few seconds. */
void fl_app_say(fl_app *a, bool is_error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "now" for this feed: the wall clock when live, the log's own time otherwise. */
double fl_app_now(const fl_app *a, const fl_feed *f);

/* actions.c: what is sent to the trainer, and exports. */
bool fl_action_live(const fl_app *a); /* somebody listens */
void fl_action_send(fl_app *a, const char *cmd, const char *key, double value);
void fl_action_mark(fl_app *a, uint32_t doc, bool value);
void fl_action_command(fl_app *a, const char *line); /* ":lr 0.001" without the colon */
bool fl_action_poll(fl_app *a);
void fl_action_export(fl_app *a, bool svg);

/* chrome.c: the rows that every view has. */
void fl_chrome_draw(fl_app *a, fl_canvas *c);
void fl_chrome_too_small(fl_canvas *c);
bool fl_chrome_mouse(fl_app *a, const fl_key *k);

/* overlay.c: help, menu, settings, the question before a stop. */
void fl_overlay_draw(fl_app *a, fl_canvas *c);
bool fl_overlay_key(fl_app *a, const fl_key *k);

/* Replies to what these two views asked; true when one came. */
bool fl_retrieval_poll(fl_app *a);
bool fl_chat_poll(fl_app *a);

/* view_fleet.c, used by other views: the selected document, NULL if there is none. */
fl_doc *fl_fleet_selected(fl_app *a);
void fl_fleet_search(fl_app *a, int direction);

/* document.c: where a document is, as a mark; one document in a frame. */
typedef struct fl_mark {
  uint32_t cp;
  fl_style style;
  const char *word;
} fl_mark;
fl_mark fl_residency_glyph(fl_residency r);
void fl_document_draw(fl_app *a, fl_canvas *c, fl_rect frame);
/* A strip of `cols` cells that shows which parts of a document were studied how often. */
void fl_coverage_strip(fl_canvas *c, int x, int y, int cols, const fl_doc *d);
/* The wish for the layout. */
fl_wish fl_app_wish(const fl_app *a);

#endif
