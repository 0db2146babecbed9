/* session.h - a sequence that holds documents in one of the four ways and answers turns. Private to
 * this folder; ask.c is one turn, chat.c several. */
#ifndef FL_ANSWER_SESSION_H
#define FL_ANSWER_SESSION_H

#include "answer/answer.h"
#include "fleet/state.h"

typedef struct fl_session {
  fl_fleet *f;
  fl_seq *seq;
  bool after_system;    /* the next turn follows a system message or cartridges */
  size_t prompt_tokens; /* of the system message */
  size_t turns;
  fl_ids pending; /* end of the last answer that is not in seq yet */
} fl_session;

/* Holds the documents of o->arm; nothing is asked yet. */
int fl_session_begin(fl_session *h, fl_fleet *f, const fl_ask_options *o, fl_err *err);
/* One turn: sampling, limits and streaming from o. After a failure the conversation stands as it
 * did before. */
int fl_session_turn(fl_session *h, const char *user, size_t len, const fl_ask_options *o,
                    fl_reply *out, fl_err *err);
void fl_session_end(fl_session *h);

void fl_log_answer(fl_fleet *f, const char *question, size_t len, const fl_ask_options *o,
                   const fl_reply *r);

#endif
