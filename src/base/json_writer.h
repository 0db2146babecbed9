/* json_writer.h - the one writer of JSON text: events, replies, files whose form is fixed.
 *
 * It writes straight into a buffer and keeps no state. `key` is NULL inside an array and at the
 * top. Commas come by themselves: one is written whenever the buffer ends with a value. Integers
 * print as they are, doubles as base/json prints them, unless a form is asked for. */
#ifndef FL_BASE_JSON_WRITER_H
#define FL_BASE_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

void fl_jsonw_open(fl_buf *b, const char *key, char bracket); /* '{' or '[' */
void fl_jsonw_close(fl_buf *b, char bracket);                 /* '}' or ']' */
void fl_jsonw_str(fl_buf *b, const char *key, const char *s); /* NULL prints null */
void fl_jsonw_strn(fl_buf *b, const char *key, const char *s, size_t len);
void fl_jsonw_u64(fl_buf *b, const char *key, uint64_t v);
void fl_jsonw_i64(fl_buf *b, const char *key, int64_t v);
void fl_jsonw_num(fl_buf *b, const char *key, double v);
/* Finite numbers only: so many decimals, or as many digits as give the same float back. */
void fl_jsonw_fixed(fl_buf *b, const char *key, double v, int decimals);
void fl_jsonw_float(fl_buf *b, const char *key, float v);
void fl_jsonw_bool(fl_buf *b, const char *key, bool v);
void fl_jsonw_null(fl_buf *b, const char *key);
void fl_jsonw_raw(fl_buf *b, const char *key, const char *json, size_t len); /* valid JSON text */

#endif
