/* check_prompt.c - conversations as ids: against the chat templates, and turn by turn. */
#include "model_util.h"
#include "serve/prompt.h"

static rig r;
static fl_prompter ren;

static void open_file(const char *file) {
  fl_err err = { 0 };
  r = rig_open(file, 1);
  ck_assert_msg(fl_prompter_init(&ren, r.m, &err) == FL_OK, "%s", err.text);
}
static void open_model(void) { open_file("embedded/model.gguf"); }
static void close_model(void) {
  fl_prompter_release(&ren);
  rig_close(&r);
}

static fl_message say(fl_role role, const char *text) {
  return (fl_message){ role, text, strlen(text) };
}

static fl_ids rendered(const fl_message *m, size_t n, bool thinking, bool behind,
                       fl_answers *answers) {
  fl_ids ids = { 0 };
  fl_err err = { 0 };
  const fl_prompt c = { .msgs = m,
                        .n_msgs = n,
                        .thinking = thinking,
                        .behind_rows = behind,
                        .answers = answers,
                        .scope = "s" };
  ck_assert_msg(fl_prompt_ids(&ren, &c, &ids, &err) == FL_OK, "%s", err.text);
  return ids;
}

static void same_ids(fl_ids *a, fl_ids *b) {
  ck_assert_uint_eq(a->len, b->len);
  ck_assert_int_eq(memcmp(a->data, b->data, a->len * sizeof *a->data), 0);
  fl_ids_release(a);
  fl_ids_release(b);
}

static fl_ids by_chat(const fl_message *m, size_t n, bool thinking) {
  fl_ids ids = { 0 };
  ck_assert_int_eq(
      fl_chat_render(&ids, fl_model_template(r.m), fl_model_tokenizer(r.m), m, n, thinking, NULL),
      FL_OK);
  return ids;
}

/* With thinking on, past answers stand without the empty block in both. */
START_TEST(test_equals_template) {
  const fl_message m[] = { say(FL_ROLE_SYSTEM, "Be brief."), say(FL_ROLE_USER, "One?"),
                           say(FL_ROLE_ASSISTANT, "Two."),   say(FL_ROLE_USER, "Three?"),
                           say(FL_ROLE_ASSISTANT, "Four."),  say(FL_ROLE_USER, "Five?") };
  for (size_t n = 2; n <= 6; n += 2) {
    fl_ids a = rendered(m, n, true, false, NULL), b = by_chat(m, n, true);
    same_ids(&a, &b);
  }
  fl_ids a = rendered(m, 2, false, false, NULL), b = by_chat(m, 2, false);
  same_ids(&a, &b);
  a = rendered(m + 1, 1, false, false, NULL);
  b = by_chat(m + 1, 1, false);
  same_ids(&a, &b);
}
END_TEST

/* Without thinking each turn begins with all of the turn before. */
START_TEST(test_follow_up) {
  const fl_message m[] = { say(FL_ROLE_USER, "One?"), say(FL_ROLE_ASSISTANT, "Two."),
                           say(FL_ROLE_USER, "Three?") };
  fl_answers known;
  ck_assert_int_eq(fl_answers_init(&known, 4, 100), FL_OK);
  fl_ids first = rendered(m, 1, false, _i, &known), plain = rendered(m, 3, false, _i, &known);
  ck_assert_uint_gt(plain.len, first.len);
  ck_assert_int_eq(memcmp(plain.data, first.data, first.len * sizeof *first.data), 0);
  fl_ids_release(&plain);
  /* The answer's own ids, where they were not the tokenizer's. */
  static const int32_t own[] = { 400, 401, 402 };
  fl_answers_add(&known, "s", &first, "Two.", 4, own, 3);
  fl_ids next = rendered(m, 3, false, _i, &known);
  ck_assert_int_eq(memcmp(next.data, first.data, first.len * sizeof *first.data), 0);
  ck_assert_int_eq(memcmp(next.data + first.len, own, sizeof own), 0);
  ck_assert_int_eq(next.data[first.len + 3],
                   fl_chat_end_of_turn(fl_model_template(r.m), fl_model_tokenizer(r.m)));
  fl_ids_release(&next);
  fl_ids_release(&first);
  fl_answers_release(&known);
}
END_TEST

/* Any order of roles has a rendering, or a refusal in words. */
static void try_orders(void) {
  static const fl_role roles[3] = { FL_ROLE_SYSTEM, FL_ROLE_USER, FL_ROLE_ASSISTANT };
  for (int way = 0; way < 81; way++) {
    fl_message m[5];
    for (int i = 0, w = way; i < 4; i++, w /= 3) m[i] = say(roles[w % 3], "text");
    m[4] = say(FL_ROLE_USER, "end");
    for (int behind = 0; behind < 2; behind++) {
      fl_ids ids = { 0 };
      fl_err err = { 0 };
      const fl_prompt c = { .msgs = m, .n_msgs = 5, .behind_rows = behind };
      int rc = fl_prompt_ids(&ren, &c, &ids, &err);
      ck_assert(rc == FL_OK || rc == FL_EINPUT);
      ck_assert_int_eq(rc == FL_OK, err.text[0] == '\0');
      ck_assert_int_eq(rc == FL_OK, ids.len > 0);
      /* BOS once at most, and never behind rows. */
      size_t bos = 0;
      for (size_t i = 0; i < ids.len; i++)
        bos += fl_tokenizer_adds_bos(fl_model_tokenizer(r.m)) &&
               ids.data[i] == fl_tokenizer_bos(fl_model_tokenizer(r.m));
      ck_assert_uint_eq(bos,
                        rc == FL_OK && !behind && fl_tokenizer_adds_bos(fl_model_tokenizer(r.m)));
      fl_ids_release(&ids);
    }
  }
}

