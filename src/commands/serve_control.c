/* serve_control.c - see serve_control.h. */
#include "commands/serve_control.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "commands/signals.h"
#include "http/job_events.h"
#include "fleet/control_socket.h"

struct serve_control {
  fl_control *socket;
  fl_engine *engine;
  serve_control_options o;
  bool stop;
};

static void do_ping(fl_control_client *c) {
  fl_buf b = { 0 };
  fl_buf_printf(&b, "{\"ok\":true,\"pid\":%ld,\"cmd\":\"serve\",\"round\":0,\"paused\":false}",
                (long)getpid());
  fl_control_send_buf(c, &b);
}

static void do_stop(serve_control *s, fl_control_client *c) {
  fl_event e;
  fl_event_begin(&e, "control");
  fl_event_str(&e, "cmd", "stop");
  fl_event_str(&e, "by", "socket");
  fl_event_emit(s->o.log, &e);
  s->stop = true;
  fl_control_ok(c);
}

static void do_retrieve(serve_control *s, fl_control_client *c, const char *query) {
  fl_buf b = { 0 };
  fl_err err = { 0 };
  fl_buf_puts(&b, "{\"ok\":true,");
  if (fl_engine_retrieve(s->engine, query, strlen(query), &b, &err) == FL_OK) {
    fl_buf_putc(&b, '}');
    fl_control_send_buf(c, &b);
  } else {
    fl_control_fail(c, err.text);
  }
  fl_buf_release(&b);
}

/* --- ask --- */

typedef struct answer {
  fl_buf text;
  fl_job_event_doc *docs;
  size_t n_docs, rows;
} answer;

static void send_piece(fl_control_client *c, const fl_buf *text) {
  fl_buf b = { 0 };
  fl_buf_puts(&b, "{\"token\":");
  fl_json_escape(&b, text->data, text->len);
  fl_buf_putc(&b, '}');
  fl_control_send_buf(c, &b);
}

static void send_end(fl_control_client *c, const answer *a, const fl_job_event *n) {
  fl_buf b = { 0 };
  const double seconds = n->seconds - n->ttft_s;
  if (n->finish == FL_FINISH_ERROR || n->finish == FL_FINISH_CANCELLED) {
    fl_control_fail(c, n->error != NULL ? n->error : "the answer was cancelled");
    return;
  }
  fl_buf_puts(&b, "{\"ok\":true,\"text\":");
  fl_json_escape(&b, a->text.data != NULL ? a->text.data : "", a->text.len);
  fl_buf_puts(&b, ",\"docs\":[");
  for (size_t i = 0; i < a->n_docs; i++)
    fl_buf_printf(&b, "%s%lu", i ? "," : "", (unsigned long)a->docs[i].id);
  fl_buf_printf(
      &b, "],\"rows\":%zu,\"tok_s\":%.3f}", a->rows,
      seconds > 0 && n->completion_tokens > 1 ? (double)(n->completion_tokens - 1) / seconds : 0.0);
  fl_control_send_buf(c, &b);
}

/* Takes one piece of news; true after the last. */
static bool digest(fl_control_client *c, answer *a, fl_job_event *n) {
  if (n->started) {
    a->docs = n->docs;
    a->n_docs = n->n_docs;
    a->rows = n->rows;
    n->docs = NULL;
    n->n_docs = 0;
  }
  if (n->text.len > 0) {
    fl_buf_append(&a->text, n->text.data, n->text.len);
    send_piece(c, &n->text);
  }
  if (n->ended) send_end(c, a, n);
  return n->ended;
}

static void answer_release(answer *a) {
  fl_job_event n = { .docs = a->docs, .n_docs = a->n_docs };
  fl_job_event_release(&n);
  fl_buf_release(&a->text);
}

/* Other clients of the socket wait meanwhile. */
static void follow(fl_job_events *box, fl_control_client *c, fl_job *job) {
  answer a = { 0 };
  bool ended = false;
  while (!ended) {
    fl_job_event n = { 0 };
    if (!fl_control_alive(c) || signals_stop()) fl_job_cancel(job);
    if (fl_job_events_wait(box, -1, -1, 0.5) != FL_WAIT_EVENTS) continue;
    (void)fl_job_events_take(box, &n);
    ended = digest(c, &a, &n);
    fl_job_event_release(&n);
  }
  answer_release(&a);
}

static void do_ask(serve_control *s, fl_control_client *c, const char *query, bool bare) {
  const fl_message m = { FL_ROLE_USER, query, strlen(query) };
  const fl_job_request r = { .msgs = &m,
                             .n_msgs = 1,
                             .sampling = s->o.sampling,
                             .max_new = s->o.max_new,
                             .rag = bare ? FL_RAG_NONE : FL_RAG_AUTO };
  fl_job_events *box = NULL;
  fl_job *job = NULL;
  fl_err err = { 0 };
  if (fl_job_events_new(&box, 1 << 20, false, &err) != FL_OK) {
    fl_control_fail(c, err.text);
    return;
  }
  const fl_job_sink sink = fl_job_events_sink(box);
  if (fl_engine_submit(s->engine, &r, &sink, &job, &err) == FL_OK) {
    follow(box, c, job);
    fl_job_release(job);
  } else {
    fl_job_events_unref(box); /* the engine's share */
    fl_control_fail(c, err.text);
  }
  fl_job_events_unref(box);
}

/* --- the socket --- */

static void handle(void *ctx, fl_control_client *c, const char *cmd, const fl_json *request) {
  serve_control *s = ctx;
  const char *query = NULL;
  bool bare = false;
  const bool ask = strcmp(cmd, "ask") == 0, retrieve = strcmp(cmd, "retrieve") == 0;
  if (strcmp(cmd, "ping") == 0) {
    do_ping(c);
  } else if (strcmp(cmd, "stop") == 0) {
    do_stop(s, c);
  } else if (!ask && !retrieve) {
    fl_control_fail(c, "a server takes ping, stop, retrieve and ask");
  } else if (!fl_json_get_str(request, "query", &query) || query[0] == '\0') {
    fl_control_fail(c, "the request needs a text \"query\"");
  } else if (ask) {
    (void)fl_json_get_bool(request, "bare", &bare);
    do_ask(s, c, query, bare);
  } else {
    do_retrieve(s, c, query);
  }
}

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
  if (fl_control_open(&s->socket, dir, handle, s, &err) == FL_OK) return s;
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
