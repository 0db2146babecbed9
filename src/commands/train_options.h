/* train_options.h - the training flags as option tables over fl_train_options. */
#ifndef FL_COMMANDS_TRAIN_OPTIONS_H
#define FL_COMMANDS_TRAIN_OPTIONS_H

#include "cli/options.h"
#include "fleet/fleet.h"

extern const opt_spec study_specs[]; /* of self-study */
extern const opt_spec train_specs[]; /* the others */

#endif
