/* output_guard.h - a result is never written over what it is made from. */
#ifndef FL_CLI_OUTPUT_GUARD_H
#define FL_CLI_OUTPUT_GUARD_H

#include "base/err.h"

/* Refuses `out`, the value of `option`, where it leads to the same file as `input`, which is
 * `what`. Either may be NULL or not be there. */
int output_apart(const char *option, const char *out, const char *input, const char *what,
                 fl_err *err);
/* Refuses a file of the folder `fleet`, which may be NULL. */
int output_outside(const char *option, const char *out, const char *fleet, fl_err *err);

#endif
