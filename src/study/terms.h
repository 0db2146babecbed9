/* terms.h - which part of a sentence is worth leaving out. Private to the layer. */
#ifndef FL_STUDY_TERMS_H
#define FL_STUDY_TERMS_H

#include "base/rng.h"
#include "study/spans.h"

/* In the order in which they are worth it. */
typedef enum fl_term_sort {
  FL_TERM_QUOTED, /* between back quotes or double quotes, without them */
  FL_TERM_NUMBER, /* a word with a digit in it */
  FL_TERM_NAME,   /* words in capitals one after the other, but not the sentence's first word */
  FL_TERM_RARE,   /* of five letters or more, at most twice in the document */
  FL_TERM_WORD,   /* of four letters or more */
  FL_N_TERM_SORTS
} fl_term_sort;

typedef struct fl_term {
  uint32_t from, to; /* bytes */
  fl_term_sort sort;
} fl_term;

enum { FL_MAX_TERMS = 64 };

/* The terms of a span, at most FL_MAX_TERMS, in the order of the text. What `known`
 * (NUL-terminated) says already, and what stands twice in the span, is none. */
size_t fl_terms_find(fl_term out[FL_MAX_TERMS], const char *text, size_t len,
                     const fl_text_span *span, const char *known);
/* Draws one: the first three sorts and rare words alike where the span has them, plain words only
 * where it has no other. False: none. */
bool fl_terms_draw(fl_term *out, const fl_term *terms, size_t n, fl_rng *rng);

#endif
