/* fetch.h - POST requests to another server, several in flight; over libcurl, which fetch.c alone
 * includes. A build without it refuses with a sentence.
 *
 * A request is tried again, after a pause that doubles, when the connection fails or times out or
 * the server answers 408, 429 or 5xx; a Retry-After in seconds is kept, up to a minute. Redirects
 * are not followed: a key would go along.
 */
#ifndef FL_NET_FETCH_H
#define FL_NET_FETCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct fl_fetch fl_fetch;

typedef struct fl_fetch_options {
  const char *url;    /* http:// or https://; paths of requests are put behind it */
  const char *key;    /* NULL: none */
  size_t in_flight;   /* 1..64 */
  size_t tries;       /* of each request, 1..16 */
  double timeout_s;   /* of each try */
  size_t max_bytes;   /* of a reply; more is a failure */
  bool (*stop)(void); /* asked several times a second; may be NULL */
} fl_fetch_options;

/* FL_EUSAGE on a URL that is none, or in a build without libcurl. Strings are copied. */
int fl_fetch_new(fl_fetch **out, const fl_fetch_options *o, fl_err *err);
void fl_fetch_free(fl_fetch *f);

typedef struct fl_request {
  const char *path; /* "/v1/chat/completions" */
  const char *body; /* JSON */
  fl_buf reply;     /* released by the caller */
  int status;       /* of the last answer; 0: none came */
  char reason[256]; /* why there is no answer with 200 */
} fl_request;

/* Sends all and returns when each has an answer or has used up its tries. FL_EINTR when stopped;
 * otherwise FL_OK, whatever the answers are. */
int fl_fetch_run(fl_fetch *f, fl_request *r, size_t n, fl_err *err);

#endif
