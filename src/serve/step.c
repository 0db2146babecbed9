/* step.c - one forward pass for all jobs in slots: for each answer the row of its last token and
 * perhaps those of a draft, beside them slices of prompts; then each job samples its tokens.
 *
 * A pass is kept short when answers wait for it: it holds as many rows of prompts as fit into a
 * fraction of a second, by the measured time of a row. However a prompt is cut, its rows hold the
 * same bits (the row rule), so this changes times only. */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "serve/engine_state.h"

enum {
  SLICE_MIN = 16,
  SAMPLE_ON_TEAM = 8192 /* logits of a step from which on the team takes the tokens */
};
static const double slice_beside_s = 0.1; /* prompts may delay a token of others by this much */
static const double slice_alone_s = 0.5;  /* and a cancellation by this */

typedef struct batch {
  fl_span span[FL_SERVE_SLOTS];
  fl_job *job[FL_SERVE_SLOTS];
  size_t n, rows;                             /* spans, rows */
  size_t out[FL_SERVE_SLOTS + FL_DRAFT_ROWS]; /* rows that decide tokens */
  size_t n_out;
  bool prompts; /* some rows belong to prompts */
} batch;

static bool in_prompt(const fl_job *j) { return j->n_computed < j->prompt.len; }
static bool due_prompt(const fl_job *j) { return j->ready && in_prompt(j); }

static void add_span(batch *b, fl_job *j, const int32_t *tokens, size_t n, size_t n_no_output) {
  b->span[b->n] =
      (fl_span){ .seq = j->slot->seq, .tokens = tokens, .n_rows = n, .n_no_output = n_no_output };
  b->job[b->n++] = j;
  j->rows = n;
  b->rows += n;
}

static void add_out(batch *b, fl_job *j, size_t first_row, size_t n) {
  j->first_out = b->n_out;
  for (size_t i = 0; i < n; i++) b->out[b->n_out++] = first_row + i;
}

/* --- answers --- */

static void make_draft(fl_engine *e, fl_job *j, size_t rows, size_t jobs, size_t room) {
  const fl_suffix *source[3] = { &j->suffix, &j->prefix->text,
                                 fl_prefix_history(j->prefix, j->req.owner) };
  size_t left = j->max_new - j->out.len; /* tokens that may still come, this row's included */
  size_t max = left - 1 < room ? left - 1 : room;
  j->n_draft = 0;
  if (!e->opt.speculate || max == 0) return;
  fl_draft_make(&j->draft, source, 3, j->suffix.ids.data, j->suffix.ids.len, max);
  if (j->draft.n > 0)
    j->n_draft = fl_gate_length(&j->gate, &e->cost, j->draft.match, rows, jobs, j->draft.n);
}

static void add_answers(fl_engine *e, batch *b) {
  size_t jobs = 0, drafts = 0;
  for (size_t i = 0; i < e->n_jobs; i++) jobs += !in_prompt(e->active[i]);
  for (size_t i = 0; i < e->n_jobs; i++) {
    fl_job *j = e->active[i];
    if (in_prompt(j)) continue;
    make_draft(e, j, jobs + drafts, jobs, FL_DRAFT_ROWS - drafts);
    drafts += j->n_draft;
    j->row_token[0] = j->last_token;
    memcpy(j->row_token + 1, j->draft.token, j->n_draft * sizeof *j->row_token);
    add_out(b, j, b->rows, 1 + j->n_draft);
    add_span(b, j, j->row_token, 1 + j->n_draft, 0);
  }
}

/* --- prompts --- */

static size_t slice_rows(const fl_engine *e, const batch *b) {
  size_t most = FL_STEP_ROWS - b->rows;
  double limit = b->n > 0 ? slice_beside_s : slice_alone_s;
  if (!(e->row_s > 0)) return most < 64 ? most : 64;
  double rows = limit / e->row_s;
  if (rows < SLICE_MIN) rows = SLICE_MIN;
  return rows < (double)most ? (size_t)rows : most;
}

/* All prompts get an equal share of the rows; what one does not need goes to those after it. The
 * order rotates from step to step. */
