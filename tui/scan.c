/* scan.c - the line scanner. */
#include "tui/scan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static void skip_space(tui_scan *s) {
  while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\r' || *s->p == '\n')) s->p++;
}

bool tui_scan_begin(tui_scan *s, const char *line, size_t len) {
  *s = (tui_scan){ line, line + len, true };
  skip_space(s);
  if (s->p >= s->end || *s->p != '{') return false;
  s->p++;
  return true;
}

bool tui_scan_begin_array(tui_scan *s, tui_slice array) {
  *s = (tui_scan){ array.p, array.p + array.n, true };
  if (array.n < 2 || *s->p != '[') return false;
  s->p++;
  return true;
}

/* p stands after the opening quote; returns the closing one or NULL. */
static const char *string_end(const char *p, const char *end) {
  for (;;) {
    const char *q = memchr(p, '"', (size_t)(end - p));
    if (!q) return NULL;
    const char *b = q;
    while (b > p && b[-1] == '\\') b--;
    if (((q - b) & 1) == 0) return q;
    p = q + 1;
    /* the run of backslashes cannot reach over an escaped quote, so p may start afresh */
  }
}

static bool scan_string(tui_scan *s, tui_slice *out) {
  if (s->p >= s->end || *s->p != '"') return false;
  const char *start = s->p + 1, *q = string_end(start, s->end);
  if (!q) return false;
  *out = (tui_slice){ start, (size_t)(q - start) };
  s->p = q + 1;
  return true;
}

/* An array or object as a whole. Brackets are counted, not paired: what is looked at again is
 * checked then. */
static bool scan_nested(tui_scan *s, tui_slice *out) {
  const char *start = s->p;
  size_t depth = 0;
  while (s->p < s->end) {
    char c = *s->p;
    if (c == '"') {
      const char *q = string_end(s->p + 1, s->end);
      if (!q) return false;
      s->p = q;
    } else if (c == '[' || c == '{') {
      depth++;
    } else if ((c == ']' || c == '}') && --depth == 0) {
      s->p++;
      *out = (tui_slice){ start, (size_t)(s->p - start) };
      return true;
    }
    s->p++;
  }
  return false;
}

static bool scan_word(tui_scan *s, const char *word, size_t n) {
  if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0) return false;
  s->p += n;
  return true;
}

static bool scan_value(tui_scan *s, tui_member *out) {
  if (s->p >= s->end) return false;
  const char *start = s->p;
  switch (*s->p) {
  case '"': out->type = 's'; return scan_string(s, &out->value);
  case '[': out->type = 'a'; return scan_nested(s, &out->value);
  case '{': out->type = 'o'; return scan_nested(s, &out->value);
  case 't': out->type = 't'; return scan_word(s, "true", 4);
  case 'f': out->type = 'f'; return scan_word(s, "false", 5);
  case 'n': out->type = 'z'; return scan_word(s, "null", 4);
  default: break;
  }
  while (s->p < s->end && ((*s->p >= '0' && *s->p <= '9') || *s->p == '-' || *s->p == '+' ||
                           *s->p == '.' || *s->p == 'e' || *s->p == 'E'))
    s->p++;
  out->type = 'n';
  out->value = (tui_slice){ start, (size_t)(s->p - start) };
  return s->p > start;
}

/* Before an item: 1 to go on, 0 at `close`, -1 for damage. */
static int separator(tui_scan *s, char close) {
  skip_space(s);
  if (s->p >= s->end) return -1;
  if (*s->p == close) {
    s->p++;
    return 0;
  }
  if (!s->first) {
    if (*s->p != ',') return -1;
    s->p++;
    skip_space(s);
  }
  s->first = false;
  return 1;
}

int tui_scan_next(tui_scan *s, tui_member *out) {
  int more = separator(s, '}');
  if (more == 0) {
    skip_space(s);
    return s->p == s->end ? 0 : -1;
  }
  if (more < 0 || !scan_string(s, &out->key)) return -1;
  skip_space(s);
  if (s->p >= s->end || *s->p != ':') return -1;
  s->p++;
  skip_space(s);
  return scan_value(s, out) ? 1 : -1;
}

