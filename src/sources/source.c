/* source.c - paths to documents: the table of kinds, folders, duplicates.
 *
 * Two stages: every path becomes one or more file names (a folder is listed, sorted by bytes), then
 * each file is read by the kind that its suffix names. */
#include "sources/source.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "sources/kind.h"

enum { MAX_DEPTH = 64 }; /* of a recursive listing */

static const fl_source_kind *const kinds[] = { &fl_source_kind_text };
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

typedef struct name_list {
  char **name;
  size_t n, cap;
} name_list;

static void names_release(name_list *l) {
  for (size_t i = 0; i < l->n; i++) fl_free(l->name[i]);
  fl_free(l->name);
  *l = (name_list){ 0 };
}

/* Takes `name` over, also on failure. */
static int names_push(name_list *l, char *name, fl_err *err) {
  if (name == NULL) goto oom;
  if (l->n == l->cap) {
    size_t cap = l->cap ? l->cap * 2 : 16;
    char **p = fl_reallocarray(l->name, cap, sizeof *p);
    if (p == NULL) goto oom;
    l->name = p;
    l->cap = cap;
  }
  l->name[l->n++] = name;
  return FL_OK;
oom:
  fl_free(name);
  return fl_fail(err, FL_ENOMEM, "--docs: not enough memory to list the documents");
}

static bool ends_with(const char *name, const char *suffix) {
  size_t n = strlen(name), m = strlen(suffix);
  return n > m && strcasecmp(name + n - m, suffix) == 0;
}

static const fl_source_kind *kind_by_suffix(const char *name) {
  for (size_t k = 0; k < N_KINDS; k++)
    for (const char *const *s = kinds[k]->suffixes; *s != NULL; s++)
      if (ends_with(name, *s)) return kinds[k];
  return NULL;
}

static const fl_source_kind *kind_of(const char *name) {
  const fl_source_kind *k = kind_by_suffix(name);
  for (size_t i = 0; k == NULL && i < N_KINDS; i++)
    if (kinds[i]->fallback) k = kinds[i];
  return k;
}

