/* tool_calls.c - Qwen's convention for tools: declarations in the system message, calls and results
 * in tagged blocks (chat_request.h). */
#include <string.h>

#include "base/mem.h"
#include "http/api_request.h"
#include "base/json_writer.h"

static bool name_ok(const char *s) {
  const size_t n = strlen(s);
  return n >= 1 && n <= 128 &&
         strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-") == n;
}

int fl_request_tool(fl_api_request *c, const char *name, const char *description,
                    const fl_json *parameters, fl_api_error *f) {
  if (name == NULL || !name_ok(name))
    return fl_api_refuse(f, "invalid_value", "tools",
                         "a tool's name has 1 to 128 letters, "
                         "digits and the characters _ . : -");
  if (c->n_tools == FL_REQUEST_TOOLS)
    return fl_api_refuse(f, "too_many", "tools", "more than %d tools", FL_REQUEST_TOOLS);
  if (parameters != NULL && !fl_json_is_obj(parameters))
    return fl_api_refuse(f, "invalid_type", "tools",
                         "the parameters of tool %s have to be an "
                         "object",
                         name);
  fl_buf *b = &c->tool_text;
  if (b->len > 0) fl_buf_putc(b, '\n');
  fl_jsonw_open(b, NULL, '{');
  fl_jsonw_str(b, "type", "function");
  fl_jsonw_open(b, "function", '{');
  fl_jsonw_str(b, "name", name);
  if (description != NULL) fl_jsonw_str(b, "description", description);
  if (parameters != NULL) {
    fl_buf text = { 0 };
    fl_json_print(&text, parameters, false);
    fl_jsonw_raw(b, "parameters", text.data != NULL ? text.data : "{}", text.len);
    b->oom = b->oom || text.oom;
    fl_buf_release(&text);
  }
  fl_jsonw_close(b, '}');
  fl_jsonw_close(b, '}');
  if (b->oom)
    return fl_api_error_set(f, 503, "unavailable", NULL, "not enough memory for the tools");
  c->tool[c->n_tools++] = name;
  return FL_OK;
}

int fl_request_tool_choice(fl_api_request *c, fl_api_error *f) {
  const fl_json *v = fl_json_field(c->body, "tool_choice");
  const char *s = v != NULL ? fl_json_as_str(v) : "auto";
  c->tools_off = s != NULL && strcmp(s, "none") == 0;
  if (s != NULL && (c->tools_off || strcmp(s, "auto") == 0)) return FL_OK;
  return fl_api_refuse(f, "unsupported_parameter", "tool_choice",
                       "tool_choice is auto or none here; this server cannot force a call");
}

int fl_request_past_call(fl_buf *out, const char *name, const char *args, const char *where,
                         fl_api_error *f) {
  fl_json *parsed = NULL;
  if (fl_json_parse(&parsed, args, strlen(args), NULL) != FL_OK)
    return fl_api_refuse(f, "invalid_value", where, "the arguments of a call of %.64s are no JSON",
                         name);
  fl_json_free(parsed);
  fl_request_put_tool_call(out, name, args, strlen(args));
  return FL_OK;
}

bool fl_request_knows(const fl_api_request *c, const char *name) {
  for (size_t i = 0; i < c->n_tools; i++)
    if (strcmp(c->tool[i], name) == 0) return true;
  return false;
}

void fl_request_put_tool_call(fl_buf *out, const char *name, const char *args, size_t len) {
  if (out->len > 0) fl_buf_putc(out, '\n');
  fl_buf_puts(out, "<tool_call>\n{\"name\": "); /* spaced as models of the convention write it */
  fl_json_escape(out, name, strlen(name));
  fl_buf_puts(out, ", \"arguments\": ");
  fl_buf_append(out, args, len);
  fl_buf_puts(out, "}\n</tool_call>");
}

void fl_request_put_tool_response(fl_buf *out, const char *text, size_t len) {
  fl_buf_puts(out, "<tool_response>\n");
  fl_buf_append(out, text, len);
  fl_buf_puts(out, "\n</tool_response>");
}

/* The convention's own words: models were trained on exactly these. */
static void put_declarations(fl_buf *out, const fl_buf *tools) {
  fl_buf_puts(out,
              "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
              "You are provided with function signatures within <tools></tools> XML tags:\n"
              "<tools>\n");
  fl_buf_append(out, tools->data, tools->len);
  fl_buf_puts(out, "\n</tools>\n\nFor each function call, return a json object with function name "
                   "and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n"
                   "{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>");
}

/* Of several system messages the first has the tools; without one they make one in front. */
int fl_request_declare(fl_api_request *c, fl_api_error *f) {
  fl_chat_request *r = &c->chat;
  fl_buf text = { 0 };
  const bool has_system = r->n_msgs > 0 && r->msgs[0].role == FL_ROLE_SYSTEM;
  if (has_system) {
    fl_buf_append(&text, r->msgs[0].text, r->msgs[0].len);
    fl_buf_puts(&text, "\n\n");
  }
  put_declarations(&text, &c->tool_text);
  /* The new message comes last and takes its place in front. */
  int rc = text.oom
               ? fl_api_error_set(f, 503, "unavailable", NULL, "not enough memory for the tools")
               : fl_request_message(c, FL_ROLE_SYSTEM, text.data, text.len, false, f);
  fl_buf_release(&text);
  if (rc != FL_OK) return rc;
  const fl_message m = r->msgs[--r->n_msgs];
  if (has_system) {
    fl_free((char *)r->msgs[0].text);
  } else {
    memmove(r->msgs + 1, r->msgs, r->n_msgs * sizeof *r->msgs);
    r->n_msgs++;
  }
  r->msgs[0] = m;
  return FL_OK;
}
