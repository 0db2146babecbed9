/* study.c - the two bots in lockstep.
 *
 * All conversations of a call go through the same stages together. The system rows of every
 * distinct chunk are computed once; each bot works on a fork of them, so that a chunk's rows are
 * held once.
 *   stage A: every conversation without a request: fork, seed instruction, sampled request
 *   stage B: every conversation with one: fork, request, greedy answer, teacher rows on the way
 * What either wrote may be refused (reject.h); the conversation then takes part in the next
 * attempt, in which bot A draws from the next stretch of the same random stream. By the row rule
 * nothing of this depends on the company: a plan gives the same conversation alone and among
 * others.
 *
 * Which chunk and which instruction: chunk.c.
 */
#include "study/study.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cartridge/cartridge.h"
#include "study/conv.h"
#include "study/note.h"
#include "study/reject.h"

enum {
  MAX_ATTEMPTS = 4,
  ATTEMPT_STRIDE = 1 << 24,
  PROMPT_SLACK = 256,
  THINK_ROOM = 256 /* tokens of reasoning before a request */
};

typedef struct base { /* the system rows of one chunk */
  const fl_doc_text *doc;
  size_t first, end;
  fl_seq *seq;
} base;

typedef struct item { /* one conversation on its way */
  const fl_conv_plan *plan;
  const base *base;
  uint32_t kind;
  bool thinks;         /* bot A reasons before its requests */
  bool closed;         /* no further turn */
  size_t turns;        /* that came out */
  fl_conv conv;        /* of these turns */
  char *last_answer;   /* of the turn before; NULL in the first */
  fl_ids dialogue;     /* as bot A has it: instruction, request, instruction, request ... */
  fl_ids history;      /* as bot B has it: request, answer, request, answer ... */
  fl_bot_text request; /* text NULL: none yet */
  fl_bot_text answer;
  fl_ids prompt; /* of the stage that runs */
  fl_target_room room;
} item;

typedef struct maker {
  const fl_study_options *o;
  const fl_model *model;
  fl_pass *pass;
  fl_kv_pool *pool;
  fl_events *log;
  fl_err *err;
  size_t n, n_base, n_live;
  item *item;        /* [n] */
  base *base;        /* [n] */
  fl_stream *stream; /* [n], the first n_live in use */
  item **live;       /* [n] whose stream it is */
  uint32_t attempt;
  size_t turn;
  fl_study_stats stats;
} maker;

static size_t n_turns(const fl_study_options *o) { return o->turns > 0 ? o->turns : 1; }

size_t fl_study_max_rows(const fl_study_options *o) {
  return o->chunk_max + n_turns(o) * (o->max_q + o->max_a + PROMPT_SLACK) +
         (o->think > 0 ? THINK_ROOM : 0);
}

static int check_options(const fl_study_options *o, const fl_model *m, fl_err *err) {
  const size_t n_ctx = fl_model_hparams(m)->n_ctx;
  if (o->chunk_min < 1 || o->chunk_min > o->chunk_max)
    return fl_fail(err, FL_EUSAGE,
                   "--chunk-min %zu and --chunk-max %zu: the range is empty; give "
                   "1 <= min <= max",
                   o->chunk_min, o->chunk_max);
  if (n_turns(o) > FL_MAX_TURNS || !(o->think >= 0 && o->think <= 1))
    return fl_fail(err, FL_EUSAGE, "--turns must be at most %d and --think from 0 to 1",
                   FL_MAX_TURNS);
  if (o->seeds && (o->n_seeds < 1 || o->n_seeds > FL_MAX_SEEDS))
    return fl_fail(err, FL_EUSAGE, "--seeds: %zu instructions; give 1 to %d", o->n_seeds,
                   FL_MAX_SEEDS);
  if (o->top_k < 1 || o->max_q < 1 || o->max_a < 1)
    return fl_fail(err, FL_EUSAGE, "--top-k, --max-q and --max-a must be at least 1");
  if (o->max_q >= ATTEMPT_STRIDE || o->max_a >= ATTEMPT_STRIDE || o->chunk_max >= ATTEMPT_STRIDE)
    return fl_fail(err, FL_EUSAGE, "--max-q, --max-a and --chunk-max must be below %d",
                   ATTEMPT_STRIDE);
  if (o->chunk_max + o->max_q + o->max_a > n_ctx)
    return fl_fail(err, FL_EUSAGE,
                   "--chunk-max %zu with --max-q %zu and --max-a %zu is more than "
                   "the model's context of %zu; lower --chunk-max",
                   o->chunk_max, o->max_q, o->max_a, n_ctx);
  return FL_OK;
}

