/* scratch.h - a folder of its own for a test, under $TMPDIR or /tmp. Paths are given in a few
 * rotating buffers; scratch_end removes the folder with what is directly in it. */
#ifndef FL_TESTSUITE_SCRATCH_H
#define FL_TESTSUITE_SCRATCH_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "suite.h"

static char scratch_dir[512];

static inline void scratch_begin(void) {
  const char *base = getenv("TMPDIR");
  snprintf(scratch_dir, sizeof scratch_dir, "%s/flotilla-test-XXXXXX", base ? base : "/tmp");
  ck_assert_ptr_nonnull(mkdtemp(scratch_dir));
}

static inline const char *scratch(const char *name) {
  static char path[4][1024];
  static unsigned turn;
  char *p = path[turn++ % 4];
  snprintf(p, sizeof path[0], "%s/%s", scratch_dir, name);
  return p;
}

static inline void scratch_end(void) {
  DIR *d = opendir(scratch_dir);
  if (d == NULL) return;
  for (const struct dirent *e; (e = readdir(d)) != NULL;)
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) unlink(scratch(e->d_name));
  closedir(d);
  rmdir(scratch_dir);
}

/* Writes a file without the code under test; a new one, for some file systems write a file out at
 * once that was emptied and filled again, which thousands of damaged files would wait for. */
static inline void scratch_put(const char *path, const void *data, size_t n) {
  unlink(path);
  FILE *f = fopen(path, "wb");
  ck_assert_ptr_nonnull(f);
  ck_assert_uint_eq(fwrite(data, 1, n, f), n);
  ck_assert_int_eq(fclose(f), 0);
}

/* Number of entries of the scratch folder. */
static inline size_t scratch_count(void) {
  size_t n = 0;
  DIR *d = opendir(scratch_dir);
  ck_assert_ptr_nonnull(d);
  while (readdir(d) != NULL) n++;
  closedir(d);
  return n - 2;
}

#endif
