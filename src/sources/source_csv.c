/* source_csv.c - tables: each record becomes lines "column: value", so that a piece of the text
 * tells what its values are. RFC 4180 quoting; commas, semicolons, tabs or bars between fields,
 * whichever the first record has most of. The first record names the columns when all its fields
 * are filled, different and no numbers. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sources/kind.h"
#include "sources/source.h"

enum { MAX_COLUMNS = 4096 };

typedef struct span {
  size_t at, len; /* in record.text */
} span;

typedef struct record {
  fl_buf text;
  span field[MAX_COLUMNS];
  size_t n;
} record;

typedef struct table {
  const char *path;
  const char *s, *end;
  char between;
  size_t line;
  fl_err *err;
} table;

static char find_separator(const char *s, const char *end) {
  static const char candidates[] = ",;\t|";
  size_t count[4] = { 0 }, best = 0;
  bool quoted = false;
  for (; s < end && (quoted || *s != '\n'); s++) {
    const char *c = strchr(candidates, *s);
    if (*s == '"') quoted = !quoted;
    else if (!quoted && c && *c) count[c - candidates]++;
  }
  for (size_t i = 1; i < 4; i++)
    if (count[i] > count[best]) best = i;
  return candidates[best];
}

static int quoted_field(table *t, fl_buf *out) {
  size_t began = t->line;
  for (t->s++; t->s < t->end; t->s++) {
    if (*t->s == '"') {
      t->s++;
      if (t->s >= t->end || *t->s != '"') return FL_OK;
    }
    if (*t->s == '\n') t->line++;
    if (*t->s != '\r') fl_buf_putc(out, *t->s);
  }
  return fl_fail(t->err, FL_EINPUT,
                 "%s: the quote that opens in line %zu is never closed; mend it "
                 "or leave it out",
                 t->path, began);
}

/* One field up to its separator or the end of the line. */
static int field(table *t, record *r) {
  if (r->n == MAX_COLUMNS)
    return fl_fail(t->err, FL_EINPUT, "%s: line %zu has more than %d columns; leave it out",
                   t->path, t->line, MAX_COLUMNS);
  span *f = &r->field[r->n];
  f->at = r->text.len;
  int rc = FL_OK;
  if (t->s < t->end && *t->s == '"') rc = quoted_field(t, &r->text);
  const char *from = t->s;
  while (t->s < t->end && *t->s != t->between && *t->s != '\n') t->s++;
  size_t n = (size_t)(t->s - from);
  if (n > 0 && from[n - 1] == '\r') n--;
  fl_buf_append(&r->text, from, n);
  f->len = r->text.len - f->at;
  while (f->len > 0 && strchr(" \n", r->text.data[f->at])) f->at++, f->len--;
  while (f->len > 0 && strchr(" \n", r->text.data[f->at + f->len - 1])) f->len--;
  r->n++;
  return rc;
}

static int next_record(table *t, record *r) {
  fl_buf_reset(&r->text);
  r->n = 0;
  for (;;) {
    int rc = field(t, r);
    if (rc != FL_OK) return rc;
    if (t->s >= t->end) return FL_OK;
    if (*t->s++ == '\n') break;
  }
  t->line++;
  return r->text.oom ? fl_fail(t->err, FL_ENOMEM, "%s: not enough memory", t->path) : FL_OK;
}

static bool is_number(const char *s, size_t n) {
  char text[64], *end;
  if (n == 0 || n >= sizeof text) return false;
  memcpy(text, s, n);
  text[n] = '\0';
  strtod(text, &end);
  return *end == '\0';
}

static const char *text_of(const record *r, size_t i) { return r->text.data + r->field[i].at; }

static bool names_columns(const record *r) {
  for (size_t i = 0; i < r->n; i++) {
    size_t len = r->field[i].len;
    if (len == 0 || is_number(text_of(r, i), len)) return false;
    for (size_t k = 0; k < i && r->n <= 256; k++)
      if (r->field[k].len == len && memcmp(text_of(r, k), text_of(r, i), len) == 0) return false;
  }
  return r->n > 1;
}

/* An empty line stands between two records. */
static void put_record(fl_buf *text, const record *r, const record *names) {
  bool any = false;
  for (size_t i = 0; i < r->n; i++) {
    if (r->field[i].len == 0) continue;
    if (!any && text->len > 0) fl_buf_putc(text, '\n');
    any = true;
    if (names && i < names->n) {
      fl_buf_append(text, text_of(names, i), names->field[i].len);
      fl_buf_puts(text, ": ");
    } else if (r->n > 1) {
      fl_buf_printf(text, "column %zu: ", i + 1);
    }
    fl_buf_append(text, text_of(r, i), r->field[i].len);
    fl_buf_putc(text, '\n');
  }
}

static int read_table(fl_buf *text, table *t, record *first, record *r) {
  int rc = next_record(t, first);
  if (rc != FL_OK) return rc;
  const record *names = names_columns(first) ? first : NULL;
  if (!names) put_record(text, first, NULL);
  while (rc == FL_OK && t->s < t->end) {
    rc = next_record(t, r);
    if (rc == FL_OK) put_record(text, r, names);
    if (rc == FL_OK && text->len > FL_SOURCE_MAX_BYTES) rc = fl_source_too_much(t->path, t->err);
  }
  if (rc == FL_OK && text->len == 0 && names)
    return fl_fail(t->err, FL_EINPUT, "%s: names of columns and no records; leave it out", t->path);
  return rc;
}

static int read_csv(fl_buf *text, const fl_source_input *in, fl_err *err) {
  fl_buf utf8 = { 0 };
  record *r = fl_calloc(2, sizeof *r);
  int rc = r ? fl_source_decode(&utf8, in, err)
             : fl_fail(err, FL_ENOMEM, "%s: not enough memory to read it", in->path);
  if (rc == FL_OK && utf8.len > 0) {
    table t = { in->path, utf8.data, utf8.data + utf8.len, ',', 1, err };
    t.between = find_separator(t.s, t.end);
    rc = read_table(text, &t, &r[0], &r[1]);
  }
  if (r) {
    fl_buf_release(&r[0].text);
    fl_buf_release(&r[1].text);
  }
  fl_free(r);
  fl_buf_release(&utf8);
  return rc;
}

static const char *const suffixes[] = { ".csv", ".tsv", NULL };

const fl_source_kind fl_source_kind_csv = {
  .name = "CSV", .suffixes = suffixes, .max_bytes = FL_SOURCE_MAX_BYTES, .read = read_csv
};
