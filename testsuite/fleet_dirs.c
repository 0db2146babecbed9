/* fleet_dirs.c - the folders of fleet_util.h. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "fleet_util.h"
#include "suite.h"

char fleet_dir[64], docs_dir[64];

void fleet_setup(void) {
  strcpy(docs_dir, "/tmp/fldocsXXXXXX");
  strcpy(fleet_dir, "/tmp/flfleetXXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(docs_dir));
  ck_assert_ptr_nonnull(mkdtemp(fleet_dir));
  rmdir(fleet_dir);
}

void fleet_teardown(void) {
  remove_tree(fleet_dir);
  remove_tree(docs_dir);
}

const char *doc_path(const char *name) {
  static char path[8][128];
  static int k;
  k = (k + 1) % 8;
  snprintf(path[k], sizeof path[k], "%s/%s", docs_dir, name);
  return path[k];
}

void put_doc(const char *name, const char *text) {
  ck_assert_int_eq(fl_fs_replace(doc_path(name), text, strlen(text), NULL), FL_OK);
}
