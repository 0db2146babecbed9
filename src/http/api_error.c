/* api_error.c - see api_error.h. */
#include "http/api_error.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/json_writer.h"

int fl_api_error_set(fl_api_error *f, int status, const char *code, const char *param,
                     const char *fmt, ...) {
  va_list ap;
  if (f->status != 0) return FL_EINPUT;
  f->status = status;
  f->code = code;
  snprintf(f->param, sizeof f->param, "%s", param != NULL ? param : "");
  va_start(ap, fmt);
  vsnprintf(f->message, sizeof f->message, fmt, ap);
  va_end(ap);
  return FL_EINPUT;
}

int fl_api_error_from(fl_api_error *f, const fl_err *err) {
  const char *text = err->text[0] != '\0' ? err->text : "the server failed";
  switch (err->code) {
  case FL_EINPUT:
  case FL_EUSAGE: return fl_api_error_set(f, 400, NULL, NULL, "%s", text);
  case FL_ENOENT: return fl_api_error_set(f, 404, "not_found", NULL, "%s", text);
  case FL_EFULL: return fl_api_error_set(f, 429, "rate_limit_exceeded", NULL, "%s", text);
  case FL_EBUSY: return fl_api_error_set(f, 503, "unavailable", NULL, "%s", text);
  default: return fl_api_error_set(f, 500, "server_error", NULL, "%s", text);
  }
}

static const char *openai_type(int status) {
  switch (status) {
  case 401: return "authentication_error";
  case 403: return "permission_error";
  case 404: return "not_found_error";
  case 429: return "rate_limit_error";
  case 501: return "not_supported_error";
  case 503: return "unavailable_error";
  default: return status < 500 ? "invalid_request_error" : "server_error";
  }
}

static const char *anthropic_type(int status) {
  switch (status) {
  case 401: return "authentication_error";
  case 403: return "permission_error";
  case 404: return "not_found_error";
  case 413: return "request_too_large";
  case 429: return "rate_limit_error";
  case 501: return "invalid_request_error";
  case 503:
  case 529: return "overloaded_error";
  default: return status < 500 ? "invalid_request_error" : "api_error";
  }
}

void fl_api_error_object(fl_buf *out, const char *key, const fl_api_error *f,
                         fl_api_family family) {
  fl_jsonw_open(out, key, '{');
  if (family == FL_API_ANTHROPIC) {
    fl_jsonw_str(out, "type", anthropic_type(f->status));
    fl_jsonw_str(out, "message", f->message);
  } else {
    fl_jsonw_str(out, "message", f->message);
    fl_jsonw_str(out, "type", openai_type(f->status));
    fl_jsonw_str(out, "param", f->param[0] != '\0' ? f->param : NULL);
    fl_jsonw_str(out, "code", f->code);
  }
  fl_jsonw_close(out, '}');
}

void fl_api_error_body(fl_buf *out, const fl_api_error *f, fl_api_family family,
                       const char *request_id) {
  fl_jsonw_open(out, NULL, '{');
  if (family == FL_API_ANTHROPIC) fl_jsonw_str(out, "type", "error");
  fl_api_error_object(out, "error", f, family);
  if (family == FL_API_ANTHROPIC && request_id != NULL) fl_jsonw_str(out, "request_id", request_id);
  fl_jsonw_close(out, '}');
}
