/* check_rotate.c - who leaves, who comes, whose turn it is. */
#include <string.h>

#include "trainer/rotate.h"
#include "suite.h"

enum { N = 6 };

static fl_rot_doc doc(uint32_t id, uint64_t steps, bool resident) {
  return (fl_rot_doc){ .id = id, .steps = steps, .tokens = 100, .bytes = 10, .resident = resident };
}

static const fl_rot_limits budget3 = { .budget = 3 };

START_TEST(fill_takes_fewest_steps_first) {
  fl_rot_doc d[N] = { doc(0, 5, false), doc(1, 0, false), doc(2, 3, false),
                      doc(3, 0, false), doc(4, 9, false), doc(5, 0, true) };
  size_t in[N], n = 0;
  fl_rotate_fill(d, N, &budget3, in, &n);
  ck_assert_uint_eq(n, 2); /* one of three places is taken */
  ck_assert_uint_eq(in[0], 1);
  ck_assert_uint_eq(in[1], 3);
}
END_TEST

START_TEST(fill_respects_bytes_but_one_always_fits) {
  fl_rot_doc d[3] = { doc(0, 0, false), doc(1, 1, false), doc(2, 2, false) };
  d[0].bytes = 50;
  d[1].bytes = 60;
  d[2].bytes = 50;
  size_t in[3], n = 0;
  fl_rot_limits l = { .budget = 3, .budget_bytes = 100 };
  fl_rotate_fill(d, 3, &l, in, &n);
  ck_assert_uint_eq(n, 2); /* 60 does not fit beside 50; the other 50 does */
  ck_assert_uint_eq(in[0], 0);
  ck_assert_uint_eq(in[1], 2);
  l.budget_bytes = 1;
  fl_rotate_fill(d, 3, &l, in, &n);
  ck_assert_uint_eq(n, 1);
}
END_TEST

START_TEST(most_trained_leave) {
  fl_rot_doc d[N] = { doc(0, 7, true),  doc(1, 9, true),  doc(2, 8, true),
                      doc(3, 4, false), doc(4, 1, false), doc(5, 2, false) };
  size_t out[N], in[N], n_out = 0, n_in = 0;
  fl_rotate(d, N, &budget3, 0.5, out, &n_out, in, &n_in);
  ck_assert_uint_eq(n_out, 2); /* ceil(1.5) */
  ck_assert_uint_eq(out[0], 1);
  ck_assert_uint_eq(out[1], 2);
  ck_assert_uint_eq(n_in, 2);
  ck_assert_uint_eq(in[0], 4);
  ck_assert_uint_eq(in[1], 5);
}
END_TEST

START_TEST(ties_go_to_the_lower_id) {
  fl_rot_doc d[N] = { doc(9, 4, true),  doc(3, 4, true),  doc(7, 4, true),
                      doc(8, 1, false), doc(2, 1, false), doc(5, 1, false) };
  size_t out[N], in[N], n_out = 0, n_in = 0;
  fl_rotate(d, N, &budget3, 0.1, out, &n_out, in, &n_in);
  ck_assert_uint_eq(n_out, 1);
  ck_assert_uint_eq(out[0], 1);
  ck_assert_uint_eq(n_in, 1);
  ck_assert_uint_eq(in[0], 4);
}
END_TEST

/* The pool does not shrink when few are absent: those who would leave last come straight back. */
START_TEST(pool_is_refilled) {
  fl_rot_doc d[4] = { doc(0, 7, true), doc(1, 9, true), doc(2, 8, true), doc(3, 0, false) };
  size_t out[4], in[4], n_out = 0, n_in = 0;
  fl_rotate(d, 4, &budget3, 1.0, out, &n_out, in, &n_in);
  ck_assert_uint_eq(n_out, 1);
  ck_assert_uint_eq(out[0], 1);
  ck_assert_uint_eq(n_in, 1);
  ck_assert_uint_eq(in[0], 3);
}
END_TEST

START_TEST(nobody_absent_nobody_moves) {
  fl_rot_doc d[2] = { doc(0, 7, true), doc(1, 9, true) };
  size_t out[2], in[2], n_out = 1, n_in = 1;
  fl_rotate(d, 2, &budget3, 0.5, out, &n_out, in, &n_in);
  ck_assert_uint_eq(n_out + n_in, 0);
}
END_TEST

