/* fleet_dir.h - a fleet folder before a model is open. */
#ifndef FL_FLEET_FLEET_DIR_H
#define FL_FLEET_FLEET_DIR_H

#include <stdbool.h>

#include "base/err.h"
#include "fleet/manifest.h"

bool fl_fleet_dir_exists(const char *dir); /* there is a fleet.json */
/* *exists tells whether there is one; FL_EUSAGE unless that is so exactly where it is resumed. */
int fl_fleet_dir_check(bool *exists, const char *dir, bool resume, fl_err *err);
/* fl_manifest_load, with a sentence for a folder that holds no fleet. */
int fl_fleet_dir_load(fl_manifest *out, const char *dir, fl_err *err);

/* What a fleet was last trained with, from its manifest; of one that does not say, from the last
 * run in its event log. NULL: not known. That it still is the fleet's model is checked at opening.
 */
typedef struct fl_fleet_origin {
  char *model;         /* a path; the file may be gone */
  char *chat_template; /* a name */
} fl_fleet_origin;

int fl_fleet_dir_origin(fl_fleet_origin *out, const char *dir, fl_err *err);
void fl_fleet_origin_release(fl_fleet_origin *o);

#endif
