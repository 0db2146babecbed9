/* check_ask.c - the four ways to hold documents, streaming, conversations. */
#include <string.h>
#include <unistd.h>

#include "answer/answer.h"
#include "base/mem.h"
#include "fleet_util.h"
#include "suite.h"

static fl_fleet *fleet;

static void setup(void) {
  fleet_setup_model();
  put_docs();
  train_rounds(0, small_options());
  fleet = open_reader();
}

static void teardown(void) {
  fl_fleet_close(fleet);
  fleet_teardown_model();
}

static const char question[] = "What is the founding year of Calcove Bakery?";

static fl_ask_options options(fl_arm arm, const size_t *docs, size_t n) {
  return (fl_ask_options){ .arm = arm,
                           .docs = docs,
                           .n_docs = n,
                           .max_new = 24,
                           .sampling = FL_SAMPLING_GREEDY,
                           .kv = FL_KV_F32 };
}

static fl_reply ask(const char *text, const fl_ask_options *o) {
  fl_reply r = { 0 };
  fl_err err = { 0 };
  int rc = fl_fleet_ask(fleet, text, strlen(text), o, &r, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  return r;
}

static size_t wrapped_rows(const char *name) {
  fl_source_list l = read_docs();
  fl_ids ids = { 0 };
  for (size_t i = 0; i < l.n; i++)
    if (strcmp(l.doc[i].name, name) == 0)
      ck_assert_int_eq(fl_wrapped_system(&ids, fleet_model, l.doc[i].text, l.doc[i].len, 0, NULL),
                       FL_OK);
  size_t n = ids.len;
  fl_ids_release(&ids);
  fl_source_release(&l);
  return n;
}

START_TEST(each_arm_holds_its_rows) {
  const size_t docs[] = { 0, 2 };
  fl_ask_options o = options(FL_ARM_CARTRIDGE, docs, 2);
  fl_reply r = ask(question, &o);
  ck_assert_uint_eq(r.rows, 48); /* two of 24 */
  ck_assert_uint_gt(r.tokens, 0);
  ck_assert(r.ttft_s > 0 && r.seconds >= r.ttft_s);
  fl_reply_release(&r);
  o = options(FL_ARM_BARE, NULL, 0);
  r = ask(question, &o);
  ck_assert_uint_eq(r.rows, 0); /* this model has no BOS */
  fl_reply_release(&r);
  o = options(FL_ARM_CONTEXT, docs, 1);
  r = ask(question, &o);
  ck_assert_uint_eq(r.rows, wrapped_rows(doc_path("a.md")));
  ck_assert_ptr_nonnull(strstr(r.text, "1785")); /* it stands in the document */
  fl_reply_release(&r);
}
END_TEST

START_TEST(the_text_arm_reads_the_best_pieces) {
  fl_rag_options rag = { .docs = 1, .chunks = 2, .floor = -1, .by = FL_RAG_EMBEDDING };
  fl_hits h = { 0 };
  ck_assert_int_eq(fl_fleet_retrieve(fleet, question, strlen(question), &rag, &h, NULL), FL_OK);
  ck_assert_uint_eq(h.doc[0].doc, 0);
  ck_assert_uint_eq(h.n_passages, 0);
  fl_ask_options o = options(FL_ARM_TEXT, NULL, 0);
  o.hits = &h;
  fl_reply r = ask(question, &o);
  ck_assert_uint_gt(r.rows, 80); /* two pieces of 40 and the wrapping */
  ck_assert_uint_lt(r.rows, 140);
  fl_reply_release(&r);
  fl_hits_release(&h);
  o.hits = NULL;
  fl_err err = { 0 };
  ck_assert_int_eq(fl_fleet_ask(fleet, question, strlen(question), &o, &r, &err), FL_EUSAGE);
}
END_TEST

START_TEST(the_text_arm_reads_the_best_passages) {
  fl_rag_options rag = { .docs = 1, .chunks = 1, .floor = -1 };
  fl_hits h = { 0 };
  fl_buf text = { 0 };
  fl_ids ids = { 0 };
  ck_assert_int_eq(fl_fleet_retrieve(fleet, question, strlen(question), &rag, &h, NULL), FL_OK);
  ck_assert_uint_eq(h.n_passages, 1);
  ck_assert_uint_eq(h.passage[0].doc, 0);
  ck_assert_int_eq(fl_fleet_passage(fleet, &h.passage[0], &text, NULL), FL_OK);
  ck_assert_int_eq(fl_wrapped_system(&ids, fleet_model, text.data, text.len, 0, NULL), FL_OK);
  fl_ask_options o = options(FL_ARM_TEXT, NULL, 0);
  o.hits = &h;
  fl_reply r = ask(question, &o);
  ck_assert_uint_eq(r.rows, ids.len);
  fl_reply_release(&r);
  fl_hits_release(&h);
  fl_ids_release(&ids);
  fl_buf_release(&text);
}
END_TEST

struct pieces {
  fl_buf text;
  size_t calls, stop_after;
};

static bool collect(void *ctx, const char *piece, size_t len) {
  struct pieces *p = ctx;
  fl_buf_append(&p->text, piece, len);
  return ++p->calls == p->stop_after;
}

START_TEST(streaming_gives_the_same_text) {
  const size_t docs[] = { 0 };
  struct pieces p = { 0 };
  fl_ask_options o = options(FL_ARM_CONTEXT, docs, 1);
  fl_reply whole = ask(question, &o);
  o.on_token = collect;
  o.ctx = &p;
  fl_reply r = ask(question, &o);
  ck_assert_str_eq(r.text, whole.text);
  ck_assert_str_eq(p.text.data, whole.text);
  ck_assert_uint_gt(p.calls, 3);
  fl_reply_release(&r);
  fl_buf_release(&p.text);
  p = (struct pieces){ .stop_after = 3 };
  r = ask(question, &o);
  ck_assert_int_eq(r.stop, FL_STOP_CALLER);
  ck_assert_uint_eq(p.calls, 3);
  ck_assert(strncmp(whole.text, r.text, strlen(r.text)) == 0);
  fl_buf_release(&p.text);
  fl_reply_release(&r);
  fl_reply_release(&whole);
}
END_TEST

START_TEST(a_document_that_changed_is_not_read) {
  const size_t docs[] = { 1 };
  fl_ask_options o = options(FL_ARM_CONTEXT, docs, 1);
  fl_reply r = { 0 };
  fl_err err = { 0 };
  put_doc("b.md", "Another text.");
  ck_assert_int_eq(fl_fleet_ask(fleet, "x", 1, &o, &r, &err), FL_EINPUT);
  ck_assert_msg(strstr(err.text, "b.md") && strstr(err.text, "changed"), "%s", err.text);
  unlink(doc_path("b.md"));
  err = (fl_err){ 0 };
  ck_assert_int_eq(fl_fleet_ask(fleet, "x", 1, &o, &r, &err), FL_ENOENT);
  ck_assert_ptr_nonnull(strstr(err.text, "b.md"));
  o.arm = FL_ARM_CARTRIDGE; /* the cartridge needs no document */
  r = ask("Who is the librarian?", &o);
  fl_reply_release(&r);
}
END_TEST

static void append(fl_ids *out, const fl_ids *more) { fl_ids_append(out, more->data, more->len); }

/* The answer to `prompt` behind the cartridge of document 0, by hand. */
static fl_ids by_hand(const fl_ids *prompt) {
  fl_pass *pass = NULL;
  fl_kv_pool *pool = NULL;
  fl_seq *seq = NULL;
  const size_t doc = 0;
  const fl_pass_options po = { .max_rows = 64, .max_spans = 1 };
  ck_assert_int_eq(fl_pass_new(&pass, fleet_model, fleet_team, &po, NULL), FL_OK);
  ck_assert_int_eq(fl_kv_pool_new(&pool, fl_model_hparams(fleet_model),
                                  fl_model_kernels(fleet_model), FL_KV_F32, 0, NULL),
                   FL_OK);
  ck_assert_int_eq(fl_seq_new(&seq, pool, NULL), FL_OK);
  ck_assert_int_eq(fl_fleet_compose(fleet, seq, &doc, 1, NULL), FL_OK);
  fl_stream s = { .seq = seq,
                  .prompt = prompt->data,
                  .n_prompt = prompt->len,
                  .max_new = 24,
                  .sampling = FL_SAMPLING_GREEDY };
  ck_assert_int_eq(fl_generate(pass, &s, 1, NULL, NULL), FL_OK);
  fl_seq_free(seq);
  fl_kv_pool_free(pool);
  fl_pass_free(pass);
  return s.out;
}

/* A second turn on the kept sequence = both turns from the start, bit for bit. */
START_TEST(a_conversation_continues_exactly) {
  static const char second[] = "And who is the baker?";
  const fl_tokenizer *t = fl_model_tokenizer(fleet_model);
  const fl_template tpl = fl_model_template(fleet_model);
  const size_t docs[] = { 0 };
  fl_ask_options o = options(FL_ARM_CARTRIDGE, docs, 1);
  fl_chat *c = NULL;
  fl_reply one = { 0 }, two = { 0 };
  ck_assert_int_eq(fl_chat_new(&c, fleet, &o, NULL), FL_OK);
  ck_assert_int_eq(fl_chat_turn(c, question, strlen(question), &one, NULL), FL_OK);
  ck_assert_int_eq(fl_chat_turn(c, second, strlen(second), &two, NULL), FL_OK);
  fl_ids ids = { 0 };
  ck_assert_int_eq(fl_chat_user(&ids, tpl, t, question, strlen(question), true, false, NULL),
                   FL_OK);
  fl_ids answer = by_hand(&ids);
  append(&ids, &answer);
  ck_assert_int_eq(fl_chat_assistant(&ids, tpl, t, "", 0, NULL), FL_OK);
  ck_assert_uint_gt(two.rows, one.rows + answer.len); /* the first turn is not run again */
  ck_assert_int_eq(fl_chat_user(&ids, tpl, t, second, strlen(second), false, false, NULL), FL_OK);
  fl_ids follow = by_hand(&ids);
  fl_buf text = { 0 };
  fl_detokenize(t, &text, answer.data, answer.len, false);
  ck_assert_str_eq(text.data, one.text);
  fl_buf_reset(&text);
  fl_detokenize(t, &text, follow.data, follow.len, false);
  ck_assert_str_eq(text.data, two.text);
  fl_chat_free(c);
  fl_buf_release(&text);
  fl_ids_release(&ids);
  fl_ids_release(&answer);
  fl_ids_release(&follow);
  fl_reply_release(&one);
  fl_reply_release(&two);
}
END_TEST

/* A question that does not fit fails with a sentence, and the conversation goes on as before. */
START_TEST(a_turn_that_does_not_fit_is_undone) {
  const size_t docs[] = { 0 };
  fl_ask_options o = options(FL_ARM_CARTRIDGE, docs, 1);
  fl_chat *c = NULL, *fresh = NULL;
  fl_reply r = { 0 }, want = { 0 };
  fl_err err = { 0 };
  fl_buf huge = { 0 };
  for (int i = 0; i < 20000; i++) fl_buf_puts(&huge, "word ");
  ck_assert_int_eq(fl_chat_new(&c, fleet, &o, NULL), FL_OK);
  int rc = fl_chat_turn(c, huge.data, huge.len, &r, &err);
  ck_assert(rc == FL_EFULL || rc == FL_EINPUT);
  ck_assert(err.text[0] != '\0');
  ck_assert_int_eq(fl_chat_new(&fresh, fleet, &o, NULL), FL_OK);
  ck_assert_int_eq(fl_chat_turn(c, question, strlen(question), &r, NULL), FL_OK);
  ck_assert_int_eq(fl_chat_turn(fresh, question, strlen(question), &want, NULL), FL_OK);
  ck_assert_str_eq(r.text, want.text);
  ck_assert_uint_eq(r.rows, want.rows);
  fl_reply_release(&r);
  fl_reply_release(&want);
  fl_chat_free(c);
  fl_chat_free(fresh);
  fl_buf_release(&huge);
}
END_TEST

Suite *suite_ask(void);
Suite *suite_ask(void) {
  Suite *s = suite_create("ask");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, each_arm_holds_its_rows);
  tcase_add_test(t, the_text_arm_reads_the_best_pieces);
  tcase_add_test(t, the_text_arm_reads_the_best_passages);
  tcase_add_test(t, streaming_gives_the_same_text);
  tcase_add_test(t, a_document_that_changed_is_not_read);
  tcase_add_test(t, a_conversation_continues_exactly);
  tcase_add_test(t, a_turn_that_does_not_fit_is_undone);
  suite_add_tcase(s, t);
  return s;
}
