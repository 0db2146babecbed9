/* check_part.c - what a study has made so far outlives a kill at any byte. */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "scratch.h"
#include "study/part.h"

#define STUDY "xxh3:00112233445566778899aabbccddeeff"

static const char *const batch[] = { "{\"name\":\"a\",\"n\":1}\n{\"name\":\"b\",\"n\":2}\n", "",
                                     "{\"name\":\"\",\"hash\":\"not a mark\"}\n" };
static const fl_part_count after[] = { { 3, 2 }, { 6, 2 }, { 9, 3 } };
enum { BATCHES = 3 };

static fl_part *opened(const char *file, size_t tried) {
  fl_part *p = NULL;
  fl_part_count held = { 77, 77 };
  fl_err err = { 0 };
  ck_assert_msg(fl_part_open(&p, &held, file, STUDY, &err) == FL_OK, "%s", err.text);
  ck_assert_uint_eq(held.tried, tried);
  return p;
}

static int add(fl_part *p, size_t i) {
  fl_buf lines = { 0 };
  fl_buf_puts(&lines, batch[i]);
  int rc = fl_part_add(p, &lines, &after[i], NULL);
  fl_buf_release(&lines);
  return rc;
}

/* FILE holds the first n batches. */
static void has_batches(const char *file, size_t n) {
  fl_buf have = { 0 }, want = { 0 };
  fl_buf_puts(&want, "");
  for (size_t i = 0; i < n; i++) fl_buf_puts(&want, batch[i]);
  ck_assert_int_eq(fl_fs_read(&have, file, 1 << 20, NULL), FL_OK);
  ck_assert_uint_eq(have.len, want.len);
  ck_assert(have.len == 0 || memcmp(have.data, want.data, want.len) == 0);
  fl_buf_release(&have);
  fl_buf_release(&want);
}

/* The bytes of a part of all batches; ends[i]: where that of i batches ends. */
static void make_part(fl_buf *bytes, size_t ends[BATCHES + 1]) {
  fl_part *p = opened(scratch("whole"), 0);
  uint64_t size;
  for (size_t i = 0; i <= BATCHES; i++) {
    if (i > 0) ck_assert_int_eq(add(p, i - 1), FL_OK);
    ck_assert_int_eq(fl_fs_size(&size, scratch("whole.part"), NULL), FL_OK);
    ends[i] = (size_t)size;
  }
  ck_assert_int_eq(fl_part_publish(p, NULL), FL_OK);
  has_batches(scratch("whole"), BATCHES);
  ck_assert_int_eq(fl_fs_read(bytes, scratch("whole.part"), 1 << 20, NULL), FL_OK);
  fl_part_close(p, true);
  ck_assert(!fl_fs_exists(scratch("whole.part")));
}

/* Cut at any byte, and with any byte changed, it goes on from the last batch that is whole. */
START_TEST(goes_on_after_a_cut_or_a_change_at_any_byte) {
  size_t ends[BATCHES + 1];
  fl_buf bytes = { 0 };
  make_part(&bytes, ends);
  for (size_t at = ends[0]; at < 2 * bytes.len; at++) {
    const bool cut = at <= bytes.len;
    const size_t byte = cut ? at : at - bytes.len;
    if (!cut && byte < ends[0]) continue; /* without its first mark it is no part */
    size_t whole = 0;
    while (whole < BATCHES && ends[whole + 1] <= byte) whole++;
    fl_buf text = { 0 };
    fl_buf_append(&text, bytes.data, cut ? byte : bytes.len);
    if (!cut) text.data[byte] ^= 1;
    scratch_put(scratch("f.part"), text.data, text.len);
    fl_buf_release(&text);
    fl_part *p = opened(scratch("f"), whole ? after[whole - 1].tried : 0);
    if (at % 101 != 0) { /* a disk takes its time to sync */
      fl_part_close(p, true);
      continue;
    }
    for (size_t i = whole; i < BATCHES; i++) ck_assert_int_eq(add(p, i), FL_OK);
    ck_assert_int_eq(fl_part_publish(p, NULL), FL_OK);
    fl_part_close(p, true);
    has_batches(scratch("f"), BATCHES);
  }
  fl_buf_release(&bytes);
}
END_TEST

