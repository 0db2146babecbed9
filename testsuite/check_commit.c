/* check_commit.c - a crash at any step leaves one whole generation; a full disk the old one. */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "fleet/commit.h"
#include "suite.h"

static char dir[64];

static void setup(void) {
  strcpy(dir, "/tmp/flcommitXXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void teardown(void) {
  char **names = NULL;
  size_t n = 0;
  if (fl_fs_list(&names, &n, dir, NULL) != FL_OK) return;
  for (size_t i = 0; i < n; i++) {
    char *p = fl_fs_join(dir, names[i]);
    unlink(p);
    fl_free(p);
  }
  fl_fs_list_free(names, n);
  rmdir(dir);
}

static int put(fl_commit *c, const char *name, const char *text, fl_err *err) {
  char *path = NULL;
  fl_sink *s = NULL;
  int rc = fl_commit_path(&path, c, name, err);
  if (rc == FL_OK) rc = fl_sink_open(&s, path, err);
  if (rc == FL_OK) {
    fl_sink_write(s, text, strlen(text));
    rc = fl_sink_close(s, err);
  }
  fl_free(path);
  return rc;
}

static bool holds(const char *name, const char *text) {
  fl_buf b = { 0 };
  char *path = fl_fs_join(dir, name);
  int rc = fl_fs_read(&b, path, 1 << 20, NULL);
  bool same = rc == FL_OK && b.len == strlen(text) && memcmp(b.data, text, b.len) == 0;
  fl_buf_release(&b);
  fl_free(path);
  return same;
}

static bool exists(const char *name) {
  char *path = fl_fs_join(dir, name);
  bool e = fl_fs_exists(path);
  fl_free(path);
  return e;
}

static fl_manifest fresh(void) {
  fl_manifest m = { .p = 48, .frozen = 1, .embed_chunk = 100 };
  fl_train_options_default(&m.opts);
  ck_assert(fl_set_string(&m.model_name, "m") && fl_set_string(&m.model_hash, "h") &&
            fl_set_string(&m.tokenizer_hash, "t"));
  ck_assert_int_eq(fl_manifest_add(&m, "a", "xa", 10, NULL), FL_OK);
  ck_assert_int_eq(fl_manifest_add(&m, "b", "xb", 10, NULL), FL_OK);
  return m;
}

/* Generation 0: documents 0 and 1 and an index. */
static fl_manifest first_generation(void) {
  fl_manifest m = fresh();
  fl_commit c = { .dir = dir };
  m.index_file = fl_index_file_name(0);
  m.embed_dim = 4;
  ck_assert_int_eq(put(&c, m.doc[0].cart_file, "zero.0", NULL), FL_OK);
  ck_assert_int_eq(put(&c, m.doc[1].cart_file, "one.0", NULL), FL_OK);
  ck_assert_int_eq(put(&c, m.index_file, "index.0", NULL), FL_OK);
  ck_assert_int_eq(fl_commit_finish(&c, &m, NULL), FL_OK);
  return m;
}

/* Generation 3: document 0 changed and the index was rebuilt; document 1 keeps its file. */
static int second_generation(fl_manifest *m, fl_commit *c, fl_err *err) {
  m->rounds = 3;
  ck_assert_int_eq(fl_doc_entry_name_files(&m->doc[0], 3), FL_OK);
  fl_free(m->index_file);
  m->index_file = fl_index_file_name(3);
  int rc = put(c, m->doc[0].cart_file, "zero.3", err);
  if (rc == FL_OK) rc = put(c, m->index_file, "index.3", err);
  if (rc == FL_OK) return fl_commit_finish(c, m, err);
  fl_commit_abandon(c);
  return rc;
}

/* The folder's manifest and what it names belong together; returns its rounds. */
static uint64_t whole(void) {
  fl_manifest m = { 0 };
  fl_err err = { 0 };
  ck_assert_msg(fl_manifest_load(&m, dir, &err) == FL_OK, "%s", err.text);
  uint64_t rounds = m.rounds;
  ck_assert(rounds == 0 || rounds == 3);
  ck_assert(holds(m.doc[0].cart_file, rounds ? "zero.3" : "zero.0"));
  ck_assert(holds(m.doc[1].cart_file, "one.0"));
  ck_assert(holds(m.index_file, rounds ? "index.3" : "index.0"));
  fl_commit_sweep(dir, &m);
  ck_assert(holds(m.doc[0].cart_file, rounds ? "zero.3" : "zero.0"));
  ck_assert_int_eq(exists("doc-000.g000000.safetensors"), rounds == 0);
  ck_assert_int_eq(exists("doc-000.g000003.safetensors"), rounds == 3);
  fl_manifest_release(&m);
  return rounds;
}

START_TEST(a_commit_replaces_a_generation) {
  fl_manifest m = first_generation();
  ck_assert_uint_eq(whole(), 0);
  fl_commit c = { .dir = dir };
  ck_assert_int_eq(second_generation(&m, &c, NULL), FL_OK);
  ck_assert_uint_gt(c.bytes, strlen("zero.3index.3"));
  ck_assert(!exists("doc-000.g000000.safetensors")); /* at once, without a sweep */
  ck_assert_uint_eq(whole(), 3);
  ck_assert(holds("index.safetensors", "index.3"));
  fl_manifest_release(&m);
}
END_TEST

struct stop {
  int at, seen;
};

static void die_at(void *ctx, int number) {
  struct stop *s = ctx;
  (void)number;
  if (s->seen++ == s->at) _exit(9);
}

/* The process dies before each of the durable steps in turn. */
START_TEST(a_crash_leaves_one_whole_generation) {
  bool old = false, new = false;
  for (int at = 0;; at++) {
    teardown();
    setup();
    fl_manifest m = first_generation();
    pid_t pid = fork();
    if (pid == 0) {
      struct stop s = { .at = at };
      fl_commit c = { .dir = dir, .step = die_at, .ctx = &s };
      _exit(second_generation(&m, &c, NULL) == FL_OK ? 0 : 1);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) != 1);
    if (whole() == 3) new = true;
    else old = true;
    fl_manifest_release(&m);
    if (WEXITSTATUS(status) == 0) break;
  }
  ck_assert(old && new);
}
END_TEST

