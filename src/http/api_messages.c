/* api_messages.c - Anthropic's messages. */
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "http/response.h"

enum { NONE, THINKING, TEXT }; /* fl_response.open_item */

/* --- the request --- */

static const char *const text_types[] = { "text", NULL };

static int read_tools(fl_api_request *c, fl_api_error *f) {
  const fl_json *tools = NULL, *choice = NULL;
  const char *type = "auto";
  int rc = fl_json_field_arr(c->body, "tools", &tools, f);
  for (const fl_json *v = tools ? fl_json_first(tools) : NULL; rc == FL_OK && v != NULL;
       v = fl_json_next(v)) {
    const char *kind = "custom", *name = NULL, *description = NULL;
    (void)fl_json_get_str(v, "type", &kind);
    (void)fl_json_get_str(v, "name", &name);
    (void)fl_json_get_str(v, "description", &description);
    if (strcmp(kind, "custom") != 0)
      return fl_api_refuse(f, NULL, "tools", "tools: type %.64s is not supported; custom is", kind);
    rc = fl_request_tool(c, name, description, fl_json_field(v, "input_schema"), f);
  }
  if (rc == FL_OK) rc = fl_json_field_obj(c->body, "tool_choice", &choice, f);
  if (rc == FL_OK && choice != NULL) rc = fl_json_field_str(choice, "type", &type, f);
  if (rc != FL_OK) return rc;
  c->tools_off = strcmp(type, "none") == 0;
  if (c->tools_off || strcmp(type, "auto") == 0) return FL_OK;
  return fl_api_refuse(f, NULL, "tool_choice",
                       "tool_choice: auto and none are possible; this server cannot force a call");
}

/* What the blocks of one message come to. */
typedef struct blocks {
  fl_buf text, results;
} blocks;

static int read_tool_result(blocks *s, const fl_json *b, fl_api_error *f) {
  fl_buf text = { 0 };
  const fl_json *content = fl_json_field(b, "content");
  int rc = content != NULL
               ? fl_request_content(&text, content, text_types, "tool_result.content", f)
               : FL_OK;
  if (s->results.len > 0) fl_buf_putc(&s->results, '\n');
  if (rc == FL_OK) fl_request_put_tool_response(&s->results, text.data ? text.data : "", text.len);
  fl_buf_release(&text);
  return rc;
}

static int read_tool_use(blocks *s, const fl_json *b, fl_api_error *f) {
  const char *name = NULL;
  const fl_json *input = fl_json_field(b, "input");
  fl_buf args = { 0 };
  if (!fl_json_get_str(b, "name", &name))
    return fl_api_refuse(f, NULL, "messages", "a tool_use block has no name");
  if (input != NULL) fl_json_print(&args, input, false);
  else fl_buf_puts(&args, "{}");
  fl_request_put_tool_call(&s->text, name, args.data != NULL ? args.data : "", args.len);
  fl_buf_release(&args);
  return FL_OK;
}

static int read_block(blocks *s, const fl_json *b, bool assistant, fl_api_error *f) {
  const char *type = NULL, *text = NULL;
  if (!fl_json_is_obj(b) || !fl_json_get_str(b, "type", &type))
    return fl_api_refuse(f, NULL, "messages", "a content block has no type");
  if (strcmp(type, "text") == 0) {
    if (!fl_json_get_str(b, "text", &text))
      return fl_api_refuse(f, NULL, "messages", "a text block has no text");
    fl_buf_puts(&s->text, text);
    return FL_OK;
  }
  if (assistant && strcmp(type, "tool_use") == 0) return read_tool_use(s, b, f);
  if (!assistant && strcmp(type, "tool_result") == 0) return read_tool_result(s, b, f);
  if (assistant && (strcmp(type, "thinking") == 0 || strcmp(type, "redacted_thinking") == 0))
    return FL_OK; /* past thoughts are not shown to the model again */
  return fl_api_refuse(f, NULL, "messages",
                       "content blocks of type %.64s are not supported here; send text", type);
}