/* --- setting up ---------------------------------------------------------------------------- */

static const base *find_base(maker *mk, const fl_doc_text *doc, size_t first, size_t end) {
  for (size_t i = 0; i < mk->n_base; i++) {
    const base *b = &mk->base[i];
    if (b->doc == doc && b->first == first && b->end == end) return b;
  }
  mk->base[mk->n_base] = (base){ .doc = doc, .first = first, .end = end };
  return &mk->base[mk->n_base++];
}

static bool is_cancelled(void *ctx) {
  const maker *mk = ctx;
  return mk->o->cancelled && mk->o->cancelled(mk->o->cancel_ctx);
}

/* A slice at a time: a chunk may take longer than who asked for a stop likes to wait. */
static int prefill(maker *mk, fl_seq *seq, const fl_ids *ids) {
  const size_t slice = fl_pass_max_rows(mk->pass);
  int rc = FL_OK;
  for (size_t at = 0; at < ids->len && rc == FL_OK; at += slice) {
    const size_t n = ids->len - at < slice ? ids->len - at : slice;
    if (is_cancelled(mk)) return fl_fail(mk->err, FL_EINTR, "stopped");
    rc = fl_pass_prefill(mk->pass, seq, ids->data + at, n, NULL, mk->err);
  }
  return rc;
}

static int run_base(maker *mk, base *b) {
  size_t len;
  const char *chunk = fl_doc_text_span(b->doc, b->first, b->end, &len);
  fl_ids ids = { 0 };
  int rc = fl_wrapped_system(&ids, mk->model, chunk, len, 0, mk->err);
  if (rc == FL_OK) rc = fl_seq_new(&b->seq, mk->pool, mk->err);
  if (rc == FL_OK) rc = prefill(mk, b->seq, &ids);
  mk->stats.prefill_tokens += ids.len;
  fl_ids_release(&ids);
  return rc;
}

static int set_up(maker *mk, const fl_conv_plan *plans, const fl_doc_text *const *docs) {
  const size_t n_vocab = fl_model_hparams(mk->model)->n_vocab;
  const size_t top_k = mk->o->top_k < n_vocab ? mk->o->top_k : n_vocab;
  mk->item = fl_calloc(mk->n, sizeof *mk->item);
  mk->base = fl_calloc(mk->n, sizeof *mk->base);
  mk->stream = fl_calloc(mk->n, sizeof *mk->stream);
  mk->live = fl_calloc(mk->n, sizeof *mk->live);
  if (!mk->item || !mk->base || !mk->stream || !mk->live)
    return fl_fail(mk->err, FL_ENOMEM, "out of memory for %zu conversations", mk->n);
  for (size_t i = 0; i < mk->n; i++) {
    item *it = &mk->item[i];
    size_t first, end;
    fl_study_chunk(mk->o, docs[i], &plans[i], &first, &end);
    it->plan = &plans[i];
    it->kind = fl_study_kind(mk->o, &plans[i]);
    fl_rng draw =
        fl_rng_stream(mk->o->seed, FL_RNG_THINK, plans[i].doc, plans[i].round, plans[i].conv);
    it->thinks = fl_rng_unit(&draw) < mk->o->think;
    it->base = find_base(mk, docs[i], first, end);
    int rc = fl_target_room_init(&it->room, mk->o->max_a, top_k, mk->err);
    if (rc != FL_OK) return rc;
  }
  for (size_t i = 0; i < mk->n_base; i++) {
    int rc = run_base(mk, &mk->base[i]);
    if (rc != FL_OK) return rc;
  }
  return FL_OK;
}

