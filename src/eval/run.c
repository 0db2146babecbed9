/* run.c - asks the questions of one arm, many side by side.
 *
 * Questions are put in the order of what stands before them, so that neighbours share it: the rows
 * are made once and every question is a fork of them. Batches run through whatever the order is; by
 * the row rule each answer is the one that the question would get alone. How long somebody waits
 * who asks alone is measured on a few questions afterwards, one at a time. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "eval/state.h"
#include "eval/score.h"

enum { OUT_ROWS = 64 };

typedef struct batch {
  eval_state *b;
  eval_arm arm;
  eval_result *r;
  const size_t *at; /* [n] questions */
  size_t n;
  fl_seq *owned[EVAL_MAX_BATCH]; /* prefixes made for this batch */
  size_t n_owned;
  const fl_seq *prefix[EVAL_MAX_BATCH]; /* [n] */
  size_t n_read[EVAL_MAX_BATCH];        /* [n] tokens of the prefix that were read as text */
  fl_ids prompt[EVAL_MAX_BATCH];        /* [n] */
} batch;

static void batch_release(batch *x) {
  for (size_t i = 0; i < x->n_owned; i++) fl_seq_free(x->owned[i]);
  for (size_t k = 0; k < x->n; k++) fl_ids_release(&x->prompt[k]);
}

static int make_prompt(const eval_state *b, fl_ids *out, const char *question, bool behind,
                       fl_err *err) {
  fl_template tpl = fl_model_template(b->model);
  const fl_tokenizer *t = fl_model_tokenizer(b->model);
  int rc = behind ? FL_OK : fl_chat_system(out, tpl, t, NULL, 0, err);
  if (rc == FL_OK) rc = fl_chat_user(out, tpl, t, question, strlen(question), behind, false, err);
  if (rc == FL_OK && out->oom) rc = fl_fail(err, FL_ENOMEM, "not enough memory for a question");
  return rc;
}

static int prepare(batch *x, fl_err *err) {
  int rc = FL_OK;
  for (size_t k = 0; k < x->n && rc == FL_OK; k++) {
    size_t i = x->at[k];
    if (k > 0 && eval_compare_prefix(x->b, x->arm, x->at[k - 1], i) == 0) {
      x->prefix[k] = x->prefix[k - 1];
      x->n_read[k] = x->n_read[k - 1];
    } else {
      rc = eval_prefix(&x->owned[x->n_owned], &x->n_read[k], x->b, x->arm, i, err);
      if (rc != FL_OK) break;
      x->prefix[k] = x->owned[x->n_owned++];
    }
    rc = make_prompt(x->b, &x->prompt[k], x->b->q->q[i].question, fl_seq_rows(x->prefix[k]) > 0,
                     err);
  }
  return rc;
}

/* --- answers ------------------------------------------------------------------------------- */

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/* The same words: white space and the full stop at the end do not count, nor does case. */
static bool same_text(const char *a, const char *b) {
  size_t n = strlen(a), m = strlen(b);
  while (n > 0 && is_space(*a)) a++, n--;
  while (m > 0 && is_space(*b)) b++, m--;
  while (n > 0 && (is_space(a[n - 1]) || a[n - 1] == '.')) n--;
  while (m > 0 && (is_space(b[m - 1]) || b[m - 1] == '.')) m--;
  return n == m && strncasecmp(a, b, n) == 0;
}

static void judge(eval_answer *a, const eval_question *q) {
  a->exact = same_text(a->text, q->reference);
  for (size_t v = 0; v < q->value.n; v++) {
    a->contains = a->contains || strcasestr(a->text, q->value.v[v]) != NULL;
    a->exact = a->exact || same_text(a->text, q->value.v[v]);
  }
}

static int keep_answer(batch *x, size_t k, const fl_stream *s, fl_err *err) {
  fl_buf text = { 0 };
  eval_answer *a = &x->r->answer[x->at[k]];
  fl_detokenize(fl_model_tokenizer(x->b->model), &text, s->out.data, s->out.len, false);
  a->text = fl_buf_detach(&text);
  a->rows = fl_seq_rows(x->prefix[k]);
  a->prompt_tokens = x->n_read[k] + x->prompt[k].len;
  a->tokens = s->out.len;
  if (!a->text) return fl_fail(err, FL_ENOMEM, "not enough memory for an answer");
  judge(a, &x->b->q->q[x->at[k]]);
  return FL_OK;
}

