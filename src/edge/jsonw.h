/* jsonw.h - writing JSON text straight into a buffer, for replies that go out piece by piece.
 *
 * `key` is NULL inside an array and at the top. Commas come by themselves: one is put whenever
 * what stands last is the end of a value. Integers print as they are, doubles as base/json does. */
#ifndef FL_EDGE_JSONW_H
#define FL_EDGE_JSONW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

void fl_jw_open(fl_buf *b, const char *key, char bracket); /* '{' or '[' */
void fl_jw_close(fl_buf *b, char bracket);                 /* '}' or ']' */
void fl_jw_str(fl_buf *b, const char *key, const char *s); /* NULL prints null */
void fl_jw_strn(fl_buf *b, const char *key, const char *s, size_t len);
void fl_jw_u64(fl_buf *b, const char *key, uint64_t v);
void fl_jw_num(fl_buf *b, const char *key, double v);
void fl_jw_bool(fl_buf *b, const char *key, bool v);
void fl_jw_null(fl_buf *b, const char *key);
void fl_jw_raw(fl_buf *b, const char *key, const char *json, size_t len); /* valid JSON text */

#endif
