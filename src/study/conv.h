/* conv.h - putting a conversation together from what the bots wrote. */
#ifndef FL_STUDY_CONV_H
#define FL_STUDY_CONV_H

#include "study/study.h"

/* Teacher rows of one answer while it is being written; room for all of them from the start, since
 * the decoding loop does not allocate. */
typedef struct fl_target_room {
  size_t top_k, n_rows, max_rows;
  uint32_t *count; /* [max_rows] */
  int32_t *id;     /* [max_rows, top_k] */
  float *prob;
} fl_target_room;

int fl_target_room_init(fl_target_room *r, size_t max_rows, size_t top_k, fl_err *err);
void fl_target_room_release(fl_target_room *r);
/* Keeps the top of a row of logits [n_vocab]; rows past max_rows are dropped. */
void fl_target_room_add(fl_target_room *r, const fl_kernels *k, const float *logits, size_t n_vocab,
                        double mass);

/* A bot's text: what follows its reasoning, without surrounding white space. */
typedef struct fl_bot_text {
  char *text; /* owned */
  size_t len;
  size_t n_think; /* leading tokens that are reasoning */
} fl_bot_text;
int fl_bot_text_read(fl_bot_text *out, const fl_tokenizer *t, const fl_ids *ids, fl_err *err);

/* out->tokens = prompt, answer, stop; supervised: the answer from token n_think on, and the stop.
 * room row i belongs to answer token i. Fills tokens, sup and targets only. */
int fl_conv_build(fl_conv *out, const fl_ids *prompt, const fl_ids *answer, int32_t stop,
                  size_t n_think, const fl_target_room *room, fl_err *err);

/* Adds the next turn of a conversation: next's tokens begin with those of *io up to its end of
 * turn. next is taken over. On failure both are as they were. */
int fl_conv_join(fl_conv *io, fl_conv *next, fl_err *err);

#endif
