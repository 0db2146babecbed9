/* server.h - the HTTP server before an engine: limits, keys, routes. http.c owns the sockets (over
 * libmicrohttpd), route.c decides what a request is, response.c carries answers.
 *
 * One thread a connection, so that waiting for the engine, for a slow reader or for a client that
 * went away is plain waiting and hinders nobody; how many there may be is bounded. The phases of a
 * connection have deadlines, watched by one more thread (conns.h). A connection is closed after a
 * hundred replies, the last of which says so.
 */
#ifndef FL_HTTP_SERVER_H
#define FL_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/api_request.h"
#include "serve/engine.h"

typedef struct fl_server fl_server;

typedef struct fl_server_options {
  const char *host;                 /* an address or a name; loopback unless told */
  uint16_t port;                    /* 0: one that is free */
  size_t conns, max_head, max_body; /* connections at once; bytes */
  double head_s;                    /* for a whole head, from the connection or the last reply on */
  double body_s;                    /* for a whole body */
  double write_s;                   /* for a client to take a piece of a reply */
  double heartbeat_s;               /* silence in a stream after which it is filled */
  size_t unread;                    /* bytes of an answer that may wait for their reader */
  const char *keys_file;            /* NULL: no key is needed */
  const char *const *allow_hosts;   /* names beside the loopback ones that Host may have */
  size_t n_allow_hosts;
  bool any_host;           /* bound to other than loopback, and no names given */
  const char *const *cors; /* origins; "*" for all */
  size_t n_cors;
  const char *model_name; /* in replies */
  bool fleet;
  fl_request_defaults defaults;
} fl_server_options;

void fl_server_options_default(fl_server_options *o);

/* engine, model, log and the strings are borrowed and outlive the server. */
int fl_server_start(fl_server **out, fl_engine *e, const fl_model *model,
                    const fl_server_options *o, fl_events *log, fl_err *err);
uint16_t fl_server_port(const fl_server *s);
/* True for an address or name that only this machine reaches. */
bool fl_server_is_loopback(const char *host);
/* Takes no more connections, refuses new requests, lets the running ones end for up to grace_s,
 * cancels the rest, closes. The engine goes on. */
void fl_server_stop(fl_server *s, double grace_s);

#endif
