/* check_reader.c - a log that grows, is cut, rotated, damaged, foreign: what is read of it. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/rng.h"
#include "suite.h"
#include "tui/reader.h"

static char dir[64], path[96], other[96], older[96];
static tui_reader reader;
static tui_store store;

static void setup(void) {
  strcpy(dir, "/tmp/flreadXXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(dir));
  snprintf(path, sizeof path, "%s/events.jsonl", dir);
  snprintf(other, sizeof other, "%s/events.jsonl.1", dir);
  snprintf(older, sizeof older, "%s/events.1.jsonl", dir);
  memset(&store, 0, sizeof store);
  ck_assert_int_eq(tui_reader_open(&reader, path), FL_OK);
}

static void teardown(void) {
  tui_reader_close(&reader);
  tui_store_release(&store);
  unlink(path);
  unlink(other);
  unlink(older);
  rmdir(dir);
}

static void append(const char *text) {
  FILE *f = fopen(path, "a");
  ck_assert_ptr_nonnull(f);
  fputs(text, f);
  fclose(f);
}

static tui_reader_state poll_once(void) {
  tui_reader_state st;
  ck_assert_int_eq(tui_reader_poll(&reader, &store, 10, &st, NULL), FL_OK);
  return st;
}

#define ROUND(n) "{\"t\":" #n ",\"ev\":\"round\",\"round\":" #n ",\"doc\":3,\"loss\":1.5}\n"

START_TEST(absent_then_growing) {
  ck_assert_int_eq(poll_once(), TUI_READER_IDLE);
  append(ROUND(1));
  poll_once();
  ck_assert_uint_eq(store.n_ticks, 1);
  append("{\"t\":2,\"ev\":\"round\",\"rou"); /* half a line: nothing yet, no damage */
  poll_once();
  ck_assert_uint_eq(store.n_ticks, 1);
  ck_assert_uint_eq(store.n_damaged, 0);
  append("nd\":2}\n");
  poll_once();
  ck_assert_uint_eq(store.n_ticks, 2);
  const tui_rec_round *r = tui_store_rec(&store, TUI_EV_ROUND, 1);
  ck_assert_uint_eq(r->round, 2);
  ck_assert_uint_eq(r->doc, TUI_NONE);
}
END_TEST

START_TEST(truncated) {
  append(ROUND(1) ROUND(2));
  poll_once();
  ck_assert_int_eq(truncate(path, 10), 0);
  ck_assert_int_eq(poll_once(), TUI_READER_RESET);
  tui_store_reset(&store);
  ck_assert_int_eq(truncate(path, 0), 0);
  poll_once();
  append(ROUND(7));
  poll_once();
  ck_assert_uint_eq(store.n_ticks, 1);
}
END_TEST

START_TEST(rotated) {
  fl_buf line = { 0 };
  append(ROUND(1));
  poll_once();
  append(ROUND(2)); /* not read yet when the file is moved away */
  ck_assert_int_eq(rename(path, other), 0);
  poll_once();
  append(ROUND(3));
  poll_once();
  ck_assert_uint_eq(store.n_ticks, 3);
  for (size_t i = 0; i < 3; i++) { /* lines of both files can be read again */
    char want[64];
    const tui_rec_round *r = tui_store_rec(&store, TUI_EV_ROUND, i);
    snprintf(want, sizeof want, "\"round\":%zu,", i + 1);
    ck_assert(tui_reader_line(&reader, r->rec.line, &line));
    ck_assert_ptr_nonnull(strstr(line.data, want));
  }
  fl_buf_release(&line);
}
END_TEST

static void check_rounds(size_t n) {
  ck_assert_uint_eq(store.n_ticks, n);
  for (size_t i = 0; i < n; i++) {
    const tui_rec_round *r = tui_store_rec(&store, TUI_EV_ROUND, i);
    ck_assert_uint_eq(r->round, i + 1);
  }
}

/* What the older part keeps comes first, and a part that was followed is not read again when it
 * becomes the older one. */