static bool cancelled(void *ctx) {
  const eval_state *b = ctx;
  return b->o->stop();
}

static fl_stream stream_of(const eval_state *b, size_t i, const fl_ids *prompt, fl_seq *seq) {
  return (fl_stream){ .seq = seq,
                      .prompt = prompt->data,
                      .n_prompt = prompt->len,
                      .sampling = b->o->sampling,
                      .max_new = b->o->max_new,
                      .rng = fl_rng_stream(b->o->seed, FL_RNG_USER, 0, (uint32_t)i, 0) };
}

static int answer(batch *x, fl_err *err) {
  fl_seq *seqs[EVAL_MAX_BATCH] = { 0 };
  fl_stream streams[EVAL_MAX_BATCH] = { 0 };
  const fl_generate_hooks hooks = { .ctx = x->b, .cancelled = cancelled };
  int rc = FL_OK;
  for (size_t k = 0; k < x->n && rc == FL_OK; k++) {
    rc = fl_seq_fork(&seqs[k], x->prefix[k], fl_seq_rows(x->prefix[k]), err);
    streams[k] = stream_of(x->b, x->at[k], &x->prompt[k], seqs[k]);
  }
  if (rc == FL_OK) rc = fl_generate(x->b->pass, streams, x->n, &hooks, err);
  for (size_t k = 0; k < x->n && rc == FL_OK; k++) rc = keep_answer(x, k, &streams[k], err);
  fl_streams_release(streams, x->n);
  for (size_t k = 0; k < x->n; k++)
    if (seqs[k]) fl_seq_free(seqs[k]);
  return rc;
}

/* --- given texts --------------------------------------------------------------------------- */

/* A text as the model's own answer; `closed`: with the end of the turn. */
static int given_text(const batch *x, size_t k, eval_item *item, const char *text, bool closed,
                      fl_err *err) {
  const fl_tokenizer *t = fl_model_tokenizer(x->b->model);
  fl_template tpl = fl_model_template(x->b->model);
  *item = (eval_item){ .prefix = x->prefix[k], .n_prompt = x->prompt[k].len };
  fl_ids_append(&item->tokens, x->prompt[k].data, x->prompt[k].len);
  int rc = fl_chat_assistant(&item->tokens, tpl, t, text, strlen(text), err);
  int32_t end = fl_chat_end_of_turn(tpl, t);
  for (size_t i = item->n_prompt; rc == FL_OK && end >= 0 && i < item->tokens.len; i++)
    if (item->tokens.data[i] == end) item->tokens.len = i + closed;
  if (rc == FL_OK && item->tokens.oom)
    rc = fl_fail(err, FL_ENOMEM, "not enough memory to weigh an answer");
  if (rc == FL_OK && item->tokens.len <= item->n_prompt)
    rc = fl_fail(err, FL_EINPUT, "question %zu: an answer of no token", x->at[k] + 1);
  return rc;
}

/* The likeliest option per byte of its text: a sum would favour short ones. */
static size_t likeliest(const eval_item *item, const eval_texts *options) {
  size_t best = 0;
  double least = 0;
  for (size_t o = 0; o < options->n; o++) {
    double each = item[o].nll / (double)strlen(options->v[o]);
    if (o > 0 && each >= least) continue;
    best = o;
    least = each;
  }
  return best;
}

