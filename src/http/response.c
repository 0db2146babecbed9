/* response.c - see response.h. */
#include "http/response.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "http/json_writer.h"

/* --- from the splitter --- */

static void on_text(void *ctx, fl_part part, const char *s, size_t len) {
  fl_response *t = ctx;
  fl_buf_append(part == FL_PART_REASONING ? &t->reasoning : &t->content, s, len);
  if (t->streaming) t->d->text(t, part, s, len);
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
  if (t->streaming && !t->out.oom) t->d->call(t, u);
}

static bool on_known(void *ctx, const char *name) {
  const fl_response *t = ctx;
  return t->n_uses < FL_RESPONSE_CALLS && fl_call_knows(&t->call, name);
}

/* --- start and release --- */

void fl_response_init(fl_response *t) {
  const fl_output_parser_sink s = { .ctx = t, .text = on_text, .call = on_call, .known = on_known };
  fl_output_parser_init(&t->split, &s, t->call.n_tools > 0 && !t->call.tools_off);
}

int fl_response_start(fl_response *t, fl_engine *e, uint32_t owner, uint64_t number,
                      size_t inbox_bytes, fl_api_error *f) {
  fl_job_request r;
  fl_err err = { 0 };
  fl_call_job(&t->call, owner, number, &r);
  if (fl_job_events_new(&t->inbox, inbox_bytes, !t->call.stream, &err) != FL_OK)
    return fl_api_error_from(f, &err);
  const fl_job_sink sink = fl_job_events_sink(t->inbox);
  if (fl_engine_submit(e, &r, &sink, &t->job, &err) != FL_OK) {
    fl_job_events_unref(t->inbox); /* the engine's share */
    fl_api_error_from(f, &err);
    if (f->status == 429) f->retry_after_s = fl_engine_retry_after_s(e);
    return FL_EINPUT;
  }
  fl_response_init(t);
  return FL_OK;
}

static void stop_job(fl_response *t) {
  if (t->job == NULL) return;
  fl_job_cancel(t->job);
  fl_job_release(t->job);
  t->job = NULL;
}

void fl_response_release(fl_response *t) {
  stop_job(t);
  fl_job_events_unref(t->inbox);
  fl_output_parser_release(&t->split);
  for (size_t i = 0; i < t->n_uses; i++) {
    fl_free(t->use[i].name);
    fl_free(t->use[i].args);
  }
  fl_job_event_release(&t->start);
  fl_job_event_release(&t->last);
  fl_job_event_release(&t->tokens);
  fl_buf_release(&t->reasoning);
  fl_buf_release(&t->content);
  fl_buf_release(&t->out);
  fl_call_release(&t->call);
  memset(t, 0, sizeof *t);
}

/* --- news --- */

/* Adds the news' log probabilities to those that wait. */
static void keep_tokens(fl_response *t, fl_job_event *n) {
  fl_job_event *k = &t->tokens;
  if (n->n_tokens == 0) return;
  if (k->n_tokens == 0) {
    fl_job_event_release(k);
    *k = (fl_job_event){ .token = n->token,
                         .top = n->top,
                         .n_tokens = n->n_tokens,
                         .n_top = n->n_top,
                         .bytes = n->bytes };
    n->token = n->top = NULL;
    n->bytes = (fl_buf){ 0 };
    return;
  }
  const size_t shift = k->bytes.len, all = k->n_tokens + n->n_tokens, tops = n->n_top;
  fl_job_event_token *token = fl_reallocarray(k->token, all, sizeof *token);
  if (token != NULL) k->token = token;
  fl_job_event_token *top = tops > 0 ? fl_reallocarray(k->top, all, tops * sizeof *top) : NULL;
  if (top != NULL) k->top = top;
  if (token == NULL || (tops > 0 && top == NULL)) {
    t->out.oom = true;
    return;
  }
  fl_buf_append(&k->bytes, n->bytes.data, n->bytes.len);
  for (size_t i = 0; i < n->n_tokens; i++) {
    k->token[k->n_tokens + i] = n->token[i];
    k->token[k->n_tokens + i].at += shift;
  }
  for (size_t i = 0; i < n->n_tokens * tops; i++) {
    k->top[k->n_tokens * tops + i] = n->top[i];
    k->top[k->n_tokens * tops + i].at += shift;
  }
  k->n_tokens = all;
}

static void fail(fl_response *t, const fl_api_error *f) {
  if (t->fault.status == 0) t->fault = *f;
  t->ended = true;
  if (t->streaming) t->d->broken(t, f);
}

static void finish(fl_response *t, const fl_job_event *n) {
  fl_api_error f = { 0 };
  if (n->overrun) {
    fl_api_error_set(&f, 408, "slow_reader", NULL, "the answer was not read fast enough");
  } else if (n->finish == FL_FINISH_CANCELLED) {
    fl_api_error_set(&f, 503, "unavailable", NULL,
                     "the answer was cancelled: the server is stopping");
  } else if (n->finish == FL_FINISH_ERROR) {
    fl_err err = { .code = n->code };
    snprintf(err.text, sizeof err.text, "%s", n->error != NULL ? n->error : "");
    fl_api_error_from(&f, &err);
    if (f.status == 429) f.retry_after_s = 10; /* it is up to a disk: nobody knows */
  }
  if (f.status != 0) {
    fail(t, &f);
    return;
  }
  fl_output_parser_finish(&t->split);
  t->ended = true;
  if (t->streaming) t->d->end(t);
}

