/* check_engine_docs.c - which documents a conversation stands behind: named, retrieved, kept, and
 * after a training run has committed. */
#include "serve_util.h"

static void answered_by(fl_engine *e, const query *r, const char *docs) {
  client *c = converse(e, r);
  ck_assert_str_eq(c->docs, docs);
  client_free(c);
}

/* A conversation whose second turn is about another document than its first. */
static void from_mine_to_bakery(fl_message m[3]) {
  m[0] = user_says("What is the ore of Tulby Mine?");
  m[1] = model_said("Tin.");
  m[2] = user_says("What does the bakery sell?");
}

START_TEST(test_named_documents) {
  fl_engine_options o = small_options();
  served s = serve(&o, true);
  static const char *const good[] = { "mine", "bakery.md" }, *const bad[] = { "mine", "palace" };
  fl_message m = user_says(question[0]);
  query r = request_of(&m, 1);
  r.rag = FL_RAG_NAMED;
  r.docs = good;
  r.n_docs = 2;
  answered_by(s.e, &r, "mine.md bakery.md ");
  r.docs = bad;
  client *c = client_new();
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
  fl_message m[3];
  from_mine_to_bakery(m);
  query r = request_of(m, 1);
  answered_by(s.e, &r, "mine.md ");
  r.n_msgs = 3;
  answered_by(s.e, &r, "mine.md ");
  r = request_of(m + 2, 1); /* another opening */
  answered_by(s.e, &r, "bakery.md ");
  r.conversation = "a";
  r.msgs = m;
  answered_by(s.e, &r, "mine.md ");
  r.msgs = m + 2; /* the same id: whatever is said */
  answered_by(s.e, &r, "mine.md ");
  serve_end(&s, 0);
  o.rag.floor = 0.999;
  s = serve(&o, true);
  client *c = ask(s.e, question[0]);
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
  fl_message m[3];
  from_mine_to_bakery(m);
  query r = request_of(m, 1);
  answered_by(s.e, &r, "mine.md ");
  r.n_msgs = 3;
  client *c = converse(s.e, &r);
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
    query r = request_of(m[i], 1);
    r.conversation = id[i];
    r.sampling = warm;
    r.seed = i;
    r.max_new = 100;
    c[i] = client_begin(s.e, &r);
  }
  for (size_t i = 0; i < CLIENTS; i++) client_wait_delta(c[i]); /* each has its documents */
  fleet_train(1, true);
  for (size_t i = 0; i < CLIENTS; i++) { client_wait_ok(c[i]); }
  do {
    client_free(ask(s.e, question[1])); /* gives the engine a step to look */
    fl_engine_stats_get(s.e, &after);
  } while (after.generation == before.generation);
  ck_assert_uint_gt(after.generation, before.generation);
  ck_assert_uint_ge(after.reloads, 1);
  for (size_t i = 0; i < CLIENTS; i += 5) {
    m[i][1] = model_said(client_text(c[i]));
    m[i][2] = user_says("Is that so?");
    query r = request_of(m[i], 3);
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

Suite *suite_engine_docs(void) {
  Suite *s = suite_create("engine_docs");
  TCase *t = tcase_create("engine_docs");
  tcase_set_timeout(t, 240);
  tcase_add_unchecked_fixture(t, fleet_make, fleet_drop);
  tcase_add_test(t, test_named_documents);
  tcase_add_test(t, test_sticky);
  tcase_add_test(t, test_adaptive);
  tcase_add_test(t, test_reload); /* trains on: last */
  suite_add_tcase(s, t);
  return s;
}
