/* fuse.h - one ranking of documents out of two: by their words and by their vectors. Pure. */
#ifndef FL_RETRIEVAL_FUSE_H
#define FL_RETRIEVAL_FUSE_H

#include "retrieval/hits.h"

/* The share of the cosine in the score of both. */
#define FL_FUSE_COSINE 0.1

/* The score by the rule
 *   both:     (1 - FL_FUSE_COSINE) * words + FL_FUSE_COSINE * cosine
 *   else:     words, or cosine
 * where what was not found counts 0, and a cosine under 0 as 0 in the score of both. */
double fl_fuse_score(fl_rag_by by, double words, double cosine);

/* v[0..n): a document each, with cosine (under -1: not searched), words and matched set. Sets ranks
 * and scores and sorts, best first; equal scores in the order of documents. */
void fl_fuse(fl_hit *v, size_t n, fl_rag_by by);

/* Adds gains to the scores of the first n documents and sorts these anew. A gain counts as the
 * score of words does, of which `full` is the most there can be: both are logarithms of how much
 * likelier the one makes the other. */
void fl_fuse_gains(fl_hit *v, size_t n, double full);

/* h->ranked, h->doc and h->margin, for which there is room, from documents in order. One is chosen
 * when its score is at the floor at least and a ranking that counts has its chunk among the best
 * o->chunks (least_cosine: the last of those) or has it among the first o->chunks documents by
 * words. */
void fl_fuse_choose(fl_hits *h, const fl_hit *v, size_t n, const fl_rag_options *o,
                    double least_cosine);

#endif
