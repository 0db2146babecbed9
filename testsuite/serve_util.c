/* serve_util.c - see serve_util.h. */
#include "serve_util.h"

#include "scratch.h"
#include "answer/answer.h"
#include "trainer/trainer.h"

const char *const question[QUESTIONS] = {
  "Who keeps the lighthouse?",
  "What does the bakery sell?",
  "When was the library founded?",
  "How deep is the mine?",
  "Repeat the first sentence about the lighthouse.",
  "What colour is the door of the bakery?",
  "Who wrote to the library?",
  "What is mined there?",
};

const fl_sampling warm = { .temperature = 0.9,
                           .top_k = 20,
                           .top_p = 0.95,
                           .min_p = 0,
                           .repeat_penalty = 1.1,
                           .repeat_last = 64 };

/* --- a fleet --- */

static const char *fleet_dir(void) { return scratch("fleet"); }
const char *spill_dir(void) { return scratch("spill"); }

void fleet_train(size_t rounds, bool resume) {
  fl_model *m;
  fl_err err = { 0 };
  fl_source_list docs = { 0 };
  fl_fleet *f;
  fl_train_options o;
  const char *path = fixture("embedded/docs");
  ck_assert_msg(fl_source_read(&docs, &path, 1, false, &err) == FL_OK, "%s", err.text);
  ck_assert_msg(fl_model_open(&m, fixture("embedded/model.gguf"), NULL, NULL, &err) == FL_OK, "%s",
                err.text);
  fl_train_options_default(&o);
  o.p = FLEET_ROWS;
  o.rounds = rounds;
  o.accum = 2;
  o.lr = 0.03;
  o.max_a = 24;
  o.max_q = 24;
  o.chunk_min = 64;
  o.chunk_max = 128;
  o.embed_chunk = 100;
  o.heldout = 0;
  const fl_open_options how = { .resume = resume, .allow_add = true };
  ck_assert_msg(fl_fleet_open(&f, fleet_dir(), m, NULL, &docs, &o, &how, &err) == FL_OK, "%s",
                err.text);
  ck_assert_msg(fl_fleet_train(f, NULL, &err) == FL_OK, "%s", err.text);
  fl_fleet_close(f);
  fl_model_close(m);
  fl_source_release(&docs);
}

static void remove_in(const char *sub) {
  char path[1200];
  DIR *d = opendir(sub);
  for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    snprintf(path, sizeof path, "%s/%s", sub, e->d_name);
    unlink(path);
  }
  if (d != NULL) closedir(d);
  rmdir(sub);
}

void fleet_make(void) {
  scratch_begin();
  fleet_train(2, false);
}

void spill_drop(void) { remove_in(spill_dir()); }

void fleet_drop(void) {
  remove_in(fleet_dir());
  spill_drop();
  scratch_end();
}

/* --- what `flotilla ask` says --- */

reference reference_open(void) {
  reference x = { .r = rig_open("embedded/model.gguf", 1) };
  fl_err err = { 0 };
  const fl_open_options how = { .read_only = true };
  ck_assert_msg(fl_fleet_open(&x.f, fleet_dir(), x.r.m, x.r.team, NULL, NULL, &how, &err) == FL_OK,
                "%s", err.text);
  return x;
}

void reference_close(reference *x) {
  fl_fleet_close(x->f);
  rig_close(&x->r);
}

fl_hits reference_hits(reference *x, const char *q) {
  const fl_rag_options rag = { .docs = 2, .chunks = 8, .floor = -1 };
  fl_hits h = { 0 };
  fl_err err = { 0 };
  ck_assert_msg(fl_fleet_retrieve(x->f, q, strlen(q), &rag, &h, &err) == FL_OK, "%s", err.text);
  return h;
}

fl_ask_options reference_options(const size_t *docs, size_t n) {
  return (fl_ask_options){ .arm = FL_ARM_CARTRIDGE,
                           .docs = docs,
                           .n_docs = n,
                           .sampling = FL_SAMPLING_GREEDY,
                           .max_new = 24,
                           .kv = FL_KV_F32 };
}

