/* reload.h - following a trainer: what a server needs of a fleet that is open for reading. */
#ifndef FL_ANSWER_RELOAD_H
#define FL_ANSWER_RELOAD_H

#include "fleet/manifest.h"
#include "retrieval/index.h"

/* Read-only fleets: from now on the disk is touched by nobody but who reads for fl_fleet_follow and
 * a supply (fetch_plan.h). An index or a cartridge that is not in memory is FL_EBUSY. */
void fl_fleet_keep_off_disk(fl_fleet *f);
/* Read-only fleets: takes over what a trainer has committed since, its manifest in `now` and that
 * one's index, which are used up; *changed tells. Without an index (NULL) it is read when it is
 * first needed, unless the fleet keeps off the disk. Positions of documents may change then, their
 * ids do not. Strings from listings stay valid. */
int fl_fleet_follow(fl_fleet *f, fl_manifest *now, fl_index *index, bool *changed, fl_err *err);

#endif
