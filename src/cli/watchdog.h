/* watchdog.h - a stop that ends in any case: a disk that does not answer may hold any thread for
 * ever, and nothing that a server still has to save is worth waiting for that. */
#ifndef FL_CLI_WATCHDOG_H
#define FL_CLI_WATCHDOG_H

#include "base/events.h"

typedef struct stop_guard stop_guard;

/* In `seconds`, unless dismissed before, says so in one sentence and ends the process with status
 * 1. The log, which may be NULL, is asked for what it has not written. NULL: there is no guard. */
stop_guard *stop_guard_start(double seconds, fl_events *log);
/* The log is about to go. */
void stop_guard_forget_log(stop_guard *g);
void stop_guard_dismiss(stop_guard *g);

#endif