int tui_scan_element(tui_scan *s, tui_member *out) {
  int more = separator(s, ']');
  if (more <= 0) return more;
  out->key = (tui_slice){ NULL, 0 };
  return scan_value(s, out) ? 1 : -1;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Long mantissas and large exponents go to strtod, which rounds rightly. */
static bool number_slow(double *out, tui_slice v) {
  char copy[64];
  if (v.n >= sizeof copy) return false;
  memcpy(copy, v.p, v.n);
  copy[v.n] = '\0';
  char *end;
  *out = strtod(copy, &end);
  return end == copy + v.n && isfinite(*out);
}

bool tui_scan_number(double *out, tui_slice v) {
  static const double ten[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
  const char *p = v.p, *end = v.p + v.n;
  bool negative = p < end && *p == '-';
  if (negative) p++;
  if (p >= end || !is_digit(*p)) return false;
  if (*p == '0' && p + 1 < end && is_digit(p[1])) return false;
  uint64_t mantissa = 0;
  int digits = 0, scale = 0;
  for (; p < end && is_digit(*p); p++, digits++) mantissa = mantissa * 10 + (uint64_t)(*p - '0');
  if (p < end && *p == '.') {
    p++;
    if (p >= end || !is_digit(*p)) return false;
    for (; p < end && is_digit(*p); p++, digits++, scale--)
      mantissa = mantissa * 10 + (uint64_t)(*p - '0');
  }
  if (p < end && (*p == 'e' || *p == 'E')) {
    int exponent = 0, sign = 1;
    p++;
    if (p < end && (*p == '-' || *p == '+')) sign = *p++ == '-' ? -1 : 1;
    if (p >= end || !is_digit(*p)) return false;
    for (; p < end && is_digit(*p); p++)
      if (exponent < 10000) exponent = exponent * 10 + (*p - '0');
    scale += sign * exponent;
  }
  if (p != end) return false;
  /* Both factors exact, one rounding (Clinger's fast path). */
  if (digits > 18 || mantissa > (1ull << 53) || scale < -22 || scale > 22)
    return number_slow(out, v);
  double value = (double)mantissa;
  value = scale < 0 ? value / ten[-scale] : value * ten[scale];
  *out = negative ? -value : value;
  return true;
}

bool tui_scan_u32(uint32_t *out, tui_slice v) {
  uint32_t value = 0;
  if (v.n > 0 && v.n <= 9) {
    size_t i = 0;
    for (; i < v.n && is_digit(v.p[i]); i++) value = value * 10 + (uint32_t)(v.p[i] - '0');
    if (i == v.n) {
      *out = value;
      return true;
    }
  }
  double d;
  if (!tui_scan_number(&d, v) || !(d >= 0 && d < 4294967295.0) || d != floor(d)) return false;
  *out = (uint32_t)d;
  return true;
}

static bool hex4(uint32_t *out, const char *p, const char *end) {
  uint32_t v = 0;
  if (end - p < 4) return false;
  for (int i = 0; i < 4; i++) {
    char c = p[i];
    uint32_t d = is_digit(c)              ? (uint32_t)(c - '0')
                 : (c >= 'a' && c <= 'f') ? (uint32_t)(c - 'a' + 10)
                 : (c >= 'A' && c <= 'F') ? (uint32_t)(c - 'A' + 10)
                                          : 16u;
    if (d > 15) return false;
    v = v * 16 + d;
  }
  *out = v;
  return true;
}

/* p stands after "\u"; returns how many bytes the escape takes from there (0: not hexadecimal). */
static size_t unicode_escape(uint32_t *cp, const char *p, const char *end) {
  if (!hex4(cp, p, end)) return 0;
  uint32_t low;
  if (*cp >= 0xD800 && *cp < 0xDC00 && end - p >= 10 && p[4] == '\\' && p[5] == 'u' &&
      hex4(&low, p + 6, end) && low >= 0xDC00 && low < 0xE000) {
    *cp = 0x10000 + ((*cp - 0xD800) << 10) + (low - 0xDC00);
    return 10;
  }
  return 4;
}

void tui_scan_unescape(fl_buf *out, tui_slice v, size_t max) {
  const char *p = v.p, *end = v.p + v.n;
  size_t start = out->len;
  while (p < end && out->len - start < max) {
    size_t room = max - (out->len - start);
    size_t avail = (size_t)(end - p) < room ? (size_t)(end - p) : room;
    const char *b = memchr(p, '\\', avail);
    size_t plain = b ? (size_t)(b - p) : avail;
    if (!b && plain < (size_t)(end - p)) plain = fl_utf8_whole_prefix(p, plain);
    fl_buf_append(out, p, plain);
    p += plain;
    if (!b || p + 1 >= end) return;
    char c = p[1];
    p += 2;
    uint32_t cp = 0xFFFD;
    switch (c) {
    case 'n': cp = '\n'; break;
    case 't': cp = '\t'; break;
    case 'r': cp = '\r'; break;
    case 'b': cp = '\b'; break;
    case 'f': cp = '\f'; break;
    case 'u': p += unicode_escape(&cp, p, end); break;
    default: cp = (unsigned char)c; break;
    }
    char utf8[4];
    size_t n = fl_utf8_encode(utf8, cp);
    if (n > room) return;
    fl_buf_append(out, utf8, n);
  }
}