START_TEST(older_part) {
  append(ROUND(1) ROUND(2));
  ck_assert_int_eq(rename(path, older), 0);
  append(ROUND(3));
  poll_once();
  check_rounds(3);
  append(ROUND(4));
  ck_assert_int_eq(rename(path, older), 0);
  poll_once();
  check_rounds(4);
  append(ROUND(5));
  poll_once();
  ck_assert_int_eq(rename(path, older), 0);
  append(ROUND(6));
  poll_once();
  poll_once();
  check_rounds(6);
}
END_TEST

/* A crash between the two names; and a part that is turned while the one before it is read. */
START_TEST(older_part_alone) {
  append(ROUND(1));
  ck_assert_int_eq(rename(path, older), 0);
  poll_once();
  check_rounds(1);
  append(ROUND(2));
  ck_assert_int_eq(rename(path, older), 0);
  append(ROUND(3));
  poll_once();
  check_rounds(3);
}
END_TEST

/* The file that a link names is turned beside itself. */
START_TEST(older_part_of_a_link) {
  append(ROUND(1));
  char far[96], far_older[96];
  snprintf(far, sizeof far, "%s/far.jsonl", dir);
  snprintf(far_older, sizeof far_older, "%s/far.1.jsonl", dir);
  ck_assert_int_eq(rename(path, far_older), 0);
  ck_assert_int_eq(symlink("far.jsonl", path), 0);
  append(ROUND(2));
  poll_once();
  check_rounds(2);
  unlink(far);
  unlink(far_older);
}
END_TEST

START_TEST(rotated_many_times) {
  for (int i = 0; i < 40; i++) {
    append(ROUND(5));
    poll_once();
    ck_assert_int_eq(rename(path, other), 0);
  }
  ck_assert_uint_eq(store.n_ticks, 40);
  ck_assert_uint_le(reader.n_files, TUI_FILES_MAX);
}
END_TEST

START_TEST(damaged_lines_are_counted) {
  append(ROUND(1) "\n"
                  "not json\n"
                  "{\"t\":1,\"ev\":\"round\"\n"
                  "{\"ev\":\"round\",\"t\":1}\n"
                  "{\"t\":-1,\"ev\":\"round\"}\n"
                  "{\"t\":1,\"ev\":\"mystery\",\"x\":[1]}\n" ROUND(2));
  poll_once();
  ck_assert_uint_eq(store.n_ticks, 2);
  ck_assert_uint_eq(store.n_damaged, 4);
  ck_assert_uint_eq(store.n_unknown, 1);
}
END_TEST

START_TEST(a_line_that_is_too_long) {
  size_t n = TUI_LINE_MAX + 1000000;
  char *big = fl_malloc(n + 1);
  memset(big, 'x', n);
  big[n] = '\0';
  append(ROUND(1));
  append(big);
  poll_once();
  ck_assert_uint_lt(reader.cap, 4 * (size_t)TUI_LINE_MAX); /* memory stays bounded */
  append("\n" ROUND(2));
  poll_once();
  ck_assert_uint_eq(reader.n_too_long, 1);
  ck_assert_uint_eq(store.n_ticks, 2);
  fl_free(big);
}
END_TEST

START_TEST(no_regular_file) {
  tui_reader_state st;
  fl_err err = { 0 };
  ck_assert_int_eq(mkfifo(path, 0600), 0); /* opening it must not wait for a writer */
  ck_assert_int_eq(tui_reader_poll(&reader, &store, 1, &st, &err), FL_EINPUT);
  ck_assert_ptr_nonnull(strstr(err.text, path));
}
END_TEST

START_TEST(fields_in_any_order_and_type) {
  append("{\"t\":1.5,\"ev\":\"round\",\"resident\":[3,[4,5],\"x\",-1],\"loss\":\"bad\","
         "\"steps\":{\"7\":40,\"x\":1,\"8\":\"y\"},\"round\":9,\"extra\":{\"a\":[{}]},\"doc\":7,"
         "\"lr\":null,\"tokens\":1e3}\n");
  poll_once();
  const tui_rec_round *r = tui_store_rec(&store, TUI_EV_ROUND, 0);
  ck_assert_uint_eq(r->round, 9);
  ck_assert_uint_eq(r->doc, 7);
  ck_assert_uint_eq(r->tokens, 1000);
  ck_assert(isnan(r->loss) && isnan(r->lr));
  ck_assert_uint_eq(r->resident.n, 3);
  ck_assert_uint_eq(tui_store_numbers(&store, r->resident)[2], 5);
  ck_assert_uint_eq(r->steps.n, 2);
  ck_assert_uint_eq(tui_store_numbers(&store, r->steps)[1], 40);
}
END_TEST

