/* api_responses.c - OpenAI's responses: the request, and the output as items. The stream's events
 * are in api_responses_stream.c. */
#include "http/api_responses.h"

#include <string.h>

#include "base/json_writer.h"

/* --- the request --- */

static const char *const text_types[] = { "input_text", "output_text", "text", NULL };

static int read_item(fl_api_request *c, const fl_json *v, fl_api_error *f) {
  const char *type = "message", *role = "user", *name = NULL, *args = NULL;
  fl_buf text = { 0 };
  int rc;
  if (!fl_json_is_obj(v))
    return fl_api_error_set(f, 400, "invalid_type", "input", "an item of input is no object");
  (void)fl_json_get_str(v, "type", &type);
  if (strcmp(type, "reasoning") == 0) return FL_OK; /* past thoughts are not shown again */
  if (strcmp(type, "function_call") == 0) {
    if (!fl_json_get_str(v, "name", &name) || !fl_json_get_str(v, "arguments", &args))
      return fl_api_error_set(f, 400, "invalid_type", "input",
                              "a function_call needs name and arguments");
    fl_json *parsed = NULL;
    if (fl_json_parse(&parsed, args, strlen(args), NULL) != FL_OK)
      return fl_api_error_set(f, 400, "invalid_value", "input",
                              "the arguments of a call of %.64s are no "
                              "JSON",
                              name);
    fl_json_free(parsed);
    fl_request_put_tool_call(&text, name, args, strlen(args));
    rc = fl_request_message(c, FL_ROLE_ASSISTANT, text.data, text.len, true, f);
  } else if (strcmp(type, "function_call_output") == 0) {
    fl_buf block = { 0 };
    rc = fl_request_content(&text, fl_field(v, "output"), text_types, "input.output", f);
    fl_request_put_tool_response(&block, text.data != NULL ? text.data : "", text.len);
    if (rc == FL_OK) rc = fl_request_message(c, FL_ROLE_USER, block.data, block.len, true, f);
    fl_buf_release(&block);
  } else if (strcmp(type, "message") == 0) {
    (void)fl_json_get_str(v, "role", &role);
    rc = fl_request_content(&text, fl_field(v, "content"), text_types, "input.content", f);
    const fl_role r = strcmp(role, "assistant") == 0 ? FL_ROLE_ASSISTANT
                      : strcmp(role, "user") == 0    ? FL_ROLE_USER
                                                     : FL_ROLE_SYSTEM;
    if (rc == FL_OK)
      rc = fl_request_message(c, r, text.data != NULL ? text.data : "", text.len, false, f);
  } else {
    rc = fl_api_error_set(f, 400, "unsupported_parameter", "input",
                          "input items of type %.64s are not "
                          "supported by this server",
                          type);
  }
  fl_buf_release(&text);
  return rc;
}

static int read_input(fl_api_request *c, fl_api_error *f) {
  const fl_json *v = fl_field(c->body, "input");
  const char *instructions = NULL, *s = v != NULL ? fl_json_as_str(v) : NULL;
  int rc = fl_json_field_str(c->body, "instructions", &instructions, f);
  if (rc == FL_OK && instructions != NULL && instructions[0] != '\0')
    rc = fl_request_message(c, FL_ROLE_SYSTEM, instructions, strlen(instructions), false, f);
  if (rc == FL_OK && v == NULL)
    rc = fl_api_error_set(f, 400, "missing_required_parameter", "input", "input is missing");
  if (rc != FL_OK) return rc;
  if (s != NULL) return fl_request_message(c, FL_ROLE_USER, s, strlen(s), false, f);
  if (!fl_json_is_arr(v))
    return fl_api_error_set(f, 400, "invalid_type", "input",
                            "input has to be a string or an array");
  for (v = fl_json_first(v); rc == FL_OK && v != NULL; v = fl_json_next(v)) rc = read_item(c, v, f);
  return rc;
}

static int read_tools(fl_api_request *c, fl_api_error *f) {
  const fl_json *tools = NULL, *choice = fl_field(c->body, "tool_choice");
  int rc = fl_json_field_arr(c->body, "tools", &tools, f);
  for (const fl_json *v = tools ? fl_json_first(tools) : NULL; rc == FL_OK && v != NULL;
       v = fl_json_next(v)) {
    const char *type = "", *name = NULL, *description = NULL;
    (void)fl_json_get_str(v, "type", &type);
    (void)fl_json_get_str(v, "name", &name);
    (void)fl_json_get_str(v, "description", &description);
    if (strcmp(type, "function") != 0)
      return fl_api_error_set(f, 400, "unsupported_parameter", "tools",
                              "tools of type %.64s are not "
                              "supported by this server; function is",
                              type);
    rc = fl_request_tool(c, name, description, fl_field(v, "parameters"), f);
  }
  if (rc != FL_OK) return rc;
  const char *s = choice != NULL ? fl_json_as_str(choice) : "auto";
  c->tools_off = s != NULL && strcmp(s, "none") == 0;
  if (s != NULL && (c->tools_off || strcmp(s, "auto") == 0)) return FL_OK;
  return fl_api_error_set(f, 400, "unsupported_parameter", "tool_choice",
                          "tool_choice is auto or none "
                          "here; this server cannot force a call");
}