static void tear_down(maker *mk) {
  for (size_t i = 0; mk->item && i < mk->n; i++) {
    fl_free(mk->item[i].request.text);
    fl_free(mk->item[i].answer.text);
    fl_ids_release(&mk->item[i].prompt);
    fl_ids_release(&mk->item[i].dialogue);
    fl_ids_release(&mk->item[i].history);
    fl_conv_release(&mk->item[i].conv);
    fl_free(mk->item[i].last_answer);
    fl_target_room_release(&mk->item[i].room);
  }
  for (size_t i = 0; i < mk->n_base; i++) fl_seq_free(mk->base[i].seq);
  fl_kv_pool_trim(mk->pool);
  fl_pass_evict_pages(mk->pass);
  fl_free(mk->item);
  fl_free(mk->base);
  fl_free(mk->stream);
  fl_free(mk->live);
}

/* --- one stage ----------------------------------------------------------------------------- */

static const fl_seed_kind *seed_of(const maker *mk, const item *it) {
  return mk->o->seeds ? &mk->o->seeds[it->kind] : &fl_seed_kinds[it->kind];
}

static int append_user(const maker *mk, fl_ids *ids, const char *text, size_t len, bool thinking) {
  return fl_chat_user(ids, fl_model_template(mk->model), fl_model_tokenizer(mk->model), text, len,
                      ids->len == 0, thinking, mk->err);
}

/* A stream on a fork of the chunk's rows; its prompt is what was said before and a user turn. */
static int add_stream(maker *mk, item *it, const fl_ids *before, const char *user, size_t len,
                      size_t max_new, bool thinking) {
  const fl_seq *system = it->base->seq;
  fl_stream *s = &mk->stream[mk->n_live];
  fl_ids_reset(&it->prompt);
  fl_ids_append(&it->prompt, before->data, before->len);
  int rc = append_user(mk, &it->prompt, user, len, thinking);
  if (rc == FL_OK && it->prompt.oom) rc = fl_fail(mk->err, FL_ENOMEM, "out of memory for a prompt");
  if (rc != FL_OK) return rc;
  *s = (fl_stream){ .prompt = it->prompt.data,
                    .n_prompt = it->prompt.len,
                    .max_new = max_new,
                    .sampling = FL_SAMPLING_GREEDY };
  rc = fl_seq_fork(&s->seq, system, fl_seq_rows(system), mk->err);
  if (rc != FL_OK) return rc;
  mk->live[mk->n_live++] = it;
  mk->stats.prefill_tokens += it->prompt.len;
  return FL_OK;
}

static void drop_streams(maker *mk) {
  for (size_t i = 0; i < mk->n_live; i++) fl_seq_free(mk->stream[i].seq);
  fl_streams_release(mk->stream, mk->n_live);
  mk->n_live = 0;
}

static void keep_teacher_row(void *ctx, size_t i, size_t index, const float *logits,
                             int32_t token) {
  maker *mk = ctx;
  (void)index;
  (void)token;
  fl_target_room_add(&mk->live[i]->room, fl_model_kernels(mk->model), logits,
                     fl_model_hparams(mk->model)->n_vocab, mk->o->top_mass);
}

static int run_streams(maker *mk, bool teacher) {
  const fl_generate_hooks hooks = { .ctx = mk,
                                    .on_row = teacher ? keep_teacher_row : NULL,
                                    .cancelled = is_cancelled };
  int rc = fl_generate(mk->pass, mk->stream, mk->n_live, &hooks, mk->err);
  for (size_t i = 0; i < mk->n_live; i++)
    mk->stats.gen_tokens += mk->stream[i].out.len + (mk->stream[i].stop == FL_STOP_END ? 1 : 0);
  return rc;
}