/* Writes beyond a file size limit fail as on a full disk. */
START_TEST(a_full_disk_leaves_the_old_generation) {
  fl_manifest m = first_generation();
  pid_t pid = fork();
  if (pid == 0) {
    struct rlimit l = { .rlim_cur = 3, .rlim_max = 3 };
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &l) != 0) _exit(2);
    fl_commit c = { .dir = dir };
    fl_err err = { 0 };
    int rc = second_generation(&m, &c, &err);
    _exit(rc == FL_EFAIL && err.text[0] != '\0' ? 0 : 1);
  }
  int status = 0;
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ck_assert(!exists("doc-000.g000003.safetensors"));
  ck_assert_uint_eq(whole(), 0);
  fl_manifest_release(&m);
}
END_TEST

/* The manifest itself does not fit: the files written before it go again. */
START_TEST(a_manifest_that_cannot_be_written_takes_its_files_along) {
  fl_manifest m = first_generation();
  pid_t pid = fork();
  if (pid == 0) {
    struct rlimit l = { .rlim_cur = 100, .rlim_max = 100 };
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &l) != 0) _exit(2);
    fl_commit c = { .dir = dir };
    _exit(second_generation(&m, &c, NULL) == FL_EFAIL ? 0 : 1);
  }
  int status = 0;
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ck_assert(!exists("doc-000.g000003.safetensors") && !exists("index.g000003.safetensors"));
  ck_assert_uint_eq(whole(), 0);
  fl_manifest_release(&m);
}
END_TEST

START_TEST(sweeping_leaves_strangers_alone) {
  fl_manifest m = first_generation();
  fl_commit c = { .dir = dir };
  static const char *const strangers[] = { "notes.txt", "doc-000.safetensors", "events.jsonl",
                                           "fleet.json.bak", "events.1.jsonl" };
  static const char *const litter[] = { "doc-000.g000009.safetensors", "doc-001.g000009.fza",
                                        "index.g000009.safetensors", "fleet.json.tmp-1-0",
                                        "doc-001.g000002.study.jsonl" };
  for (size_t i = 0; i < 5; i++) ck_assert_int_eq(put(&c, strangers[i], "x", NULL), FL_OK);
  for (size_t i = 0; i < 5; i++) ck_assert_int_eq(put(&c, litter[i], "x", NULL), FL_OK);
  fl_commit_sweep(dir, &m);
  for (size_t i = 0; i < 5; i++) ck_assert(exists(strangers[i]));
  for (size_t i = 0; i < 5; i++) ck_assert_msg(!exists(litter[i]), "%s", litter[i]);
  fl_commit_abandon(&c);
  ck_assert_uint_eq(whole(), 0);
  fl_manifest_release(&m);
}
END_TEST

/* A planted link must not lead a write out of the folder. */
START_TEST(a_planted_link_is_not_followed) {
  fl_manifest m = first_generation();
  char outside[] = "/tmp/flcommitoutXXXXXX";
  int fd = mkstemp(outside);
  ck_assert_int_ge(fd, 0);
  close(fd);
  char *path = fl_fs_join(dir, "doc-000.g000003.safetensors");
  ck_assert_int_eq(symlink(outside, path), 0);
  fl_free(path);
  fl_commit c = { .dir = dir };
  ck_assert_int_eq(second_generation(&m, &c, NULL), FL_OK);
  struct stat st;
  ck_assert_int_eq(stat(outside, &st), 0);
  ck_assert_int_eq(st.st_size, 0);
  unlink(outside);
  fl_manifest_release(&m);
}
END_TEST

Suite *suite_commit(void);
Suite *suite_commit(void) {
  Suite *s = suite_create("commit");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, a_commit_replaces_a_generation);
  tcase_add_test(t, a_crash_leaves_one_whole_generation);
  tcase_add_test(t, a_full_disk_leaves_the_old_generation);
  tcase_add_test(t, a_manifest_that_cannot_be_written_takes_its_files_along);
  tcase_add_test(t, sweeping_leaves_strangers_alone);
  tcase_add_test(t, a_planted_link_is_not_followed);
  suite_add_tcase(s, t);
  return s;
}
