/* prefix.h - what stands before a question: rows of cartridges, or text in a system message. One
 * builder for an answer, a conversation, an evaluation and both sockets; the ways to do it are a
 * table (prefix.c).
 */
#ifndef FL_ANSWER_PREFIX_H
#define FL_ANSWER_PREFIX_H

#include "answer/answer.h"

/* The documents' texts and where their tokens end, each read and tokenised when first needed. */
typedef struct fl_doc_reader fl_doc_reader;
int fl_doc_reader_new(fl_doc_reader **out, fl_fleet *f, fl_err *err);
void fl_doc_reader_free(fl_doc_reader *r); /* NULL is nothing */

typedef struct fl_prefix_spec {
  fl_arm arm;
  const size_t *docs; /* cartridge: composed in this order; context: read whole */
  size_t n_docs;
  const fl_hits *hits; /* text: its chunks, best first */
  size_t budget; /* text: tokens of the message, to which the last chunk is cut; 0: all, whole */
} fl_prefix_spec;

/* Appends the rows of cartridges to seq, and to ids what is still to be read behind them; both stay
 * as they are where nothing stands before the question. After a failure seq may have rows. */
int fl_prefix_build(fl_seq *seq, fl_ids *ids, fl_doc_reader *r, const fl_prefix_spec *p,
                    fl_err *err);

#endif
