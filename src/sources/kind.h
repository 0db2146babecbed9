/* kind.h - the kinds of files that documents can be read from. A kind is a row of the const table
 * in source.c: how to recognise it by its name and how to make text of its bytes. One file a kind;
 * a kind whose library was not there when the program was built stays in the table and says so.
 *
 * All readers append valid UTF-8 without NUL to their output; source.c checks it once more.
 */
#ifndef FL_SOURCES_KIND_H
#define FL_SOURCES_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct fl_source_input {
  const char *path;
  const char *bytes; /* the whole file, never NULL */
  size_t len;
} fl_source_input;

/* What a file gives: one text, or several with a name each (the channels of a Slack export). */
typedef struct fl_source_part {
  char *name; /* NULL: the file is one document */
  fl_buf text;
} fl_source_part;

typedef struct fl_source_parts {
  fl_source_part *part;
  size_t n, cap;
} fl_source_parts;

typedef struct fl_source_kind {
  const char *name;
  const char *const *suffixes; /* with the dot, lower case, NULL-terminated: taken from folders */
  const char *needs;           /* the Debian package that is missing in this build; NULL: none is */
  size_t max_bytes;            /* of the file */
  bool fallback;               /* takes files that no suffix of any kind claims */
  bool text_hash;              /* the file is not all that the text comes from: hash the text */
  /* Whether a file that stands in a folder is a document by itself; NULL: every one is. */
  bool (*by_itself)(const fl_source_input *in);
  /* Appends the text of the one document to `text`, or (read_parts) adds parts. */
  int (*read)(fl_buf *text, const fl_source_input *in, fl_err *err);
  int (*read_parts)(fl_source_parts *out, const fl_source_input *in, fl_err *err);
} fl_source_kind;

extern const fl_source_kind fl_source_kind_text, fl_source_kind_json, fl_source_kind_jsonl,
    fl_source_kind_csv, fl_source_kind_html, fl_source_kind_latex, fl_source_kind_pdf,
    fl_source_kind_mbox, fl_source_kind_eml, fl_source_kind_slack;

/* decode.c: bytes in a text encoding to UTF-8. By byte order mark, else valid UTF-8, else UTF-16 by
 * its zero bytes, else Windows-1252 (Latin-1's superset) when no byte speaks against it. */
int fl_source_decode(fl_buf *out, const fl_source_input *in, fl_err *err);
/* Appends text of unknown quality: invalid UTF-8 becomes U+FFFD, CR LF a newline, other control
 * characters but tabs go. */
void fl_source_put_clean(fl_buf *out, const char *s, size_t len);

/* source_html.c: the readable text of HTML in `encoding` (NULL: as it declares). FL_EINPUT when it
 * was built without libxml2. */
int fl_source_html_text(fl_buf *out, const char *path, const char *bytes, size_t len,
                        const char *encoding, fl_err *err);

/* source.c: a new part, its text empty; NULL on lack of memory. Valid until the next call. */
fl_source_part *fl_source_parts_add(fl_source_parts *out, const char *name, size_t name_len);
void fl_source_parts_release(fl_source_parts *p);

/* The sentence for text that exceeds FL_SOURCE_MAX_BYTES. */
int fl_source_too_much(const char *path, fl_err *err);

#endif
