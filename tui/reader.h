/* reader.h - follows an event log: reads what was appended, survives everything a log goes through.
 *
 *   growing    a last line without its newline waits until the rest has come
 *   truncated  the file is shorter than what was read: the log is read anew (TUI_READER_RESET)
 *   parts      the older one (fl_events_older) is read before the one that the path names
 *   rotated    the path names another file: the old one is read to its end, then the new one;
 *              both stay open, so that lines of the old one can still be read again
 *   absent     no file yet, or none any more: nothing happens until it comes
 *   damaged    lines over TUI_LINE_MAX bytes are left out and counted
 */
#ifndef TUI_READER_H
#define TUI_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "tui/store.h"

typedef struct tui_reader {
  char *path;
  int fd[TUI_FILES_MAX]; /* open files, oldest first; -1: none */
  size_t n_files;        /* the last one is followed */
  dev_t dev;
  ino_t ino;
  char *buf; /* bytes read and not yet taken: the file's [offset, offset + len) */
  size_t len, cap;
  uint64_t offset;
  uint64_t size;  /* of the followed file when last looked at */
  bool skipping;  /* inside a line that is too long */
  bool last_look; /* the path names another file: once more, then that one */
  size_t n_too_long;
} tui_reader;

typedef enum tui_reader_state {
  TUI_READER_IDLE, /* everything there is was read */
  TUI_READER_MORE, /* the time was up; there is more */
  TUI_READER_RESET /* the file was cut short; the store must be emptied, then polled again */
} tui_reader_state;

int tui_reader_open(tui_reader *r,
                    const char *path); /* FL_OK or FL_ENOMEM; the file may be absent */
void tui_reader_close(tui_reader *r);

/* Reads for at most about `seconds` and adds the lines to `store`. Sets *state; FL_OK, FL_ENOMEM,
 * or FL_EFAIL with a sentence when the file cannot be read. */
int tui_reader_poll(tui_reader *r, tui_store *store, double seconds, tui_reader_state *state,
                    fl_err *err);

/* Reads a line again into *out (emptied first). False if its file is gone or has changed. */
bool tui_reader_line(const tui_reader *r, tui_line_ref where, fl_buf *out);

/* 0..1: how much of the file was read. */
double tui_reader_progress(const tui_reader *r);

#endif
