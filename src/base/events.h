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
void fl_events_close(fl_events *log);

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
