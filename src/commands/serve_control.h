/* serve_control.h - the control socket of a server: ping, stop, retrieve, ask (flotilla-events(5)).
 *
 * Where a trainer listens at the fleet already, the socket is its; where one comes later it takes
 * the socket over. One thread, the one that waits for signals. */
#ifndef FL_COMMANDS_SERVE_CONTROL_H
#define FL_COMMANDS_SERVE_CONTROL_H

#include <stdbool.h>

#include "serve/engine.h"

typedef struct serve_control serve_control;

typedef struct serve_control_options {
  fl_sampling sampling;
  size_t max_new;
  fl_events *log;
} serve_control_options;

/* NULL where there is no socket to be had. engine is borrowed. */
serve_control *serve_control_open(const char *dir, fl_engine *engine,
                                  const serve_control_options *o);
void serve_control_close(serve_control *c);
/* Takes what arrived within timeout_ms; true once somebody asked to stop. */
bool serve_control_poll(serve_control *c, int timeout_ms);

#endif
