/* job_events.h - what the engine thread tells about one job, until its connection's thread takes
 * it.
 *
 * The engine's callbacks copy and return at once. A reader that has had a piece rests for some
 * milliseconds, while further ones gather: waking it for each would cost the engine more than small
 * models take for a token. The first piece and the end of the answer do not wait for that. Unread
 * text is bounded: past max_bytes the job is cancelled, so a reader that does not read holds no
 * slot. The connection's thread waits on the news, on its client and on the server's stop at once,
 * so a client that went away is noticed without sending anything.
 * Two owners, each lets go once: the engine with on_end, the connection with fl_job_events_unref.
 */
#ifndef FL_HTTP_JOB_EVENTS_H
#define FL_HTTP_JOB_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/engine.h"

typedef struct fl_job_events fl_job_events;

typedef struct fl_job_event_doc {
  uint32_t id;
  char *name;
  fl_evidence why;
  size_t rows;
} fl_job_event_doc;

/* Copies of what the callbacks told. */
typedef struct fl_job_event_token {
  int32_t id;
  float logprob;
  size_t at, len; /* bytes in the news' `bytes` */
} fl_job_event_token;

typedef struct fl_job_event {
  bool started, ended, overrun; /* overrun: cancelled because nobody read */
  fl_job_event_doc *docs;       /* with `started` */
  size_t n_docs, rows, prompt_tokens, cached_tokens;
  double queue_s;
  fl_buf text;                     /* new text */
  fl_job_event_token *token, *top; /* [n_tokens], [n_tokens * n_top] */
  size_t n_tokens, n_top, cap;
  fl_buf bytes;
  fl_finish finish; /* with `ended` */
  char *stop_string, *error;
  int code;
  size_t completion_tokens, drafted, accepted;
  double ttft_s, seconds;
} fl_job_event;

/* rarely: the reader is woken for the end, or when half of max_bytes waits, and not for each piece:
 * a reply in one piece need not take the processor from the engine at every token. */
int fl_job_events_new(fl_job_events **out, size_t max_bytes, bool rarely, fl_err *err);
/* Gives the engine its share: call only right before fl_engine_submit, and unref once more when
 * submit refuses. */
fl_job_sink fl_job_events_sink(fl_job_events *b);
void fl_job_events_unref(fl_job_events *b);

typedef enum fl_wait { FL_WAIT_EVENTS, FL_WAIT_TIME, FL_WAIT_GONE, FL_WAIT_STOP } fl_wait;
/* client, stop: descriptors to watch, -1 for none. */
fl_wait fl_job_events_wait(fl_job_events *b, int client, int stop, double timeout_s);
/* Moves everything that is there into *out (zeroed by the caller). FL_ENOMEM when something was
 * lost for lack of memory; the job is cancelled then. */
int fl_job_events_take(fl_job_events *b, fl_job_event *out);
void fl_job_event_release(fl_job_event *n);
/* Whether the client's end is closed. */
bool fl_client_gone(int client);

#endif
