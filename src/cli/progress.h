/* progress.h - the progress of long work on stderr: one line a round or a note, with rate and time
 * left; quiet at log level -1. */
#ifndef FL_CLI_PROGRESS_H
#define FL_CLI_PROGRESS_H

#include "fleet/fleet.h"
#include "fleet/hooks.h"

/* Shaped as fl_train_hooks.progress; ctx unused. */
void progress_line(void *ctx, const fl_progress *p);

#endif
