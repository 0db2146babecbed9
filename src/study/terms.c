/* terms.c - see terms.h. */
#include "study/terms.h"

#include <string.h>

enum { MIN_LETTERS = 4, RARE_LETTERS = 5, RARE_TIMES = 2, MAX_TERM_BYTES = 60 };

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_word_byte(char c) {
  return (c >= 'a' && c <= 'z') || is_upper(c) || is_digit(c) || c == '_' || (c & 0x80);
}

/* Marks that belong to a word when they stand inside it: "well-known", "3.5", "a/b". */
static bool joins(char c) { return c != '\0' && strchr("-.,:/'@+", c) != NULL; }

static size_t word_end(const char *text, size_t at, size_t to) {
  while (at < to) {
    if (is_word_byte(text[at])) at++;
    else if (joins(text[at]) && at + 1 < to && is_word_byte(text[at + 1])) at += 2;
    else break;
  }
  return at;
}

/* How often it stands in text[0..len), counted up to `most`. */
static size_t count(const char *text, size_t len, const char *what, size_t n, size_t most) {
  size_t times = 0;
  for (const char *at = text; times < most && (at = memmem(at, len - (size_t)(at - text), what, n));
       at += n)
    times++;
  return times;
}

typedef struct search {
  const char *text, *known;
  size_t len;
  const fl_text_span *span;
  fl_term *out;
  size_t n;
} search;

static void add(search *s, size_t from, size_t to, fl_term_sort sort) {
  const char *what = s->text + from;
  const size_t n = to - from, span_len = s->span->to - s->span->from;
  if (s->n == FL_MAX_TERMS || n == 0 || n > MAX_TERM_BYTES || 2 * n > span_len) return;
  if (memmem(s->known, strlen(s->known), what, n)) return;
  if (count(s->text + s->span->from, span_len, what, n, 2) > 1) return;
  s->out[s->n++] = (fl_term){ (uint32_t)from, (uint32_t)to, sort };
}

/* What stands between two quotation marks at `at`; 0: none does. */
static size_t quoted_end(const search *s, size_t at) {
  const char mark = s->text[at];
  if (mark != '`' && mark != '"') return 0;
  const char *end = memchr(s->text + at + 1, mark, s->span->to - at - 1);
  return end && end > s->text + at + 1 ? (size_t)(end - s->text) : 0;
}

static fl_term_sort sort_of(const search *s, size_t from, size_t to) {
  size_t letters = 0;
  for (size_t i = from; i < to; i++)
    if (is_digit(s->text[i])) return FL_TERM_NUMBER;
  if (is_upper(s->text[from]) && from > s->span->from) return FL_TERM_NAME;
  for (size_t i = from; i < to; i++) letters += ((uint8_t)s->text[i] & 0xC0) != 0x80;
  if (letters < MIN_LETTERS) return FL_N_TERM_SORTS;
  if (letters < RARE_LETTERS) return FL_TERM_WORD;
  const size_t times = count(s->text, s->len, s->text + from, to - from, RARE_TIMES + 1);
  return times > RARE_TIMES ? FL_TERM_WORD : FL_TERM_RARE;
}

/* The names that follow a name with one space between. */
static size_t name_end(const search *s, size_t to) {
  for (;;) {
    if (to + 1 >= s->span->to || s->text[to] != ' ' || !is_upper(s->text[to + 1])) return to;
    to = word_end(s->text, to + 1, s->span->to);
  }
}

size_t fl_terms_find(fl_term out[FL_MAX_TERMS], const char *text, size_t len,
                     const fl_text_span *span, const char *known) {
  search s = { .text = text, .known = known, .len = len, .span = span, .out = out };
  for (size_t at = span->from; at < span->to;) {
    const size_t quoted = quoted_end(&s, at);
    if (quoted > 0) add(&s, at + 1, quoted, FL_TERM_QUOTED);
    if (quoted > 0) at = quoted + 1;
    if (quoted > 0 || !is_word_byte(text[at])) {
      at += quoted == 0;
      continue;
    }
    size_t end = word_end(text, at, span->to);
    const fl_term_sort sort = sort_of(&s, at, end);
    if (sort == FL_TERM_NAME) end = name_end(&s, end);
    if (sort < FL_N_TERM_SORTS) add(&s, at, end, sort);
    at = end;
  }
  return s.n;
}

bool fl_terms_draw(fl_term *out, const fl_term *terms, size_t n, fl_rng *rng) {
  fl_term_sort has[FL_N_TERM_SORTS];
  size_t n_sorts = 0, n_of = 0;
  for (fl_term_sort k = 0; k < FL_N_TERM_SORTS; k++) {
    size_t i = 0;
    while (i < n && terms[i].sort != k) i++;
    if (i < n && (k != FL_TERM_WORD || n_sorts == 0)) has[n_sorts++] = k;
  }
  if (n_sorts == 0) return false;
  const fl_term_sort sort = has[fl_rng_below(rng, n_sorts)];
  for (size_t i = 0; i < n; i++) n_of += terms[i].sort == sort;
  uint64_t nth = fl_rng_below(rng, n_of);
  for (size_t i = 0; i < n; i++)
    if (terms[i].sort == sort && nth-- == 0) *out = terms[i];
  return true;
}
