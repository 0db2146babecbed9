/* check_response.c - scripted events become replies: whole bodies and streams of the three
 * protocols, read back with the JSON parser. The engine is played by the test, through the queue's
 * own sink.
 */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_util.h"
#include "suite.h"

typedef struct stage {
  fl_response t;
  fl_job_sink engine;
  fl_api_error fault;
} stage;

static void open_stage(stage *s, const fl_protocol *d, const char *quoted) {
  char *body = http_json(quoted);
  *s = (stage){ 0 };
  ck_assert_msg(http_parse(&s->t.request, d, body, &s->fault) == FL_OK, "%s", s->fault.message);
  fl_free(body);
  s->t.protocol = d;
  s->t.model = "m";
  s->t.created = 1;
  strcpy(s->t.id, "id1");
  ck_assert_int_eq(fl_job_events_new(&s->t.events, 4096, false, NULL), FL_OK);
  s->engine = fl_job_events_sink(s->t.events);
  fl_response_init(&s->t);
}

static bool tell(stage *s, fl_job_event *e) {
  const bool go_on = s->engine.on_event(s->engine.ctx, e);
  fl_job_event_release(e);
  return go_on;
}

static void start(stage *s) {
  fl_job_event e = { .started = true,
                     .start = { .docs = fl_calloc(2, sizeof(fl_job_doc)),
                                .n_docs = 2,
                                .rows = 80,
                                .prompt_tokens = 21,
                                .cached_tokens = 20,
                                .queue_s = 0.5 } };
  e.start.docs[0] =
      (fl_job_doc){ .id = 1,
                    .name = fl_strdup("a.md"),
                    .why = { .score = 0.5, .words = 0.4, .words_rank = 2, .matched = "lamp oil" },
                    .rows = 48 };
  e.start.docs[1] = (fl_job_doc){ .id = 7,
                                  .name = fl_strdup("b \"c\".md"),
                                  .why = { .score = -0.25, .cosine = -0.25, .cosine_rank = 3 },
                                  .rows = 32 };
  ck_assert(tell(s, &e));
}

static bool say(stage *s, const char *text) {
  fl_job_event e = { 0 };
  fl_buf_puts(&e.text, text);
  return tell(s, &e);
}

static void end(stage *s, fl_finish how, int code, const char *error) {
  fl_job_event e = { .ended = true,
                     .end = { .finish = how,
                              .completion_tokens = 7,
                              .drafted = 3,
                              .accepted = 2,
                              .ttft_s = 0.25,
                              .seconds = 1,
                              .code = code,
                              .error = error != NULL ? fl_strdup(error) : NULL } };
  (void)tell(s, &e);
}

static void advance(stage *s) {
  ck_assert_int_eq((int)fl_response_advance(&s->t, -1, -1, 10), FL_WAIT_EVENTS);
}

/* Frames of the stream as an array of {event, data}; "[DONE]" and comments are counted apart. */
static fl_json *frames(const fl_buf *b, int *done, int *comments) {
  fl_json *all = fl_json_array();
  const char *at = b->data, *stop = b->data + b->len;
  *done = *comments = 0;
  while (at < stop) {
    const char *blank = strstr(at, "\n\n");
    ck_assert_msg(blank != NULL, "an unfinished frame: %s", at);
    fl_json *one = fl_json_object(), *data = NULL;
    if (strncmp(at, "event: ", 7) == 0) {
      const char *eol = strchr(at, '\n');
      char name[64];
      snprintf(name, sizeof name, "%.*s", (int)(eol - at - 7), at + 7);
      fl_json_set_str(one, "event", name);
      at = eol + 1;
    }
    if (at[0] == ':') {
      (*comments)++;
      fl_json_free(one);
    } else if (strncmp(at, "data: [DONE]", 12) == 0) {
      (*done)++;
      fl_json_free(one);
    } else {
      ck_assert_int_eq(strncmp(at, "data: ", 6), 0);
      fl_err err = { 0 };
      ck_assert_msg(fl_json_parse(&data, at + 6, (size_t)(blank - at - 6), &err) == FL_OK,
                    "%s in %s", err.text, at);
      fl_json_set(one, "data", data);
      fl_json_push(all, one);
    }
    at = blank + 2;
  }
  return all;
}

