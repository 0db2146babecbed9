/* source.h - from what --docs names to texts. A file is one document of at most 16 MiB of text; a
 * folder gives the files in it whose suffix a kind claims, in byte order, with `recursive` those
 * below it too. Hidden entries and links to folders are left out. Kinds (a const table, one file
 * each): text and Markdown, JSON, JSON lines, CSV, HTML, LaTeX projects, PDF, mail, mailboxes,
 * exports of Slack.
 *
 * A document's name tells its origin: the path as passed (folder + "/" + relative path), and
 * behind a "#" the part of a file that holds several documents (a channel of Slack). Such a name
 * can be passed as a path and gives that one document again. */
#ifndef FL_SOURCES_SOURCE_H
#define FL_SOURCES_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/hash.h"

#define FL_SOURCE_MAX_BYTES ((size_t)16 << 20) /* of text */
#define FL_SOURCE_MAX_FILE ((size_t)256 << 20) /* of files that hold more than their text */

typedef struct fl_source_doc {
  char *name;
  const char *kind; /* static: "text", "PDF", ... */
  char *text;       /* UTF-8, NUL-terminated, no NUL inside */
  size_t len;
  char hash[FL_HASH_TEXT]; /* of the file's bytes; of the text where that comes from more or less
                              than one file (LaTeX, Slack) */
} fl_source_doc;

typedef struct fl_source_list {
  fl_source_doc *doc; /* in the order of paths; inside a folder in byte order */
  size_t n;
} fl_source_list;

typedef struct fl_source_options {
  bool recursive;
  /* Shell patterns (fnmatch(3)) of what folders do not give: without "/" for the last component of
   * a path, with it for the path below the folder; a folder that matches is not entered. */
  const char *const *ignore;
  size_t n_ignore;
  bool skip; /* files that cannot be read are left out; otherwise they are an error */
  /* One sentence for each file that could not be read: all of them with `skip`, otherwise when
   * there are several. NULL: not told. */
  void (*unreadable)(void *ctx, const char *sentence);
  void *ctx;
} fl_source_options;

/* FL_OK and the documents; nothing to be read, duplicate names, unreadable files without `skip`:
 * FL_EINPUT / FL_ENOENT / FL_EUSAGE with one sentence (after the ones told to `unreadable`). */
int fl_source_read_with(fl_source_list *out, const char *const *paths, size_t n_paths,
                        const fl_source_options *o, fl_err *err);
/* The same without patterns, all files needed; the sentence is about the first unreadable one. */
int fl_source_read(fl_source_list *out, const char *const *paths, size_t n_paths, bool recursive,
                   fl_err *err);
void fl_source_release(fl_source_list *l);

#endif