static void add_prompts(fl_engine *e, batch *b) {
  size_t waiting = 0, room = slice_rows(e, b);
  for (size_t i = 0; i < e->n_jobs; i++) waiting += due_prompt(e->active[i]);
  e->rotation++;
  for (size_t k = 0; k < e->n_jobs && waiting > 0 && room > 0; k++) {
    fl_job *j = e->active[(k + e->rotation) % e->n_jobs];
    if (!due_prompt(j)) continue;
    size_t left = j->prompt.len - j->n_computed, take = (room + waiting - 1) / waiting;
    if (take > left) take = left;
    if (take == left) add_out(b, j, b->rows + take - 1, 1);
    add_span(b, j, j->prompt.data + j->n_computed, take, take - (take == left));
    j->n_draft = 0;
    b->prompts = true;
    room -= take;
    waiting--;
  }
}

/* --- tokens --- */

typedef struct taken {
  size_t accepted;
  bool ended;
  fl_finish how;
  const char *stop_string;
} taken;

static void end_with(taken *t, fl_finish how) {
  t->ended = true;
  t->how = how;
}

/* Takes the token that a row decided; false when the rows after it are worth nothing. */
static bool take_token(const fl_engine *e, fl_sampler *sampler, fl_job *j, size_t i,
                       const float *logits, taken *t) {
  const size_t n_vocab = fl_model_hparams(e->model)->n_vocab;
  int stopped = -1;
  int32_t token =
      fl_sampler_pick(sampler, logits, &j->req.sampling, j->out.data, j->out.len, &j->rng);
  if (fl_chat_stops(fl_model_template(e->model), fl_model_tokenizer(e->model), token)) {
    end_with(t, FL_FINISH_STOP);
    return false;
  }
  if (j->first_token_s <= 0) j->first_token_s = fl_now_s();
  bool hit = i < j->n_draft && token == j->draft.token[i];
  t->accepted += hit;
  j->last_token = token;
  fl_ids_push(&j->out, token);
  if (e->opt.speculate) (void)fl_suffix_append(&j->suffix, &token, 1);
  if (j->out.oom ||
      fl_detokenizer_token(&j->detokenizer, token, logits, n_vocab, &stopped) != FL_OK) {
    end_with(t, FL_FINISH_ERROR);
  } else if (stopped >= 0) {
    end_with(t, FL_FINISH_STOP);
    t->stop_string = j->req.stop[stopped];
  } else if (j->out.len >= j->max_new) {
    end_with(t, FL_FINISH_LENGTH);
  }
  return hit && !t->ended;
}

/* Hands over what can be shown; false when the sink wants no more. */
static bool show(fl_job *j, bool last, int *rc) {
  *rc = fl_detokenizer_piece(&j->detokenizer, last, &j->event);
  if (*rc != FL_OK) return false;
  return (j->event.text.len == 0 && j->event.n_tokens == 0) || fl_job_tell(j);
}

static void finish_job(fl_engine *e, fl_job *j, const taken *t) {
  static const char no_memory[] = "not enough memory to go on with the answer";
  int rc = FL_OK;
  bool more = t->how == FL_FINISH_ERROR ? false : show(j, t->ended, &rc);
  if (rc != FL_OK || (t->ended && t->how == FL_FINISH_ERROR))
    fl_job_finish(e, j, FL_FINISH_ERROR, NULL, FL_ENOMEM, no_memory);
  else if (t->ended) fl_job_finish(e, j, t->how, t->stop_string, FL_OK, NULL);
  else if (!more) fl_job_finish(e, j, FL_FINISH_CANCELLED, NULL, FL_OK, NULL);
}

/* The slot keeps the rows whose tokens are part of the conversation. */
static void keep_rows(fl_job *j, size_t n) {
  fl_slot *s = j->slot;
  fl_seq_truncate(s->seq, s->prefix->rows + s->ids.len + n);
  fl_ids_append(&s->ids, in_prompt(j) ? j->prompt.data + j->n_computed : j->row_token, n);
  if (in_prompt(j)) j->n_computed += n;
}

static bool decides(const fl_job *j) {
  return !in_prompt(j) || j->n_computed + j->rows == j->prompt.len;
}