static int read_format(fl_api_request *c, fl_api_error *f) {
  const fl_json *text = NULL, *format = NULL, *reasoning = NULL;
  const char *type = "text", *effort = NULL, *truncation = "disabled";
  int rc = fl_json_field_obj(c->body, "text", &text, f);
  if (rc == FL_OK && text != NULL) rc = fl_json_field_obj(text, "format", &format, f);
  if (rc == FL_OK && format != NULL) rc = fl_json_field_str(format, "type", &type, f);
  if (rc == FL_OK && strcmp(type, "text") != 0)
    rc = fl_api_error_set(f, 400, "unsupported_parameter", "text",
                          "text.format %.32s is not supported by "
                          "this server; text is",
                          type);
  if (rc == FL_OK) rc = fl_json_field_obj(c->body, "reasoning", &reasoning, f);
  if (rc == FL_OK && reasoning != NULL) rc = fl_json_field_str(reasoning, "effort", &effort, f);
  if (effort != NULL)
    c->chat.thinking = strcmp(effort, "none") != 0 && strcmp(effort, "minimal") != 0;
  if (rc == FL_OK) rc = fl_json_field_str(c->body, "truncation", &truncation, f);
  if (rc == FL_OK && strcmp(truncation, "disabled") != 0)
    rc = fl_api_error_set(f, 400, "unsupported_parameter", "truncation",
                          "truncation is disabled in this "
                          "server; shorten the input");
  return rc;
}

static int parse(fl_api_request *c, fl_api_error *f) {
  static const char *const refused[] = {
    "previous_response_id", "conversation", "prompt", "include", "max_tool_calls", "top_logprobs"
  };
  bool background = false;
  int rc = fl_json_field_refuse(c->body, refused, sizeof refused / sizeof *refused, f);
  if (rc == FL_OK) rc = fl_json_field_bool(c->body, "background", &background, f);
  if (rc == FL_OK && background)
    rc = fl_api_error_set(f, 400, "unsupported_parameter", "background",
                          "background is not supported by "
                          "this server");
  if (rc == FL_OK) rc = read_input(c, f);
  if (rc == FL_OK) rc = read_tools(c, f);
  if (rc == FL_OK) rc = fl_request_sampling(c, 2, f);
  if (rc == FL_OK)
    rc = fl_json_field_size(c->body, "max_output_tokens", 1, 1u << 30, &c->chat.max_new, f);
  if (rc == FL_OK) rc = read_format(c, f);
  return rc == FL_OK ? fl_json_field_bool(c->body, "stream", &c->stream, f) : rc;
}

/* --- items --- */

void fl_responses_text_part(fl_response *t, const char *key, fl_part part, const char *s,
                            size_t len) {
  fl_buf *b = &t->out;
  fl_jsonw_open(b, key, '{');
  fl_jsonw_str(b, "type", part == FL_PART_CONTENT ? "output_text" : "reasoning_text");
  fl_jsonw_strn(b, "text", s, len);
  if (part == FL_PART_CONTENT) {
    fl_jsonw_open(b, "annotations", '[');
    fl_jsonw_close(b, ']');
  }
  fl_jsonw_close(b, '}');
}

void fl_responses_item(fl_response *t, const char *key, fl_part part, size_t index, const char *s,
                       size_t len, bool done) {
  fl_buf *b = &t->out;
  fl_jsonw_open(b, key, '{');
  if (part == FL_PART_CONTENT) {
    fl_buf_printf(b, "\"id\":\"msg_%s_%zu\"", t->id, index);
    fl_jsonw_str(b, "type", "message");
    fl_jsonw_str(b, "role", "assistant");
  } else {
    fl_buf_printf(b, "\"id\":\"rs_%s_%zu\"", t->id, index);
    fl_jsonw_str(b, "type", "reasoning");
    fl_jsonw_open(b, "summary", '[');
    fl_jsonw_close(b, ']');
  }
  fl_jsonw_str(b, "status", done ? "completed" : "in_progress");
  fl_jsonw_open(b, "content", '[');
  if (done) fl_responses_text_part(t, NULL, part, s, len);
  fl_jsonw_close(b, ']');
  fl_jsonw_close(b, '}');
}

void fl_responses_call(fl_response *t, const char *key, const fl_tool_use *u, bool done) {
  fl_buf *b = &t->out;
  fl_jsonw_open(b, key, '{');
  fl_buf_printf(b, "\"id\":\"fc_%s\"", u->id);
  fl_jsonw_str(b, "type", "function_call");
  fl_jsonw_str(b, "status", done ? "completed" : "in_progress");
  fl_jsonw_str(b, "call_id", u->id);
  fl_jsonw_str(b, "name", u->name);
  fl_jsonw_str(b, "arguments", done ? u->args : "");
  fl_jsonw_close(b, '}');
}

