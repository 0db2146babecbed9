/* job.c - a request as the engine keeps it, and its end. */
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "serve/engine_state.h"

void fl_mailbox_unref(fl_mailbox *b) {
  if (b == NULL || atomic_fetch_sub(&b->refs, 1) > 1) return;
  pthread_mutex_destroy(&b->mu);
  pthread_cond_destroy(&b->wake);
  pthread_cond_destroy(&b->done);
  fl_free(b);
}

void fl_mailbox_wake(fl_mailbox *b) {
  pthread_mutex_lock(&b->mu);
  b->news = true;
  pthread_cond_signal(&b->wake);
  pthread_mutex_unlock(&b->mu);
}

static void request_release(fl_request *q) {
  for (size_t i = 0; q->stop != NULL && i < q->n_stop; i++) fl_free(q->stop[i]);
  fl_free(q->stop);
  fl_free(q->msgs);
  fl_free(q->bytes);
  fl_free(q->bias);
  *q = (fl_request){ 0 };
}

void fl_job_unref(fl_job *j) {
  if (j == NULL || atomic_fetch_sub(&j->refs, 1) > 1) return;
  request_release(&j->req);
  fl_ids_release(&j->prompt);
  fl_ids_release(&j->out);
  fl_suffix_release(&j->own);
  fl_detokenizer_release(&j->deliver);
  fl_mailbox_unref(j->box);
  fl_free(j);
}

/* --- copying --- */

static int copy_messages(fl_request *q, const fl_job_request *r) {
  size_t bytes = 1, at = 0;
  for (size_t i = 0; i < r->n_msgs; i++)
    if (!fl_add_size(bytes, r->msgs[i].len, &bytes)) return FL_ENOMEM;
  q->msgs = fl_calloc(r->n_msgs, sizeof *q->msgs);
  q->bytes = fl_malloc(bytes);
  if (q->msgs == NULL || q->bytes == NULL) return FL_ENOMEM;
  for (size_t i = 0; i < r->n_msgs; i++) {
    if (r->msgs[i].len > 0) memcpy(q->bytes + at, r->msgs[i].text, r->msgs[i].len);
    q->msgs[i] = (fl_message){ r->msgs[i].role, q->bytes + at, r->msgs[i].len };
    at += r->msgs[i].len;
  }
  q->n_msgs = r->n_msgs;
  return FL_OK;
}

static int copy_stops(fl_request *q, const fl_job_request *r) {
  q->stop = fl_calloc(r->n_stop + 1, sizeof *q->stop);
  if (q->stop == NULL) return FL_ENOMEM;
  for (size_t i = 0; i < r->n_stop; i++) {
    if (r->stop[i][0] == '\0') continue; /* would stop everything */
    q->stop[q->n_stop] = fl_strdup(r->stop[i]);
    if (q->stop[q->n_stop] == NULL) return FL_ENOMEM;
    q->n_stop++;
  }
  return FL_OK;
}

