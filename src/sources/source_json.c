/* source_json.c - JSON and JSON lines as an outline that a model reads easily:
 *
 *   {"ship": {"name": "Alma", "crew": ["Ida", "Jon"]}}   ship:
 *                                                          name: Alma
 *                                                          crew:
 *                                                            - Ida
 *                                                            - Jon
 *
 * One pass over the text, no tree: memory does not depend on the number of values, and numbers keep
 * their digits. The grammar is RFC 8259's; nesting is limited. */
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "sources/kind.h"
#include "sources/source.h"

enum { MAX_NESTING = 256, INDENT_LIMIT = 24 /* deeper levels are not indented further */ };

typedef struct scan {
  const char *path;
  const char *s, *end;
  size_t line;
  fl_buf *out;
  fl_err *err;
  int depth;
} scan;

static int wrong(const scan *sc, const char *what) {
  return fl_fail(sc->err, FL_EINPUT, "%s: line %zu is not valid JSON: %s; mend it or leave it out",
                 sc->path, sc->line, what);
}

static void blanks(scan *sc) {
  for (; sc->s < sc->end && strchr(" \t\r\n", *sc->s) && *sc->s; sc->s++)
    if (*sc->s == '\n') sc->line++;
}

static bool take(scan *sc, char c) {
  if (sc->s >= sc->end || *sc->s != c) return false;
  sc->s++;
  return true;
}

static void indent(const scan *sc, int level) {
  for (int i = 0; i < level && i < INDENT_LIMIT; i++) fl_buf_puts(sc->out, "  ");
}

/* --- scalars --- */

static int hex4(scan *sc, uint32_t *out) {
  uint32_t v = 0;
  for (int i = 0; i < 4; i++, sc->s++) {
    char c = sc->s < sc->end ? *sc->s : 0;
    uint32_t d = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                 : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                 : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                        : 16;
    if (d == 16) return wrong(sc, "\\u without four hexadecimal digits");
    v = v * 16 + d;
  }
  *out = v;
  return FL_OK;
}

/* After "\u". A pair of surrogates is one character; one alone becomes U+FFFD. */
static int escaped_unicode(scan *sc, uint32_t *cp) {
  int rc = hex4(sc, cp);
  if (rc != FL_OK || *cp < 0xD800 || *cp > 0xDBFF) return rc;
  if (sc->end - sc->s < 6 || sc->s[0] != '\\' || sc->s[1] != 'u') return FL_OK;
  const char *before = sc->s;
  uint32_t low;
  sc->s += 2;
  rc = hex4(sc, &low);
  if (rc != FL_OK) return rc;
  if (low >= 0xDC00 && low <= 0xDFFF) *cp = 0x10000 + ((*cp - 0xD800) << 10) + (low - 0xDC00);
  else sc->s = before;
  return FL_OK;
}

static void put_char(const scan *sc, uint32_t cp, int level) {
  char utf8[4];
  if (cp == '\n') { /* a text of several lines stays under its name */
    fl_buf_putc(sc->out, '\n');
    indent(sc, level);
  } else if (cp >= 0x20 || cp == '\t') {
    fl_buf_append(sc->out, utf8, fl_utf8_encode(utf8, cp));
  }
}

