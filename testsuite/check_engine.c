/* check_engine.c - the server's answers are those of `flotilla ask` and `flotilla chat`, alone and in
 * company, with and without speculation, with and without rows used again. */
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

Suite *suite_engine(void) {
  Suite *s = suite_create("engine");
  TCase *t = tcase_create("answers");
  tcase_set_timeout(t, 240);
  tcase_add_unchecked_fixture(t, make_fleet, drop_fleet);
  tcase_add_loop_test(t, test_equals_ask, 0, 2);
  suite_add_tcase(s, t);
  return s;
}
