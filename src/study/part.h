/* part.h - what a study has made so far, in a file FILE.part beside the one that is asked for, so
 * that a kill or a loss of power costs one batch at the most.
 *
 * The file is append-only: the lines of a batch and behind them a mark that the batch is whole,
 * written and synced together. It begins with the mark of no conversations:
 *   {"name":"","hash":"","skipped":true,"study":"xxh3:...","tried":0,"written":0,"sum":"xxh3:..."}
 * `study` is the identity of what was asked for, `tried` and `written` count conversations since
 * the beginning, `sum` is the hash of all that stands between the mark before and itself. What
 * follows the last mark that holds was cut by a crash and is cut off. To other readers of study
 * files a mark is the line of a conversation that did not come out, so that a part reads like any
 * study file.
 *
 * One process at a time: the file is locked while it is open.
 */
#ifndef FL_STUDY_PART_H
#define FL_STUDY_PART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct fl_part fl_part;

typedef struct fl_part_count {
  size_t tried, written; /* conversations; those that did not come out were tried alone */
} fl_part_count;

/* The name of FILE's part, allocated; NULL: no memory. */
char *fl_part_path(const char *file);

/* Opens the part of `file` or makes it, with the permissions of `file` where that is there. *held =
 * what it holds: the study goes on at conversation held->tried. `study` is at most FL_HASH_TEXT - 1
 * bytes. FL_EINPUT, and nothing is changed, where it is of another study or no part; FL_EBUSY while
 * another process has it open; FL_EFAIL also where `file` cannot be replaced. */
int fl_part_open(fl_part **out, fl_part_count *held, const char *file, const char *study,
                 fl_err *err);
/* Appends the lines of a batch and their mark, and syncs. After a failure the part holds what it
 * held before. */
int fl_part_add(fl_part *p, const fl_buf *lines, const fl_part_count *now, fl_err *err);
/* Replaces `file` by the part's conversations, without the marks. The part stays as it is. */
int fl_part_publish(fl_part *p, fl_err *err);
/* Closes the part (NULL is fine). It stays on disk while it holds anything, and `done` is false. */
void fl_part_close(fl_part *p, bool done);

#endif
