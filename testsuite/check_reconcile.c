/* check_reconcile.c - documents that change, come and go; a fleet's one writer. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "retrieval/retrieval.h"
#include "trainer/trainer.h"
#include "fleet_util.h"
#include "suite.h"

static void refused(const fl_open_options *how, int code, const char *word) {
  fl_train_options o = small_options();
  fl_fleet *f = NULL;
  fl_err err = { 0 };
  int rc = try_open(&f, &o, how, &err);
  ck_assert_msg(rc == code, "%d, not %d: %s", rc, code, err.text);
  ck_assert_msg(strstr(err.text, word) != NULL, "'%s' not in '%s'", word, err.text);
  ck_assert_ptr_null(f);
}

/* Trains 0 rounds: births and the index. */
static fl_fleet *applied(const fl_open_options *how) {
  fl_train_options o = small_options();
  fl_err err = { 0 };
  fl_fleet *f = must_open(&o, how);
  int rc = fl_fleet_train(f, NULL, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  return f;
}

static const fl_open_options again = { .resume = true, .allow_add = true };

static fl_doc_info info(const fl_fleet *f, const char *name) {
  size_t at = 0;
  fl_doc_info d;
  ck_assert_msg(fl_fleet_find(f, name, &at) == FL_OK, "%s", name);
  fl_fleet_doc(f, at, &d);
  return d;
}

START_TEST(a_new_fleet_and_no_second_one) {
  fl_open_options fresh = { .allow_add = true };
  put_docs();
  fl_fleet *f = applied(&fresh);
  ck_assert_uint_eq(fl_fleet_n_docs(f), 3);
  ck_assert_uint_eq(info(f, "b.md").id, 1);
  ck_assert_uint_eq(info(f, "c").rows, 24);
  fl_fleet_close(f);
  ck_assert(in_fleet("doc-002.g000000.safetensors") && in_fleet("index.g000000.safetensors"));
  ck_assert(!in_fleet("doc-002.g000000.fza")); /* zero moments are not written */
  refused(&fresh, FL_EUSAGE, "--resume");
  f = applied(&again);
  ck_assert_uint_eq(fl_fleet_generation(f), 0); /* nothing changed, nothing was written */
  fl_fleet_close(f);
}
END_TEST

START_TEST(nothing_to_resume) {
  put_docs();
  refused(&again, FL_EUSAGE, "no fleet");
  ck_assert(!fl_fs_exists(fleet_dir));
}
END_TEST

START_TEST(a_changed_document_is_named_and_updated) {
  put_docs();
  fl_fleet *f = applied(&(fl_open_options){ .allow_add = true });
  fl_fleet_close(f);
  put_doc("b.md", "Quilridge Library has moved to the sea. The late fee is nine ducats now.");
  refused(&again, FL_EINPUT, "b.md");
  fl_open_options update = again;
  update.update = true;
  f = applied(&update);
  ck_assert_uint_eq(fl_fleet_generation(f), 1);
  ck_assert_uint_eq(info(f, "b.md").id, 1);
  fl_fleet_close(f);
  ck_assert(in_fleet("doc-001.g000001.safetensors") && !in_fleet("doc-001.g000000.safetensors"));
  ck_assert(in_fleet("doc-000.g000000.safetensors")); /* the others were left alone */
  ck_assert(in_fleet("index.g000001.safetensors") && !in_fleet("index.g000000.safetensors"));
  f = applied(&again);
  ck_assert_uint_eq(fl_fleet_generation(f), 1);
  fl_fleet_close(f);
}
END_TEST

START_TEST(documents_come_and_go) {
  put_docs();
  fl_fleet *f = applied(&(fl_open_options){ .allow_add = true });
  fl_fleet_close(f);
  put_doc("d.md", "The ferry of Tamholm leaves at noon. Its captain is Vera Lun.");
  refused(&(fl_open_options){ .resume = true }, FL_EUSAGE, "d.md");
  f = applied(&again);
  ck_assert_uint_eq(fl_fleet_n_docs(f), 4);
  ck_assert_uint_eq(info(f, "d.md").id, 3);
  fl_fleet_close(f);
  unlink(doc_path("a.md"));
  refused(&again, FL_ENOENT, "a.md");
  const char *gone = doc_path("a.md");
  fl_open_options removing = again;
  removing.remove = &gone;
  removing.n_remove = 1;
  f = applied(&removing);
  ck_assert_uint_eq(fl_fleet_n_docs(f), 3);
  fl_fleet_close(f);
  ck_assert(!in_fleet("doc-000.g000000.safetensors"));
  put_docs(); /* a.md is back: a new document with a new number */
  f = applied(&again);
  ck_assert_uint_eq(info(f, "a.md").id, 4);
  fl_fleet_close(f);
  const char *nobody = "nobody.md";
  removing.remove = &nobody;
  refused(&removing, FL_EUSAGE, "nobody.md");
}
END_TEST

/* A document that is named for removal and still given does not come straight back. */
START_TEST(removed_though_still_there) {
  put_docs();
  fl_fleet_close(applied(&(fl_open_options){ .allow_add = true }));
  const char *name = doc_path("c.md");
  fl_open_options removing = again;
  removing.remove = &name;
  removing.n_remove = 1;
  fl_fleet *f = applied(&removing);
  ck_assert_uint_eq(fl_fleet_n_docs(f), 2);
  fl_fleet_close(f);
}
END_TEST

START_TEST(a_missing_file_wants_a_redo) {
  put_docs();
  fl_fleet_close(applied(&(fl_open_options){ .allow_add = true }));
  char *path = fl_fs_join(fleet_dir, "doc-001.g000000.safetensors");
  unlink(path);
  fl_free(path);
  refused(&again, FL_EINPUT, "--redo");
  const char *name = doc_path("b.md");
  fl_open_options redo = again;
  redo.redo = &name;
  redo.n_redo = 1;
  fl_fleet *f = applied(&redo);
  ck_assert_uint_eq(info(f, "b.md").steps, 0);
  fl_fleet_close(f);
  ck_assert(in_fleet("doc-001.g000001.safetensors"));
  ck_assert(in_fleet("index.g000000.safetensors")); /* the texts are the same */
}
END_TEST

START_TEST(merged_documents) {
  put_docs();
  fl_open_options how = { .allow_add = true, .merge = "all of it" };
  fl_fleet *f = applied(&how);
  ck_assert_uint_eq(fl_fleet_n_docs(f), 1);
  ck_assert_str_eq(info(f, "all of it").name, "all of it");
  size_t tokens = info(f, "all of it").tokens;
  ck_assert_uint_gt(tokens, 250);
  fl_fleet_close(f);
  f = applied(&again);
  ck_assert_uint_eq(fl_fleet_generation(f), 0);
  fl_fleet_close(f);
  put_doc("b.md", "Another text.");
  refused(&again, FL_EINPUT, "b.md");
  fl_open_options update = again;
  update.update = true;
  f = applied(&update);
  ck_assert_uint_lt(info(f, "all of it").tokens, tokens);
  fl_fleet_close(f);
  how.resume = true;
  how.merge = "other";
  refused(&how, FL_EUSAGE, "--merge");
}
END_TEST

START_TEST(one_writer_at_a_time) {
  put_docs();
  fl_train_options o = small_options();
  fl_fleet *f = applied(&(fl_open_options){ .allow_add = true });
  pid_t pid = fork();
  if (pid == 0) { /* a lock is of the open file, so another process must try */
    fl_fleet *g = NULL;
    fl_err err = { 0 };
    int rc = try_open(&g, &o, &again, &err);
    _exit(rc == FL_EBUSY && strstr(err.text, "held by process") != NULL ? 0 : 1);
  }
  int status = 0;
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  fl_fleet *reader = open_reader(); /* readers are welcome */
  ck_assert_uint_eq(fl_fleet_n_docs(reader), 3);
  fl_fleet_close(reader);
  fl_fleet_close(f);
  f = must_open(&o, &again);
  fl_fleet_close(f);
}
END_TEST

START_TEST(another_model_is_refused) {
  put_docs();
  fl_fleet_close(applied(&(fl_open_options){ .allow_add = true }));
  fl_err err = { 0 };
  fl_fleet *f = NULL;
  fl_model *other = NULL;
  int rc = fl_model_open(&other, fixture("tiny/tiny-qwen3.gguf"), NULL, fleet_team, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  fl_open_options reading = { .read_only = true };
  ck_assert_int_eq(fl_fleet_open(&f, fleet_dir, other, fleet_team, NULL, NULL, &reading, &err),
                   FL_EINPUT);
  ck_assert_ptr_nonnull(strstr(err.text, "another model"));
  fl_model_close(other);
}
END_TEST

/* A fleet as the other program leaves it: no "flotilla" members, no metadata needed. */
START_TEST(a_foreign_fleet_is_adopted) {
  put_docs();
  fl_fleet_close(applied(&(fl_open_options){ .allow_add = true }));
  char *path = fl_fs_join(fleet_dir, "fleet.json");
  fl_buf text = { 0 };
  fl_json *o = NULL;
  ck_assert_int_eq(fl_fs_read(&text, path, 1 << 20, NULL), FL_OK);
  ck_assert_int_eq(fl_json_parse(&o, text.data, text.len, NULL), FL_OK);
  fl_json_del(o, "flotilla");
  for (const fl_json *d = fl_json_first(fl_json_get(o, "docs")); d != NULL; d = fl_json_next(d))
    fl_json_del((fl_json *)(uintptr_t)d, "flotilla");
  fl_buf_reset(&text);
  fl_json_print(&text, o, true);
  ck_assert_int_eq(fl_fs_replace(path, text.data, text.len, NULL), FL_OK);
  fl_fleet *f = applied(&again);
  ck_assert_uint_eq(fl_fleet_n_docs(f), 3);
  ck_assert(strncmp(info(f, "a.md").hash, "xxh3:", 5) == 0);
  fl_fleet_close(f);
  f = open_reader();
  fl_hits h = { 0 };
  fl_rag_options rag = { .docs = 1, .chunks = 4, .floor = -1 };
  ck_assert_int_eq(fl_fleet_retrieve(f, "bakery", 6, &rag, &h, NULL), FL_OK);
  fl_hits_release(&h);
  fl_fleet_close(f);
  fl_buf_release(&text);
  fl_json_free(o);
  fl_free(path);
}
END_TEST

Suite *suite_reconcile(void);
Suite *suite_reconcile(void) {
  Suite *s = suite_create("reconcile");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, fleet_setup_model, fleet_teardown_model);
  tcase_add_test(t, a_new_fleet_and_no_second_one);
  tcase_add_test(t, nothing_to_resume);
  tcase_add_test(t, a_changed_document_is_named_and_updated);
  tcase_add_test(t, documents_come_and_go);
  tcase_add_test(t, removed_though_still_there);
  tcase_add_test(t, a_missing_file_wants_a_redo);
  tcase_add_test(t, merged_documents);
  tcase_add_test(t, one_writer_at_a_time);
  tcase_add_test(t, another_model_is_refused);
  tcase_add_test(t, a_foreign_fleet_is_adopted);
  suite_add_tcase(s, t);
  return s;
}
