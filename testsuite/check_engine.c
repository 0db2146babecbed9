/* check_engine.c - the server's answers are those of `flotilla ask` and `flotilla chat`, alone and
 * in company, with and without speculation, with and without rows used again. */
#include "serve_util.h"
#include "answer/answer.h"

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

START_TEST(test_sampled_equals_ask) {
  reference x = reference_open();
  fl_engine_options o = small_options();
  o.speculate = _i == 1;
  served s = serve(&o, true);
  for (size_t i = 0; i < QUESTIONS; i++) {
    char *want = reference_ask(&x, question[i], &warm, 100 + i);
    fl_message m = user_says(question[i]);
    query r = request_of(&m, 1);
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
    query r = request_of(m, 2 * i + 1);
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
  query r;
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
    make_mix(&x[i], i);
    c[i] = client_begin(s.e, &x[i].r);
    if (!together) client_wait_end(c[i]);
  }
  for (size_t i = 0; i < MIXED; i++) {
    client_wait_ok(c[i]);
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
  query r = request_of(m, 3), q = request_of(k, 3);
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

/* --- text --- */

START_TEST(test_stop_strings) {
  fl_engine_options o = small_options();
  served s = serve(&o, true);
  fl_message m = user_says(question[1]);
  query r = request_of(&m, 1);
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
  query r = request_of(&m, 1);
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
  fl_stream st = { .seq = rig_seq(pool),
                   .prompt = ids.data,
                   .n_prompt = n_prompt,
                   .sampling = FL_SAMPLING_GREEDY,
                   .max_new = 24 };
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

/* --- embedding --- */

START_TEST(test_embed) {
  fl_engine_options o = small_options();
  served s = serve(&o, true);
  const size_t d = s.r.hp->d_model;
  float *x = fl_calloc(3 * d, sizeof *x);
  size_t n = 0;
  fl_buf b = words(150);
  ck_assert_int_eq(fl_engine_embed(s.e, b.data, b.len, x, &n, NULL), FL_OK);
  ck_assert_uint_gt(n, 150);
  fl_message m = user_says(b.data);
  query r = request_of(&m, 1);
  client *c = client_begin(s.e, &r); /* in company: the same bits */
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
  tcase_add_unchecked_fixture(t, fleet_make, fleet_drop);
  tcase_add_loop_test(t, test_equals_ask, 0, 2);
  tcase_add_loop_test(t, test_sampled_equals_ask, 0, 2);
  tcase_add_loop_test(t, test_equals_chat, 0, 4);
  tcase_add_test(t, test_company);
  tcase_add_test(t, test_shared_beginning);
  tcase_add_test(t, test_stop_strings);
  tcase_add_test(t, test_logprobs);
  tcase_add_test(t, test_embed);
  suite_add_tcase(s, t);
  return s;
}
