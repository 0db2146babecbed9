/* passage.h - a text cut in passages of some 900 bytes, each under its headings.
 *
 * A passage ends before a heading where there is enough of it, else after a paragraph, a line, a
 * sentence or a word, in that order of preference; it never ends inside a character. Headings are
 * those of Markdown ('#' or underlined) and lines in capitals alone, as manuals have them; what
 * stands between ``` is no heading.
 */
#ifndef FL_RETRIEVAL_PASSAGE_H
#define FL_RETRIEVAL_PASSAGE_H

#include <stddef.h>

#include "base/buf.h"

enum { FL_PASSAGE_MIN = 300, FL_PASSAGE_BYTES = 900 };

typedef struct fl_passage {
  size_t first, end; /* bytes of the text; passages follow each other without a gap */
  size_t heading;    /* for fl_passage_heading */
} fl_passage;

typedef struct fl_passages {
  fl_passage *v;
  size_t n, cap;
  fl_buf headings;
} fl_passages;

/* FL_OK or FL_ENOMEM. A text of white space alone has none. */
int fl_passages_cut(fl_passages *out, const char *text, size_t len);
void fl_passages_release(fl_passages *p);

/* "Chapter > Section" where passage i begins; "" none. */
static inline const char *fl_passage_heading(const fl_passages *p, size_t i) {
  return p->headings.data + p->v[i].heading;
}

#endif
