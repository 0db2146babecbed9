/* report.c - see report.h. */
#include "cli/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/units.h"

enum { MAX_COLUMNS = 24 };

bool report_colour(FILE *f) {
  const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
  return isatty(fileno(f)) && (!no || !*no) && term && strcmp(term, "dumb") != 0;
}

static bool ends_with(const char *s, const char *tail) {
  size_t n = strlen(s), m = strlen(tail);
  return n >= m && strcmp(s + n - m, tail) == 0;
}

static void put_label(fl_buf *out, const char *key) {
  size_t n = strlen(key);
  if (ends_with(key, "_bytes")) n -= 6;
  if (ends_with(key, "_s")) n -= 2;
  for (size_t i = 0; i < n; i++) fl_buf_putc(out, key[i] == '_' ? ' ' : key[i]);
}

static void put_number(fl_buf *out, const char *key, double v) {
  char tmp[64];
  if (ends_with(key, "_bytes") && v >= 0) {
    fl_buf_puts(out, fl_format_bytes(tmp, (uint64_t)v));
  } else if (ends_with(key, "_s") && v >= 60) {
    fl_buf_puts(out, fl_format_seconds(tmp, v));
  } else if (ends_with(key, "_s")) {
    fl_buf_printf(out, "%.3f s", v);
  } else if (v == floor(v) && fabs(v) < 1e15) {
    fl_buf_printf(out, "%.0f", v);
  } else {
    fl_buf_printf(out, "%.6g", v);
  }
}

/* A scalar, or an array of scalars with spaces between. */
static void put_value(fl_buf *out, const char *key, const fl_json *v) {
  double num;
  if (fl_json_as_str(v)) {
    fl_buf_puts(out, fl_json_as_str(v));
  } else if (fl_json_as_num(v, &num)) {
    put_number(out, key, num);
  } else if (fl_json_is_arr(v)) {
    if (fl_json_len(v) == 0) fl_buf_putc(out, '-');
    for (const fl_json *e = fl_json_first(v); e; e = fl_json_next(e)) {
      if (e != fl_json_first(v)) fl_buf_putc(out, ' ');
      put_value(out, key, e);
    }
  } else {
    fl_buf text = { 0 };
    fl_json_print(&text, v, false);
    fl_buf_puts(out, text.data && strcmp(text.data, "null") != 0 ? text.data : "-");
    fl_buf_release(&text);
  }
}

/* Code points, not bytes, so that columns line up. */
static size_t columns_of(const char *s) {
  size_t n = 0;
  for (; *s; s++) n += ((unsigned char)*s & 0xc0) != 0x80;
  return n;
}

static void print_padded(const char *s, size_t width, bool right) {
  size_t n = columns_of(s), pad = width > n ? width - n : 0;
  if (right) printf("%*s", (int)pad, "");
  fputs(s, stdout);
  if (!right) printf("%*s", (int)pad, "");
}

typedef struct cell {
  fl_buf text;
  bool number;
} cell;

static void fill_cell(cell *c, const char *key, const fl_json *row) {
  const fl_json *v = fl_json_get(row, key);
  double num;
  c->number = v && fl_json_as_num(v, &num);
  if (v) {
    put_value(&c->text, key, v);
  } else {
    fl_buf_putc(&c->text, '-');
  }
}

/* Columns are the members of the first row. */
static int print_table(const fl_json *rows) {
  const char *key[MAX_COLUMNS];
  size_t width[MAX_COLUMNS], n_cols = 0, n_rows = fl_json_len(rows);
  const fl_json *first = fl_json_first(rows);
  for (const fl_json *m = fl_json_first(first); m && n_cols < MAX_COLUMNS; m = fl_json_next(m))
    key[n_cols++] = fl_json_key(m);
  cell *cells = fl_calloc((n_rows + 1) * n_cols + 1, sizeof *cells);
  if (!cells) return FL_ENOMEM;
  for (size_t c = 0; c < n_cols; c++) put_label(&cells[c].text, key[c]);
  size_t r = 1;
  for (const fl_json *row = first; row; row = fl_json_next(row), r++)
    for (size_t c = 0; c < n_cols; c++) fill_cell(&cells[r * n_cols + c], key[c], row);
  for (size_t c = 0; c < n_cols; c++) {
    width[c] = 0;
    for (size_t i = 0; i <= n_rows; i++) {
      const char *t = cells[i * n_cols + c].text.data;
      size_t w = t ? columns_of(t) : 0;
      if (w > width[c]) width[c] = w;
    }
  }
  for (size_t i = 0; i <= n_rows; i++)
    for (size_t c = 0; c < n_cols; c++) {
      cell *cur = &cells[i * n_cols + c];
      bool right = i == 0 ? n_rows > 0 && cells[n_cols + c].number : cur->number;
      bool last = c + 1 == n_cols;
      print_padded(cur->text.data ? cur->text.data : "", last && !right ? 0 : width[c], right);
      fputs(last ? "\n" : "  ", stdout);
    }
  for (size_t i = 0; i < (n_rows + 1) * n_cols; i++) fl_buf_release(&cells[i].text);
  fl_free(cells);
  return FL_OK;
}

static size_t label_width(const fl_json *obj) {
  size_t width = 0;
  for (const fl_json *m = fl_json_first(obj); m; m = fl_json_next(m)) {
    size_t w = strlen(fl_json_key(m));
    if (w > width) width = w;
  }
  return width;
}

static bool is_table(const fl_json *v) {
  return fl_json_is_arr(v) && fl_json_len(v) > 0 && fl_json_is_obj(fl_json_first(v));
}

static int print_object(const fl_json *obj, size_t indent) {
  size_t width = label_width(obj);
  int rc = FL_OK;
  for (const fl_json *m = fl_json_first(obj); m && rc == FL_OK; m = fl_json_next(m)) {
    fl_buf label = { 0 }, value = { 0 };
    put_label(&label, fl_json_key(m));
    printf("%*s", (int)indent, "");
    if (fl_json_is_obj(m) || is_table(m)) {
      printf("%s:\n", label.data ? label.data : "");
      rc = fl_json_is_obj(m) ? print_object(m, indent + 2) : print_table(m);
    } else {
      put_value(&value, fl_json_key(m), m);
      print_padded(label.data ? label.data : "", width + 2, false);
      printf("%s\n", value.data ? value.data : "");
    }
    if (label.oom || value.oom) rc = FL_ENOMEM;
    fl_buf_release(&label);
    fl_buf_release(&value);
  }
  return rc;
}

int report_print(const fl_json *result, bool json, fl_err *err) {
  int rc = FL_OK;
  if (!json) {
    rc = print_object(result, 0);
  } else {
    fl_buf text = { 0 };
    fl_json_print(&text, result, true);
    if (text.oom || !text.data) rc = FL_ENOMEM;
    if (rc == FL_OK) fputs(text.data, stdout);
    fl_buf_release(&text);
  }
  return rc == FL_OK ? FL_OK : fl_fail(err, rc, "not enough memory for the result");
}
