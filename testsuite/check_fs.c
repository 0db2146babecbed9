/* check_fs.c - reading, durable writing, replacement, failures of the disk, locks. */
#include "base/fs.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "scratch.h"

static void has_text(const char *path, const char *want) {
  fl_buf b = { 0 };
  fl_err err = { 0 };
  ck_assert_msg(fl_fs_read(&b, path, 1 << 20, &err) == FL_OK, "%s", err.text);
  ck_assert_uint_eq(b.len, strlen(want));
  ck_assert_str_eq(b.data, want);
  fl_buf_release(&b);
}

START_TEST(reading) {
  const char *path = scratch("file");
  scratch_put(path, "0123456789", 10);
  has_text(path, "0123456789");
  fl_buf b = { 0 };
  fl_err err = { 0 };
  ck_assert_int_eq(fl_fs_read(&b, path, 10, NULL), FL_OK);
  ck_assert_int_eq(fl_fs_read(&b, path, 9, &err), FL_EINPUT);
  ck_assert_ptr_nonnull(strstr(err.text, "limit of 9 bytes"));
  ck_assert_uint_eq(b.len, 0);
  ck_assert_int_eq(fl_fs_read(&b, scratch("none"), 9, NULL), FL_ENOENT);
  ck_assert_int_eq(fl_fs_read(&b, scratch_dir, 9, NULL), FL_EINPUT);
  ck_assert_int_eq(fl_fs_read(&b, "/proc/self/status", 9, NULL), FL_EINPUT); /* says it has 0 */
  ck_assert_int_eq(fl_fs_read(&b, "/dev/zero", 9, NULL), FL_EINPUT);
  scratch_put(scratch("empty"), "", 0);
  has_text(scratch("empty"), "");
  fl_buf_release(&b);
}
END_TEST

START_TEST(a_named_pipe_is_refused_and_does_not_hang) {
  const char *path = scratch("pipe");
  fl_map m = { 0 };
  ck_assert_int_eq(mkfifo(path, 0600), 0);
  ck_assert_int_eq(fl_map_open(&m, path, NULL), FL_EINPUT);
}
END_TEST

START_TEST(mapping) {
  static char data[3 * 65536 + 5];
  fl_map m = { 0 };
  memset(data, 'x', sizeof data);
  data[65536] = 'y';
  scratch_put(scratch("big"), data, sizeof data);
  ck_assert_int_eq(fl_map_open(&m, scratch("big"), NULL), FL_OK);
  ck_assert_uint_eq(m.size, sizeof data);
  fl_map_drop(&m, 3, sizeof data - 3);
  fl_map_drop(&m, 5, SIZE_MAX - 1); /* past the end: nothing */
  ck_assert_mem_eq(m.data, data, sizeof data);
  fl_map_close(&m);
  fl_map_close(&m);
  scratch_put(scratch("empty"), "", 0);
  ck_assert_int_eq(fl_map_open(&m, scratch("empty"), NULL), FL_OK);
  ck_assert(m.size == 0 && m.data != NULL);
  fl_map_close(&m);
  ck_assert_int_eq(fl_map_open(&m, scratch("none"), NULL), FL_ENOENT);
  ck_assert_int_eq(fl_map_open(&m, scratch_dir, NULL), FL_EINPUT);
}
END_TEST

START_TEST(sink_writes_everything) {
  static char big[200000];
  fl_sink *s;
  fl_buf b = { 0 };
  size_t want = 0;
  for (size_t i = 0; i < sizeof big; i++) big[i] = (char)('a' + i % 23);
  ck_assert_int_eq(fl_sink_open(&s, scratch("out"), NULL), FL_OK);
  for (size_t n = 0; n < sizeof big; n = n * 2 + 1) { /* small, at and over the buffer's size */
    ck_assert_int_eq(fl_sink_write(s, big, n), FL_OK);
    want += n;
  }
  ck_assert_int_eq(fl_sink_close(s, NULL), FL_OK);
  ck_assert_int_eq(fl_fs_read(&b, scratch("out"), SIZE_MAX, NULL), FL_OK);
  ck_assert_uint_eq(b.len, want);
  size_t at = 0;
  for (size_t n = 0; n < sizeof big; at += n, n = n * 2 + 1) ck_assert_mem_eq(b.data + at, big, n);
  fl_buf_release(&b);
}
END_TEST

