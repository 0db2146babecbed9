/* feed.h - one watched fleet: its log followed, decoded, folded up to a cursor, and whether
 * somebody works on it. A cursor at the end follows a live run; anywhere else it shows the past. */
#ifndef TUI_FEED_H
#define TUI_FEED_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/control.h"
#include "tui/reader.h"
#include "tui/snapshot.h"
#include "tui/store.h"

typedef enum tui_feed_state {
  TUI_FEED_WAITING, /* no log, or nothing in it yet */
  TUI_FEED_READING, /* opening a long log */
  TUI_FEED_FOREIGN, /* a file without one event that we know */
  TUI_FEED_LIVE,    /* somebody works and said so recently */
  TUI_FEED_PAUSED,
  TUI_FEED_QUIET, /* no end event and no sign of life, but no proof of death either */
  TUI_FEED_DEAD,  /* the process is gone and said no goodbye */
  TUI_FEED_DONE,
  TUI_FEED_STOPPED,
  TUI_FEED_FAILED
} tui_feed_state;

enum { TUI_DETAILS = 64, TUI_FEEDS_MAX = 8 };

typedef struct tui_detail {
  size_t event;
  fl_json *json; /* NULL: the line cannot be had any more */
  bool used;
} tui_detail;

typedef struct tui_feed {
  char *dir;   /* the fleet folder */
  char *label; /* its last component, for titles; two where several feeds share the last */
  tui_reader reader;
  tui_store store;
  tui_snapshot snap;
  size_t cursor;   /* events shown */
  bool follow;     /* the cursor stays at the end */
  bool caught_up;  /* the log was read to its end once */
  char error[512]; /* of reading, or empty */

  tui_link ping;
  double ping_due;   /* fl_now_s() */
  int pings_missed;  /* looks in vain for an answer to this one */
  bool reachable;    /* the last ping was answered */
  bool refused;      /* the last ping found nobody */
  bool process_gone; /* the pid of the run event is not there any more */
  bool process_here; /* it is there, on this machine; perhaps by now another's */
  bool paused;       /* as the last ping said */
  double heard;      /* fl_now_s() of the last new event; 0: none since opening */

  tui_detail detail[TUI_DETAILS];
  size_t detail_next;
} tui_feed;

/* `path` is a fleet folder or a log file. FL_OK or FL_ENOMEM. */
int tui_feed_open(tui_feed *f, const char *path);
void tui_feed_close(tui_feed *f);
/* Labels with two components the feeds whose last ones are equal; `path` as they were opened with.
 * FL_OK or FL_ENOMEM. */
int tui_feed_tell_apart(tui_feed *f, const char *const *path, size_t n);

/* Reads and folds for at most about `seconds`; checks on the trainer. True when anything that can
 * be seen changed. *more: there is more to read right away. Errors stay in f->error. */
bool tui_feed_poll(tui_feed *f, double seconds, bool *more);
tui_feed_state tui_feed_status(const tui_feed *f);
/* The newest event is a server's. */
bool tui_feed_served(const tui_feed *f);

/* tui_snapshot_seconds_left, but NaN when nobody works any more. */
double tui_feed_seconds_left(const tui_feed *f);

/* Shows the first `event` events (clamped); at the end it follows again. */
void tui_feed_seek(tui_feed *f, size_t event);
/* One round further (+1) or back (-1). */
void tui_feed_step(tui_feed *f, int direction);

/* The whole line of an event, parsed; NULL if it cannot be read again. Kept for a while; valid
 * until TUI_DETAILS others were asked for or the feed is polled. */
const fl_json *tui_feed_detail(tui_feed *f, size_t event);

/* A document's name, cleaned of nothing: draw it with the canvas. "document 7" when unknown. */
const char *tui_feed_doc_name(const tui_feed *f, const tui_doc *d, char *buf, size_t size,
                              size_t *n);

#endif
