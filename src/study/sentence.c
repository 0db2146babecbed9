/* sentence.c - see sentence.h. */
#include "study/sentence.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

enum { SHORT_BYTES = 24, LONG_BYTES = 400 };

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Words before a full stop that ends nothing; in small letters. */
static const char *const abbreviations[] = { "e.g",    "i.e",  "cf",   "vs",   "mr",  "mrs", "ms",
                                             "dr",     "prof", "st",   "no",   "nos", "fig", "figs",
                                             "eq",     "sec",  "ch",   "vol",  "pp",  "p",   "al",
                                             "approx", "ca",   "incl", "dept", "gen", "z.b", "bzw",
                                             "d.h",    "jan",  "feb",  "mar",  "apr", "jun", "jul",
                                             "aug",    "sep",  "sept", "oct",  "nov", "dec" };

static bool is_abbreviation(const char *word, size_t len) {
  char small[8];
  if (len == 0 || len >= sizeof small) return false;
  for (size_t i = 0; i < len; i++)
    small[i] = word[i] >= 'A' && word[i] <= 'Z' ? (char)(word[i] + 'a' - 'A') : word[i];
  small[len] = '\0';
  for (size_t i = 0; i < sizeof abbreviations / sizeof *abbreviations; i++)
    if (strcmp(small, abbreviations[i]) == 0) return true;
  return false;
}

/* Whether the full stop at `at` belongs to the word before it. */
static bool belongs_to_word(const char *text, size_t from, size_t at) {
  size_t w = at;
  while (w > from && (is_letter(text[w - 1]) || text[w - 1] == '.')) w--;
  const size_t len = at - w;
  if (len == 1 && text[w] >= 'A' && text[w] <= 'Z' && (w == from || is_blank(text[w - 1])))
    return true; /* an initial */
  if (is_abbreviation(text + w, len)) return true;
  while (w > from && is_digit(text[w - 1])) w--;
  return len == 0 && w == from && at - w <= 3; /* the number of an item */
}

/* Whether a sentence may begin so. */
static bool may_begin(const char *text, size_t at, size_t to) {
  if (at >= to) return true;
  const char c = text[at];
  return (c >= 'A' && c <= 'Z') || is_digit(c) || (c & 0x80) || strchr("\"'([{`*_<-$/", c) != NULL;
}

/* The bytes of a full stop of a script that needs no space behind it; 0: none. */
static size_t wide_stop(const char *text, size_t at, size_t to) {
  static const char *const stops[] = { "\xe3\x80\x82", "\xef\xbc\x81", "\xef\xbc\x9f" };
  for (size_t i = 0; i < 3; i++)
    if (to - at >= 3 && memcmp(text + at, stops[i], 3) == 0) return 3;
  return 0;
}

static size_t closers(const char *text, size_t at, size_t to) {
  size_t n = 0;
  for (;;) {
    const char *c = text + at + n;
    const size_t left = to - at - n;
    if (left > 0 && strchr("\"')]*_`", *c)) n++;
    else if (left > 2 && (memcmp(c, "\xe2\x80\x9d", 3) == 0 || memcmp(c, "\xe2\x80\x99", 3) == 0))
      n += 3;
    else return n;
  }
}

/* Behind the first full stop at or after `at`; `to` where there is none. */
static size_t stop_after(const char *text, size_t from, size_t at, size_t to) {
  for (; at < to; at++) {
    const size_t wide = wide_stop(text, at, to);
    if (wide > 0) return at + wide;
    if (!strchr(".!?", text[at])) continue;
    size_t next = at + 1;
    next += closers(text, next, to);
    const size_t end = next;
    if (next < to && !is_blank(text[next])) continue;
    while (next < to && is_blank(text[next])) next++;
    if (text[at] == '.' && next < to && belongs_to_word(text, from, at)) continue;
    if (may_begin(text, next, to)) return end;
  }
  return to;
}

/* Where to cut within from .. to, as late as may be: behind a line, a clause, a word, a character.
 */
static size_t cut(const char *text, size_t from, size_t to) {
  static const char *const marks[] = { "\n", ";:", ",", " \t" };
  for (size_t m = 0; m < sizeof marks / sizeof *marks; m++)
    for (size_t at = to; at > from + (to - from) / 2; at--)
      if (strchr(marks[m], text[at - 1]) && is_blank(text[at])) return at;
  return from + fl_utf8_whole_prefix(text + from, to - from);
}

size_t fl_sentence_end(const char *text, size_t from, size_t to, size_t *end) {
  size_t at = stop_after(text, from, from, to);
  while (at < to && at - from < SHORT_BYTES) at = stop_after(text, from, at, to);
  if (at - from > LONG_BYTES) {
    const size_t cut_at = cut(text, from, from + LONG_BYTES);
    if (cut_at > from) at = cut_at;
  }
  *end = at;
  while (*end > from && is_blank(text[*end - 1])) (*end)--;
  while (at < to && is_blank(text[at])) at++;
  /* What is left is too short to stand alone. */
  if (at < to && to - at < SHORT_BYTES && to - from <= LONG_BYTES) {
    *end = to;
    return to;
  }
  return at;
}
