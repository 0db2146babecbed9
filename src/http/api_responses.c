/* api_responses.c - OpenAI's responses. */
#include <string.h>

#include "base/json_writer.h"
#include "http/response.h"

enum { NONE, REASONING, CONTENT }; /* fl_response.open_item */

/* --- the request --- */

static const char *const text_types[] = { "input_text", "output_text", "text", NULL };

static int read_item(fl_api_request *c, const fl_json *v, fl_api_error *f) {
  const char *type = "message", *role = "user", *name = NULL, *args = NULL;
  fl_buf text = { 0 };
  int rc;
  if (!fl_json_is_obj(v))
    return fl_api_refuse(f, "invalid_type", "input", "an item of input is no object");
  (void)fl_json_get_str(v, "type", &type);
  if (strcmp(type, "reasoning") == 0) return FL_OK; /* past thoughts are not shown again */
  if (strcmp(type, "function_call") == 0) {
    if (!fl_json_get_str(v, "name", &name) || !fl_json_get_str(v, "arguments", &args))
      return fl_api_refuse(f, "invalid_type", "input", "a function_call needs name and arguments");
    rc = fl_request_past_call(&text, name, args, "input", f);
    if (rc == FL_OK) rc = fl_request_message(c, FL_ROLE_ASSISTANT, text.data, text.len, true, f);
  } else if (strcmp(type, "function_call_output") == 0) {
    fl_buf block = { 0 };
    rc = fl_request_content(&text, fl_json_field(v, "output"), text_types, "input.output", f);
    fl_request_put_tool_response(&block, text.data != NULL ? text.data : "", text.len);
    if (rc == FL_OK) rc = fl_request_message(c, FL_ROLE_USER, block.data, block.len, true, f);
    fl_buf_release(&block);
  } else if (strcmp(type, "message") == 0) {
    (void)fl_json_get_str(v, "role", &role);
    rc = fl_request_content(&text, fl_json_field(v, "content"), text_types, "input.content", f);
    const fl_role r = strcmp(role, "assistant") == 0 ? FL_ROLE_ASSISTANT
                      : strcmp(role, "user") == 0    ? FL_ROLE_USER
                                                     : FL_ROLE_SYSTEM;
    if (rc == FL_OK)
      rc = fl_request_message(c, r, text.data != NULL ? text.data : "", text.len, false, f);
  } else {
    rc = fl_api_refuse(f, "unsupported_parameter", "input",
                       "input items of type %.64s are not supported by this server", type);
  }
  fl_buf_release(&text);
  return rc;
}

static int read_input(fl_api_request *c, fl_api_error *f) {
  const fl_json *v = fl_json_field(c->body, "input");
  const char *instructions = NULL, *s = v != NULL ? fl_json_as_str(v) : NULL;
  int rc = fl_json_field_str(c->body, "instructions", &instructions, f);
  if (rc == FL_OK && instructions != NULL && instructions[0] != '\0')
    rc = fl_request_message(c, FL_ROLE_SYSTEM, instructions, strlen(instructions), false, f);
  if (rc == FL_OK && v == NULL)
    rc = fl_api_refuse(f, "missing_required_parameter", "input", "input is missing");
  if (rc != FL_OK) return rc;
  if (s != NULL) return fl_request_message(c, FL_ROLE_USER, s, strlen(s), false, f);
  if (!fl_json_is_arr(v))
    return fl_api_refuse(f, "invalid_type", "input", "input has to be a string or an array");
  for (v = fl_json_first(v); rc == FL_OK && v != NULL; v = fl_json_next(v)) rc = read_item(c, v, f);
  return rc;
}

static int read_tools(fl_api_request *c, fl_api_error *f) {
  const fl_json *tools = NULL;
  int rc = fl_json_field_arr(c->body, "tools", &tools, f);
  for (const fl_json *v = tools ? fl_json_first(tools) : NULL; rc == FL_OK && v != NULL;
       v = fl_json_next(v)) {
    const char *type = "", *name = NULL, *description = NULL;
    (void)fl_json_get_str(v, "type", &type);
    (void)fl_json_get_str(v, "name", &name);
    (void)fl_json_get_str(v, "description", &description);
    if (strcmp(type, "function") != 0)
      return fl_api_refuse(f, "unsupported_parameter", "tools",
                           "tools of type %.64s are not supported by this server; function is",
                           type);
    rc = fl_request_tool(c, name, description, fl_json_field(v, "parameters"), f);
  }
  return rc == FL_OK ? fl_request_tool_choice(c, f) : rc;
}

