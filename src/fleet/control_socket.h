/* control.h - the control socket of a fleet folder: a Unix stream socket named `control`, one JSON
 * object a line each way (flotilla-events(5)). A trainer or a server listens; the dashboard and
 * scripts speak. Where the folder's path is too long for a socket address the socket stands in
 * $XDG_RUNTIME_DIR or /tmp and its path in the file `control.path`.
 *
 * Nothing here waits for a client: a client whose line is too long or who does not read what it is
 * sent is dropped. One thread; fl_control_poll is called between two pieces of work.
 */
#ifndef FL_FLEET_CONTROL_SOCKET_H
#define FL_FLEET_CONTROL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

enum { FL_CONTROL_CLIENTS = 16, FL_CONTROL_LINE = 65536 };

typedef struct fl_control fl_control;
typedef struct fl_control_client fl_control_client;

/* One request. The handler answers with fl_control_send, as often as it likes, or with
 * fl_control_ok or fl_control_fail. A nested fl_control_poll does nothing. */
typedef void fl_control_handler(void *ctx, fl_control_client *client, const char *cmd,
                                const fl_json *request);

/* FL_EFAIL when no socket can be made: a run goes on without one. Stale sockets are replaced; the
 * caller holds the folder's lock. */
int fl_control_open(fl_control **out, const char *dir, fl_control_handler *handler, void *ctx,
                    fl_err *err);
/* Whether somebody listens there. */
bool fl_control_is_taken(const char *dir);
/* Closes and removes the socket, unless another took its place. */
void fl_control_close(fl_control *c);

/* Takes what has arrived; waits up to timeout_ms for something to arrive (0: not at all). */
void fl_control_poll(fl_control *c, int timeout_ms);

/* `text` is one JSON object without newline. */
void fl_control_send(fl_control_client *client, const char *text, size_t len);
/* What was printed into b, or a refusal where there was no memory for it; b is released. */
void fl_control_send_buf(fl_control_client *client, fl_buf *b);
void fl_control_ok(fl_control_client *client);
void fl_control_fail(fl_control_client *client, const char *sentence);
/* False when the client is gone: what streams to it may stop. */
bool fl_control_alive(const fl_control_client *client);

#endif
