/* kind.h - the kinds of files that documents can be read from. A kind is a row of the const table
 * in source.c: how to recognise it by its name and how to make text of its bytes. */
#ifndef FL_SOURCES_KIND_H
#define FL_SOURCES_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct fl_source_kind {
  const char *name;
  const char *const *suffixes; /* with the dot, lower case, NULL-terminated: taken from folders */
  bool fallback;               /* takes files that no suffix of any kind claims */
  /* Appends the document's text, valid UTF-8 without NUL, for the bytes of the file `path`. */
  int (*read)(fl_buf *text, const char *path, const char *bytes, size_t len, fl_err *err);
} fl_source_kind;

extern const fl_source_kind fl_source_kind_text;

#endif