static int weigh(batch *x, fl_err *err) {
  size_t n = 0, used = 0;
  for (size_t k = 0; k < x->n; k++) n += 1 + x->b->q->q[x->at[k]].option.n;
  eval_item *item = fl_calloc(n, sizeof *item);
  int rc = item ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory to weigh answers");
  for (size_t k = 0; k < x->n && rc == FL_OK; k++) {
    const eval_question *q = &x->b->q->q[x->at[k]];
    rc = given_text(x, k, &item[used++], q->reference, true, err);
    for (size_t o = 0; o < q->option.n && rc == FL_OK; o++)
      rc = given_text(x, k, &item[used++], q->option.v[o], false, err);
  }
  if (rc == FL_OK) rc = eval_weigh(x->b->pass, item, n, x->b->o->batch, OUT_ROWS, err);
  used = 0;
  for (size_t k = 0; k < x->n && rc == FL_OK; k++) {
    const eval_question *q = &x->b->q->q[x->at[k]];
    eval_answer *a = &x->r->answer[x->at[k]];
    a->nll = item[used].nll;
    a->nll_tokens = item[used].tokens.len - item[used].n_prompt;
    a->choice = q->option.n > 0 && likeliest(&item[used + 1], &q->option) == q->correct;
    used += 1 + q->option.n;
  }
  if (item) eval_items_release(item, n);
  fl_free(item);
  return rc;
}

/* --- alone --------------------------------------------------------------------------------- */

typedef struct watch {
  double first; /* clock at the first token; 0: none yet */
} watch;

static bool note_first(void *ctx, size_t i, int32_t token) {
  watch *w = ctx;
  (void)i;
  (void)token;
  if (w->first <= 0) w->first = fl_now_s();
  return false;
}

/* Everything that somebody waits for: retrieval, what stands before, the question, the answer. */
static int ask_alone(eval_state *b, eval_arm arm, size_t i, eval_result *r, fl_err *err) {
  const char *question = b->q->q[i].question;
  watch w = { 0 };
  const fl_generate_hooks hooks = { .ctx = &w, .on_token = note_first };
  fl_hits hits = { 0 };
  fl_ids prompt = { 0 };
  fl_seq *seq = NULL;
  size_t n_read;
  double began = fl_now_s();
  int rc = FL_OK;
  if (eval_arm_searches(arm))
    rc = fl_fleet_retrieve(b->f, question, strlen(question), b->o->rag, &hits, err);
  if (rc == FL_OK) rc = eval_prefix(&seq, &n_read, b, arm, i, err);
  if (rc == FL_OK) rc = make_prompt(b, &prompt, question, fl_seq_rows(seq) > 0, err);
  fl_stream s = stream_of(b, i, &prompt, seq);
  if (rc == FL_OK) rc = fl_generate(b->pass, &s, 1, &hooks, err);
  double end = fl_now_s(), first = w.first > 0 ? w.first : end;
  if (rc == FL_OK) {
    r->first_token_s += first - began;
    if (s.out.len > 1 && end > first) r->tokens_per_s += (double)(s.out.len - 1) / (end - first);
    r->n_alone++;
  }
  fl_streams_release(&s, 1);
  if (seq) fl_seq_free(seq);
  fl_ids_release(&prompt);
  fl_hits_release(&hits);
  return rc;
}

static int measure(eval_state *b, eval_arm arm, eval_result *r, fl_err *err) {
  size_t n = b->o->alone < r->n ? b->o->alone : r->n;
  int rc = FL_OK;
  for (size_t k = 0; k < n && rc == FL_OK; k++)
    rc = b->o->stop() ? FL_EINTR : ask_alone(b, arm, k * r->n / n, r, err);
  if (r->n_alone > 0) {
    r->first_token_s /= (double)r->n_alone;
    r->tokens_per_s /= (double)r->n_alone;
  }
  return rc;
}

/* --- the arm ------------------------------------------------------------------------------- */

typedef struct order_key {
  const eval_state *b;
  eval_arm arm;
  size_t i;
} order_key;

static int by_prefix(const void *a, const void *b) {
  const order_key *x = a, *y = b;
  int c = eval_compare_prefix(x->b, x->arm, x->i, y->i);
  return c != 0 ? c : (x->i > y->i) - (x->i < y->i);
}

