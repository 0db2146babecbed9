/* response.c - see response.h. */
#include "http/response.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/json_writer.h"

/* --- from the output parser --- */

static void on_text(void *ctx, fl_part part, const char *s, size_t len) {
  fl_response *t = ctx;
  fl_buf_append(part == FL_PART_REASONING ? &t->reasoning : &t->content, s, len);
  if (t->streaming) t->protocol->text(t, part, s, len);
}

static void on_call(void *ctx, const char *name, const char *args, size_t len) {
  fl_response *t = ctx;
  if (t->n_uses == FL_RESPONSE_CALLS) return;
  fl_tool_use *u = &t->use[t->n_uses];
  snprintf(u->id, sizeof u->id, "call_%.24s_%zu", t->id, t->n_uses);
  u->name = fl_strdup(name);
  u->args = fl_strndup(args, len);
  if (u->name == NULL || u->args == NULL) t->out.oom = true;
  t->n_uses++;
  if (t->streaming && !t->out.oom) t->protocol->call(t, u);
}

static bool on_known(void *ctx, const char *name) {
  const fl_response *t = ctx;
  return t->n_uses < FL_RESPONSE_CALLS && fl_request_knows(&t->request, name);
}

/* --- start and release --- */

void fl_response_init(fl_response *t) {
  const fl_output_parser_sink s = { .ctx = t, .text = on_text, .call = on_call, .known = on_known };
  t->chat = t->job != NULL ? fl_job_request(t->job) : &t->request.chat;
  fl_output_parser_init(&t->parser, &s, t->request.n_tools > 0 && !t->request.tools_off);
}

int fl_response_start(fl_response *t, fl_engine *e, uint32_t owner, uint64_t number,
                      size_t unread_bytes, fl_api_error *f) {
  fl_api_request *r = &t->request;
  fl_err err = { 0 };
  fl_request_identify(r, owner, number);
  if (fl_job_events_new(&t->events, unread_bytes, !r->stream, &err) != FL_OK)
    return fl_api_error_from(f, &err);
  const fl_job_sink sink = fl_job_events_sink(t->events);
  if (fl_engine_submit(e, &r->chat, &sink, &t->job, &err) != FL_OK) {
    fl_job_events_unref(t->events); /* the engine's share */
    fl_api_error_from(f, &err);
    if (f->status == 429) f->retry_after_s = fl_engine_retry_after_s(e);
    return FL_EINPUT;
  }
  fl_response_init(t);
  return FL_OK;
}

static void cancel(fl_response *t) {
  if (t->job != NULL) fl_job_cancel(t->job);
}

void fl_response_release(fl_response *t) {
  cancel(t);
  if (t->job != NULL) fl_job_release(t->job);
  fl_job_events_unref(t->events);
  fl_output_parser_release(&t->parser);
  for (size_t i = 0; i < t->n_uses; i++) {
    fl_free(t->use[i].name);
    fl_free(t->use[i].args);
  }
  fl_job_event_release(&t->told);
  fl_buf_release(&t->reasoning);
  fl_buf_release(&t->content);
  fl_buf_release(&t->out);
  fl_request_release(&t->request);
  memset(t, 0, sizeof *t);
}

/* --- events --- */

static void fail(fl_response *t, const fl_api_error *f) {
  if (t->error.status == 0) t->error = *f;
  t->ended = true;
  if (t->streaming) t->protocol->broken(t, f);
}

static void finish(fl_response *t, bool overrun) {
  const fl_job_end *v = &t->told.end;
  fl_api_error f = { 0 };
  if (overrun) {
    fl_api_error_set(&f, 408, "slow_reader", NULL, "the answer was not read fast enough");
  } else if (v->finish == FL_FINISH_CANCELLED) {
    fl_api_error_set(&f, 503, "unavailable", NULL,
                     "the answer was cancelled: the server is stopping");
  } else if (v->finish == FL_FINISH_ERROR) {
    fl_err err = { .code = v->code };
    snprintf(err.text, sizeof err.text, "%s", v->error != NULL ? v->error : "");
    fl_api_error_from(&f, &err);
    if (f.status == 429) f.retry_after_s = 10; /* it is up to a disk: nobody knows */
  }
  if (f.status != 0) {
    fail(t, &f);
    return;
  }
  fl_output_parser_finish(&t->parser);
  t->ended = true;
  if (t->streaming) t->protocol->end(t);
}

static void take_events(fl_response *t) {
  fl_job_event v = { 0 };
  bool overrun = false;
  fl_job_events_take(t->events, &v, &overrun);
  const bool started = v.started, ended = v.ended;
  fl_buf text = v.text;
  v.text = (fl_buf){ 0 };
  fl_job_event_merge(&t->told, &v);
  if (started && t->streaming) t->protocol->begin(t);
  if (text.len > 0) fl_output_parser_feed(&t->parser, text.data, text.len);
  if (ended) finish(t, overrun);
  fl_buf_release(&text);
  fl_job_event_release(&v);
}