static void emit(maker *mk, const item *it, fl_reject why, const char *of, size_t n_supervised) {
  fl_study_log(mk->log, &(fl_study_note){ .plan = it->plan,
                                          .kind = seed_of(mk, it)->kind,
                                          .turn = mk->turn,
                                          .n_turns = n_turns(mk->o),
                                          .first = it->base->first,
                                          .end = it->base->end,
                                          .request = it->request.text,
                                          .request_len = it->request.len,
                                          .answer = it->answer.text,
                                          .answer_len = it->answer.len,
                                          .n_supervised = n_supervised,
                                          .attempt = mk->attempt,
                                          .why = why,
                                          .of = of });
}

static void forget_texts(item *it) {
  fl_free(it->request.text);
  fl_free(it->answer.text);
  it->request = it->answer = (fl_bot_text){ 0 };
  it->room.n_rows = 0;
}

static void refuse(maker *mk, item *it, fl_reject why, const char *of) {
  emit(mk, it, why, of, 0);
  mk->stats.rejected++;
  forget_texts(it);
}

static fl_reject judge(const fl_stream *s, const fl_bot_text *text, size_t max_tokens) {
  const fl_written w = { .ids = s->out.data + text->n_think,
                         .n_ids = s->out.len - text->n_think,
                         .len = text->len,
                         .max_tokens = max_tokens,
                         .cut = s->stop != FL_STOP_END };
  return fl_reject_judge(&w);
}

/* --- bot A --------------------------------------------------------------------------------- */

static int take_request(maker *mk, size_t i) {
  item *it = mk->live[i];
  const fl_stream *s = &mk->stream[i];
  int rc = fl_bot_text_read(&it->request, fl_model_tokenizer(mk->model), &s->out, mk->err);
  if (rc != FL_OK) return rc;
  const fl_reject why = judge(s, &it->request, mk->o->max_q);
  if (why != FL_REJECT_NOT) refuse(mk, it, why, "request");
  return FL_OK;
}

/* Whether a stage's prompt and what it may write find room behind the chunk in the context. */
static bool has_room(const maker *mk, const item *it, size_t max_new) {
  const size_t n_ctx = fl_model_hparams(mk->model)->n_ctx;
  return fl_seq_rows(it->base->seq) + it->prompt.len + max_new <= n_ctx;
}

static void drop_last_stream(maker *mk) { fl_seq_free(mk->stream[--mk->n_live].seq); }

/* What bot A is told: the instruction, in later turns behind the answer to its last request. */
static char *instruction(const maker *mk, const item *it) {
  const char *seed = seed_of(mk, it)->text;
  return it->last_answer ? fl_asprintf("%s\n\n%s", it->last_answer, seed) : fl_strdup(seed);
}

static bool waits(const maker *mk, const item *it) { return !it->closed && it->turns == mk->turn; }

/* A request that is given: asked once, since bot B would answer alike again. */
static int take_given(maker *mk, item *it) {
  const char *text = seed_of(mk, it)->text;
  it->closed = mk->turn > 0 || mk->attempt > 0;
  if (it->closed) return FL_OK;
  it->request = (fl_bot_text){ .text = fl_strdup(text), .len = strlen(text) };
  return it->request.text ? FL_OK : fl_fail(mk->err, FL_ENOMEM, "out of memory for a request");
}