static int read_message(fl_api_request *c, const fl_json *m, size_t i, fl_api_error *f) {
  const char *role = NULL;
  blocks s = { 0 };
  if (!fl_json_is_obj(m) || !fl_json_get_str(m, "role", &role))
    return fl_api_refuse(f, NULL, "messages", "messages.%zu has no role", i);
  const bool assistant = strcmp(role, "assistant") == 0;
  if (!assistant && strcmp(role, "user") != 0)
    return fl_api_refuse(f, NULL, "messages", "messages.%zu: role %.32s is not user or assistant",
                         i, role);
  const fl_json *content = fl_json_field(m, "content");
  const char *plain = content != NULL ? fl_json_as_str(content) : NULL;
  int rc = FL_OK;
  if (plain != NULL) {
    fl_buf_puts(&s.text, plain);
  } else if (content == NULL || !fl_json_is_arr(content)) {
    rc = fl_api_refuse(f, NULL, "messages", "messages.%zu: content has to be a string or an array",
                       i);
  } else {
    for (const fl_json *b = fl_json_first(content); rc == FL_OK && b != NULL; b = fl_json_next(b))
      rc = read_block(&s, b, assistant, f);
  }
  if (rc == FL_OK && s.results.len > 0) {
    rc = fl_request_message(c, FL_ROLE_USER, s.results.data, s.results.len, true, f);
    if (rc == FL_OK && s.text.len > 0)
      rc = fl_request_message(c, FL_ROLE_USER, s.text.data, s.text.len, true, f);
  } else if (rc == FL_OK) {
    rc = fl_request_message(c, assistant ? FL_ROLE_ASSISTANT : FL_ROLE_USER,
                            s.text.data != NULL ? s.text.data : "", s.text.len, true, f);
  }
  fl_buf_release(&s.text);
  fl_buf_release(&s.results);
  return rc;
}

static int read_system(fl_api_request *c, fl_api_error *f) {
  const fl_json *v = fl_json_field(c->body, "system");
  fl_buf text = { 0 };
  if (v == NULL) return FL_OK;
  int rc = fl_request_content(&text, v, text_types, "system", f);
  if (rc == FL_OK && text.len > 0)
    rc = fl_request_message(c, FL_ROLE_SYSTEM, text.data, text.len, false, f);
  fl_buf_release(&text);
  return rc;
}

static int read_rest(fl_api_request *c, fl_api_error *f) {
  const fl_json *thinking = NULL;
  const char *type = NULL;
  int rc = fl_json_field_size(c->body, "max_tokens", 1, 1u << 30, &c->chat.max_new, f);
  if (rc == FL_OK) rc = fl_request_sampling(c, 1, f);
  if (rc == FL_OK) rc = fl_request_stops(c, "stop_sequences", f);
  if (rc == FL_OK) rc = fl_json_field_bool(c->body, "stream", &c->stream, f);
  if (rc == FL_OK) rc = fl_json_field_obj(c->body, "thinking", &thinking, f);
  if (rc == FL_OK && thinking != NULL) rc = fl_json_field_str(thinking, "type", &type, f);
  if (type != NULL) c->chat.thinking = strcmp(type, "disabled") != 0;
  return rc;
}