static void digest(fl_response *t, fl_job_event *n) {
  if (n->started && !t->started) {
    t->started = true;
    t->start = (fl_job_event){ .docs = n->docs,
                               .n_docs = n->n_docs,
                               .rows = n->rows,
                               .prompt_tokens = n->prompt_tokens,
                               .cached_tokens = n->cached_tokens,
                               .queue_s = n->queue_s };
    n->docs = NULL;
    n->n_docs = 0;
    if (t->streaming) t->d->begin(t);
  }
  keep_tokens(t, n);
  if (n->text.len > 0) fl_output_parser_feed(&t->split, n->text.data, n->text.len);
  if (!n->ended) return;
  if (t->job != NULL) fl_job_release(t->job);
  t->job = NULL;
  t->last = (fl_job_event){ .finish = n->finish,
                            .completion_tokens = n->completion_tokens,
                            .drafted = n->drafted,
                            .accepted = n->accepted,
                            .ttft_s = n->ttft_s,
                            .seconds = n->seconds,
                            .stop_string = n->stop_string };
  n->stop_string = NULL;
  finish(t, n);
}

fl_wait fl_response_advance(fl_response *t, int client, int stop, double heartbeat_s) {
  fl_job_event n = { 0 };
  const fl_wait w = fl_job_events_wait(t->inbox, client, stop, heartbeat_s);
  if (w == FL_WAIT_TIME && t->streaming) t->d->ping(t);
  if (w == FL_WAIT_GONE) stop_job(t);
  if (w == FL_WAIT_STOP) {
    fl_api_error f = { 0 };
    stop_job(t);
    fl_api_error_set(&f, 503, "unavailable", NULL, "the server is stopping");
    fail(t, &f);
  }
  if (w != FL_WAIT_EVENTS) return w;
  if (fl_job_events_take(t->inbox, &n) != FL_OK) t->out.oom = true;
  digest(t, &n);
  fl_job_event_release(&n);
  if ((t->out.oom || t->split.held.oom || t->content.oom || t->reasoning.oom) && !t->ended) {
    fl_api_error f = { 0 };
    t->out.oom = false; /* the last words may still fit */
    stop_job(t);
    fl_api_error_set(&f, 500, "server_error", NULL, "not enough memory for the answer");
    fail(t, &f);
  }
  return w;
}

/* Replays what came before the decision to stream. */
void fl_response_stream(fl_response *t) {
  t->streaming = true;
  if (t->started) t->d->begin(t);
  if (t->reasoning.len > 0) t->d->text(t, FL_PART_REASONING, t->reasoning.data, t->reasoning.len);
  if (t->content.len > 0) t->d->text(t, FL_PART_CONTENT, t->content.data, t->content.len);
  for (size_t i = 0; i < t->n_uses; i++) t->d->call(t, &t->use[i]);
  if (t->ended && t->fault.status != 0) t->d->broken(t, &t->fault);
  else if (t->ended) t->d->end(t);
}

/* --- shared by the dialects --- */

const char *fl_response_finish(const fl_response *t) {
  if (t->last.finish == FL_FINISH_LENGTH) return "length";
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
  for (size_t i = 0; i < t->start.n_docs; i++) {
    const fl_job_event_doc *d = &t->start.docs[i];
    fl_jsonw_open(b, NULL, '{');
    fl_jsonw_str(b, "name", d->name);
    const bool named = t->call.rag == FL_RAG_NAMED;
    fl_jsonw_num(b, "score", named ? (double)NAN : d->why.score); /* NaN: null */
    if (!named) put_evidence(b, &d->why);
    fl_jsonw_u64(b, "rows", d->rows);
    fl_jsonw_close(b, '}');
  }
  fl_jsonw_close(b, ']');
  fl_jsonw_u64(b, "rows", t->start.rows);
  fl_jsonw_num(b, "queue_s", t->start.queue_s);
  if (ended) {
    fl_jsonw_num(b, "ttft_s", t->last.ttft_s);
    fl_jsonw_num(b, "seconds", t->last.seconds);
    fl_jsonw_u64(b, "drafted", t->last.drafted);
    fl_jsonw_u64(b, "accepted", t->last.accepted);
  }
  fl_jsonw_close(b, '}');
}

static void put_token(fl_buf *b, const fl_job_event *n, const fl_job_event_token *p) {
  const char *s = n->bytes.data != NULL ? n->bytes.data + p->at : "";
  fl_jsonw_strn(b, "token", s, p->len);
  fl_jsonw_num(b, "logprob", p->logprob < -9999.0f ? -9999.0 : (double)p->logprob);
  fl_jsonw_open(b, "bytes", '[');
  for (size_t i = 0; i < p->len; i++) fl_jsonw_u64(b, NULL, (unsigned char)s[i]);
  fl_jsonw_close(b, ']');
}

void fl_response_logprobs(fl_response *t) {
  fl_buf *b = &t->out;
  fl_job_event *n = &t->tokens;
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
  fl_job_event_release(n);
}
