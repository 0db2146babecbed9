/* events_file.h - the file of an event log and its older part; private to this folder.
 *
 *   PATH             the current part; every writer appends to what the path names at that moment
 *   PATH with .1     the part before (fl_events_older); what it held before is dropped
 *
 * Several processes write one log. Whoever finds the current part full renames it over the older
 * one and makes a new one, holding the lock of the part that is full; a writer locks the part that
 * it has open and looks whether the path still names it, so no part is turned twice and no line
 * goes into one that was turned. A part is never without a name while somebody writes to it: a
 * crash leaves the whole lines of both, and perhaps no current part, which the next writer makes.
 * A lock that is not to be had for long is done without: the line then stands in one of both parts.
 */
#ifndef FL_BASE_EVENTS_FILE_H
#define FL_BASE_EVENTS_FILE_H

#include "base/events.h"

typedef struct fl_events_file fl_events_file;

int fl_events_file_open(fl_events_file **out, const char *path, uint64_t part_bytes, fl_err *err);
/* Warns of lines that are missing at the end. */
void fl_events_file_close(fl_events_file *f);
const char *fl_events_file_path(const fl_events_file *f);
void fl_events_file_head(fl_events_file *f, fl_events_head_fn *head, void *ctx);
/* Writes whole lines; what cannot be written is counted, told once, and noted in the log by the
 * first line that can. One thread at a time. */
void fl_events_file_write(fl_events_file *f, const char *lines, size_t len);
/* Counts lines that somebody else had to drop and told of, before the next write. */
void fl_events_file_missed(fl_events_file *f, uint64_t n_lines);
/* Lines that were counted so far; any thread. */
uint64_t fl_events_file_lost(const fl_events_file *f);

/* Newlines of a text. */
uint64_t fl_events_count(const char *text, size_t len);

#endif
