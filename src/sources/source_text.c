/* source_text.c - plain text and Markdown: taken as it stands, in UTF-8. */
#include "sources/kind.h"
#include "sources/source.h"

static int read_text(fl_buf *text, const fl_source_input *in, fl_err *err) {
  return fl_source_decode(text, in, err);
}

static const char *const suffixes[] = { ".md", ".txt", NULL };

const fl_source_kind fl_source_kind_text = { .name = "text",
                                             .suffixes = suffixes,
                                             .max_bytes = FL_SOURCE_MAX_BYTES,
                                             .fallback = true,
                                             .read = read_text };
