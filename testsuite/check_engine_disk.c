/* check_engine_disk.c - the engine on a disk that hangs, or has lost a file: who needs nothing of
 * it goes on. */
#include "gate.h"
#include "answer/answer.h"
#include "serve/spill.h"
#include "serve_util.h"

static gate disk = GATE_OPEN;

static served serve_by_gate(bool speculate) {
  fl_engine_options o = small_options();
  o.speculate = speculate;
  o.reading = stand_at_gate;
  o.reading_ctx = &disk;
  open_gate(&disk);
  return serve(&o, true);
}

/* --- one document by name --- */

static query request_for(const fl_message *m, const char *const *doc) {
  query r = request_of(m, 1);
  r.rag = FL_RAG_NAMED;
  r.docs = doc;
  r.n_docs = 1;
  return r;
}

static void expect_oracle(const client *c, const char *doc, const char *q) {
  reference x = reference_open();
  size_t at = 0;
  fl_reply reply = { 0 };
  fl_err err = { 0 };
  ck_assert_int_eq(fl_fleet_find(x.f, doc, &at), FL_OK);
  const fl_ask_options o = reference_options(&at, 1);
  ck_assert_msg(fl_fleet_ask(x.f, q, strlen(q), &o, &reply, &err) == FL_OK, "%s", err.text);
  ck_assert_str_eq(client_text(c), reply.text);
  fl_reply_release(&reply);
  reference_close(&x);
}

static void cancel_and_wait(client *c) {
  fl_job_cancel(c->job);
  client_wait_end(c);
  ck_assert_int_eq(c->finish, FL_FINISH_CANCELLED);
  ck_assert_int_eq(c->starts, 0);
  client_free(c);
}

/* --- tests --- */

/* Who needs nothing of the disk is answered while it hangs, whether it came before or after; who
 * waits for it can go, also the one whose file is being read; when it goes on so do the others. */
START_TEST(test_disk_hangs) {
  static const char *const mine[] = { "mine" }, *const bakery[] = { "bakery" },
                           *const library[] = { "library" }, *const lighthouse[] = { "lighthouse" };
  served s = serve_by_gate(_i == 1);
  fl_message m = user_says(question[0]);
  query known = request_for(&m, mine), first = request_for(&m, bakery),
        second = request_for(&m, library), third = request_for(&m, lighthouse);
  client_free(converse(s.e, &known)); /* in memory from here on */
  query running = known;
  running.max_new = 300;
  running.sampling = warm;
  client *before = client_begin(s.e, &running);
  client_wait_delta(before);
  shut_gate(&disk, 0);
  client *reads = client_begin(s.e, &first);
  ck_assert_uint_eq(wait_at_gate(&disk), 1);
  client *waits = client_begin(s.e, &second), *stays = client_begin(s.e, &third);
  client *after = converse(s.e, &known); /* with all of them in front of it */
  client_wait_ok(before);
  expect_oracle(after, "mine", question[0]);
  cancel_and_wait(waits);
  cancel_and_wait(reads);
  ck_assert_int_eq(stays->starts + stays->ends, 0);
  open_gate(&disk);
  client_wait_ok(stays);
  expect_oracle(stays, "lighthouse", question[0]);
  client *again = converse(s.e, &first);
  expect_oracle(again, "bakery", question[0]);
  /* What was read for the one that went is there: without drafts nothing is left to read. */
  ck_assert_uint_eq(wait_at_gate(&disk), _i == 1 ? 3 : 2);
  client_free(before);
  client_free(after);
  client_free(stays);
  client_free(again);
  serve_end(&s, 0);
}
END_TEST

/* A stop waits neither for the disk nor for those who wait for it. */
START_TEST(test_stop_while_disk_hangs) {
  static const char *const bakery[] = { "bakery" }, *const library[] = { "library" };
  served s = serve_by_gate(true);
  fl_message m = user_says(question[0]);
  query first = request_for(&m, bakery), second = request_for(&m, library);
  shut_gate(&disk, 0);
  client *reads = client_begin(s.e, &first), *waits = client_begin(s.e, &second);
  ck_assert_uint_eq(wait_at_gate(&disk), 1);
  serve_end(&s, 1e9);
  ck_assert_int_eq(reads->ends + waits->ends, 2);
  ck_assert_int_eq(reads->finish, FL_FINISH_CANCELLED);
  ck_assert_int_eq(waits->finish, FL_FINISH_CANCELLED);
  open_gate(&disk);
  client_free(reads);
  client_free(waits);
}
END_TEST

/* The fleet's file that begins so, and another name for it. */
static char *find_file(reference *x, const char *start, char **away) {
  char **names = NULL, *path = NULL;
  size_t n = 0;
  ck_assert_int_eq(fl_fs_list(&names, &n, fl_fleet_dir(x->f), NULL), FL_OK);
  for (size_t i = 0; path == NULL && i < n; i++)
    if (strncmp(names[i], start, strlen(start)) == 0 && strstr(names[i], ".safetensors") != NULL)
      path = fl_fs_join(fl_fleet_dir(x->f), names[i]);
  ck_assert_ptr_nonnull(path);
  fl_fs_list_free(names, n);
  *away = fl_asprintf("%s.away", path);
  return path;
}

