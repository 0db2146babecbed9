/* json_check.c - one pass over the text with a cursor; the open brackets stand in a small stack, so
 * depth costs no recursion. */
#include "base/json_check.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

typedef struct cursor {
  const char *text;
  size_t len, at;
  fl_err *err;
} cursor;

static int bad(const cursor *c, const char *what) {
  return fl_fail(c->err, FL_EINPUT, "not valid JSON: %s at byte %zu", what, c->at);
}

static void skip_space(cursor *c) {
  while (c->at < c->len && memchr(" \t\r\n", c->text[c->at], 4) != NULL) c->at++;
}

static bool take(cursor *c, char want) {
  if (c->at >= c->len || c->text[c->at] != want) return false;
  c->at++;
  return true;
}

static size_t digits(cursor *c) {
  size_t from = c->at;
  while (c->at < c->len && c->text[c->at] >= '0' && c->text[c->at] <= '9') c->at++;
  return c->at - from;
}

static int check_number(cursor *c) {
  take(c, '-');
  if (!take(c, '0') && digits(c) == 0) return bad(c, "a value is expected");
  if (take(c, '.') && digits(c) == 0) return bad(c, "a digit is expected");
  if (take(c, 'e') || take(c, 'E')) {
    if (!take(c, '+')) take(c, '-');
    if (digits(c) == 0) return bad(c, "a digit is expected");
  }
  return FL_OK;
}

/* Four hexadecimal digits, or -1. */
static int32_t hex4(cursor *c) {
  int32_t v = 0;
  if (c->len - c->at < 4) return -1;
  for (int i = 0; i < 4; i++) {
    char d = c->text[c->at++];
    if (d >= '0' && d <= '9') v = v * 16 + (d - '0');
    else if (d >= 'a' && d <= 'f') v = v * 16 + (d - 'a' + 10);
    else if (d >= 'A' && d <= 'F') v = v * 16 + (d - 'A' + 10);
    else return -1;
  }
  return v;
}

static int check_escape(cursor *c) {
  if (c->at >= c->len) return bad(c, "a string is not closed");
  char kind = c->text[c->at++];
  if (kind != 'u') {
    if (kind != '\0' && strchr("\"\\/bfnrt", kind) != NULL) return FL_OK;
    return bad(c, "an unknown escape");
  }
  int32_t v = hex4(c);
  if (v < 0) return bad(c, "four hexadecimal digits are expected");
  if (v == 0) return bad(c, "U+0000 in a string");
  if (v < 0xD800 || v > 0xDFFF) return FL_OK;
  if (v > 0xDBFF || !take(c, '\\') || !take(c, 'u')) return bad(c, "half of a surrogate pair");
  v = hex4(c);
  return v >= 0xDC00 && v <= 0xDFFF ? FL_OK : bad(c, "half of a surrogate pair");
}

/* From the opening quote to behind the closing one. */
static int check_string(cursor *c) {
  if (!take(c, '"')) return bad(c, "a string is expected");
  for (;;) {
    if (c->at >= c->len) return bad(c, "a string is not closed");
    unsigned char b = (unsigned char)c->text[c->at];
    if (b == '"') break;
    if (b < 0x20) return bad(c, "a control character in a string");
    if (b == '\\') {
      c->at++;
      int rc = check_escape(c);
      if (rc != FL_OK) return rc;
      continue;
    }
    uint32_t cp;
    bool valid;
    size_t n = fl_utf8_decode(&cp, &valid, c->text + c->at, c->len - c->at);
    if (!valid) return bad(c, "invalid UTF-8");
    c->at += n;
  }
  c->at++;
  return FL_OK;
}

static int check_scalar(cursor *c) {
  static const char *const words[] = { "true", "false", "null" };
  if (c->at < c->len && c->text[c->at] == '"') return check_string(c);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    size_t n = strlen(words[i]);
    if (c->len - c->at >= n && memcmp(c->text + c->at, words[i], n) == 0) {
      c->at += n;
      return FL_OK;
    }
  }
  return check_number(c);
}

/* The key and colon of an object's next member. */
static int check_key(cursor *c) {
  skip_space(c);
  int rc = check_string(c);
  if (rc != FL_OK) return rc;
  skip_space(c);
  return take(c, ':') ? FL_OK : bad(c, "a colon is expected");
}

/* After a value: closes what ends here; *more says whether another value follows. */
static int after_value(cursor *c, const char *closers, size_t *depth, bool *more) {
  *more = false;
  while (*depth > 0) {
    skip_space(c);
    if (take(c, ',')) {
      *more = true;
      return closers[*depth - 1] == '}' ? check_key(c) : FL_OK;
    }
    if (!take(c, closers[*depth - 1])) return bad(c, "a comma or closing bracket is expected");
    --*depth;
  }
  return FL_OK;
}

int fl_json_check(const char *text, size_t len, fl_err *err) {
  cursor c = { .text = text, .len = len, .err = err };
  char closers[FL_JSON_DEPTH];
  size_t depth = 0;
  bool more = true;
  int rc = FL_OK;
  while (rc == FL_OK && more) {
    skip_space(&c);
    bool object = take(&c, '{');
    if (object || take(&c, '[')) {
      if (depth == FL_JSON_DEPTH) return bad(&c, "nesting over 64");
      closers[depth++] = object ? '}' : ']';
      skip_space(&c);
      if (!take(&c, closers[depth - 1])) {
        if (object) rc = check_key(&c);
        continue;
      }
      depth--;
    } else {
      rc = check_scalar(&c);
    }
    if (rc == FL_OK) rc = after_value(&c, closers, &depth, &more);
  }
  if (rc != FL_OK) return rc;
  skip_space(&c);
  return c.at == len ? FL_OK : bad(&c, "more text after the value");
}
