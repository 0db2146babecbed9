/* job.c - from a request to a job, and a job's end. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
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
  b->woken = true;
  pthread_cond_signal(&b->wake);
  pthread_mutex_unlock(&b->mu);
}

void fl_job_unref(fl_job *j) {
  if (j == NULL || atomic_fetch_sub(&j->refs, 1) > 1) return;
  fl_chat_request_release(&j->req);
  fl_mailbox_unref(j->box);
  fl_free(j);
}

/* --- what is asked --- */

_Static_assert((int)FL_REQUEST_DOCS <= (int)FL_PREFIX_DOCS, "a selection holds all that are named");

static int check_bias(const fl_chat_request *r, size_t n_vocab, fl_err *err) {
  for (size_t i = 0; i < r->sampling.n_bias; i++) {
    const int32_t token = r->sampling.bias[i].token;
    if (token < 0 || (size_t)token >= n_vocab)
      return fl_fail(err, FL_EINPUT, "a bias for token %ld, which is none of the vocabulary's %zu",
                     (long)token, n_vocab);
  }
  return FL_OK;
}

static int find_named(fl_selection *out, fl_engine *e, const fl_chat_request *r, fl_err *err) {
  int rc = FL_OK;
  if (e->fleet == NULL && r->n_docs > 0)
    return fl_fail(err, FL_ENOENT, "%s: there is no such document, this server has no fleet",
                   r->docs[0]);
  pthread_mutex_lock(&e->fleet_mu);
  for (size_t i = 0; rc == FL_OK && i < r->n_docs; i++) {
    size_t at;
    fl_doc_info d;
    if (fl_fleet_find(e->fleet, r->docs[i], &at) != FL_OK) {
      rc = fl_fail(err, FL_ENOENT, "%s: there is no such document in the fleet", r->docs[i]);
      break;
    }
    fl_fleet_doc(e->fleet, at, &d);
    out->doc[out->n++] = d.id;
  }
  pthread_mutex_unlock(&e->fleet_mu);
  return rc;
}

static void make_key(char key[FL_HASH_TEXT], const fl_chat_request *r) {
  if (r->conversation != NULL) {
    fl_hash_bytes(key, r->conversation, strlen(r->conversation));
    key[0] = 'i'; /* an id and an opening are never taken for each other */
  } else {
    fl_opening_hash(r->msgs, r->n_msgs, key);
  }
  if (r->owner == 0) return;
  char both[2 * FL_HASH_TEXT];
  snprintf(both, sizeof both, "%lx %s", (unsigned long)r->owner, key);
  fl_hash_bytes(key, both, strlen(both));
}

/* Refuses a conversation that cannot be rendered or cannot fit while the caller can be told. */
static int check_prompt(const fl_engine *e, const fl_chat_request *r, fl_err *err) {
  fl_ids ids = { 0 };
  const fl_prompt c = { .msgs = r->msgs, .n_msgs = r->n_msgs, .thinking = r->thinking };
  int rc = fl_prompt_ids(&e->prompter, &c, &ids, err);
  if (rc == FL_OK && ids.len + 1 > e->opt.ctx)
    rc = fl_fail(err, FL_EINPUT,
                 "the conversation has %zu tokens, which leaves no room for an answer in a context "
                 "of %zu; shorten it",
                 ids.len, e->opt.ctx);
  fl_ids_release(&ids);
  return rc;
}

static int check_request(const fl_engine *e, const fl_chat_request *r, fl_err *err) {
  if (r->n_msgs == 0 || r->msgs[r->n_msgs - 1].role != FL_ROLE_USER)
    return fl_fail(err, FL_EINPUT, "a conversation has to end with a user's message");
  if (r->max_new == 0) return fl_fail(err, FL_EINPUT, "an answer of no tokens was asked for");
  if (r->top_logprobs > FL_REQUEST_TOP_LOGPROBS)
    return fl_fail(err, FL_EINPUT, "%zu alternatives asked for each token; %d are possible",
                   r->top_logprobs, FL_REQUEST_TOP_LOGPROBS);
  return check_bias(r, fl_model_hparams(e->model)->n_vocab, err);
}

/* Earlier answers of the conversation: the turn's own stream of draws, as in fl_chat. */
static uint32_t answers_before(const fl_chat_request *r) {
  uint32_t n = 0;
  for (size_t i = 0; i < r->n_msgs; i++) n += r->msgs[i].role == FL_ROLE_ASSISTANT;
  return n;
}