static int parse(fl_api_request *c, fl_api_error *f) {
  static const char *const refused[] = { "output_config", "output_format", "container",
                                         "mcp_servers", "context_management" };
  const fl_json *messages = NULL;
  size_t i = 0;
  int rc = fl_json_field_refuse(c->body, refused, sizeof refused / sizeof *refused, f);
  if (rc == FL_OK && fl_json_field(c->body, "model") == NULL)
    rc = fl_api_refuse(f, NULL, "model", "model: field required");
  if (rc == FL_OK && fl_json_field(c->body, "max_tokens") == NULL)
    rc = fl_api_refuse(f, NULL, "max_tokens", "max_tokens: field required");
  if (rc == FL_OK) rc = fl_json_field_arr(c->body, "messages", &messages, f);
  if (rc == FL_OK && messages == NULL)
    rc = fl_api_refuse(f, NULL, "messages", "messages: field required");
  if (rc == FL_OK) rc = read_system(c, f);
  if (rc == FL_OK) rc = read_tools(c, f);
  for (const fl_json *m = rc == FL_OK ? fl_json_first(messages) : NULL; rc == FL_OK && m != NULL;
       m = fl_json_next(m))
    rc = read_message(c, m, i++, f);
  return rc == FL_OK ? read_rest(c, f) : rc;
}

/* --- the reply --- */

static const char *stop_reason(const fl_response *t) {
  if (t->told.end.finish == FL_FINISH_LENGTH) return "max_tokens";
  if (t->n_uses > 0) return "tool_use";
  return t->told.end.stop_string != NULL ? "stop_sequence" : "end_turn";
}

/* input_tokens are those that were computed, as the original counts them. */
static void put_usage(fl_response *t) {
  fl_buf *b = &t->out;
  fl_jsonw_open(b, "usage", '{');
  fl_jsonw_u64(b, "input_tokens", t->told.start.prompt_tokens - t->told.start.cached_tokens);
  fl_jsonw_u64(b, "cache_creation_input_tokens", 0);
  fl_jsonw_u64(b, "cache_read_input_tokens", t->told.start.cached_tokens);
  fl_jsonw_u64(b, "output_tokens", t->told.end.completion_tokens);
  fl_jsonw_close(b, '}');
}

static void put_head(fl_response *t) {
  fl_buf *b = &t->out;
  fl_buf_printf(b, "\"id\":\"msg_%s\"", t->id);
  fl_jsonw_str(b, "type", "message");
  fl_jsonw_str(b, "role", "assistant");
  fl_jsonw_str(b, "model", t->model);
}

static void open_event(fl_response *t, const char *type) {
  fl_sse_begin(t, type);
  fl_jsonw_open(&t->out, NULL, '{');
  fl_jsonw_str(&t->out, "type", type);
}

static void close_event(fl_response *t) {
  fl_jsonw_close(&t->out, '}');
  fl_sse_end(t);
}

static void begin(fl_response *t) {
  fl_buf *b = &t->out;
  open_event(t, "message_start");
  fl_jsonw_open(b, "message", '{');
  put_head(t);
  fl_jsonw_open(b, "content", '[');
  fl_jsonw_close(b, ']');
  fl_jsonw_null(b, "stop_reason");
  fl_jsonw_null(b, "stop_sequence");
  put_usage(t);
  fl_response_extension(t, false);
  fl_jsonw_close(b, '}');
  close_event(t);
}

static void open_block(fl_response *t) {
  open_event(t, "content_block_start");
  fl_jsonw_u64(&t->out, "index", t->n_items);
  fl_jsonw_open(&t->out, "content_block", '{');
}

static void close_block(fl_response *t) {
  open_event(t, "content_block_stop");
  fl_jsonw_u64(&t->out, "index", t->n_items++);
  close_event(t);
  t->open_item = NONE;
}

static void open_delta(fl_response *t, const char *type) {
  open_event(t, "content_block_delta");
  fl_jsonw_u64(&t->out, "index", t->n_items);
  fl_jsonw_open(&t->out, "delta", '{');
  fl_jsonw_str(&t->out, "type", type);
}

static void close_inner(fl_response *t) {
  fl_jsonw_close(&t->out, '}');
  close_event(t);
}

static void close_open(fl_response *t) {
  if (t->open_item == THINKING) { /* clients want a signature before the block ends */
    open_delta(t, "signature_delta");
    fl_jsonw_str(&t->out, "signature", "");
    close_inner(t);
  }
  if (t->open_item != NONE) close_block(t);
}

