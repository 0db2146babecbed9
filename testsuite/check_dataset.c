/* check_dataset.c - training on the conversations of a study file. */
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "trainer/dataset.h"
#include "trainer/trainer.h"
#include "fleet_util.h"
#include "suite.h"

START_TEST(every_pass_uses_each_once) {
  enum { N = 13 };
  uint32_t scratch[N];
  size_t moved = 0;
  for (uint64_t pass = 0; pass < 5; pass++) {
    bool seen[N] = { false };
    for (uint64_t k = 0; k < N; k++) {
      size_t at = fl_dataset_pick(7, 3, pass * N + k, N, scratch);
      ck_assert(at < N && !seen[at]);
      seen[at] = true;
      moved += at != fl_dataset_pick(7, 3, (pass + 1) * N + k, N, scratch);
    }
  }
  ck_assert_uint_gt(moved, 3 * N); /* orders differ from pass to pass */
}
END_TEST

static char *study_path;
static fl_buf study_text;

/* The conversations that a training kept, of all documents: a study file for every case. */
static void make_study_text(void) {
  fl_train_options o = small_options();
  fl_buf one = { 0 };
  char **names = NULL;
  size_t n = 0;
  o.replay = 1.01;
  o.budget = 3;
  straight_begin(9, o);
  ck_assert_int_eq(fl_fs_list(&names, &n, straight_fleet(), NULL), FL_OK);
  for (size_t i = 0; i < n; i++) {
    if (strstr(names[i], ".study.jsonl") == NULL) continue;
    char *path = fl_fs_join(straight_fleet(), names[i]);
    ck_assert_int_eq(fl_fs_read(&one, path, 1 << 24, NULL), FL_OK);
    fl_buf_append(&study_text, one.data, one.len);
    fl_free(path);
  }
  fl_fs_list_free(names, n);
  fl_buf_release(&one);
}

static void release_study_text(void) {
  straight_end();
  fl_buf_release(&study_text);
}

static void setup(void) {
  straight_setup();
  study_path = fl_asprintf("%s.jsonl", fleet_dir);
  ck_assert_int_eq(fl_fs_replace(study_path, study_text.data, study_text.len, NULL), FL_OK);
}

static void teardown(void) {
  unlink(study_path);
  fl_free(study_path);
  straight_teardown();
}

static void train_given(size_t rounds) {
  fl_err err = { 0 };
  fl_train_options o = small_options();
  fl_open_options how = { .resume = in_fleet("fleet.json"), .allow_add = true };
  o.rounds = rounds;
  o.heldout = 0;
  o.budget = 3;
  fl_fleet *f = must_open(&o, &how);
  int rc = fl_fleet_use_study(f, study_path, &err);
  if (rc == FL_OK) rc = fl_fleet_train(f, NULL, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  fl_fleet_close(f);
}

START_TEST(given_conversations_are_trained_on) {
  train_given(6);
  fl_buf text = { 0 };
  char *path = fl_fs_join(fleet_dir, "events.jsonl");
  ck_assert_int_eq(fl_fs_read(&text, path, 1 << 26, NULL), FL_OK);
  size_t given = 0, made = 0;
  for (const char *at = text.data; (at = strstr(at, "\"ev\":\"study\"")) != NULL; at++) {
    const char *end = strchr(at, '\n');
    const char *mark = strstr(at, "\"replayed\":true");
    if (mark != NULL && mark < end) given++;
    else made++;
  }
  ck_assert_uint_eq(given, 12);
  ck_assert_uint_eq(made, 0);
  fl_buf_release(&text);
  fl_free(path);
}
END_TEST

START_TEST(resuming_goes_on_in_the_file) {
  train_given(6);
  char *straight = fl_asprintf("%s.whole", fleet_dir);
  ck_assert_int_eq(rename(fleet_dir, straight), 0);
  train_given(1);
  train_given(3);
  train_given(2);
  assert_same_fleet(straight, fleet_dir);
  remove_tree(straight);
  fl_free(straight);
}
END_TEST

static int use(const char *text, fl_err *err) {
  fl_train_options o = small_options();
  ck_assert_int_eq(fl_fs_replace(study_path, text, strlen(text), NULL), FL_OK);
  o.rounds = 1;
  o.heldout = 0;
  fl_fleet *f = must_open(&o, &(fl_open_options){ .allow_add = true });
  int rc = fl_fleet_use_study(f, study_path, err);
  if (rc == FL_OK) rc = fl_fleet_train(f, NULL, err);
  fl_fleet_close(f);
  remove_tree(fleet_dir);
  return rc;
}

START_TEST(what_is_no_study_file_is_refused) {
  fl_err err = { 0 };
  fl_buf text = { 0 };
  ck_assert_int_eq(fl_fs_read(&text, study_path, 1 << 24, NULL), FL_OK);
  ck_assert_int_eq(use("", &err), FL_EINPUT);
  ck_assert_ptr_nonnull(strstr(err.text, "flotilla study"));
  ck_assert_int_eq(use("{\"doc\":0,\"name\":\"x\",\"hash\":\"y\",\"index\":0}\nnot json\n", NULL),
                   FL_EINPUT);
  for (size_t i = 0; i < text.len; i++) /* all lines damaged in the part that is read late */
    if (strncmp(text.data + i, "\"tokens\":[", 10) == 0) text.data[i + 9] = '{';
  err = (fl_err){ 0 };
  ck_assert_int_eq(use(text.data, &err), FL_EINPUT);
  ck_assert_msg(strstr(err.text, "line 1") != NULL, "%s", err.text);
  fl_buf_release(&text);
}
END_TEST

Suite *suite_dataset(void);
Suite *suite_dataset(void) {
  Suite *s = suite_create("dataset");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, every_pass_uses_each_once);
  suite_add_tcase(s, t);
  t = tcase_create("model");
  tcase_set_timeout(t, 120);
  tcase_add_unchecked_fixture(t, make_study_text, release_study_text);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, given_conversations_are_trained_on);
  tcase_add_test(t, resuming_goes_on_in_the_file);
  tcase_add_test(t, what_is_no_study_file_is_refused);
  suite_add_tcase(s, t);
  return s;
}
