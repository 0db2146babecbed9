/* api_responses_stream.c - the events of a streamed response. Every event has its number; items
 * follow one another, each opened, filled and closed. */
#include <string.h>

#include "http/api_responses.h"
#include "base/json_writer.h"
#include "http/sse.h"

enum { NONE, REASONING, CONTENT }; /* fl_response.open_item */

static void open_event(fl_response *t, const char *type) {
  fl_sse_begin(&t->out, type);
  fl_jsonw_open(&t->out, NULL, '{');
  fl_jsonw_str(&t->out, "type", type);
  fl_jsonw_u64(&t->out, "sequence_number", t->sequence++);
}

static void close_event(fl_response *t) {
  fl_jsonw_close(&t->out, '}');
  fl_sse_end(&t->out);
}

void fl_responses_begin(fl_response *t) {
  open_event(t, "response.created");
  fl_responses_object(t, "response", "in_progress", NULL);
  close_event(t);
  open_event(t, "response.in_progress");
  fl_responses_object(t, "response", "in_progress", NULL);
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
  fl_responses_text_part(t, "part", part, s, len);
  close_event(t);
}

static void item_event(fl_response *t, const char *type, fl_part part, const char *s, size_t len,
                       bool done) {
  open_event(t, type);
  fl_jsonw_u64(&t->out, "output_index", t->n_items);
  fl_responses_item(t, "item", part, t->n_items, s, len, done);
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

void fl_responses_text(fl_response *t, fl_part part, const char *s, size_t len) {
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

void fl_responses_on_call(fl_response *t, const fl_tool_use *u) {
  fl_buf *b = &t->out;
  close_open(t);
  for (int done = 0; done < 2; done++) {
    open_event(t, done ? "response.output_item.done" : "response.output_item.added");
    fl_jsonw_u64(b, "output_index", t->n_items);
    fl_responses_call(t, "item", u, done);
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

void fl_responses_end(fl_response *t) {
  if (t->n_items == 0 && t->open_item == NONE) fl_responses_text(t, FL_PART_CONTENT, "", 0);
  close_open(t);
  const char *status = fl_responses_status(t);
  open_event(t, strcmp(status, "completed") == 0 ? "response.completed" : "response.incomplete");
  fl_responses_object(t, "response", status, NULL);
  close_event(t);
}

void fl_responses_broken(fl_response *t, const fl_api_error *f) {
  open_event(t, "error");
  fl_jsonw_str(&t->out, "code", f->code != NULL ? f->code : "server_error");
  fl_jsonw_str(&t->out, "message", f->message);
  fl_jsonw_null(&t->out, "param");
  close_event(t);
  open_event(t, "response.failed");
  fl_responses_object(t, "response", "failed", f);
  close_event(t);
}

void fl_responses_ping(fl_response *t) { fl_sse_comment(&t->out); }
