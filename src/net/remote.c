/* remote.c - see remote.h. The stages are those of study.c; here each is one round of exchanges,
 * and a reply that cannot be used counts as one that was refused. */
#include "net/remote.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/mem.h"
#include "cartridge/cartridge.h"
#include "study/note.h"
#include "study/reject.h"
#include "net/remote_reply.h"

enum { MAX_ATTEMPTS = 4, MAX_TOP = 20 };
static const char path_chat[] = "/v1/chat/completions", path_tokenize[] = "/tokenize";

struct fl_remote {
  fl_remote_options o;
  const fl_model *m;
  fl_spellings *spellings; /* NULL with a local teacher */
  size_t there, here;      /* tokens of the first answered prompt; here is 0 before */
};

typedef struct item {
  const fl_conv_plan *plan;
  const fl_doc_text *doc;
  size_t first, end;
  uint32_t kind;
  bool done;
  char *request; /* NULL: none yet */
  fl_ids prompt; /* user turn of the request */
  fl_target_room room;
} item;

typedef struct maker {
  const fl_study_options *o;
  fl_remote *r;
  fl_pass *pass;
  fl_kv_pool *pool;
  fl_events *log;
  fl_err *err;
  item *item;
  size_t n;
  fl_exchange *x; /* [n], the first n_live in use */
  item **live;
  size_t n_live, unusable;
  uint32_t attempt;
  fl_err why; /* the first reason why a reply of the stage could not be used */
  fl_study_stats stats;
} maker;

/* --- the tokens there and here ------------------------------------------------------------- */

/* Texts that vocabularies cut differently. */
static const char probe[] = "The keeper's 1234 lamps\n\n  weren't lit; na\xc3\xafve \xe2\x82\xac"
                            "5,000.75 (see www.a-b.org)";

static bool same_tokens(const fl_json *reply, const fl_ids *own) {
  const fl_json *v = fl_json_get(reply, "tokens"), *e = v ? fl_json_first(v) : NULL;
  for (size_t i = 0; i < own->len; i++, e = fl_json_next(e)) {
    double id;
    if (!e || !fl_json_as_num(e, &id) || id != own->data[i]) return false;
  }
  return e == NULL;
}

/* Both spellings of the same question are sent: llama.cpp reads "content", vLLM "prompt". A server
 * without /tokenize is taken as it is: every token of every reply is looked up anyway. */
static int compare_tokens(fl_remote *r, fl_err *err) {
  fl_exchange x = { 0 };
  fl_ids own = { 0 };
  fl_json *reply = NULL, *body = fl_json_object();
  fl_buf text = { 0 };
  fl_json_set_str(body, "content", probe);
  fl_json_set_str(body, "prompt", probe);
  if (r->o.model) fl_json_set_str(body, "model", r->o.model);
  fl_json_set_bool(body, "add_special", false);
  fl_json_set_bool(body, "add_special_tokens", false);
  fl_json_print(&text, body, false);
  x.body = fl_buf_detach(&text);
  int rc = x.body ? r->o.post(r->o.ctx, path_tokenize, &x, 1, err)
                  : fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK)
    rc = fl_tokenize(fl_model_tokenizer(r->m), &own, probe, sizeof probe - 1, 0, err);
  if (rc == FL_OK && x.status == 200 &&
      fl_json_parse(&reply, x.reply.data ? x.reply.data : "", x.reply.len, NULL) == FL_OK &&
      fl_json_is_arr(fl_json_get(reply, "tokens")) && !same_tokens(reply, &own))
    rc = fl_fail(err, FL_EINPUT,
                 "the generator cuts text into other tokens than this model; let "
                 "the same model run there, or add --teacher local");
  fl_json_free(reply);
  fl_json_free(body);
  fl_ids_release(&own);
  fl_buf_release(&x.reply);
  fl_free(x.body);
  return rc;
}

int fl_remote_new(fl_remote **out, const fl_remote_options *o, const fl_model *model, fl_err *err) {
  fl_remote *r = fl_calloc(1, sizeof *r);
  if (!r) return fl_fail(err, FL_ENOMEM, "not enough memory for a generator");
  *r = (fl_remote){ .o = *o, .m = model };
  int rc = FL_OK;
  if (!o->local_teacher) {
    rc = fl_spellings_new(&r->spellings, fl_model_tokenizer(model), err);
    if (rc == FL_OK) rc = compare_tokens(r, err);
  }
  if (rc != FL_OK) {
    fl_remote_free(r);
    return rc;
  }
  *out = r;
  return FL_OK;
}

