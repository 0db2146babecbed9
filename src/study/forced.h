/* forced.h - the teacher's probabilities of answers that are given: one forward pass over request
 * and answer behind the chunk's rows, nothing is decoded. Private to the layer. */
#ifndef FL_STUDY_FORCED_H
#define FL_STUDY_FORCED_H

#include "study/conv.h"

typedef struct fl_forced {
  const fl_seq *system;          /* the chunk's rows; stays as it is */
  const fl_ids *prompt, *answer; /* at least one token each */
  fl_target_room *room;          /* gets a row for each token of the answer and one for its end */
  double loss; /* out: of the teacher on the answer's own tokens, their sum in nats */
} fl_forced;

/* All of them packed into passes of the pass's max_rows; by the row rule none has other bits for
 * the others. FL_EINTR where the options' `cancelled` says so. pass: max_spans >= n. */
int fl_forced_run(fl_forced *f, size_t n, const fl_study_options *o, fl_pass *pass, fl_err *err);

#endif
