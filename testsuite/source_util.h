/* source_util.h - a scratch folder with files in it, read as documents. */
#ifndef FL_TESTSUITE_SOURCE_UTIL_H
#define FL_TESTSUITE_SOURCE_UTIL_H

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sources/source.h"
#include "suite.h"
#include "tree_util.h"

static char dir[64];

static void setup(void) {
  strcpy(dir, "/tmp/flsrcXXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void teardown(void) { remove_tree(dir); }

static inline const char *at(const char *rel) {
  static char path[8][256];
  static int k;
  k = (k + 1) % 8;
  snprintf(path[k], sizeof path[k], "%s/%s", dir, rel);
  return path[k];
}

static inline void put(const char *rel, const void *data, size_t n) {
  FILE *f = fopen(at(rel), "wb");
  ck_assert_ptr_nonnull(f);
  ck_assert_uint_eq(fwrite(data, 1, n, f), n);
  fclose(f);
}

static inline void puts_at(const char *rel, const char *text) { put(rel, text, strlen(text)); }

static inline int read1(fl_source_list *l, const char *path, bool recursive, fl_err *err) {
  return fl_source_read(l, &path, 1, recursive, err);
}

/* The text of the one document in the file `rel`. */
static inline const char *text_of(const char *rel) {
  static fl_source_list l;
  fl_err err = { 0 };
  fl_source_release(&l);
  int rc = read1(&l, at(rel), false, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  ck_assert_uint_eq(l.n, 1);
  ck_assert_uint_eq(strlen(l.doc[0].text), l.doc[0].len);
  return l.doc[0].text;
}

static inline void gives(const char *rel, const char *file, const char *want) {
  puts_at(rel, file);
  ck_assert_str_eq(text_of(rel), want);
}

static inline void refused(const char *path, int code, const char *word) {
  fl_source_list l = { 0 };
  fl_err err = { 0 };
  ck_assert_int_eq(read1(&l, path, false, &err), code);
  ck_assert_msg(strstr(err.text, word) != NULL, "'%s' not in '%s'", word, err.text);
  ck_assert_ptr_null(l.doc);
}

#endif
