/* words.c - see words.h. A run is found first, with the places where its parts begin; then the
 * whole and the parts are given. */
#include "retrieval/words.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "text/unicode.h"

enum { MAX_PARTS = 32 };

typedef struct reader {
  const char *text;
  size_t len;
} reader;

typedef struct letter {
  uint32_t cp;
  size_t n; /* bytes; 0 at the end */
} letter;

typedef struct run {
  size_t first, end;
  size_t part[MAX_PARTS][2];
  size_t n_parts;
  bool compound; /* the whole is more than its only part */
} run;

static letter at(const reader *r, size_t i) {
  letter l = { 0 };
  if (i < r->len) l.n = fl_utf8_decode(&l.cp, NULL, r->text + i, r->len - i);
  return l;
}

static bool is_alnum(uint32_t cp) {
  fl_uc_class c = fl_uc_classify(cp);
  return c == FL_UC_LETTER || c == FL_UC_NUMBER;
}

/* Accents that follow their letter. */
static bool is_mark(uint32_t cp) { return cp >= 0x300 && cp <= 0x36F; }

/* Written without spaces: each character is a word. */
static bool is_ideograph(uint32_t cp) {
  return (cp >= 0x3040 && cp <= 0x30FF) || (cp >= 0x3400 && cp <= 0x9FFF) ||
         (cp >= 0xF900 && cp <= 0xFAFF) || (cp >= 0x20000 && cp <= 0x3FFFF);
}

static bool is_apostrophe(uint32_t cp) { return cp == '\'' || cp == 0x2019; }
static bool is_large(uint32_t cp) { return fl_uc_fold(cp) != cp && fl_uc_is_upper(cp); }

/* Bytes of a connector at i that a letter or digit follows directly; 0: none. */
static size_t connector(const reader *r, size_t i) {
  letter c = at(r, i);
  if (c.n != 1 || strchr("_-./:@", (int)c.cp) == NULL || c.cp == 0) return 0;
  size_t n = 1;
  if (c.cp == ':' || c.cp == '_') /* std::vector, __init__ */
    while (at(r, i + n).cp == c.cp) n++;
  letter next = at(r, i + n);
  return next.n > 0 && is_alnum(next.cp) && !is_ideograph(next.cp) ? n : 0;
}

static void end_part(run *w, size_t first, size_t end) {
  if (end <= first) return;
  if (w->n_parts == MAX_PARTS) w->part[MAX_PARTS - 1][1] = end;
  else {
    w->part[w->n_parts][0] = first;
    w->part[w->n_parts++][1] = end;
  }
}

/* Whether a new part begins at i, between `before` and a large letter: getName, HTMLPage. */
static bool turns_large(const reader *r, size_t i, uint32_t before) {
  letter c = at(r, i), next = at(r, i + c.n);
  if (!is_large(c.cp)) return false;
  if (!is_large(before)) return fl_uc_classify(before) == FL_UC_LETTER;
  return next.n > 0 && fl_uc_classify(next.cp) == FL_UC_LETTER && !is_large(next.cp);
}

/* Letters, digits and their connectors from w->first on, which is one of them. */
static void extend(const reader *r, run *w, size_t i) {
  size_t part = i, n;
  uint32_t before = 0;
  for (letter c = at(r, i); c.n > 0; c = at(r, i)) {
    if (is_mark(c.cp) || (is_alnum(c.cp) && !is_ideograph(c.cp))) {
      if (before != 0 && turns_large(r, i, before)) {
        end_part(w, part, i);
        part = i;
      }
      if (!is_mark(c.cp)) before = c.cp;
      i += c.n;
    } else if ((n = connector(r, i)) > 0) {
      end_part(w, part, i);
      i += n;
      part = i;
      before = 0;
    } else {
      break;
    }
  }
  end_part(w, part, i);
  w->end = i;
}

/* c++ and c#. */
static void extend_language(const reader *r, run *w) {
  size_t n = 0;
  if (at(r, w->end).cp == '#') n = 1;
  else if (at(r, w->end).cp == '+' && at(r, w->end + 1).cp == '+') n = 2;
  if (n == 0 || is_alnum(at(r, w->end + n).cp) || at(r, w->end + n).cp == '+') return;
  w->end += n;
}

