/* passage.c - see passage.h. The text is taken line by line: a line is a heading, an empty one or
 * one of a paragraph. */
#include "retrieval/passage.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/utf8.h"

enum { LEVELS = 6, HEADING_BYTES = 120 };

typedef struct cutter {
  const char *text;
  size_t len;
  char level[LEVELS][HEADING_BYTES + 1]; /* the headings in force; "" none */
  bool fenced;                           /* between ``` */
  fl_passages *out;
  size_t first; /* of the passage that is being filled */
  size_t path;  /* of its headings, in out->headings */
  bool begun;   /* it has more than headings */
  bool oom;
} cutter;

typedef struct line {
  size_t first, end, next; /* without and with its line end */
} line;

static line line_at(const cutter *c, size_t i) {
  const char *nl = memchr(c->text + i, '\n', c->len - i);
  size_t end = nl != NULL ? (size_t)(nl - c->text) : c->len;
  line l = { i, end, nl != NULL ? end + 1 : end };
  if (l.end > l.first && c->text[l.end - 1] == '\r') l.end--;
  return l;
}

static bool is_blank(const cutter *c, line l) {
  for (size_t i = l.first; i < l.end; i++)
    if (!isspace((unsigned char)c->text[i])) return false;
  return true;
}

static bool is_rule(const cutter *c, line l, char mark) {
  if (l.end - l.first < 3) return false;
  for (size_t i = l.first; i < l.end; i++)
    if (c->text[i] != mark) return false;
  return true;
}

static bool is_fence(const cutter *c, line l) {
  const char *s = c->text + l.first;
  return l.end - l.first >= 3 && (memcmp(s, "```", 3) == 0 || memcmp(s, "~~~", 3) == 0);
}

/* A line of capitals alone at the margin, as NAME in a manual. */
static bool is_capitals(const cutter *c, line l) {
  size_t letters = 0;
  if (l.end - l.first < 3 || l.end - l.first > 60) return false;
  for (size_t i = l.first; i < l.end; i++) {
    char ch = c->text[i];
    if (ch >= 'A' && ch <= 'Z') letters++;
    else if (ch != ' ' && ch != '-' && ch != ',') return false;
  }
  return letters >= 3 && c->text[l.first] != ' ' && c->text[l.first] != '-';
}

/* The level of a heading from 1 on with its text in *title, 0: none. */
static size_t heading(const cutter *c, line l, line *title) {
  size_t marks = 0;
  *title = l;
  if (c->fenced || is_blank(c, l)) return 0;
  while (l.first + marks < l.end && c->text[l.first + marks] == '#') marks++;
  if (marks > 0) {
    if (marks > LEVELS || l.first + marks == l.end || c->text[l.first + marks] != ' ') return 0;
    title->first += marks + 1;
    while (title->end > title->first && strchr(" #", c->text[title->end - 1]) != NULL) title->end--;
    return marks;
  }
  if (l.next < c->len && l.end - l.first <= HEADING_BYTES && c->text[l.first] != ' ') {
    line under = line_at(c, l.next);
    if (is_rule(c, under, '=')) return 1;
    if (is_rule(c, under, '-')) return 2;
  }
  return is_capitals(c, l) ? 1 : 0;
}

static void set_heading(cutter *c, size_t level, line title) {
  size_t n = title.end - title.first;
  if (n > HEADING_BYTES) n = fl_utf8_whole_prefix(c->text + title.first, HEADING_BYTES);
  memcpy(c->level[level - 1], c->text + title.first, n);
  c->level[level - 1][n] = '\0';
  for (size_t i = level; i < LEVELS; i++) c->level[i][0] = '\0';
}

static void note_path(cutter *c) {
  fl_buf *b = &c->out->headings;
  const char *between = "";
  c->path = b->len;
  for (size_t i = 0; i < LEVELS; i++) {
    if (c->level[i][0] == '\0') continue;
    fl_buf_puts(b, between);
    fl_buf_puts(b, c->level[i]);
    between = " > ";
  }
  fl_buf_putc(b, '\0');
}