static void take_over(fl_job *j, fl_engine *e, fl_chat_request *r) {
  const bool special = r->thinking && fl_model_template(e->model) == FL_TEMPLATE_GEMMA4;
  j->req = *r;
  *r = (fl_chat_request){ 0 };
  j->submitted = fl_now_s();
  j->rng = fl_rng_stream(j->req.seed, FL_RNG_USER, 0, answers_before(&j->req), 0);
  fl_gate_init(&j->gate);
  fl_detokenizer_init(&j->detokenizer, fl_model_tokenizer(e->model), special, j->req.stop,
                      j->req.n_stop, j->req.logprobs, j->req.top_logprobs);
  j->box = e->box;
  atomic_fetch_add(&e->box->refs, 1);
}

int fl_job_new(fl_job **out, fl_engine *e, fl_chat_request *r, const fl_job_sink *sink,
               fl_err *err) {
  int rc = check_request(e, r, err);
  fl_job *j = rc == FL_OK ? fl_calloc(1, sizeof *j) : NULL;
  if (rc == FL_OK && j == NULL) rc = fl_fail(err, FL_ENOMEM, "not enough memory for a request");
  if (rc != FL_OK) return rc;
  atomic_init(&j->refs, 1);
  atomic_init(&j->cancel, false);
  j->sink = *sink;
  make_key(j->key, r);
  if (r->rag == FL_RAG_NAMED) rc = find_named(&j->docs, e, r, err);
  if (rc == FL_OK) rc = check_prompt(e, r, err);
  if (rc != FL_OK) {
    fl_job_unref(j);
    return rc;
  }
  j->selected = r->rag != FL_RAG_AUTO || e->fleet == NULL;
  take_over(j, e, r);
  *out = j;
  return FL_OK;
}

const fl_chat_request *fl_job_request(const fl_job *j) { return &j->req; }

bool fl_job_tell(fl_job *j) {
  const bool go_on = j->sink.on_event(j->sink.ctx, &j->event);
  fl_job_event_reset(&j->event);
  return go_on;
}

/* --- the end --- */

static void remember(fl_engine *e, fl_job *j, fl_finish how, const char *stop_string) {
  size_t len;
  const char *text = fl_detokenizer_text(&j->detokenizer, &len);
  if (j->prefix == NULL || j->out.len == 0) return;
  if (e->opt.speculate) fl_prefix_remember(j->prefix, j->req.owner, j->out.data, j->out.len);
  if ((how != FL_FINISH_STOP && how != FL_FINISH_LENGTH) || stop_string != NULL) return;
  if (j->req.thinking) return; /* it is shown without its thoughts later on */
  char scope[FL_SCOPE_TEXT];
  fl_answers_scope(scope, j->prefix->digest, j->req.owner);
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

static void tell_end(fl_job *j, fl_finish how, const char *stop_string, int code,
                     const char *text) {
  fl_job_event *v = &j->event;
  fl_job_event_reset(v); /* a piece of which there was no memory for the rest */
  v->ended = true;
  v->end = (fl_job_end){ .finish = how,
                         .stop_string = stop_string != NULL ? fl_strdup(stop_string) : NULL,
                         .completion_tokens = j->out.len,
                         .drafted = j->drafted,
                         .accepted = j->accepted,
                         .ttft_s = j->first_token_s > 0 ? j->first_token_s - j->submitted : 0,
                         .seconds = fl_now_s() - j->submitted,
                         .code = code,
                         .error = text != NULL ? fl_strdup(text) : NULL };
  v->lost = stop_string != NULL && v->end.stop_string == NULL;
  (void)fl_job_tell(j);
}

/* Others may hold the job for its request: what it worked with goes now. */
static void release_work(fl_job *j) {
  fl_ids_release(&j->prompt);
  fl_ids_release(&j->out);
  fl_suffix_release(&j->suffix);
  fl_detokenizer_release(&j->detokenizer);
  fl_job_event_release(&j->event);
}

void fl_job_finish(fl_engine *e, fl_job *j, fl_finish how, const char *stop_string, int code,
                   const char *text) {
  fl_engine_need_over(e, j);
  remember(e, j, how, stop_string);
  if (j->slot != NULL) fl_slots_close(&e->slots, j->slot);
  fl_prefix_drop(j->prefix);
  leave_active(e, j);
  count_end(e, j, how, j->slot != NULL ? fl_now_s() - j->submitted : 0);
  j->slot = NULL;
  j->prefix = NULL;
  tell_end(j, how, stop_string, code, text);
  release_work(j);
  fl_job_unref(j);
}

void fl_job_cancel(fl_job *j) {
  atomic_store(&j->cancel, true);
  fl_mailbox_wake(j->box);
}

void fl_job_release(fl_job *j) { fl_job_unref(j); }
