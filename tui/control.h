/* control.h - one request to the trainer or server of a fleet over its control socket, without ever
 * waiting. Each request has its own connection, so that a long answer does not hold up another
 * command, and giving one up is closing it.
 *
 * States: IDLE -> (fl_link_start) -> WAITING -> DONE or FAILED; every state goes back to IDLE by
 * fl_link_close. A reply is lines of JSON; the one with the member "ok" is the last.
 */
#ifndef FL_TUI_CONTROL_H
#define FL_TUI_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

typedef enum fl_link_state {
  FL_LINK_IDLE,
  FL_LINK_WAITING,
  FL_LINK_DONE,
  FL_LINK_FAILED
} fl_link_state;

typedef struct fl_link {
  int fd; /* valid while WAITING */
  fl_link_state state;
  bool absent; /* FAILED because nobody listens */
  fl_buf out, in;
  size_t sent;
  char error[256]; /* FAILED: one sentence */
} fl_link;

/* A line of the reply as parsed; `last` for the one with "ok". */
typedef void fl_link_line(void *ctx, const fl_json *reply, bool last);

/* Sends `request` (adopted, NULL: out of memory) to the socket in the fleet folder `dir`. A running
 * request is given up. The outcome, also a failure to connect, shows in `state`. */
void fl_link_start(fl_link *l, const char *dir, fl_json *request);
/* Moves on; calls `line` for each line that came. True when the state or the reply changed. */
bool fl_link_poll(fl_link *l, fl_link_line *line, void *ctx);
/* The events poll(2) should wait for; 0 when not WAITING. */
short fl_link_events(const fl_link *l);
void fl_link_close(fl_link *l);   /* to IDLE */
void fl_link_release(fl_link *l); /* frees what it holds */

#endif
