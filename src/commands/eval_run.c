/* eval_run.c - asks the questions of one arm. Questions that stand behind the same rows form a
 * group: the rows are made once, every question is a fork of them, and forks decode side by side;
 * by the row rule each answer is the one that the question would get alone. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fs.h"
#include "base/mem.h"
#include "cartridge/cartridge.h"
#include "commands/eval.h"

enum { PASS_ROWS = 512, RESAMPLES = 2000 };

const char *const eval_arm_names[] = { "bare", "context", "oracle", "retrieved", "text", NULL };

typedef struct runner {
  fl_fleet *f;
  const fl_model *model;
  const eval_questions *q;
  eval_arm arm;
  const eval_options *o;
  fl_pass *pass;
  fl_kv_pool *pool;
  eval_result *r;
  fl_source_list sources; /* texts of all documents, for EVAL_CONTEXT */
  fl_hits *hits;          /* [n], retrieval arms */
  bool *done;             /* [n] */
} runner;

static bool contains(const char *text, const char *value) {
  return strcasestr(text, value) != NULL;
}

/* --- groups --------------------------------------------------------------------------------- */

static bool same_hits(const fl_hits *a, const fl_hits *b) {
  if (a->n_docs != b->n_docs) return false;
  for (size_t i = 0; i < a->n_docs; i++)
    if (a->doc[i].doc != b->doc[i].doc) return false;
  return true;
}

static bool same_group(const runner *x, size_t i, size_t j) {
  if (x->arm == EVAL_BARE) return true;
  if (x->arm == EVAL_RETRIEVED) return same_hits(&x->hits[i], &x->hits[j]);
  return x->q->q[i].doc_index == x->q->q[j].doc_index;
}

static int read_sources(runner *x, fl_err *err) {
  size_t n = fl_fleet_n_docs(x->f);
  const char **names = fl_calloc(n + 1, sizeof *names);
  if (!names) return fl_fail(err, FL_ENOMEM, "not enough memory");
  for (size_t i = 0; i < n; i++) {
    fl_doc_info d;
    fl_fleet_doc(x->f, i, &d);
    names[i] = d.name;
  }
  int rc = fl_source_read(&x->sources, names, n, false, err);
  fl_free(names);
  for (size_t i = 0; i < n && rc == FL_OK; i++) {
    fl_doc_info d;
    fl_fleet_doc(x->f, i, &d);
    if (d.hash && *d.hash && strcmp(d.hash, x->sources.doc[i].hash) != 0)
      rc = fl_fail(err, FL_EINPUT,
                   "%s: has changed since training; flotilla train --update takes it in", d.name);
  }
  return rc;
}

static int retrieve_all(runner *x, fl_err *err) {
  for (size_t i = 0; i < x->q->n; i++) {
    const char *question = x->q->q[i].question;
    int rc = fl_fleet_retrieve(x->f, question, strlen(question), x->o->rag, &x->hits[i], err);
    if (rc != FL_OK) return rc;
    const fl_hits *h = &x->hits[i];
    for (size_t d = 0; d < h->n_docs; d++) {
      if (h->doc[d].doc != x->q->q[i].doc_index) continue;
      x->r->among++;
      x->r->first += d == 0;
    }
  }
  return FL_OK;
}

/* --- what stands before the question ------------------------------------------------------- */

static int prefill_context(runner *x, fl_seq *seq, size_t doc, fl_err *err) {
  const fl_source_doc *d = &x->sources.doc[doc];
  fl_ids ids = { 0 };
  size_t last;
  int rc = fl_wrapped_system(&ids, x->model, d->text, d->len, 0, err);
  size_t n_ctx = fl_model_hparams(x->model)->n_ctx;
  if (rc == FL_OK && ids.len + x->o->sampling->max_new >= n_ctx)
    rc = fl_fail(err, FL_EUSAGE, "%s: its %zu tokens do not fit the model's context of %zu; leave "
                 "context out of --arms", d->name, ids.len, n_ctx);
  if (rc == FL_OK) rc = fl_pass_prefill(x->pass, seq, ids.data, ids.len, &last, err);
  fl_ids_release(&ids);
  return rc;
}

