/* check_clock.c - clocks and the process's memory. */
#include "base/clock.h"

#include "suite.h"

START_TEST(clocks_and_memory) {
  double a = fl_now_s(), b = fl_now_s();
  ck_assert(b >= a);
  ck_assert(fl_wall_s() > 1.6e9); /* after September 2020 */
  ck_assert(fl_rss_bytes() > 100000 && fl_peak_rss_bytes() >= fl_rss_bytes() / 2);
}
END_TEST

Suite *suite_clock(void);
Suite *suite_clock(void) {
  Suite *s = suite_create("clock");
  TCase *t = tcase_create("core");
  tcase_add_test(t, clocks_and_memory);
  suite_add_tcase(s, t);
  return s;
}