/* Samples one job's tokens. It touches nothing but the job, so that any rank of the team may do it;
 * the job's own stream of draws makes the result the same on each. */
static void take_tokens(const fl_engine *e, fl_sampler *sampler, fl_job *j, taken *t) {
  const size_t n_vocab = fl_model_hparams(e->model)->n_vocab;
  const float *logits = e->logits + j->first_out * n_vocab;
  size_t i = 0;
  *t = (taken){ .how = FL_FINISH_LENGTH };
  if (!decides(j)) return;
  while (take_token(e, sampler, j, i, logits + i * n_vocab, t)) i++;
}

typedef struct take_args {
  const fl_engine *e;
  const batch *b;
  taken *t; /* [b->n] */
} take_args;

static void take_some(void *ctx, unsigned rank, unsigned n_ranks) {
  const take_args *k = ctx;
  for (size_t i = rank; i < k->b->n; i += n_ranks)
    take_tokens(k->e, k->e->sampler[rank], k->b->job[i], &k->t[i]);
}

/* On this thread alone where waking the team would take longer. */
static void take_all(fl_engine *e, const batch *b, taken *t) {
  take_args k = { e, b, t };
  if (b->n_out > 1 && b->n_out * fl_model_hparams(e->model)->n_vocab >= SAMPLE_ON_TEAM)
    fl_team_run(e->team, take_some, &k);
  else take_some(&k, 0, 1);
}

static void advance(fl_engine *e, fl_job *j, taken *t) {
  const bool all_prompt = in_prompt(j) && !decides(j);
  if (in_prompt(j)) {
    keep_rows(j, j->rows);
  } else {
    keep_rows(j, 1 + t->accepted);
    fl_gate_learn(&j->gate, j->draft.match, j->n_draft, t->accepted);
    j->drafted += j->n_draft;
    j->accepted += t->accepted;
  }
  if (j->slot->ids.oom) { /* what rows it has is not known any more */
    fl_seq_truncate(j->slot->seq, j->slot->prefix->rows);
    fl_ids_release(&j->slot->ids);
    end_with(t, FL_FINISH_ERROR);
  } else if (all_prompt) {
    return;
  }
  finish_job(e, j, t);
}

/* --- the step --- */

/* The slots have counted the pages, so there is room. Should memory itself run out, the job that
 * meets this fails, and not all of them. */
static void drop_unreserved(fl_engine *e) {
  for (size_t i = e->n_jobs; i-- > 0;) {
    fl_job *j = e->active[i];
    fl_err err = { 0 };
    if (!j->ready) continue;
    size_t rows = fl_seq_rows(j->slot->seq);
    size_t want = in_prompt(j)       ? j->prompt.len - j->n_computed
                  : e->opt.speculate ? 1 + FL_DRAFT_MAX
                                     : 1;
    if (want > FL_STEP_ROWS) want = FL_STEP_ROWS;
    if (rows + want > j->slot->reserved_rows) want = j->slot->reserved_rows - rows;
    if (fl_seq_reserve(j->slot->seq, rows + want, &err) != FL_OK)
      fl_job_finish(e, j, FL_FINISH_ERROR, NULL, FL_ENOMEM, err.text);
  }
}

/* Processor time of this thread, which runs an equal share of every pass: that another program took
 * the core meanwhile must not look like an expensive draft. */
static double own_time_s(void) {
  struct timespec t;
  return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0
             ? (double)t.tv_sec + 1e-9 * (double)t.tv_nsec
             : 0;
}

static void learn_times(fl_engine *e, const batch *b, double seconds, double own_seconds) {
  if (!b->prompts) {
    fl_cost_learn(&e->cost, b->rows, own_seconds);
  } else if (b->rows >= SLICE_MIN) {
    double row = seconds / (double)b->rows;
    e->row_s = e->row_s > 0 ? e->row_s + 0.2 * (row - e->row_s) : row;
  }
  pthread_mutex_lock(&e->box->mu);
  e->stats.steps++;
  pthread_mutex_unlock(&e->box->mu);
}

