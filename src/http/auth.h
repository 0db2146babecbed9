/* auth.h - API keys from a file: one a line, empty lines and lines with # in front are skipped.
 *
 * A key has 8 to 255 printable bytes without spaces. The comparison looks at every byte of every
 * key whatever is presented, so its time tells nothing. */
#ifndef FL_HTTP_AUTH_H
#define FL_HTTP_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct fl_keys fl_keys;

/* FL_EINPUT names the line that is wrong; a file without any key is refused. */
int fl_keys_open(fl_keys **out, const char *path, fl_err *err);
void fl_keys_close(fl_keys *k);
/* The place of the key in the file, 0 upwards; -1 when it is none. `shown` may be NULL. */
int fl_keys_find(const fl_keys *k, const char *shown, size_t len);
/* Stands for the key at place i, never 0, and is the same after the file's order changed. */
uint32_t fl_keys_owner(const fl_keys *k, int i);
/* The key within the value of an Authorization header ("Bearer KEY"), or NULL. */
const char *fl_auth_bearer(const char *header);

#endif
