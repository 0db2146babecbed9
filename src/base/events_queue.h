/* events_queue.h - lines on their way to a file that may hang; private to this folder.
 *
 * Two buffers: callers append to the one, the thread writes the other and then takes the first.
 */
#ifndef FL_BASE_EVENTS_QUEUE_H
#define FL_BASE_EVENTS_QUEUE_H

#include "base/events_file.h"

typedef struct fl_events_queue fl_events_queue;

/* The file is the queue's from here on success. */
int fl_events_queue_new(fl_events_queue **out, fl_events_file *file, size_t max_bytes, fl_err *err);
/* Any thread; never waits for the file. */
void fl_events_queue_put(fl_events_queue *q, const char *lines, size_t len);
/* Waits until all is written, for `seconds` at most; lines that are not. */
uint64_t fl_events_queue_drain(fl_events_queue *q, double seconds);
/* Lines lost so far, here and in the file. */
uint64_t fl_events_queue_lost(fl_events_queue *q);
/* Ends the thread and closes the file; where it hangs for longer than `seconds`, or did when the
 * queue was drained last, both are left. */
void fl_events_queue_close(fl_events_queue *q, double seconds);

#endif