/* A value by a path of keys and indices: "choices.0.delta.content". */
static const fl_json *at(const fl_json *v, const char *path) {
  char copy[128], *save = NULL;
  snprintf(copy, sizeof copy, "%s", path);
  for (char *k = strtok_r(copy, ".", &save); v != NULL && k != NULL; k = strtok_r(NULL, ".", &save))
    v = fl_json_is_arr(v) ? fl_json_at(v, (size_t)atoi(k)) : fl_json_get(v, k);
  return v;
}

static const char *str(const fl_json *v, const char *path) {
  const fl_json *x = at(v, path);
  const char *s = x != NULL ? fl_json_as_str(x) : NULL;
  return s != NULL ? s : "(none)";
}

static double num(const fl_json *v, const char *path) {
  double d = -1;
  const fl_json *x = at(v, path);
  if (x != NULL) (void)fl_json_as_num(x, &d);
  return d;
}

static fl_json *whole(stage *s) {
  fl_json *v = NULL;
  fl_err err = { 0 };
  s->t.protocol->whole(&s->t);
  ck_assert_msg(fl_json_parse(&v, s->t.out.data, s->t.out.len, &err) == FL_OK, "%s in %s", err.text,
                s->t.out.data);
  return v;
}

static const char chat[] =
    "{'messages':[{'role':'user','content':'q'}],'stream':true,'tools':[{"
    "'type':'function','function':{'name':'f'}}],'stream_options':{'include_usage':true}}";
static const char messages[] = "{'model':'m','max_tokens':9,'messages':[{'role':'user','content':"
                               "'q'}"
                               "],'tools':[{'name':'f'}]}";
static const char responses[] = "{'input':'q','tools':[{'type':'function','name':'f'}]}";
static const char call_text[] = "<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":1}}</tool_call>";

static void play(stage *s) {
  start(s);
  say(s, "<think>hm</think>\n\nHel");
  say(s, "lo \"w\xc3\xb6rld\"\n");
  say(s, call_text);
  end(s, FL_FINISH_STOP, FL_OK, NULL);
}

START_TEST(chat_whole) {
  stage s;
  open_stage(&s, &fl_protocol_chat, chat);
  play(&s);
  advance(&s);
  ck_assert(s.t.ended && s.t.error.status == 0);
  fl_json *v = whole(&s);
  ck_assert_str_eq(str(v, "choices.0.message.content"), "Hello \"w\xc3\xb6rld\"");
  ck_assert_str_eq(str(v, "choices.0.message.reasoning_content"), "hm");
  ck_assert_str_eq(str(v, "choices.0.message.tool_calls.0.function.arguments"), "{\"x\":1}");
  ck_assert_str_eq(str(v, "choices.0.finish_reason"), "tool_calls");
  ck_assert_double_eq(num(v, "usage.prompt_tokens"), 21);
  ck_assert_double_eq(num(v, "usage.total_tokens"), 28);
  ck_assert_double_eq(num(v, "usage.prompt_tokens_details.cached_tokens"), 20);
  ck_assert_str_eq(str(v, "flotilla.documents.1.name"), "b \"c\".md");
  ck_assert_double_eq(num(v, "flotilla.documents.1.score"), -0.25);
  ck_assert_double_eq(num(v, "flotilla.documents.1.cosine_rank"), 3);
  ck_assert_double_eq(num(v, "flotilla.documents.0.words"), 0.4);
  ck_assert_double_eq(num(v, "flotilla.rows"), 80);
  ck_assert_double_eq(num(v, "flotilla.accepted"), 2);
  fl_json_free(v);
  fl_response_release(&s.t);
}
END_TEST

