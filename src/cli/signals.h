/* signals.h - SIGINT and SIGTERM: the first asks to stop and is seen by the poll hooks, so that the
 * state is saved; the second ends the process at once. */
#ifndef FL_CLI_SIGNALS_H
#define FL_CLI_SIGNALS_H

#include <stdbool.h>

void signals_catch(void);
void signals_catch_usr1(void); /* likewise: mpirun passes it on and kills nobody afterwards */
bool signals_stop(void);
void signals_forget(void); /* a chat goes on after an interrupted answer */
/* Shaped as a poll hook: FL_OK, or FL_EINTR once a signal came. */
int signals_poll(void *ctx);

#endif
