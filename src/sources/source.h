/* source.h - from what --docs names to texts. A file is one document (text, at most 16 MiB); a
 * folder gives its top-level .md and .txt files in byte order, all of them with `recursive`. A
 * document's name is the path as passed (folder + "/" + relative path). Kinds of files are a const
 * table (source_text.c first); a file that can't be read is one line with the reason.
 */
#ifndef FL_SOURCES_SOURCE_H
#define FL_SOURCES_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/hash.h"

#define FL_SOURCE_MAX_BYTES ((size_t)16 << 20)

typedef struct fl_source_doc {
  char *name;              /* as passed */
  char *text;              /* UTF-8, NUL-terminated, no NUL inside */
  size_t len;
  char hash[FL_HASH_TEXT]; /* of the file's bytes */
} fl_source_doc;

typedef struct fl_source_list {
  fl_source_doc *doc;      /* in the order of paths; inside a folder in byte order */
  size_t n;
} fl_source_list;

/* Duplicate names, unreadable files, invalid UTF-8, empty files, too large ones: FL_EINPUT /
 * FL_ENOENT naming the first. */
int fl_source_read(fl_source_list *out, const char *const *paths, size_t n_paths, bool recursive,
                   fl_err *err);
void fl_source_release(fl_source_list *l);

#endif