START_TEST(abandoned_leaves_nothing) {
  fl_sink *s;
  ck_assert_int_eq(fl_sink_open(&s, scratch("out"), NULL), FL_OK);
  fl_sink_write(s, "x", 1);
  fl_sink_abandon(s);
  fl_sink_abandon(NULL);
  ck_assert_uint_eq(scratch_count(), 0);
}
END_TEST

START_TEST(replace_swaps_whole_files) {
  const char *path = scratch("manifest");
  struct stat st;
  ck_assert_int_eq(fl_fs_replace(path, "one", 3, NULL), FL_OK);
  has_text(path, "one");
  ck_assert_int_eq(chmod(path, 0600), 0);
  ck_assert_int_eq(fl_fs_replace(path, "twotwo", 6, NULL), FL_OK);
  has_text(path, "twotwo");
  ck_assert_int_eq(stat(path, &st), 0);
  ck_assert_uint_eq(st.st_mode & 0777, 0600);
  ck_assert_uint_eq(scratch_count(), 1); /* no temporary file stays */
  fl_err err = { 0 };
  ck_assert_int_eq(fl_fs_replace(scratch("none/x"), "x", 1, &err), FL_ENOENT);
  ck_assert_ptr_nonnull(strstr(err.text, "none/x"));
}
END_TEST

START_TEST(temporary_files_of_others_are_left_alone) {
  fl_sink *a, *b;
  const char *path = scratch("f");
  ck_assert_int_eq(fl_fs_open_temp(&a, path, NULL), FL_OK);
  ck_assert_int_eq(fl_fs_open_temp(&b, path, NULL), FL_OK);
  fl_sink_write(a, "a", 1);
  fl_sink_write(b, "b", 1);
  ck_assert_int_eq(fl_fs_commit_temp(b, path, NULL), FL_OK);
  has_text(path, "b");
  ck_assert_int_eq(fl_fs_commit_temp(a, path, NULL), FL_OK);
  has_text(path, "a");
  ck_assert_uint_eq(scratch_count(), 1);
}
END_TEST

/* A rename would put a file in the place of a device, a pipe or a link. */
START_TEST(only_files_are_replaced) {
  fl_sink *s;
  fl_err err = { 0 };
  mkdir(scratch("d"), 0777);
  ck_assert_int_eq(mkfifo(scratch("p"), 0600), 0);
  ck_assert_int_eq(symlink("/dev/null", scratch("l")), 0);
  const char *const names[] = { "d", "p", "l" }, *const kinds[] = { "folder", "pipe", "link" };
  for (size_t i = 0; i < 3; i++) {
    err = (fl_err){ 0 };
    ck_assert_int_eq(fl_fs_open_temp(&s, scratch(names[i]), &err), FL_EFAIL);
    ck_assert_msg(strstr(err.text, kinds[i]) != NULL, "%s", err.text);
    ck_assert_int_eq(fl_fs_replace(scratch(names[i]), "x", 1, NULL), FL_EFAIL);
  }
  ck_assert_int_eq(fl_fs_check_replaceable("/dev/null", NULL), FL_EFAIL);
  ck_assert_int_eq(fl_fs_check_replaceable(scratch("none"), NULL), FL_OK);
  ck_assert_uint_eq(scratch_count(), 3);
  rmdir(scratch("d"));
}
END_TEST

/* A device that is always full: the reason has its name, and the device is not removed. */
START_TEST(full_disk) {
  fl_sink *s;
  fl_err err = { 0 };
  ck_assert_int_eq(fl_sink_open(&s, "/dev/full", NULL), FL_OK);
  ck_assert_int_eq(fl_sink_write(s, "x", 1), FL_OK); /* buffered */
  ck_assert_int_eq(fl_sink_close(s, &err), FL_EFAIL);
  ck_assert_str_eq(err.text, "/dev/full: cannot be written: no space left on the disk; free some "
                             "space and repeat");
  ck_assert(fl_fs_exists("/dev/full"));
}
END_TEST

/* A regular file that hits the size limit: reported, and nothing is left; with a replacement the
 * old file stays whole. */
