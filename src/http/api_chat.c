/* api_chat.c - OpenAI's chat completions. */
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "http/response.h"

#define DONE "data: [DONE]\n\n" /* after the last frame */

/* --- the request --- */

static const char *const text_types[] = { "text", "refusal", NULL };

/* {"type":"function","function":{...}} */
static int read_tools(fl_api_request *c, fl_api_error *f) {
  const fl_json *tools = NULL;
  int rc = fl_json_field_arr(c->body, "tools", &tools, f);
  for (const fl_json *v = tools ? fl_json_first(tools) : NULL; rc == FL_OK && v != NULL;
       v = fl_json_next(v)) {
    const char *type = NULL, *name = NULL, *description = NULL;
    const fl_json *fn = fl_json_get(v, "function");
    (void)fl_json_get_str(v, "type", &type);
    if (type == NULL || strcmp(type, "function") != 0 || fn == NULL || !fl_json_is_obj(fn))
      return fl_api_refuse(f, "unsupported_parameter", "tools",
                           "a tool has to be of type function with a member function");
    (void)fl_json_get_str(fn, "name", &name);
    (void)fl_json_get_str(fn, "description", &description);
    rc = fl_request_tool(c, name, description, fl_json_field(fn, "parameters"), f);
  }
  return rc;
}

static int put_calls(fl_buf *text, const fl_json *list, fl_api_error *f) {
  if (!fl_json_is_arr(list))
    return fl_api_refuse(f, "invalid_type", "messages", "tool_calls has to be an array");
  for (const fl_json *v = fl_json_first(list); v != NULL; v = fl_json_next(v)) {
    const fl_json *fn = fl_json_get(v, "function");
    const char *name = NULL, *args = NULL;
    if (fn == NULL || !fl_json_get_str(fn, "name", &name) ||
        !fl_json_get_str(fn, "arguments", &args))
      return fl_api_refuse(f, "invalid_type", "messages",
                           "each of tool_calls has to have a function with name and arguments");
    const int rc = fl_request_past_call(text, name, args, "messages", f);
    if (rc != FL_OK) return rc;
  }
  return FL_OK;
}

static int read_message(fl_api_request *c, const fl_json *m, size_t i, fl_api_error *f) {
  char where[64];
  const char *role = NULL;
  fl_buf text = { 0 };
  snprintf(where, sizeof where, "messages[%zu].content", i);
  if (!fl_json_is_obj(m) || !fl_json_get_str(m, "role", &role))
    return fl_api_refuse(f, "invalid_type", "messages", "messages[%zu] has no role", i);
  const fl_json *content = fl_json_field(m, "content"), *calls = fl_json_field(m, "tool_calls");
  const bool assistant = strcmp(role, "assistant") == 0, tool = strcmp(role, "tool") == 0;
  int rc = FL_OK;
  if (content != NULL || !assistant || calls == NULL)
    rc = fl_request_content(&text, content, text_types, where, f);
  if (rc == FL_OK && assistant && calls != NULL) rc = put_calls(&text, calls, f);
  if (rc != FL_OK) {
  } else if (tool) {
    fl_buf block = { 0 };
    fl_request_put_tool_response(&block, text.data, text.len);
    rc = fl_request_message(
        c, FL_ROLE_USER, block.data, block.len,
        i > 0 && c->chat.n_msgs > 0 && c->chat.msgs[c->chat.n_msgs - 1].role == FL_ROLE_USER, f);
    fl_buf_release(&block);
  } else if (assistant) {
    rc = fl_request_message(c, FL_ROLE_ASSISTANT, text.data, text.len, false, f);
  } else if (strcmp(role, "user") == 0) {
    rc = fl_request_message(c, FL_ROLE_USER, text.data, text.len, false, f);
  } else if (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0) {
    rc = fl_request_message(c, FL_ROLE_SYSTEM, text.data, text.len, false, f);
  } else {
    rc = fl_api_refuse(
        f, "invalid_value", "messages",
        "messages[%zu].role is %.32s; it has to be system, developer, user, assistant or tool", i,
        role);
  }
  fl_buf_release(&text);
  return rc;
}

static int read_limits(fl_api_request *c, fl_api_error *f) {
  static const char *const names[] = { "max_tokens", "max_completion_tokens" };
  size_t n = 1;
  int rc = FL_OK;
  for (size_t i = 0; rc == FL_OK && i < 2; i++)
    rc = fl_json_field_size(c->body, names[i], 1, 1u << 30, &c->chat.max_new, f);
  if (rc == FL_OK) rc = fl_json_field_size(c->body, "n", 1, 128, &n, f);
  if (rc == FL_OK && n != 1)
    rc = fl_api_refuse(f, "unsupported_parameter", "n",
                       "n has to be 1; ask again for another answer");
  return rc;
}

