/* source.c - paths to documents. Every path becomes file names (folder.c), every file is read by
 * the kind that its suffix names and gives one document or several. What cannot be read is
 * collected, so that one call tells of all of it. */
#include "sources/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/utf8.h"
#include "sources/folder.h"
#include "sources/kind.h"

/* --- parts --- */

fl_source_part *fl_source_parts_add(fl_source_parts *out, const char *name, size_t name_len) {
  if (out->n == out->cap) {
    size_t cap = out->cap ? out->cap * 2 : 8;
    fl_source_part *p = fl_reallocarray(out->part, cap, sizeof *p);
    if (p == NULL) return NULL;
    out->part = p;
    out->cap = cap;
  }
  char *copy = name ? fl_strndup(name, name_len) : NULL;
  if (name && copy == NULL) return NULL;
  out->part[out->n] = (fl_source_part){ .name = copy };
  return &out->part[out->n++];
}

void fl_source_parts_release(fl_source_parts *p) {
  for (size_t i = 0; i < p->n; i++) {
    fl_free(p->part[i].name);
    fl_buf_release(&p->part[i].text);
  }
  fl_free(p->part);
  *p = (fl_source_parts){ 0 };
}

int fl_source_too_much(const char *path, fl_err *err) {
  return fl_fail(err, FL_EINPUT, "%s: more than 16 MiB of text; split it", path);
}

/* --- one file --- */

/* The last file of several documents stays, so that naming them one by one reads it once. */
typedef struct reader {
  fl_source_list list;
  size_t cap;
  char *file; /* whose parts these are; NULL: none */
  fl_source_parts parts;
  char hash[FL_HASH_TEXT]; /* of the file's bytes */
} reader;

static int too_large(const fl_source_kind *k, const char *path, fl_err *err) {
  uint64_t size = 0;
  if (fl_fs_size(&size, path, NULL) != FL_OK || size <= k->max_bytes) return FL_OK;
  return fl_fail(err, FL_EINPUT, "%s: %.1f MiB, over the limit of %zu MiB for %s; split it", path,
                 (double)size / (1 << 20), k->max_bytes >> 20, k->name);
}

static int read_bytes(fl_buf *bytes, const fl_source_kind *k, const char *path, fl_err *err) {
  size_t bad = 0;
  if (!fl_utf8_valid(path, strlen(path), &bad))
    return fl_fail(err, FL_EINPUT, "%s: the file's name is not valid UTF-8; rename it", path);
  if (k->needs != NULL)
    return fl_fail(err, FL_EINPUT,
                   "%s: %s is read with the help of %s, which was missing when "
                   "flotilla was built; install it and build again",
                   path, k->name, k->needs);
  int rc = too_large(k, path, err);
  return rc == FL_OK ? fl_fs_read(bytes, path, k->max_bytes, err) : rc;
}

static bool is_blank(const fl_buf *text) {
  size_t i = 0;
  while (i < text->len && memchr(" \t\r\n\v\f", text->data[i], 6) != NULL) i++;
  return i == text->len;
}

/* What the kind promises: text, and good text. */
static int check_text(const fl_buf *text, const char *path, fl_err *err) {
  size_t bad = 0;
  if (text->oom) return fl_fail(err, FL_ENOMEM, "%s: not enough memory to read it", path);
  if (is_blank(text)) return fl_fail(err, FL_EINPUT, "%s: empty; leave it out or fill it", path);
  if (text->len > FL_SOURCE_MAX_BYTES) return fl_source_too_much(path, err);
  if (!fl_utf8_valid(text->data, text->len, &bad) || memchr(text->data, '\0', text->len))
    return fl_fail(err, FL_EINPUT, "%s: what it gives is no text; leave it out", path);
  return FL_OK;
}