START_TEST(marked_come_first_and_leave_last) {
  fl_rot_doc d[N] = { doc(0, 7, true),  doc(1, 9, true),  doc(2, 8, true),
                      doc(3, 4, false), doc(4, 1, false), doc(5, 2, false) };
  d[1].marked = true;
  d[3].marked = true;
  size_t out[N], in[N], n_out = 0, n_in = 0;
  fl_rotate(d, N, &budget3, 0.3, out, &n_out, in, &n_in);
  ck_assert_uint_eq(n_out, 1);
  ck_assert_uint_eq(out[0], 2);
  ck_assert_uint_eq(in[0], 3);
}
END_TEST

/* Over many rotations every document gets its turn: the least trained come in. */
START_TEST(all_documents_get_their_turn) {
  enum { DOCS = 17, ROUNDS = 400 };
  fl_rot_doc d[DOCS];
  for (uint32_t i = 0; i < DOCS; i++) d[i] = doc(i, 0, false);
  size_t out[DOCS], in[DOCS], n_out, n_in = 0;
  fl_rot_limits l = { .budget = 4 };
  fl_rotate_fill(d, DOCS, &l, in, &n_in);
  for (size_t i = 0; i < n_in; i++) d[in[i]].resident = true;
  for (int r = 0; r < ROUNDS; r++) {
    size_t t = fl_rotate_target(d, DOCS), residents = 0;
    d[t].targeted++;
    d[t].steps++;
    if (r % 5 == 4) {
      fl_rotate(d, DOCS, &l, 0.5, out, &n_out, in, &n_in);
      for (size_t i = 0; i < n_out; i++) d[out[i]].resident = false;
      for (size_t i = 0; i < n_in; i++) d[in[i]].resident = true;
    }
    for (size_t i = 0; i < DOCS; i++) residents += d[i].resident;
    ck_assert_uint_eq(residents, 4);
  }
  for (size_t i = 0; i < DOCS; i++) {
    ck_assert_uint_ge(d[i].targeted, ROUNDS / DOCS - 5);
    ck_assert_uint_le(d[i].targeted, ROUNDS / DOCS + 5);
  }
}
END_TEST

/* Rounds follow tokens: with all resident the shares are the ideal ones. */
START_TEST(targets_follow_tokens) {
  fl_rot_doc d[3] = { doc(0, 0, true), doc(1, 0, true), doc(2, 0, true) };
  d[0].tokens = 100;
  d[1].tokens = 300;
  d[2].tokens = 600;
  for (int r = 0; r < 100; r++) d[fl_rotate_target(d, 3)].targeted++;
  ck_assert_uint_eq(d[0].targeted, 10);
  ck_assert_uint_eq(d[1].targeted, 30);
  ck_assert_uint_eq(d[2].targeted, 60);
}
END_TEST

START_TEST(targets_are_residents) {
  fl_rot_doc d[3] = { doc(5, 0, false), doc(4, 0, true), doc(3, 0, true) };
  ck_assert_uint_eq(fl_rotate_target(d, 3), 2); /* equal: the lower id */
  d[2].tokens = 0;                              /* counts as one token */
  ck_assert_uint_eq(fl_rotate_target(d, 3), 1);
  d[1].resident = d[2].resident = false;
  ck_assert_uint_eq(fl_rotate_target(d, 3), 3);
}
END_TEST

Suite *suite_rotate(void);
Suite *suite_rotate(void) {
  Suite *s = suite_create("rotate");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, fill_takes_fewest_steps_first);
  tcase_add_test(t, fill_respects_bytes_but_one_always_fits);
  tcase_add_test(t, most_trained_leave);
  tcase_add_test(t, ties_go_to_the_lower_id);
  tcase_add_test(t, pool_is_refilled);
  tcase_add_test(t, nobody_absent_nobody_moves);
  tcase_add_test(t, marked_come_first_and_leave_last);
  tcase_add_test(t, all_documents_get_their_turn);
  tcase_add_test(t, targets_follow_tokens);
  tcase_add_test(t, targets_are_residents);
  suite_add_tcase(s, t);
  return s;
}