static int read_format(fl_api_request *c, fl_api_error *f) {
  const fl_json *text = NULL, *format = NULL, *reasoning = NULL;
  const char *type = "text", *effort = NULL, *truncation = "disabled";
  int rc = fl_json_field_obj(c->body, "text", &text, f);
  if (rc == FL_OK && text != NULL) rc = fl_json_field_obj(text, "format", &format, f);
  if (rc == FL_OK && format != NULL) rc = fl_json_field_str(format, "type", &type, f);
  if (rc == FL_OK && strcmp(type, "text") != 0)
    rc = fl_api_refuse(f, "unsupported_parameter", "text",
                       "text.format %.32s is not supported by this server; text is", type);
  if (rc == FL_OK) rc = fl_json_field_obj(c->body, "reasoning", &reasoning, f);
  if (rc == FL_OK && reasoning != NULL) rc = fl_json_field_str(reasoning, "effort", &effort, f);
  if (effort != NULL)
    c->chat.thinking = strcmp(effort, "none") != 0 && strcmp(effort, "minimal") != 0;
  if (rc == FL_OK) rc = fl_json_field_str(c->body, "truncation", &truncation, f);
  if (rc == FL_OK && strcmp(truncation, "disabled") != 0)
    rc = fl_api_refuse(f, "unsupported_parameter", "truncation",
                       "truncation is disabled in this server; shorten the input");
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
    rc = fl_api_refuse(f, "unsupported_parameter", "background",
                       "background is not supported by this server");
  if (rc == FL_OK) rc = read_input(c, f);
  if (rc == FL_OK) rc = read_tools(c, f);
  if (rc == FL_OK) rc = fl_request_sampling(c, 2, f);
  if (rc == FL_OK)
    rc = fl_json_field_size(c->body, "max_output_tokens", 1, 1u << 30, &c->chat.max_new, f);
  if (rc == FL_OK) rc = read_format(c, f);
  return rc == FL_OK ? fl_json_field_bool(c->body, "stream", &c->stream, f) : rc;
}

/* --- items --- */