void fl_remote_free(fl_remote *r) {
  if (!r) return;
  fl_spellings_free(r->spellings);
  fl_free(r);
}

bool fl_remote_prompt_tokens(const fl_remote *r, size_t *there, size_t *here) {
  *there = r->there;
  *here = r->here;
  return r->here > 0;
}

/* --- bodies -------------------------------------------------------------------------------- */

static const fl_seed_kind *seed_of(const maker *mk, const item *it) {
  return mk->o->seeds ? &mk->o->seeds[it->kind] : &fl_seed_kinds[it->kind];
}

static const char *chunk_of(const item *it, size_t *len) {
  return fl_doc_text_span(it->doc, it->first, it->end, len);
}

static void put_message(fl_buf *b, const char *role, const char *text, size_t len) {
  fl_jsonw_open(b, NULL, '{');
  fl_jsonw_str(b, "role", role);
  fl_jsonw_strn(b, "content", text, len);
  fl_jsonw_close(b, '}');
}

/* A chat completion about the item's chunk. Thinking is switched off where the server knows how. */
static char *body_of(const maker *mk, const item *it, const char *user, bool bot_b) {
  fl_buf b = { 0 }, system = { 0 };
  size_t len;
  const char *chunk = chunk_of(it, &len);
  fl_rng rng =
      fl_rng_stream(mk->o->seed, FL_RNG_SAMPLE, it->plan->doc, it->plan->round, it->plan->conv);
  rng.index = mk->attempt;
  fl_buf_puts(&system, fl_wrap_head);
  fl_buf_append(&system, chunk, len);
  fl_buf_puts(&system, fl_wrap_tail);
  fl_jsonw_open(&b, NULL, '{');
  fl_jsonw_open(&b, "messages", '[');
  put_message(&b, "system", system.data ? system.data : "", system.len);
  put_message(&b, "user", user, strlen(user));
  fl_jsonw_close(&b, ']');
  fl_jsonw_num(&b, "temperature", bot_b ? 0.0 : mk->o->temperature);
  fl_jsonw_u64(&b, "max_tokens", bot_b ? mk->o->max_a : mk->o->max_q);
  fl_jsonw_u64(&b, "seed", fl_rng_below(&rng, INT32_MAX));
  if (mk->r->o.model) fl_jsonw_str(&b, "model", mk->r->o.model);
  if (bot_b && !mk->r->o.local_teacher) {
    fl_jsonw_bool(&b, "logprobs", true);
    fl_jsonw_u64(&b, "top_logprobs", mk->o->top_k < MAX_TOP ? mk->o->top_k : (size_t)MAX_TOP);
  }
  fl_jsonw_open(&b, "chat_template_kwargs", '{');
  fl_jsonw_bool(&b, "enable_thinking", false);
  fl_jsonw_close(&b, '}');
  fl_jsonw_close(&b, '}');
  const bool oom = system.oom;
  fl_buf_release(&system);
  if (oom) b.oom = true;
  char *out = fl_buf_detach(&b);
  fl_buf_release(&b);
  return out;
}

static int add_exchange(maker *mk, item *it, const char *user, bool bot_b) {
  fl_exchange *x = &mk->x[mk->n_live];
  *x = (fl_exchange){ .body = body_of(mk, it, user, bot_b) };
  if (!x->body) return fl_fail(mk->err, FL_ENOMEM, "not enough memory for a request");
  mk->live[mk->n_live++] = it;
  return FL_OK;
}

static void drop_exchanges(maker *mk) {
  for (size_t i = 0; i < mk->n_live; i++) {
    fl_free(mk->x[i].body);
    fl_buf_release(&mk->x[i].reply);
  }
  mk->n_live = mk->unusable = 0;
  mk->why = (fl_err){ 0 };
}

/* --- replies ------------------------------------------------------------------------------- */

static void emit(maker *mk, const item *it, const char *answer, fl_reject why, const char *of,
                 size_t n_supervised) {
  fl_study_log(mk->log, &(fl_study_note){ .plan = it->plan,
                                          .kind = seed_of(mk, it)->kind,
                                          .first = it->first,
                                          .end = it->end,
                                          .teacher = NAN,
                                          .request = it->request,
                                          .request_len = it->request ? strlen(it->request) : 0,
                                          .answer = answer,
                                          .answer_len = answer ? strlen(answer) : 0,
                                          .n_supervised = n_supervised,
                                          .attempt = mk->attempt,
                                          .why = why,
                                          .of = of });
}

static void refuse(maker *mk, item *it, const char *answer, fl_reject why, const char *of) {
  emit(mk, it, answer, why, of, 0);
  mk->stats.rejected++;
  fl_free(it->request);
  it->request = NULL;
}

