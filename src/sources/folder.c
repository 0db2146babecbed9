/* folder.c - paths to file names: kinds by suffix, listings, patterns. */
#include "sources/folder.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"

enum { MAX_DEPTH = 64 }; /* of a recursive listing */

static const fl_source_kind *const kinds[] = { &fl_source_kind_text,  &fl_source_kind_json,
                                               &fl_source_kind_jsonl, &fl_source_kind_csv,
                                               &fl_source_kind_html,  &fl_source_kind_latex,
                                               &fl_source_kind_pdf,   &fl_source_kind_eml,
                                               &fl_source_kind_mbox,  &fl_source_kind_slack };
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

void fl_source_names_release(fl_source_names *l) {
  for (size_t i = 0; i < l->n; i++) fl_free(l->name[i].path);
  fl_free(l->name);
  *l = (fl_source_names){ 0 };
}

/* Takes `path` over, also on failure. */
static int push(fl_source_names *l, char *path, bool listed, fl_err *err) {
  if (path == NULL) goto oom;
  if (l->n == l->cap) {
    size_t cap = l->cap ? l->cap * 2 : 16;
    fl_source_name *p = fl_reallocarray(l->name, cap, sizeof *p);
    if (p == NULL) goto oom;
    l->name = p;
    l->cap = cap;
  }
  l->name[l->n++] = (fl_source_name){ path, listed };
  return FL_OK;
oom:
  fl_free(path);
  return fl_fail(err, FL_ENOMEM, "--docs: not enough memory to list the documents");
}

static bool ends_with(const char *name, const char *suffix) {
  size_t n = strlen(name), m = strlen(suffix);
  return n > m && strcasecmp(name + n - m, suffix) == 0;
}

const fl_source_kind *fl_source_kind_by_suffix(const char *path) {
  for (size_t k = 0; k < N_KINDS; k++)
    for (const char *const *s = kinds[k]->suffixes; *s != NULL; s++)
      if (ends_with(path, *s)) return kinds[k];
  return NULL;
}

const fl_source_kind *fl_source_kind_of(const char *path) {
  const fl_source_kind *k = fl_source_kind_by_suffix(path);
  for (size_t i = 0; k == NULL && i < N_KINDS; i++)
    if (kinds[i]->fallback) k = kinds[i];
  return k;
}

/* Folders that are symbolic links are not entered, so a listing cannot go round in circles. */
static bool is_real_dir(const char *path) {
  struct stat st;
  return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A fleet's logs and manifests are no documents. */
static bool holds_fleet(const char *dir) {
  char *path = fl_fs_join(dir, "fleet.json");
  bool there = path != NULL && fl_fs_exists(path);
  fl_free(path);
  return there;
}

typedef struct listing {
  fl_source_names *out;
  const fl_source_options *o;
  size_t below; /* where in a path the part below the folder begins */
  fl_err *err;
} listing;

static bool ignored(const listing *l, const char *path, const char *entry) {
  for (size_t i = 0; i < l->o->n_ignore; i++) {
    const char *pattern = l->o->ignore[i];
    bool whole = strchr(pattern, '/') != NULL;
    if (whole && fnmatch(pattern, path + l->below, FNM_PATHNAME) == 0) return true;
    if (!whole && fnmatch(pattern, entry, 0) == 0) return true;
  }
  return false;
}

static int list_folder(const listing *l, const char *dir, int depth);

/* Takes `path` over. */
static int list_entry(const listing *l, char *path, const char *entry, int depth) {
  int rc = FL_OK;
  if (ignored(l, path, entry)) {
    fl_free(path);
  } else if (l->o->recursive && is_real_dir(path)) {
    rc = holds_fleet(path) ? FL_OK
         : depth < MAX_DEPTH
             ? list_folder(l, path, depth + 1)
             : fl_fail(l->err, FL_EINPUT, "%s: folders nested more than %d deep; name it by itself",
                       path, MAX_DEPTH);
    fl_free(path);
  } else if (fl_source_kind_by_suffix(entry) != NULL && !fl_fs_is_dir(path)) {
    rc = push(l->out, path, true, l->err);
  } else {
    fl_free(path);
  }
  return rc;
}

static int list_folder(const listing *l, const char *dir, int depth) {
  char **entry = NULL;
  size_t n = 0;
  int rc = fl_fs_list(&entry, &n, dir, l->err);
  for (size_t i = 0; rc == FL_OK && i < n; i++) {
    if (entry[i][0] == '.') continue;
    char *path = fl_fs_join(dir, entry[i]);
    rc = path ? list_entry(l, path, entry[i], depth)
              : fl_fail(l->err, FL_ENOMEM, "%s: not enough memory to list it", dir);
  }
  fl_fs_list_free(entry, n);
  return rc;
}

static int by_bytes(const void *a, const void *b) {
  return strcmp(((const fl_source_name *)a)->path, ((const fl_source_name *)b)->path);
}

/* "docs/" and "docs" name the same folder; the root stays "/". */
static char *trimmed(const char *path) {
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  return fl_strndup(path, n);
}

int fl_source_expand(fl_source_names *out, const char *path, const fl_source_options *o,
                     fl_err *err) {
  if (path[0] == '\0')
    return fl_fail(err, FL_EUSAGE, "--docs: an empty path; name a file or folder");
  if (!fl_fs_is_dir(path)) return push(out, fl_strdup(path), false, err);
  char *dir = trimmed(path);
  if (dir == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory to list it", path);
  size_t before = out->n;
  listing l = { out, o, strlen(dir) + (strcmp(dir, "/") != 0), err };
  int rc = list_folder(&l, dir, 0);
  if (rc == FL_OK && out->n == before)
    rc = fl_fail(err, FL_ENOENT,
                 "%s: no document in this folder (.md, .txt, .json, .html, .tex, .pdf "
                 "and others, see flotilla-documents(7))%s",
                 path, o->recursive ? "" : "; --recursive looks in the folders below too");
  else if (rc == FL_OK) qsort(out->name + before, out->n - before, sizeof *out->name, by_bytes);
  fl_free(dir);
  return rc;
}