char *reference_ask(reference *x, const char *q, const fl_sampling *s, uint64_t seed) {
  fl_hits h = reference_hits(x, q);
  size_t docs[8];
  fl_reply reply = { 0 };
  fl_err err = { 0 };
  for (size_t i = 0; i < h.n_docs; i++) docs[i] = h.doc[i].doc;
  fl_ask_options o = reference_options(docs, h.n_docs);
  if (s != NULL) o.sampling = *s;
  o.seed = seed;
  ck_assert_msg(fl_fleet_ask(x->f, q, strlen(q), &o, &reply, &err) == FL_OK, "%s", err.text);
  char *text = fl_strdup(reply.text);
  fl_reply_release(&reply);
  fl_hits_release(&h);
  return text;
}

/* --- an engine --- */

fl_engine_options small_options(void) {
  fl_engine_options o;
  fl_engine_options_default(&o);
  o.n_slots = 4;
  o.max_bytes = (uint64_t)256 << 20;
  o.kv = FL_KV_F32;
  o.reload_s = 0;
  return o;
}

served serve(const fl_engine_options *o, bool with_fleet) {
  served s = { .r = rig_open("embedded/model.gguf", 2) };
  fl_fleet *f = NULL;
  fl_err err = { 0 };
  const fl_open_options how = { .read_only = true };
  if (with_fleet)
    ck_assert_msg(fl_fleet_open(&f, fleet_dir(), s.r.m, s.r.team, NULL, NULL, &how, &err) == FL_OK,
                  "%s", err.text);
  ck_assert_msg(fl_engine_start(&s.e, f, s.r.m, s.r.team, o, NULL, &err) == FL_OK, "%s", err.text);
  return s;
}

void serve_end(served *s, double grace_s) {
  fl_engine_stop(s->e, grace_s);
  rig_close(&s->r);
}

/* --- a client --- */

static void note_start(client *c, const fl_job_event *e) {
  c->starts++;
  c->n_docs = e->start.n_docs;
  c->rows = e->start.rows;
  c->prompt = e->start.prompt_tokens;
  c->cached = e->start.cached_tokens;
  for (size_t i = 0; i < e->start.n_docs; i++) {
    const char *base = strrchr(e->start.docs[i].name, '/');
    strncat(c->docs, base != NULL ? base + 1 : e->start.docs[i].name,
            sizeof c->docs - strlen(c->docs) - 1);
    strncat(c->docs, " ", sizeof c->docs - strlen(c->docs) - 1);
  }
}

static void note_piece(client *c, const fl_job_event *e) {
  fl_buf_append(&c->text, e->text.data, e->text.len);
  c->deltas++;
  c->tokens += e->n_tokens;
  for (size_t i = 0; i < e->n_tokens; i++) c->logprob += (double)e->token[i].logprob;
}

static void note_end(client *c, const fl_job_event *e) {
  c->ends++;
  c->code = e->end.code;
  c->finish = e->end.finish;
  c->completion = e->end.completion_tokens;
  c->drafted = e->end.drafted;
  c->accepted = e->end.accepted;
  snprintf(c->error, sizeof c->error, "%s", e->end.error != NULL ? e->end.error : "");
  snprintf(c->stop, sizeof c->stop, "%s", e->end.stop_string != NULL ? e->end.stop_string : "");
}

static bool client_event(void *ctx, fl_job_event *e) {
  client *c = ctx;
  pthread_mutex_lock(&c->mu);
  if (e->started) note_start(c, e);
  if (e->text.len > 0 || e->n_tokens > 0) note_piece(c, e);
  if (e->ended) note_end(c, e);
  const bool go_on = c->hang_up_after == 0 || c->deltas < c->hang_up_after;
  pthread_cond_broadcast(&c->moved);
  pthread_mutex_unlock(&c->mu);
  return go_on;
}

client *client_new(void) {
  client *c = fl_calloc(1, sizeof *c);
  pthread_mutex_init(&c->mu, NULL);
  pthread_cond_init(&c->moved, NULL);
  return c;
}

void client_free(client *c) {
  fl_job_release(c->job);
  fl_buf_release(&c->text);
  pthread_mutex_destroy(&c->mu);
  pthread_cond_destroy(&c->moved);
  fl_free(c);
}