/* [c->first, end) becomes a passage; one without a letter is not kept. */
static void emit(cutter *c, size_t end) {
  fl_passages *p = c->out;
  line all = { c->first, end, end };
  if (!is_blank(c, all)) {
    if (p->n == p->cap) {
      size_t cap = p->cap > 0 ? p->cap * 2 : 16;
      fl_passage *v = fl_reallocarray(p->v, cap, sizeof *v);
      if (v == NULL) {
        c->oom = true;
        return;
      }
      p->v = v;
      p->cap = cap;
    }
    p->v[p->n++] = (fl_passage){ c->first, end, c->path };
  }
  c->first = end;
  c->begun = false;
}

static bool ends_sentence(const char *s, size_t i) {
  return (s[i] == ' ' || s[i] == '\n') && i > 0 && strchr(".!?", s[i - 1]) != NULL;
}

/* Where a stretch that is too long is cut: the last end of a sentence in its second half, else of a
 * word, else of a character. */
static size_t cut_inside(const cutter *c, size_t first) {
  const char *s = c->text + first;
  size_t word = 0;
  for (size_t i = FL_PASSAGE_BYTES; i > FL_PASSAGE_BYTES / 2; i--) {
    if (ends_sentence(s, i)) return first + i + 1;
    if (word == 0 && isspace((unsigned char)s[i])) word = i + 1;
  }
  if (word > 0) return first + word;
  size_t n = FL_PASSAGE_BYTES;
  while (n > 1 && ((unsigned char)s[n] & 0xC0) == 0x80) n--;
  return first + n;
}

/* The last place before `end` where a paragraph, or else a line, ends and enough stands before. */
static size_t cut_before(const cutter *c, size_t end) {
  size_t at = 0;
  for (size_t i = end; i > c->first + FL_PASSAGE_MIN; i--) {
    if (c->text[i - 1] != '\n') continue;
    if (i >= 2 && c->text[i - 2] == '\n') return i;
    if (at == 0 && i < end) at = i;
  }
  return at;
}

/* Takes the lines up to `end` in; what is over the size goes out. */
static void fill(cutter *c, size_t before, size_t end) {
  if (end - c->first > FL_PASSAGE_BYTES && before > c->first) {
    size_t cut = cut_before(c, before);
    emit(c, cut > 0 ? cut : before);
    note_path(c);
  }
  while (!c->oom && end - c->first > FL_PASSAGE_BYTES + FL_PASSAGE_MIN) {
    emit(c, cut_inside(c, c->first));
    note_path(c);
  }
  c->begun = true;
}

static void take_line(cutter *c, line l) {
  line title;
  size_t level = heading(c, l, &title);
  if (is_fence(c, l)) c->fenced = !c->fenced;
  if (level > 0) {
    if (l.first - c->first >= FL_PASSAGE_MIN) emit(c, l.first);
    set_heading(c, level, title);
    if (!c->begun) note_path(c);
  } else if (!is_blank(c, l)) {
    fill(c, l.first, l.next);
  }
}

int fl_passages_cut(fl_passages *out, const char *text, size_t len) {
  cutter *c = fl_calloc(1, sizeof *c);
  *out = (fl_passages){ 0 };
  if (c == NULL) return FL_ENOMEM;
  c->text = text;
  c->len = len;
  c->out = out;
  note_path(c);
  for (size_t i = 0; i < len && !c->oom;) {
    line l = line_at(c, i);
    take_line(c, l);
    i = l.next;
  }
  if (!c->oom && c->first < len) emit(c, len);
  bool oom = c->oom || out->headings.oom;
  fl_free(c);
  if (oom) fl_passages_release(out);
  return oom ? FL_ENOMEM : FL_OK;
}

void fl_passages_release(fl_passages *p) {
  fl_free(p->v);
  fl_buf_release(&p->headings);
  *p = (fl_passages){ 0 };
}
