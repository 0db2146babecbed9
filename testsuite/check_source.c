/* check_source.c - documents from files and folders: order, names, hashes, and every refusal. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "sources/source.h"
#include "suite.h"

static char dir[64];

static void setup(void) {
  strcpy(dir, "/tmp/flsrcXXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_tree(const char *path) {
  char **names = NULL;
  size_t n = 0;
  if (fl_fs_list(&names, &n, path, NULL) != FL_OK) return;
  for (size_t i = 0; i < n; i++) {
    char *p = fl_fs_join(path, names[i]);
    struct stat st;
    if (lstat(p, &st) == 0 && S_ISDIR(st.st_mode)) remove_tree(p);
    else unlink(p);
    fl_free(p);
  }
  fl_fs_list_free(names, n);
  rmdir(path);
}

static void teardown(void) { remove_tree(dir); }

static const char *at(const char *rel) {
  static char path[8][256];
  static int k;
  k = (k + 1) % 8;
  snprintf(path[k], sizeof path[k], "%s/%s", dir, rel);
  return path[k];
}

static void put(const char *rel, const void *data, size_t n) {
  FILE *f = fopen(at(rel), "wb");
  ck_assert_ptr_nonnull(f);
  ck_assert_uint_eq(fwrite(data, 1, n, f), n);
  fclose(f);
}

static void puts_at(const char *rel, const char *text) { put(rel, text, strlen(text)); }

static int read1(fl_source_list *l, const char *path, bool recursive, fl_err *err) {
  return fl_source_read(l, &path, 1, recursive, err);
}

START_TEST(a_file_is_one_document) {
  puts_at("a.anything", "hello\n");
  fl_source_list l = { 0 };
  const char *path = at("a.anything");
  ck_assert_int_eq(read1(&l, path, false, NULL), FL_OK);
  ck_assert_uint_eq(l.n, 1);
  ck_assert_str_eq(l.doc[0].name, path);
  ck_assert_str_eq(l.doc[0].text, "hello\n");
  ck_assert_uint_eq(l.doc[0].len, 6);
  char want[FL_HASH_TEXT];
  fl_hash_bytes(want, "hello\n", 6);
  ck_assert_str_eq(l.doc[0].hash, want);
  fl_source_release(&l);
}
END_TEST

START_TEST(a_folder_in_byte_order) {
  mkdir(at("docs"), 0777);
  puts_at("docs/b.md", "b");
  puts_at("docs/B.TXT", "B");
  puts_at("docs/a.md", "a");
  puts_at("docs/skip.pdf", "x");
  puts_at("docs/.hidden.md", "x");
  mkdir(at("docs/below"), 0777);
  puts_at("docs/below/c.txt", "c");
  static const char *const flat[] = { "B.TXT", "a.md", "b.md" };
  static const char *const deep[] = { "B.TXT", "a.md", "b.md", "below/c.txt" };
  for (int recursive = 0; recursive < 2; recursive++) {
    fl_source_list l = { 0 };
    char with_slash[256];
    snprintf(with_slash, sizeof with_slash, "%s/", at("docs"));
    ck_assert_int_eq(read1(&l, with_slash, recursive, NULL), FL_OK);
    ck_assert_uint_eq(l.n, recursive ? 4 : 3);
    for (size_t i = 0; i < l.n; i++) {
      char want[300];
      snprintf(want, sizeof want, "%s/%s", at("docs"), recursive ? deep[i] : flat[i]);
      ck_assert_str_eq(l.doc[i].name, want);
    }
    fl_source_release(&l);
  }
}
END_TEST

START_TEST(a_loop_of_links_ends) {
  mkdir(at("d"), 0777);
  puts_at("d/a.md", "a");
  ck_assert_int_eq(symlink("..", at("d/up")), 0);
  fl_source_list l = { 0 };
  ck_assert_int_eq(read1(&l, at("d"), true, NULL), FL_OK);
  ck_assert_uint_eq(l.n, 1);
  fl_source_release(&l);
}
END_TEST

START_TEST(a_byte_order_mark_is_no_text) {
  puts_at("bom.md", "\xEF\xBB\xBFtext");
  fl_source_list l = { 0 };
  ck_assert_int_eq(read1(&l, at("bom.md"), false, NULL), FL_OK);
  ck_assert_str_eq(l.doc[0].text, "text");
  fl_source_release(&l);
}
END_TEST

static void refused(const char *path, int code, const char *word) {
  fl_source_list l = { 0 };
  fl_err err = { 0 };
  ck_assert_int_eq(read1(&l, path, false, &err), code);
  ck_assert_msg(strstr(err.text, word) != NULL, "'%s' not in '%s'", word, err.text);
  ck_assert_ptr_null(l.doc);
}

START_TEST(refusals_name_the_file) {
  puts_at("empty.md", "");
  refused(at("empty.md"), FL_EINPUT, "empty.md");
  put("bad.md", "ok\xC3(", 4);
  refused(at("bad.md"), FL_EINPUT, "byte 2");
  put("nul.md", "a\0b", 3);
  refused(at("nul.md"), FL_EINPUT, "byte 1");
  refused(at("none.md"), FL_ENOENT, "none.md");
  mkdir(at("void"), 0777);
  refused(at("void"), FL_ENOENT, "void");
}
END_TEST

START_TEST(too_large_is_refused) {
  FILE *f = fopen(at("large.md"), "wb");
  ck_assert_ptr_nonnull(f);
  ck_assert_int_eq(ftruncate(fileno(f), (off_t)FL_SOURCE_MAX_BYTES + 1), 0);
  fclose(f);
  refused(at("large.md"), FL_EINPUT, "large.md");
}
END_TEST

START_TEST(duplicates_are_refused) {
  mkdir(at("docs"), 0777);
  puts_at("docs/a.md", "a");
  const char *paths[] = { at("docs"), at("docs/a.md") };
  fl_source_list l = { 0 };
  fl_err err = { 0 };
  ck_assert_int_eq(fl_source_read(&l, paths, 2, false, &err), FL_EINPUT);
  ck_assert_ptr_nonnull(strstr(err.text, "a.md"));
}
END_TEST

START_TEST(lack_of_memory_is_reported) {
  puts_at("a.md", "a");
  const char *path = at("a.md");
  for (size_t n = 1; n < 100; n++) {
    fl_source_list l = { 0 };
    fl_mem_fault_after(n);
    int rc = read1(&l, path, false, NULL);
    fl_mem_fault_after(0);
    if (rc == FL_OK) {
      ck_assert_uint_gt(n, 1);
      fl_source_release(&l);
      return;
    }
    ck_assert_int_eq(rc, FL_ENOMEM);
    ck_assert_ptr_null(l.doc);
  }
  ck_abort_msg("never succeeded");
}
END_TEST

Suite *suite_source(void);
Suite *suite_source(void) {
  Suite *s = suite_create("source");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, a_file_is_one_document);
  tcase_add_test(t, a_folder_in_byte_order);
  tcase_add_test(t, a_loop_of_links_ends);
  tcase_add_test(t, a_byte_order_mark_is_no_text);
  suite_add_tcase(s, t);
  t = tcase_create("errors");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, refusals_name_the_file);
  tcase_add_test(t, too_large_is_refused);
  tcase_add_test(t, duplicates_are_refused);
  tcase_add_test(t, lack_of_memory_is_reported);
  suite_add_tcase(s, t);
  return s;
}
