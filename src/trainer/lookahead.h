/* lookahead.h - fresh conversations, made for several rounds at once.
 *
 * A conversation is a function of its plan alone, and a decoding step costs little more for eight
 * streams than for two. So when a round needs conversations, those of the rounds that follow are
 * made in the same batch, up to as many as a round has conversations, on every rank; the memory
 * that generation takes is thereby that of a round without --replay. What coming rounds will ask
 * for is foretold from the counters, up to the next rotation; where it turns out otherwise (no
 * conversation of a document's first round came out, a command changed the residents), what was not
 * foretold is made then, and what nobody asks for is dropped. Nothing of this is saved, and nothing
 * depends on it.
 */
#ifndef FL_TRAINER_LOOKAHEAD_H
#define FL_TRAINER_LOOKAHEAD_H

#include "base/rng.h"
#include "fleet/state.h"
#include "study/study.h"

typedef struct fl_trainer fl_trainer;

typedef struct fl_lookahead {
  fl_conv_plan *plan; /* [n], room for twice the conversations of a batch */
  fl_conv *conv;      /* [n] */
  bool *ok;           /* [n] */
  size_t n;
} fl_lookahead;

/* convs: of a batch of generation at most, of all ranks together. */
int fl_lookahead_init(fl_lookahead *a, size_t convs, fl_err *err);
void fl_lookahead_release(fl_lookahead *a);

/* Whether conversation j of a document's round is a fresh one: each with probability 1 / replay, so
 * that in the long run every conversation is used `replay` times. *g is left where the draw among
 * the kept ones goes on. */
bool fl_lookahead_is_fresh(const fl_train_options *o, uint32_t doc, uint64_t round, size_t j,
                           bool any_kept, fl_rng *g);

/* out[i], ok[i] = the conversation of plan[i], all of round plan[0].round and of the document in
 * `slot`; as fl_study_make. stats counts what was made in this call, for whatever round. */
int fl_lookahead_get(fl_trainer *t, size_t slot, const fl_conv_plan *plan, size_t n, fl_conv *out,
                     bool *ok, fl_study_stats *stats, fl_err *err);

#endif