START_TEST(chat_stream) {
  stage s;
  int done, comments;
  fl_buf text = { 0 };
  open_stage(&s, &fl_protocol_chat, chat);
  start(&s);
  advance(&s);
  fl_response_stream(&s.t);
  ck_assert_int_eq((int)fl_response_advance(&s.t, -1, -1, 0), FL_WAIT_TIME); /* a heartbeat */
  say(&s, "Hel");
  advance(&s);
  say(&s, "lo <tool_ca");
  advance(&s);
  say(&s, &call_text[8]);
  say(&s, ""); /* nothing in it */
  end(&s, FL_FINISH_STOP, FL_OK, NULL);
  ck_assert(!s.t.ended);
  advance(&s);
  ck_assert(s.t.ended);
  fl_json *all = frames(&s.t.out, &done, &comments);
  ck_assert(done == 1 && comments == 1);
  const size_t n = fl_json_len(all);
  ck_assert_str_eq(str(all, "0.data.choices.0.delta.role"), "assistant");
  ck_assert_str_eq(str(all, "0.data.flotilla.documents.0.name"), "a.md");
  for (size_t i = 0; i < n; i++) {
    const char *piece = str(fl_json_at(all, i), "data.choices.0.delta.content");
    if (strcmp(piece, "(none)") != 0) fl_buf_puts(&text, piece);
  }
  ck_assert_str_eq(text.data, "Hello");
  const fl_json *call = fl_json_at(all, n - 3);
  ck_assert_str_eq(str(call, "data.choices.0.delta.tool_calls.0.function.name"), "f");
  ck_assert_str_eq(str(fl_json_at(all, n - 2), "data.choices.0.finish_reason"), "tool_calls");
  ck_assert_double_eq(num(fl_json_at(all, n - 1), "data.usage.completion_tokens"), 7);
  ck_assert_uint_eq(fl_json_len(at(fl_json_at(all, n - 1), "data.choices")), 0);
  fl_json_free(all);
  fl_buf_release(&text);
  fl_response_release(&s.t);
}
END_TEST

START_TEST(chat_logprobs) {
  stage s;
  open_stage(&s, &fl_protocol_chat,
             "{'messages':[{'role':'user','content':'q'}],'logprobs':true,"
             "'top_logprobs':2}");
  static const char *const word[] = { "He", "\xc3" }, *const other[] = { "x", "y" };
  static const float other_logprob[] = { -3.0f, -INFINITY };
  start(&s);
  for (int i = 0; i < 2; i++) { /* two events, which are merged */
    fl_job_event e = { .n_tokens = 1 };
    const fl_job_token t = { i + 1, i ? -1.0f : -0.5f, 0, strlen(word[i]) };
    fl_buf_puts(&e.text, i ? "\xc3\xa9" : "He");
    fl_buf_printf(&e.bytes, "%s%s", word[i], other[i]);
    ck_assert(fl_job_event_reserve(&e, 1, 2));
    e.token[0] = e.top[0] = t;
    e.top[1] = (fl_job_token){ 9 - i, other_logprob[i], t.len, 1 };
    ck_assert(tell(&s, &e));
    if (_i == 0) advance(&s); /* by the reader, or while they wait for it */
  }
  end(&s, FL_FINISH_LENGTH, FL_OK, NULL);
  advance(&s);
  fl_json *v = whole(&s);
  ck_assert_uint_eq(fl_json_len(at(v, "choices.0.logprobs.content")), 2);
  ck_assert_str_eq(str(v, "choices.0.logprobs.content.0.token"), "He");
  ck_assert_double_eq(num(v, "choices.0.logprobs.content.0.logprob"), -0.5);
  ck_assert_double_eq(num(v, "choices.0.logprobs.content.1.bytes.0"), 0xc3);
  ck_assert_str_eq(str(v, "choices.0.logprobs.content.1.top_logprobs.1.token"), "y");
  ck_assert_double_eq(num(v, "choices.0.logprobs.content.1.top_logprobs.1.logprob"), -9999);
  ck_assert_str_eq(str(v, "choices.0.finish_reason"), "length");
  fl_json_free(v);
  fl_response_release(&s.t);
}
END_TEST

START_TEST(messages_whole) {
  stage s;
  open_stage(&s, &fl_protocol_messages, messages);
  play(&s);
  advance(&s);
  fl_json *v = whole(&s);
  ck_assert_str_eq(str(v, "content.0.thinking"), "hm");
  ck_assert_str_eq(str(v, "content.1.text"), "Hello \"w\xc3\xb6rld\"");
  ck_assert_double_eq(num(v, "content.2.input.x"), 1);
  ck_assert_str_eq(str(v, "stop_reason"), "tool_use");
  ck_assert_double_eq(num(v, "usage.input_tokens"), 1);
  ck_assert_double_eq(num(v, "usage.cache_read_input_tokens"), 20);
  fl_json_free(v);
  fl_response_release(&s.t);
}
END_TEST

