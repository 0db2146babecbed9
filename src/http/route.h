/* route.h - from a request as it came to its reply; knows no sockets. */
#ifndef FL_HTTP_ROUTE_H
#define FL_HTTP_ROUTE_H

#include <stdatomic.h>

#include "http/auth.h"
#include "http/server.h"
#include "http/response.h"

/* Replies by class of status and by route, for /metrics. */
enum { FL_ROUTES = 8 };
typedef struct fl_tallies {
  atomic_ullong replies[FL_ROUTES][6]; /* status / 100 */
  atomic_ullong seconds_us, ttft_us, queue_us, answers;
  atomic_size_t connections, streams;
} fl_tallies;

/* All that requests share; constant but for the atomics. */
typedef struct fl_http {
  fl_engine *engine;
  const fl_model *model;
  const fl_server_options *o;
  fl_events *log;
  fl_keys *keys;
  uint64_t started; /* seconds since 1970 */
  size_t d_model;
  atomic_ullong requests;
  atomic_bool stopping;
  int stop_fd; /* readable once running answers must end */
  fl_tallies tallies;
} fl_http;

typedef struct fl_route fl_route;

/* A request as it came. Strings are borrowed; NULL: the header is absent. */
typedef struct fl_http_request {
  const char *method, *path;
  const char *host, *origin, *authorization, *x_api_key, *conversation;
  const char *body;
  size_t len;
  int client; /* descriptor, to notice that it is gone; -1: none */
  uint64_t number;
  char id[40];
} fl_http_request;

/* A reply. Either `body` with its type, or `response` in the middle of a stream. */
typedef struct fl_http_reply {
  int status;
  const char *type;  /* of the body; static */
  const char *allow; /* for 405 */
  const char *cors;  /* origin to allow, NULL: none; borrowed */
  double retry_after_s;
  bool gone, close; /* gone: nobody is there to be answered */
  fl_buf body;
  fl_response *response; /* owned by whoever sends it */
} fl_http_reply;

/* NULL when the path is none of ours. */
const fl_route *fl_route_find(const char *path);
fl_api_family fl_route_family(const char *path);
const char *fl_route_name(size_t i);
size_t fl_route_index(const fl_route *r); /* FL_ROUTES - 1 for NULL */

/* Checks that need no body: host, origin, path, method, key. True when the request may go on. */
bool fl_route_admit(fl_http *e, const fl_http_request *a, fl_http_reply *reply, int *key);
void fl_route_answer(fl_http *e, const fl_http_request *a, int key, fl_http_reply *reply);
void fl_route_error(fl_http_reply *reply, const fl_api_error *f, fl_api_family family,
                    const char *id);
/* Counts the reply and writes the `request` event. t: NULL unless an answer was made. */
void fl_route_done(fl_http *e, const fl_http_request *a, int status, const fl_response *t,
                   double seconds);

/* The bodies of the smaller routes. */
int fl_api_embeddings(fl_http *e, const fl_http_request *a, fl_buf *out, fl_api_error *f);
/* id: NULL for the list. */
int fl_api_models(const fl_http *e, const char *id, fl_buf *out, fl_api_error *f);
void fl_api_health(fl_http *e, fl_buf *out);
void fl_prometheus(fl_http *e, fl_buf *out);

#endif
