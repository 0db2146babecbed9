/* train.h - the two ways in which cmd_train.c runs a training: here, or detached with the dashboard
 * in front. */
#ifndef FL_COMMANDS_TRAIN_H
#define FL_COMMANDS_TRAIN_H

#include "commands/command.h"
#include "commands/docs.h"
#include "commands/runtime.h"
#include "cli/progress.h"
#include "commands/train_options.h"
#include "fleet/train_options.h"

typedef struct train_args {
  common_args common;
  engine_args engine;
  fl_train_options train;
  docs_args input;
  opt_list remove, redo;
  bool resume, update, tui, leave;
  uint64_t log_bytes; /* of a part of the event log */
  const char *merge, *study, *eval, *eval_arms, *init;
  fl_dist *dist; /* no option: the ranks that train together; NULL: this process alone */
} train_args;

/* Opens, trains, commits and prints the result. docs is released as soon as it is not needed. */
int train_run(train_args *a, const char *dir, fl_source_list *docs, fl_err *err);
/* The same in a child process with its own session, which writes to DIR/train.log, while this one
 * shows the dashboard. When the dashboard is left, training goes on. */
int train_detached(train_args *a, const char *dir, fl_source_list *docs, fl_err *err);

#endif
