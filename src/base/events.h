/* events.h - the event log: one JSON object a line, appended with one write(2) each, so that lines
 * never interleave and a crash can cut only the last one. Kinds and fields: flotilla-events(5).
 *
 * The first two members are always "t" (seconds since 1970, UTC, milliseconds) and "ev" (kind).
 * Emitting never fails the caller: lines that cannot be written are counted, said once on standard
 * error, and noted in the log as soon as it can be written again.
 *
 * The log does not grow for ever: a part that is full becomes the older part, in place of the one
 * before. Several processes may write one log (events_file.h).
 *
 * A server must not wait for a disk: with fl_events_behind lines go through a bounded buffer to a
 * thread that writes them (worker.h).
 */
#ifndef FL_BASE_EVENTS_H
#define FL_BASE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json_writer.h"

/* In a fleet's folder: the log, and its older part. */
#define FL_EVENTS_FILE "events.jsonl"
#define FL_EVENTS_OLDER_FILE "events.1.jsonl"
/* A training's log is its record: hundreds of thousands of rounds, millions of requests. */
#define FL_EVENTS_PART_BYTES ((uint64_t)1 << 30)

typedef struct fl_events fl_events; /* NULL is a valid log that drops everything */

/* Opens for appending; a cut last line is completed with a newline first. A part holds about
 * part_bytes; 0: FL_EVENTS_PART_BYTES. */
int fl_events_open(fl_events **out, const char *path, uint64_t part_bytes, fl_err *err);
/* A log whose lines stay in memory, for one thread; where events are made away from their file. */
int fl_events_memory(fl_events **out, fl_err *err);
/* Its lines so far; valid until the next event. */
const fl_buf *fl_events_lines(const fl_events *log);
/* Writes what waits, for some seconds at most. A thread that hangs in a write is left alone, with
 * what belongs to it. */
void fl_events_close(fl_events *log);
/* Appends whole lines that another log kept. */
void fl_events_append(fl_events *log, const char *lines, size_t len);

/* What a later part begins with, for readers that do not know the earlier ones: `head` emits to
 * `to`, on the thread that writes. Nothing of it is written to the part that is open now. */
typedef void fl_events_head_fn(void *ctx, fl_events *to);
void fl_events_head(fl_events *log, fl_events_head_fn *head, void *ctx);

/* From now on a thread writes, and emitting waits for no disk: lines beyond max_bytes that wait are
 * dropped and counted. */
int fl_events_behind(fl_events *log, size_t max_bytes, fl_err *err);
/* Waits until everything is written, for `seconds` at most; events that are not. */
uint64_t fl_events_drain(fl_events *log, double seconds);
/* Events that could not be written since the log was opened; any thread. */
uint64_t fl_events_lost(const fl_events *log);

/* The path of the older part of a log, allocated; it need not be there. */
char *fl_events_older(const char *path);

/* One event: members are added with fl_event_*, or by base/json_writer.h to its text. */
typedef struct fl_event {
  fl_buf text;
} fl_event;

void fl_event_begin(fl_event *e, const char *kind);
static inline void fl_event_str(fl_event *e, const char *key, const char *value) {
  fl_jsonw_str(&e->text, key, value);
}
static inline void fl_event_strn(fl_event *e, const char *key, const char *value, size_t len) {
  fl_jsonw_strn(&e->text, key, value, len);
}
static inline void fl_event_int(fl_event *e, const char *key, int64_t value) {
  fl_jsonw_i64(&e->text, key, value);
}
/* NaN and infinity print null. */
static inline void fl_event_num(fl_event *e, const char *key, double value) {
  fl_jsonw_num(&e->text, key, value);
}
static inline void fl_event_bool(fl_event *e, const char *key, bool value) {
  fl_jsonw_bool(&e->text, key, value);
}
/* Writes the line and releases `e`. Safe from several threads. */
void fl_event_emit(fl_events *log, fl_event *e);

#endif
