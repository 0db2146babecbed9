/* check_sort.c - names in byte order. */
#include <string.h>

#include "base/sort.h"
#include "suite.h"

START_TEST(names_are_sorted_by_bytes) {
  const char *v[] = { "b", "\xC3\xA9", "", "B", "ba", "a" };
  static const char *const want[] = { "", "B", "a", "b", "ba", "\xC3\xA9" };
  ck_assert_ptr_null(fl_sort_names(v, 6));
  for (int i = 0; i < 6; i++) ck_assert_str_eq(v[i], want[i]);
  for (int i = 0; i < 6; i++) ck_assert(fl_sorted_has(v, 6, want[i]));
  ck_assert(!fl_sorted_has(v, 6, "c") && !fl_sorted_has(v, 6, "bb"));
}
END_TEST

START_TEST(the_first_that_stands_twice_is_told) {
  char b[] = "b"; /* another address */
  const char *v[] = { "c", "b", "a", "c", b };
  ck_assert_str_eq(fl_sort_names(v, 5), "b");
  const char *first[] = { "b", "a", "c", "a" }, *last[] = { "c", "a", "c" };
  ck_assert_str_eq(fl_sort_names(first, 4), "a");
  ck_assert_str_eq(fl_sort_names(last, 3), "c");
}
END_TEST

START_TEST(none_and_one) {
  const char *one[] = { "x" };
  ck_assert_ptr_null(fl_sort_names(NULL, 0));
  ck_assert_ptr_null(fl_sort_names(one, 1));
  ck_assert(!fl_sorted_has(NULL, 0, "x") && fl_sorted_has(one, 1, "x"));
}
END_TEST

Suite *suite_sort(void);
Suite *suite_sort(void) {
  Suite *s = suite_create("sort");
  TCase *t = tcase_create("core");
  tcase_add_test(t, names_are_sorted_by_bytes);
  tcase_add_test(t, the_first_that_stands_twice_is_told);
  tcase_add_test(t, none_and_one);
  suite_add_tcase(s, t);
  return s;
}
