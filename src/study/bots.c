/* bots.c - the stages of study.c: what bot A is told and writes, what bot B answers, and the
 * answers that are given instead. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "cartridge/cartridge.h"
#include "study/echo.h"
#include "study/examples.h"
#include "study/forced.h"
#include "study/maker.h"
#include "study/note.h"

/* Nats a token: above it the teacher would rather say something else, and its words teach nothing
 * about the document. */
#define MAX_TEACHER_LOSS 2.0

/* --- one stage ----------------------------------------------------------------------------- */

static const fl_seed_kind *seed_of(const maker *mk, const item *it) {
  return mk->o->seeds ? &mk->o->seeds[it->kind] : &fl_seed_kinds[it->kind];
}

static int append_user(const maker *mk, fl_ids *ids, const char *text, size_t len, bool thinking) {
  return fl_chat_user(ids, fl_model_template(mk->model), fl_model_tokenizer(mk->model), text, len,
                      ids->len == 0, thinking, mk->err);
}

/* it->prompt = what was said before and a user turn. */
static int put_prompt(maker *mk, item *it, const fl_ids *before, const char *user, size_t len,
                      bool thinking) {
  fl_ids_reset(&it->prompt);
  fl_ids_append(&it->prompt, before->data, before->len);
  int rc = append_user(mk, &it->prompt, user, len, thinking);
  if (rc == FL_OK && it->prompt.oom) rc = fl_fail(mk->err, FL_ENOMEM, "out of memory for a prompt");
  return rc;
}

/* A stream that goes on with it->prompt behind the first rows of a sequence. */
static int add_stream(maker *mk, item *it, const fl_seq *system, size_t rows, size_t max_new) {
  fl_stream *s = &mk->stream[mk->n_live];
  *s = (fl_stream){ .prompt = it->prompt.data,
                    .n_prompt = it->prompt.len,
                    .max_new = max_new,
                    .sampling = FL_SAMPLING_GREEDY };
  int rc = fl_seq_fork(&s->seq, system, rows, mk->err);
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
                                    .cancelled = fl_maker_cancelled };
  int rc = fl_generate(mk->pass, mk->stream, mk->n_live, &hooks, mk->err);
  for (size_t i = 0; i < mk->n_live; i++)
    mk->stats.gen_tokens += mk->stream[i].out.len + (mk->stream[i].stop == FL_STOP_END ? 1 : 0);
  return rc;
}

static const char *kind_of(const maker *mk, const item *it) {
  return it->way == FL_WAY_SEEDS ? seed_of(mk, it)->kind : fl_way_name(it->way);
}