/* The order that Anthropic documents: each block is opened, filled, closed; indices rise. */
START_TEST(messages_stream) {
  static const char *const want[] = {
    "message_start",       "content_block_start", "content_block_delta", "content_block_delta",
    "content_block_stop",  "content_block_start", "content_block_delta", "content_block_stop",
    "content_block_start", "content_block_delta", "content_block_stop",  "message_delta",
    "message_stop"
  };
  stage s;
  int done, comments;
  open_stage(&s, &fl_protocol_messages, messages);
  play(&s);
  advance(&s);
  fl_response_stream(&s.t); /* everything came before the stream began */
  fl_json *all = frames(&s.t.out, &done, &comments);
  ck_assert_int_eq(done, 0);
  ck_assert_uint_eq(fl_json_len(all), sizeof want / sizeof *want);
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    ck_assert_str_eq(str(fl_json_at(all, i), "event"), want[i]);
    ck_assert_str_eq(str(fl_json_at(all, i), "data.type"), want[i]);
  }
  ck_assert_str_eq(str(all, "2.data.delta.thinking"), "hm");
  ck_assert_double_eq(num(all, "9.data.index"), 2);
  ck_assert_str_eq(str(all, "9.data.delta.partial_json"), "{\"x\":1}");
  ck_assert_str_eq(str(all, "11.data.delta.stop_reason"), "tool_use");
  fl_json_free(all);
  fl_response_release(&s.t);
}
END_TEST

START_TEST(responses_stream) {
  stage s;
  int done, comments;
  open_stage(&s, &fl_protocol_responses, responses);
  start(&s);
  say(&s, "<think>hm</think>Hel");
  advance(&s);
  fl_response_stream(&s.t);
  say(&s, "lo");
  say(&s, call_text);
  end(&s, FL_FINISH_LENGTH, FL_OK, NULL);
  advance(&s);
  fl_json *all = frames(&s.t.out, &done, &comments);
  const size_t n = fl_json_len(all);
  fl_buf text = { 0 };
  for (size_t i = 0; i < n; i++) {
    const fl_json *f = fl_json_at(all, i);
    ck_assert_str_eq(str(f, "event"), str(f, "data.type"));
    ck_assert_double_eq(num(f, "data.sequence_number"), (double)i);
    if (strcmp(str(f, "event"), "response.output_text.delta") == 0)
      fl_buf_puts(&text, str(f, "data.delta"));
    if (strcmp(str(f, "event"), "response.output_text.done") == 0)
      ck_assert_str_eq(str(f, "data.text"), text.data);
  }
  ck_assert_str_eq(text.data, "Hello");
  const fl_json *last = fl_json_at(all, n - 1);
  ck_assert_str_eq(str(last, "event"), "response.incomplete");
  ck_assert_str_eq(str(last, "data.response.output.0.type"), "reasoning");
  ck_assert_str_eq(str(last, "data.response.output.1.content.0.text"), "Hello");
  ck_assert_str_eq(str(last, "data.response.output.2.arguments"), "{\"x\":1}");
  ck_assert_str_eq(str(last, "data.response.incomplete_details.reason"), "max_output_tokens");
  fl_buf_release(&text);
  fl_json_free(all);
  fl_response_release(&s.t);
}
END_TEST

static const struct {
  const fl_protocol *d;
  const char *body, *path, *says;
} broken[] = { { &fl_protocol_chat, chat, "data.error.message", "it burst" },
               { &fl_protocol_messages, messages, "data.error.message", "it burst" },
               { &fl_protocol_responses, responses, "data.response.error.message", "it burst" } };

START_TEST(breaks_in_the_middle) {
  stage s;
  int done, comments;
  open_stage(&s, broken[_i].d, broken[_i].body);
  start(&s);
  say(&s, "He");
  advance(&s);
  fl_response_stream(&s.t);
  end(&s, FL_FINISH_ERROR, FL_EFAIL, "it burst");
  advance(&s);
  ck_assert(s.t.ended && s.t.error.status == 500);
  fl_json *all = frames(&s.t.out, &done, &comments);
  ck_assert_str_eq(str(fl_json_at(all, fl_json_len(all) - 1), broken[_i].path), broken[_i].says);
  fl_json_free(all);
  fl_response_release(&s.t);
}
END_TEST