static int make_prefix(runner *x, fl_seq *seq, size_t i, fl_err *err) {
  const eval_question *q = &x->q->q[i];
  size_t docs[64];
  size_t n = 0;
  switch (x->arm) {
    case EVAL_BARE: case EVAL_TEXT: return FL_OK;
    case EVAL_CONTEXT: return prefill_context(x, seq, q->doc_index, err);
    case EVAL_ORACLE: docs[n++] = q->doc_index; break;
    case EVAL_RETRIEVED:
      for (size_t d = 0; d < x->hits[i].n_docs && n < 64; d++) docs[n++] = x->hits[i].doc[d].doc;
      break;
  }
  return n > 0 ? fl_fleet_compose(x->f, seq, docs, n, err) : FL_OK;
}

static int make_prompt(const runner *x, fl_ids *out, const char *question, bool behind,
                       fl_err *err) {
  fl_template tpl = fl_model_template(x->model);
  const fl_tokenizer *t = fl_model_tokenizer(x->model);
  int rc = behind ? FL_OK : fl_chat_system(out, tpl, t, NULL, 0, err);
  if (rc == FL_OK)
    rc = fl_chat_user(out, tpl, t, question, strlen(question), behind, false, err);
  return rc;
}

/* --- decoding ------------------------------------------------------------------------------ */

static void keep_answer(runner *x, size_t i, const fl_stream *s, size_t rows) {
  fl_buf text = { 0 };
  eval_answer *a = &x->r->answer[i];
  fl_detokenize(fl_model_tokenizer(x->model), &text, s->out.data, s->out.len, false);
  a->text = fl_buf_detach(&text);
  a->rows = rows;
  a->tokens = s->out.len;
  a->right = a->text && contains(a->text, x->q->q[i].value);
  x->done[i] = true;
}

/* Answers the questions at[0..n) side by side behind `prefix`. */
static int answer_batch(runner *x, const fl_seq *prefix, const size_t *at, size_t n, fl_err *err) {
  fl_seq *seqs[64] = { 0 };
  fl_stream streams[64] = { 0 };
  fl_ids prompts[64] = { 0 };
  size_t rows = fl_seq_rows(prefix);
  int rc = FL_OK;
  for (size_t k = 0; k < n && rc == FL_OK; k++) {
    rc = fl_seq_fork(&seqs[k], prefix, rows, err);
    if (rc == FL_OK) rc = make_prompt(x, &prompts[k], x->q->q[at[k]].question, rows > 0, err);
    streams[k] = (fl_stream){ .seq = seqs[k], .prompt = prompts[k].data,
                              .n_prompt = prompts[k].len, .sampling = x->o->sampling->sampling,
                              .rng = fl_rng_stream(x->o->sampling->seed, FL_RNG_USER, 0,
                                                   (uint32_t)at[k], 0),
                              .max_new = x->o->sampling->max_new };
  }
  if (rc == FL_OK) rc = fl_generate(x->pass, streams, n, NULL, err);
  for (size_t k = 0; k < n && rc == FL_OK; k++) keep_answer(x, at[k], &streams[k], rows);
  fl_streams_release(streams, n);
  for (size_t k = 0; k < n; k++) {
    fl_ids_release(&prompts[k]);
    if (seqs[k]) fl_seq_free(seqs[k]);
  }
  return rc;
}

/* All questions that stand behind the same rows as question i. */
static int answer_group(runner *x, size_t i, fl_err *err) {
  size_t at[64], n = 0;
  fl_seq *prefix = NULL;
  int rc = fl_seq_new(&prefix, x->pool, err);
  if (rc == FL_OK) rc = make_prefix(x, prefix, i, err);
  for (size_t j = i; j < x->q->n && rc == FL_OK; j++) {
    if (x->done[j] || !same_group(x, i, j)) continue;
    at[n++] = j;
    if (n < x->o->batch) continue;
    rc = x->o->stop() ? FL_EINTR : answer_batch(x, prefix, at, n, err);
    n = 0;
  }
  if (rc == FL_OK && n > 0) rc = answer_batch(x, prefix, at, n, err);
  if (prefix) fl_seq_free(prefix);
  return rc;
}