fl_wait fl_response_advance(fl_response *t, int client, int stop, double heartbeat_s) {
  fl_api_error f = { 0 };
  const fl_wait w = fl_job_events_wait(t->events, client, stop, heartbeat_s);
  if (w == FL_WAIT_TIME && t->streaming) t->protocol->ping(t);
  if (w == FL_WAIT_GONE) cancel(t);
  if (w == FL_WAIT_STOP) {
    cancel(t);
    fl_api_error_set(&f, 503, "unavailable", NULL, "the server is stopping");
    fail(t, &f);
  }
  if (w != FL_WAIT_EVENTS) return w;
  take_events(t);
  const bool oom =
      t->told.lost || t->out.oom || t->parser.held.oom || t->content.oom || t->reasoning.oom;
  if (oom && !t->ended) {
    t->out.oom = false; /* the last words may still fit */
    cancel(t);
    fl_api_error_set(&f, 500, "server_error", NULL, "not enough memory for the answer");
    fail(t, &f);
  }
  return w;
}

/* Replays what came before the decision to stream. */
void fl_response_stream(fl_response *t) {
  t->streaming = true;
  if (t->told.started) t->protocol->begin(t);
  if (t->reasoning.len > 0)
    t->protocol->text(t, FL_PART_REASONING, t->reasoning.data, t->reasoning.len);
  if (t->content.len > 0) t->protocol->text(t, FL_PART_CONTENT, t->content.data, t->content.len);
  for (size_t i = 0; i < t->n_uses; i++) t->protocol->call(t, &t->use[i]);
  if (t->ended && t->error.status != 0) t->protocol->broken(t, &t->error);
  else if (t->ended) t->protocol->end(t);
}

/* --- shared by the protocols --- */

void fl_sse_begin(fl_response *t, const char *event) {
  if (event != NULL) fl_buf_printf(&t->out, "event: %s\n", event);
  fl_buf_puts(&t->out, "data: ");
}

void fl_sse_end(fl_response *t) { fl_buf_puts(&t->out, "\n\n"); }

const char *fl_response_finish(const fl_response *t) {
  if (t->told.end.finish == FL_FINISH_LENGTH) return "length";
  return t->n_uses > 0 ? "tool_calls" : "stop";
}

static void put_evidence(fl_buf *b, const fl_evidence *why) {
  if (why->cosine_rank > 0) {
    fl_jsonw_num(b, "cosine", why->cosine);
    fl_jsonw_u64(b, "cosine_rank", why->cosine_rank);
  }
  if (why->gain < 0 || why->gain > 0) fl_jsonw_num(b, "gain", why->gain);
  if (why->words_rank == 0) return;
  fl_jsonw_num(b, "words", why->words);
  fl_jsonw_u64(b, "words_rank", why->words_rank);
  fl_jsonw_open(b, "matched", '[');
  for (const char *p = why->matched; *p != '\0'; p += strspn(p, " ")) {
    size_t n = strcspn(p, " ");
    fl_jsonw_strn(b, NULL, p, n);
    p += n;
  }
  fl_jsonw_close(b, ']');
}

void fl_response_extension(fl_response *t, bool ended) {
  fl_buf *b = &t->out;
  fl_jsonw_open(b, "flotilla", '{');
  fl_jsonw_open(b, "documents", '[');
  for (size_t i = 0; i < t->told.start.n_docs; i++) {
    const fl_job_doc *d = &t->told.start.docs[i];
    fl_jsonw_open(b, NULL, '{');
    fl_jsonw_str(b, "name", d->name);
    const bool named = t->chat->rag == FL_RAG_NAMED;
    fl_jsonw_num(b, "score", named ? (double)NAN : d->why.score); /* NaN: null */
    if (!named) put_evidence(b, &d->why);
    fl_jsonw_u64(b, "rows", d->rows);
    fl_jsonw_close(b, '}');
  }
  fl_jsonw_close(b, ']');
  fl_jsonw_u64(b, "rows", t->told.start.rows);
  fl_jsonw_num(b, "queue_s", t->told.start.queue_s);
  if (ended) {
    fl_jsonw_num(b, "ttft_s", t->told.end.ttft_s);
    fl_jsonw_num(b, "seconds", t->told.end.seconds);
    fl_jsonw_u64(b, "drafted", t->told.end.drafted);
    fl_jsonw_u64(b, "accepted", t->told.end.accepted);
  }
  fl_jsonw_close(b, '}');
}

static void put_token(fl_buf *b, const fl_job_event *n, const fl_job_token *p) {
  const char *s = n->bytes.data != NULL ? n->bytes.data + p->at : "";
  fl_jsonw_strn(b, "token", s, p->len);
  fl_jsonw_num(b, "logprob", p->logprob < -9999.0f ? -9999.0 : (double)p->logprob);
  fl_jsonw_open(b, "bytes", '[');
  for (size_t i = 0; i < p->len; i++) fl_jsonw_u64(b, NULL, (unsigned char)s[i]);
  fl_jsonw_close(b, ']');
}

void fl_response_logprobs(fl_response *t) {
  fl_buf *b = &t->out;
  fl_job_event *n = &t->told;
  fl_jsonw_open(b, "content", '[');
  for (size_t i = 0; i < n->n_tokens; i++) {
    fl_jsonw_open(b, NULL, '{');
    put_token(b, n, &n->token[i]);
    fl_jsonw_open(b, "top_logprobs", '[');
    for (size_t j = 0; j < n->n_top; j++) {
      fl_jsonw_open(b, NULL, '{');
      put_token(b, n, &n->top[i * n->n_top + j]);
      fl_jsonw_close(b, '}');
    }
    fl_jsonw_close(b, ']');
    fl_jsonw_close(b, '}');
  }
  fl_jsonw_close(b, ']');
  fl_job_event_forget_tokens(n);
}
