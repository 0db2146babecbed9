/* check_headless.c - lines and JSON of the recorded log. */
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "suite.h"
#include "tui/headless.h"

static char *output;
static size_t output_len;

static int run(tui_options o, fl_err *err) {
  const char *path = fixture("events/voyage.jsonl");
  setenv("TZ", "UTC", 1);
  tzset();
  o.out = open_memstream(&output, &output_len);
  o.fleets = &path;
  o.n_fleets = 1;
  int rc = tui_watch(&o, err);
  fclose(o.out);
  return rc;
}

START_TEST(one_json_object) {
  fl_json *j = NULL;
  double v = 0;
  uint64_t n = 0;
  ck_assert_int_eq(run((tui_options){ .once = true, .json = true }, NULL), FL_OK);
  ck_assert_int_eq(fl_json_parse(&j, output, output_len, NULL), FL_OK);
  ck_assert(fl_json_get_u64(j, "round", &n) && n == 60);
  ck_assert(fl_json_get_u64(j, "worst", &n) && n == 6);
  ck_assert(fl_json_get_num(j, "loss", &v));
  ck_assert_double_eq_tol(v, 1.424991, 1e-6);
  ck_assert(!fl_json_get_num(j, "seconds_left", &v)); /* over: null, not 0 */
  const fl_json *docs = fl_json_get(j, "documents");
  ck_assert_uint_eq(fl_json_len(docs), 12);
  const char *where = NULL;
  ck_assert(fl_json_get_str(fl_json_first(docs), "residency", &where));
  ck_assert_str_eq(where, "memory");
  fl_json_free(j);
  free(output);
}
END_TEST

START_TEST(lines) {
  ck_assert_int_eq(run((tui_options){ .headless = true }, NULL), FL_OK);
  size_t n = 0;
  for (size_t i = 0; i < output_len; i++) n += output[i] == '\n';
  ck_assert_uint_eq(n, 392 - 24); /* every event but the 24 that name documents */
  ck_assert_ptr_nonnull(
      strstr(output, "2026-01-09 12:00:00 run: train with qwen3-0.6b on lighthouse"));
  ck_assert_ptr_nonnull(strstr(output, "round 60/60 docs/harbour-rules.md loss 1.4250"));
  ck_assert_ptr_nonnull(strstr(output, "end: done, round 60\n"));
  free(output);
}
END_TEST

START_TEST(a_summary) {
  ck_assert_int_eq(run((tui_options){ .once = true }, NULL), FL_OK);
  ck_assert_ptr_nonnull(strstr(output, "done, round 60 of 60"));
  ck_assert_ptr_nonnull(strstr(output, "worst: docs/weather-1911.txt"));
  ck_assert_ptr_nonnull(
      strstr(output, "student 1m 03s, optimiser 3.0s, files 0.6s; a round 3.5s, "));
  free(output);
}
END_TEST

START_TEST(json_lines) {
  ck_assert_int_eq(run((tui_options){ .headless = true, .json = true }, NULL), FL_OK);
  size_t n = 0, start = 0;
  for (size_t i = 0; i < output_len; i++) {
    if (output[i] != '\n') continue;
    fl_json *j = NULL;
    ck_assert_int_eq(fl_json_parse(&j, output + start, i - start, NULL), FL_OK);
    fl_json_free(j);
    start = i + 1;
    n++;
  }
  ck_assert_uint_eq(n, 60); /* one a round */
  free(output);
}
END_TEST

START_TEST(a_full_disk) {
  const char *path = fixture("events/voyage.jsonl");
  fl_err err = { 0 };
  FILE *full = fopen("/dev/full", "w");
  if (!full) return; /* no such device here */
  tui_options o = { .fleets = &path, .n_fleets = 1, .headless = true, .out = full };
  ck_assert_int_eq(tui_watch(&o, &err), FL_EFAIL);
  ck_assert_ptr_nonnull(strstr(err.text, "output"));
  fclose(full);
}
END_TEST

Suite *suite_headless(void);
Suite *suite_headless(void) {
  Suite *s = suite_create("headless");
  TCase *t = tcase_create("Core");
  tcase_add_test(t, one_json_object);
  tcase_add_test(t, lines);
  tcase_add_test(t, a_summary);
  tcase_add_test(t, json_lines);
  tcase_add_test(t, a_full_disk);
  tcase_set_timeout(t, 60);
  suite_add_tcase(s, t);
  return s;
}
