/* json.h - JSON over cJSON; the only file that includes it. A node belongs to its root; the root is
 * released with fl_json_free. Getters never fail loudly: they return false/NULL when the key is
 * missing or of another type, and leave *out untouched. */
#ifndef FL_BASE_JSON_H
#define FL_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct cJSON fl_json;

/* Parses exactly one value of `len` bytes (white space around it allowed); invalid UTF-8, trailing
 * bytes, nesting over 64 and duplicate keys are FL_EINPUT with the byte offset where known. */
int fl_json_parse(fl_json **out, const char *text, size_t len, fl_err *err);
void fl_json_free(fl_json *root);

fl_json *fl_json_object(void);
fl_json *fl_json_array(void);
fl_json *fl_json_number(double v);

const fl_json *fl_json_get(const fl_json *obj, const char *key); /* NULL if absent */
bool fl_json_get_str(const fl_json *obj, const char *key, const char **out);
bool fl_json_get_num(const fl_json *obj, const char *key, double *out);
/* Exact integers in 0..2^53 only. */
bool fl_json_get_u64(const fl_json *obj, const char *key, uint64_t *out);
bool fl_json_get_bool(const fl_json *obj, const char *key, bool *out);
const char *fl_json_as_str(const fl_json *v); /* NULL if no string */
bool fl_json_as_num(const fl_json *v, double *out);
bool fl_json_is_obj(const fl_json *v);
bool fl_json_is_arr(const fl_json *v);
size_t fl_json_len(const fl_json *arr_or_obj);
const fl_json *fl_json_at(const fl_json *arr, size_t i); /* O(n); iterate with first/next */
const fl_json *fl_json_first(const fl_json *arr_or_obj);
const fl_json *fl_json_next(const fl_json *v);
const char *fl_json_key(const fl_json *member);

/* Setters replace an existing key. `v` is adopted, freed on failure. False on lack of memory. */
bool fl_json_set(fl_json *obj, const char *key, fl_json *v);
bool fl_json_set_str(fl_json *obj, const char *key, const char *s);
bool fl_json_set_num(fl_json *obj, const char *key, double v);
bool fl_json_set_u64(fl_json *obj, const char *key, uint64_t v); /* false above 2^53 too */
bool fl_json_set_bool(fl_json *obj, const char *key, bool v);
bool fl_json_push(fl_json *arr, fl_json *v);
fl_json *fl_json_dup(const fl_json *v);
void fl_json_del(fl_json *obj, const char *key);

/* Appends the text of `v`; pretty = two-space indentation and a final newline. Integers print as
 * integers, other numbers with as many digits as give the same double back; NaN and infinities
 * print as null. */
void fl_json_print(fl_buf *out, const fl_json *v, bool pretty);
/* The same, pretty, as part of a larger text: lines after the first are indented as at this depth,
 * and no newline ends it. */
void fl_json_print_inside(fl_buf *out, const fl_json *v, size_t depth);
/* The text of one number, as in fl_json_print. */
void fl_json_number_text(fl_buf *out, double v);
/* Appends `s` (len bytes, any content) as a JSON string in quotes; invalid UTF-8 becomes U+FFFD. */
void fl_json_escape(fl_buf *out, const char *s, size_t len);

#endif
