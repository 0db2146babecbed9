/* job_events.h - the events of one job, from the engine's thread to the connection's thread.
 *
 * The engine's call merges an event into the one that waits and returns at once. A reader that has
 * had a piece pauses for some milliseconds, while further ones gather: waking it for each would
 * cost the engine more than small models take for a token. The first piece and the end of the
 * answer do not wait for that. Unread text is bounded: past max_bytes the job is cancelled, so a
 * reader that does not read holds no slot. The connection's thread waits for events, for its client
 * and for the server's stop at once, so a client that went away is noticed without sending
 * anything.
 *
 * Two owners, each lets go once: the engine with the end, the connection with fl_job_events_unref.
 */
#ifndef FL_HTTP_JOB_EVENTS_H
#define FL_HTTP_JOB_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/engine.h"

typedef struct fl_job_events fl_job_events;

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
/* Moves what waits into *out (zeroed by the caller). *overrun: text was dropped and the job
 * cancelled because nobody read. Where some of it is `lost`, the job is cancelled too. */
void fl_job_events_take(fl_job_events *b, fl_job_event *out, bool *overrun);
/* Whether the client's end is closed. */
bool fl_client_gone(int client);

#endif
