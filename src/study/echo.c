/* echo.c - see echo.h. Texts are a few hundred bytes: words are compared one by one. */
#include "study/echo.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { LONG_BYTES = 4 };

typedef struct word {
  const char *at;
  size_t len;
} word;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static char small(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c; }
static bool is_word_byte(char c) {
  return (small(c) >= 'a' && small(c) <= 'z') || is_digit(c) || ((uint8_t)c & 0x80);
}

/* The next word at or after *at; false at the end. */
static bool next_word(const char **at, word *w) {
  while (**at && !is_word_byte(**at)) (*at)++;
  w->at = *at;
  while (is_word_byte(**at)) (*at)++;
  w->len = (size_t)(*at - w->at);
  return w->len > 0;
}

static bool equal(const word *a, const word *b) {
  if (a->len != b->len) return false;
  for (size_t i = 0; i < a->len; i++)
    if (small(a->at[i]) != small(b->at[i])) return false;
  return true;
}

/* Whether the text up to `end` (NULL: all of it) has the word. */
static bool has(const char *text, const char *end, const word *w) {
  word v;
  while (next_word(&text, &v) && (!end || v.at < end))
    if (equal(&v, w)) return true;
  return false;
}

static bool says_much(const word *w) {
  for (size_t i = 0; i < w->len; i++)
    if (is_digit(w->at[i])) return true;
  return w->len >= LONG_BYTES;
}

bool fl_echo_shares(const char *request, const char *about) {
  word w;
  while (next_word(&request, &w))
    if (says_much(&w) && has(about, NULL, &w)) return true;
  return false;
}

bool fl_echo_tells(const char *request, const char *answer, const char *about) {
  word w;
  while (next_word(&answer, &w))
    if (says_much(&w) && has(about, NULL, &w) && !has(request, NULL, &w)) return true;
  return false;
}

bool fl_echo_asks(const char *request) {
  static const char *const marks[] = { "?", "\xef\xbc\x9f", "\xd8\x9f", "\xcd\xbe" };
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
    if (strstr(request, marks[i])) return true;
  return false;
}

bool fl_echo_repeats(const char *request, const char *answer) {
  word w;
  while (next_word(&answer, &w))
    if (!has(request, NULL, &w)) return false;
  return true;
}

/* Different words of a, and how many of them b has. */
static void compare(const char *a, const char *b, size_t *n, size_t *common) {
  const char *at = a;
  word w;
  *n = *common = 0;
  while (next_word(&at, &w)) {
    if (has(a, w.at, &w)) continue;
    (*n)++;
    *common += has(b, NULL, &w);
  }
}

bool fl_echo_same(const char *a, const char *b) {
  size_t n_a, n_b, common, back;
  compare(a, b, &n_a, &common);
  compare(b, a, &n_b, &back);
  return 10 * common >= 9 * (n_a + n_b - common) && n_a > 0;
}