static void fail_all(fl_engine *e, const batch *b, int rc, const char *text) {
  for (size_t i = 0; i < b->n; i++) fl_job_finish(e, b->job[i], FL_FINISH_ERROR, NULL, rc, text);
}

void fl_engine_step(fl_engine *e) {
  batch b = { 0 };
  fl_err err = { 0 };
  drop_unreserved(e);
  if (e->n_jobs == 0) return;
  add_answers(e, &b);
  add_prompts(e, &b);
  if (b.n == 0) return; /* all wait for their rows */
  double began = fl_now_s(), own = own_time_s();
  int rc = fl_pass_forward(e->pass, b.span, b.n, &err);
  if (rc != FL_OK) {
    fail_all(e, &b, rc, err.text);
    return;
  }
  if (b.n_out > 0) fl_pass_logits(e->pass, b.out, b.n_out, e->logits);
  learn_times(e, &b, fl_now_s() - began, own_time_s() - own);
  taken t[FL_SERVE_SLOTS];
  take_all(e, &b, t);
  for (size_t i = 0; i < b.n; i++) advance(e, b.job[i], &t[i]);
}

/* --- calibration --- */

/* Steps of so many rows of one sequence; the times go to the costs. */
static int measure_rows(fl_engine *e, fl_seq *seq, const int32_t *tokens, size_t rows) {
  size_t out[FL_STEP_ROWS];
  const fl_span span = { .seq = seq, .tokens = tokens, .n_rows = rows };
  const size_t before = fl_seq_rows(seq);
  for (size_t i = 0; i < rows; i++) out[i] = i;
  for (int k = 0; k <= FL_COST_SURE; k++) { /* the first one warms up */
    const double own = own_time_s();
    int rc = fl_pass_forward(e->pass, &span, 1, NULL);
    if (rc != FL_OK) return rc;
    fl_pass_logits(e->pass, out, rows, e->logits);
    if (k > 0) fl_cost_learn(&e->cost, rows, own_time_s() - own);
    fl_seq_truncate(seq, before);
  }
  return FL_OK;
}

void fl_engine_calibrate(fl_engine *e) {
  static const double limit_s = 1; /* a start that is not noticed is worth more than exact costs */
  const double began = fl_now_s();
  int32_t tokens[1 + FL_DRAFT_MAX] = { 0 };
  fl_seq *seq = NULL;
  int rc = fl_seq_new(&seq, e->pool, NULL);
  for (size_t rows = 1; rc == FL_OK && rows <= 1 + FL_DRAFT_MAX; rows *= 2) {
    if (rows < e->out_rows && rows < e->opt.ctx) rc = measure_rows(e, seq, tokens, rows);
    if (fl_now_s() - began > limit_s) break;
  }
  fl_seq_free(seq);
}

/* --- embedding --- */

static void finish_embed(fl_engine *e, fl_embed_task *t, int rc) {
  fl_seq_free(t->seq);
  t->seq = NULL;
  pthread_mutex_lock(&e->box->mu);
  t->rc = rc;
  t->finished = true;
  e->embed = t->next;
  pthread_cond_broadcast(&e->box->done);
  pthread_mutex_unlock(&e->box->mu);
}

void fl_engine_embed_slice(fl_engine *e) {
  pthread_mutex_lock(&e->box->mu);
  fl_embed_task *t = e->embed;
  pthread_mutex_unlock(&e->box->mu);
  if (t == NULL) return;
  int rc = t->seq == NULL ? fl_seq_new(&t->seq, e->embed_pool, &t->err) : FL_OK;
  const batch beside = { .n = e->n_jobs };
  size_t left = t->ids.len - t->at, take = slice_rows(e, &beside);
  if (take > left) take = left;
  const fl_span span = { .seq = t->seq,
                         .tokens = t->ids.data + t->at,
                         .n_rows = take,
                         .n_no_output = take - (take == left) };
  if (rc == FL_OK) rc = fl_pass_forward(e->pass, &span, 1, &t->err);
  t->at += take;
  if (rc == FL_OK && t->at < t->ids.len) return;
  size_t last = take - 1;
  if (rc == FL_OK) fl_pass_hidden(e->pass, &last, 1, t->out);
  finish_embed(e, t, rc);
}