/* Retrieved text differs by question: one after the other, as ask does it. */
static int answer_text(runner *x, size_t i, fl_err *err) {
  const eval_question *q = &x->q->q[i];
  fl_ask_options o = { .arm = FL_ARM_TEXT, .hits = &x->hits[i] };
  fl_reply reply = { 0 };
  sampling_apply(&o, x->o->sampling);
  if (x->o->stop()) return FL_EINTR;
  int rc = fl_fleet_ask(x->f, q->question, strlen(q->question), &o, &reply, err);
  if (rc != FL_OK) return rc;
  eval_answer *a = &x->r->answer[i];
  a->rows = reply.rows;
  a->tokens = reply.tokens;
  a->right = contains(reply.text, q->value);
  a->text = fl_strdup(reply.text);
  x->done[i] = true;
  fl_reply_release(&reply);
  return FL_OK;
}

static int open_runner(runner *x, fl_team *team, fl_err *err) {
  fl_pass_options opt = { .max_rows = PASS_ROWS, .max_spans = x->o->batch };
  x->r->n = x->q->n;
  x->r->answer = fl_calloc(x->q->n, sizeof *x->r->answer);
  x->hits = fl_calloc(x->q->n, sizeof *x->hits);
  x->done = fl_calloc(x->q->n, sizeof *x->done);
  if (!x->r->answer || !x->hits || !x->done) return fl_fail(err, FL_ENOMEM, "not enough memory");
  int rc = fl_pass_new(&x->pass, x->model, team, &opt, err);
  if (rc == FL_OK)
    rc = fl_kv_pool_new(&x->pool, fl_model_hparams(x->model), fl_model_kernels(x->model),
                        (fl_kv_type)x->o->sampling->kv, 0, err);
  if (rc == FL_OK && x->arm == EVAL_CONTEXT) rc = read_sources(x, err);
  return rc;
}

static void close_runner(runner *x) {
  for (size_t i = 0; x->hits && i < x->q->n; i++) fl_hits_release(&x->hits[i]);
  fl_free(x->hits);
  fl_free(x->done);
  fl_source_release(&x->sources);
  if (x->pool) fl_kv_pool_free(x->pool);
  if (x->pass) fl_pass_free(x->pass);
}

static void sum_up(eval_result *r) {
  for (size_t i = 0; i < r->n; i++) {
    r->right += r->answer[i].right;
    r->rows += (double)r->answer[i].rows / (double)r->n;
    r->tokens += (double)r->answer[i].tokens / (double)r->n;
  }
}

int eval_run(eval_result *out, fl_fleet *f, fl_team *team, const eval_questions *q, eval_arm arm,
             const eval_options *o, fl_err *err) {
  eval_result r = { 0 };
  runner x = { .f = f, .model = fl_fleet_model(f), .q = q, .arm = arm, .o = o, .r = &r };
  int rc = open_runner(&x, team, err);
  double start = fl_now_s();
  if (rc == FL_OK && (arm == EVAL_RETRIEVED || arm == EVAL_TEXT)) rc = retrieve_all(&x, err);
  for (size_t i = 0; i < q->n && rc == FL_OK; i++) {
    if (x.done[i]) continue;
    rc = arm == EVAL_TEXT ? answer_text(&x, i, err) : answer_group(&x, i, err);
  }
  r.seconds = fl_now_s() - start;
  close_runner(&x);
  if (rc != FL_OK) {
    eval_result_release(&r);
    return rc;
  }
  sum_up(&r);
  *out = r;
  return FL_OK;
}

void eval_result_release(eval_result *r) {
  for (size_t i = 0; r->answer && i < r->n; i++) fl_free(r->answer[i].text);
  fl_free(r->answer);
  *r = (eval_result){ 0 };
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

void eval_interval(const eval_result *r, double *low, double *high) {
  double share[RESAMPLES];
  for (uint32_t k = 0; k < RESAMPLES; k++) {
    fl_rng rng = fl_rng_stream(0, FL_RNG_TEST, 3, k, 0);
    size_t right = 0;
    for (size_t i = 0; i < r->n; i++) right += r->answer[fl_rng_below(&rng, r->n)].right;
    share[k] = (double)right / (double)r->n;
  }
  qsort(share, RESAMPLES, sizeof *share, ascending);
  *low = share[RESAMPLES * 25 / 1000];
  *high = share[RESAMPLES * 975 / 1000 - 1];
}
