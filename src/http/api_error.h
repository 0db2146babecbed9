/* api_error.h - what is wrong with a request, in the words of the two API families.
 *
 * One sentence for the person, a status for the protocol, `param` for the field. The bodies are
 * those that the stock client packages turn into their exception classes. */
#ifndef FL_HTTP_API_ERROR_H
#define FL_HTTP_API_ERROR_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct fl_api_error {
  int status;       /* 0: nothing is wrong */
  const char *code; /* static; NULL: none */
  char param[96];   /* "" : none */
  char message[FL_ERR_TEXT];
  double retry_after_s; /* 0: unknown */
} fl_api_error;

typedef enum fl_api_family { FL_API_OPENAI, FL_API_ANTHROPIC } fl_api_family;

/* Sets *f and returns FL_EINPUT, for `return fl_api_error_set(...)`. The first one stays. */
int fl_api_error_set(fl_api_error *f, int status, const char *code, const char *param,
                     const char *fmt, ...) __attribute__((format(printf, 5, 6), cold));
/* The same with status 400: the request itself is wrong. */
int fl_api_refuse(fl_api_error *f, const char *code, const char *param, const char *fmt, ...)
    __attribute__((format(printf, 4, 5), cold));
/* From a failure below: the status that its code stands for. */
int fl_api_error_from(fl_api_error *f, const fl_err *err);
/* {message, type, param, code} or {type, message}: the inner object. */
void fl_api_error_object(fl_buf *out, const char *key, const fl_api_error *f, fl_api_family family);
/* The whole body. */
void fl_api_error_body(fl_buf *out, const fl_api_error *f, fl_api_family family,
                       const char *request_id);

#endif
