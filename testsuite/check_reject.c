/* check_reject.c - loops are found, honest repetition is not. */
#include "study/reject.h"
#include "suite.h"

enum { MANY = 400 };

static bool loops(const int32_t *ids, size_t n) { return fl_reject_repetitive(ids, n); }

/* `period` different tokens over and over, after `lead` others. */
static size_t looped(int32_t *ids, size_t lead, size_t period, size_t times) {
  size_t n = 0;
  for (; n < lead; n++) ids[n] = 1000 + (int32_t)n;
  for (size_t i = 0; i < period * times; i++) ids[n++] = (int32_t)(i % period);
  return n;
}

START_TEST(loops_of_every_period_are_found) {
  int32_t ids[MANY] = { 0 };
  for (size_t period = 1; period <= 7; period++)
    ck_assert(loops(ids, looped(ids, 0, period, 30 / period + 1)));
  for (size_t period = 8; period <= 40; period++) {
    ck_assert(loops(ids, looped(ids, 60, period, 3)));
    ck_assert(!loops(ids, looped(ids, 60, period, 2)));
  }
}
END_TEST

START_TEST(honest_texts_pass) {
  int32_t ids[MANY] = { 0 };
  ck_assert(!loops(ids, 0));
  ck_assert(!loops(ids, looped(ids, 200, 1, 0)));
  ck_assert(!loops(ids, looped(ids, 0, 1, 15))); /* too short to tell: "1, 1, 1, 1" */
  /* A list whose lines begin with the same four tokens of ten. */
  size_t n = 0;
  for (int32_t line = 0; line < 12; line++)
    for (int32_t i = 0; i < 10; i++) ids[n++] = i < 4 ? i : 100 + 10 * line + i;
  ck_assert(!loops(ids, n));
  /* Four of seven: more than half. */
  n = 0;
  for (int32_t line = 0; line < 12; line++)
    for (int32_t i = 0; i < 7; i++) ids[n++] = i < 4 ? i : 100 + 10 * line + i;
  ck_assert(loops(ids, n));
}
END_TEST

START_TEST(reasons_come_in_order) {
  int32_t ids[40] = { 0 };
  const size_t n = looped(ids, 0, 2, 20);
  fl_written w = { .ids = ids, .n_ids = n, .len = 17 * 40, .max_tokens = 40, .cut = true };
  ck_assert_str_eq(fl_reject_name(fl_reject_judge(&w)), "cut");
  w.len = 0;
  ck_assert_str_eq(fl_reject_name(fl_reject_judge(&w)), "empty");
  w.len = 17 * 40;
  w.cut = false;
  ck_assert_str_eq(fl_reject_name(fl_reject_judge(&w)), "long");
  w.len = 80;
  ck_assert_str_eq(fl_reject_name(fl_reject_judge(&w)), "repetitive");
  for (int32_t i = 0; i < 40; i++) ids[i] = i;
  ck_assert_int_eq(fl_reject_judge(&w), FL_REJECT_NOT);
  ck_assert_ptr_null(fl_reject_name(FL_REJECT_NOT));
}
END_TEST

Suite *suite_reject(void);
Suite *suite_reject(void) {
  Suite *s = suite_create("reject");
  TCase *core = tcase_create("core");
  tcase_add_test(core, loops_of_every_period_are_found);
  tcase_add_test(core, honest_texts_pass);
  tcase_add_test(core, reasons_come_in_order);
  suite_add_tcase(s, core);
  return s;
}
