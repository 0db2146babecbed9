/* reload.c - what a server needs of a fleet that is open for reading: following the trainer's
 * commits, and the documents' texts for drafts. */
#include "answer/reload.h"
#include "retrieval/retrieval.h"
#include "fleet/state.h"

void fl_fleet_keep_off_disk(fl_fleet *f) { f->off_disk = true; }

int fl_fleet_follow(fl_fleet *f, fl_manifest *now, fl_index *index, bool *changed, fl_err *err) {
  int rc = FL_OK;
  if (f->read_only) {
    rc = fl_fleet_take(f, now, changed, err);
  } else {
    fl_manifest_release(now);
    rc = fl_fail(err, FL_EUSAGE, "%s: opened for writing; there is nobody to follow", f->dir);
  }
  if (rc == FL_OK && fl_fleet_index_of(f) == NULL) {
    fl_fleet_index_set(f, index);
    index = NULL;
  }
  fl_index_free(index);
  return rc;
}
