/* events.h - the event log: one JSON object a line, appended with one write(2) each, so that lines
 * never interleave and a crash can cut only the last one. Kinds and fields: flotilla-events(5).
 *
 * The first two members are always "t" (seconds since 1970, UTC, milliseconds) and "ev" (kind).
 * Emitting never fails the caller: after a write error the log goes quiet and one warning is given.
 */
#ifndef FL_BASE_EVENTS_H
#define FL_BASE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct fl_events fl_events; /* NULL is a valid log that drops everything */

/* Opens for appending; a cut last line is completed with a newline first. */
int fl_events_open(fl_events **out, const char *path, fl_err *err);
/* A log whose lines stay in memory, for one thread; where events are made away from their file. */
int fl_events_memory(fl_events **out, fl_err *err);
/* Its lines so far; valid until the next event. */
const fl_buf *fl_events_lines(const fl_events *log);
void fl_events_close(fl_events *log);
/* Appends whole lines that another log kept. */
void fl_events_append(fl_events *log, const char *lines, size_t len);

typedef struct fl_event {
  fl_buf text;
} fl_event;

void fl_event_begin(fl_event *e, const char *kind);
void fl_event_str(fl_event *e, const char *key, const char *value);
void fl_event_strn(fl_event *e, const char *key, const char *value, size_t len);
void fl_event_int(fl_event *e, const char *key, int64_t value);
void fl_event_num(fl_event *e, const char *key, double value); /* NaN and infinity: null */
void fl_event_bool(fl_event *e, const char *key, bool value);
void fl_event_raw(fl_event *e, const char *key, const char *json); /* `json` is valid JSON text */
/* Writes the line and releases `e`. Safe from several threads. */
void fl_event_emit(fl_events *log, fl_event *e);

#endif
