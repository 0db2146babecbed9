/* session.c - one question, four ways to hold the documents: cartridges, nothing, the documents in
 * the context, retrieved pieces in the context. Each is a sequence that holds some rows before the
 * question; from there on they are the same (session.h). */
#include <string.h>

#include "base/mem.h"
#include "answer/session.h"
#include "retrieval/retrieval.h"
#include "study/study.h"

const char *fl_arm_name(fl_arm a) {
  static const char *const names[] = { [FL_ARM_CARTRIDGE] = "cartridge",
                                       [FL_ARM_BARE] = "bare",
                                       [FL_ARM_CONTEXT] = "context",
                                       [FL_ARM_TEXT] = "text" };
  return a <= FL_ARM_TEXT ? names[a] : "unknown";
}

void fl_reply_release(fl_reply *r) {
  fl_free(r->text);
  *r = (fl_reply){ 0 };
}

/* Between two texts in one system message. */
static const char between[] = "\n</document>\n\n<document>\n";

static int whole_documents(fl_fleet *f, const fl_ask_options *o, fl_buf *text, fl_err *err) {
  int rc = FL_OK;
  for (size_t i = 0; rc == FL_OK && i < o->n_docs; i++) {
    if (i > 0) fl_buf_puts(text, between);
    rc = fl_fleet_text_again(f, o->docs[i], o->sources, text, err);
  }
  return rc;
}

static int append_piece(fl_fleet *f, const fl_ask_options *o, const fl_hit *h, fl_buf *text,
                        fl_err *err) {
  fl_buf whole = { 0 };
  fl_doc_text t = { 0 };
  size_t first, end;
  int rc = fl_fleet_text_again(f, h->doc, o->sources, &whole, err);
  if (rc == FL_OK)
    rc = fl_doc_text_init(&t, fl_model_tokenizer(f->model), whole.data, whole.len, err);
  if (rc == FL_OK) rc = fl_fleet_chunk_span(f, h, t.n_tokens, &first, &end, err);
  if (rc == FL_OK) {
    size_t at = first > 0 ? t.token_end[first - 1] : 0;
    fl_buf_append(text, t.text + at, t.token_end[end - 1] - at);
  }
  fl_doc_text_release(&t);
  fl_buf_release(&whole);
  return rc;
}

static int retrieved_pieces(fl_fleet *f, const fl_ask_options *o, fl_buf *text, fl_err *err) {
  int rc = FL_OK;
  if (o->hits == NULL || fl_fleet_index_of(f) == NULL)
    return fl_fail(err, FL_EUSAGE, "the text arm needs a retrieval first");
  for (size_t i = 0; rc == FL_OK && i < o->hits->n_passages; i++) {
    if (i > 0) fl_buf_puts(text, between);
    rc = fl_fleet_passage(f, &o->hits->passage[i], text, err);
  }
  if (o->hits->n_passages > 0) return rc;
  for (size_t i = 0; rc == FL_OK && i < o->hits->n_chunks; i++) {
    if (i > 0) fl_buf_puts(text, between);
    rc = append_piece(f, o, &o->hits->chunk[i], text, err);
  }
  return rc;
}

/* ids = a system message around the text, or nothing but what opens a conversation. */
static int system_ids(fl_fleet *f, const fl_ask_options *o, fl_ids *ids, fl_err *err) {
  fl_buf text = { 0 };
  int rc = FL_OK;
  if (o->arm == FL_ARM_CONTEXT) rc = whole_documents(f, o, &text, err);
  if (o->arm == FL_ARM_TEXT) rc = retrieved_pieces(f, o, &text, err);
  if (rc == FL_OK && text.oom) rc = fl_fail(err, FL_ENOMEM, "not enough memory for the documents");
  if (rc == FL_OK && text.len > 0)
    rc = fl_wrapped_system(ids, f->model, text.data, text.len, 0, err);
  else if (rc == FL_OK)
    rc = fl_chat_system(ids, fl_model_template(f->model), fl_model_tokenizer(f->model), NULL, 0,
                        err);
  fl_buf_release(&text);
  return rc;
}

int fl_session_begin(fl_session *h, fl_fleet *f, const fl_ask_options *o, fl_err *err) {
  fl_session x = { .f = f, .after_system = o->arm != FL_ARM_BARE };
  fl_ids ids = { 0 };
  if (f->model == NULL) return fl_fail(err, FL_EUSAGE, "%s: opened without a model", f->dir);
  int rc = fl_fleet_workspace(f, o->kv, err);
  if (rc == FL_OK) rc = fl_seq_new(&x.seq, f->pool[o->kv], err);
  if (rc == FL_OK && o->arm == FL_ARM_CARTRIDGE && o->n_docs > 0) {
    rc = fl_fleet_compose(f, x.seq, o->docs, o->n_docs, err);
  } else if (rc == FL_OK) {
    x.after_system = o->arm == FL_ARM_CONTEXT ? o->n_docs > 0
                     : o->arm == FL_ARM_TEXT
                         ? o->hits != NULL && o->hits->n_chunks + o->hits->n_passages > 0
                         : false;
    rc = system_ids(f, o, &ids, err);
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