START_TEST(size_limit) {
  static const char big[300000];
  fl_sink *s;
  fl_err err = { 0 };
  scratch_put(scratch("old"), "old", 3);
  signal(SIGXFSZ, SIG_IGN);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 100000, 100000 }), 0);
  ck_assert_int_eq(fl_sink_open(&s, scratch("new"), NULL), FL_OK);
  ck_assert_int_eq(fl_sink_write(s, big, sizeof big), FL_EFAIL);
  ck_assert_int_eq(fl_sink_write(s, big, 1), FL_EFAIL); /* sticks */
  ck_assert_int_eq(fl_sink_close(s, &err), FL_EFAIL);
  ck_assert_ptr_nonnull(strstr(err.text, "grow over the allowed size"));
  ck_assert(!fl_fs_exists(scratch("new")));
  ck_assert_int_eq(fl_fs_replace(scratch("old"), big, sizeof big, NULL), FL_EFAIL);
  has_text(scratch("old"), "old");
  ck_assert_uint_eq(scratch_count(), 1);
}
END_TEST

START_TEST(no_memory_leaves_nothing) {
  fl_sink *s;
  for (size_t n = 1; n <= 2; n++) {
    fl_mem_fault_after(n);
    ck_assert_int_eq(fl_sink_open(&s, scratch("f"), NULL), FL_ENOMEM);
    fl_mem_fault_after(n);
    ck_assert_int_eq(fl_fs_replace(scratch("g"), "x", 1, NULL), FL_ENOMEM);
    fl_mem_fault_after(0);
  }
  ck_assert_uint_eq(scratch_count(), 0);
}
END_TEST

START_TEST(reasons) {
  ck_assert_str_eq(fl_fs_reason(ENOSPC), "no space left on the disk");
  ck_assert_str_eq(fl_fs_reason(EIO), "the disk reported an input/output error");
  ck_assert_str_eq(fl_fs_reason(ETXTBSY), "Text file busy");
  ck_assert_str_eq(fl_fs_reason(123456), "unknown reason");
}
END_TEST

START_TEST(folders) {
  ck_assert_int_eq(fl_fs_mkdir(scratch("a/b/c"), NULL), FL_OK);
  ck_assert_int_eq(fl_fs_mkdir(scratch("a/b/c/"), NULL), FL_OK);
  ck_assert(fl_fs_is_dir(scratch("a/b/c")));
  ck_assert_int_eq(fl_fs_sync_dir(scratch("a"), NULL), FL_OK);
  ck_assert_int_eq(fl_fs_sync_dir(scratch("none"), NULL), FL_ENOENT);
  scratch_put(scratch("file"), "x", 1);
  ck_assert(!fl_fs_is_dir(scratch("file")) && fl_fs_exists(scratch("file")));
  ck_assert_int_ne(fl_fs_mkdir(scratch("file"), NULL), FL_OK);
  ck_assert_int_ne(fl_fs_mkdir(scratch("file/x"), NULL), FL_OK);
  rmdir(scratch("a/b/c"));
  rmdir(scratch("a/b"));
  rmdir(scratch("a"));
  uint64_t size = 0;
  ck_assert(fl_fs_size(&size, scratch("file"), NULL) == FL_OK && size == 1);
  ck_assert_int_eq(fl_fs_size(&size, scratch("none"), NULL), FL_ENOENT);
  ck_assert_int_eq(fl_fs_remove(scratch("file")), FL_OK);
  ck_assert_int_eq(fl_fs_remove(scratch("file")), FL_OK);
  ck_assert_int_eq(fl_fs_remove(scratch_dir), FL_EFAIL);
}
END_TEST

START_TEST(listing_is_in_byte_order) {
  static const char *const made[] = { "b", "a", "\xC3\xA9", "B", "a.txt", ".hidden" };
  static const char *const want[] = { ".hidden", "B", "a", "a.txt", "b", "\xC3\xA9" };
  for (size_t i = 0; i < 6; i++) scratch_put(scratch(made[i]), "", 0);
  char **names;
  size_t n;
  ck_assert_int_eq(fl_fs_list(&names, &n, scratch_dir, NULL), FL_OK);
  ck_assert_uint_eq(n, 6);
  for (size_t i = 0; i < 6; i++) ck_assert_str_eq(names[i], want[i]);
  fl_fs_list_free(names, n);
  ck_assert_int_eq(fl_fs_list(&names, &n, scratch("none"), NULL), FL_ENOENT);
  for (size_t fault = 1; fault < 8; fault++) {
    fl_mem_fault_after(fault);
    ck_assert_int_eq(fl_fs_list(&names, &n, scratch_dir, NULL), FL_ENOMEM);
    fl_mem_fault_after(0);
  }
}
END_TEST

