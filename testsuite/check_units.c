/* check_units.c - sizes and times as people type and read them. */
#include "base/units.h"

#include <math.h>

#include "suite.h"

START_TEST(integers) {
  uint64_t v = 0;
  ck_assert_int_eq(fl_parse_u64(&v, "18446744073709551615"), FL_OK);
  ck_assert_uint_eq(v, UINT64_MAX);
  ck_assert_int_eq(fl_parse_u64(&v, "007"), FL_OK);
  ck_assert_uint_eq(v, 7);
  static const char *const wrong[] = { "",
                                       "-1",
                                       "+1",
                                       " 1",
                                       "1 ",
                                       "1x",
                                       "0x10",
                                       "1.0",
                                       "1e3",
                                       "18446744073709551616",
                                       "99999999999999999999" };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    ck_assert_msg(fl_parse_u64(&v, wrong[i]) == FL_EUSAGE, "%s", wrong[i]);
    ck_assert_uint_eq(v, 7);
  }
}
END_TEST

START_TEST(numbers) {
  double v = 0;
  ck_assert_int_eq(fl_parse_double(&v, "-2.5e-3"), FL_OK);
  ck_assert(v == -2.5e-3);
  ck_assert_int_eq(fl_parse_double(&v, ".5"), FL_OK);
  ck_assert(v == 0.5);
  static const char *const wrong[] = { "",   "-",  ".",   "nan", "inf", "-inf", "1e999", "0x1p3",
                                       " 1", "1 ", "1,5", "+1",  "1e",  "--1",  "1.2.3" };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    ck_assert_msg(fl_parse_double(&v, wrong[i]) == FL_EUSAGE, "%s", wrong[i]);
  ck_assert(v == 0.5);
}
END_TEST

static const struct {
  const char *text;
  uint64_t bytes;
} sizes[] = {
  { "512", 512 },
  { "0", 0 },
  { "4K", 4096 },
  { "4k", 4096 },
  { "4KB", 4096 },
  { "4KiB", 4096 },
  { "12B", 12 },
  { "1.5M", 1572864 },
  { "2G", 2147483648u },
  { "1T", (uint64_t)1 << 40 },
  { "9007199254740993", 9007199254740993u },
  { "16777215T", (uint64_t)16777215 << 40 },
};

START_TEST(byte_sizes) {
  uint64_t v = 1;
  ck_assert_int_eq(fl_parse_bytes(&v, sizes[_i].text), FL_OK);
  ck_assert_uint_eq(v, sizes[_i].bytes);
}
END_TEST

START_TEST(byte_sizes_refused) {
  static const char *const wrong[] = { "",       "K",         "-1K", "1X",  "1KK",         "1 K",
                                       "1.5.5M", "16777216T", "1e3", "inf", "20000000.5T", ".",
                                       "1KiBs" };
  uint64_t v = 5;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    ck_assert_msg(fl_parse_bytes(&v, wrong[i]) == FL_EUSAGE, "%s", wrong[i]);
  ck_assert_uint_eq(v, 5);
}
END_TEST

START_TEST(times) {
  double v = -1;
  ck_assert_int_eq(fl_parse_seconds(&v, "90"), FL_OK);
  ck_assert(v == 90);
  ck_assert_int_eq(fl_parse_seconds(&v, "90s"), FL_OK);
  ck_assert(v == 90);
  ck_assert_int_eq(fl_parse_seconds(&v, "1.5m"), FL_OK);
  ck_assert(v == 90);
  ck_assert_int_eq(fl_parse_seconds(&v, "2h"), FL_OK);
  ck_assert(v == 7200);
  static const char *const wrong[] = { "", "s", "-1", "-0", "1d", "1ms", "1 s", "nan", "1e308h" };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    ck_assert_msg(fl_parse_seconds(&v, wrong[i]) == FL_EUSAGE, "%s", wrong[i]);
}
END_TEST

START_TEST(shown_sizes) {
  static const struct {
    uint64_t n;
    const char *text;
  } cases[] = {
    { 0, "0 B" },
    { 12, "12 B" },
    { 1023, "1023 B" },
    { 1024, "1.0 KiB" },
    { 1536, "1.5 KiB" },
    { 830 * 1024, "830 KiB" },
    { 1048063, "1023 KiB" },
    { 1048064, "1.0 MiB" },
    { 1610612736, "1.5 GiB" },
    { UINT64_MAX, "16.0 EiB" },
    { 102348, "99.9 KiB" },
    { 102399, "100 KiB" },
  };
  char buf[32];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    ck_assert_str_eq(fl_format_bytes(buf, cases[i].n), cases[i].text);
}
END_TEST

START_TEST(shown_times) {
  static const struct {
    double s;
    const char *text;
  } cases[] = {
    { 0, "0.0s" },          { 4.2, "4.2s" },       { 59.94, "59.9s" },   { 59.96, "1m 00s" },
    { 185, "3m 05s" },      { 3599.4, "59m 59s" }, { 3599.6, "1h 00m" }, { 3720, "1h 02m" },
    { 360000, "100h 00m" }, { -1, "-" },           { NAN, "-" },         { INFINITY, "-" },
  };
  char buf[32];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    ck_assert_str_eq(fl_format_seconds(buf, cases[i].s), cases[i].text);
}
END_TEST

Suite *suite_units(void) {
  Suite *s = suite_create("units");
  TCase *core = tcase_create("Core");
  tcase_add_test(core, integers);
  tcase_add_test(core, numbers);
  tcase_add_loop_test(core, byte_sizes, 0, sizeof sizes / sizeof *sizes);
  tcase_add_test(core, byte_sizes_refused);
  tcase_add_test(core, times);
  tcase_add_test(core, shown_sizes);
  tcase_add_test(core, shown_times);
  suite_add_tcase(s, core);
  return s;
}