static void text(fl_response *t, fl_part part, const char *s, size_t len) {
  const int want = part == FL_PART_REASONING ? THINKING : TEXT;
  fl_buf *b = &t->out;
  if (t->open_item != want) {
    close_open(t);
    open_block(t);
    fl_jsonw_str(b, "type", want == TEXT ? "text" : "thinking");
    fl_jsonw_str(b, want == TEXT ? "text" : "thinking", "");
    if (want == THINKING) fl_jsonw_str(b, "signature", "");
    close_inner(t);
    t->open_item = want;
  }
  open_delta(t, want == TEXT ? "text_delta" : "thinking_delta");
  fl_jsonw_strn(b, want == TEXT ? "text" : "thinking", s, len);
  close_inner(t);
}

static void call(fl_response *t, const fl_tool_use *u) {
  fl_buf *b = &t->out;
  close_open(t);
  open_block(t);
  fl_jsonw_str(b, "type", "tool_use");
  fl_jsonw_str(b, "id", u->id);
  fl_jsonw_str(b, "name", u->name);
  fl_jsonw_raw(b, "input", "{}", 2);
  close_inner(t);
  open_delta(t, "input_json_delta");
  fl_jsonw_str(b, "partial_json", u->args);
  close_inner(t);
  close_block(t);
}

static void end(fl_response *t) {
  fl_buf *b = &t->out;
  if (t->n_items == 0 && t->open_item == NONE) text(t, FL_PART_CONTENT, "", 0);
  close_open(t);
  open_event(t, "message_delta");
  fl_jsonw_open(b, "delta", '{');
  fl_jsonw_str(b, "stop_reason", stop_reason(t));
  fl_jsonw_str(b, "stop_sequence", t->told.end.stop_string);
  fl_jsonw_close(b, '}');
  put_usage(t);
  fl_response_extension(t, true);
  close_event(t);
  open_event(t, "message_stop");
  close_event(t);
}

static void broken(fl_response *t, const fl_api_error *f) {
  fl_sse_begin(t, "error");
  fl_api_error_body(&t->out, f, FL_API_ANTHROPIC, NULL);
  fl_sse_end(t);
}

static void ping(fl_response *t) {
  open_event(t, "ping");
  close_event(t);
}

static void put_text_block(fl_buf *b, const char *type, const fl_buf *s) {
  fl_jsonw_open(b, NULL, '{');
  fl_jsonw_str(b, "type", type);
  fl_jsonw_strn(b, type, s->len > 0 ? s->data : "", s->len);
  if (strcmp(type, "thinking") == 0) fl_jsonw_str(b, "signature", "");
  fl_jsonw_close(b, '}');
}

static void whole(fl_response *t) {
  fl_buf *b = &t->out;
  fl_jsonw_open(b, NULL, '{');
  put_head(t);
  fl_jsonw_open(b, "content", '[');
  if (t->reasoning.len > 0) put_text_block(b, "thinking", &t->reasoning);
  if (t->content.len > 0 || t->n_uses == 0) put_text_block(b, "text", &t->content);
  for (size_t i = 0; i < t->n_uses; i++) {
    fl_jsonw_open(b, NULL, '{');
    fl_jsonw_str(b, "type", "tool_use");
    fl_jsonw_str(b, "id", t->use[i].id);
    fl_jsonw_str(b, "name", t->use[i].name);
    fl_jsonw_raw(b, "input", t->use[i].args, strlen(t->use[i].args));
    fl_jsonw_close(b, '}');
  }
  fl_jsonw_close(b, ']');
  fl_jsonw_str(b, "stop_reason", stop_reason(t));
  fl_jsonw_str(b, "stop_sequence", t->told.end.stop_string);
  put_usage(t);
  fl_response_extension(t, true);
  fl_jsonw_close(b, '}');
}

const fl_protocol fl_protocol_messages = { "messages", FL_API_ANTHROPIC, parse, begin, text, call,
                                           end,        broken,           ping,  whole };