static int copy_bias(fl_request *q, const fl_engine *e, fl_err *err) {
  const size_t n = q->sampling.n_bias, n_vocab = fl_model_hparams(e->model)->n_vocab;
  for (size_t i = 0; i < n; i++)
    if (q->sampling.bias[i].token < 0 || (size_t)q->sampling.bias[i].token >= n_vocab)
      return fl_fail(err, FL_EINPUT, "a bias for token %ld, which is none of the vocabulary's %zu",
                     (long)q->sampling.bias[i].token, n_vocab);
  q->bias = n > 0 ? fl_calloc(n, sizeof *q->bias) : NULL;
  if (n > 0 && q->bias == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for a request");
  if (n > 0) memcpy(q->bias, q->sampling.bias, n * sizeof *q->bias);
  q->sampling.bias = q->bias;
  return FL_OK;
}

static int find_named(fl_selection *out, fl_engine *e, const fl_job_request *r, fl_err *err) {
  int rc = FL_OK;
  if (e->fleet == NULL && r->n_docs > 0)
    return fl_fail(err, FL_ENOENT, "%s: there is no such document, this server has no fleet",
                   r->docs[0]);
  if (r->n_docs > FL_PREFIX_DOCS)
    return fl_fail(err, FL_EINPUT, "%zu documents named; %d are possible", r->n_docs,
                   FL_PREFIX_DOCS);
  pthread_mutex_lock(&e->fleet_mu);
  for (size_t i = 0; rc == FL_OK && i < r->n_docs; i++) {
    size_t at;
    fl_doc_info d;
    if (fl_fleet_find(e->fleet, r->docs[i], &at) != FL_OK) {
      rc = fl_fail(err, FL_ENOENT, "%s: there is no such document in the fleet", r->docs[i]);
      break;
    }
    fl_fleet_doc(e->fleet, at, &d);
    out->doc[out->n] = d.id;
    out->why[out->n++] = (fl_evidence){ 0 };
  }
  pthread_mutex_unlock(&e->fleet_mu);
  return rc;
}

static void make_key(fl_request *q, const char *conversation) {
  if (conversation != NULL) {
    fl_hash_bytes(q->key, conversation, strlen(conversation));
    q->key[0] = 'i'; /* an id and an opening are never taken for each other */
  } else {
    fl_opening_hash(q->msgs, q->n_msgs, q->key);
  }
  if (q->owner == 0) return;
  char both[2 * FL_HASH_TEXT];
  snprintf(both, sizeof both, "%lx %s", (unsigned long)q->owner, q->key);
  fl_hash_bytes(q->key, both, strlen(both));
}

/* Shows that the conversation can be rendered and could fit, while the caller can still be told. */
static int check_prompt(const fl_engine *e, const fl_request *q, fl_err *err) {
  fl_ids ids = { 0 };
  const fl_prompt c = { .msgs = q->msgs, .n_msgs = q->n_msgs, .thinking = q->thinking };
  int rc = fl_prompt_ids(&e->renderer, &c, &ids, err);
  if (rc == FL_OK && ids.len + 1 > e->opt.ctx)
    rc = fl_fail(err, FL_EINPUT,
                 "the conversation has %zu tokens, which leaves no room for an answer "
                 "in a context of %zu; shorten it",
                 ids.len, e->opt.ctx);
  fl_ids_release(&ids);
  return rc;
}

static int check_request(const fl_job_request *r, fl_err *err) {
  if (r->n_msgs == 0 || r->msgs[r->n_msgs - 1].role != FL_ROLE_USER)
    return fl_fail(err, FL_EINPUT, "a conversation has to end with a user's message");
  if (r->max_new == 0) return fl_fail(err, FL_EINPUT, "an answer of no tokens was asked for");
  if (r->top_logprobs > 20)
    return fl_fail(err, FL_EINPUT, "%zu alternatives asked for each token; 20 are possible",
                   r->top_logprobs);
  return FL_OK;
}

/* Earlier answers of the conversation: the turn's own stream of draws, as in fl_chat. */
static uint32_t turns_before(const fl_request *q) {
  uint32_t n = 0;
  for (size_t i = 0; i < q->n_msgs; i++) n += q->msgs[i].role == FL_ROLE_ASSISTANT;
  return n;
}

static int fill(fl_job *j, fl_engine *e, const fl_job_request *r, fl_err *err) {
  fl_request *q = &j->req;
  int rc = check_request(r, err);
  if (rc != FL_OK) return rc;
  q->thinking = r->thinking;
  q->sampling = r->sampling;
  q->seed = r->seed;
  q->max_new = r->max_new;
  q->logprobs = r->logprobs;
  q->n_top = r->top_logprobs;
  q->rag = r->rag;
  q->owner = r->owner;
  if (copy_messages(q, r) != FL_OK || copy_stops(q, r) != FL_OK)
    return fl_fail(err, FL_ENOMEM, "not enough memory for a request");
  make_key(q, r->conversation);
  rc = copy_bias(q, e, err);
  if (rc == FL_OK && r->rag == FL_RAG_NAMED) rc = find_named(&q->named, e, r, err);
  if (rc == FL_OK) rc = check_prompt(e, q, err);
  j->rng = fl_rng_stream(q->seed, FL_RNG_USER, 0, turns_before(q), 0);
  fl_gate_init(&j->gate);
  bool special = q->thinking && fl_model_template(e->model) == FL_TEMPLATE_GEMMA4;
  fl_detokenizer_init(&j->deliver, fl_model_tokenizer(e->model), special, q->stop, q->n_stop,
                      q->logprobs, q->n_top);
  return rc;
}

int fl_job_new(fl_job **out, fl_engine *e, const fl_job_request *r, const fl_job_sink *sink,
               fl_err *err) {
  fl_job *j = fl_calloc(1, sizeof *j);
  if (j == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for a request");
  atomic_init(&j->refs, 1);
  atomic_init(&j->cancel, false);
  j->sink = *sink;
  j->submitted = fl_now_s();
  int rc = fill(j, e, r, err);
  if (rc != FL_OK) {
    fl_job_unref(j);
    return rc;
  }
  j->box = e->box;
  atomic_fetch_add(&e->box->refs, 1);
  *out = j;
  return FL_OK;
}

/* --- the end --- */

static void remember(fl_engine *e, fl_job *j, fl_finish how, const char *stop_string) {
  size_t len;
  const char *text = fl_detokenizer_text(&j->deliver, &len);
  if (j->prefix == NULL || j->out.len == 0) return;
  if (e->opt.speculate) fl_prefix_remember(j->prefix, j->req.owner, j->out.data, j->out.len);
  if ((how != FL_FINISH_STOP && how != FL_FINISH_LENGTH) || stop_string != NULL) return;
  if (j->req.thinking) return; /* it is shown without its thoughts later on */
  char scope[FL_SCOPE_TEXT];
  fl_answers_scope(scope, j->prefix->print, j->req.owner);
  fl_answers_add(&e->answers, scope, &j->prompt, text, len, j->out.data, j->out.len);
}

static void leave_active(fl_engine *e, const fl_job *j) {
  size_t n = 0;
  for (size_t i = 0; i < e->n_jobs; i++)
    if (e->active[i] != j) e->active[n++] = e->active[i];
  e->n_jobs = n;
}

static void count_end(fl_engine *e, const fl_job *j, fl_finish how, double in_slot) {
  pthread_mutex_lock(&e->box->mu);
  fl_engine_stats *s = &e->stats;
  s->completion_tokens += j->out.len;
  s->drafted += j->drafted;
  s->accepted += j->accepted;
  if (how == FL_FINISH_CANCELLED) s->jobs_cancelled++;
  else if (how == FL_FINISH_ERROR) s->jobs_failed++;
  else s->jobs_done++;
  if (in_slot > 0) e->job_s = e->job_s > 0 ? e->job_s + 0.2 * (in_slot - e->job_s) : in_slot;
  e->n_active = e->n_jobs;
  pthread_mutex_unlock(&e->box->mu);
}

void fl_job_finish(fl_engine *e, fl_job *j, fl_finish how, const char *stop_string, int code,
                   const char *text) {
  const double now = fl_now_s();
  fl_engine_need_over(e, j);
  remember(e, j, how, stop_string);
  if (j->slot != NULL) fl_slots_close(&e->slots, j->slot);
  fl_prefix_drop(j->prefix);
  leave_active(e, j);
  count_end(e, j, how, j->slot != NULL ? now - j->submitted : 0);
  j->slot = NULL;
  j->prefix = NULL;
  const fl_job_end end = { .finish = how,
                           .stop_string = stop_string,
                           .completion_tokens = j->out.len,
                           .drafted = j->drafted,
                           .accepted = j->accepted,
                           .ttft_s = j->first > 0 ? j->first - j->submitted : 0,
                           .seconds = now - j->submitted,
                           .code = code,
                           .error = text };
  j->sink.on_end(j->sink.ctx, &end);
  fl_job_unref(j);
}

void fl_job_cancel(fl_job *j) {
  atomic_store(&j->cancel, true);
  fl_mailbox_wake(j->box);
}

void fl_job_release(fl_job *j) { fl_job_unref(j); }