/* Fills r->parts from the file. *leave_out: a file of a folder that is part of another document. */
static int read_file(reader *r, const char *path, bool listed, bool *leave_out, fl_err *err) {
  const fl_source_kind *k = fl_source_kind_of(path);
  fl_buf bytes = { 0 };
  fl_source_parts_release(&r->parts);
  fl_free(r->file);
  r->file = NULL;
  *leave_out = false;
  int rc = read_bytes(&bytes, k, path, err);
  if (rc == FL_OK) {
    fl_source_input in = { path, bytes.data ? bytes.data : "", bytes.len };
    fl_hash_bytes(r->hash, in.bytes, in.len);
    if (listed && k->by_itself && in.len > 0 && !k->by_itself(&in)) {
      *leave_out = true;
    } else if (k->read_parts) {
      rc = k->read_parts(&r->parts, &in, err);
    } else {
      fl_source_part *one = fl_source_parts_add(&r->parts, NULL, 0);
      rc = one ? k->read(&one->text, &in, err)
               : fl_fail(err, FL_ENOMEM, "%s: not enough memory to read it", path);
    }
  }
  for (size_t i = 0; rc == FL_OK && i < r->parts.n; i++)
    rc = check_text(&r->parts.part[i].text, path, err);
  if (rc == FL_OK && !*leave_out) {
    r->file = fl_strdup(path);
    if (r->file == NULL) rc = fl_fail(err, FL_ENOMEM, "%s: not enough memory to read it", path);
  }
  fl_buf_release(&bytes);
  return rc;
}

/* --- documents --- */

static int add_document(reader *r, const fl_source_part *part, fl_err *err) {
  fl_source_list *l = &r->list;
  const fl_source_kind *k = fl_source_kind_of(r->file);
  if (l->n == r->cap) {
    size_t cap = r->cap ? r->cap * 2 : 16;
    fl_source_doc *grown = fl_reallocarray(l->doc, cap, sizeof *grown);
    if (grown == NULL) return fl_fail(err, FL_ENOMEM, "--docs: not enough memory");
    l->doc = grown;
    r->cap = cap;
  }
  fl_source_doc doc = { .kind = k->name, .len = part->text.len };
  doc.name = part->name ? fl_asprintf("%s#%s", r->file, part->name) : fl_strdup(r->file);
  doc.text = fl_strndup(part->text.data, part->text.len);
  if (doc.name == NULL || doc.text == NULL) {
    fl_free(doc.name);
    fl_free(doc.text);
    return fl_fail(err, FL_ENOMEM, "%s: not enough memory to read it", r->file);
  }
  if (k->text_hash) fl_hash_bytes(doc.hash, doc.text, doc.len);
  else memcpy(doc.hash, r->hash, sizeof doc.hash);
  l->doc[l->n++] = doc;
  return FL_OK;
}

static int add_part(reader *r, const char *part, fl_err *err) {
  for (size_t i = 0; i < r->parts.n; i++)
    if (r->parts.part[i].name && strcmp(r->parts.part[i].name, part) == 0)
      return add_document(r, &r->parts.part[i], err);
  return fl_fail(err, FL_ENOENT, "%s: nothing in it is called \"%s\"", r->file, part);
}

/* "FILE#PART" where no such file exists but FILE does: the place of the '#', else NULL. */
static const char *part_of(const char *path) {
  const char *hash = fl_fs_exists(path) ? NULL : strrchr(path, '#');
  if (hash == NULL || hash == path) return NULL;
  char *file = fl_strndup(path, (size_t)(hash - path));
  bool there = file && fl_fs_exists(file) && fl_source_kind_of(file)->read_parts;
  fl_free(file);
  return there ? hash : NULL;
}

static int read_one(reader *r, const fl_source_name *name, fl_err *err) {
  const char *hash = part_of(name->path);
  bool leave_out = false;
  int rc = FL_OK;
  char *file = hash ? fl_strndup(name->path, (size_t)(hash - name->path)) : fl_strdup(name->path);
  if (file == NULL) return fl_fail(err, FL_ENOMEM, "--docs: not enough memory");
  if (!(hash && r->file && strcmp(r->file, file) == 0))
    rc = read_file(r, file, name->listed, &leave_out, err);
  if (rc == FL_OK && hash) rc = add_part(r, hash + 1, err);
  for (size_t i = 0; rc == FL_OK && !leave_out && !hash && i < r->parts.n; i++)
    rc = add_document(r, &r->parts.part[i], err);
  fl_free(file);
  return rc;
}

