/* session.c - questions behind what stands before them (prefix.h), each an answer: one turn, or the
 * turns of a conversation. */
#include "answer/session.h"

#include <string.h>

#include "answer/prefix.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"

void fl_reply_release(fl_reply *r) {
  fl_free(r->text);
  *r = (fl_reply){ 0 };
}

/* A conversation behind nothing begins with what opens one. */
static int open_bare(fl_ids *ids, const fl_fleet *f, fl_err *err) {
  return fl_chat_system(ids, fl_model_template(f->model), fl_model_tokenizer(f->model), NULL, 0,
                        err);
}

int fl_session_begin(fl_session *h, fl_fleet *f, const fl_ask_options *o, fl_err *err) {
  const fl_prefix_spec p = { .arm = o->arm, .docs = o->docs, .n_docs = o->n_docs, .hits = o->hits };
  fl_session x = { .f = f };
  fl_doc_reader *texts = NULL;
  fl_ids ids = { 0 };
  if (f->model == NULL) return fl_fail(err, FL_EUSAGE, "%s: opened without a model", f->dir);
  int rc = fl_fleet_workspace(f, o->kv, err);
  if (rc == FL_OK) rc = fl_seq_new(&x.seq, f->pool[o->kv], err);
  if (rc == FL_OK) rc = fl_doc_reader_new(&texts, f, err);
  if (rc == FL_OK) rc = fl_prefix_build(x.seq, &ids, texts, &p, err);
  fl_doc_reader_free(texts);
  if (rc == FL_OK) {
    x.after_system = fl_seq_rows(x.seq) > 0 || ids.len > 0;
    if (!x.after_system) rc = open_bare(&ids, f, err);
  }
  if (rc == FL_OK && ids.len > 0)
    rc = fl_pass_prefill(f->pass, x.seq, ids.data, ids.len, NULL, err);
  x.prompt_tokens = ids.len;
  fl_ids_release(&ids);
  if (rc != FL_OK) {
    fl_session_end(&x);
    return rc;
  }
  *h = x;
  return FL_OK;
}

void fl_session_end(fl_session *h) {
  if (h->seq != NULL) fl_seq_free(h->seq);
  fl_ids_release(&h->pending);
  *h = (fl_session){ 0 };
}

/* --- generating --- */

typedef struct stream_ctx {
  const fl_ask_options *o;
  const fl_tokenizer *tok;
  fl_buf text;         /* all so far */
  size_t sent;         /* bytes handed to on_token */
  double began, first; /* clock; 0: no token yet */
} stream_ctx;

/* Hands over whole characters only. */
static bool on_token(void *ctx, size_t i, int32_t token) {
  stream_ctx *s = ctx;
  (void)i;
  if (s->first <= 0) s->first = fl_now_s();
  fl_detokenize_one(s->tok, &s->text, token, false);
  if (s->o->on_token == NULL || s->text.oom) return false;
  size_t n = fl_utf8_whole_prefix(s->text.data + s->sent, s->text.len - s->sent);
  if (n == 0) return false;
  const char *piece = s->text.data + s->sent;
  s->sent += n;
  return s->o->on_token(s->o->ctx, piece, n);
}

static int prompt_of(fl_session *h, const char *user, size_t len, fl_ids *ids, fl_err *err) {
  const fl_fleet *f = h->f;
  fl_ids_append(ids, h->pending.data, h->pending.len);
  int rc = fl_chat_user(ids, fl_model_template(f->model), fl_model_tokenizer(f->model), user, len,
                        h->after_system, false, err);
  if (rc == FL_OK && ids->oom) rc = fl_fail(err, FL_ENOMEM, "not enough memory for the question");
  return rc;
}

/* What the sequence has not seen of the answer, and what closes it, goes before the next turn. */
static int keep_pending(fl_session *h, const fl_ids *prompt, const fl_stream *s, size_t rows_before,
                        fl_err *err) {
  const fl_fleet *f = h->f;
  size_t seen = fl_seq_rows(h->seq) - rows_before;
  size_t from = seen > prompt->len ? seen - prompt->len : 0;
  fl_ids_reset(&h->pending);
  if (from < s->out.len) fl_ids_append(&h->pending, s->out.data + from, s->out.len - from);
  int rc = fl_chat_assistant(&h->pending, fl_model_template(f->model), fl_model_tokenizer(f->model),
                             "", 0, err);
  h->after_system = false;
  return rc;
}