START_TEST(test_any_order) { try_orders(); }
END_TEST

static const char *const files[] = { "embedded/model.gguf", "tiny/tiny-gemma3.gguf",
                                     "tiny/tiny-llama.gguf", "tiny/tiny-gemma4-dense.gguf" };

START_TEST(test_families) {
  const fl_message m[] = { say(FL_ROLE_USER, "One?"), say(FL_ROLE_ASSISTANT, "Two."),
                           say(FL_ROLE_USER, "Three?") };
  fl_err err = { 0 };
  r = rig_open(files[_i], 1);
  if (fl_prompter_init(&ren, r.m, &err) == FL_OK) { /* a file may lack the marks of its template */
    try_orders();
    fl_ids a = rendered(m, 3, true, false, NULL), b = by_chat(m, 3, true);
    same_ids(&a, &b);
  }
  close_model();
}
END_TEST

START_TEST(test_answers_bounded) {
  fl_answers a;
  fl_ids before = { 0 };
  static const int32_t ids[60];
  char text[8];
  ck_assert_int_eq(fl_answers_init(&a, 3, 100), FL_OK);
  fl_ids_push(&before, 7);
  for (int i = 0; i < 5; i++) {
    snprintf(text, sizeof text, "t%d", i);
    fl_answers_add(&a, "x", &before, text, 2, ids, 10);
  }
  ck_assert_uint_eq(a.n, 3);
  ck_assert_ptr_null(fl_answers_find(&a, "x", &before, "t1", 2));
  ck_assert_ptr_nonnull(fl_answers_find(&a, "x", &before, "t2", 2));
  ck_assert_ptr_null(fl_answers_find(&a, "y", &before, "t2", 2));
  fl_answers_add(&a, "x", &before, "t5", 2, ids, 60); /* 3 x 10 + 60 fit, a fourth entry does not */
  ck_assert_uint_eq(a.n, 3);
  ck_assert_ptr_nonnull(fl_answers_find(&a, "x", &before, "t2", 2)); /* used last */
  ck_assert_ptr_null(fl_answers_find(&a, "x", &before, "t3", 2));
  fl_answers_add(&a, "x", &before, "t6", 2, ids, 60); /* tokens are counted too */
  ck_assert_uint_le(a.tokens, 100);
  fl_ids_push(&before, 8);
  ck_assert_ptr_null(fl_answers_find(&a, "x", &before, "t6", 2));
  fl_ids_release(&before);
  fl_answers_release(&a);
}
END_TEST

START_TEST(test_opening) {
  char a[FL_HASH_TEXT], b[FL_HASH_TEXT];
  fl_message m[] = { say(FL_ROLE_SYSTEM, "s"), say(FL_ROLE_USER, "One?"),
                     say(FL_ROLE_ASSISTANT, "Two."), say(FL_ROLE_USER, "Three?") };
  fl_opening_hash(m, 2, a);
  fl_opening_hash(m, 4, b);
  ck_assert_str_eq(a, b);
  m[3] = say(FL_ROLE_USER, "Other?");
  fl_opening_hash(m, 4, b);
  ck_assert_str_eq(a, b);
  m[0] = say(FL_ROLE_SYSTEM, "t"); /* the whole opening counts, not the first question alone */
  fl_opening_hash(m, 4, b);
  ck_assert_str_ne(a, b);
  m[0] = say(FL_ROLE_SYSTEM, "sO"); /* no other cut of the same bytes */
  m[1] = say(FL_ROLE_USER, "ne?");
  fl_opening_hash(m, 4, b);
  ck_assert_str_ne(a, b);
}
END_TEST

Suite *suite_prompt(void) {
  Suite *s = suite_create("prompt");
  TCase *t = tcase_create("core");
  tcase_add_checked_fixture(t, open_model, close_model);
  tcase_add_test(t, test_equals_template);
  tcase_add_loop_test(t, test_follow_up, 0, 2);
  tcase_add_test(t, test_any_order);
  tcase_add_test(t, test_answers_bounded);
  tcase_add_test(t, test_opening);
  suite_add_tcase(s, t);
  t = tcase_create("families");
  tcase_add_loop_test(t, test_families, 0, sizeof files / sizeof *files);
  suite_add_tcase(s, t);
  return s;
}
