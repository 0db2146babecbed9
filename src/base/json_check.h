/* json_check.h - the grammar of JSON (RFC 8259) as a check that runs before cJSON, which takes
 * much that is not JSON (control characters in strings, "01", NUL as white space) and gives no
 * offsets. */
#ifndef FL_BASE_JSON_CHECK_H
#define FL_BASE_JSON_CHECK_H

#include <stddef.h>

#include "base/err.h"

#define FL_JSON_DEPTH 64

/* FL_OK when text[0..len) is one value, white space around it allowed, strings valid UTF-8 without
 * U+0000 and lone surrogates, arrays and objects nested at most FL_JSON_DEPTH deep. */
int fl_json_check(const char *text, size_t len, fl_err *err);

#endif
