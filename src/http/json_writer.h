/* json_writer.h - writing JSON text straight into a buffer, for replies that go out piece by piece.
 *
 * `key` is NULL inside an array and at the top. Commas come by themselves: one is put whenever
 * what stands last is the end of a value. Integers print as they are, doubles as base/json does. */
#ifndef FL_HTTP_JSON_WRITER_H
#define FL_HTTP_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

void fl_jsonw_open(fl_buf *b, const char *key, char bracket); /* '{' or '[' */
void fl_jsonw_close(fl_buf *b, char bracket);                 /* '}' or ']' */
void fl_jsonw_str(fl_buf *b, const char *key, const char *s); /* NULL prints null */
void fl_jsonw_strn(fl_buf *b, const char *key, const char *s, size_t len);
void fl_jsonw_u64(fl_buf *b, const char *key, uint64_t v);
void fl_jsonw_num(fl_buf *b, const char *key, double v);
void fl_jsonw_bool(fl_buf *b, const char *key, bool v);
void fl_jsonw_null(fl_buf *b, const char *key);
void fl_jsonw_raw(fl_buf *b, const char *key, const char *json, size_t len); /* valid JSON text */

#endif
