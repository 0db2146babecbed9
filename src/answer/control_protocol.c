/* control_protocol.c - see control_protocol.h. */
#include "answer/control_protocol.h"

#include <string.h>
#include <unistd.h>

#include "base/json_writer.h"

/* Replies are one object; of the last one "ok" comes first. */
static void open_ok(fl_buf *b) {
  fl_jsonw_open(b, NULL, '{');
  fl_jsonw_bool(b, "ok", true);
}

static void send_object(fl_control_client *c, fl_buf *b) {
  fl_jsonw_close(b, '}');
  fl_control_send_buf(c, b);
}

void fl_control_token(fl_control_client *c, const char *piece, size_t len) {
  fl_buf b = { 0 };
  fl_jsonw_open(&b, NULL, '{');
  fl_jsonw_strn(&b, "token", piece, len);
  send_object(c, &b);
}

void fl_control_answer(fl_control_client *c, const fl_control_reply *r) {
  const double decode_s = r->seconds - r->ttft_s;
  fl_buf b = { 0 };
  open_ok(&b);
  fl_jsonw_strn(&b, "text", r->text, r->len);
  fl_jsonw_open(&b, "docs", '[');
  for (size_t i = 0; i < r->n_docs; i++) fl_jsonw_u64(&b, NULL, r->docs[i]);
  fl_jsonw_close(&b, ']');
  fl_jsonw_u64(&b, "rows", r->rows);
  fl_jsonw_fixed(&b, "tok_s",
                 decode_s > 0 && r->tokens > 1 ? (double)(r->tokens - 1) / decode_s : 0.0, 3);
  send_object(c, &b);
}

static void ping(const fl_control_protocol *p, fl_control_client *c) {
  fl_buf b = { 0 };
  open_ok(&b);
  fl_jsonw_i64(&b, "pid", getpid());
  p->status(p->ctx, &b);
  send_object(c, &b);
}

static int retrieve(const fl_control_protocol *p, fl_control_client *c, const char *query,
                    fl_err *err) {
  fl_buf b = { 0 };
  open_ok(&b);
  const int rc = p->retrieve(p->ctx, query, strlen(query), &b, err);
  if (rc == FL_OK) send_object(c, &b);
  fl_buf_release(&b);
  return rc;
}

static int answer(const fl_control_protocol *p, fl_control_client *c, bool ask,
                  const fl_json *request, fl_err *err) {
  const char *query = NULL;
  bool bare = false;
  if (!fl_json_get_str(request, "query", &query) || query[0] == '\0')
    return fl_fail(err, FL_EUSAGE, "the request needs a text \"query\"");
  if (!ask) return retrieve(p, c, query, err);
  (void)fl_json_get_bool(request, "bare", &bare);
  return p->ask(p->ctx, c, query, strlen(query), bare, err);
}

static void log_command(const fl_control_protocol *p, const char *cmd, const fl_json *request) {
  fl_event e;
  const char *key = NULL;
  uint64_t doc = 0;
  double v = 0;
  bool on = false;
  fl_event_begin(&e, "control");
  fl_event_str(&e, "cmd", cmd);
  if (fl_json_get_str(request, "key", &key)) fl_event_str(&e, "key", key);
  if (fl_json_get_u64(request, "doc", &doc)) fl_event_int(&e, "doc", (int64_t)doc);
  if (fl_json_get_num(request, "value", &v)) fl_event_num(&e, "value", v);
  else if (fl_json_get_bool(request, "value", &on)) fl_event_bool(&e, "value", on);
  fl_event_str(&e, "by", "socket");
  fl_event_emit(p->log, &e);
}

static int obey(const fl_control_protocol *p, fl_control_client *c, const fl_control_command *k,
                const fl_json *request, fl_err *err) {
  const int rc = k->obey(p->ctx, request, err);
  if (rc != FL_OK) return rc;
  fl_control_ok(c);
  log_command(p, k->name, request);
  return FL_OK;
}

static int unknown(const fl_control_protocol *p, fl_err *err) {
  fl_buf b = { 0 };
  fl_buf_printf(&b, "%s ping", p->all);
  for (size_t i = 0; i < p->n_own; i++) fl_buf_printf(&b, ", %s", p->own[i].name);
  fl_buf_puts(&b, ", retrieve and ask");
  (void)fl_fail(err, FL_EUSAGE, "%s", b.oom ? "unknown command" : b.data);
  fl_buf_release(&b);
  return FL_EUSAGE;
}

void fl_control_handle(void *ctx, fl_control_client *c, const char *cmd, const fl_json *request) {
  const fl_control_protocol *p = ctx;
  const bool ask = strcmp(cmd, "ask") == 0;
  fl_err err = { 0 };
  size_t i = 0;
  int rc = FL_OK;
  while (i < p->n_own && strcmp(p->own[i].name, cmd) != 0) i++;
  if (i < p->n_own) rc = obey(p, c, &p->own[i], request, &err);
  else if (strcmp(cmd, "ping") == 0) ping(p, c);
  else if (ask || strcmp(cmd, "retrieve") == 0) rc = answer(p, c, ask, request, &err);
  else rc = unknown(p, &err);
  if (rc != FL_OK) fl_control_fail(c, err.text);
}