START_TEST(names_are_cut_whole) {
  size_t n;
  char line[9000] = "{\"t\":1,\"ev\":\"doc\",\"doc\":0,\"name\":\"";
  for (int i = 0; i < 2500; i++) strcat(line, "\xC3\xA9");
  strcat(line, "\"}\n");
  append(line);
  poll_once();
  const tui_rec_doc *d = tui_store_rec(&store, TUI_EV_DOC, 0);
  tui_store_str(&store, d->name, &n);
  ck_assert_uint_eq(n, 4096);
}
END_TEST

START_TEST(time_never_goes_back) {
  append(ROUND(5) ROUND(3) ROUND(9));
  poll_once();
  ck_assert_double_eq(tui_store_t(&store, 1), 5);
  ck_assert_uint_eq(tui_store_seek(&store, 4), 0);
  ck_assert_uint_eq(tui_store_seek(&store, 5), 2);
  ck_assert_uint_eq(tui_store_seek(&store, 100), 3);
}
END_TEST

/* Bytes of the recorded log changed at random: every line is an event, damaged or unknown. */
START_TEST(random_damage) {
  fl_buf log = { 0 };
  ck_assert_int_eq(fl_fs_read(&log, fixture("events/voyage.jsonl"), 1 << 20, NULL), FL_OK);
  for (uint32_t seed = 0; seed < 30; seed++) {
    fl_rng r = fl_rng_stream(seed, FL_RNG_TEST, 0, 0, 0);
    char *copy = fl_malloc(log.len);
    memcpy(copy, log.data, log.len);
    for (int i = 0; i < 400; i++) copy[fl_rng_below(&r, log.len)] = (char)fl_rng_below(&r, 256);
    size_t lines = 0, start = 0;
    tui_store_reset(&store);
    for (size_t i = 0; i < log.len; i++) {
      if (copy[i] != '\n') continue;
      ck_assert_int_eq(tui_store_add(&store, copy + start, i - start, (tui_line_ref){ 0 }), FL_OK);
      lines++;
      start = i + 1;
    }
    ck_assert_uint_eq(store.n_ticks + store.n_damaged + store.n_unknown, lines);
    fl_free(copy);
  }
  fl_buf_release(&log);
}
END_TEST

/* Memory that fails at any allocation is FL_ENOMEM and never a crash. */
START_TEST(no_memory) {
  static const char line[] =
      "{\"t\":1,\"ev\":\"round\",\"round\":1,\"doc\":1,\"steps\":{\"1\":2},\"resident\":[1,2]}";
  for (size_t n = 1; n < 12; n++) {
    tui_store s = { 0 };
    fl_mem_fault_after(n);
    int rc = tui_store_add(&s, line, sizeof line - 1, (tui_line_ref){ 0 });
    fl_mem_fault_after(0);
    ck_assert(rc == FL_OK || rc == FL_ENOMEM);
    if (rc == FL_ENOMEM) ck_assert_uint_eq(s.n_ticks, 0);
    tui_store_release(&s);
  }
}
END_TEST

Suite *suite_reader(void);
Suite *suite_reader(void) {
  Suite *s = suite_create("reader");
  TCase *t = tcase_create("Core");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, absent_then_growing);
  tcase_add_test(t, truncated);
  tcase_add_test(t, rotated);
  tcase_add_test(t, older_part);
  tcase_add_test(t, older_part_alone);
  tcase_add_test(t, older_part_of_a_link);
  tcase_add_test(t, rotated_many_times);
  tcase_add_test(t, damaged_lines_are_counted);
  tcase_add_test(t, a_line_that_is_too_long);
  tcase_add_test(t, no_regular_file);
  tcase_add_test(t, fields_in_any_order_and_type);
  tcase_add_test(t, names_are_cut_whole);
  tcase_add_test(t, time_never_goes_back);
  tcase_add_test(t, random_damage);
  tcase_add_test(t, no_memory);
  tcase_set_timeout(t, 60);
  suite_add_tcase(s, t);
  return s;
}
