/* check_events.c - the event log: its lines. */
#include "base/clock.h"
#include "base/events.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "scratch.h"

/* The next line of *at, parsed; NULL at the end. */
static fl_json *next_line(const char **at) {
  if (**at == '\0') return NULL;
  const char *end = strchr(*at, '\n');
  ck_assert_ptr_nonnull(end);
  fl_json *v = NULL;
  fl_err err = { 0 };
  ck_assert_msg(fl_json_parse(&v, *at, (size_t)(end - *at), &err) == FL_OK, "%s", err.text);
  *at = end + 1;
  return v;
}

START_TEST(every_kind_of_member) {
  fl_events *log;
  fl_event e;
  fl_buf b = { 0 };
  const double before = fl_wall_s();
  ck_assert_int_eq(fl_events_open(&log, scratch("events"), 0, NULL), FL_OK);
  fl_event_begin(&e, "round");
  fl_event_str(&e, "text", "a \"quoted\"\nline");
  fl_event_strn(&e, "cut", "ab\xFFzzz", 3);
  fl_event_int(&e, "int", INT64_MIN);
  fl_event_num(&e, "num", 0.1);
  fl_event_num(&e, "nan", NAN);
  fl_event_bool(&e, "yes", true);
  fl_jsonw_raw(&e.text, "raw", "[1,[2]]", 7);
  fl_event_emit(log, &e);
  ck_assert_ptr_null(e.text.data);
  fl_events_close(log);
  ck_assert_int_eq(fl_fs_read(&b, scratch("events"), 10000, NULL), FL_OK);
  ck_assert_mem_eq(b.data, "{\"t\":", 5);
  const char *rest = strstr(b.data, ",\"ev\":");
  ck_assert_ptr_nonnull(rest);
  ck_assert_str_eq(rest, ",\"ev\":\"round\",\"text\":\"a \\\"quoted\\\"\\nline\",\"cut\":"
                         "\"ab\xEF\xBF\xBD\",\"int\":-9223372036854775808,\"num\":0.1,"
                         "\"nan\":null,\"yes\":true,\"raw\":[1,[2]]}\n");
  ck_assert_int_eq(rest[-4], '.'); /* milliseconds */
  const char *at = b.data;
  fl_json *v = next_line(&at);
  double t = 0;
  ck_assert(fl_json_get_num(v, "t", &t));
  ck_assert(t > before - 0.002 && t < fl_wall_s() + 0.002);
  fl_json_free(v);
  fl_buf_release(&b);
}
END_TEST

START_TEST(a_cut_line_is_completed) {
  fl_events *log;
  fl_event e;
  fl_buf b = { 0 };
  scratch_put(scratch("events"), "{\"t\":1}\n{\"t\":2,\"e", 17);
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(fl_events_open(&log, scratch("events"), 0, NULL), FL_OK);
    fl_event_begin(&e, "end");
    fl_event_emit(log, &e);
    fl_events_close(log);
  }
  ck_assert_int_eq(fl_fs_read(&b, scratch("events"), 10000, NULL), FL_OK);
  ck_assert_mem_eq(b.data, "{\"t\":1}\n{\"t\":2,\"e\n{\"t\":", 23);
  const char *at = b.data + 18;
  for (int i = 0; i < 2; i++) fl_json_free(next_line(&at));
  ck_assert_str_eq(at, "");
  fl_buf_release(&b);
}
END_TEST

START_TEST(no_log_drops_everything) {
  fl_event e;
  fl_event_begin(&e, "x");
  fl_event_emit(NULL, &e);
  ck_assert_ptr_null(e.text.data);
  fl_events_close(NULL);
  fl_events *log = NULL;
  ck_assert_int_eq(fl_events_open(&log, scratch("none/events"), 0, NULL), FL_ENOENT);
}
END_TEST

START_TEST(a_full_disk_does_not_fail_the_caller) {
  fl_events *log;
  fl_event e;
  fl_log_set_level(-1); /* the warning is not for the test's output */
  ck_assert_int_eq(fl_events_open(&log, "/dev/full", 0, NULL), FL_OK);
  for (int i = 0; i < 3; i++) {
    fl_event_begin(&e, "x");
    fl_event_emit(log, &e);
    ck_assert_ptr_null(e.text.data);
  }
  fl_events_close(log);
}
END_TEST

enum { THREADS = 4, LINES = 200 };

static void *emit_many(void *log) {
  for (int i = 0; i < LINES; i++) {
    fl_event e;
    fl_event_begin(&e, "round");
    fl_event_int(&e, "i", i);
    fl_event_str(&e, "pad", "padding that makes the line longer than a few words would");
    fl_event_emit(log, &e);
  }
  return NULL;
}

START_TEST(lines_of_threads_stay_whole) {
  fl_events *log;
  pthread_t thread[THREADS];
  fl_buf b = { 0 };
  size_t lines = 0;
  double sum = 0, i = 0;
  ck_assert_int_eq(fl_events_open(&log, scratch("events"), 0, NULL), FL_OK);
  for (int t = 0; t < THREADS; t++)
    ck_assert_int_eq(pthread_create(&thread[t], NULL, emit_many, log), 0);
  for (int t = 0; t < THREADS; t++) pthread_join(thread[t], NULL);
  fl_events_close(log);
  ck_assert_int_eq(fl_fs_read(&b, scratch("events"), 1 << 20, NULL), FL_OK);
  const char *at = b.data;
  for (fl_json *v; (v = next_line(&at)) != NULL; lines++) {
    ck_assert(fl_json_get_num(v, "i", &i));
    sum += i;
    fl_json_free(v);
  }
  ck_assert_uint_eq(lines, THREADS * LINES);
  ck_assert(sum == THREADS * (LINES - 1) * LINES / 2.0);
  fl_buf_release(&b);
}
END_TEST

Suite *suite_events(void) {
  Suite *s = suite_create("events");
  TCase *core = tcase_create("Core"), *errors = tcase_create("Errors");
  tcase_add_checked_fixture(core, scratch_begin, scratch_end);
  tcase_add_checked_fixture(errors, scratch_begin, scratch_end);
  tcase_add_test(core, every_kind_of_member);
  tcase_add_test(core, a_cut_line_is_completed);
  tcase_add_test(core, no_log_drops_everything);
  tcase_add_test(core, lines_of_threads_stay_whole);
  tcase_add_test(errors, a_full_disk_does_not_fail_the_caller);
  suite_add_tcase(s, core);
  suite_add_tcase(s, errors);
  return s;
}
