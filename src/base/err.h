/* err.h - the one error convention.
 *
 * A function that can fail returns FL_OK (0) or one of the negative codes below, sets its out
 * parameter only on success and, where it takes an `fl_err *`, leaves one English sentence there:
 * what file or flag, what is wrong, what to do. `err` may be NULL; otherwise it begins zeroed. The
 * first failure wins: while a sentence stands there, fl_fail() leaves it, and a caller adds context
 * with fl_err_prefix(). Whoever goes on after a failure zeroes the fl_err before using it again.
 */
#ifndef FL_BASE_ERR_H
#define FL_BASE_ERR_H

#include <stddef.h>

enum {
  FL_OK = 0,
  FL_EFAIL = -1,  /* the operation failed (I/O, full disk, a peer); exit status 1 */
  FL_EUSAGE = -2, /* a flag or an argument is wrong; exit status 2 */
  FL_EGATE = -3,  /* a gate or an evaluation threshold was not met; exit status 3 */
  FL_EINPUT = -4, /* an input file is damaged or does not fit the model; exit status 4 */
  FL_EINTR = -5,  /* stopped by a signal with the state saved; exit status 130 */
  FL_ENOMEM = -6, /* memory; exit status 1 */
  FL_ENOENT = -7, /* a named thing does not exist; exit status 1, or 2 when a flag named it */
  FL_EBUSY = -8,  /* another process holds the lock; exit status 1 */
  FL_EFULL = -9   /* a bounded resource (pool, queue, context) is full; exit status 1 */
};

#define FL_ERR_TEXT 1024

typedef struct fl_err {
  int code;
  char text[FL_ERR_TEXT];
} fl_err;

/* Sets *err (may be NULL) and returns `code`, for `return fl_fail(err, FL_EINPUT, ...)`. */
int fl_fail(fl_err *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Puts "prefix: " before the text that is there; no effect when err is NULL or empty. */
void fl_err_prefix(fl_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));

/* The process exit status of a code. */
int fl_exit_status(int code);

#endif
