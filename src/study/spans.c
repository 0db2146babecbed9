/* spans.c - blocks by lines, then sentences within a block. */
#include "study/spans.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "study/sentence.h"

enum {
  PLAIN_HEADING_BYTES = 72, /* a line of plain text that is longer is no heading */
  CODE_BYTES = 160          /* lines of code are taken together up to about so much */
};

typedef struct line {
  size_t from, to; /* without white space at both ends */
  size_t indent;
} line;

typedef struct reader {
  const char *text;
  size_t len;
  fl_text_spans *out;
  uint32_t heading, paragraph;
  size_t from, to; /* of the block that is being read; from == to: none */
  bool in_code, in_table;
  char fence; /* that closes the code */
  uint32_t head_from, head_to;
} reader;

void fl_text_spans_release(fl_text_spans *s) {
  fl_free(s->span);
  fl_free(s->heading);
  *s = (fl_text_spans){ 0 };
}

/* --- what comes out ------------------------------------------------------------------------ */

static int push_span(reader *r, size_t from, size_t to, fl_span_sort sort) {
  fl_text_spans *s = r->out;
  if (from >= to) return FL_OK;
  if (s->n == s->cap) {
    const size_t cap = s->cap ? 2 * s->cap : 64;
    fl_text_span *grown = fl_reallocarray(s->span, cap, sizeof *grown);
    if (!grown) return FL_ENOMEM;
    s->span = grown;
    s->cap = cap;
  }
  s->span[s->n++] = (fl_text_span){ .from = (uint32_t)from,
                                    .to = (uint32_t)to,
                                    .sort = sort,
                                    .heading = r->heading,
                                    .paragraph = r->paragraph };
  return FL_OK;
}

static int push_heading(reader *r, size_t from, size_t to, uint32_t level) {
  fl_text_spans *s = r->out;
  uint32_t above = r->heading;
  while (above != FL_NO_HEADING && s->heading[above].level >= level)
    above = s->heading[above].above;
  if (s->n_headings == s->heading_cap) {
    const size_t cap = s->heading_cap ? 2 * s->heading_cap : 16;
    fl_text_heading *grown = fl_reallocarray(s->heading, cap, sizeof *grown);
    if (!grown) return FL_ENOMEM;
    s->heading = grown;
    s->heading_cap = cap;
  }
  s->heading[s->n_headings] = (fl_text_heading){ (uint32_t)from, (uint32_t)to, level, above };
  r->heading = (uint32_t)s->n_headings++;
  return FL_OK;
}

/* The block that was being read is whole. */
static int end_block(reader *r) {
  int rc = FL_OK;
  size_t from = r->from;
  if (r->from == r->to) return FL_OK;
  if (r->in_code) rc = push_span(r, r->from, r->to, FL_SPAN_CODE);
  else
    while (rc == FL_OK && from < r->to) {
      size_t end, next = fl_sentence_end(r->text, from, r->to, &end);
      rc = push_span(r, from, end, FL_SPAN_SENTENCE);
      from = next;
    }
  r->from = r->to = 0;
  r->paragraph++;
  return rc;
}

/* --- lines --------------------------------------------------------------------------------- */

static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

/* The line at *at, which moves to the next one. */
static line take_line(const reader *r, size_t *at) {
  const char *nl = memchr(r->text + *at, '\n', r->len - *at);
  line l = { .from = *at, .to = nl ? (size_t)(nl - r->text) : r->len };
  *at = nl ? l.to + 1 : r->len;
  const size_t start = l.from;
  while (l.from < l.to && is_space(r->text[l.from])) l.from++;
  while (l.to > l.from && is_space(r->text[l.to - 1])) l.to--;
  l.indent = l.from - start;
  return l;
}

static line peek_line(const reader *r, size_t at) {
  return at < r->len ? take_line(r, &at) : (line){ 0 };
}

static bool is_blank(const line *l) { return l->from == l->to; }