int fl_session_turn(fl_session *h, const char *user, size_t len, const fl_ask_options *o,
                    fl_reply *out, fl_err *err) {
  fl_fleet *f = h->f;
  fl_ids ids = { 0 };
  stream_ctx ctx = { .o = o, .tok = fl_model_tokenizer(f->model), .began = fl_now_s() };
  const fl_generate_hooks hooks = { .ctx = &ctx, .on_token = on_token };
  const size_t rows = fl_seq_rows(h->seq);
  fl_stream s = { .seq = h->seq, .sampling = o->sampling, .max_new = o->max_new };
  int rc = prompt_of(h, user, len, &ids, err);
  if (rc != FL_OK) goto done;
  s.prompt = ids.data;
  s.n_prompt = ids.len;
  s.rng = fl_rng_stream(o->seed, FL_RNG_USER, 0, (uint32_t)h->turns, 0);
  rc = fl_generate(f->pass, &s, 1, &hooks, err);
  if (rc == FL_OK) rc = keep_pending(h, &ids, &s, rows, err);
  if (rc != FL_OK) { /* the conversation stands as before the question */
    if (fl_seq_rows(h->seq) > rows) fl_seq_truncate(h->seq, rows);
    goto done;
  }
  h->turns++;
  double now = fl_now_s();
  fl_reply r = { .rows = rows,
                 .prompt_tokens = h->prompt_tokens + ids.len,
                 .tokens = s.out.len,
                 .ttft_s = (ctx.first > 0 ? ctx.first : now) - ctx.began,
                 .seconds = now - ctx.began,
                 .stop = s.stop };
  r.text = fl_buf_detach(&ctx.text);
  if (r.text == NULL) rc = fl_fail(err, FL_ENOMEM, "not enough memory for the answer");
  else *out = r;
done:
  fl_streams_release(&s, 1);
  fl_ids_release(&ids);
  fl_buf_release(&ctx.text);
  return rc;
}

void fl_log_answer(fl_fleet *f, const char *question, size_t len, const fl_ask_options *o,
                   const fl_reply *r) {
  fl_event e;
  double decode = r->seconds - r->ttft_s;
  fl_event_begin(&e, "answer");
  fl_event_int(&e, "id", (int64_t)f->next_query++);
  fl_event_strn(&e, "query", question, len);
  fl_event_str(&e, "arm", fl_arm_name(o->arm));
  fl_jsonw_open(&e.text, "docs", '[');
  for (size_t i = 0; i < o->n_docs; i++) fl_jsonw_u64(&e.text, NULL, f->m.doc[o->docs[i]].id);
  fl_jsonw_close(&e.text, ']');
  fl_event_int(&e, "rows", (int64_t)r->rows);
  fl_event_str(&e, "text", r->text);
  fl_event_int(&e, "tokens", (int64_t)r->tokens);
  fl_event_num(&e, "seconds", r->seconds);
  fl_event_num(&e, "tok_s", decode > 0 && r->tokens > 1 ? (double)(r->tokens - 1) / decode : 0);
  fl_event_num(&e, "ttft_s", r->ttft_s);
  fl_event_emit(f->log, &e);
}

int fl_fleet_ask(fl_fleet *f, const char *question, size_t len, const fl_ask_options *o,
                 fl_reply *out, fl_err *err) {
  fl_session h = { 0 };
  fl_reply r = { 0 };
  double began = fl_now_s();
  int rc = fl_session_begin(&h, f, o, err);
  double held = fl_now_s() - began; /* holding the documents is part of the wait */
  if (rc == FL_OK) rc = fl_session_turn(&h, question, len, o, &r, err);
  if (rc == FL_OK) {
    r.ttft_s += held;
    r.seconds += held;
    fl_log_answer(f, question, len, o, &r);
    *out = r;
  }
  fl_session_end(&h);
  return rc;
}
