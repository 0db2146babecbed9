/* response.h - one answer on its way: from the engine's events to the bytes of a protocol.
 *
 * All of it happens on the connection's thread. A protocol is a table of functions: `parse` reads
 * the body into the request, then either the streaming ones write frames into `out` as events come,
 * or `whole` writes one body after the end. What has been told so far is kept here for both.
 */
#ifndef FL_HTTP_RESPONSE_H
#define FL_HTTP_RESPONSE_H

#include "http/api_request.h"
#include "http/job_events.h"
#include "http/output_parser.h"

typedef struct fl_response fl_response;
typedef struct fl_tool_use {
  char id[40];
  char *name, *args;
} fl_tool_use;

typedef struct fl_protocol {
  const char *name;
  fl_api_family family;
  int (*parse)(fl_api_request *c, fl_api_error *f);
  /* Frames of a stream. */
  void (*begin)(fl_response *t);
  void (*text)(fl_response *t, fl_part part, const char *s, size_t len);
  void (*call)(fl_response *t, const fl_tool_use *u);
  void (*end)(fl_response *t);
  void (*broken)(fl_response *t, const fl_api_error *f); /* after begin */
  void (*ping)(fl_response *t);
  void (*whole)(fl_response *t); /* in place of a stream */
} fl_protocol;

extern const fl_protocol fl_protocol_chat, fl_protocol_responses, fl_protocol_messages;

enum { FL_RESPONSE_CALLS = 64 };

struct fl_response {
  const fl_protocol *protocol;
  fl_api_request request;
  const fl_chat_request *chat; /* what was asked: the request's, then the job's */
  const char *model;           /* name in replies; borrowed */
  char id[40];                 /* request's number as text */
  uint64_t created;            /* seconds since 1970 */
  fl_job_events *events;
  fl_job *job;   /* held to the end, for `chat` */
  fl_buf out;    /* bytes for the client */
  size_t out_at; /* of them gone */
  fl_output_parser parser;
  bool streaming, ended;
  fl_job_event told; /* all so far but the text; tokens whose log probabilities were not shown */
  fl_buf reasoning, content;
  fl_tool_use use[FL_RESPONSE_CALLS];
  size_t n_uses;
  fl_api_error error; /* set when the answer broke */
  /* The protocol's own place in its stream. */
  uint64_t sequence;
  size_t n_items;
  int open_item;    /* 0: none; else what the protocol says */
  size_t item_from; /* where the open item's text begins */
};

/* Submits the request. On failure *f is set and nothing runs. */
int fl_response_start(fl_response *t, fl_engine *e, uint32_t owner, uint64_t number,
                      size_t unread_bytes, fl_api_error *f);
/* Makes the response ready to take events; done by fl_response_start. */
void fl_response_init(fl_response *t);
/* Waits for events (or a ping's time) and turns them into `out`. FL_WAIT_GONE: cancelled, the
 * client left; FL_WAIT_STOP is handled here: the job is cancelled and the answer breaks. */
fl_wait fl_response_advance(fl_response *t, int client, int stop, double heartbeat_s);
/* With `streaming` set from here on, what came so far is written as frames. */
void fl_response_stream(fl_response *t);
/* Cancels what runs and releases everything. */
void fl_response_release(fl_response *t);

/* Shared by the protocols. */
/* Frames of a text/event-stream: JSON on one line between begin and end. */
void fl_sse_begin(fl_response *t, const char *event); /* event: NULL for none */
void fl_sse_end(fl_response *t);
#define FL_SSE_WAITING ": waiting\n\n" /* a comment that keeps proxies and clients waiting */
const char *fl_response_finish(const fl_response *t);   /* stop, length, tool_calls */
void fl_response_extension(fl_response *t, bool ended); /* the `flotilla` member */
void fl_response_logprobs(fl_response *t);              /* the array; forgets what it showed */

#endif