/* Whether nothing but marks of `set` stands in the line, three of them at least. */
static bool only(const reader *r, const line *l, const char *set) {
  for (size_t i = l->from; i < l->to; i++)
    if (!strchr(set, r->text[i])) return false;
  return l->to - l->from >= 3;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

/* "## Words ##": the level, and *l without the marks. 0: none. */
static uint32_t marked_level(const reader *r, line *l) {
  uint32_t n = 0;
  while (l->from + n < l->to && r->text[l->from + n] == '#') n++;
  const size_t at = l->from + n;
  if (n < 1 || n > 6 || l->indent > 3 || at == l->to || !is_space(r->text[at])) return 0;
  l->from = at;
  while (l->from < l->to && is_space(r->text[l->from])) l->from++;
  while (l->to > l->from && r->text[l->to - 1] == '#') l->to--;
  while (l->to > l->from && is_space(r->text[l->to - 1])) l->to--;
  return l->from < l->to ? n : 0;
}

/* "2.1 Fields": as many levels as it has numbers; 0: none. */
static uint32_t numbered_level(const reader *r, const line *l) {
  uint32_t n = 0;
  size_t at = l->from;
  while (at < l->to && is_digit(r->text[at])) {
    while (at < l->to && is_digit(r->text[at])) at++;
    n++;
    if (at < l->to && r->text[at] == '.') at++;
  }
  if (n == 0 || n > 6 || at >= l->to || !is_space(r->text[at])) return 0;
  while (at < l->to && is_space(r->text[at])) at++;
  return at < l->to && is_upper(r->text[at]) ? n : 0;
}

static bool is_capitals(const reader *r, const line *l) {
  size_t capitals = 0;
  for (size_t i = l->from; i < l->to; i++) {
    if (is_lower(r->text[i])) return false;
    capitals += is_upper(r->text[i]);
  }
  return capitals >= 3;
}

/* A line that stands alone at the margin, before an empty line or what is further in. */
static uint32_t plain_level(const reader *r, const line *l, size_t next) {
  const line after = peek_line(r, next);
  const char last = r->text[l->to - 1];
  if (r->from < r->to || l->indent > 0 || l->to - l->from > PLAIN_HEADING_BYTES) return 0;
  if (strchr(".,;:!?", last) || memchr(r->text + l->from, '|', l->to - l->from)) return 0;
  if (next >= r->len || !(is_blank(&after) || after.indent > 0)) return 0;
  const uint32_t n = numbered_level(r, l);
  return n > 0 ? n : is_capitals(r, l) ? 1 : 0;
}

/* The marks in front of a list's item, in bytes; 0: none. */
static size_t item_marks(const reader *r, const line *l) {
  size_t at = l->from;
  if (strchr("-*+", r->text[at])) at++;
  else if (memcmp(r->text + at, "\xe2\x80\xa2", l->to - at < 3 ? l->to - at : 3) == 0) at += 3;
  else {
    while (at < l->to && is_digit(r->text[at])) at++;
    if (at == l->from || at - l->from > 3 || at == l->to || !strchr(".)", r->text[at])) return 0;
    at++;
  }
  if (at >= l->to || !is_space(r->text[at])) return 0;
  while (at < l->to && is_space(r->text[at])) at++;
  return at - l->from;
}

static bool is_row(const reader *r, const line *l) {
  size_t bars = 0;
  for (size_t i = l->from; i < l->to; i++) bars += r->text[i] == '|' || r->text[i] == '\t';
  return r->text[l->from] == '|' ? bars >= 2 : bars >= 1 && (r->in_table || bars >= 2);
}

/* --- blocks -------------------------------------------------------------------------------- */

static int take_row(reader *r, const line *l) {
  int rc = end_block(r);
  if (rc != FL_OK || only(r, l, "|-:+= \t")) return rc;
  rc = push_span(r, l->from, l->to, FL_SPAN_ROW);
  if (rc != FL_OK) return rc;
  if (!r->in_table) {
    r->head_from = (uint32_t)l->from;
    r->head_to = (uint32_t)l->to;
    r->in_table = true;
    return FL_OK;
  }
  fl_text_span *s = &r->out->span[r->out->n - 1];
  s->head_from = r->head_from;
  s->head_to = r->head_to;
  return FL_OK;
}

static int take_code(reader *r, const line *l) {
  const char close[] = { r->fence, r->fence, r->fence, '\0' };
  if (l->to - l->from >= 3 && memcmp(r->text + l->from, close, 3) == 0) {
    const int rc = end_block(r);
    r->in_code = false;
    return rc;
  }
  if (is_blank(l)) return end_block(r);
  if (r->from == r->to) r->from = l->from;
  r->to = l->to;
  return r->to - r->from >= CODE_BYTES ? end_block(r) : FL_OK;
}

static int take_heading(reader *r, const line *l, uint32_t level) {
  const int rc = end_block(r);
  r->in_table = false;
  return rc == FL_OK ? push_heading(r, l->from, l->to, level) : rc;
}

static int begin_code(reader *r, const line *l) {
  const int rc = end_block(r);
  r->in_code = true;
  r->in_table = false;
  r->fence = r->text[l->from];
  return rc;
}

/* A line of ordinary text; `next` is where the following one begins. */
static int take_text(reader *r, line l, size_t *next) {
  line heading = l;
  const line under = peek_line(r, *next);
  uint32_t level = marked_level(r, &heading);
  if (level > 0) return take_heading(r, &heading, level);
  if (r->from == r->to && !is_blank(&under) && (only(r, &under, "=") || only(r, &under, "-")) &&
      l.to - l.from <= PLAIN_HEADING_BYTES) {
    level = r->text[under.from] == '=' ? 1 : 2;
    (void)take_line(r, next);
    return take_heading(r, &l, level);
  }
  level = plain_level(r, &l, *next);
  if (level > 0) return take_heading(r, &l, level);
  if (only(r, &l, "-=*_~+#")) return end_block(r);
  const size_t marks = item_marks(r, &l);
  int rc = marks > 0 ? end_block(r) : FL_OK;
  if (r->from == r->to) r->from = l.from + marks;
  r->to = l.to;
  return rc;
}

static int take(reader *r, size_t *at) {
  const line l = take_line(r, at);
  if (r->in_code) return take_code(r, &l);
  if (is_blank(&l)) {
    r->paragraph += r->in_table;
    r->in_table = false;
    return end_block(r);
  }
  if (l.to - l.from >= 3 &&
      (memcmp(r->text + l.from, "```", 3) == 0 || memcmp(r->text + l.from, "~~~", 3) == 0))
    return begin_code(r, &l);
  if (is_row(r, &l)) return take_row(r, &l);
  r->in_table = false;
  return take_text(r, l, at);
}

int fl_text_spans_read(fl_text_spans *out, const char *text, size_t len, fl_err *err) {
  fl_text_spans s = { 0 };
  reader r = { .text = text, .len = len, .out = &s, .heading = FL_NO_HEADING };
  int rc = len <= UINT32_MAX ? FL_OK : FL_EINPUT;
  for (size_t at = 0; rc == FL_OK && at < len;) rc = take(&r, &at);
  if (rc == FL_OK) rc = end_block(&r);
  if (rc == FL_OK) {
    *out = s;
    return FL_OK;
  }
  fl_text_spans_release(&s);
  if (rc == FL_EINPUT) return fl_fail(err, rc, "a document has more than 4 GiB; split it");
  return fl_fail(err, rc, "out of memory for the sentences of a document");
}

/* --- names --------------------------------------------------------------------------------- */

/* The heading that is the title: the first one, where nothing stands before it and no other is as
 * high. */
static uint32_t title_heading(const fl_text_spans *s) {
  if (s->n_headings == 0 || (s->n > 0 && s->span[0].from < s->heading[0].from))
    return FL_NO_HEADING;
  for (size_t i = 1; i < s->n_headings; i++)
    if (s->heading[i].level <= s->heading[0].level) return FL_NO_HEADING;
  return 0;
}

void fl_text_title(fl_buf *out, const fl_text_spans *s, const char *text, const char *name) {
  const uint32_t at = title_heading(s);
  if (at != FL_NO_HEADING) {
    fl_buf_append(out, text + s->heading[at].from, s->heading[at].to - s->heading[at].from);
    return;
  }
  if (!name) return;
  const char *slash = strrchr(name, '/');
  if (slash && slash[1]) name = slash + 1;
  const char *dot = strrchr(name, '.');
  fl_buf_append(out, name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

void fl_text_path(fl_buf *out, const fl_text_spans *s, const char *text, const fl_text_span *span) {
  uint32_t chain[8];
  size_t n = 0;
  const uint32_t title = title_heading(s);
  for (uint32_t h = span->heading; h != FL_NO_HEADING && n < 8; h = s->heading[h].above)
    if (h != title) chain[n++] = h;
  while (n-- > 0) {
    const fl_text_heading *h = &s->heading[chain[n]];
    fl_buf_append(out, text + h->from, h->to - h->from);
    if (n > 0) fl_buf_puts(out, " > ");
  }
}