static void emit(maker *mk, const item *it, fl_reject why, const char *of, size_t n_supervised) {
  fl_study_log(mk->log, &(fl_study_note){
                            .plan = it->plan,
                            .kind = kind_of(mk, it),
                            .turn = mk->turn,
                            .n_turns = fl_maker_turns(mk),
                            .first = it->base->first,
                            .end = it->base->end,
                            .at_first = it->anchor.at_first,
                            .at_end = it->anchor.at_end,
                            .teacher = it->given.len > 0 ? it->loss / (double)it->given.len : NAN,
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
  fl_ids_reset(&it->given);
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
  fl_reject why = judge(s, &it->request, mk->o->max_q);
  if (why == FL_REJECT_NOT && it->way == FL_WAY_SENTENCE &&
      !(fl_echo_asks(it->request.text) && fl_echo_shares(it->request.text, it->anchor.shown)))
    why = FL_REJECT_FOREIGN;
  if (why != FL_REJECT_NOT) refuse(mk, it, why, "request");
  return FL_OK;
}

/* Whether a stage's prompt and what it may write find room behind the chunk in the context. */
static bool has_room(const maker *mk, const item *it, size_t rows, size_t max_new) {
  return rows + it->prompt.len + max_new <= fl_model_hparams(mk->model)->n_ctx;
}

/* What bot A is told: the instruction, in later turns behind the answer to its last request. */
static char *instruction(const maker *mk, const item *it) {
  const char *seed = seed_of(mk, it)->text;
  return it->last_answer ? fl_asprintf("%s\n\n%s", it->last_answer, seed) : fl_strdup(seed);
}

/* A request that is given: asked once, since bot B would answer alike again. */
static int take_given(maker *mk, item *it, const char *text) {
  it->closed = mk->turn > 0 || mk->attempt > 0;
  if (it->closed) return FL_OK;
  it->request = (fl_bot_text){ .text = fl_strdup(text), .len = strlen(text) };
  return it->request.text ? FL_OK : fl_fail(mk->err, FL_ENOMEM, "out of memory for a request");
}

/* Who sees a sentence alone is shown it behind examples, and in every other attempt as a document
 * of its own: what a model follows differs. *from, *rows: what the prompt stands behind. */
static int prompt_on_sentence(maker *mk, item *it, const fl_seq **from, size_t *rows) {
  const char *shown = it->anchor.shown, *told = fl_sentence_instruction;
  fl_ids ids = { 0 };
  size_t same = 0;
  int rc = FL_OK;
  if (mk->attempt % 2 == 0) {
    rc = fl_examples_render(&ids, mk->model, shown, mk->err);
    while (same + 1 < ids.len && same < mk->examples.len &&
           ids.data[same] == mk->examples.data[same])
      same++;
  } else {
    rc = fl_wrapped_system(&ids, mk->model, shown, strlen(shown), 0, mk->err);
    if (rc == FL_OK)
      rc = fl_chat_user(&ids, fl_model_template(mk->model), fl_model_tokenizer(mk->model), told,
                        strlen(told), true, it->thinks, mk->err);
  }
  fl_ids_reset(&it->prompt);
  fl_ids_append(&it->prompt, ids.data + same, ids.len - same);
  if (rc == FL_OK && (ids.oom || it->prompt.oom))
    rc = fl_fail(mk->err, FL_ENOMEM, "out of memory for a prompt");
  fl_ids_release(&ids);
  *from = mk->examples_seq;
  *rows = same;
  return rc;
}

static int prompt_on_chunk(maker *mk, item *it, const fl_seq **from, size_t *rows) {
  char *text = instruction(mk, it);
  if (!text) return fl_fail(mk->err, FL_ENOMEM, "out of memory for a prompt");
  int rc = put_prompt(mk, it, &it->dialogue, text, strlen(text), it->thinks);
  fl_free(text);
  *from = it->base->seq;
  *rows = fl_seq_rows(it->base->seq);
  return rc;
}

static int ask_one(maker *mk, item *it) {
  const fl_seq *from = NULL;
  size_t rows = 0;
  if (it->anchor.request) return take_given(mk, it, it->anchor.request);
  if (it->way == FL_WAY_SEEDS && seed_of(mk, it)->is_request)
    return take_given(mk, it, seed_of(mk, it)->text);
  const size_t max_new = mk->o->max_q + (it->thinks ? THINK_ROOM : 0);
  int rc = it->way == FL_WAY_SENTENCE ? prompt_on_sentence(mk, it, &from, &rows)
                                      : prompt_on_chunk(mk, it, &from, &rows);
  if (rc != FL_OK) return rc;
  if (!has_room(mk, it, rows, max_new)) {
    it->closed = true;
    return FL_OK;
  }
  rc = add_stream(mk, it, from, rows, max_new);
  if (rc != FL_OK) return rc;
  fl_stream *s = &mk->stream[mk->n_live - 1];
  s->sampling.temperature = mk->o->temperature;
  s->rng =
      fl_rng_stream(mk->o->seed, FL_RNG_SAMPLE, it->plan->doc, it->plan->round, it->plan->conv);
  s->rng.index = ((uint32_t)mk->turn * MAX_ATTEMPTS + mk->attempt) * (uint32_t)ATTEMPT_STRIDE;
  return FL_OK;
}

int fl_maker_ask(maker *mk) {
  int rc = FL_OK;
  for (size_t i = 0; rc == FL_OK && i < mk->n; i++)
    if (fl_maker_waits(mk, &mk->item[i])) rc = ask_one(mk, &mk->item[i]);
  if (rc == FL_OK && mk->n_live > 0) rc = run_streams(mk, false);
  for (size_t i = 0; rc == FL_OK && i < mk->n_live; i++) rc = take_request(mk, i);
  drop_streams(mk);
  return rc;
}

/* --- a turn -------------------------------------------------------------------------------- */

/* What both bots have said so far, for the next turn. */
static int remember(maker *mk, item *it, const fl_ids *answer) {
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
  fl_ids_append(&it->history, answer->data, answer->len);
  if (rc == FL_OK) rc = fl_chat_assistant(&it->history, tpl, t, "", 0, mk->err);
  fl_free(it->last_answer);
  it->last_answer = fl_strdup(it->answer.text);
  if (rc == FL_OK && (it->dialogue.oom || it->history.oom || !it->last_answer))
    rc = fl_fail(mk->err, FL_ENOMEM, "out of memory for a conversation");
  return rc;
}

static int name_kind(const maker *mk, const item *it, fl_conv *c) {
  if (!mk->o->seeds && it->way == FL_WAY_SEEDS) return FL_OK;
  c->kind = FL_N_SEED_KINDS;
  c->kind_name = fl_strdup(kind_of(mk, it));
  return c->kind_name ? FL_OK : fl_fail(mk->err, FL_ENOMEM, "out of memory for a conversation");
}

/* The turn joins those before it. */
static int keep_turn(maker *mk, item *it, const fl_ids *answer, int32_t stop) {
  fl_conv c = { .kind = it->kind,
                .first = it->base->first,
                .end = it->base->end,
                .at_first = it->anchor.at_first,
                .at_end = it->anchor.at_end };
  int rc = fl_conv_build(&c, &it->prompt, answer, stop, it->answer.n_think, &it->room, mk->err);
  it->closed = it->way != FL_WAY_SEEDS; /* of one turn */
  if (rc == FL_OK && !it->closed && it->turns + 1 < fl_maker_turns(mk))
    rc = remember(mk, it, answer);
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

/* An answer about a sentence is known to be about it by its words. */
static fl_reject judge_on_sentence(const item *it) {
  const char *request = it->request.text, *answer = it->answer.text;
  if (fl_echo_repeats(request, answer)) return FL_REJECT_ECHO;
  return fl_echo_tells(request, answer, it->anchor.shown) ? FL_REJECT_NOT : FL_REJECT_FOREIGN;
}

static int take_answer(maker *mk, size_t i) {
  item *it = mk->live[i];
  const fl_stream *s = &mk->stream[i];
  int rc = fl_bot_text_read(&it->answer, fl_model_tokenizer(mk->model), &s->out, mk->err);
  if (rc != FL_OK) return rc;
  fl_reject why = judge(s, &it->answer, mk->o->max_a);
  if (why == FL_REJECT_NOT && it->way == FL_WAY_SENTENCE) why = judge_on_sentence(it);
  if (why == FL_REJECT_NOT) return keep_turn(mk, it, &s->out, s->stop_token);
  refuse(mk, it, why, "answer");
  return FL_OK;
}

static int answer_one(maker *mk, item *it) {
  const fl_seq *system = it->base->seq;
  int rc = put_prompt(mk, it, &it->history, it->request.text, it->request.len, false);
  if (rc != FL_OK) return rc;
  if (has_room(mk, it, fl_seq_rows(system), mk->o->max_a))
    return add_stream(mk, it, system, fl_seq_rows(system), mk->o->max_a);
  refuse(mk, it, FL_REJECT_LONG, "request");
  return FL_OK;
}

/* --- answers that are given ---------------------------------------------------------------- */

static int give_one(maker *mk, item *it) {
  const fl_tokenizer *t = fl_model_tokenizer(mk->model);
  const char *text = it->anchor.answer;
  int rc = put_prompt(mk, it, &it->history, it->request.text, it->request.len, false);
  it->answer = (fl_bot_text){ .text = fl_strdup(text), .len = strlen(text) };
  if (rc == FL_OK && !it->answer.text)
    rc = fl_fail(mk->err, FL_ENOMEM, "out of memory for an answer");
  if (rc == FL_OK) rc = fl_tokenize(t, &it->given, text, it->answer.len, FL_TOK_CONTINUE, mk->err);
  if (rc == FL_OK && it->given.oom) rc = fl_fail(mk->err, FL_ENOMEM, "out of memory for an answer");
  if (rc != FL_OK) return rc;
  mk->stats.prefill_tokens += it->prompt.len + it->given.len;
  const fl_reject why = it->way == FL_WAY_SENTENCE ? judge_on_sentence(it) : FL_REJECT_NOT;
  if (it->given.len == 0) refuse(mk, it, FL_REJECT_EMPTY, "answer");
  else if (why != FL_REJECT_NOT) refuse(mk, it, why, "answer");
  else if (it->given.len > mk->o->max_a ||
           !has_room(mk, it, fl_seq_rows(it->base->seq), it->given.len))
    refuse(mk, it, FL_REJECT_LONG, "answer");
  else if (it->prompt.len > mk->o->max_q + mk->o->max_a) refuse(mk, it, FL_REJECT_LONG, "request");
  else mk->forced[mk->n_forced++] = it;
  return FL_OK;
}

static int run_forced(maker *mk) {
  const fl_tokenizer *t = fl_model_tokenizer(mk->model);
  const int32_t end = fl_chat_end_of_turn(fl_model_template(mk->model), t);
  fl_forced *f = fl_calloc(mk->n_forced + 1, sizeof *f);
  if (!f) return fl_fail(mk->err, FL_ENOMEM, "out of memory for answers");
  for (size_t i = 0; i < mk->n_forced; i++)
    f[i] = (fl_forced){ .system = mk->forced[i]->base->seq,
                        .prompt = &mk->forced[i]->prompt,
                        .answer = &mk->forced[i]->given,
                        .room = &mk->forced[i]->room };
  int rc = fl_forced_run(f, mk->n_forced, mk->o, mk->pass, mk->err);
  for (size_t i = 0; rc == FL_OK && i < mk->n_forced; i++) {
    item *it = mk->forced[i];
    it->loss = f[i].loss;
    if (it->loss > MAX_TEACHER_LOSS * (double)it->given.len)
      refuse(mk, it, FL_REJECT_UNSURE, "answer");
    else rc = keep_turn(mk, it, &it->given, end >= 0 ? end : fl_tokenizer_eos(t));
  }
  fl_free(f);
  mk->n_forced = 0;
  return rc;
}

/* --- both ---------------------------------------------------------------------------------- */

int fl_maker_answer(maker *mk) {
  int rc = FL_OK;
  for (size_t i = 0; rc == FL_OK && i < mk->n; i++) {
    item *it = &mk->item[i];
    if (!fl_maker_waits(mk, it) || !it->request.text) continue;
    rc = it->anchor.answer ? give_one(mk, it) : answer_one(mk, it);
  }
  if (rc == FL_OK && mk->n_live > 0) rc = run_streams(mk, true);
  for (size_t i = 0; rc == FL_OK && i < mk->n_live; i++) rc = take_answer(mk, i);
  drop_streams(mk);
  if (rc == FL_OK && mk->n_forced > 0) rc = run_forced(mk);
  return rc;
}
