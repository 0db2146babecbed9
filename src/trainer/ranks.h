/* ranks.h - what the ranks of one training do together: conversations that each makes a share
 * of, and the steering of rank 0 that the others follow. Private to this folder.
 *
 * Every rank runs the whole of the trainer's code and holds the whole of its state, so that all
 * take the same decisions; rank 0 alone writes, logs and listens. Only rank 0 hears the control
 * socket, and signals reach ranks at different times: whatever polls (a generation, a birth, an
 * evaluation) therefore ends in fl_trainer_share(), after which all ranks have the same flags
 * again.
 */
#ifndef FL_TRAINER_RANKS_H
#define FL_TRAINER_RANKS_H

#include "trainer/state.h"

/* fl_study_make by all ranks: conv and ok [n] are the same on all of them afterwards. A
 * conversation that is not within the limits did not come out. log: on rank 0; NULL: none. n is at
 * most fl_ranks_room(). Collective, also with an rc from before that is not FL_OK. */
int fl_ranks_make(fl_trainer *t, int rc, fl_conv *conv, bool *ok, const fl_conv_plan *plan,
                  const fl_doc_text *const *text, size_t n, bool logged, fl_study_stats *stats,
                  fl_err *err);
/* FL_EFAIL, on all ranks with one sentence, unless all hold the same rows and moments: before a
 * save, which keeps those of rank 0. Collective. */
int fl_ranks_compare(fl_trainer *t, fl_err *err);
/* Conversations of one call: as many for each rank as one makes at a time. */
size_t fl_ranks_room(const fl_trainer *t);

#endif