/* A reader that does not read: the engine is told to stop, and holds no more than the limit. */
START_TEST(unread_text_is_bounded) {
  stage s;
  char piece[1001] = { 0 };
  size_t taken = 0;
  open_stage(&s, &fl_protocol_chat, chat);
  memset(piece, 'x', 1000);
  start(&s);
  while (say(&s, piece)) ck_assert_uint_lt(taken++, 5); /* 4096 bytes are allowed */
  ck_assert_uint_eq(taken, 4);
  end(&s, FL_FINISH_CANCELLED, FL_OK, NULL);
  advance(&s);
  ck_assert(s.t.ended);
  ck_assert_int_eq(s.t.error.status, 408);
  fl_response_release(&s.t);
}
END_TEST

START_TEST(client_gone_and_stop) {
  stage s;
  int pair[2];
  open_stage(&s, &fl_protocol_chat, chat);
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  ck_assert(!fl_client_gone(pair[0]));
  ck_assert_int_eq((int)fl_response_advance(&s.t, pair[0], -1, 0), FL_WAIT_TIME);
  close(pair[1]);
  ck_assert(fl_client_gone(pair[0]));
  ck_assert_int_eq((int)fl_response_advance(&s.t, pair[0], -1, 3600), FL_WAIT_GONE);
  close(pair[0]);
  const int stop = eventfd(1, 0);
  ck_assert_int_eq((int)fl_response_advance(&s.t, -1, stop, 3600), FL_WAIT_STOP);
  ck_assert(s.t.ended && s.t.error.status == 503);
  close(stop);
  end(&s, FL_FINISH_CANCELLED, FL_OK, NULL); /* lets go of the engine's share */
  fl_response_release(&s.t);
}
END_TEST

enum { PIECES = 1500 }; /* of which all might wait at once */

static void *speak(void *arg) {
  stage *s = arg;
  fl_rng g = fl_rng_stream(1, FL_RNG_TEST, 6, 0, 0);
  for (int i = 0; i < PIECES; i++) {
    say(s, "ab");
    for (uint64_t n = fl_rng_below(&g, 8); n > 0; n--) sched_yield();
  }
  end(s, FL_FINISH_STOP, FL_OK, NULL);
  return NULL;
}

/* Pieces as fast as they come: no wake-up is lost, nor a byte, and the reader comes for many at
 * once. */
START_TEST(reader_pauses) {
  stage s;
  pthread_t engine;
  size_t bytes = 0, takes = 0;
  bool ended = false;
  open_stage(&s, &fl_protocol_chat, chat);
  ck_assert_int_eq(pthread_create(&engine, NULL, speak, &s), 0);
  for (; !ended; takes++) {
    fl_job_event n = { 0 };
    bool overrun = true;
    ck_assert_int_eq((int)fl_job_events_wait(s.t.events, -1, -1, 60), FL_WAIT_EVENTS);
    fl_job_events_take(s.t.events, &n, &overrun);
    ck_assert(!overrun && !n.lost);
    bytes += n.text.len;
    ended = n.ended;
    fl_job_event_release(&n);
  }
  pthread_join(engine, NULL);
  ck_assert_uint_eq(bytes, 2 * PIECES);
  ck_assert_uint_lt(takes, PIECES);
  fl_response_release(&s.t);
}
END_TEST

Suite *suite_response(void) {
  Suite *s = suite_create("response");
  TCase *t = tcase_create("replies");
  tcase_add_test(t, chat_whole);
  tcase_add_test(t, chat_stream);
  tcase_add_loop_test(t, chat_logprobs, 0, 2);
  tcase_add_test(t, messages_whole);
  tcase_add_test(t, messages_stream);
  tcase_add_test(t, responses_stream);
  tcase_add_loop_test(t, breaks_in_the_middle, 0, (int)(sizeof broken / sizeof *broken));
  tcase_add_test(t, unread_text_is_bounded);
  tcase_add_test(t, client_gone_and_stop);
  tcase_add_test(t, reader_pauses);
  suite_add_tcase(s, t);
  return s;
}
