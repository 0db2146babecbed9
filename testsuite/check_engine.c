/* check_engine.c - the server's answers are those of `flotilla ask` and `flotilla chat`, alone and
 * in company, with and without speculation, with and without rows used again. */
#include <poll.h>

#include "serve_util.h"

static const char *const question[] = {
  "Who keeps the lighthouse?", "What does the bakery sell?", "When was the library founded?",
  "How deep is the mine?", "Repeat the first sentence about the lighthouse.",
  "What colour is the door of the bakery?", "Who wrote to the library?", "What is mined there?",
};
enum { QUESTIONS = sizeof question / sizeof *question };

static void make_fleet(void) {
  scratch_begin();
  fleet_train(2, false);
}

static void drop_fleet(void) {
  remove_in(fleet_dir());
  remove_in(scratch("spill"));
  scratch_end();
}

/* What `flotilla ask` says, from a fleet of its own. */
typedef struct reference {
  rig r;
  fl_fleet *f;
} reference;

static reference reference_open(void) {
  reference x = { .r = rig_open("embedded/model.gguf", 1) };
  fl_err err = { 0 };
  const fl_open_options how = { .read_only = true };
  ck_assert_msg(fl_fleet_open(&x.f, fleet_dir(), x.r.m, x.r.team, NULL, NULL, &how, &err) == FL_OK,
                "%s", err.text);
  return x;
}

static void reference_close(reference *x) {
  fl_fleet_close(x->f);
  rig_close(&x->r);
}

static fl_hits reference_hits(reference *x, const char *q) {
  const fl_rag_options rag = { .docs = 2, .chunks = 8, .floor = -1 };
  fl_hits h = { 0 };
  fl_err err = { 0 };
  ck_assert_msg(fl_fleet_retrieve(x->f, q, strlen(q), &rag, &h, &err) == FL_OK, "%s", err.text);
  return h;
}

static fl_ask_options reference_options(const size_t *docs, size_t n) {
  return (fl_ask_options){ .arm = FL_ARM_CARTRIDGE, .docs = docs, .n_docs = n,
                           .sampling = FL_SAMPLING_GREEDY, .max_new = 24, .kv = FL_KV_F32 };
}

