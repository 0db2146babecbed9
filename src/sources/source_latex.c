/* source_latex.c - a LaTeX project as one document: the main file with everything it includes put
 * in place, without comments and preamble (title and author stay). The markup stays as well:
 * models read it, and formulas are nothing without it.
 *
 * Only files below the main file's folder are read, links followed, so that a foreign project
 * cannot draw in other files. A file on the way to itself is refused. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "sources/kind.h"
#include "sources/source.h"

enum { MAX_DEPTH = 32, MAX_NAME = 512 };

typedef struct project {
  const char *path;       /* the main file, as named */
  char folder[PATH_MAX];  /* its folder, resolved */
  char *stack[MAX_DEPTH]; /* resolved files on the way from the main one */
  size_t depth;
  size_t total; /* bytes of all files read so far */
  fl_err *err;
} project;

typedef struct cursor {
  const char *from, *s, *end;
} cursor;

static size_t line_of(const cursor *c) {
  size_t line = 1;
  for (const char *p = c->from; p < c->s; p++) line += *p == '\n';
  return line;
}

/* --- the body of a file --- */

static const char *find(const char *s, const char *end, const char *what) {
  return s < end ? memmem(s, (size_t)(end - s), what, strlen(what)) : NULL;
}

/* The end of the group in braces that opens at s, or NULL. */
static const char *group_end(const char *s, const char *end) {
  int depth = 0;
  for (; s < end; s++) {
    if (*s == '\\' && s + 1 < end) s++;
    else if (*s == '{') depth++;
    else if (*s == '}' && --depth == 0) return s + 1;
  }
  return NULL;
}

static void put_command(fl_buf *out, const char *s, const char *end, const char *name) {
  const char *at = find(s, end, name);
  const char *stop = at ? group_end(at + strlen(name) - 1, end) : NULL;
  if (stop == NULL) return;
  fl_buf_append(out, at, (size_t)(stop - at));
  fl_buf_putc(out, '\n');
}

/* What a reader of the paper sees: between the ends of the document, where the file has them. */
static void put_body(fl_buf *out, const fl_buf *flat) {
  static const char opening[] = "\\begin{document}";
  if (flat->len == 0) return;
  const char *s = flat->data, *end = s + flat->len, *body = find(s, end, opening);
  if (body != NULL) {
    put_command(out, s, body, "\\title{");
    put_command(out, s, body, "\\author{");
    body += sizeof opening - 1;
    while (body < end && *body == '\n') body++;
    const char *stop = find(body, end, "\\end{document}");
    fl_buf_append(out, body, (size_t)((stop ? stop : end) - body));
  } else {
    fl_buf_append(out, s, flat->len);
  }
}

/* --- includes --- */

static int include_file(project *p, fl_buf *out, const char *file, fl_err *err);

/* DIR/NAME, as it is or with ".tex": resolved, if it exists. */
static bool resolve(char out[PATH_MAX], const char *dir, const char *name) {
  char path[PATH_MAX + MAX_NAME + 8];
  size_t n = strlen(name);
  bool suffixed = n > 4 && strcmp(name + n - 4, ".tex") == 0;
  for (int with = suffixed ? 0 : 1; with >= 0; with--) {
    snprintf(path, sizeof path, "%s/%s%s", dir, name, with ? ".tex" : "");
    if (realpath(path, out) != NULL && !fl_fs_is_dir(out)) return true;
  }
  return false;
}

static int include(project *p, fl_buf *out, const cursor *at, const char *name) {
  char file[PATH_MAX], dir[PATH_MAX];
  size_t inside = strlen(p->folder);
  const char *here = p->stack[p->depth - 1];
  snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(here, '/') - here), here);
  if (!resolve(file, p->folder, name) && !resolve(file, dir, name))
    return fl_fail(p->err, FL_EINPUT,
                   "%s: line %zu of %s includes \"%s\", which is not there; add "
                   "it or take the line out",
                   p->path, line_of(at), strrchr(here, '/') + 1, name);
  if (strncmp(file, p->folder, inside) != 0 || (file[inside] != '/' && inside > 1))
    return fl_fail(p->err, FL_EINPUT,
                   "%s: line %zu of %s includes \"%s\", which lies outside of "
                   "the project's folder; copy it in",
                   p->path, line_of(at), strrchr(here, '/') + 1, name);
  for (size_t i = 0; i < p->depth; i++)
    if (strcmp(p->stack[i], file) == 0)
      return fl_fail(p->err, FL_EINPUT,
                     "%s: line %zu of %s includes \"%s\", which includes that "
                     "file again, in a circle; break it",
                     p->path, line_of(at), strrchr(here, '/') + 1, name);
  return include_file(p, out, file, p->err);
}