static int read_logprobs(fl_api_request *c, fl_api_error *f) {
  int rc = fl_json_field_bool(c->body, "logprobs", &c->chat.logprobs, f);
  if (rc == FL_OK)
    rc = fl_json_field_size(c->body, "top_logprobs", 0, 20, &c->chat.top_logprobs, f);
  if (rc == FL_OK && c->chat.top_logprobs > 0 && !c->chat.logprobs)
    rc = fl_api_refuse(f, "invalid_value", "top_logprobs", "top_logprobs needs logprobs: true");
  return rc;
}

static int read_format(fl_api_request *c, fl_api_error *f) {
  const fl_json *x = NULL, *kw = NULL;
  const char *s = NULL;
  int rc = fl_json_field_obj(c->body, "response_format", &x, f);
  if (rc == FL_OK && x != NULL) rc = fl_json_field_str(x, "type", &s, f);
  if (rc == FL_OK && s != NULL && strcmp(s, "text") != 0)
    rc = fl_api_refuse(f, "unsupported_parameter", "response_format",
                       "response_format %.32s is not supported by this server; text is", s);
  s = NULL;
  if (rc == FL_OK) rc = fl_json_field_str(c->body, "reasoning_effort", &s, f);
  if (s != NULL) c->chat.thinking = strcmp(s, "none") != 0 && strcmp(s, "minimal") != 0;
  if (rc == FL_OK) rc = fl_json_field_obj(c->body, "chat_template_kwargs", &kw, f);
  if (rc == FL_OK && kw != NULL)
    rc = fl_json_field_bool(kw, "enable_thinking", &c->chat.thinking, f);
  return rc;
}

static int read_stream(fl_api_request *c, fl_api_error *f) {
  const fl_json *o = NULL;
  int rc = fl_json_field_bool(c->body, "stream", &c->stream, f);
  if (rc == FL_OK) rc = fl_json_field_obj(c->body, "stream_options", &o, f);
  if (rc != FL_OK || o == NULL) return rc;
  if (!c->stream)
    return fl_api_refuse(f, "invalid_value", "stream_options", "stream_options needs stream: true");
  return fl_json_field_bool(o, "include_usage", &c->include_usage, f);
}

static int parse(fl_api_request *c, fl_api_error *f) {
  static const char *const refused[] = {
    "functions", "function_call", "audio",   "prediction",  "web_search_options",
    "regex",     "lark",          "grammar", "guided_json", "guided_regex",
    "best_of",   "echo",          "suffix"
  };
  const fl_json *messages = NULL;
  size_t i = 0;
  int rc = fl_json_field_refuse(c->body, refused, sizeof refused / sizeof *refused, f);
  if (rc == FL_OK) rc = fl_json_field_arr(c->body, "messages", &messages, f);
  if (rc == FL_OK && messages == NULL)
    rc = fl_api_refuse(f, "missing_required_parameter", "messages", "messages is missing");
  if (rc == FL_OK) rc = read_tools(c, f);
  if (rc == FL_OK) rc = fl_request_tool_choice(c, f);
  for (const fl_json *m = rc == FL_OK ? fl_json_first(messages) : NULL; rc == FL_OK && m != NULL;
       m = fl_json_next(m))
    rc = read_message(c, m, i++, f);
  if (rc == FL_OK) rc = fl_request_sampling(c, 2, f);
  if (rc == FL_OK) rc = fl_request_bias(c, f);
  if (rc == FL_OK) rc = fl_request_stops(c, "stop", f);
  if (rc == FL_OK) rc = read_limits(c, f);
  if (rc == FL_OK) rc = read_logprobs(c, f);
  if (rc == FL_OK) rc = read_format(c, f);
  return rc == FL_OK ? read_stream(c, f) : rc;
}

/* --- the reply --- */

static void put_head(fl_response *t, const char *object) {
  fl_buf *b = &t->out;
  fl_jsonw_open(b, NULL, '{');
  fl_buf_printf(b, "\"id\":\"chatcmpl-%s\"", t->id);
  fl_jsonw_str(b, "object", object);
  fl_jsonw_u64(b, "created", t->created);
  fl_jsonw_str(b, "model", t->model);
}

static void put_usage(fl_response *t) {
  fl_buf *b = &t->out;
  fl_jsonw_open(b, "usage", '{');
  fl_jsonw_u64(b, "prompt_tokens", t->told.start.prompt_tokens);
  fl_jsonw_u64(b, "completion_tokens", t->told.end.completion_tokens);
  fl_jsonw_u64(b, "total_tokens", t->told.start.prompt_tokens + t->told.end.completion_tokens);
  fl_jsonw_open(b, "prompt_tokens_details", '{');
  fl_jsonw_u64(b, "cached_tokens", t->told.start.cached_tokens);
  fl_jsonw_close(b, '}');
  fl_jsonw_close(b, '}');
}