static int ask_one(maker *mk, item *it) {
  if (seed_of(mk, it)->is_request) return take_given(mk, it);
  const size_t max_new = mk->o->max_q + (it->thinks ? THINK_ROOM : 0);
  char *text = instruction(mk, it);
  if (!text) return fl_fail(mk->err, FL_ENOMEM, "out of memory for a prompt");
  int rc = add_stream(mk, it, &it->dialogue, text, strlen(text), max_new, it->thinks);
  fl_free(text);
  if (rc != FL_OK) return rc;
  if (!has_room(mk, it, max_new)) {
    it->closed = true;
    drop_last_stream(mk);
    return FL_OK;
  }
  fl_stream *s = &mk->stream[mk->n_live - 1];
  s->sampling.temperature = mk->o->temperature;
  s->rng =
      fl_rng_stream(mk->o->seed, FL_RNG_SAMPLE, it->plan->doc, it->plan->round, it->plan->conv);
  s->rng.index = ((uint32_t)mk->turn * MAX_ATTEMPTS + mk->attempt) * (uint32_t)ATTEMPT_STRIDE;
  return FL_OK;
}

static int ask(maker *mk) {
  int rc = FL_OK;
  for (size_t i = 0; rc == FL_OK && i < mk->n; i++)
    if (waits(mk, &mk->item[i])) rc = ask_one(mk, &mk->item[i]);
  if (rc == FL_OK && mk->n_live > 0) rc = run_streams(mk, false);
  for (size_t i = 0; rc == FL_OK && i < mk->n_live; i++) rc = take_request(mk, i);
  drop_streams(mk);
  return rc;
}

/* --- a turn -------------------------------------------------------------------------------- */

/* What both bots have said so far, for the next turn. */
static int remember(maker *mk, item *it, const fl_stream *s) {
  const fl_tokenizer *t = fl_model_tokenizer(mk->model);
  const fl_template tpl = fl_model_template(mk->model);
  char *text = instruction(mk, it);
  if (!text) return fl_fail(mk->err, FL_ENOMEM, "out of memory for a conversation");
  int rc = append_user(mk, &it->dialogue, text, strlen(text), true);
  fl_free(text);
  if (rc == FL_OK)
    rc = fl_chat_assistant(&it->dialogue, tpl, t, it->request.text, it->request.len, mk->err);
  fl_ids_reset(&it->history);
  fl_ids_append(&it->history, it->prompt.data, it->prompt.len);
  fl_ids_append(&it->history, s->out.data, s->out.len);
  if (rc == FL_OK) rc = fl_chat_assistant(&it->history, tpl, t, "", 0, mk->err);
  fl_free(it->last_answer);
  it->last_answer = fl_strdup(it->answer.text);
  if (rc == FL_OK && (it->dialogue.oom || it->history.oom || !it->last_answer))
    rc = fl_fail(mk->err, FL_ENOMEM, "out of memory for a conversation");
  return rc;
}

static int name_kind(const maker *mk, const item *it, fl_conv *c) {
  if (!mk->o->seeds) return FL_OK;
  c->kind = FL_N_SEED_KINDS;
  c->kind_name = fl_strdup(seed_of(mk, it)->kind);
  return c->kind_name ? FL_OK : fl_fail(mk->err, FL_ENOMEM, "out of memory for a conversation");
}

/* The turn joins those before it. */
static int keep_turn(maker *mk, item *it, const fl_stream *s) {
  fl_conv c = { .kind = it->kind, .first = it->base->first, .end = it->base->end };
  int rc = fl_conv_build(&c, &it->prompt, &s->out, s->stop_token, it->answer.n_think, &it->room,
                         mk->err);
  if (rc == FL_OK && it->turns + 1 < n_turns(mk->o)) rc = remember(mk, it, s);
  if (rc == FL_OK && it->turns == 0) rc = name_kind(mk, it, &c);
  if (rc == FL_OK) {
    emit(mk, it, FL_REJECT_NOT, NULL, c.targets.n_rows);
    c.request = it->request.text;
    c.answer = it->answer.text;
    it->request.text = it->answer.text = NULL;
    if (it->turns > 0) rc = fl_conv_join(&it->conv, &c, mk->err);
    else it->conv = c;
  }
  if (rc != FL_OK) {
    fl_conv_release(&c);
    return rc;
  }
  it->turns++;
  forget_texts(it);
  return FL_OK;
}

