/* pretokenise.c - the pre-tokenisers of gpt2, smollm, qwen2 and llama3 as scanners.
 *
 * gpt2:    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * smollm:  every \p{N} alone first, then gpt2 on what lies between
 * qwen2:   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*
 *          |\s*[\r\n]+|\s+(?!\S)|\s+
 * llama3:  qwen2 with \p{N}{1,3}
 *
 * A code point that is no valid UTF-8 counts as "other", byte by byte.
 */
#include "text/pretokenise.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "text/unicode.h"

typedef struct cursor {
  const char *s;
  size_t len, at; /* at: where `cp` begins */
  uint32_t cp;
  size_t n;          /* bytes of cp; 0 at the end */
  fl_uc_class class; /* meaningless at the end */
} cursor;

static void load(cursor *c) {
  if (c->at < c->len && (unsigned char)c->s[c->at] < 0x80) {
    c->cp = (unsigned char)c->s[c->at];
    c->n = 1;
  } else {
    c->n = fl_utf8_decode(&c->cp, NULL, c->s + c->at, c->len - c->at);
  }
  c->class = c->n > 0 ? fl_uc_classify(c->cp) : FL_UC_OTHER;
}

static cursor begin(const char *s, size_t len) {
  cursor c = { .s = s, .len = len };
  load(&c);
  return c;
}

static void step(cursor *c) {
  c->at += c->n;
  load(c);
}

static bool is(const cursor *c, fl_uc_class class) { return c->n > 0 && c->class == class; }
static bool is_break(const cursor *c) { return c->n > 0 && (c->cp == '\r' || c->cp == '\n'); }

static void skip(cursor *c, fl_uc_class class) {
  while (is(c, class)) step(c);
}

/* Length of an English contraction that begins with the apostrophe at s[0], or 0. Folding case,
 * U+017F (long s) is an s, as it is for the reference's regular expressions. */
static size_t contraction(const char *s, size_t len, bool fold) {
  static const char *const endings[] = { "s", "t", "re", "ve", "m", "ll", "d" };
  if (len < 2 || s[0] != '\'') return 0;
  if (fold && len >= 3 && memcmp(s + 1, "\xC5\xBF", 2) == 0) return 3;
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t n = strlen(endings[i]), k = 0;
    if (n >= len) continue;
    for (; k < n; k++) {
      char c = s[1 + k];
      if (fold && c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
      if (c != endings[i][k]) break;
    }
    if (k == n) return n + 1;
  }
  return 0;
}

/* \s+(?!\S)|\s+ from the cursor, which stands on white space: all of a run at the end of the text,
 * else all but its last code point, which goes to what follows, unless it is the only one. A number
 * ends the text where numbers are cut out first. */
static size_t spaces(cursor c, bool number_ends) {
  size_t last = 0;
  while (is(&c, FL_UC_SPACE)) {
    last = c.at;
    step(&c);
  }
  bool at_end = c.n == 0 || (number_ends && is(&c, FL_UC_NUMBER));
  return at_end || last == 0 ? c.at : last;
}

static size_t scan_gpt2(const char *s, size_t len, bool lone_digits) {
  size_t n = contraction(s, len, false);
  if (n > 0) return n;
  cursor c = begin(s, len);
  if (lone_digits && is(&c, FL_UC_NUMBER)) return c.n;
  cursor body = c;
  if (body.cp == ' ') step(&body);
  if (body.n > 0 && body.class != FL_UC_SPACE && !(lone_digits && body.class == FL_UC_NUMBER)) {
    skip(&body, body.class);
    return body.at;
  }
  return spaces(c, lone_digits);
}

/* \s*[\r\n]+ : up to and with the last line break of the run of white space; 0 if it has none. */
static size_t line_breaks(cursor c) {
  size_t end = 0;
  for (; is(&c, FL_UC_SPACE); step(&c))
    if (is_break(&c)) end = c.at + c.n;
  return end;
}

/* [^\r\n\p{L}\p{N}]?\p{L}+ ; 0 if it does not match here. */
static size_t word(cursor c) {
  if (!is(&c, FL_UC_LETTER) && !is(&c, FL_UC_NUMBER) && !is_break(&c)) step(&c);
  if (!is(&c, FL_UC_LETTER)) return 0;
  skip(&c, FL_UC_LETTER);
  return c.at;
}

/* " ?[^\s\p{L}\p{N}]+[\r\n]*" ; 0 if it does not match here. */
static size_t signs(cursor c) {
  if (c.cp == ' ') step(&c);
  if (!is(&c, FL_UC_OTHER)) return 0;
  skip(&c, FL_UC_OTHER);
  while (is_break(&c)) step(&c);
  return c.at;
}

static size_t scan_qwen2(const char *s, size_t len, int max_digits) {
  size_t n = contraction(s, len, true);
  if (n > 0) return n;
  cursor c = begin(s, len);
  if ((n = word(c)) > 0) return n;
  if (is(&c, FL_UC_NUMBER)) {
    for (int i = 0; i < max_digits && is(&c, FL_UC_NUMBER); i++) step(&c);
    return c.at;
  }
  if ((n = signs(c)) > 0) return n;
  if ((n = line_breaks(c)) > 0) return n;
  return spaces(c, false);
}

size_t fl_pretokenise(fl_pre pre, const char *s, size_t len) {
  if (len == 0) return 0;
  switch (pre) {
  case FL_PRE_QWEN2: return scan_qwen2(s, len, 1);
  case FL_PRE_LLAMA3: return scan_qwen2(s, len, 3);
  case FL_PRE_SMOLLM: return scan_gpt2(s, len, true);
  case FL_PRE_GPT2: return scan_gpt2(s, len, false);
  }
  return len;
}

static const struct {
  const char *name;
  fl_pre pre;
} names[] = {
  { "qwen2", FL_PRE_QWEN2 }, { "llama3", FL_PRE_LLAMA3 },    { "smollm", FL_PRE_SMOLLM },
  { "gpt2", FL_PRE_GPT2 },   { "llama-bpe", FL_PRE_LLAMA3 }, { "llama-v3", FL_PRE_LLAMA3 },
  { "gpt-2", FL_PRE_GPT2 },  { "default", FL_PRE_GPT2 },
};

bool fl_pre_by_name(fl_pre *out, const char *name, size_t len) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i].name) == len && memcmp(names[i].name, name, len) == 0) {
      *out = names[i].pre;
      return true;
    }
  return false;
}

const char *fl_pre_name(fl_pre pre) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].pre == pre) return names[i].name;
  return "";
}
