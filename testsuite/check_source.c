/* check_source.c - documents from files and folders: order, names, hashes, and every refusal. */
#include <string.h>

#include "base/hash.h"
#include "source_util.h"

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
  puts_at("docs/skip.png", "x");
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

START_TEST(refusals_name_the_file) {
  puts_at("empty.md", "");
  refused(at("empty.md"), FL_EINPUT, "empty.md");
  put("bad.md", "\xC3\xA9 \xC3(", 5); /* good and bad sequences: damaged, not Latin-1 */
  refused(at("bad.md"), FL_EINPUT, "byte 3");
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

static char told[4][FL_ERR_TEXT];
static size_t n_told;

static void tell(void *ctx, const char *sentence) {
  (void)ctx;
  if (n_told < 4) snprintf(told[n_told], sizeof told[0], "%s", sentence);
  n_told++;
}

/* One line for each file that could not be read; with `skip` the others are the documents. */
START_TEST(every_unreadable_file_is_told) {
  mkdir(at("docs"), 0777);
  puts_at("docs/a.md", "a");
  puts_at("docs/b.json", "{");
  puts_at("docs/c.md", "");
  puts_at("docs/d.txt", "d");
  const char *path = at("docs");
  fl_source_list l = { 0 };
  fl_err err = { 0 };
  fl_source_options o = { .unreadable = tell };
  ck_assert_int_eq(fl_source_read_with(&l, &path, 1, &o, &err), FL_EINPUT);
  ck_assert_uint_eq(n_told, 2);
  ck_assert_ptr_nonnull(strstr(told[0], "b.json"));
  ck_assert_ptr_nonnull(strstr(told[1], "c.md"));
  ck_assert_ptr_nonnull(strstr(err.text, "2 of 4 files"));
  o.skip = true;
  n_told = 0;
  ck_assert_int_eq(fl_source_read_with(&l, &path, 1, &o, &err), FL_OK);
  ck_assert_uint_eq(n_told, 2);
  ck_assert_uint_eq(l.n, 2);
  ck_assert_str_eq(l.doc[1].text, "d");
  fl_source_release(&l);
  /* a single one is the sentence of the error, and told once */
  unlink(at("docs/c.md"));
  err = (fl_err){ 0 };
  o.skip = false;
  n_told = 0;
  ck_assert_int_eq(fl_source_read_with(&l, &path, 1, &o, &err), FL_EINPUT);
  ck_assert_uint_eq(n_told, 0);
  ck_assert_msg(strstr(err.text, "b.json") != NULL, "%s", err.text);
}
END_TEST

START_TEST(patterns_leave_files_out) {
  mkdir(at("d"), 0777);
  mkdir(at("d/old"), 0777);
  mkdir(at("d/new"), 0777);
  puts_at("d/a.md", "a");
  puts_at("d/a.draft.md", "x");
  puts_at("d/old/b.md", "x");
  puts_at("d/new/c.md", "c");
  puts_at("d/new/d.md", "x");
  const char *path = at("d");
  static const char *const patterns[] = { "*.draft.*", "old", "new/d.*" };
  fl_source_list l = { 0 };
  fl_source_options o = { .recursive = true, .ignore = patterns, .n_ignore = 3 };
  ck_assert_int_eq(fl_source_read_with(&l, &path, 1, &o, NULL), FL_OK);
  ck_assert_uint_eq(l.n, 2);
  ck_assert_str_eq(l.doc[0].text, "a");
  ck_assert_str_eq(l.doc[1].text, "c");
  fl_source_release(&l);
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
  tcase_add_test(t, patterns_leave_files_out);
  suite_add_tcase(s, t);
  t = tcase_create("errors");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, refusals_name_the_file);
  tcase_add_test(t, every_unreadable_file_is_told);
  tcase_add_test(t, too_large_is_refused);
  tcase_add_test(t, duplicates_are_refused);
  tcase_add_test(t, lack_of_memory_is_reported);
  suite_add_tcase(s, t);
  return s;
}
