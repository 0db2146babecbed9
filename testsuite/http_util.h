/* http_util.h - requests as text, requests parsed from them. */
#ifndef FL_TESTSUITE_HTTP_UTIL_H
#define FL_TESTSUITE_HTTP_UTIL_H

#include <check.h>
#include <string.h>

#include "base/mem.h"
#include "http/response.h"

static const fl_request_defaults http_defaults = {
  .sampling = { .temperature = 0, .top_p = 1, .repeat_penalty = 1 }, .max_new = 100, .tools = true
};

/* Parses a body in a protocol; the call is released by the caller whatever comes out. */
static inline int http_parse_n(fl_api_request *c, const fl_protocol *d, const char *body,
                               size_t len, fl_api_error *f) {
  fl_json *v = NULL;
  *c = (fl_api_request){ 0 };
  *f = (fl_api_error){ 0 };
  if (fl_json_parse(&v, body, len, NULL) != FL_OK) return FL_EINPUT;
  fl_request_init(c, v, &http_defaults);
  if (!fl_json_is_obj(v)) return FL_EINPUT;
  int rc = d->parse(c, f);
  if (rc == FL_OK) rc = fl_request_extension(c, f);
  return rc == FL_OK ? fl_request_finish(c, &http_defaults, f) : rc;
}

static inline int http_parse(fl_api_request *c, const fl_protocol *d, const char *body,
                             fl_api_error *f) {
  return http_parse_n(c, d, body, strlen(body), f);
}

/* Body text where ' stands for ". */
static inline char *http_json(const char *s) {
  char *t = fl_strdup(s);
  for (char *p = t; *p != '\0'; p++)
    if (*p == '\'') *p = '"';
  return t;
}

#endif