/* A file that has gone fails who needs it, with its name, and nobody else; when it is back it is
 * read. */
START_TEST(test_file_gone) {
  static const char *const bakery[] = { "bakery" }, *const mine[] = { "mine" };
  reference x = reference_open();
  size_t at = 0;
  fl_doc_info d;
  char start[32], *away = NULL;
  ck_assert_int_eq(fl_fleet_find(x.f, "bakery", &at), FL_OK);
  fl_fleet_doc(x.f, at, &d);
  snprintf(start, sizeof start, "doc-%03lu.", (unsigned long)d.id);
  char *path = find_file(&x, start, &away);
  reference_close(&x);
  served s = serve_by_gate(true);
  fl_message m = user_says(question[0]);
  query gone = request_for(&m, bakery), good = request_for(&m, mine);
  ck_assert_int_eq(rename(path, away), 0);
  client *c = client_begin(s.e, &gone), *other = client_begin(s.e, &good);
  client_wait_end(c);
  client_wait_ok(other);
  ck_assert_int_eq(c->finish, FL_FINISH_ERROR);
  ck_assert_int_eq(c->starts, 0);
  ck_assert_ptr_nonnull(strstr(c->error, start));
  ck_assert_int_eq(rename(away, path), 0);
  client *back = converse(s.e, &gone);
  expect_oracle(back, "bakery", question[0]);
  client_free(c);
  client_free(other);
  client_free(back);
  serve_end(&s, 0);
  fl_free(path);
  fl_free(away);
}
END_TEST

/* The index could not be read at the start: who needs it waits until it is read, or why not is
 * known, and nobody else does. */
START_TEST(test_index_gone) {
  static const char *const mine[] = { "mine" };
  reference x = reference_open();
  fl_message m = user_says(question[0]);
  query any = request_of(&m, 1), named = request_for(&m, mine);
  char *want = reference_ask(&x, question[0], NULL, 0), *away = NULL;
  char *path = find_file(&x, "index.", &away);
  reference_close(&x);
  ck_assert_int_eq(rename(path, away), 0);
  served s = serve_by_gate(true);
  fl_buf found = { 0 };
  fl_err err = { 0 };
  client *c = client_begin(s.e, &any), *other = client_begin(s.e, &named);
  client_wait_end(c);
  client_wait_ok(other);
  ck_assert_int_eq(c->code, FL_EFAIL);
  ck_assert_msg(strstr(c->error, "index.") != NULL, "%s", c->error);
  ck_assert_int_eq(rename(away, path), 0);
  shut_gate(&disk, 0);
  client *waits = client_begin(s.e, &any);
  ck_assert_uint_eq(wait_at_gate(&disk), 1);
  client *after = converse(s.e, &named);
  ck_assert_int_eq(waits->starts + waits->ends, 0);
  ck_assert_int_eq(fl_engine_retrieve(s.e, question[0], strlen(question[0]), &found, &err),
                   FL_EBUSY);
  open_gate(&disk);
  client_wait_ok(waits);
  ck_assert_str_eq(client_text(waits), want);
  ck_assert_int_eq(fl_engine_retrieve(s.e, question[0], strlen(question[0]), &found, NULL), FL_OK);
  client_free(c);
  client_free(other);
  client_free(waits);
  client_free(after);
  serve_end(&s, 0);
  fl_buf_release(&found);
  fl_free(want);
  fl_free(path);
  fl_free(away);
}
END_TEST

/* Half of the queue's places at most are for those who wait for a disk that hangs. */
START_TEST(test_disk_hangs_long) {
  static const char *const doc[FLEET_DOCS] = { "bakery", "library", "lighthouse", "mine" };
  fl_engine_options o = small_options();
  fl_message m = user_says(question[0]);
  client *c[FLEET_DOCS];
  o.queue = 4;
  o.reading = stand_at_gate;
  o.reading_ctx = &disk;
  open_gate(&disk);
  served s = serve(&o, true);
  shut_gate(&disk, 0);
  for (int i = 0; i < FLEET_DOCS; i++) {
    query r = request_for(&m, &doc[i]);
    c[i] = client_begin(s.e, &r);
  }
  for (int i = 2; i < FLEET_DOCS; i++) {
    client_wait_end(c[i]);
    ck_assert_int_eq(c[i]->finish, FL_FINISH_ERROR);
    ck_assert_int_eq(c[i]->code, FL_EFULL);
    ck_assert_ptr_nonnull(strstr(c[i]->error, "disk"));
  }
  ck_assert_int_eq(c[0]->ends + c[1]->ends, 0);
  query bare = request_of(&m, 1);
  bare.rag = FL_RAG_NONE;
  client_free(converse(s.e, &bare));
  open_gate(&disk);
  for (int i = 0; i < FLEET_DOCS; i++) {
    if (i < 2) client_wait_ok(c[i]);
    client_free(c[i]);
  }
  serve_end(&s, 0);
}
END_TEST

