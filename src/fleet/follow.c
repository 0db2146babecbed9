/* follow.c - what a server needs of a fleet that is open for reading: following the trainer's
 * commits, and the documents' texts for drafts. */
#include "fleet/state.h"

int fl_fleet_follow(fl_fleet *f, fl_manifest *now, bool *changed, fl_err *err) {
  if (!f->read_only) {
    fl_manifest_release(now);
    return fl_fail(err, FL_EUSAGE, "%s: opened for writing; there is nobody to follow", f->dir);
  }
  return fl_fleet_take(f, now, changed, err);
}

int fl_fleet_doc_text(fl_fleet *f, size_t i, fl_buf *out, fl_err *err) {
  if (i >= f->m.n) return fl_fail(err, FL_ENOENT, "%s: no document %zu", f->dir, i);
  return fl_fleet_text_again(f, i, NULL, out, err);
}