static int order(size_t *out, const eval_state *b, eval_arm arm, fl_err *err) {
  order_key *key = fl_calloc(b->q->n, sizeof *key);
  if (!key) return fl_fail(err, FL_ENOMEM, "not enough memory");
  for (size_t i = 0; i < b->q->n; i++) key[i] = (order_key){ b, arm, i };
  qsort(key, b->q->n, sizeof *key, by_prefix);
  for (size_t i = 0; i < b->q->n; i++) out[i] = key[i].i;
  fl_free(key);
  return FL_OK;
}

static int run_batches(eval_state *b, eval_arm arm, const size_t *at, eval_result *r, fl_err *err) {
  int rc = FL_OK;
  for (size_t k = 0; k < r->n && rc == FL_OK; k += b->o->batch) {
    size_t n = r->n - k < b->o->batch ? r->n - k : b->o->batch;
    batch x = { .b = b, .arm = arm, .r = r, .at = at + k, .n = n };
    if (b->o->stop()) return FL_EINTR;
    rc = prepare(&x, err);
    if (rc == FL_OK) rc = answer(&x, err);
    if (rc == FL_OK) rc = weigh(&x, err);
    batch_release(&x);
  }
  return rc;
}

int eval_run(eval_result *out, eval_state *b, eval_arm arm, fl_err *err) {
  eval_result r = { .n = b->q->n };
  double start = fl_now_s();
  size_t *at = fl_calloc(r.n, sizeof *at);
  r.answer = fl_calloc(r.n, sizeof *r.answer);
  int rc = at && r.answer ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK) rc = eval_retrieve(b, arm, err);
  if (rc == FL_OK) rc = order(at, b, arm, err);
  if (rc == FL_OK) rc = run_batches(b, arm, at, &r, err);
  r.seconds = fl_now_s() - start;
  if (rc == FL_OK) rc = measure(b, arm, &r, err);
  fl_free(at);
  if (rc != FL_OK) {
    eval_result_release(&r);
    return rc;
  }
  *out = r;
  return FL_OK;
}

void eval_result_release(eval_result *r) {
  for (size_t i = 0; r->answer && i < r->n; i++) fl_free(r->answer[i].text);
  fl_free(r->answer);
  *r = (eval_result){ 0 };
}

int eval_state_new(eval_state **out, fl_fleet *f, fl_team *team, const eval_questions *q,
                   const eval_options *o, fl_err *err) {
  fl_pass_options opt = { .max_rows = FL_PASS_ROWS,
                          .max_spans = o->batch,
                          .max_out_rows = o->batch > OUT_ROWS ? o->batch : OUT_ROWS };
  eval_state *b = fl_calloc(1, sizeof *b);
  int rc = b ? FL_OK : FL_ENOMEM;
  if (rc == FL_OK) {
    *b = (eval_state){
      .f = f, .model = fl_fleet_model(f), .q = q, .o = o, .n_docs = fl_fleet_n_docs(f)
    };
    b->hits = fl_calloc(q->n, sizeof *b->hits);
    b->chunks = fl_calloc(q->n, sizeof *b->chunks);
    if (!b->hits || !b->chunks) rc = FL_ENOMEM;
  }
  if (rc != FL_OK) rc = fl_fail(err, rc, "not enough memory for %zu questions", q->n);
  if (rc == FL_OK) rc = fl_doc_reader_new(&b->texts, f, err);
  if (rc == FL_OK) rc = fl_pass_new(&b->pass, b->model, team, &opt, err);
  if (rc == FL_OK)
    rc = fl_kv_pool_new(&b->pool, fl_model_hparams(b->model), fl_model_kernels(b->model), o->kv, 0,
                        err);
  if (rc != FL_OK) {
    eval_state_free(b);
    return rc;
  }
  *out = b;
  return FL_OK;
}

void eval_state_free(eval_state *b) {
  if (!b) return;
  for (size_t i = 0; b->hits && i < b->q->n; i++) fl_hits_release(&b->hits[i]);
  for (size_t i = 0; b->chunks && i < b->q->n; i++) fl_hits_release(&b->chunks[i]);
  fl_doc_reader_free(b->texts);
  fl_free(b->hits);
  fl_free(b->chunks);
  if (b->pool) fl_kv_pool_free(b->pool);
  if (b->pass) fl_pass_free(b->pass);
  fl_free(b);
}