static void put_usage(fl_response *t) {
  fl_buf *b = &t->out;
  fl_jsonw_open(b, "usage", '{');
  fl_jsonw_u64(b, "input_tokens", t->told.prompt_tokens);
  fl_jsonw_open(b, "input_tokens_details", '{');
  fl_jsonw_u64(b, "cached_tokens", t->told.cached_tokens);
  fl_jsonw_close(b, '}');
  fl_jsonw_u64(b, "output_tokens", t->told.completion_tokens);
  fl_jsonw_open(b, "output_tokens_details", '{');
  fl_jsonw_u64(b, "reasoning_tokens", 0);
  fl_jsonw_close(b, '}');
  fl_jsonw_u64(b, "total_tokens", t->told.prompt_tokens + t->told.completion_tokens);
  fl_jsonw_close(b, '}');
}

static void put_output(fl_response *t) {
  fl_buf *b = &t->out;
  size_t i = 0;
  fl_jsonw_open(b, "output", '[');
  if (t->reasoning.len > 0)
    fl_responses_item(t, NULL, FL_PART_REASONING, i++, t->reasoning.data, t->reasoning.len, true);
  if (t->content.len > 0 || t->n_uses == 0)
    fl_responses_item(t, NULL, FL_PART_CONTENT, i++, t->content.len > 0 ? t->content.data : "",
                      t->content.len, true);
  for (size_t j = 0; j < t->n_uses; j++) fl_responses_call(t, NULL, &t->use[j], true);
  fl_jsonw_close(b, ']');
}

/* The request's own tools, as the reply repeats them. */
static void put_tools(fl_response *t) {
  const fl_json *tools = fl_field(t->request.body, "tools");
  fl_buf text = { 0 };
  if (tools != NULL) fl_json_print(&text, tools, false);
  fl_jsonw_raw(&t->out, "tools", text.len > 0 ? text.data : "[]", text.len > 0 ? text.len : 2);
  fl_buf_release(&text);
}

static void put_detail(fl_response *t, const fl_api_error *f, const char *status) {
  fl_buf *b = &t->out;
  if (f != NULL) {
    fl_jsonw_open(b, "error", '{');
    fl_jsonw_str(b, "code", "server_error");
    fl_jsonw_str(b, "message", f->message);
    fl_jsonw_close(b, '}');
  } else {
    fl_jsonw_null(b, "error");
  }
  if (strcmp(status, "incomplete") == 0) {
    fl_jsonw_open(b, "incomplete_details", '{');
    fl_jsonw_str(b, "reason", "max_output_tokens");
    fl_jsonw_close(b, '}');
  } else {
    fl_jsonw_null(b, "incomplete_details");
  }
}

void fl_responses_object(fl_response *t, const char *key, const char *status,
                         const fl_api_error *f) {
  fl_buf *b = &t->out;
  const bool ended = strcmp(status, "in_progress") != 0;
  fl_jsonw_open(b, key, '{');
  fl_buf_printf(b, "\"id\":\"resp_%s\"", t->id);
  fl_jsonw_str(b, "object", "response");
  fl_jsonw_u64(b, "created_at", t->created);
  fl_jsonw_str(b, "status", status);
  put_detail(t, f, status);
  fl_jsonw_str(b, "model", t->model);
  if (ended) {
    put_output(t);
  } else {
    fl_jsonw_open(b, "output", '[');
    fl_jsonw_close(b, ']');
  }
  fl_jsonw_bool(b, "parallel_tool_calls", true);
  fl_jsonw_str(b, "tool_choice", t->request.tools_off ? "none" : "auto");
  put_tools(t);
  fl_jsonw_num(b, "temperature", t->chat->sampling.temperature);
  fl_jsonw_num(b, "top_p", t->chat->sampling.top_p);
  fl_jsonw_u64(b, "max_output_tokens", t->chat->max_new);
  fl_jsonw_null(b, "previous_response_id");
  fl_jsonw_bool(b, "store", false);
  if (ended) put_usage(t);
  else fl_jsonw_null(b, "usage");
  fl_response_extension(t, ended);
  fl_jsonw_close(b, '}');
}

const char *fl_responses_status(const fl_response *t) {
  return t->told.finish == FL_FINISH_LENGTH ? "incomplete" : "completed";
}

static void whole(fl_response *t) { fl_responses_object(t, NULL, fl_responses_status(t), NULL); }

const fl_protocol fl_protocol_responses = { .name = "responses",
                                            .family = FL_API_OPENAI,
                                            .parse = parse,
                                            .begin = fl_responses_begin,
                                            .text = fl_responses_text,
                                            .call = fl_responses_on_call,
                                            .end = fl_responses_end,
                                            .broken = fl_responses_broken,
                                            .ping = fl_responses_ping,
                                            .whole = whole };
