/* output_parser.c - see output_parser.h. Each state takes from the front of `held` what it can
 * decide; the loop ends when a state takes nothing more. */
#include "http/output_parser.h"

#include <string.h>

#define THINK_OPEN "<think>"
#define THINK_CLOSE "</think>"
#define CALL_OPEN "<tool_call>"
#define CALL_CLOSE "</tool_call>"
#define SPACE " \t\r\n"

void fl_output_parser_init(fl_output_parser *s, const fl_output_parser_sink *sink, bool tools) {
  *s = (fl_output_parser){ .sink = *sink, .tools = tools };
}

void fl_output_parser_release(fl_output_parser *s) { fl_buf_release(&s->held); }

static void drop(fl_output_parser *s, size_t n) {
  memmove(s->held.data, s->held.data + n, s->held.len - n);
  s->held.len -= n;
  s->held.data[s->held.len] = '\0';
}

static void put(fl_output_parser *s, fl_part part, size_t n) {
  if (n > 0) s->sink.text(s->sink.ctx, part, s->held.data, n);
  if (n > 0) drop(s, n);
}

static size_t find(const fl_buf *b, const char *mark, bool *found) {
  const char *at = b->len > 0 ? memmem(b->data, b->len, mark, strlen(mark)) : NULL;
  *found = at != NULL;
  return at != NULL ? (size_t)(at - b->data) : 0;
}

/* Where the longest tail that is a proper prefix of the mark begins. */
static size_t tail_of(const fl_buf *b, const char *mark) {
  const size_t len = strlen(mark);
  size_t n = b->len < len - 1 ? b->len : len - 1;
  while (n > 0 && memcmp(b->data + b->len - n, mark, n) != 0) n--;
  return b->len - n;
}

static size_t blank_prefix(const fl_buf *b) {
  size_t n = 0;
  while (n < b->len && strchr(SPACE, b->data[n]) != NULL) n++;
  return n;
}

static size_t without_blank_tail(const fl_buf *b, size_t n) {
  while (n > 0 && strchr(SPACE, b->data[n - 1]) != NULL) n--;
  return n;
}

/* A think block only counts at the very beginning. */
static bool at_start(fl_output_parser *s, bool last) {
  const size_t blank = blank_prefix(&s->held), rest = s->held.len - blank;
  const size_t len = strlen(THINK_OPEN);
  if (rest >= len && memcmp(s->held.data + blank, THINK_OPEN, len) == 0) {
    drop(s, blank + len);
    s->state = FL_PARSER_REASONING;
    return true;
  }
  if (!last && rest < len && (rest == 0 || memcmp(s->held.data + blank, THINK_OPEN, rest) == 0))
    return false;
  s->state = FL_PARSER_CONTENT;
  return true;
}

static bool in_reasoning(fl_output_parser *s, bool last) {
  bool found;
  const size_t at = find(&s->held, THINK_CLOSE, &found);
  if (!found) {
    put(s, FL_PART_REASONING, last ? s->held.len : tail_of(&s->held, THINK_CLOSE));
    return false;
  }
  put(s, FL_PART_REASONING, at);
  drop(s, strlen(THINK_CLOSE));
  s->state = FL_PARSER_GAP;
  return true;
}

/* White space after a block is layout, not answer. */
static bool in_gap(fl_output_parser *s) {
  const size_t blank = blank_prefix(&s->held);
  if (blank > 0) drop(s, blank);
  if (s->held.len == 0) return false;
  s->state = FL_PARSER_CONTENT;
  return true;
}

static bool in_content(fl_output_parser *s, bool last) {
  bool found = false;
  size_t at = s->tools ? find(&s->held, CALL_OPEN, &found) : 0;
  if (found) {
    put(s, FL_PART_CONTENT, without_blank_tail(&s->held, at));
    drop(s, blank_prefix(&s->held) + strlen(CALL_OPEN));
    s->state = FL_PARSER_CALL;
    return true;
  }
  at = s->held.len;
  if (s->tools && !last) at = without_blank_tail(&s->held, tail_of(&s->held, CALL_OPEN));
  put(s, FL_PART_CONTENT, at);
  return false;
}

/* The call that held[0..len) spells; false when it is none. */
static bool take_call(const fl_output_parser *s, size_t len) {
  fl_json *v = NULL;
  const char *name = NULL;
  bool ok = fl_json_parse(&v, s->held.data, len, NULL) == FL_OK && fl_json_is_obj(v) &&
            fl_json_get_str(v, "name", &name) && s->sink.known(s->sink.ctx, name);
  const fl_json *args = ok ? fl_json_get(v, "arguments") : NULL;
  fl_buf text = { 0 };
  if (ok && args == NULL) fl_buf_puts(&text, "{}");
  else if (ok && fl_json_is_obj(args)) fl_json_print(&text, args, false);
  ok = ok && text.len > 0 && !text.oom;
  if (ok) s->sink.call(s->sink.ctx, name, text.data, text.len);
  fl_buf_release(&text);
  fl_json_free(v);
  return ok;
}

static bool in_call(fl_output_parser *s, bool last) {
  bool found;
  const size_t at = find(&s->held, CALL_CLOSE, &found);
  if (!found && !last) return false;
  const size_t len = found ? at : s->held.len, all = found ? at + strlen(CALL_CLOSE) : len;
  if (take_call(s, len)) {
    drop(s, all);
    s->state = FL_PARSER_GAP;
  } else {
    s->sink.text(s->sink.ctx, FL_PART_CONTENT, CALL_OPEN, strlen(CALL_OPEN));
    put(s, FL_PART_CONTENT, all);
    s->state = FL_PARSER_CONTENT;
  }
  return s->held.len > 0;
}

static bool advance(fl_output_parser *s, bool last) {
  switch (s->state) {
  case FL_PARSER_START: return at_start(s, last);
  case FL_PARSER_REASONING: return in_reasoning(s, last);
  case FL_PARSER_GAP: return in_gap(s);
  case FL_PARSER_CONTENT: return in_content(s, last);
  case FL_PARSER_CALL: return in_call(s, last);
  }
  return false;
}

void fl_output_parser_feed(fl_output_parser *s, const char *text, size_t len) {
  fl_buf_append(&s->held, text, len);
  while (s->held.len > 0 && advance(s, false)) {}
}

void fl_output_parser_finish(fl_output_parser *s) {
  while ((s->held.len > 0 || s->state == FL_PARSER_CALL) && advance(s, true)) {}
}
