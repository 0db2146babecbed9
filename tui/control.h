/* control.h - one request to the trainer or server of a fleet over its control socket, without ever
 * waiting. Each request has its own connection, so that a long answer does not hold up another
 * command, and giving one up is closing it.
 *
 * States: IDLE -> (tui_link_start) -> WAITING -> DONE or FAILED; every state goes back to IDLE by
 * tui_link_close. A reply is lines of JSON; the one with the member "ok" is the last.
 */
#ifndef TUI_CONTROL_H
#define TUI_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

typedef enum tui_link_state {
  TUI_LINK_IDLE,
  TUI_LINK_WAITING,
  TUI_LINK_DONE,
  TUI_LINK_FAILED
} tui_link_state;

typedef struct tui_link {
  int fd; /* valid while WAITING */
  tui_link_state state;
  bool absent; /* FAILED because nobody listens */
  fl_buf out, in;
  size_t sent;
  char error[256]; /* FAILED: one sentence */
} tui_link;

/* A line of the reply as parsed; `last` for the one with "ok". */
typedef void tui_link_line(void *ctx, const fl_json *reply, bool last);

/* Sends `request` (adopted, NULL: out of memory) to the socket in the fleet folder `dir`. A running
 * request is given up. The outcome, also a failure to connect, shows in `state`. */
void tui_link_start(tui_link *l, const char *dir, fl_json *request);
/* Moves on; calls `line` for each line that came. True when the state or the reply changed. */
bool tui_link_poll(tui_link *l, tui_link_line *line, void *ctx);
/* The events poll(2) should wait for; 0 when not WAITING. */
short tui_link_events(const tui_link *l);
void tui_link_close(tui_link *l);   /* to IDLE */
void tui_link_release(tui_link *l); /* frees what it holds */

#endif
