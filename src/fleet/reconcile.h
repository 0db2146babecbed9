/* reconcile.h - the documents given against the documents of the manifest. */
#ifndef FL_FLEET_RECONCILE_H
#define FL_FLEET_RECONCILE_H

#include "fleet/state.h"

/* Fills a new manifest from f->sources (f->m has its settings and no documents). */
int fl_reconcile_new(fl_fleet *f, const char *merge, fl_err *err);
/* An existing one: removals, changes, additions, redos; every document then has its source, or the
 * first that does not fit is refused by name. Changes count as one edit. */
int fl_reconcile(fl_fleet *f, const fl_open_options *how, fl_err *err);

#endif