static void refused(const char *file, const char *study, int code, const char *says) {
  fl_part *p = NULL;
  fl_part_count held;
  fl_err err = { 0 };
  ck_assert_int_eq(fl_part_open(&p, &held, file, study, &err), code);
  ck_assert_msg(strstr(err.text, says) != NULL, "%s", err.text);
}

START_TEST(what_is_not_its_own_stays) {
  fl_buf before = { 0 }, now = { 0 };
  fl_part *p = opened(scratch("f"), 0);
  ck_assert_int_eq(add(p, 0), FL_OK);
  refused(scratch("f"), STUDY, FL_EBUSY, "another process");
  fl_part_close(p, false);
  ck_assert_int_eq(fl_fs_read(&before, scratch("f.part"), 1 << 20, NULL), FL_OK);
  refused(scratch("f"), "xxh3:other", FL_EINPUT, "holds 2 conversations");
  ck_assert_int_eq(fl_fs_read(&now, scratch("f.part"), 1 << 20, NULL), FL_OK);
  ck_assert(now.len == before.len && memcmp(now.data, before.data, now.len) == 0);
  scratch_put(scratch("g.part"), "mine\n", 5);
  refused(scratch("g"), STUDY, FL_EINPUT, "move it away");
  ck_assert_int_eq(fl_fs_read(&now, scratch("g.part"), 1 << 20, NULL), FL_OK);
  ck_assert_str_eq(now.data, "mine\n");
  ck_assert_int_eq(symlink("f.part", scratch("h.part")), 0);
  refused(scratch("h"), STUDY, FL_EFAIL, "link");
  refused(scratch("none/f"), STUDY, FL_ENOENT, "none/f.part");
  fl_buf_release(&before);
  fl_buf_release(&now);
}
END_TEST

START_TEST(one_that_holds_nothing_goes) {
  struct stat st;
  scratch_put(scratch("f"), "old", 3);
  ck_assert_int_eq(chmod(scratch("f"), 0440), 0);
  fl_part *p = opened(scratch("f"), 0);
  ck_assert_int_eq(stat(scratch("f.part"), &st), 0);
  ck_assert_uint_eq(st.st_mode & 0777, 0640); /* closed to others like the file, open to us */
  fl_part_close(p, false);
  ck_assert(!fl_fs_exists(scratch("f.part")));
  fl_part_close(NULL, true);
}
END_TEST

/* A full disk costs the batch that met it. */
START_TEST(a_write_that_fails) {
  char line[4096];
  fl_buf lines = { 0 };
  fl_err err = { 0 };
  memset(line, 'x', sizeof line);
  line[sizeof line - 1] = '\n';
  signal(SIGXFSZ, SIG_IGN);
  fl_part *p = opened(scratch("f"), 0);
  ck_assert_int_eq(add(p, 0), FL_OK);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 3000, RLIM_INFINITY }), 0);
  fl_buf_append(&lines, line, sizeof line);
  ck_assert_int_eq(fl_part_add(p, &lines, &after[1], &err), FL_EFAIL);
  ck_assert_msg(strstr(err.text, "f.part") != NULL, "%s", err.text);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }), 0);
  fl_part_close(p, false);
  p = opened(scratch("f"), after[0].tried);
  ck_assert_int_eq(fl_part_publish(p, NULL), FL_OK);
  has_batches(scratch("f"), 1);
  fl_part_close(p, true);
  fl_buf_release(&lines);
}
END_TEST

START_TEST(no_memory) {
  for (size_t n = 1; n < 6; n++) {
    fl_part *p = NULL;
    fl_part_count held;
    fl_mem_fault_after(n);
    int rc = fl_part_open(&p, &held, scratch("f"), STUDY, NULL);
    fl_mem_fault_after(0);
    ck_assert(rc == FL_OK || rc == FL_ENOMEM);
    if (rc == FL_OK) fl_part_close(p, false);
    fl_fs_remove(scratch("f.part"));
  }
}
END_TEST

Suite *suite_part(void);

Suite *suite_part(void) {
  Suite *s = suite_create("part");
  TCase *t = tcase_create("core");
  tcase_add_checked_fixture(t, scratch_begin, scratch_end);
  tcase_add_test(t, goes_on_after_a_cut_or_a_change_at_any_byte);
  tcase_add_test(t, what_is_not_its_own_stays);
  tcase_add_test(t, one_that_holds_nothing_goes);
  tcase_add_test(t, a_write_that_fails);
  tcase_add_test(t, no_memory);
  suite_add_tcase(s, t);
  return s;
}