static int escape(scan *sc, int level) {
  static const char letters[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
  uint32_t cp;
  if (sc->s >= sc->end) return wrong(sc, "a string without its end");
  char c = *sc->s++;
  if (c == 'u') {
    int rc = escaped_unicode(sc, &cp);
    if (rc != FL_OK) return rc;
    put_char(sc, cp, level);
    return FL_OK;
  }
  const char *at = c ? strchr(letters, c) : NULL;
  if (at == NULL) return wrong(sc, "a backslash before a character that needs none");
  put_char(sc, (unsigned char)means[at - letters], level);
  return FL_OK;
}

/* After the opening quote. */
static int string(scan *sc, int level) {
  while (sc->s < sc->end) {
    const char *from = sc->s;
    while (sc->s < sc->end && *sc->s != '"' && *sc->s != '\\' && (unsigned char)*sc->s >= 0x20)
      sc->s++;
    fl_buf_append(sc->out, from, (size_t)(sc->s - from));
    if (sc->s >= sc->end) break;
    if (take(sc, '"')) return FL_OK;
    if ((unsigned char)*sc->s < 0x20) return wrong(sc, "a line break or tab inside a string");
    sc->s++;
    int rc = escape(sc, level); /* a line break becomes one with an indent */
    if (rc == FL_OK && sc->out->len > FL_SOURCE_MAX_BYTES)
      rc = fl_source_too_much(sc->path, sc->err);
    if (rc != FL_OK) return rc;
  }
  return wrong(sc, "a string without its end");
}

static bool digits(scan *sc) {
  const char *from = sc->s;
  while (sc->s < sc->end && *sc->s >= '0' && *sc->s <= '9') sc->s++;
  return sc->s > from;
}

static int number(scan *sc) {
  const char *from = sc->s;
  take(sc, '-');
  bool zero = sc->s < sc->end && *sc->s == '0';
  const char *whole = sc->s;
  bool ok = digits(sc) && !(zero && sc->s - whole > 1);
  if (ok && take(sc, '.')) ok = digits(sc);
  if (ok && (take(sc, 'e') || take(sc, 'E'))) {
    if (!take(sc, '+')) take(sc, '-');
    ok = digits(sc);
  }
  if (!ok) return wrong(sc, "a value was expected");
  fl_buf_append(sc->out, from, (size_t)(sc->s - from));
  return FL_OK;
}

static int scalar(scan *sc, int level) {
  static const char *const words[] = { "true", "false", "null" };
  if (take(sc, '"')) return string(sc, level);
  for (size_t i = 0; i < 3; i++) {
    size_t n = strlen(words[i]);
    if ((size_t)(sc->end - sc->s) >= n && memcmp(sc->s, words[i], n) == 0) {
      fl_buf_puts(sc->out, words[i]);
      sc->s += n;
      return FL_OK;
    }
  }
  return number(sc);
}

/* --- containers --- */

static int value(scan *sc, int level, bool named);

/* The key and the colon of a member, written. */
static int member_name(scan *sc, int level) {
  blanks(sc);
  if (!take(sc, '"')) return wrong(sc, "a name in quotes was expected");
  int rc = string(sc, level);
  blanks(sc);
  if (rc == FL_OK && !take(sc, ':')) return wrong(sc, "a colon was expected");
  fl_buf_putc(sc->out, ':');
  return rc;
}

static int items(scan *sc, char close, int level) {
  for (bool first = true;; first = false) {
    blanks(sc);
    if (first && take(sc, close)) return FL_OK;
    if (!first) {
      if (take(sc, close)) return FL_OK;
      if (!take(sc, ','))
        return wrong(sc, close == '}' ? "a comma or } was expected" : "a comma or ] was expected");
    }
    if (sc->out->len > FL_SOURCE_MAX_BYTES) return fl_source_too_much(sc->path, sc->err);
    if (sc->out->len > 0 && sc->out->data[sc->out->len - 1] != '\n') fl_buf_putc(sc->out, '\n');
    indent(sc, level);
    int rc = FL_OK;
    if (close == '}') rc = member_name(sc, level + 1);
    else fl_buf_putc(sc->out, '-');
    if (rc == FL_OK) rc = value(sc, level, true);
    if (rc != FL_OK) return rc;
  }
}

/* `named`: "name:" or "-" stands before it on the line. */
static int value(scan *sc, int level, bool named) {
  blanks(sc);
  char c = sc->s < sc->end ? *sc->s : 0;
  if (c != '{' && c != '[') {
    if (named) fl_buf_putc(sc->out, ' ');
    return scalar(sc, level + 1);
  }
  if (++sc->depth > MAX_NESTING) return wrong(sc, "values nested more than 256 deep");
  sc->s++;
  int rc = items(sc, c == '{' ? '}' : ']', named ? level + 1 : level);
  sc->depth--;
  return rc;
}

/* --- files --- */

static int finish(scan *sc, int rc) {
  if (rc == FL_OK && sc->out->len > FL_SOURCE_MAX_BYTES)
    return fl_source_too_much(sc->path, sc->err);
  if (rc == FL_OK && sc->out->len > 0) fl_buf_putc(sc->out, '\n');
  return rc;
}

static int read_json(fl_buf *text, const fl_source_input *in, fl_err *err) {
  fl_buf utf8 = { 0 };
  int rc = fl_source_decode(&utf8, in, err);
  if (rc == FL_OK && utf8.len > 0) {
    scan sc = { in->path, utf8.data, utf8.data + utf8.len, 1, text, err, 0 };
    rc = value(&sc, 0, false);
    blanks(&sc);
    if (rc == FL_OK && sc.s < sc.end)
      rc = wrong(&sc, "something follows the value (one value a line is JSONL: name it .jsonl)");
    rc = finish(&sc, rc);
  }
  fl_buf_release(&utf8);
  return rc;
}

static int read_jsonl(fl_buf *text, const fl_source_input *in, fl_err *err) {
  fl_buf utf8 = { 0 };
  int rc = fl_source_decode(&utf8, in, err);
  const char *s = utf8.data, *end = utf8.data ? utf8.data + utf8.len : NULL;
  scan sc = { in->path, s, end, 1, text, err, 0 };
  while (rc == FL_OK && s < end) {
    const char *newline = memchr(s, '\n', (size_t)(end - s));
    sc.s = s;
    sc.end = newline ? newline : end;
    s = sc.end + 1;
    blanks(&sc);
    if (sc.s < sc.end) {
      if (text->len > 0) fl_buf_putc(text, '\n'); /* an empty line between two records */
      rc = value(&sc, 0, false);
      blanks(&sc);
      if (rc == FL_OK && sc.s < sc.end) rc = wrong(&sc, "something follows the value");
      rc = finish(&sc, rc);
    }
    sc.line++;
  }
  fl_buf_release(&utf8);
  return rc;
}

static const char *const json_suffixes[] = { ".json", NULL };
static const char *const jsonl_suffixes[] = { ".jsonl", ".ndjson", NULL };

const fl_source_kind fl_source_kind_json = {
  .name = "JSON", .suffixes = json_suffixes, .max_bytes = FL_SOURCE_MAX_BYTES, .read = read_json
};
const fl_source_kind fl_source_kind_jsonl = { .name = "JSON lines",
                                              .suffixes = jsonl_suffixes,
                                              .max_bytes = FL_SOURCE_MAX_BYTES,
                                              .read = read_jsonl };