/* Folders that are symbolic links are not entered, so a listing cannot go round in circles. */
static bool is_real_dir(const char *path) {
  struct stat st;
  return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int list_folder(name_list *out, const char *dir, bool recursive, int depth, fl_err *err) {
  char **entry = NULL;
  size_t n = 0;
  int rc = fl_fs_list(&entry, &n, dir, err);
  for (size_t i = 0; rc == FL_OK && i < n; i++) {
    if (entry[i][0] == '.') continue;
    char *path = fl_fs_join(dir, entry[i]);
    if (path == NULL) {
      rc = fl_fail(err, FL_ENOMEM, "%s: not enough memory to list it", dir);
    } else if (recursive && is_real_dir(path)) {
      rc = depth < MAX_DEPTH
               ? list_folder(out, path, true, depth + 1, err)
               : fl_fail(err, FL_EINPUT, "%s: folders nested more than %d deep; name it by itself",
                         path, MAX_DEPTH);
      fl_free(path);
    } else if (kind_by_suffix(entry[i]) != NULL && !fl_fs_is_dir(path)) {
      rc = names_push(out, path, err);
    } else {
      fl_free(path);
    }
  }
  fl_fs_list_free(entry, n);
  return rc;
}

static int by_bytes(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "docs/" and "docs" name the same folder; the root stays "/". */
static char *trimmed(const char *path) {
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  return fl_strndup(path, n);
}

static int expand(name_list *out, const char *path, bool recursive, fl_err *err) {
  if (path[0] == '\0')
    return fl_fail(err, FL_EUSAGE, "--docs: an empty path; name a file or folder");
  if (!fl_fs_is_dir(path)) return names_push(out, fl_strdup(path), err);
  char *dir = trimmed(path);
  if (dir == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory to list it", path);
  name_list l = { 0 };
  int rc = list_folder(&l, dir, recursive, 0, err);
  if (rc == FL_OK && l.n == 0)
    rc = fl_fail(err, FL_ENOENT, "%s: no .md or .txt file in this folder%s", path,
                 recursive ? "" : "; --recursive looks in the folders below too");
  if (l.n > 0) qsort(l.name, l.n, sizeof l.name[0], by_bytes);
  for (size_t i = 0; rc == FL_OK && i < l.n; i++) {
    rc = names_push(out, l.name[i], err);
    l.name[i] = NULL;
  }
  names_release(&l);
  fl_free(dir);
  return rc;
}

static int refuse_duplicates(const name_list *l, fl_err *err) {
  if (l->n < 2) return FL_OK;
  char **sorted = fl_calloc(l->n, sizeof *sorted);
  if (sorted == NULL) return fl_fail(err, FL_ENOMEM, "--docs: not enough memory");
  memcpy(sorted, l->name, l->n * sizeof *sorted);
  qsort(sorted, l->n, sizeof *sorted, by_bytes);
  int rc = FL_OK;
  for (size_t i = 1; rc == FL_OK && i < l->n; i++)
    if (strcmp(sorted[i - 1], sorted[i]) == 0)
      rc = fl_fail(err, FL_EINPUT, "%s: named twice by --docs; name each document once", sorted[i]);
  fl_free(sorted);
  return rc;
}

static int read_document(fl_source_doc *out, const char *path, fl_err *err) {
  fl_buf bytes = { 0 }, text = { 0 };
  size_t bad = 0;
  if (!fl_utf8_valid(path, strlen(path), &bad))
    return fl_fail(err, FL_EINPUT, "%s: the file's name is not valid UTF-8; rename it", path);
  int rc = fl_fs_read(&bytes, path, FL_SOURCE_MAX_BYTES, err);
  if (rc != FL_OK) goto done;
  rc = kind_of(path)->read(&text, path, bytes.data != NULL ? bytes.data : "", bytes.len, err);
  if (rc != FL_OK) goto done;
  if (text.len == 0) {
    rc = fl_fail(err, FL_EINPUT, "%s: empty; leave it out or fill it", path);
    goto done;
  }
  fl_source_doc doc = { .name = fl_strdup(path), .len = text.len };
  doc.text = fl_buf_detach(&text);
  if (doc.name == NULL || doc.text == NULL) {
    fl_free(doc.name);
    fl_free(doc.text);
    rc = fl_fail(err, FL_ENOMEM, "%s: not enough memory to read it", path);
    goto done;
  }
  fl_hash_bytes(doc.hash, bytes.data, bytes.len);
  *out = doc;
done:
  fl_buf_release(&bytes);
  fl_buf_release(&text);
  return rc;
}

int fl_source_read(fl_source_list *out, const char *const *paths, size_t n_paths, bool recursive,
                   fl_err *err) {
  name_list names = { 0 };
  fl_source_list l = { 0 };
  int rc = FL_OK;
  for (size_t i = 0; rc == FL_OK && i < n_paths; i++) rc = expand(&names, paths[i], recursive, err);
  if (rc == FL_OK && names.n == 0)
    rc = fl_fail(err, FL_EUSAGE, "--docs: no document named; give at least one file or folder");
  if (rc == FL_OK) rc = refuse_duplicates(&names, err);
  if (rc != FL_OK) goto done;
  l.doc = fl_calloc(names.n, sizeof *l.doc);
  if (l.doc == NULL) {
    rc = fl_fail(err, FL_ENOMEM, "--docs: not enough memory");
    goto done;
  }
  for (; rc == FL_OK && l.n < names.n; l.n += rc == FL_OK)
    rc = read_document(&l.doc[l.n], names.name[l.n], err);
  if (rc != FL_OK) goto done;
  *out = l;
  l = (fl_source_list){ 0 };
done:
  fl_source_release(&l);
  names_release(&names);
  return rc;
}

void fl_source_release(fl_source_list *l) {
  for (size_t i = 0; i < l->n; i++) {
    fl_free(l->doc[i].name);
    fl_free(l->doc[i].text);
  }
  fl_free(l->doc);
  *l = (fl_source_list){ 0 };
}