static void put_call(fl_response *t, const fl_tool_use *u, bool index) {
  fl_buf *b = &t->out;
  fl_jsonw_open(b, NULL, '{');
  if (index) fl_jsonw_u64(b, "index", (uint64_t)(u - t->use));
  fl_jsonw_str(b, "id", u->id);
  fl_jsonw_str(b, "type", "function");
  fl_jsonw_open(b, "function", '{');
  fl_jsonw_str(b, "name", u->name);
  fl_jsonw_str(b, "arguments", u->args);
  fl_jsonw_close(b, '}');
  fl_jsonw_close(b, '}');
}

/* A chunk up to and with the opening of its delta. */
static void open_chunk(fl_response *t) {
  fl_buf *b = &t->out;
  fl_sse_begin(t, NULL);
  put_head(t, "chat.completion.chunk");
  fl_jsonw_open(b, "choices", '[');
  fl_jsonw_open(b, NULL, '{');
  fl_jsonw_u64(b, "index", 0);
  fl_jsonw_open(b, "delta", '{');
}

static void close_chunk(fl_response *t, const char *finish, bool extension, bool ended) {
  fl_buf *b = &t->out;
  fl_jsonw_close(b, '}');
  if (t->chat->logprobs && t->told.n_tokens > 0) {
    fl_jsonw_open(b, "logprobs", '{');
    fl_response_logprobs(t);
    fl_jsonw_close(b, '}');
  } else {
    fl_jsonw_null(b, "logprobs");
  }
  fl_jsonw_str(b, "finish_reason", finish);
  fl_jsonw_close(b, '}');
  fl_jsonw_close(b, ']');
  if (extension) fl_response_extension(t, ended);
  fl_jsonw_close(b, '}');
  fl_sse_end(t);
}

static void begin(fl_response *t) {
  open_chunk(t);
  fl_jsonw_str(&t->out, "role", "assistant");
  fl_jsonw_str(&t->out, "content", "");
  close_chunk(t, NULL, true, false);
}

static void text(fl_response *t, fl_part part, const char *s, size_t len) {
  open_chunk(t);
  fl_jsonw_strn(&t->out, part == FL_PART_REASONING ? "reasoning_content" : "content", s, len);
  close_chunk(t, NULL, false, false);
}

static void call(fl_response *t, const fl_tool_use *u) {
  open_chunk(t);
  fl_jsonw_open(&t->out, "tool_calls", '[');
  put_call(t, u, true);
  fl_jsonw_close(&t->out, ']');
  close_chunk(t, NULL, false, false);
}

static void end(fl_response *t) {
  fl_buf *b = &t->out;
  open_chunk(t);
  close_chunk(t, fl_response_finish(t), true, true);
  if (t->request.include_usage) {
    fl_sse_begin(t, NULL);
    put_head(t, "chat.completion.chunk");
    fl_jsonw_open(b, "choices", '[');
    fl_jsonw_close(b, ']');
    put_usage(t);
    fl_jsonw_close(b, '}');
    fl_sse_end(t);
  }
  fl_buf_puts(b, DONE);
}

static void broken(fl_response *t, const fl_api_error *f) {
  fl_sse_begin(t, NULL);
  fl_api_error_body(&t->out, f, FL_API_OPENAI, NULL);
  fl_sse_end(t);
  fl_buf_puts(&t->out, DONE);
}

static void ping(fl_response *t) { fl_buf_puts(&t->out, FL_SSE_WAITING); }

static void whole(fl_response *t) {
  fl_buf *b = &t->out;
  put_head(t, "chat.completion");
  fl_jsonw_open(b, "choices", '[');
  fl_jsonw_open(b, NULL, '{');
  fl_jsonw_u64(b, "index", 0);
  fl_jsonw_open(b, "message", '{');
  fl_jsonw_str(b, "role", "assistant");
  if (t->content.len > 0 || t->n_uses == 0)
    fl_jsonw_strn(b, "content", t->content.len > 0 ? t->content.data : "", t->content.len);
  else fl_jsonw_null(b, "content");
  fl_jsonw_null(b, "refusal");
  if (t->reasoning.len > 0)
    fl_jsonw_strn(b, "reasoning_content", t->reasoning.data, t->reasoning.len);
  if (t->n_uses > 0) fl_jsonw_open(b, "tool_calls", '[');
  for (size_t i = 0; i < t->n_uses; i++) put_call(t, &t->use[i], false);
  if (t->n_uses > 0) fl_jsonw_close(b, ']');
  fl_jsonw_close(b, '}');
  if (t->chat->logprobs) {
    fl_jsonw_open(b, "logprobs", '{');
    fl_response_logprobs(t);
    fl_jsonw_close(b, '}');
  } else {
    fl_jsonw_null(b, "logprobs");
  }
  fl_jsonw_str(b, "finish_reason", fl_response_finish(t));
  fl_jsonw_close(b, '}');
  fl_jsonw_close(b, ']');
  put_usage(t);
  fl_response_extension(t, true);
  fl_jsonw_close(b, '}');
}

const fl_protocol fl_protocol_chat = { "chat", FL_API_OPENAI, parse,  begin, text,
                                       call,   end,           broken, ping,  whole };
