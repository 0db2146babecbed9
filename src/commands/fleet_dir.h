/* fleet_dir.h - what commands need from a fleet folder before a model is open. */
#ifndef FL_COMMANDS_FLEET_DIR_H
#define FL_COMMANDS_FLEET_DIR_H

#include <stdbool.h>

#include "base/err.h"
#include "fleet/manifest.h"

bool fleet_dir_exists(const char *dir); /* there is a fleet.json */
/* fl_manifest_load, with a sentence for a folder that holds no fleet. */
int fleet_dir_load(fl_manifest *out, const char *dir, fl_err *err);

/* What a fleet was last trained with, from its manifest; of one that does not say, from the last
 * run in its event log. NULL: not known. That it still is the fleet's model is checked at opening.
 */
typedef struct fleet_origin {
  char *model;         /* a path; the file may be gone */
  char *chat_template; /* a name */
} fleet_origin;

int fleet_dir_origin(fleet_origin *out, const char *dir, fl_err *err);
void fleet_origin_release(fleet_origin *o);

#endif
