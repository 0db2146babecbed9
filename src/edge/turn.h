/* turn.h - one answer on its way: from the engine's news to the bytes of a dialect.
 *
 * All of it happens on the connection's thread. The dialect is a table of functions: `parse` reads
 * the body into the call, then either the streaming ones write frames into `out` as news come, or
 * `whole` writes one body after the end. What has been said so far is kept here for both.
 */
#ifndef FL_EDGE_TURN_H
#define FL_EDGE_TURN_H

#include "edge/call.h"
#include "edge/inbox.h"
#include "edge/split.h"

typedef struct fl_turn fl_turn;
typedef struct fl_tool_use {
  char id[40];
  char *name, *args;
} fl_tool_use;

typedef struct fl_dialect {
  const char *name;
  fl_api_family family;
  int (*parse)(fl_call *c, fl_fault *f);
  void (*begin)(fl_turn *t);
  void (*text)(fl_turn *t, fl_part part, const char *s, size_t len);
  void (*call)(fl_turn *t, const fl_tool_use *u);
  void (*end)(fl_turn *t);
  void (*broken)(fl_turn *t, const fl_fault *f); /* after begin */
  void (*ping)(fl_turn *t);
  void (*whole)(fl_turn *t);
} fl_dialect;

extern const fl_dialect fl_dialect_chat, fl_dialect_responses, fl_dialect_messages;

enum { FL_TURN_CALLS = 64 };

struct fl_turn {
  const fl_dialect *d;
  fl_call call;
  const char *model; /* name in replies; borrowed */
  char id[40];       /* request's number as text */
  uint64_t created;  /* seconds since 1970 */
  fl_inbox *inbox;
  fl_job *job;
  fl_buf out;    /* bytes for the client */
  size_t out_at; /* of them gone */
  fl_split split;
  bool streaming, started, ended;
  fl_news start, last; /* documents and counts of the start; counts of the end */
  fl_buf reasoning, content;
  fl_tool_use use[FL_TURN_CALLS];
  size_t n_uses;
  fl_news tokens; /* log probabilities not yet shown */
  fl_fault fault; /* set when the answer broke */
  /* The dialect's own place in its stream. */
  uint64_t sequence;
  size_t n_items;
  int open_item;    /* 0: none; else what the dialect says */
  size_t item_from; /* where the open item's text begins */
};

/* Submits the call. On failure the fault is set and nothing runs. */
int fl_turn_start(fl_turn *t, fl_engine *e, uint32_t owner, uint64_t number, size_t inbox_bytes,
                  fl_fault *f);
/* Makes the turn ready to take news; done by fl_turn_start. */
void fl_turn_hear(fl_turn *t);
/* Waits for news (or a ping's time) and turns them into `out`. FL_WAIT_GONE: cancelled, the client
 * left; FL_WAIT_STOP is handled here: the job is cancelled and the turn ends with a fault. */
fl_wait fl_turn_advance(fl_turn *t, int client, int stop, double heartbeat_s);
/* With `streaming` set from here on, what came so far is written as frames. */
void fl_turn_stream(fl_turn *t);
/* Cancels what runs and releases everything. */
void fl_turn_release(fl_turn *t);

/* Shared by the dialects. */
const char *fl_turn_finish(const fl_turn *t);   /* stop, length, tool_calls */
void fl_turn_extension(fl_turn *t, bool ended); /* the `flotilla` member */
void fl_turn_logprobs(fl_turn *t);              /* the array; forgets what it showed */

#endif