static void put_part(fl_response *t, const char *key, fl_part part, const char *s, size_t len) {
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

static void put_item(fl_response *t, const char *key, fl_part part, size_t index, const char *s,
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
  if (done) put_part(t, NULL, part, s, len);
  fl_jsonw_close(b, ']');
  fl_jsonw_close(b, '}');
}

static void put_call(fl_response *t, const char *key, const fl_tool_use *u, bool done) {
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
  fl_jsonw_u64(b, "input_tokens", t->told.start.prompt_tokens);
  fl_jsonw_open(b, "input_tokens_details", '{');
  fl_jsonw_u64(b, "cached_tokens", t->told.start.cached_tokens);
  fl_jsonw_close(b, '}');
  fl_jsonw_u64(b, "output_tokens", t->told.end.completion_tokens);
  fl_jsonw_open(b, "output_tokens_details", '{');
  fl_jsonw_u64(b, "reasoning_tokens", 0);
  fl_jsonw_close(b, '}');
  fl_jsonw_u64(b, "total_tokens", t->told.start.prompt_tokens + t->told.end.completion_tokens);
  fl_jsonw_close(b, '}');
}

static void put_output(fl_response *t) {
  fl_buf *b = &t->out;
  size_t i = 0;
  fl_jsonw_open(b, "output", '[');
  if (t->reasoning.len > 0)
    put_item(t, NULL, FL_PART_REASONING, i++, t->reasoning.data, t->reasoning.len, true);
  if (t->content.len > 0 || t->n_uses == 0)
    put_item(t, NULL, FL_PART_CONTENT, i++, t->content.len > 0 ? t->content.data : "",
             t->content.len, true);
  for (size_t j = 0; j < t->n_uses; j++) put_call(t, NULL, &t->use[j], true);
  fl_jsonw_close(b, ']');
}

/* The request's own tools, as the reply repeats them. */
static void put_tools(fl_response *t) {
  const fl_json *tools = fl_json_field(t->request.body, "tools");
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

static void put_object(fl_response *t, const char *key, const char *status, const fl_api_error *f) {
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

static const char *status_of(const fl_response *t) {
  return t->told.end.finish == FL_FINISH_LENGTH ? "incomplete" : "completed";
}

/* --- the stream: every event has its number; items follow one another, each opened, filled and
 * closed --- */

static void open_event(fl_response *t, const char *type) {
  fl_sse_begin(t, type);
  fl_jsonw_open(&t->out, NULL, '{');
  fl_jsonw_str(&t->out, "type", type);
  fl_jsonw_u64(&t->out, "sequence_number", t->sequence++);
}

static void close_event(fl_response *t) {
  fl_jsonw_close(&t->out, '}');
  fl_sse_end(t);
}

static void begin(fl_response *t) {
  open_event(t, "response.created");
  put_object(t, "response", "in_progress", NULL);
  close_event(t);
  open_event(t, "response.in_progress");
  put_object(t, "response", "in_progress", NULL);
  close_event(t);
}

static void put_place(fl_response *t, fl_part part) {
  fl_buf *b = &t->out;
  fl_jsonw_open(b, "item_id", '"');
  fl_buf_printf(b, "%s_%s_%zu\"", part == FL_PART_CONTENT ? "msg" : "rs", t->id, t->n_items);
  fl_jsonw_u64(b, "output_index", t->n_items);
  fl_jsonw_u64(b, "content_index", 0);
}

static void part_event(fl_response *t, const char *type, fl_part part, const char *s, size_t len) {
  open_event(t, type);
  put_place(t, part);
  put_part(t, "part", part, s, len);
  close_event(t);
}

static void item_event(fl_response *t, const char *type, fl_part part, const char *s, size_t len,
                       bool done) {
  open_event(t, type);
  fl_jsonw_u64(&t->out, "output_index", t->n_items);
  put_item(t, "item", part, t->n_items, s, len, done);
  close_event(t);
}

static void text_event(fl_response *t, const char *type, fl_part part, const char *key,
                       const char *s, size_t len) {
  open_event(t, type);
  put_place(t, part);
  fl_jsonw_strn(&t->out, key, s, len);
  if (part == FL_PART_CONTENT) {
    fl_jsonw_open(&t->out, "logprobs", '[');
    fl_jsonw_close(&t->out, ']');
  }
  close_event(t);
}

static void close_open(fl_response *t) {
  if (t->open_item == NONE) return;
  const fl_part part = t->open_item == CONTENT ? FL_PART_CONTENT : FL_PART_REASONING;
  const fl_buf *all = part == FL_PART_CONTENT ? &t->content : &t->reasoning;
  const char *s = all->len > 0 ? all->data + t->item_from : "";
  const size_t len = all->len - t->item_from;
  text_event(t,
             part == FL_PART_CONTENT ? "response.output_text.done" : "response.reasoning_text.done",
             part, "text", s, len);
  part_event(t, "response.content_part.done", part, s, len);
  item_event(t, "response.output_item.done", part, s, len, true);
  t->n_items++;
  t->open_item = NONE;
}

static void text(fl_response *t, fl_part part, const char *s, size_t len) {
  const int want = part == FL_PART_CONTENT ? CONTENT : REASONING;
  if (t->open_item != want) {
    close_open(t);
    /* The text of this piece is in the whole already. */
    t->item_from = (part == FL_PART_CONTENT ? t->content.len : t->reasoning.len) - len;
    item_event(t, "response.output_item.added", part, "", 0, false);
    part_event(t, "response.content_part.added", part, "", 0);
    t->open_item = want;
  }
  text_event(
      t, part == FL_PART_CONTENT ? "response.output_text.delta" : "response.reasoning_text.delta",
      part, "delta", s, len);
}

static void call(fl_response *t, const fl_tool_use *u) {
  fl_buf *b = &t->out;
  close_open(t);
  for (int done = 0; done < 2; done++) {
    open_event(t, done ? "response.output_item.done" : "response.output_item.added");
    fl_jsonw_u64(b, "output_index", t->n_items);
    put_call(t, "item", u, done);
    close_event(t);
    for (int last = 0; !done && last < 2; last++) {
      open_event(t, last ? "response.function_call_arguments.done"
                         : "response.function_call_arguments.delta");
      fl_jsonw_open(b, "item_id", '"');
      fl_buf_printf(b, "fc_%s\"", u->id);
      fl_jsonw_u64(b, "output_index", t->n_items);
      if (last) fl_jsonw_str(b, "name", u->name);
      fl_jsonw_str(b, last ? "arguments" : "delta", u->args);
      close_event(t);
    }
  }
  t->n_items++;
}

static void end(fl_response *t) {
  if (t->n_items == 0 && t->open_item == NONE) text(t, FL_PART_CONTENT, "", 0);
  close_open(t);
  const char *status = status_of(t);
  open_event(t, strcmp(status, "completed") == 0 ? "response.completed" : "response.incomplete");
  put_object(t, "response", status, NULL);
  close_event(t);
}

static void broken(fl_response *t, const fl_api_error *f) {
  open_event(t, "error");
  fl_jsonw_str(&t->out, "code", f->code != NULL ? f->code : "server_error");
  fl_jsonw_str(&t->out, "message", f->message);
  fl_jsonw_null(&t->out, "param");
  close_event(t);
  open_event(t, "response.failed");
  put_object(t, "response", "failed", f);
  close_event(t);
}

static void ping(fl_response *t) { fl_buf_puts(&t->out, FL_SSE_WAITING); }

static void whole(fl_response *t) { put_object(t, NULL, status_of(t), NULL); }

const fl_protocol fl_protocol_responses = { "responses", FL_API_OPENAI, parse,  begin, text,
                                            call,        end,           broken, ping,  whole };
