/* serve_control.c - see serve_control.h. */
#include "commands/serve_control.h"

#include <string.h>

#include "answer/control_protocol.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/signals.h"
#include "http/job_events.h"

struct serve_control {
  fl_control *socket;
  fl_control_protocol protocol;
  fl_engine *engine;
  serve_control_options o;
  bool stop;
};

static int do_stop(void *ctx, const fl_json *request, fl_err *err) {
  serve_control *s = ctx;
  (void)request, (void)err;
  s->stop = true;
  return FL_OK;
}

static const fl_control_command commands[] = { { "stop", do_stop } };

static void status(void *ctx, fl_buf *out) {
  (void)ctx;
  fl_jsonw_str(out, "cmd", "serve");
  fl_jsonw_u64(out, "round", 0);
  fl_jsonw_bool(out, "paused", false);
}

static int retrieve(void *ctx, const char *query, size_t len, fl_buf *out, fl_err *err) {
  const serve_control *s = ctx;
  return fl_engine_retrieve(s->engine, query, len, out, err);
}

/* --- ask --- */

static int send_end(fl_control_client *c, const fl_job_event *all, fl_err *err) {
  uint32_t docs[FL_REQUEST_DOCS];
  if (all->end.finish == FL_FINISH_ERROR || all->end.finish == FL_FINISH_CANCELLED)
    return fl_fail(err, FL_EFAIL, "%s",
                   all->end.error != NULL ? all->end.error : "the answer was cancelled");
  for (size_t i = 0; i < all->start.n_docs; i++) docs[i] = all->start.docs[i].id;
  const fl_control_reply r = { .text = all->text.data != NULL ? all->text.data : "",
                               .len = all->text.len,
                               .docs = docs,
                               .n_docs = all->start.n_docs,
                               .rows = all->start.rows,
                               .tokens = all->end.completion_tokens,
                               .ttft_s = all->end.ttft_s,
                               .seconds = all->end.seconds };
  fl_control_answer(c, &r);
  return FL_OK;
}

/* Other clients of the socket wait meanwhile. */
static int follow(fl_job_events *events, fl_control_client *c, fl_job *job, fl_err *err) {
  fl_job_event all = { 0 };
  bool overrun;
  while (!all.ended) {
    fl_job_event v = { 0 };
    if (!fl_control_alive(c) || signals_stop()) fl_job_cancel(job);
    if (fl_job_events_wait(events, -1, -1, 0.5) != FL_WAIT_EVENTS) continue;
    fl_job_events_take(events, &v, &overrun);
    if (v.text.len > 0) fl_control_token(c, v.text.data, v.text.len);
    fl_job_event_merge(&all, &v);
    fl_job_event_release(&v);
  }
  const int rc = all.lost ? fl_fail(err, FL_ENOMEM, "not enough memory for the answer")
                          : send_end(c, &all, err);
  fl_job_event_release(&all);
  return rc;
}

static int ask(void *ctx, fl_control_client *c, const char *query, size_t len, bool bare,
               fl_err *err) {
  serve_control *s = ctx;
  fl_chat_request r = { .sampling = s->o.sampling,
                        .max_new = s->o.max_new,
                        .rag = bare ? FL_RAG_NONE : FL_RAG_AUTO };
  fl_job_events *events = NULL;
  fl_job *job = NULL;
  int rc = fl_chat_request_say(&r, FL_ROLE_USER, query, len);
  if (rc != FL_OK) return fl_fail(err, rc, "not enough memory for a request");
  rc = fl_job_events_new(&events, 1 << 20, false, err);
  const fl_job_sink sink = rc == FL_OK ? fl_job_events_sink(events) : (fl_job_sink){ 0 };
  if (rc == FL_OK) rc = fl_engine_submit(s->engine, &r, &sink, &job, err);
  if (job != NULL) rc = follow(events, c, job, err);
  else if (events != NULL) fl_job_events_unref(events); /* the engine's share */
  if (job != NULL) fl_job_release(job);
  fl_job_events_unref(events);
  fl_chat_request_release(&r); /* refused, it is ours still */
  return rc;
}

/* --- the socket --- */

serve_control *serve_control_open(const char *dir, fl_engine *engine,
                                  const serve_control_options *o) {
  fl_err err = { 0 };
  serve_control *s = fl_calloc(1, sizeof *s);
  if (s == NULL || fl_control_is_taken(dir)) {
    fl_free(s);
    return NULL;
  }
  s->engine = engine;
  s->o = *o;
  s->protocol = (fl_control_protocol){ .ctx = s,
                                       .log = o->log,
                                       .all = "a server takes",
                                       .own = commands,
                                       .n_own = sizeof commands / sizeof *commands,
                                       .status = status,
                                       .retrieve = retrieve,
                                       .ask = ask };
  if (fl_control_open(&s->socket, dir, fl_control_handle, &s->protocol, &err) == FL_OK) return s;
  fl_debug("%s", err.text);
  fl_free(s);
  return NULL;
}

void serve_control_close(serve_control *s) {
  if (s == NULL) return;
  fl_control_close(s->socket);
  fl_free(s);
}

bool serve_control_poll(serve_control *s, int timeout_ms) {
  fl_control_poll(s->socket, timeout_ms);
  return s->stop;
}
