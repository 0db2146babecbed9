/* listen.h - the socket that a server listens on. */
#ifndef FL_HTTP_LISTEN_H
#define FL_HTTP_LISTEN_H

#include <stdint.h>

#include "base/err.h"

/* *fd listens on host (an address or a name) and *port: 0 asks for a free one and receives it. */
int fl_listen(int *fd, const char *host, uint16_t *port, fl_err *err);

#endif
