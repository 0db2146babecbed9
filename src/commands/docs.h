/* docs.h - the options that name documents, shared by every command that takes some. */
#ifndef FL_COMMANDS_DOCS_H
#define FL_COMMANDS_DOCS_H

#include "cli/options.h"
#include "sources/source.h"

typedef struct docs_args {
  opt_list docs, ignore;
  bool recursive, skip;
} docs_args;

extern const opt_spec docs_specs[]; /* offsets in docs_args */

/* How they are read; a is borrowed. */
fl_source_options docs_options(const docs_args *a);
/* Reads them; a warning for each file that could not be read, see fl_source_read_with(). */
int docs_read(fl_source_list *out, const docs_args *a, fl_err *err);

#endif