static int refuse_duplicates(const fl_source_list *l, fl_err *err) {
  if (l->n < 2) return FL_OK;
  const char **sorted = fl_calloc(l->n, sizeof *sorted);
  if (sorted == NULL) return fl_fail(err, FL_ENOMEM, "--docs: not enough memory");
  for (size_t i = 0; i < l->n; i++) sorted[i] = l->doc[i].name;
  const char *twice = fl_sort_names(sorted, l->n);
  fl_free(sorted); /* the names are the list's */
  if (twice == NULL) return FL_OK;
  return fl_fail(err, FL_EINPUT, "%s: named twice by --docs; name each document once", twice);
}

/* --- all of them --- */

static void tell(const fl_source_options *o, const fl_err *e) {
  if (o->unreadable) o->unreadable(o->ctx, e->text);
}

/* Reads every file. One that cannot be read does not stop the others, so that all are told of. */
static int read_all(reader *r, const fl_source_names *names, const fl_source_options *o,
                    fl_err *err) {
  size_t failed = 0;
  fl_err first = { 0 };
  for (size_t i = 0; i < names->n; i++) {
    fl_err why = { 0 };
    int rc = read_one(r, &names->name[i], &why);
    if (rc == FL_OK) continue;
    if (rc == FL_ENOMEM) return fl_fail(err, rc, "%s", why.text);
    if (o->skip) tell(o, &why);
    else if (failed == 1) tell(o, &first);
    if (!o->skip && failed > 0) tell(o, &why);
    if (failed++ == 0) first = why;
  }
  if (failed == 0 || (o->skip && r->list.n > 0)) return FL_OK;
  if (failed == 1 || o->unreadable == NULL) return fl_fail(err, first.code, "%s", first.text);
  if (o->skip) return fl_fail(err, FL_EINPUT, "--docs: not one file could be read");
  return fl_fail(err, FL_EINPUT,
                 "--docs: %zu of %zu files cannot be read; mend them, leave them "
                 "out with --ignore, or go on without them with --skip-unreadable",
                 failed, names->n);
}

int fl_source_read_with(fl_source_list *out, const char *const *paths, size_t n_paths,
                        const fl_source_options *o, fl_err *err) {
  fl_source_names names = { 0 };
  reader r = { 0 };
  int rc = FL_OK;
  for (size_t i = 0; rc == FL_OK && i < n_paths; i++)
    rc = fl_source_expand(&names, paths[i], o, err);
  if (rc == FL_OK && names.n == 0)
    rc = fl_fail(err, FL_EUSAGE, "--docs: no document named; give at least one file or folder");
  if (rc == FL_OK) rc = read_all(&r, &names, o, err);
  if (rc == FL_OK && r.list.n == 0)
    rc = fl_fail(err, FL_ENOENT,
                 "%s: no LaTeX file in it has a \\documentclass; name the main "
                 "one",
                 paths[0]);
  if (rc == FL_OK) rc = refuse_duplicates(&r.list, err);
  if (rc == FL_OK) {
    *out = r.list;
    r.list = (fl_source_list){ 0 };
  }
  fl_source_release(&r.list);
  fl_source_parts_release(&r.parts);
  fl_free(r.file);
  fl_source_names_release(&names);
  return rc;
}

int fl_source_read(fl_source_list *out, const char *const *paths, size_t n_paths, bool recursive,
                   fl_err *err) {
  fl_source_options o = { .recursive = recursive };
  return fl_source_read_with(out, paths, n_paths, &o, err);
}

void fl_source_release(fl_source_list *l) {
  for (size_t i = 0; i < l->n; i++) {
    fl_free(l->doc[i].name);
    fl_free(l->doc[i].text);
  }
  fl_free(l->doc);
  *l = (fl_source_list){ 0 };
}
