/* trainer.h - training the cartridges of a fleet that is open for writing. How it goes: state.h. */
#ifndef FL_TRAINER_TRAINER_H
#define FL_TRAINER_TRAINER_H

#include "fleet/hooks.h"

/* Births missing cartridges, builds the index, trains opts->rounds rounds, commits. FL_EINTR when a
 * poll asked to stop (state saved). */
int fl_fleet_train(fl_fleet *f, const fl_train_hooks *hooks, fl_err *err);
/* Trains on the conversations of a study file instead of making any; documents that it says nothing
 * about still make their own. Between opening for writing and training. FL_EINPUT when no line is
 * about a document of this fleet. */
int fl_fleet_use_study(fl_fleet *f, const char *path, fl_err *err);

#endif
