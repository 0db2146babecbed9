/* check_scan.c - the line scanner against the JSON grammar (RFC 8259) and strtod. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "suite.h"
#include "tui/scan.h"

static tui_slice slice(const char *s) { return (tui_slice){ s, strlen(s) }; }

/* 0: a whole object with n members; -1: damage. */
static int walk(const char *line, int *n) {
  tui_scan s;
  tui_member m;
  int more;
  *n = 0;
  if (!tui_scan_begin(&s, line, strlen(line))) return -1;
  while ((more = tui_scan_next(&s, &m)) > 0) (*n)++;
  return more;
}

START_TEST(whole_objects) {
  int n;
  ck_assert_int_eq(walk("{}", &n), 0);
  ck_assert_int_eq(walk(" { \"a\" : 1 , \"b\":[1,{\"c\":\"]}\"}] } ", &n), 0);
  ck_assert_int_eq(n, 2);
  ck_assert_int_eq(walk("{\"a\":\"x\\\"}\",\"b\":null,\"c\":true,\"d\":false}", &n), 0);
  ck_assert_int_eq(n, 4);
  ck_assert_int_eq(walk("{\"a\":\"\\\\\",\"b\":\"\\\\\\\"\"}", &n), 0);
  ck_assert_int_eq(n, 2);
}
END_TEST

START_TEST(damage) {
  static const char *const bad[] = { "",
                                     "[]",
                                     "x",
                                     "{",
                                     "{\"a\"",
                                     "{\"a\":",
                                     "{\"a\":1",
                                     "{\"a\":1,",
                                     "{\"a\":1 \"b\":2}",
                                     "{\"a\":\"x",
                                     "{\"a\":\"x\\\"}",
                                     "{\"a\":[1,2}",
                                     "{\"a\":tru}",
                                     "{\"a\":1}x",
                                     "{a:1}",
                                     "{\"a\":,\"b\":1}",
                                     "{\"a\":[\"]}",
                                     "{,}" };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    int n;
    ck_assert_msg(walk(bad[i], &n) == -1, "taken: %s", bad[i]);
  }
}
END_TEST

START_TEST(numbers_like_strtod) {
  static const char *const good[] = { "0",
                                      "-0",
                                      "1",
                                      "-17",
                                      "0.1",
                                      "3.14159265358979",
                                      "1e3",
                                      "1E-7",
                                      "2.5e+10",
                                      "1767963762.291",
                                      "123456789012345678901234",
                                      "4.9e-324",
                                      "1e308",
                                      "0.000123456789" };
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    double v;
    ck_assert(tui_scan_number(&v, slice(good[i])));
    ck_assert_msg(v == strtod(good[i], NULL), "%s", good[i]);
  }
  fl_rng r = fl_rng_stream(3, FL_RNG_TEST, 0, 0, 0);
  for (int i = 0; i < 2000; i++) {
    char s[64];
    double v;
    snprintf(s, sizeof s, "%.*g", (int)(1 + fl_rng_below(&r, 17)),
             (fl_rng_unit(&r) - 0.5) * pow(10, (double)fl_rng_below(&r, 20)));
    ck_assert(tui_scan_number(&v, slice(s)));
    ck_assert_msg(v == strtod(s, NULL), "%s", s);
  }
}
END_TEST

START_TEST(no_numbers) {
  static const char *const bad[] = { "",    "-",    "+1", "01",    "1.",  ".5", "1e",
                                     "1e+", "0x10", "1 ", "1e999", "NaN", "--1" };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    double v;
    ck_assert_msg(!tui_scan_number(&v, slice(bad[i])), "taken: %s", bad[i]);
  }
}
END_TEST

START_TEST(whole_numbers) {
  uint32_t v;
  ck_assert(tui_scan_u32(&v, slice("4294967294")));
  ck_assert_uint_eq(v, 4294967294u);
  ck_assert(tui_scan_u32(&v, slice("2e3")));
  ck_assert_uint_eq(v, 2000);
  ck_assert(!tui_scan_u32(&v, slice("4294967295"))); /* stands for "unknown" */
  ck_assert(!tui_scan_u32(&v, slice("-1")));
  ck_assert(!tui_scan_u32(&v, slice("1.5")));
  ck_assert(!tui_scan_u32(&v, slice("")));
}
END_TEST

START_TEST(unescape) {
  fl_buf b = { 0 };
  tui_scan_unescape(&b, slice("a\\n\\t\\\"\\\\\\u00e9\\ud83d\\udea2\\ud800x"), 100);
  ck_assert_str_eq(b.data, "a\n\t\"\\\xC3\xA9\xF0\x9F\x9A\xA2\xEF\xBF\xBDx");
  fl_buf_reset(&b);
  tui_scan_unescape(&b, slice("caf\xC3\xA9s"), 4); /* never half a character */
  ck_assert_str_eq(b.data, "caf");
  fl_buf_reset(&b);
  tui_scan_unescape(&b, slice("\\u00e"), 10); /* cut: no read beyond the end */
  ck_assert_uint_gt(b.len, 0);
  fl_buf_release(&b);
}
END_TEST

START_TEST(elements) {
  tui_scan s;
  tui_member m;
  int n = 0, more;
  ck_assert(tui_scan_begin_array(&s, slice("[1, [2,3] ,\"x\",{}]")));
  while ((more = tui_scan_element(&s, &m)) > 0) n++;
  ck_assert_int_eq(more, 0);
  ck_assert_int_eq(n, 4);
  ck_assert(!tui_scan_begin_array(&s, slice("{}")));
}
END_TEST

Suite *suite_scan(void);
Suite *suite_scan(void) {
  Suite *s = suite_create("scan");
  TCase *t = tcase_create("Core");
  tcase_add_test(t, whole_objects);
  tcase_add_test(t, damage);
  tcase_add_test(t, numbers_like_strtod);
  tcase_add_test(t, no_numbers);
  tcase_add_test(t, whole_numbers);
  tcase_add_test(t, unescape);
  tcase_add_test(t, elements);
  tcase_set_timeout(t, 60);
  suite_add_tcase(s, t);
  return s;
}
