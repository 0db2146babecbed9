/* check_err.c - the error convention. */
#include "base/err.h"

#include <string.h>

#include "suite.h"

START_TEST(first_failure_wins_and_prefix_adds) {
  fl_err err = { 0 };
  ck_assert_int_eq(fl_fail(&err, FL_EINPUT, "byte %d of %s", 7, "it"), FL_EINPUT);
  ck_assert_int_eq(fl_fail(&err, FL_EFAIL, "later"), FL_EFAIL);
  ck_assert_int_eq(err.code, FL_EINPUT);
  ck_assert_str_eq(err.text, "byte 7 of it");
  fl_err_prefix(&err, "%s", "fleet/doc");
  ck_assert_str_eq(err.text, "fleet/doc: byte 7 of it");
}
END_TEST

START_TEST(null_and_empty_are_left_alone) {
  ck_assert_int_eq(fl_fail(NULL, FL_ENOMEM, "x"), FL_ENOMEM);
  fl_err_prefix(NULL, "x");
  fl_err err = { 0 };
  fl_err_prefix(&err, "x");
  ck_assert_str_eq(err.text, "");
}
END_TEST

START_TEST(long_texts_are_cut_not_overrun) {
  char text[3 * FL_ERR_TEXT];
  memset(text, 'a', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  fl_err err = { 0 };
  fl_fail(&err, FL_EFAIL, "%s", text);
  ck_assert_uint_eq(strlen(err.text), FL_ERR_TEXT - 1);
  fl_err_prefix(&err, "head");
  ck_assert_uint_eq(strlen(err.text), FL_ERR_TEXT - 1);
  ck_assert_mem_eq(err.text, "head: aaa", 9);
  fl_err_prefix(&err, "%s", text);
  ck_assert_uint_eq(strlen(err.text), FL_ERR_TEXT - 1);
}
END_TEST

START_TEST(exit_statuses) {
  static const int pairs[][2] = { { FL_OK, 0 },     { FL_EFAIL, 1 },  { FL_EUSAGE, 2 },
                                  { FL_EGATE, 3 },  { FL_EINPUT, 4 }, { FL_EINTR, 130 },
                                  { FL_ENOMEM, 1 }, { FL_ENOENT, 1 }, { FL_EBUSY, 1 },
                                  { FL_EFULL, 1 } };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    ck_assert_int_eq(fl_exit_status(pairs[i][0]), pairs[i][1]);
}
END_TEST

Suite *suite_err(void) {
  Suite *s = suite_create("err");
  TCase *core = tcase_create("Core");
  tcase_add_test(core, first_failure_wins_and_prefix_adds);
  tcase_add_test(core, null_and_empty_are_left_alone);
  tcase_add_test(core, long_texts_are_cut_not_overrun);
  tcase_add_test(core, exit_statuses);
  suite_add_tcase(s, core);
  return s;
}
