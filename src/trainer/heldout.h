/* heldout.h - conversations that a document is judged by and never trained on.
 *
 * They are fixed at birth in the sense that they are a pure function of the seed and the document:
 * round 0 of the random streams, which training never uses, and draws far from those of training.
 * They are made when the document is first resident and kept in heldout.jsonl, one line each with
 * the document's hash, so that a changed document gets new ones and a lost file only costs time.
 *
 * Lines are added while they are made, a batch at a time and synced. A kill may cut the last of
 * them: a line without its end, and a document with fewer lines than it says, count as damaged.
 */
#ifndef FL_TRAINER_HELDOUT_H
#define FL_TRAINER_HELDOUT_H

#include "trainer/residency.h"

#define FL_HELDOUT_FILE "heldout.jsonl"
/* Draws of held-out conversations begin here: another pass over the document than training's. */
#define FL_HELDOUT_DRAW UINT32_C(0x80000000)

/* Fills heldout of every slot that does not have it yet from the file. Lines of other documents or
 * hashes are passed over; a document of which a line is damaged, missing or beyond the limits stays
 * unknown, with a warning. */
int fl_heldout_read(fl_residency *r, const fl_fleet *f, const fl_conv_limits *limits, fl_err *err);

/* The plans for slot s; plan has room for n. */
void fl_heldout_plan(const fl_fleet *f, const fl_resident *s, size_t n, fl_conv_plan *plan);

/* Takes n conversations (moved; ok[i] false: skipped) as those of s. */
int fl_heldout_take(fl_resident *s, fl_conv *conv, const bool *ok, size_t n, fl_err *err);

/* Takes the lines out of the file that are of no use: of documents that are not as they are in the
 * manifest, of slots that do not have theirs. Before the first that are added. */
int fl_heldout_clean(const fl_residency *r, const fl_fleet *f, fl_err *err);
/* Adds those of the slots slot[0..n). */
int fl_heldout_add(const fl_residency *r, const fl_fleet *f, const size_t *slot, size_t n,
                   fl_err *err);

#endif