/* The word at i, which no letter precedes, or false. */
static bool find(const reader *r, size_t i, run *w) {
  size_t dashes = 0;
  *w = (run){ .first = i };
  while (dashes < 2 && at(r, i + dashes).cp == '-') dashes++;
  letter c = at(r, i + dashes);
  if (c.n == 0 || !is_alnum(c.cp)) return false;
  if (dashes > 0 && fl_uc_classify(c.cp) != FL_UC_LETTER) return false;
  if (is_ideograph(c.cp)) {
    if (dashes > 0) return false;
    w->end = i + c.n;
    end_part(w, i, w->end);
    return true;
  }
  extend(r, w, i + dashes);
  extend_language(r, w);
  w->compound = w->n_parts != 1 || w->part[0][0] != w->first || w->part[0][1] != w->end;
  return true;
}

/* Folds text[first..end) into w. False when it is longer than a word may be. */
static bool fold(const reader *r, fl_word *w, size_t first, size_t end) {
  w->len = 0;
  w->first = first;
  w->end = end;
  for (size_t i = first; i < end;) {
    letter c = at(r, i);
    char bytes[4];
    i += c.n;
    if (is_mark(c.cp)) continue;
    size_t n = fl_utf8_encode(bytes, fl_uc_fold(c.cp));
    if (w->len + n > FL_WORD_BYTES) {
      w->text[w->len] = '\0';
      return false;
    }
    memcpy(w->text + w->len, bytes, n);
    w->len += n;
  }
  w->text[w->len] = '\0';
  return true;
}

static int give(const reader *r, const run *w, int (*take)(void *ctx, const fl_word *w),
                void *ctx) {
  fl_word word = { .is_whole = true };
  int rc = 0;
  bool whole = w->compound && fold(r, &word, w->first, w->end);
  if (whole) rc = take(ctx, &word);
  word.is_whole = false;
  word.is_part = whole;
  for (size_t i = 0; rc == 0 && i < w->n_parts; i++) {
    (void)fold(r, &word, w->part[i][0], w->part[i][1]);
    if (word.len > 0) rc = take(ctx, &word);
  }
  return rc;
}

/* Past 's, which says nothing. */
static size_t skip_possessive(const reader *r, size_t i) {
  letter a = at(r, i), s = at(r, i + a.n);
  if (!is_apostrophe(a.cp) || (s.cp != 's' && s.cp != 'S')) return i;
  return is_alnum(at(r, i + a.n + 1).cp) ? i : i + a.n + 1;
}

int fl_words_each(const char *text, size_t len, int (*take)(void *ctx, const fl_word *w),
                  void *ctx) {
  const reader r = { text, len };
  size_t i = 0;
  while (i < len) {
    run w;
    if (!find(&r, i, &w)) {
      i += at(&r, i).n;
      continue;
    }
    int rc = give(&r, &w, take, ctx);
    if (rc != 0) return rc;
    i = skip_possessive(&r, w.end);
  }
  return 0;
}

bool fl_word_is_stop(const char *word) {
  static const char words[] =
      " a about above after again all also am an and another any anybody anyone anything are as at "
      "be because been before being below between both but by can cannot could d did do does doing "
      "don done down each either else ever every everything few for from further get gets give "
      "given gives go goes had has have having he her here hers him his how i if in into is it its "
      "itself just let ll m many may me might mine more most much must my myself need no nor not "
      "of off on once one ones only or other our ours out over own please re s same shall she "
      "should so some somebody someone something such t tell than that the their theirs them then "
      "there these they thing things this those through to too under until up upon us ve very "
      "was we were what whatever when where whether which while who whom whose why will with "
      "without would you your yours ";
  size_t n = strlen(word);
  if (n == 0) return false;
  for (const char *p = words; (p = strstr(p, word)) != NULL; p++)
    if (p[-1] == ' ' && p[n] == ' ') return true;
  return false;
}