/* A reply that is no answer: the conversation tries again. */
static void unusable(maker *mk, item *it, const char *reason) {
  mk->unusable++;
  if (!mk->why.text[0]) fl_fail(&mk->why, FL_EFAIL, "%s", reason);
  mk->stats.rejected++;
  fl_free(it->request);
  it->request = NULL;
}

/* False: the reply was none and is dealt with. */
static bool read_reply(maker *mk, size_t i, fl_reply_text *out, int *rc) {
  const fl_exchange *x = &mk->x[i];
  fl_err why = { 0 };
  *rc = FL_OK;
  if (x->status != 200) {
    unusable(mk, mk->live[i], x->reason[0] ? x->reason : "no answer");
    return false;
  }
  *rc = fl_reply_text_read(out, &x->reply, &why);
  if (*rc == FL_OK) return true;
  if (*rc == FL_EINPUT) {
    unusable(mk, mk->live[i], why.text);
    *rc = FL_OK;
  } else {
    fl_fail(mk->err, *rc, "%s", why.text);
  }
  return false;
}

static fl_reject judge(const fl_ids *ids, const fl_bot_text *text, bool cut, size_t max_tokens) {
  const fl_written w = { .ids = ids->data + text->n_think,
                         .n_ids = ids->len - text->n_think,
                         .len = text->len,
                         .max_tokens = max_tokens,
                         .cut = cut };
  return fl_reject_judge(&w);
}

static int take_request(maker *mk, size_t i) {
  item *it = mk->live[i];
  const fl_tokenizer *t = fl_model_tokenizer(mk->r->m);
  fl_reply_text r = { 0 };
  fl_ids ids = { 0 };
  fl_bot_text text = { 0 };
  int rc;
  if (!read_reply(mk, i, &r, &rc)) return rc;
  rc = fl_tokenize(t, &ids, r.text, r.len, FL_TOK_SPECIAL | FL_TOK_CONTINUE, mk->err);
  if (rc == FL_OK) rc = fl_bot_text_read(&text, t, &ids, mk->err);
  if (rc == FL_OK) {
    const fl_reject why = judge(&ids, &text, !r.stopped, mk->o->max_q);
    it->request = text.text;
    text.text = NULL;
    mk->stats.gen_tokens += ids.len;
    if (why != FL_REJECT_NOT) refuse(mk, it, NULL, why, "request");
  }
  fl_free(text.text);
  fl_ids_release(&ids);
  fl_reply_text_release(&r);
  return rc;
}

/* Notes the length of the first prompt there and here. */
static int measure_prompt(maker *mk, const item *it, const fl_reply_text *r) {
  const fl_json *usage = fl_json_get(r->root, "usage");
  uint64_t there;
  size_t len;
  const char *chunk = chunk_of(it, &len);
  fl_ids system = { 0 };
  if (mk->r->here > 0 || !usage || !fl_json_get_u64(usage, "prompt_tokens", &there)) return FL_OK;
  int rc = fl_wrapped_system(&system, mk->r->m, chunk, len, 0, mk->err);
  if (rc == FL_OK) {
    mk->r->there = (size_t)there;
    mk->r->here = system.len + it->prompt.len;
  }
  fl_ids_release(&system);
  return rc;
}

/* Tokens of the answer and the teacher's rows, from the reply or from here. */
static int answer_tokens(maker *mk, item *it, const fl_reply_text *r, fl_ids *ids, int32_t *stop,
                         fl_err *err) {
  const fl_model *m = mk->r->m;
  const int32_t end = fl_chat_end_of_turn(fl_model_template(m), fl_model_tokenizer(m));
  const int32_t usual = end >= 0 ? end : fl_tokenizer_eos(fl_model_tokenizer(m));
  int rc;
  it->room.n_rows = 0;
  if (mk->r->o.local_teacher) {
    size_t len;
    const char *chunk = chunk_of(it, &len);
    *stop = usual;
    rc = fl_tokenize(fl_model_tokenizer(m), ids, r->text, r->len, FL_TOK_CONTINUE, err);
    if (rc == FL_OK && ids->len > 0 && ids->len <= mk->o->max_a)
      rc = fl_teach_here(&it->room, &it->prompt, ids, chunk, len, mk->o, mk->pass, mk->pool, err);
    return rc;
  }
  rc = fl_reply_text_tokens(ids, &it->room, stop, r, mk->r->spellings, m, mk->o->top_mass, err);
  /* Servers that leave the end out of their list: it was taken, so it is sure. */
  if (rc == FL_OK && *stop < 0 && r->stopped) {
    *stop = usual;
    fl_target_room_certain(&it->room, usual);
  }
  return rc;
}