const char *client_text(const client *c) { return c->text.data != NULL ? c->text.data : ""; }

static fl_chat_request owned(const query *q) {
  fl_chat_request r = { .thinking = q->thinking,
                        .sampling = q->sampling,
                        .seed = q->seed,
                        .max_new = q->max_new,
                        .logprobs = q->logprobs,
                        .top_logprobs = q->top_logprobs,
                        .rag = q->rag,
                        .owner = q->owner };
  for (size_t i = 0; i < q->n_msgs; i++)
    ck_assert_int_eq(fl_chat_request_say(&r, q->msgs[i].role, q->msgs[i].text, q->msgs[i].len),
                     FL_OK);
  for (size_t i = 0; i < q->n_stop; i++)
    ck_assert_int_eq(fl_chat_request_list(r.stop, &r.n_stop, q->stop[i]), FL_OK);
  for (size_t i = 0; i < q->n_docs; i++)
    ck_assert_int_eq(fl_chat_request_list(r.docs, &r.n_docs, q->docs[i]), FL_OK);
  if (q->conversation != NULL) r.conversation = fl_strdup(q->conversation);
  if (q->sampling.n_bias > 0) {
    r.bias = fl_calloc(q->sampling.n_bias, sizeof *r.bias);
    memcpy(r.bias, q->sampling.bias, q->sampling.n_bias * sizeof *r.bias);
    r.sampling.bias = r.bias;
  }
  return r;
}

/* The request is the engine's when it is taken, and ours as it was when it is refused. */
int client_submit(client *c, fl_engine *e, const query *q, fl_err *err) {
  const fl_job_sink sink = { c, client_event };
  fl_chat_request r = owned(q);
  const int rc = fl_engine_submit(e, &r, &sink, &c->job, err);
  const fl_chat_request *held = rc == FL_OK ? fl_job_request(c->job) : &r;
  ck_assert_uint_eq(r.n_msgs, rc == FL_OK ? 0 : q->n_msgs);
  ck_assert_uint_eq(held->n_msgs, q->n_msgs);
  if (q->n_msgs > 0) ck_assert_mem_eq(held->msgs[0].text, q->msgs[0].text, q->msgs[0].len);
  fl_chat_request_release(&r);
  return rc;
}

client *client_begin(fl_engine *e, const query *r) {
  client *c = client_new();
  fl_err err = { 0 };
  ck_assert_msg(client_submit(c, e, r, &err) == FL_OK, "%s", err.text);
  return c;
}

void client_wait_end(client *c) {
  pthread_mutex_lock(&c->mu);
  while (c->ends == 0) pthread_cond_wait(&c->moved, &c->mu);
  pthread_mutex_unlock(&c->mu);
}

void client_wait_ok(client *c) {
  client_wait_end(c);
  ck_assert_msg(c->code == FL_OK, "%s", c->error);
}

void client_wait_delta(client *c) {
  pthread_mutex_lock(&c->mu);
  while (c->ends == 0 && c->deltas == 0) pthread_cond_wait(&c->moved, &c->mu);
  pthread_mutex_unlock(&c->mu);
}

/* --- requests --- */

fl_buf words(size_t n) {
  fl_buf b = { 0 };
  for (size_t i = 0; i < n; i++) fl_buf_puts(&b, "word ");
  return b;
}

fl_message user_says(const char *text) { return (fl_message){ FL_ROLE_USER, text, strlen(text) }; }
fl_message model_said(const char *text) {
  return (fl_message){ FL_ROLE_ASSISTANT, text, strlen(text) };
}

query request_of(const fl_message *msgs, size_t n) {
  return (query){ .msgs = msgs, .n_msgs = n, .sampling = FL_SAMPLING_GREEDY, .max_new = 24 };
}

client *converse(fl_engine *e, const query *r) {
  client *c = client_begin(e, r);
  client_wait_ok(c);
  ck_assert_int_eq(c->starts, 1);
  ck_assert_int_eq(c->ends, 1);
  return c;
}

client *ask(fl_engine *e, const char *text) {
  fl_message m = user_says(text);
  query r = request_of(&m, 1);
  return converse(e, &r);
}