/* An argument in braces, at most MAX_NAME - 1 bytes; false if there is none. */
static bool argument(cursor *c, char out[MAX_NAME]) {
  while (c->s < c->end && (*c->s == ' ' || *c->s == '\n')) c->s++;
  if (c->s >= c->end || *c->s != '{') return false;
  const size_t most = c->end - c->s < MAX_NAME ? (size_t)(c->end - c->s) : MAX_NAME;
  const char *stop = memchr(c->s, '}', most);
  if (stop == NULL) return false;
  snprintf(out, MAX_NAME, "%.*s", (int)(stop - c->s - 1), c->s + 1);
  c->s = stop + 1;
  return true;
}

/* A file's name without braces, as TeX itself takes it: behind blanks, up to what is no part of
 * one. */
static bool bare_argument(cursor *c, char out[MAX_NAME]) {
  static const char name[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./";
  const char *s = c->s;
  size_t n = 0;
  while (s < c->end && *s == ' ') s++;
  if (s == c->s) return false;
  while (s + n < c->end && s[n] != '\0' && strchr(name, s[n])) n++;
  if (n == 0 || n >= MAX_NAME) return false;
  snprintf(out, MAX_NAME, "%.*s", (int)n, s);
  c->s = s + n;
  return true;
}

/* After "\NAME": true with the file's name when it is a command that includes one. */
static bool included_name(cursor *c, const char *command, size_t n, char out[MAX_NAME]) {
  static const char *const one[] = { "input", "include", "subfile", NULL };
  static const char *const two[] = { "import", "subimport", NULL };
  char dir[MAX_NAME], name[MAX_NAME];
  cursor before = *c;
  for (size_t i = 0; one[i]; i++)
    if (strlen(one[i]) == n && memcmp(command, one[i], n) == 0 && argument(c, out)) return true;
  *c = before;
  if (n == 5 && memcmp(command, "input", 5) == 0 && bare_argument(c, out)) return true;
  for (size_t i = 0; two[i]; i++)
    if (strlen(two[i]) == n && memcmp(command, two[i], n) == 0 && argument(c, dir) &&
        argument(c, name)) {
      snprintf(out, MAX_NAME, "%.250s/%.250s", dir, name);
      return true;
    }
  *c = before;
  return false;
}

/* --- one file --- */

/* Environments whose inside is no LaTeX: copied, or left out (comment). */
static bool copy_verbatim(cursor *c, fl_buf *out) {
  static const char *const names[] = { "verbatim", "verbatim*", "lstlisting", "minted", "comment" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char opening[40], closing[40];
    int n = snprintf(opening, sizeof opening, "\\begin{%s}", names[i]);
    snprintf(closing, sizeof closing, "\\end{%s}", names[i]);
    if (c->end - c->s < n || memcmp(c->s, opening, (size_t)n) != 0) continue;
    const char *stop = find(c->s, c->end, closing);
    stop = stop ? stop + strlen(closing) : c->end;
    if (strcmp(names[i], "comment") != 0) fl_buf_append(out, c->s, (size_t)(stop - c->s));
    c->s = stop;
    return true;
  }
  return false;
}

/* \verb|...| with any delimiter, on one line. */
static bool copy_verb(cursor *c, fl_buf *out, const char *name, size_t n) {
  if (n != 4 || memcmp(name, "verb", 4) != 0 || c->s >= c->end || *c->s == '\n') return false;
  const char *stop = c->s + 1;
  while (stop < c->end && *stop != *c->s && *stop != '\n') stop++;
  if (stop == c->end || *stop == '\n') return false;
  fl_buf_append(out, name - 1, (size_t)(stop + 1 - (name - 1)));
  c->s = stop + 1;
  return true;
}

/* A comment takes the line's end with it, as TeX does, and the whole line when it stands alone. */
static void skip_comment(cursor *c, fl_buf *out) {
  while (out->len > 0 && (out->data[out->len - 1] == ' ' || out->data[out->len - 1] == '\t'))
    out->len--;
  if (out->data) out->data[out->len] = '\0';
  const char *newline = memchr(c->s, '\n', (size_t)(c->end - c->s));
  c->s = newline ? newline + 1 : c->end;
  bool alone = out->len == 0 || out->data[out->len - 1] == '\n';
  bool paragraph = c->s < c->end && *c->s == '\n';
  if (!alone && paragraph) fl_buf_putc(out, '\n');
}

static int flatten(project *p, fl_buf *out, const char *text, size_t len) {
  cursor c = { text, text, text + len };
  int rc = FL_OK;
  char name[MAX_NAME];
  while (rc == FL_OK && c.s < c.end) {
    if (*c.s == '%') {
      skip_comment(&c, out);
    } else if (*c.s != '\\') {
      if (*c.s != '\r') fl_buf_putc(out, *c.s);
      c.s++;
    } else if (!copy_verbatim(&c, out)) {
      const char *command = ++c.s;
      while (c.s < c.end && ((*c.s >= 'a' && *c.s <= 'z') || (*c.s >= 'A' && *c.s <= 'Z'))) c.s++;
      size_t n = (size_t)(c.s - command);
      if (n == 0 && c.s < c.end) n = 1, c.s++; /* \% and the like */
      if (copy_verb(&c, out, command, n)) continue;
      if (included_name(&c, command, n, name)) {
        rc = include(p, out, &c, name);
      } else {
        fl_buf_append(out, command - 1, n + 1);
      }
    }
  }
  return rc;
}

static int flatten_input(project *p, fl_buf *out, const fl_source_input *in) {
  fl_buf utf8 = { 0 }, flat = { 0 };
  int rc = fl_source_decode(&utf8, in, p->err);
  if (rc == FL_OK && utf8.len > 0) rc = flatten(p, &flat, utf8.data, utf8.len);
  if (rc == FL_OK) put_body(out, &flat);
  if (rc == FL_OK && out->len > FL_SOURCE_MAX_BYTES) rc = fl_source_too_much(p->path, p->err);
  fl_buf_release(&flat);
  fl_buf_release(&utf8);
  return rc;
}

/* `file` is resolved. */
static int include_file(project *p, fl_buf *out, const char *file, fl_err *err) {
  fl_buf bytes = { 0 };
  if (p->depth == MAX_DEPTH)
    return fl_fail(err, FL_EINPUT, "%s: files included more than %d deep; flatten it", p->path,
                   MAX_DEPTH);
  int rc = fl_fs_read(&bytes, file, FL_SOURCE_MAX_BYTES, err);
  p->total += bytes.len;
  if (rc == FL_OK && p->total > 4 * FL_SOURCE_MAX_BYTES) rc = fl_source_too_much(p->path, err);
  if (rc == FL_OK) {
    fl_source_input in = { file, bytes.data ? bytes.data : "", bytes.len };
    p->stack[p->depth] = fl_strdup(file);
    if (p->stack[p->depth] == NULL) rc = fl_fail(err, FL_ENOMEM, "%s: not enough memory", file);
    else p->depth++;
    if (rc == FL_OK) {
      rc = flatten_input(p, out, &in);
      fl_free(p->stack[--p->depth]);
    }
  }
  fl_buf_release(&bytes);
  return rc;
}

static int read_latex(fl_buf *text, const fl_source_input *in, fl_err *err) {
  char file[PATH_MAX];
  if (in->len == 0) return FL_OK;
  project *p = fl_calloc(1, sizeof *p);
  if (p == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory to read it", in->path);
  p->path = in->path;
  p->err = err;
  int rc = FL_OK;
  if (realpath(in->path, file) == NULL) {
    rc = fl_fail(err, FL_ENOENT, "%s: gone while it was read", in->path);
  } else {
    snprintf(p->folder, sizeof p->folder, "%.*s", (int)(strrchr(file, '/') - file), file);
    rc = include_file(p, text, file, err);
  }
  fl_free(p);
  if (rc == FL_OK && text->oom) rc = fl_fail(err, FL_ENOMEM, "%s: not enough memory", in->path);
  return rc;
}

/* Main files name their class; parts of a project come with the file that includes them. */
static bool is_main_file(const fl_source_input *in) {
  static const char word[] = "\\documentclass";
  const char *s = in->bytes, *end = s + in->len;
  while ((s = find(s, end, word)) != NULL) {
    const char *line = s;
    while (line > in->bytes && line[-1] != '\n') line--;
    bool comment = memchr(line, '%', (size_t)(s - line)) != NULL;
    const char *stop = memchr(s, '\n', (size_t)(end - s));
    if (stop == NULL) stop = end;
    bool part = find(s, stop, "{subfiles}") || find(s, stop, "{standalone}");
    if (!comment) return !part;
    s = stop;
  }
  return false;
}

static const char *const suffixes[] = { ".tex", ".ltx", NULL };

const fl_source_kind fl_source_kind_latex = { .name = "LaTeX",
                                              .suffixes = suffixes,
                                              .max_bytes = FL_SOURCE_MAX_BYTES,
                                              .text_hash = true,
                                              .by_itself = is_main_file,
                                              .read = read_latex };