START_TEST(names_and_paths) {
  char *p = fl_fs_join("a", "b"), *q = fl_fs_join("a/", "b"), *r = fl_fs_join("", "b");
  ck_assert_str_eq(p, "a/b");
  ck_assert_str_eq(q, "a/b");
  ck_assert_str_eq(r, "b");
  fl_free(p);
  fl_free(q);
  fl_free(r);
  /* a link leads to its file; where nothing is there, the name stays as it is */
  scratch_put(scratch("file"), "x", 1);
  ck_assert_int_eq(symlink("file", scratch("link")), 0);
  p = fl_fs_real(scratch("link"));
  q = fl_fs_real(scratch("file"));
  r = fl_fs_real("none/../such");
  ck_assert_str_eq(p, q);
  ck_assert(p[0] == '/');
  ck_assert_str_eq(r, "none/../such");
  fl_free(p);
  fl_free(q);
  fl_free(r);
  char longest[300];
  memset(longest, 'x', sizeof longest);
  longest[255] = '\0';
  ck_assert(fl_fs_is_plain_name("doc-000.safetensors") && fl_fs_is_plain_name("..."));
  ck_assert(fl_fs_is_plain_name(longest));
  longest[255] = 'x';
  longest[256] = '\0';
  ck_assert(!fl_fs_is_plain_name(longest) && !fl_fs_is_plain_name("") && !fl_fs_is_plain_name("."));
  ck_assert(!fl_fs_is_plain_name("..") && !fl_fs_is_plain_name("../x") &&
            !fl_fs_is_plain_name("/x") && !fl_fs_is_plain_name("a/b"));
}
END_TEST

/* The child takes the lock and dies without dropping it; a pipe says when it has it. */
START_TEST(lock_keeps_others_out_and_dies_with_its_holder) {
  const char *path = scratch("lock");
  int ready[2], finish[2];
  char byte;
  ck_assert(pipe(ready) == 0 && pipe(finish) == 0);
  pid_t child = fork();
  if (child == 0) {
    fl_lock *l;
    close(finish[1]);
    if (fl_lock_take(&l, path, NULL) != FL_OK || write(ready[1], "x", 1) != 1) _exit(1);
    _exit(read(finish[0], &byte, 1) == 0 ? 0 : 1); /* until the parent closes its end */
  }
  ck_assert_int_eq(read(ready[0], &byte, 1), 1);
  fl_lock *l = NULL;
  fl_err err = { 0 };
  char pid[32];
  snprintf(pid, sizeof pid, "process %ld", (long)child);
  ck_assert_int_eq(fl_lock_take(&l, path, &err), FL_EBUSY);
  ck_assert_msg(strstr(err.text, pid) != NULL, "%s", err.text);
  close(finish[1]);
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  ck_assert_int_eq(fl_lock_take(&l, path, NULL), FL_OK);
  fl_lock *second;
  ck_assert_int_eq(fl_lock_take(&second, path, NULL), FL_EBUSY); /* within a process too */
  fl_lock_drop(l);
  ck_assert_int_eq(fl_lock_take(&l, path, NULL), FL_OK);
  fl_lock_drop(l);
  fl_lock_drop(NULL);
}
END_TEST

Suite *suite_fs(void) {
  Suite *s = suite_create("fs");
  TCase *core = tcase_create("Core"), *errors = tcase_create("Errors");
  tcase_add_checked_fixture(core, scratch_begin, scratch_end);
  tcase_add_checked_fixture(errors, scratch_begin, scratch_end);
  tcase_add_test(core, reading);
  tcase_add_test(core, mapping);
  tcase_add_test(core, sink_writes_everything);
  tcase_add_test(core, abandoned_leaves_nothing);
  tcase_add_test(core, replace_swaps_whole_files);
  tcase_add_test(core, temporary_files_of_others_are_left_alone);
  tcase_add_test(core, folders);
  tcase_add_test(core, listing_is_in_byte_order);
  tcase_add_test(core, names_and_paths);
  tcase_add_test(core, lock_keeps_others_out_and_dies_with_its_holder);
  tcase_add_test(errors, a_named_pipe_is_refused_and_does_not_hang);
  tcase_add_test(errors, only_files_are_replaced);
  tcase_add_test(errors, full_disk);
  tcase_add_test(errors, size_limit);
  tcase_add_test(errors, no_memory_leaves_nothing);
  tcase_add_test(errors, reasons);
  suite_add_tcase(s, core);
  suite_add_tcase(s, errors);
  return s;
}
