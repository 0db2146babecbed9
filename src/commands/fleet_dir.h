/* fleet_dir.h - what commands need from a fleet folder before a model is open. */
#ifndef FL_COMMANDS_FLEET_DIR_H
#define FL_COMMANDS_FLEET_DIR_H

#include <stdbool.h>

#include "base/err.h"
#include "fleet/manifest.h"

bool fleet_dir_exists(const char *dir); /* there is a fleet.json */
/* fl_manifest_load, with a sentence for a folder that holds no fleet. */
int fleet_dir_load(fl_manifest *out, const char *dir, fl_err *err);
/* A text of the last run event in the log, allocated; NULL where there is none. */
char *fleet_dir_last_run(const char *dir, const char *member);
/* The model's path as the last run in the event log had it; allocated. FL_EUSAGE when it is not
 * known or nothing is there any more. That it still is the fleet's model is checked at opening. */
int fleet_dir_model(char **out, const char *dir, fl_err *err);

#endif
