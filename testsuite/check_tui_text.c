/* check_tui_text.c - the sanitiser: what reaches the screen, and how wide it is. Widths are those
 * of the Unicode Character Database for the characters named. */
#include <string.h>

#include "base/utf8.h"
#include "suite.h"
#include "tui/text.h"

static const char *clean(const char *s, size_t len, bool ascii) {
  static fl_buf b;
  fl_buf_reset(&b);
  tui_text_clean(&b, s, len, ascii);
  return b.data ? b.data : "";
}

static size_t cols(const char *s) { return tui_text_columns(s, strlen(s)); }

START_TEST(widths) {
  ck_assert_int_eq(tui_text_width('a'), 1);
  ck_assert_int_eq(tui_text_width(0xE9), 1);
  ck_assert_int_eq(tui_text_width(0x6F22), 2);  /* a Han character */
  ck_assert_int_eq(tui_text_width(0x1F6A2), 2); /* ship */
  ck_assert_int_eq(tui_text_width(0xAC00), 2);  /* a Hangul syllable */
  ck_assert_int_eq(tui_text_width(0x301), 0);   /* combining acute */
  ck_assert_int_eq(tui_text_width(0x202E), -1); /* right-to-left override */
  ck_assert_int_eq(tui_text_width(0x200B), -1); /* zero width space has no glyph */
  ck_assert_int_eq(tui_text_width(0x9B), -1);   /* C1: control sequence introducer */
  ck_assert_int_eq(tui_text_width(0x1B), -1);
  ck_assert_int_eq(tui_text_width(0xD800), -1);
  ck_assert_int_eq(tui_text_width(0x110000), -1);
}
END_TEST

START_TEST(no_control_survives) {
  /* every code point up to the end of the first plane and some beyond, one by one */
  for (uint32_t cp = 0; cp < 0x11000; cp++) {
    char s[4];
    size_t n = fl_utf8_encode(s, cp);
    const char *t = clean(s, n, false);
    size_t at = 0, len = strlen(t);
    while (at < len) {
      uint32_t got;
      bool valid = true;
      at += fl_utf8_decode(&got, &valid, t + at, len - at);
      ck_assert(valid);
      ck_assert_msg(tui_text_width(got) >= 0, "U+%04X became U+%04X", cp, got);
    }
  }
}
END_TEST

START_TEST(escape_sequences) {
  ck_assert_str_eq(clean("\x1b[31mred\x1b]0;title\a", 18, false),
                   "\xEF\xBF\xBD[31mred\xEF\xBF\xBD]0;title\xEF\xBF\xBD");
  ck_assert_str_eq(clean("\xC2\x9B"
                         "31m",
                         5, false),
                   "\xEF\xBF\xBD"
                   "31m");
  ck_assert_str_eq(clean("a\tb\nc\r\x0b", 7, false), "a b c  ");
  ck_assert_str_eq(clean("\xFF\xC3", 2, false), "\xEF\xBF\xBD\xEF\xBF\xBD");
  ck_assert_str_eq(clean("caf\xC3\xA9 \xE6\xBC\xA2", 9, true), "caf? ?");
}
END_TEST

START_TEST(combining) {
  ck_assert_uint_eq(cols("e\xCC\x81"), 1);
  ck_assert_uint_eq(cols("\xCC\x81\xCC\x81"), 0); /* stray marks are dropped */
  /* a tower of twenty marks keeps two */
  char tower[64] = "e";
  for (int i = 0; i < 20; i++) strcat(tower, "\xCC\x81");
  ck_assert_str_eq(clean(tower, strlen(tower), false), "e\xCC\x81\xCC\x81");
  ck_assert_uint_eq(cols("\xE6\xBC\xA2\xE5\xAD\x97"), 4);
}
END_TEST

START_TEST(fit) {
  const char *s = "a\xE6\xBC\xA2"
                  "b"; /* 1 + 2 + 1 columns */
  ck_assert_uint_eq(tui_text_fit(s, 5, 0), 0);
  ck_assert_uint_eq(tui_text_fit(s, 5, 1), 1);
  ck_assert_uint_eq(tui_text_fit(s, 5, 2), 1); /* half of a wide glyph does not fit */
  ck_assert_uint_eq(tui_text_fit(s, 5, 3), 4);
  ck_assert_uint_eq(tui_text_fit(s, 5, 9), 5);
}
END_TEST

START_TEST(wrap) {
  const char *s = "one two  three\n\nfour";
  const char *want[] = { "one two", "three", "", "four" }, *line;
  size_t at = 0, n, i = 0;
  while (tui_text_wrap(s, strlen(s), 8, &at, &line, &n)) {
    ck_assert_uint_lt(i, 4);
    ck_assert_uint_eq(n >= strlen(want[i]), 1);
    ck_assert_int_eq(strncmp(line, want[i], strlen(want[i])), 0);
    i++;
  }
  ck_assert_uint_eq(i, 4);
}
END_TEST

START_TEST(wrap_always_gets_on) {
  const char *s = "\xE6\xBC\xA2\xE6\xBC\xA2\xE6\xBC\xA2 x"; /* wider than the line */
  size_t at = 0, n, before, rounds = 0;
  const char *line;
  do {
    before = at;
    if (!tui_text_wrap(s, strlen(s), 1, &at, &line, &n)) break;
    ck_assert_uint_gt(at, before);
  } while (++rounds < 100);
  ck_assert_uint_lt(rounds, 100);
}
END_TEST

START_TEST(ascii_of_drawing) {
  ck_assert_int_eq(tui_text_ascii(0x2500), '-');
  ck_assert_int_eq(tui_text_ascii(0x2800), ' ');
  ck_assert_int_eq(tui_text_ascii(0x2801), '\'');
  ck_assert_int_eq(tui_text_ascii(0x2880), '_');
  ck_assert_int_eq(tui_text_ascii(0x28FF), '|');
  ck_assert_int_eq(tui_text_ascii(0x6F22), '?');
}
END_TEST

Suite *suite_tui_text(void);
Suite *suite_tui_text(void) {
  Suite *s = suite_create("text");
  TCase *t = tcase_create("Core");
  tcase_add_test(t, widths);
  tcase_add_test(t, no_control_survives);
  tcase_add_test(t, escape_sequences);
  tcase_add_test(t, combining);
  tcase_add_test(t, fit);
  tcase_add_test(t, wrap);
  tcase_add_test(t, wrap_always_gets_on);
  tcase_add_test(t, ascii_of_drawing);
  tcase_set_timeout(t, 60);
  suite_add_tcase(s, t);
  return s;
}