/* --- bot B --------------------------------------------------------------------------------- */

static int take_answer(maker *mk, size_t i) {
  item *it = mk->live[i];
  const fl_stream *s = &mk->stream[i];
  int rc = fl_bot_text_read(&it->answer, fl_model_tokenizer(mk->model), &s->out, mk->err);
  if (rc != FL_OK) return rc;
  const fl_reject why = judge(s, &it->answer, mk->o->max_a);
  if (why == FL_REJECT_NOT) return keep_turn(mk, it, s);
  refuse(mk, it, why, "answer");
  return FL_OK;
}

static int answer(maker *mk) {
  int rc = FL_OK;
  for (size_t i = 0; rc == FL_OK && i < mk->n; i++) {
    item *it = &mk->item[i];
    if (!waits(mk, it) || !it->request.text) continue;
    rc = add_stream(mk, it, &it->history, it->request.text, it->request.len, mk->o->max_a, false);
    if (rc != FL_OK || has_room(mk, it, mk->o->max_a)) continue;
    refuse(mk, it, FL_REJECT_LONG, "request");
    drop_last_stream(mk);
  }
  if (rc == FL_OK && mk->n_live > 0) rc = run_streams(mk, true);
  for (size_t i = 0; rc == FL_OK && i < mk->n_live; i++) rc = take_answer(mk, i);
  drop_streams(mk);
  return rc;
}

/* --- the call ------------------------------------------------------------------------------ */

static size_t n_waiting(const maker *mk) {
  size_t n = 0;
  for (size_t i = 0; i < mk->n; i++) n += waits(mk, &mk->item[i]);
  return n;
}

static size_t n_without_turn(const maker *mk) {
  size_t n = 0;
  for (size_t i = 0; i < mk->n; i++) n += mk->item[i].turns == 0;
  return n;
}

/* A conversation whose next turn does not come out keeps those before it. */
static int make_all(maker *mk) {
  int rc = FL_OK;
  for (mk->turn = 0; mk->turn < n_turns(mk->o) && rc == FL_OK; mk->turn++) {
    for (mk->attempt = 0; mk->attempt < MAX_ATTEMPTS && n_waiting(mk) > 0; mk->attempt++) {
      rc = ask(mk);
      if (rc == FL_OK) rc = answer(mk);
      if (rc != FL_OK) return rc;
    }
    if (mk->turn == 0) mk->stats.skipped = n_without_turn(mk);
    for (size_t i = 0; i < mk->n; i++) mk->item[i].closed |= waits(mk, &mk->item[i]);
  }
  return rc;
}

int fl_study_make(fl_conv *out, bool *ok, const fl_conv_plan *plans, const fl_doc_text *const *docs,
                  size_t n, const fl_study_options *o, fl_pass *pass, fl_kv_pool *pool,
                  fl_events *log, fl_study_stats *stats, fl_err *err) {
  maker mk = {
    .o = o, .model = fl_pass_model(pass), .pass = pass, .pool = pool, .log = log, .err = err, .n = n
  };
  const double start_s = fl_now_s();
  int rc = check_options(o, mk.model, err);
  if (rc != FL_OK) return rc;
  memset(out, 0, n * sizeof *out);
  memset(ok, 0, n * sizeof *ok);
  rc = set_up(&mk, plans, docs);
  if (rc == FL_OK) rc = make_all(&mk);
  for (size_t i = 0; rc == FL_OK && i < n; i++) {
    ok[i] = mk.item[i].turns > 0;
    out[i] = mk.item[i].conv;
    mk.item[i].conv = (fl_conv){ 0 };
  }
  tear_down(&mk);
  mk.stats.gen_s = fl_now_s() - start_s;
  if (rc == FL_OK && stats) *stats = mk.stats;
  return rc;
}
