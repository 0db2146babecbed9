/* tree_util.h - folders of tests. */
#ifndef FL_TESTSUITE_TREE_UTIL_H
#define FL_TESTSUITE_TREE_UTIL_H

#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"

/* A folder and all that is in it; links are not followed. */
static inline void remove_tree(const char *path) {
  char **names = NULL;
  size_t n = 0;
  if (fl_fs_list(&names, &n, path, NULL) != FL_OK) return;
  for (size_t i = 0; i < n; i++) {
    char *p = fl_fs_join(path, names[i]);
    struct stat st;
    if (lstat(p, &st) == 0 && S_ISDIR(st.st_mode)) remove_tree(p);
    else unlink(p);
    fl_free(p);
  }
  fl_fs_list_free(names, n);
  rmdir(path);
}

#endif