/* --- spilled slots --- */

enum { TALKS = FL_SPILL_WAITING + 3 };

typedef struct talks {
  char text[TALKS][160];
  fl_message m[TALKS];
  query r[TALKS];
  client *want[TALKS]; /* of an engine without a disk */
} talks;

static void talks_begin(talks *t) {
  fl_engine_options o = small_options();
  served s = serve(&o, false);
  for (int i = 0; i < TALKS; i++) {
    snprintf(t->text[i], sizeof t->text[i],
             "%d. %s Tell me all that you know of it, one thing after another, and more.", i,
             question[i % QUESTIONS]);
    t->m[i] = user_says(t->text[i]);
    t->r[i] = request_of(&t->m[i], 1);
    t->want[i] = converse(s.e, &t->r[i]);
    ck_assert_uint_ge(t->want[i]->prompt, FL_SPILL_MIN);
  }
  serve_end(&s, 0);
}

static void talks_end(talks *t) {
  for (int i = 0; i < TALKS; i++) client_free(t->want[i]);
}

static void same_talk(fl_engine *e, const talks *t, int i) {
  client *c = converse(e, &t->r[i]);
  ck_assert_str_eq(client_text(c), client_text(t->want[i]));
  client_free(c);
}

/* More slots are put out than may wait for a disk that hangs, at the beginning of a file or in its
 * middle; with memory for one conversation each needs the pages of the one before, too. All are
 * answered, and the stop ends. */
START_TEST(test_spill_hangs) {
  talks t;
  fl_engine_options o = small_options();
  fl_engine_stats st;
  char *dir = fl_strdup(spill_dir());
  spill_drop();
  talks_begin(&t);
  o.n_slots = 1;
  o.spill_dir = dir;
  o.reading = stand_at_gate;
  o.reading_ctx = &disk;
  if (_i == 1) o.max_bytes = (uint64_t)5 * 4 * 2 * 2 * 64 * 32 * 4; /* 5 pages; 4 are used */
  open_gate(&disk);
  served s = serve(&o, false);
  shut_gate(&disk, _i == 1 ? 2 : 0);
  for (int i = 0; i < TALKS; i++) same_talk(s.e, &t, i);
  ck_assert_uint_eq(wait_at_gate(&disk), _i == 1 ? 3 : 1);
  fl_engine_stats_get(s.e, &st);
  ck_assert_uint_eq(st.spills, 0);
  ck_assert_uint_ge(st.spills_failed, 1);
  serve_end(&s, 0);
  open_gate(&disk);
  talks_end(&t);
  fl_free(dir);
}
END_TEST

/* Rows that the disk does not give are computed again; meanwhile others are answered, and one that
 * leaves does. */
START_TEST(test_restore_hangs) {
  talks t;
  fl_engine_options o = small_options();
  char *dir = fl_strdup(spill_dir());
  spill_drop();
  talks_begin(&t);
  o.spill_dir = dir;
  served s = serve(&o, false);
  for (int i = 0; i < 2; i++) same_talk(s.e, &t, i);
  serve_end(&s, 0);
  o.reading = stand_at_gate;
  o.reading_ctx = &disk;
  open_gate(&disk);
  s = serve(&o, false);
  shut_gate(&disk, 2);
  client *reads = client_begin(s.e, &t.r[0]), *leaves = client_begin(s.e, &t.r[1]);
  ck_assert_uint_eq(wait_at_gate(&disk), 3);
  same_talk(s.e, &t, 2);
  cancel_and_wait(leaves);
  client_wait_ok(reads);
  ck_assert_str_eq(client_text(reads), client_text(t.want[0]));
  ck_assert_uint_eq(reads->cached, 0);
  client_free(reads);
  same_talk(s.e, &t, 1); /* does not ask such a disk */
  serve_end(&s, 0);
  open_gate(&disk);
  talks_end(&t);
  fl_free(dir);
}
END_TEST

Suite *suite_engine_disk(void) {
  Suite *s = suite_create("engine_disk");
  TCase *t = tcase_create("engine_disk");
  tcase_set_timeout(t, 240);
  tcase_add_unchecked_fixture(t, fleet_make, fleet_drop);
  tcase_add_loop_test(t, test_disk_hangs, 0, 2);
  tcase_add_test(t, test_stop_while_disk_hangs);
  tcase_add_test(t, test_file_gone);
  tcase_add_test(t, test_index_gone);
  tcase_add_test(t, test_disk_hangs_long);
  tcase_add_loop_test(t, test_spill_hangs, 0, 2);
  tcase_add_test(t, test_restore_hangs);
  suite_add_tcase(s, t);
  return s;
}
