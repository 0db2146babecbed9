/* feed.h - one watched fleet: its log followed, decoded, folded up to a cursor, and whether
 * somebody works on it. A cursor at the end follows a live run; anywhere else it shows the past. */
#ifndef FL_TUI_FEED_H
#define FL_TUI_FEED_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/control.h"
#include "tui/reader.h"
#include "tui/snapshot.h"
#include "tui/store.h"

typedef enum fl_feed_state {
  FL_FEED_WAITING, /* no log, or nothing in it yet */
  FL_FEED_READING, /* opening a long log */
  FL_FEED_FOREIGN, /* a file without one event that we know */
  FL_FEED_LIVE,    /* somebody works and said so recently */
  FL_FEED_PAUSED,
  FL_FEED_QUIET, /* no end event and no sign of life, but no proof of death either */
  FL_FEED_DEAD,  /* the process is gone and said no goodbye */
  FL_FEED_DONE,
  FL_FEED_STOPPED,
  FL_FEED_FAILED
} fl_feed_state;

enum { FL_DETAILS = 64, FL_FEEDS_MAX = 8 };

typedef struct fl_detail {
  size_t event;
  fl_json *json; /* NULL: the line cannot be had any more */
  bool used;
} fl_detail;

typedef struct fl_feed {
  char *dir;   /* the fleet folder */
  char *label; /* its last component, for titles; two where several feeds share the last */
  fl_reader reader;
  fl_store store;
  fl_snapshot snap;
  size_t cursor;   /* events shown */
  bool follow;     /* the cursor stays at the end */
  bool caught_up;  /* the log was read to its end once */
  char error[512]; /* of reading, or empty */

  fl_link ping;
  double ping_due;   /* fl_now_s() */
  int pings_missed;  /* looks in vain for an answer to this one */
  bool reachable;    /* the last ping was answered */
  bool refused;      /* the last ping found nobody */
  bool process_gone; /* the pid of the run event is not there any more */
  bool process_here; /* it is there, on this machine; perhaps by now another's */
  bool paused;       /* as the last ping said */
  double heard;      /* fl_now_s() of the last new event; 0: none since opening */

  fl_detail detail[FL_DETAILS];
  size_t detail_next;
} fl_feed;

/* `path` is a fleet folder or a log file. FL_OK or FL_ENOMEM. */
int fl_feed_open(fl_feed *f, const char *path);
void fl_feed_close(fl_feed *f);
/* Labels with two components the feeds whose last ones are equal; `path` as they were opened with.
 * FL_OK or FL_ENOMEM. */
int fl_feed_tell_apart(fl_feed *f, const char *const *path, size_t n);

/* Reads and folds for at most about `seconds`; checks on the trainer. True when anything that can
 * be seen changed. *more: there is more to read right away. Errors stay in f->error. */
bool fl_feed_poll(fl_feed *f, double seconds, bool *more);
fl_feed_state fl_feed_status(const fl_feed *f);
/* The newest event is a server's. */
bool fl_feed_served(const fl_feed *f);

/* fl_snapshot_seconds_left, but NaN when nobody works any more. */
double fl_feed_seconds_left(const fl_feed *f);

/* Shows the first `event` events (clamped); at the end it follows again. */
void fl_feed_seek(fl_feed *f, size_t event);
/* One round further (+1) or back (-1). */
void fl_feed_step(fl_feed *f, int direction);

/* The whole line of an event, parsed; NULL if it cannot be read again. Kept for a while; valid
 * until FL_DETAILS others were asked for or the feed is polled. */
const fl_json *fl_feed_detail(fl_feed *f, size_t event);

/* A document's name, cleaned of nothing: draw it with the canvas. "document 7" when unknown. */
const char *fl_feed_doc_name(const fl_feed *f, const fl_doc *d, char *buf, size_t size, size_t *n);

#endif
