/* spans.h - a text taken apart into what can be asked about: sentences, rows of tables, stretches
 * of code, each under the headings that it stands under.
 *
 * Headings are those of Markdown, and in plain text lines that stand alone and are numbered ("2.1
 * Fields") or in capitals. Nothing is interpreted beyond that: a span is a range of bytes of the
 * text as it is.
 */
#ifndef FL_STUDY_SPANS_H
#define FL_STUDY_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef enum fl_span_sort { FL_SPAN_SENTENCE, FL_SPAN_ROW, FL_SPAN_CODE } fl_span_sort;

#define FL_NO_HEADING UINT32_MAX

typedef struct fl_text_heading {
  uint32_t from, to; /* bytes, without marks and white space */
  uint32_t level;    /* from 1 */
  uint32_t above;    /* index of the heading that it stands under, or FL_NO_HEADING */
} fl_text_heading;

typedef struct fl_text_span {
  uint32_t from, to; /* bytes, without surrounding white space; at least one */
  fl_span_sort sort;
  uint32_t heading;            /* index, or FL_NO_HEADING */
  uint32_t head_from, head_to; /* of a row: the first row of its table; empty: it is that one */
  uint32_t paragraph;          /* number of the block it lies in */
} fl_text_span;

/* In the order of the text, disjoint. Zeroed is empty. */
typedef struct fl_text_spans {
  fl_text_span *span;
  size_t n, cap;
  fl_text_heading *heading;
  size_t n_headings, heading_cap;
} fl_text_spans;

/* A text of at most UINT32_MAX bytes. */
int fl_text_spans_read(fl_text_spans *out, const char *text, size_t len, fl_err *err);
void fl_text_spans_release(fl_text_spans *s);

/* Appends what the document is called: its only heading of the highest level where the text begins
 * with it, else its name without folder and ending. name may be NULL: nothing is known then. */
void fl_text_title(fl_buf *out, const fl_text_spans *s, const char *text, const char *name);
/* Appends the headings over a span from the top, "A > B", without the one that is the title.
 * Nothing where there is none. */
void fl_text_path(fl_buf *out, const fl_text_spans *s, const char *text, const fl_text_span *span);

#endif
