/* train_eval.h - train --eval: the questions of a file, asked while a fleet is trained. */
#ifndef FL_COMMANDS_TRAIN_EVAL_H
#define FL_COMMANDS_TRAIN_EVAL_H

#include "fleet/fleet.h"

typedef struct train_eval train_eval;
/* Reads the file and finds its documents in the fleet. f and team are borrowed. */
int train_eval_new(train_eval **out, const char *questions, const char *arms, fl_fleet *f,
                   fl_team *team, fl_err *err);
void train_eval_free(train_eval *e);
/* Shaped as fl_train_hooks.evaluate, ctx is the train_eval: asks, logs an `eval` event for each
 * arm and prints a line. */
int train_eval_run(void *ctx, fl_fleet *f, uint64_t round, fl_err *err);

#endif
