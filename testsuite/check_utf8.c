/* check_utf8.c - decoding against every code point, and the ways to be invalid of Unicode 15,
 * table 3-7 and section 3.9. */
#include "base/utf8.h"

#include <string.h>

#include "suite.h"

START_TEST(every_code_point_comes_back) {
  for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
    if (cp >= 0xD800 && cp <= 0xDFFF) continue;
    char s[4];
    uint32_t back;
    bool valid;
    size_t n = fl_utf8_encode(s, cp);
    size_t want = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    if (n != want || fl_utf8_decode(&back, &valid, s, n) != n || back != cp || !valid ||
        !fl_utf8_valid(s, n, NULL) || fl_utf8_whole_prefix(s, n) != n)
      ck_abort_msg("U+%04X", cp);
    for (size_t cut = 1; cut < n; cut++) {
      bool cut_valid = true;
      if (fl_utf8_decode(&back, &cut_valid, s, cut) != 1 || cut_valid || back != 0xFFFD ||
          fl_utf8_whole_prefix(s, cut) != 0)
        ck_abort_msg("U+%04X cut to %zu", cp, cut);
    }
  }
}
END_TEST

START_TEST(known_bytes) {
  char s[4];
  ck_assert_uint_eq(fl_utf8_encode(s, 0x20AC), 3);
  ck_assert_mem_eq(s, "\xE2\x82\xAC", 3);
  ck_assert_uint_eq(fl_utf8_encode(s, 0x10348), 4);
  ck_assert_mem_eq(s, "\xF0\x90\x8D\x88", 4);
  static const uint32_t wrong[] = { 0xD800, 0xDFFF, 0x110000, UINT32_MAX };
  for (size_t i = 0; i < 4; i++) {
    ck_assert_uint_eq(fl_utf8_encode(s, wrong[i]), 3);
    ck_assert_mem_eq(s, "\xEF\xBF\xBD", 3);
  }
}
END_TEST

static const struct {
  const char *text;
  size_t bad_at, whole;
} invalid[] = {
  { "\x80", 0, 1 },             /* continuation without a lead */
  { "a\xC0\xAF", 1, 3 },        /* overlong slash */
  { "\xC1\xBF", 0, 2 },         /* overlong */
  { "\xE0\x80\xAF", 0, 3 },     /* overlong, three bytes */
  { "\xE0\x9F\xBF", 0, 3 },     /* overlong, largest */
  { "\xF0\x80\x80\xAF", 0, 4 }, /* overlong, four bytes */
  { "\xF0\x8F\xBF\xBF", 0, 4 }, /* overlong, largest */
  { "\xED\xA0\x80", 0, 3 },     /* first surrogate */
  { "\xED\xBF\xBF", 0, 3 },     /* last surrogate */
  { "\xF4\x90\x80\x80", 0, 4 }, /* U+110000 */
  { "\xF5\x80\x80\x80", 0, 4 }, /* no lead */
  { "\xFF", 0, 1 },
  { "ok\xE2\x82", 2, 2 }, /* cut: the prefix ends before it */
  { "ok\xF0\x90\x8D", 2, 2 },
  { "\xC3", 0, 0 },
  { "\xC3(", 0, 2 }, /* a lead without its continuation */
  { "\xE2\x28\xA1", 0, 3 },
};

START_TEST(ways_to_be_invalid) {
  size_t n = strlen(invalid[_i].text), bad = 99;
  ck_assert(!fl_utf8_valid(invalid[_i].text, n, &bad));
  ck_assert_uint_eq(bad, invalid[_i].bad_at);
  ck_assert_uint_eq(fl_utf8_whole_prefix(invalid[_i].text, n), invalid[_i].whole);
  uint32_t cp;
  bool valid = true;
  ck_assert_uint_eq(fl_utf8_decode(&cp, &valid, invalid[_i].text + bad, n - bad), 1);
  ck_assert(!valid);
  ck_assert_uint_eq(cp, 0xFFFD);
}
END_TEST

START_TEST(empty) {
  uint32_t cp = 5;
  ck_assert_uint_eq(fl_utf8_decode(&cp, NULL, "", 0), 0);
  ck_assert(fl_utf8_valid("", 0, NULL));
  ck_assert_uint_eq(fl_utf8_whole_prefix("", 0), 0);
  ck_assert(fl_utf8_valid("a\0b", 3, NULL));
}
END_TEST

Suite *suite_utf8(void) {
  Suite *s = suite_create("utf8");
  TCase *core = tcase_create("Core"), *errors = tcase_create("Errors");
  tcase_add_test(core, every_code_point_comes_back);
  tcase_add_test(core, known_bytes);
  tcase_add_test(core, empty);
  tcase_add_loop_test(errors, ways_to_be_invalid, 0, sizeof invalid / sizeof *invalid);
  suite_add_tcase(s, core);
  suite_add_tcase(s, errors);
  return s;
}
