/* anchored.h - conversations that begin from a place in the document instead of from what a bot
 * makes of a chunk: its sentences, rows of tables and stretches of code (spans.h), one after the
 * other.
 *
 * Each is visited once before any is visited again: pass q over a document of S spans (draws
 * qS .. qS + S - 1 of the anchored kinds) takes them in an order drawn for that pass. What is made
 * of one is
 *   quote     "quote the document from where it says ...": the answer is the document's own text
 *             from there on, as far as an answer may go, to the end of a span
 *   cloze     the span with a term missing (terms.h): the answer is the term, or the whole span
 *   sentence  bot A sees the span, what stands before it in its paragraph and the headings over it,
 *             never the chunk, and writes a question; bot B answers it behind the chunk, or the
 *             span is the answer
 * A request names the document's title and the headings, so that it means something to who does not
 * see the chunk.
 */
#ifndef FL_STUDY_ANCHORED_H
#define FL_STUDY_ANCHORED_H

#include "study/mix.h"
#include "study/spans.h"
#include "study/study.h"

typedef struct fl_anchored {
  size_t span;             /* index of the span */
  size_t first, end;       /* the chunk, in tokens of the document; it holds the following */
  size_t at_first, at_end; /* what the conversation is about, in tokens */
  char *request, *answer;  /* quote, cloze, the latter of sentences too; NULL: the bots' */
  char *shown;             /* sentence: what bot A reads in place of the chunk */
} fl_anchored;

/* way: not the seeds. FL_EINPUT without a sentence: nothing can be made of that span (none in the
 * text, longer than a chunk). A cloze of a span without a term is a quote: *way says what it is. */
int fl_anchored_make(fl_anchored *out, fl_way *way, uint32_t nth, uint32_t doc_key,
                     const fl_study_options *o, const fl_doc_text *doc, const fl_text_spans *spans,
                     fl_err *err);
void fl_anchored_release(fl_anchored *a);

/* The span of the nth anchored draw. FL_ENOMEM. */
int fl_anchored_span(size_t *out, uint32_t nth, uint32_t doc_key, uint64_t seed, size_t n_spans);

#endif
