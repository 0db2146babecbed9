/* api_error.c - see api_error.h. */
#include "http/api_error.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/json_writer.h"

__attribute__((format(printf, 5, 0))) static int set(fl_api_error *f, int status, const char *code,
                                                     const char *param, const char *fmt,
                                                     va_list ap) {
  if (f->status != 0) return FL_EINPUT;
  f->status = status;
  f->code = code;
  snprintf(f->param, sizeof f->param, "%s", param != NULL ? param : "");
  vsnprintf(f->message, sizeof f->message, fmt, ap);
  return FL_EINPUT;
}

int fl_api_error_set(fl_api_error *f, int status, const char *code, const char *param,
                     const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  set(f, status, code, param, fmt, ap);
  va_end(ap);
  return FL_EINPUT;
}

int fl_api_refuse(fl_api_error *f, const char *code, const char *param, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  set(f, 400, code, param, fmt, ap);
  va_end(ap);
  return FL_EINPUT;
}

int fl_api_error_from(fl_api_error *f, const fl_err *err) {
  const char *text = err->text[0] != '\0' ? err->text : "the server failed";
  switch (err->code) {
  case FL_EINPUT:
  case FL_EUSAGE: return fl_api_refuse(f, NULL, NULL, "%s", text);
  case FL_ENOENT: return fl_api_error_set(f, 404, "not_found", NULL, "%s", text);
  case FL_EFULL: return fl_api_error_set(f, 429, "rate_limit_exceeded", NULL, "%s", text);
  case FL_EBUSY: return fl_api_error_set(f, 503, "unavailable", NULL, "%s", text);
  default: return fl_api_error_set(f, 500, "server_error", NULL, "%s", text);
  }
}

static const char *type_of(int status, fl_api_family family) {
  static const struct {
    int status;
    const char *type[2]; /* by family */
  } types[] = {
    { 401, { "authentication_error", "authentication_error" } },
    { 403, { "permission_error", "permission_error" } },
    { 404, { "not_found_error", "not_found_error" } },
    { 413, { "invalid_request_error", "request_too_large" } },
    { 429, { "rate_limit_error", "rate_limit_error" } },
    { 501, { "not_supported_error", "invalid_request_error" } },
    { 503, { "unavailable_error", "overloaded_error" } },
  };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].status == status) return types[i].type[family];
  if (status < 500) return "invalid_request_error";
  return family == FL_API_ANTHROPIC ? "api_error" : "server_error";
}

void fl_api_error_object(fl_buf *out, const char *key, const fl_api_error *f,
                         fl_api_family family) {
  fl_jsonw_open(out, key, '{');
  if (family == FL_API_ANTHROPIC) {
    fl_jsonw_str(out, "type", type_of(f->status, family));
    fl_jsonw_str(out, "message", f->message);
  } else {
    fl_jsonw_str(out, "message", f->message);
    fl_jsonw_str(out, "type", type_of(f->status, family));
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
