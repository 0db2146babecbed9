/* note.h - the event of a conversation that was tried ("study" in man/flotilla-events.5). The
 * model's own pair of bots, a remote one and the trainer log alike. */
#ifndef FL_STUDY_NOTE_H
#define FL_STUDY_NOTE_H

#include "base/events.h"
#include "study/reject.h"
#include "study/study.h"

typedef struct fl_study_note {
  const fl_conv_plan *plan;
  const char *kind;             /* of the seed instruction */
  size_t turn, n_turns;         /* which, from 0, of how many; logged when there are several */
  size_t first, end;            /* span of the chunk */
  size_t at_first, at_end;      /* of what it is about; 0, 0: not logged */
  double teacher;               /* loss on a given answer, nats a token; NaN: not logged */
  const char *request, *answer; /* NULL: none */
  size_t request_len, answer_len;
  size_t n_supervised;
  uint32_t attempt;
  fl_reject why;
  const char *of; /* "request" or "answer", where why is a reason */
} fl_study_note;

void fl_study_log(fl_events *log, const fl_study_note *n);

#endif