static char *reference_ask(reference *x, const char *q, const fl_sampling *s, uint64_t seed) {
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

START_TEST(test_equals_ask) {
  reference x = reference_open();
  fl_engine_options o = small_options();
  o.speculate = _i == 1;
  served s = serve(&o, true);
  for (size_t i = 0; i < QUESTIONS; i++) {
    char *want = reference_ask(&x, question[i], NULL, 0);
    client *c = ask(s.e, question[i]);
    ck_assert_str_eq(client_text(c), want);
    ck_assert_uint_eq(c->n_docs, 2);
    ck_assert_uint_eq(c->rows, 2 * FLEET_ROWS);
    client_free(c);
    fl_free(want);
  }
  serve_end(&s, 0);
  reference_close(&x);
}
END_TEST


static const fl_sampling warm = { .temperature = 0.9, .top_k = 20, .top_p = 0.95, .min_p = 0,
                                  .repeat_penalty = 1.1, .repeat_last = 64 };

START_TEST(test_sampled_equals_ask) {
  reference x = reference_open();
  fl_engine_options o = small_options();
  o.speculate = _i == 1;
  served s = serve(&o, true);
  for (size_t i = 0; i < QUESTIONS; i++) {
    char *want = reference_ask(&x, question[i], &warm, 100 + i);
    fl_message m = user_says(question[i]);
    fl_job_request r = request_of(&m, 1);
    r.sampling = warm;
    r.seed = 100 + i;
    client *c = converse(s.e, &r);
    ck_assert_str_eq(client_text(c), want);
    client_free(c);
    fl_free(want);
  }
  serve_end(&s, 0);
  reference_close(&x);
}
END_TEST

/* --- conversations --- */

enum { TURNS = 4 };

/* What fl_chat says in turn after turn. */
static void reference_chat(reference *x, fl_arm arm, const char *const *q, char **answer) {
  fl_hits h = reference_hits(x, q[0]);
  size_t docs[8];
  fl_chat *chat;
  fl_err err = { 0 };
  for (size_t i = 0; i < h.n_docs; i++) docs[i] = h.doc[i].doc;
  fl_ask_options o = reference_options(docs, arm == FL_ARM_BARE ? 0 : h.n_docs);
  o.arm = arm;
  ck_assert_msg(fl_chat_new(&chat, x->f, &o, &err) == FL_OK, "%s", err.text);
  for (size_t i = 0; i < TURNS; i++) {
    fl_reply reply = { 0 };
    ck_assert_msg(fl_chat_turn(chat, q[i], strlen(q[i]), &reply, &err) == FL_OK, "%s", err.text);
    answer[i] = fl_strdup(reply.text);
    fl_reply_release(&reply);
  }
  fl_chat_free(chat);
  fl_hits_release(&h);
}

/* The history goes with every request, as clients do it. *rows: prompt and answer so far that a
 * slot can hold. Returns what was cached in all. */
static size_t converse_turns(fl_engine *e, fl_rag_mode rag, const char *const *q,
                             char *const *want) {
  fl_message m[2 * TURNS];
  char *said[TURNS];
  size_t cached = 0, held = 0;
  for (size_t i = 0; i < TURNS; i++) {
    m[2 * i] = user_says(q[i]);
    fl_job_request r = request_of(m, 2 * i + 1);
    r.rag = rag;
    client *c = converse(e, &r);
    if (want != NULL) ck_assert_str_eq(client_text(c), want[i]);
    /* All rows of the turns before: the prompt and the answer but for its last token. */
    if (want != NULL && i > 0) ck_assert_uint_eq(c->cached, held);
    held = c->prompt + (c->completion > 0 ? c->completion - 1 : 0);
    if (c->finish == FL_FINISH_STOP) held = c->prompt + c->completion;
    cached += c->cached;
    said[i] = fl_strdup(client_text(c));
    m[2 * i + 1] = model_said(said[i]);
    client_free(c);
  }
  for (size_t i = 0; i < TURNS; i++) fl_free(said[i]);
  return cached;
}

START_TEST(test_equals_chat) {
  reference x = reference_open();
  fl_engine_options o = small_options();
  o.speculate = _i & 1;
  const bool bare = _i & 2;
  served s = serve(&o, true);
  char *want[TURNS];
  for (size_t at = 0; at < 2; at++) {
    reference_chat(&x, bare ? FL_ARM_BARE : FL_ARM_CARTRIDGE, question + at, want);
    converse_turns(s.e, bare ? FL_RAG_NONE : FL_RAG_AUTO, question + at, want);
    for (size_t i = 0; i < TURNS; i++) fl_free(want[i]);
  }
  serve_end(&s, 0);
  reference_close(&x);
}
END_TEST

/* --- company --- */

enum { MIXED = 16 };

typedef struct mix {
  fl_message m[3];
  fl_job_request r;
} mix;

/* Different documents, lengths, samplings, histories, some of them the same conversation. */
static void make_mix(mix *x, size_t i) {
  static const char *const named[2][2] = { { "mine.md", "library" }, { "bakery" } };
  static const char *const stops[] = { "Fel", " is" };
  size_t n = 1;
  x->m[0] = user_says(question[i % QUESTIONS]);
  if (i % 3 == 0) {
    x->m[1] = model_said("At Tulby Mine the ore is tin.");
    x->m[2] = user_says(question[(i + 3) % QUESTIONS]);
    n = 3;
  }
  x->r = request_of(x->m, n);
  x->r.max_new = 4 + 3 * i;
  x->r.seed = i / 2;
  if (i % 4 == 1) x->r.sampling = warm;
  if (i % 5 == 2) x->r.rag = FL_RAG_NONE;
  if (i % 5 == 3) {
    x->r.rag = FL_RAG_NAMED;
    x->r.docs = named[i & 1];
    x->r.n_docs = 2 - (i & 1);
  }
  if (i % 7 == 6) {
    x->r.stop = stops;
    x->r.n_stop = 2;
  }
  x->r.thinking = i == 9;
}

static void run_mix(const fl_engine_options *o, bool together, char **text) {
  mix x[MIXED];
  client *c[MIXED];
  served s = serve(o, true);
  for (size_t i = 0; i < MIXED; i++) {
    fl_err err = { 0 };
    make_mix(&x[i], i);
    c[i] = client_new();
    ck_assert_msg(client_submit(c[i], s.e, &x[i].r, &err) == FL_OK, "%s", err.text);
    if (!together) client_wait_end(c[i]);
  }
  for (size_t i = 0; i < MIXED; i++) {
    client_wait_end(c[i]);
    ck_assert_msg(c[i]->code == FL_OK, "%s", c[i]->error);
    ck_assert_int_eq(c[i]->ends, 1);
    text[i] = fl_strdup(client_text(c[i]));
    client_free(c[i]);
  }
  serve_end(&s, 0);
}

START_TEST(test_company) {
  char *alone[MIXED], *text[MIXED];
  fl_engine_options o = small_options();
  o.speculate = false;
  o.n_slots = 1;
  run_mix(&o, false, alone);
  for (unsigned way = 0; way < 4; way++) {
    o.n_slots = way & 1 ? 16 : 3;
    o.speculate = way & 2;
    run_mix(&o, true, text);
    for (size_t i = 0; i < MIXED; i++) {
      ck_assert_msg(strcmp(text[i], alone[i]) == 0, "way %u job %zu: [%s] alone [%s]", way, i,
                    text[i], alone[i]);
      fl_free(text[i]);
    }
  }
  for (size_t i = 0; i < MIXED; i++) fl_free(alone[i]);
}
END_TEST

/* Rows of another slot with the same beginning are used, and change nothing. */
START_TEST(test_shared_beginning) {
  fl_engine_options o = small_options();
  served s = serve(&o, true);
  const char *first = question[0];
  fl_message m[3] = { user_says(first), model_said("One."), user_says("And then?") };
  fl_message k[3] = { user_says(first), model_said("Two."), user_says("And then?") };
  fl_job_request r = request_of(m, 3), q = request_of(k, 3);
  client *a = converse(s.e, &r);
  client *b = converse(s.e, &q);
  ck_assert_uint_eq(a->cached, 0);
  ck_assert_uint_gt(b->cached, 8);
  client *again = converse(s.e, &r); /* the first one's slot is still there */
  ck_assert_uint_eq(again->cached, again->prompt - 1);
  ck_assert_str_eq(client_text(again), client_text(a));
  client_free(again);
  o.n_slots = 1;
  served fresh = serve(&o, true);
  client *alone = converse(fresh.e, &q);
  ck_assert_str_eq(client_text(alone), client_text(b));
  client_free(alone);
  serve_end(&fresh, 0);
  client_free(a);
  client_free(b);
  serve_end(&s, 0);
}
END_TEST

/* --- documents --- */

START_TEST(test_named_documents) {
  fl_engine_options o = small_options();
  served s = serve(&o, true);
  static const char *const good[] = { "mine", "bakery.md" }, *const bad[] = { "mine", "palace" };
  fl_message m = user_says(question[0]);
  fl_job_request r = request_of(&m, 1);
  r.rag = FL_RAG_NAMED;
  r.docs = good;
  r.n_docs = 2;
  client *c = converse(s.e, &r);
  ck_assert_str_eq(c->docs, "mine.md bakery.md ");
  client_free(c);
  r.docs = bad;
  c = client_new();
  fl_err err = { 0 };
  ck_assert_int_eq(client_submit(c, s.e, &r, &err), FL_ENOENT);
  ck_assert_ptr_nonnull(strstr(err.text, "palace"));
  ck_assert_int_eq(c->ends, 0);
  client_free(c);
  r.rag = FL_RAG_NONE;
  c = converse(s.e, &r);
  ck_assert_uint_eq(c->n_docs, 0);
  ck_assert_uint_eq(c->rows, 0);
  client_free(c);
  serve_end(&s, 0);
}
END_TEST

/* The choice of the first turn stays, for the id or the opening; a floor that nothing reaches lets
 * the bare model answer. */
START_TEST(test_sticky) {
  fl_engine_options o = small_options();
  o.rag.docs = 1;
  served s = serve(&o, true);
  fl_message m[3] = { user_says("What is the ore of Tulby Mine?"), model_said("Tin."),
                      user_says("What does the bakery sell?") };
  fl_job_request r = request_of(m, 1);
  client *c = converse(s.e, &r);
  ck_assert_str_eq(c->docs, "mine.md ");
  client_free(c);
  r.n_msgs = 3;
  c = converse(s.e, &r);
  ck_assert_str_eq(c->docs, "mine.md ");
  client_free(c);
  r = request_of(m + 2, 1); /* another opening */
  c = converse(s.e, &r);
  ck_assert_str_eq(c->docs, "bakery.md ");
  client_free(c);
  r.conversation = "a";
  m[0] = user_says("What is the ore of Tulby Mine?");
  r.msgs = m;
  c = converse(s.e, &r);
  ck_assert_str_eq(c->docs, "mine.md ");
  client_free(c);
  r.msgs = m + 2; /* the same id: whatever is said */
  c = converse(s.e, &r);
  ck_assert_str_eq(c->docs, "mine.md ");
  client_free(c);
  serve_end(&s, 0);
  o.rag.floor = 0.999;
  s = serve(&o, true);
  c = ask(s.e, question[0]);
  ck_assert_uint_eq(c->n_docs, 0);
  client_free(c);
  serve_end(&s, 0);
}
END_TEST

START_TEST(test_adaptive) {
  fl_engine_options o = small_options();
  o.rag.docs = 1;
  o.adaptive = true;
  served s = serve(&o, true);
  fl_message m[3] = { user_says("What is the ore of Tulby Mine?"), model_said("Tin."),
                      user_says("What does the bakery sell?") };
  fl_job_request r = request_of(m, 1);
  client *c = converse(s.e, &r);
  ck_assert_str_eq(c->docs, "mine.md ");
  client_free(c);
  r.n_msgs = 3;
  c = converse(s.e, &r);
  ck_assert_str_eq(c->docs, "bakery.md ");
  ck_assert_uint_eq(c->cached, 0);
  client_free(c);
  serve_end(&s, 0);
}
END_TEST

/* --- generations --- */

/* A training run commits while 16 clients talk: nobody fails, those who talk keep their rows and
 * their documents, a new conversation gets what `flotilla ask` says now. */
START_TEST(test_reload) {
  enum { CLIENTS = 16 };
  fl_engine_options o = small_options();
  o.n_slots = CLIENTS + 2; /* nobody is pushed out */
  o.reload_s = 0.001;
  served s = serve(&o, true);
  fl_engine_stats before, after;
  client *c[CLIENTS];
  fl_message m[CLIENTS][3];
  char id[CLIENTS][8];
  fl_engine_stats_get(s.e, &before);
  for (size_t i = 0; i < CLIENTS; i++) {
    m[i][0] = user_says(question[i % QUESTIONS]);
    snprintf(id[i], sizeof id[i], "c%zu", i);
    fl_job_request r = request_of(m[i], 1);
    r.conversation = id[i];
    r.sampling = warm;
    r.seed = i;
    r.max_new = 100;
    c[i] = client_new();
    ck_assert_int_eq(client_submit(c[i], s.e, &r, NULL), FL_OK);
  }
  for (size_t i = 0; i < CLIENTS; i++) client_wait_delta(c[i]); /* each has its documents */
  fleet_train(1, true);
  for (size_t i = 0; i < CLIENTS; i++) {
    client_wait_end(c[i]);
    ck_assert_msg(c[i]->code == FL_OK, "%s", c[i]->error);
  }
  do {
    client_free(ask(s.e, question[1])); /* gives the engine a step to look */
    fl_engine_stats_get(s.e, &after);
  } while (after.generation == before.generation);
  ck_assert_uint_gt(after.generation, before.generation);
  ck_assert_uint_ge(after.reloads, 1);
  for (size_t i = 0; i < CLIENTS; i += 5) {
    m[i][1] = model_said(client_text(c[i]));
    m[i][2] = user_says("Is that so?");
    fl_job_request r = request_of(m[i], 3);
    r.conversation = id[i];
    client *next = converse(s.e, &r);
    ck_assert_str_eq(next->docs, c[i]->docs);
    ck_assert_uint_ge(next->cached, c[i]->prompt);
    client_free(next);
  }
  reference x = reference_open();
  char *want = reference_ask(&x, question[4], NULL, 0);
  client *fresh = ask(s.e, question[4]);
  ck_assert_str_eq(client_text(fresh), want);
  fl_free(want);
  reference_close(&x);
  client_free(fresh);
  for (size_t i = 0; i < CLIENTS; i++) client_free(c[i]);
  serve_end(&s, 0);
}
END_TEST

/* --- limits --- */

START_TEST(test_queue_full) {
  enum { MANY = 6 };
  fl_engine_options o = small_options();
  o.n_slots = 1;
  o.queue = 2;
  served s = serve(&o, false);
  client *c[MANY];
  fl_message m = user_says(question[0]);
  fl_job_request r = request_of(&m, 1);
  r.max_new = 400;
  size_t refused = 0;
  for (size_t i = 0; i < MANY; i++) {
    fl_err err = { 0 };
    c[i] = client_new();
    int rc = client_submit(c[i], s.e, &r, &err);
    ck_assert(rc == FL_OK || rc == FL_EFULL);
    if (rc == FL_EFULL) refused++;
  }
  ck_assert_uint_ge(refused, 1); /* 3 places; an answer takes far longer than a submission */
  ck_assert(fl_engine_retry_after_s(s.e) >= 1);
  for (size_t i = 0; i < MANY; i++)
    if (c[i]->job != NULL) fl_job_cancel(c[i]->job);
  for (size_t i = 0; i < MANY; i++) {
    if (c[i]->job != NULL) client_wait_end(c[i]);
    ck_assert_int_eq(c[i]->ends, c[i]->job != NULL);
    client_free(c[i]);
  }
  fl_engine_stats st;
  fl_engine_stats_get(s.e, &st);
  ck_assert_uint_eq(st.jobs_refused, refused);
  ck_assert_uint_eq(st.jobs_done + st.jobs_cancelled, MANY - refused);
  serve_end(&s, 0);
}
END_TEST

START_TEST(test_bad_requests) {
  fl_engine_options o = small_options();
  o.ctx = 200;
  served s = serve(&o, false);
  fl_buf b = { 0 };
  for (int i = 0; i < 400; i++) fl_buf_puts(&b, "word ");
  fl_message m[2] = { user_says(b.data), model_said("no") };
  fl_job_request r = request_of(m, 1);
  client *c = client_new();
  fl_err err = { 0 };
  ck_assert_int_eq(client_submit(c, s.e, &r, &err), FL_EINPUT);
  ck_assert_ptr_nonnull(strstr(err.text, "context of 200"));
  m[0] = user_says("short");
  r.n_msgs = 2;
  ck_assert_int_eq(client_submit(c, s.e, &r, NULL), FL_EINPUT);
  r.n_msgs = 0;
  ck_assert_int_eq(client_submit(c, s.e, &r, NULL), FL_EINPUT);
  r.n_msgs = 1;
  r.max_new = 0;
  ck_assert_int_eq(client_submit(c, s.e, &r, NULL), FL_EINPUT);
  r.max_new = 5;
  r.top_logprobs = 21;
  ck_assert_int_eq(client_submit(c, s.e, &r, NULL), FL_EINPUT);
  client_free(c);
  r.top_logprobs = 0;
  r.max_new = 100000; /* as much as there is room */
  r.sampling = warm;
  c = converse(s.e, &r);
  ck_assert_uint_le(c->prompt + c->completion, 200);
  client_free(c);
  fl_buf_release(&b);
  serve_end(&s, 0);
}
END_TEST

/* Memory for one conversation only: all get their turn; one that never fits is told so. */
START_TEST(test_little_memory) {
  enum { MANY = 6 };
  fl_engine_options o = small_options();
  o.rag.docs = 1;
  o.n_slots = 4;
  o.max_bytes = (uint64_t)8 * 4 * 2 * 2 * 64 * 32 * 4; /* 8 pages of 4 layers, 2 heads of 64, f32 */
  served s = serve(&o, true);
  client *c[MANY];
  for (size_t i = 0; i < MANY; i++) {
    fl_message m = user_says(question[i]);
    fl_job_request r = request_of(&m, 1);
    fl_err err = { 0 };
    c[i] = client_new();
    ck_assert_msg(client_submit(c[i], s.e, &r, &err) == FL_OK, "%s", err.text);
  }
  for (size_t i = 0; i < MANY; i++) {
    client_wait_end(c[i]);
    ck_assert_msg(c[i]->code == FL_OK, "%s", c[i]->error);
    client_free(c[i]);
  }
  fl_buf b = { 0 };
  for (int i = 0; i < 300; i++) fl_buf_puts(&b, "word ");
  fl_message m = user_says(b.data);
  fl_job_request r = request_of(&m, 1);
  client *big = client_new();
  ck_assert_int_eq(client_submit(big, s.e, &r, NULL), FL_OK);
  client_wait_end(big);
  ck_assert_int_eq(big->finish, FL_FINISH_ERROR);
  ck_assert_int_eq(big->code, FL_EINPUT);
  ck_assert_ptr_nonnull(strstr(big->error, "memory"));
  ck_assert_int_eq(big->starts, 0);
  client_free(big);
  client_free(ask(s.e, question[0])); /* and it goes on */
  fl_engine_stats st;
  fl_engine_stats_get(s.e, &st);
  ck_assert_uint_le(st.kv_bytes, o.max_bytes);
  fl_buf_release(&b);
  serve_end(&s, 0);
}
END_TEST

/* --- going away --- */

START_TEST(test_cancel) {
  fl_engine_options o = small_options();
  o.n_slots = 1;
  served s = serve(&o, false);
  fl_buf b = { 0 };
  for (int i = 0; i < 150; i++) fl_buf_puts(&b, "word ");
  fl_message m = user_says(b.data);
  fl_job_request r = request_of(&m, 1);
  r.max_new = 600;
  client *running = client_new(), *queued = client_new();
  ck_assert_int_eq(client_submit(running, s.e, &r, NULL), FL_OK);
  ck_assert_int_eq(client_submit(queued, s.e, &r, NULL), FL_OK);
  fl_job_cancel(queued->job);
  client_wait_end(queued); /* while the other has the slot */
  ck_assert_int_eq(queued->finish, FL_FINISH_CANCELLED);
  ck_assert_int_eq(queued->starts, 0);
  if (_i == 0) client_wait_delta(running); /* else wherever it is, inside its prompt maybe */
  fl_job_cancel(running->job);
  client_wait_end(running);
  ck_assert_int_eq(running->finish, FL_FINISH_CANCELLED);
  ck_assert_int_eq(running->ends, 1);
  client *gone = client_new();
  gone->hang_up_after = 2;
  r.sampling = warm;
  m = user_says(question[0]);
  ck_assert_int_eq(client_submit(gone, s.e, &r, NULL), FL_OK);
  client_wait_end(gone);
  ck_assert(gone->finish == FL_FINISH_CANCELLED || gone->deltas < 2);
  ck_assert_uint_le(gone->deltas, 2);
  client_free(running);
  client_free(queued);
  client_free(gone);
  client_free(ask(s.e, question[0]));
  fl_buf_release(&b);
  serve_end(&s, 0);
}
END_TEST

/* Clients on threads of their own that come, wait, hang up and cancel as they like. */
typedef struct crowd {
  fl_engine *e;
  uint64_t seed;
  size_t submitted, refused, wrong;
} crowd;

static void *crowd_main(void *arg) {
  crowd *x = arg;
  fl_rng g = fl_rng_stream(x->seed, FL_RNG_TEST, 9, 0, 0);
  float *v = fl_calloc(1024, sizeof *v);
  for (int i = 0; i < 12; i++) {
    fl_message m = user_says(question[fl_rng_below(&g, QUESTIONS)]);
    fl_job_request r = request_of(&m, 1);
    r.rag = fl_rng_below(&g, 3) == 0 ? FL_RAG_NONE : FL_RAG_AUTO;
    r.max_new = 1 + fl_rng_below(&g, 40);
    client *c = client_new();
    c->hang_up_after = fl_rng_below(&g, 4) == 0 ? 3 : 0;
    int rc = client_submit(c, x->e, &r, NULL);
    x->submitted += rc == FL_OK;
    x->refused += rc == FL_EFULL;
    x->wrong += rc != FL_OK && rc != FL_EFULL;
    if (rc == FL_OK && fl_rng_below(&g, 4) == 0) fl_job_cancel(c->job);
    if (fl_rng_below(&g, 5) == 0)
      x->wrong += fl_engine_embed(x->e, m.text, m.len, v, NULL, NULL) != FL_OK;
    if (rc == FL_OK) client_wait_end(c);
    x->wrong += rc == FL_OK && (c->ends != 1 || c->code != FL_OK || c->starts > 1);
    fl_engine_stats st;
    fl_engine_stats_get(x->e, &st);
    x->wrong += st.slots_busy > st.slots;
    client_free(c);
  }
  fl_free(v);
  return NULL;
}

START_TEST(test_crowd) {
  enum { THREADS = 6 };
  fl_engine_options o = small_options();
  o.n_slots = 3;
  o.queue = 2;
  o.reload_s = 0.01;
  served s = serve(&o, true);
  pthread_t t[THREADS];
  crowd x[THREADS];
  size_t submitted = 0;
  for (size_t i = 0; i < THREADS; i++) {
    x[i] = (crowd){ .e = s.e, .seed = i };
    ck_assert_int_eq(pthread_create(&t[i], NULL, crowd_main, &x[i]), 0);
  }
  for (size_t i = 0; i < THREADS; i++) {
    pthread_join(t[i], NULL);
    ck_assert_uint_eq(x[i].wrong, 0);
    submitted += x[i].submitted;
  }
  fl_engine_stats st;
  fl_engine_stats_get(s.e, &st);
  ck_assert_uint_eq(st.jobs_done + st.jobs_cancelled + st.jobs_failed, submitted);
  ck_assert_uint_eq(st.jobs_failed, 0);
  ck_assert_uint_eq(st.slots_busy, 0);
  ck_assert_uint_eq(st.queued, 0);
  serve_end(&s, 0);
}
END_TEST

/* Stopping ends every job exactly once; with time to spare those in slots finish. */
START_TEST(test_stop) {
  enum { MANY = 6 };
  fl_engine_options o = small_options();
  o.n_slots = 2;
  served s = serve(&o, false);
  client *c[MANY];
  fl_message m = user_says(question[0]);
  fl_job_request r = request_of(&m, 1);
  r.max_new = 200;
  for (size_t i = 0; i < MANY; i++) {
    c[i] = client_new();
    ck_assert_int_eq(client_submit(c[i], s.e, &r, NULL), FL_OK);
  }
  client_wait_delta(c[0]);
  fl_engine_stop(s.e, _i == 0 ? 0 : 60);
  for (size_t i = 0; i < MANY; i++) {
    ck_assert_int_eq(c[i]->ends, 1);
    fl_job_cancel(c[i]->job); /* harmless now */
    client_free(c[i]);
  }
  rig_close(&s.r);
}
END_TEST

/* --- text --- */

START_TEST(test_stop_strings) {
  fl_engine_options o = small_options();
  served s = serve(&o, true);
  fl_message m = user_says(question[1]);
  fl_job_request r = request_of(&m, 1);
  client *whole = converse(s.e, &r);
  const char *all = client_text(whole);
  ck_assert_uint_gt(strlen(all), 12);
  /* A stop string at every place, of 1 to 9 bytes: over the borders of tokens too. */
  for (size_t at = 1; at + 9 < strlen(all); at += 2) {
    char stop[10] = "";
    const char *stops[1] = { stop };
    memcpy(stop, all + at, 1 + at % 9);
    const char *where = strstr(all, stop);
    r.stop = stops;
    r.n_stop = 1;
    client *c = converse(s.e, &r);
    ck_assert_uint_eq(c->text.len, (size_t)(where - all));
    ck_assert_int_eq(strncmp(client_text(c), all, c->text.len), 0);
    ck_assert_str_eq(c->stop, stop);
    ck_assert_int_eq(c->finish, FL_FINISH_STOP);
    client_free(c);
  }
  client_free(whole);
  serve_end(&s, 0);
}
END_TEST

/* The sum of the log probabilities is that of a pass over the same tokens. */
START_TEST(test_logprobs) {
  fl_engine_options o = small_options();
  served s = serve(&o, false);
  fl_message m = user_says(question[2]);
  fl_job_request r = request_of(&m, 1);
  r.logprobs = true;
  r.top_logprobs = 3;
  client *c = converse(s.e, &r);
  ck_assert_uint_eq(c->tokens, c->completion);
  ck_assert_uint_gt(c->tokens, 0);
  fl_ids ids = { 0 };
  const fl_tokenizer *tok = fl_model_tokenizer(s.r.m);
  ck_assert_int_eq(fl_chat_render(&ids, fl_model_template(s.r.m), tok, &m, 1, false, NULL), FL_OK);
  size_t n_prompt = ids.len, v = s.r.hp->n_vocab;
  double want = 0;
  fl_kv_pool *pool = rig_pool(&s.r, FL_KV_F32);
  fl_pass *p = rig_pass(&s.r, (fl_pass_options){ .max_rows = 64 });
  fl_stream st = { .seq = rig_seq(pool), .prompt = ids.data, .n_prompt = n_prompt,
                   .sampling = FL_SAMPLING_GREEDY, .max_new = 24 };
  ck_assert_int_eq(fl_generate(p, &st, 1, NULL, NULL), FL_OK);
  ck_assert_uint_eq(st.out.len, c->completion);
  fl_ids_append(&ids, st.out.data, st.out.len);
  float *logits = all_logits(&s.r, FL_KV_F32, ids.data, ids.len, 16);
  for (size_t i = 0; i < st.out.len; i++) {
    const float *row = logits + (n_prompt - 1 + i) * v;
    double sum = 0;
    for (size_t k = 0; k < v; k++) sum += exp((double)row[k]);
    want += (double)row[st.out.data[i]] - log(sum);
  }
  /* 24 values rounded to f32 at a magnitude under 16: 24 * 2^-21. */
  ck_assert_double_eq_tol(c->logprob, want, 2e-5);
  fl_free(logits);
  fl_seq_free(st.seq);
  fl_streams_release(&st, 1);
  fl_pass_free(p);
  fl_kv_pool_free(pool);
  fl_ids_release(&ids);
  client_free(c);
  serve_end(&s, 0);
}
END_TEST

/* --- disk --- */

/* One slot, two conversations in turn: each finds its rows again, after a restart too. */
START_TEST(test_spill) {
  fl_engine_options o = small_options();
  o.n_slots = 1;
  o.kv = _i == 0 ? FL_KV_F32 : FL_KV_F16;
  o.spill_dir = scratch("spill");
  char *dir = fl_strdup(o.spill_dir);
  o.spill_dir = dir;
  fl_message a[3] = { user_says("Who keeps the lighthouse, and for how long has it been so?"),
                      model_said(""), user_says("And what is the lamp's oil made of?") };
  fl_message b = user_says("What does the bakery sell on the day of the market?");
  fl_job_request ra = request_of(a, 1), rb = request_of(&b, 1);
  ra.conversation = "one";
  ra.sampling = warm; /* hot enough for answers that the tokenizer would cut otherwise */
  ra.sampling.temperature = 2;
  ra.sampling.top_k = 0;
  served s = serve(&o, true);
  client *first = converse(s.e, &ra);
  client_free(converse(s.e, &rb));
  a[1] = model_said(client_text(first));
  ra.n_msgs = 3;
  client *second = converse(s.e, &ra);
  ck_assert_uint_ge(second->cached, first->prompt);
  fl_engine_stats st;
  do { /* the second file may still be on its way; an idle engine looks once a second */
    fl_engine_stats_get(s.e, &st);
    poll(NULL, 0, 10);
  } while (st.spills < 2);
  ck_assert_uint_eq(st.restores, 1);
  serve_end(&s, 0);
  s = serve(&o, true);
  client *third = converse(s.e, &ra);
  ck_assert_uint_eq(third->cached, third->prompt - 1);
  ck_assert_str_eq(client_text(third), client_text(second));
  ck_assert_str_eq(third->docs, second->docs);
  serve_end(&s, 0);
  o.spill_dir = NULL;
  s = serve(&o, true);
  client *without = converse(s.e, &ra);
  ck_assert_uint_eq(without->cached, 0);
  if (strcmp(without->docs, second->docs) == 0)
    ck_assert_str_eq(client_text(without), client_text(second));
  serve_end(&s, 0);
  client_free(first);
  client_free(second);
  client_free(third);
  client_free(without);
  fl_free(dir);
}
END_TEST

/* One bit in the middle of every other file: its head stays whole. Returns how many files there
 * are. */
static size_t damage_some(const char *dir) {
  size_t n = 0, files = 0;
  char **names = NULL;
  ck_assert_int_eq(fl_fs_list(&names, &n, dir, NULL), FL_OK);
  for (size_t i = 0; i < n; i++) {
    if (strstr(names[i], ".flslot") == NULL || files++ % 2 == 0) continue;
    char *path = fl_fs_join(dir, names[i]);
    FILE *f = fopen(path, "r+");
    ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
    long at = ftell(f) / 2;
    ck_assert_int_eq(fseek(f, at, SEEK_SET), 0);
    int byte = getc(f);
    ck_assert_int_eq(fseek(f, at, SEEK_SET), 0);
    putc(byte ^ 1, f);
    fclose(f);
    fl_free(path);
  }
  fl_fs_list_free(names, n);
  return files;
}

/* All conversations are back at once after a restart, in fewer slots: rows come from files while
 * others go on, and every other file is damaged. Nobody's answer changes; one that leaves
 * meanwhile, and a stop, harm nothing. */
START_TEST(test_spill_crowd) {
  fl_engine_options o = small_options();
  fl_message m[QUESTIONS][3];
  fl_job_request q[QUESTIONS];
  client *first[QUESTIONS], *want[QUESTIONS], *got[QUESTIONS];
  char *dir = fl_strdup(scratch("spill")), text[QUESTIONS][200];
  remove_in(dir);
  o.n_slots = 1;
  o.spill_dir = dir;
  served s = serve(&o, false);
  for (int i = 0; i < QUESTIONS; i++) {
    snprintf(text[i], sizeof text[i],
             "%s Tell me all that you know of it, one thing after another, "
             "and leave nothing out that somebody might want to hear.",
             question[i]);
    m[i][0] = user_says(text[i]);
    q[i] = request_of(m[i], 1);
    first[i] = converse(s.e, &q[i]);
    m[i][1] = model_said(client_text(first[i]));
    m[i][2] = user_says("And what else?");
    q[i].n_msgs = 3;
  }
  serve_end(&s, 0);
  ck_assert_uint_eq(damage_some(dir), QUESTIONS);
  o.spill_dir = NULL;
  s = serve(&o, false);
  for (int i = 0; i < QUESTIONS; i++) want[i] = converse(s.e, &q[i]);
  serve_end(&s, 0);
  o.spill_dir = dir;
  o.n_slots = 3;
  s = serve(&o, false);
  for (int i = 0; i < QUESTIONS; i++) {
    got[i] = client_new();
    ck_assert_int_eq(client_submit(got[i], s.e, &q[i], NULL), FL_OK);
  }
  fl_job_cancel(got[1]->job);
  for (int i = 0; i < QUESTIONS; i++) {
    client_wait_end(got[i]);
    ck_assert_int_eq(got[i]->code, FL_OK);
    if (i != 1) ck_assert_str_eq(client_text(got[i]), client_text(want[i]));
  }
  fl_engine_stats st;
  fl_engine_stats_get(s.e, &st);
  ck_assert_uint_eq(st.restores, QUESTIONS / 2); /* the others were thrown away */
  for (int i = 0; i < QUESTIONS; i++) {
    client_free(got[i]);
    got[i] = client_new();
    ck_assert_int_eq(client_submit(got[i], s.e, &q[i], NULL), FL_OK);
  }
  serve_end(&s, 0);
  for (int i = 0; i < QUESTIONS; i++) {
    ck_assert_int_eq(got[i]->ends, 1);
    client_free(first[i]);
    client_free(want[i]);
    client_free(got[i]);
  }
  fl_free(dir);
}
END_TEST

/* --- embedding --- */

START_TEST(test_embed) {
  fl_engine_options o = small_options();
  served s = serve(&o, true);
  const size_t d = s.r.hp->d_model;
  float *x = fl_calloc(3 * d, sizeof *x);
  size_t n = 0;
  fl_buf b = { 0 };
  for (int i = 0; i < 150; i++) fl_buf_puts(&b, "word ");
  ck_assert_int_eq(fl_engine_embed(s.e, b.data, b.len, x, &n, NULL), FL_OK);
  ck_assert_uint_gt(n, 150);
  client *c = client_new();
  fl_message m = user_says(b.data);
  fl_job_request r = request_of(&m, 1);
  ck_assert_int_eq(client_submit(c, s.e, &r, NULL), FL_OK); /* in company: the same bits */
  ck_assert_int_eq(fl_engine_embed(s.e, b.data, b.len, x + d, &n, NULL), FL_OK);
  ck_assert_int_eq(memcmp(x, x + d, d * sizeof *x), 0);
  double norm = 0;
  for (size_t i = 0; i < d; i++) norm += (double)x[i] * (double)x[i];
  ck_assert_double_eq_tol(norm, 1, 1e-5); /* d roundings of 2^-24 */
  ck_assert_int_eq(fl_engine_embed(s.e, "bread", 5, x + 2 * d, &n, NULL), FL_OK);
  ck_assert_int_ne(memcmp(x, x + 2 * d, d * sizeof *x), 0);
  client_wait_end(c);
  client_free(c);
  fl_buf_release(&b);
  fl_free(x);
  serve_end(&s, 0);
}
END_TEST

Suite *suite_engine(void) {
  Suite *s = suite_create("engine");
  TCase *t = tcase_create("engine");
  tcase_set_timeout(t, 240);
  tcase_add_unchecked_fixture(t, make_fleet, drop_fleet);
  tcase_add_loop_test(t, test_equals_ask, 0, 2);
  tcase_add_loop_test(t, test_sampled_equals_ask, 0, 2);
  tcase_add_loop_test(t, test_equals_chat, 0, 4);
  tcase_add_test(t, test_company);
  tcase_add_test(t, test_shared_beginning);
  tcase_add_test(t, test_named_documents);
  tcase_add_test(t, test_sticky);
  tcase_add_test(t, test_adaptive);
  tcase_add_test(t, test_queue_full);
  tcase_add_test(t, test_bad_requests);
  tcase_add_test(t, test_little_memory);
  tcase_add_loop_test(t, test_cancel, 0, 2);
  tcase_add_test(t, test_crowd);
  tcase_add_loop_test(t, test_stop, 0, 2);
  tcase_add_test(t, test_stop_strings);
  tcase_add_test(t, test_logprobs);
  tcase_add_loop_test(t, test_spill, 0, 2);
  tcase_add_test(t, test_spill_crowd);
  tcase_add_test(t, test_embed);
  tcase_add_test(t, test_reload); /* trains on: last */
  suite_add_tcase(s, t);
  return s;
}
