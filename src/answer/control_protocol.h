/* control_protocol.h - what may be asked at the control socket of a fleet, whoever listens there: a
 * table of commands (flotilla-events(5)).
 *
 * A trainer and a server both answer `ping`, `retrieve` and `ask`, each in its own way, and obey
 * commands of their own, which are logged. The lines of the replies are made here alone.
 */
#ifndef FL_ANSWER_CONTROL_PROTOCOL_H
#define FL_ANSWER_CONTROL_PROTOCOL_H

#include "base/events.h"
#include "fleet/control_socket.h"

typedef struct fl_control_command {
  const char *name;
  /* FL_OK: obeyed; else err says in one sentence why not. */
  int (*obey)(void *ctx, const fl_json *request, fl_err *err);
} fl_control_command;

typedef struct fl_control_protocol {
  void *ctx;       /* of all that follows */
  fl_events *log;  /* of obeyed commands; may be NULL */
  const char *all; /* begins the sentence that lists the commands, for an unknown one */
  const fl_control_command *own;
  size_t n_own;
  /* Appends what a ping is told beside the process. */
  void (*status)(void *ctx, fl_buf *out);
  /* Appends the members of a retrieve event from "query" on. */
  int (*retrieve)(void *ctx, const char *query, size_t len, fl_buf *out, fl_err *err);
  /* Sends pieces while they come, by fl_control_token, and ends with fl_control_answer. bare:
   * without documents. */
  int (*ask)(void *ctx, fl_control_client *c, const char *query, size_t len, bool bare,
             fl_err *err);
} fl_control_protocol;

/* The socket's handler; ctx is the fl_control_protocol. */
void fl_control_handle(void *ctx, fl_control_client *c, const char *cmd, const fl_json *request);

void fl_control_token(fl_control_client *c, const char *piece, size_t len);

typedef struct fl_control_reply {
  const char *text;
  size_t len;
  const uint32_t *docs; /* ids */
  size_t n_docs, rows, tokens;
  double ttft_s, seconds;
} fl_control_reply;
void fl_control_answer(fl_control_client *c, const fl_control_reply *r);

#endif
