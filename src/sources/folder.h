/* folder.h - which files a path stands for. */
#ifndef FL_SOURCES_FOLDER_H
#define FL_SOURCES_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "sources/kind.h"
#include "sources/source.h"

typedef struct fl_source_name {
  char *path;
  bool listed; /* found in a folder, not named */
} fl_source_name;

typedef struct fl_source_names {
  fl_source_name *name;
  size_t n, cap;
} fl_source_names;

/* Appends the files that `path` stands for: itself, or what a folder gives. An empty folder is
 * FL_ENOENT. fl_source_names_release in any case. */
int fl_source_expand(fl_source_names *out, const char *path, const fl_source_options *o,
                     fl_err *err);
void fl_source_names_release(fl_source_names *l);

/* The kind that claims the suffix of a path, NULL if none does. */
const fl_source_kind *fl_source_kind_by_suffix(const char *path);
/* The same, else the kind that takes everything. */
const fl_source_kind *fl_source_kind_of(const char *path);

#endif