static int hand_out(maker *mk, item *it, const fl_ids *ids, int32_t stop, fl_bot_text *text,
                    fl_conv *out) {
  fl_conv c = { .kind = it->kind, .first = it->first, .end = it->end };
  int rc = fl_conv_build(&c, &it->prompt, ids, stop, text->n_think, &it->room, mk->err);
  if (rc == FL_OK && mk->o->seeds) {
    c.kind = FL_N_SEED_KINDS;
    c.kind_name = fl_strdup(seed_of(mk, it)->kind);
    if (!c.kind_name) rc = fl_fail(mk->err, FL_ENOMEM, "out of memory for a conversation");
  }
  if (rc != FL_OK) {
    fl_conv_release(&c);
    return rc;
  }
  emit(mk, it, text->text, FL_REJECT_NOT, NULL, c.targets.n_rows);
  c.request = it->request;
  c.answer = text->text;
  it->request = text->text = NULL;
  it->done = true;
  *out = c;
  return FL_OK;
}

static int take_answer(maker *mk, size_t i, fl_conv *out) {
  item *it = mk->live[i];
  fl_reply_text r = { 0 };
  fl_ids ids = { 0 };
  fl_bot_text text = { 0 };
  int32_t stop = -1;
  int rc;
  fl_err why_not = { 0 };
  if (!read_reply(mk, i, &r, &rc)) return rc;
  rc = answer_tokens(mk, it, &r, &ids, &stop, &why_not);
  if (rc == FL_EFAIL) {
    unusable(mk, it, why_not.text);
    rc = FL_OK;
    goto done;
  }
  if (rc != FL_OK) fl_fail(mk->err, rc, "%s", why_not.text);
  if (rc == FL_OK && !mk->r->o.local_teacher) rc = measure_prompt(mk, it, &r);
  if (rc == FL_OK) rc = fl_bot_text_read(&text, fl_model_tokenizer(mk->r->m), &ids, mk->err);
  if (rc == FL_OK) {
    fl_reject why = judge(&ids, &text, !r.stopped, mk->o->max_a);
    if (why == FL_REJECT_NOT && stop < 0) why = FL_REJECT_CUT; /* no end token to learn */
    if (why == FL_REJECT_NOT && (ids.len > mk->o->max_a || text.n_think >= ids.len))
      why = FL_REJECT_LONG;
    mk->stats.gen_tokens += ids.len;
    if (why == FL_REJECT_NOT) rc = hand_out(mk, it, &ids, stop, &text, out);
    else refuse(mk, it, text.text, why, "answer");
  }
done:
  fl_free(text.text);
  fl_ids_release(&ids);
  fl_reply_text_release(&r);
  return rc;
}

/* --- stages -------------------------------------------------------------------------------- */

static int exchange(maker *mk) {
  if (mk->n_live == 0) return FL_OK;
  return mk->r->o.post(mk->r->o.ctx, path_chat, mk->x, mk->n_live, mk->err);
}

/* A stage that came to nothing at all is the server's or the address's fault. */
static int all_well(const maker *mk) {
  if (mk->n_live == 0 || mk->unusable < mk->n_live) return FL_OK;
  return fl_fail(mk->err, FL_EFAIL, "the generator is of no use: %s", mk->why.text);
}

/* A request that is given needs no exchange. */
static int ask_one(maker *mk, item *it) {
  const fl_seed_kind *seed = seed_of(mk, it);
  if (!seed->is_request) return add_exchange(mk, it, seed->text, false);
  it->request = fl_strdup(seed->text);
  return it->request ? FL_OK : fl_fail(mk->err, FL_ENOMEM, "not enough memory for a request");
}

static int ask(maker *mk) {
  int rc = FL_OK;
  for (size_t i = 0; i < mk->n && rc == FL_OK; i++)
    if (!mk->item[i].done) rc = ask_one(mk, &mk->item[i]);
  if (rc == FL_OK) rc = exchange(mk);
  for (size_t i = 0; i < mk->n_live && rc == FL_OK; i++) rc = take_request(mk, i);
  if (rc == FL_OK) rc = all_well(mk);
  drop_exchanges(mk);
  return rc;
}

