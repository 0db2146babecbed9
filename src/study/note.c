/* note.c - see note.h. */
#include "study/note.h"

#include <math.h>

void fl_study_log(fl_events *log, const fl_study_note *n) {
  fl_event e;
  fl_event_begin(&e, "study");
  fl_event_int(&e, "doc", n->plan->doc);
  fl_event_int(&e, "round", n->plan->round);
  fl_event_int(&e, "conv", n->plan->conv);
  fl_event_str(&e, "kind", n->kind);
  if (n->n_turns > 1) fl_event_int(&e, "turn", (int64_t)n->turn);
  fl_event_int(&e, "first", (int64_t)n->first);
  fl_event_int(&e, "end", (int64_t)n->end);
  if (n->at_end > 0) {
    fl_event_int(&e, "at_first", (int64_t)n->at_first);
    fl_event_int(&e, "at_end", (int64_t)n->at_end);
  }
  if (!isnan(n->teacher)) fl_event_num(&e, "teacher", n->teacher);
  if (n->request) fl_event_strn(&e, "request", n->request, n->request_len);
  if (n->answer) fl_event_strn(&e, "answer", n->answer, n->answer_len);
  fl_event_int(&e, "tokens", (int64_t)n->n_supervised);
  fl_event_bool(&e, "replayed", false);
  fl_event_int(&e, "attempt", n->attempt);
  if (n->why != FL_REJECT_NOT) {
    fl_event_str(&e, "rejected", fl_reject_name(n->why));
    fl_event_str(&e, "of", n->of);
  }
  fl_event_emit(log, &e);
}
