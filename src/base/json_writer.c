/* json_writer.c - see json_writer.h. */
#include "base/json_writer.h"

#include <string.h>

#include "base/json.h"

/* What may stand before a value without a comma: nothing, an opening bracket, a key's colon, and
 * the space after "data:". A value ends with a bracket, a quote, a digit or a letter. */
static void begin(fl_buf *b, const char *key) {
  const char last = b->len > 0 ? b->data[b->len - 1] : '\n';
  if (strchr("{[: \n", last) == NULL) fl_buf_putc(b, ',');
  if (key == NULL) return;
  fl_json_escape(b, key, strlen(key));
  fl_buf_putc(b, ':');
}

void fl_jsonw_open(fl_buf *b, const char *key, char bracket) {
  begin(b, key);
  fl_buf_putc(b, bracket);
}

void fl_jsonw_close(fl_buf *b, char bracket) { fl_buf_putc(b, bracket); }

void fl_jsonw_strn(fl_buf *b, const char *key, const char *s, size_t len) {
  begin(b, key);
  fl_json_escape(b, s, len);
}

void fl_jsonw_str(fl_buf *b, const char *key, const char *s) {
  if (s != NULL) fl_jsonw_strn(b, key, s, strlen(s));
  else fl_jsonw_null(b, key);
}

void fl_jsonw_u64(fl_buf *b, const char *key, uint64_t v) {
  begin(b, key);
  fl_buf_printf(b, "%llu", (unsigned long long)v);
}

void fl_jsonw_i64(fl_buf *b, const char *key, int64_t v) {
  begin(b, key);
  fl_buf_printf(b, "%lld", (long long)v);
}

void fl_jsonw_num(fl_buf *b, const char *key, double v) {
  begin(b, key);
  fl_json_number_text(b, v);
}

void fl_jsonw_fixed(fl_buf *b, const char *key, double v, int decimals) {
  begin(b, key);
  fl_buf_printf(b, "%.*f", decimals, v);
}

void fl_jsonw_float(fl_buf *b, const char *key, float v) {
  begin(b, key);
  fl_buf_printf(b, "%.9g", (double)v);
}

void fl_jsonw_bool(fl_buf *b, const char *key, bool v) {
  begin(b, key);
  fl_buf_puts(b, v ? "true" : "false");
}

void fl_jsonw_null(fl_buf *b, const char *key) {
  begin(b, key);
  fl_buf_puts(b, "null");
}

void fl_jsonw_raw(fl_buf *b, const char *key, const char *json, size_t len) {
  begin(b, key);
  fl_buf_append(b, json, len);
}