/* The user turn, if it and an answer find room behind the chunk. */
static int prompt_of(maker *mk, item *it, bool *fits) {
  const fl_model *m = mk->r->m;
  fl_ids_reset(&it->prompt);
  int rc = fl_chat_user(&it->prompt, fl_model_template(m), fl_model_tokenizer(m), it->request,
                        strlen(it->request), true, false, mk->err);
  if (rc == FL_OK && it->prompt.oom)
    rc = fl_fail(mk->err, FL_ENOMEM, "not enough memory for a request");
  *fits = it->end - it->first + it->prompt.len + mk->o->max_a + 64 <= fl_model_hparams(m)->n_ctx;
  return rc;
}

static int answer(maker *mk, fl_conv *out) {
  int rc = FL_OK;
  for (size_t i = 0; i < mk->n && rc == FL_OK; i++) {
    item *it = &mk->item[i];
    bool fits = false;
    if (it->done || !it->request) continue;
    rc = prompt_of(mk, it, &fits);
    if (rc != FL_OK) break;
    if (fits) rc = add_exchange(mk, it, it->request, true);
    else refuse(mk, it, NULL, FL_REJECT_LONG, "request");
  }
  if (rc == FL_OK) rc = exchange(mk);
  for (size_t i = 0; i < mk->n_live && rc == FL_OK; i++)
    rc = take_answer(mk, i, &out[mk->live[i] - mk->item]);
  if (rc == FL_OK) rc = all_well(mk);
  drop_exchanges(mk);
  return rc;
}

static size_t n_open(const maker *mk) {
  size_t n = 0;
  for (size_t i = 0; i < mk->n; i++) n += !mk->item[i].done;
  return n;
}

static int set_up(maker *mk, const fl_conv_plan *plans, const fl_doc_text *const *docs) {
  const size_t n_vocab = fl_model_hparams(mk->r->m)->n_vocab;
  mk->item = fl_calloc(mk->n, sizeof *mk->item);
  mk->x = fl_calloc(mk->n, sizeof *mk->x);
  mk->live = fl_calloc(mk->n, sizeof *mk->live);
  if (!mk->item || !mk->x || !mk->live)
    return fl_fail(mk->err, FL_ENOMEM, "out of memory for %zu conversations", mk->n);
  int rc = FL_OK;
  for (size_t i = 0; i < mk->n && rc == FL_OK; i++) {
    item *it = &mk->item[i];
    *it = (item){ .plan = &plans[i], .doc = docs[i], .kind = fl_study_kind(mk->o, &plans[i]) };
    fl_study_chunk(mk->o, docs[i], &plans[i], &it->first, &it->end);
    rc = fl_target_room_init(&it->room, mk->o->max_a + 1,
                             mk->o->top_k < n_vocab ? mk->o->top_k : n_vocab, mk->err);
  }
  return rc;
}

static void tear_down(maker *mk) {
  for (size_t i = 0; mk->item && i < mk->n; i++) {
    fl_free(mk->item[i].request);
    fl_ids_release(&mk->item[i].prompt);
    fl_target_room_release(&mk->item[i].room);
  }
  fl_free(mk->item);
  fl_free(mk->x);
  fl_free(mk->live);
}

int fl_remote_make(fl_conv *out, bool *ok, const fl_conv_plan *plans,
                   const fl_doc_text *const *docs, size_t n, const fl_study_options *o,
                   fl_remote *r, fl_pass *pass, fl_kv_pool *pool, fl_events *log,
                   fl_study_stats *stats, fl_err *err) {
  maker mk = { .o = o, .r = r, .pass = pass, .pool = pool, .log = log, .err = err, .n = n };
  const double start_s = fl_now_s();
  if (o->turns > 1)
    return fl_fail(err, FL_EUSAGE, "--turns: a remote generator makes one; leave it out");
  if (fl_mix_is_anchored(&o->mix))
    return fl_fail(err, FL_EUSAGE,
                   "--kinds: a remote generator makes the seeds alone; leave it out");
  memset(out, 0, n * sizeof *out);
  memset(ok, 0, n * sizeof *ok);
  int rc = set_up(&mk, plans, docs);
  for (mk.attempt = 0; mk.attempt < MAX_ATTEMPTS && rc == FL_OK && n_open(&mk) > 0; mk.attempt++) {
    rc = ask(&mk);
    if (rc == FL_OK) rc = answer(&mk, out);
  }
  if (rc == FL_OK) mk.stats.skipped = n_open(&mk);
  for (size_t i = 0; i < n; i++) {
    if (rc != FL_OK) fl_conv_release(&out[i]);
    ok[i] = rc == FL_OK && mk.item[i].done;
  }
  tear_down(&mk);
  mk.stats.gen_s = fl_now_s() - start_s;
  if (rc == FL_OK && stats) *stats = mk.stats;
  return rc;
}
