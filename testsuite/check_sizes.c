/* check_sizes.c - what a run's parts are given: sums of the flags worked out by hand, and flags
 * that do not fit the model. */
#include <string.h>

#include "base/mem.h"
#include "trainer/sizes.h"
#include "suite.h"

static fl_hparams *hp; /* large, so on the heap; only these two members count */
static fl_train_options o;

static void setup(void) {
  hp = fl_calloc(1, sizeof *hp);
  ck_assert_ptr_nonnull(hp);
  hp->n_ctx = 4096;
  hp->n_vocab = 1000;
  fl_train_options_default(&o);
}

static void teardown(void) { fl_free(hp); }

static fl_train_sizes plan_of(size_t p, size_t n_docs) {
  fl_train_sizes t;
  fl_err err = { 0 };
  ck_assert_msg(fl_train_sizes_make(&t, &o, p, n_docs, hp, "dir", &err) == FL_OK, "%s", err.text);
  return t;
}

START_TEST(sizes_are_sums_of_the_flags) {
  o.turns = 2;
  o.accum = 3;
  o.heldout = 5;
  const fl_train_sizes t = plan_of(256, 10);
  ck_assert_uint_eq(t.conv.max_tokens, 640); /* 2 turns of 64 + 192 tokens and 64 for the markers */
  ck_assert_uint_eq(t.conv.max_sup, 386);    /* 2 answers of 192, each with its end */
  ck_assert_uint_eq(t.conv.n_vocab, 1000);
  ck_assert_uint_eq(t.max_convs, 5); /* held-out ones go through a step together */
  ck_assert_uint_eq(t.max_parts, 4); /* 3 beside its own */
  ck_assert_uint_eq(t.step.max_convs, 5);
  ck_assert_uint_eq(t.step.max_conv_rows, 640);
  ck_assert_uint_eq(t.step.max_sup, 5 * 386);
  ck_assert_uint_eq(t.step.max_prefix, 4 * 256);
  ck_assert_uint_eq(t.pass.max_spans, 5);
  ck_assert(t.step.pack && !t.step.checkpoint && t.step.dist == NULL);
}
END_TEST

/* Whichever is least: flags, the budget, the documents, the rows that the context has left. */
START_TEST(a_conversation_sees_what_there_is_room_for) {
  o.distract_max = 9;
  o.budget = 8;
  ck_assert_uint_eq(plan_of(256, 20).max_parts, 8);
  ck_assert_uint_eq(plan_of(256, 6).max_parts, 6);
  o.distract_max = 1;
  ck_assert_uint_eq(plan_of(256, 20).max_parts, 2);
  o.distract_max = 9;
  hp->n_ctx = 320 + 3 * 256 + 255;
  ck_assert_uint_eq(plan_of(256, 20).max_parts, 3);
}
END_TEST

START_TEST(what_does_not_fit_is_named) {
  fl_train_sizes t;
  fl_err err = { 0 };
  hp->n_ctx = 512;
  ck_assert_int_eq(fl_train_sizes_make(&t, &o, 8, 4, hp, "dir", &err), FL_EUSAGE);
  ck_assert_ptr_nonnull(strstr(err.text, "--chunk-max"));
  err = (fl_err){ 0 };
  hp->n_ctx = 4096;
  ck_assert_int_eq(fl_train_sizes_make(&t, &o, 4096 - 320 + 1, 4, hp, "dir", &err), FL_EUSAGE);
  ck_assert_ptr_nonnull(strstr(err.text, "--p"));
  ck_assert_uint_eq(plan_of(4096 - 320, 4).max_parts, 1);
}
END_TEST

START_TEST(gradients_go_to_files_where_memory_is_short) {
  ck_assert_ptr_null(plan_of(256, 4).step.grad_dir);
  o.checkpoint = true;
  ck_assert_str_eq(plan_of(256, 4).step.grad_dir, "dir");
  o.keep_moments = true;
  ck_assert_ptr_null(plan_of(256, 4).step.grad_dir);
}
END_TEST

Suite *suite_sizes(void);
Suite *suite_sizes(void) {
  Suite *s = suite_create("sizes");
  TCase *t = tcase_create("core");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, sizes_are_sums_of_the_flags);
  tcase_add_test(t, a_conversation_sees_what_there_is_room_for);
  tcase_add_test(t, what_does_not_fit_is_named);
  tcase_add_test(t, gradients_go_to_files_where_memory_is_short);
  suite_add_tcase(s, t);
  return s;
}
