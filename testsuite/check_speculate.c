/* check_speculate.c - the suffix index against a plain search; drafts; costs; the gate. */
#include "base/mem.h"
#include "base/rng.h"
#include "serve/speculate.h"
#include "suite.h"

/* The longest agreement of the tail with some s[0..i), i < n, by trying all; the newest of
 * equals. */
static size_t plain_match(const int32_t *s, size_t n, const int32_t *tail, size_t n_tail,
                          size_t *next) {
  size_t best = 0;
  for (size_t i = n; i-- > 0;) {
    size_t m = 0;
    while (m < i && m < n_tail && m < FL_MATCH_MAX && s[i - 1 - m] == tail[n_tail - 1 - m] &&
           s[i - 1 - m] >= 0)
      m++;
    if (m < FL_MATCH_MIN || m <= best || s[i] < 0) continue;
    best = m;
    *next = i;
  }
  return best;
}

START_TEST(test_match_plain) {
  enum { N = 700 };
  int32_t ids[N];
  fl_suffix s = { 0 };
  fl_rng r = fl_rng_stream(3, FL_RNG_TEST, 0, 0, 0);
  size_t alphabet = (size_t)_i; /* few symbols: long matches */
  for (size_t i = 0; i < N; i++) {
    ids[i] = i % 97 == 96 ? -1 : (int32_t)fl_rng_below(&r, alphabet);
    if (i > 200 && i % 50 < 20) ids[i] = ids[i - 150];
    ck_assert_int_eq(fl_suffix_append(&s, &ids[i], 1), FL_OK);
    size_t a = 0, b = 0;
    size_t m = fl_suffix_match(&s, ids, i + 1, &a), want = plain_match(ids, i + 1, ids, i + 1, &b);
    /* The index looks at the newest 64 places of a pair only: with few symbols it may miss a longer
     * match further back, never invent one. */
    if (alphabet >= 20) ck_assert_uint_eq(m, want);
    if (alphabet >= 20 && m > 0) ck_assert_uint_eq(a, b);
    ck_assert_uint_le(m, want);
    for (size_t k = 0; k < m; k++) ck_assert_int_eq(ids[a - 1 - k], ids[i - k]);
  }
  fl_suffix_release(&s);
}
END_TEST

START_TEST(test_separator) {
  static const int32_t text[] = { -1, 1, 2, 3, -1, 4, 1, 2 };
  fl_suffix s = { 0 };
  fl_draft d;
  ck_assert_int_eq(fl_suffix_append(&s, text, 8), FL_OK);
  const fl_suffix *src[2] = { NULL, &s };
  static const int32_t tail[] = { 9, 1, 2 };
  fl_draft_make(&d, src, 2, tail, 3, 15);
  ck_assert_uint_eq(d.n, 1); /* ends at the separator; the last place has nothing after it */
  ck_assert_int_eq(d.token[0], 3);
  static const int32_t across[] = { 3, -1 };
  fl_draft_make(&d, src, 2, across, 2, 15);
  ck_assert_uint_eq(d.n, 0);
  static const int32_t one[] = { 2 };
  fl_draft_make(&d, src, 2, one, 1, 15);
  ck_assert_uint_eq(d.n, 0);
  fl_suffix_release(&s);
}
END_TEST

START_TEST(test_draft_choice) {
  static const int32_t a[] = { 1, 2, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7 };
  static const int32_t b[] = { 5, 1, 2, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8 };
  fl_suffix x = { 0 }, y = { 0 };
  fl_draft d;
  ck_assert_int_eq(fl_suffix_append(&x, a, 18), FL_OK);
  ck_assert_int_eq(fl_suffix_append(&y, b, 13), FL_OK);
  const fl_suffix *src[2] = { &x, &y };
  static const int32_t longer[] = { 5, 1, 2 }, same[] = { 6, 1, 2 };
  fl_draft_make(&d, src, 2, longer, 3, 15);
  ck_assert_uint_eq(d.match, 3);
  ck_assert_uint_eq(d.n, 8); /* 2 * (1 + match) */
  ck_assert_int_eq(d.token[0], 8);
  fl_draft_make(&d, src, 2, same, 3, 15);
  ck_assert_uint_eq(d.match, 2);
  ck_assert_uint_eq(d.n, 6);
  ck_assert_int_eq(d.token[0], 7);
  fl_draft_make(&d, src, 2, same, 3, 4);
  ck_assert_uint_eq(d.n, 4);
  fl_draft_make(&d, src, 2, same, 3, 0);
  ck_assert_uint_eq(d.n, 0);
  fl_suffix_release(&x);
  fl_suffix_release(&y);
}
END_TEST

START_TEST(test_no_memory) {
  int32_t ids[600];
  for (int i = 0; i < 600; i++) ids[i] = i % 50;
  for (size_t n = 1; n <= 3; n++) {
    fl_suffix s = { 0 };
    size_t next;
    ck_assert_int_eq(fl_suffix_append(&s, ids, 100), FL_OK);
    fl_mem_fault_after(n);
    ck_assert_int_eq(fl_suffix_append(&s, ids, 600), FL_ENOMEM);
    fl_mem_fault_after(0);
    ck_assert_uint_eq(s.ids.len, 100);
    ck_assert_uint_eq(fl_suffix_match(&s, ids, 100, &next), FL_MATCH_MAX);
    ck_assert_int_eq(fl_suffix_append(&s, ids, 600), FL_OK);
    ck_assert_uint_eq(s.ids.len, 700);
    fl_suffix_release(&s);
  }
}
END_TEST

/* Filled and emptied as often as one likes, in the memory that it has. */
START_TEST(test_reserve) {
  enum { N = 512 };
  int32_t ids[N];
  fl_suffix s = { 0 };
  size_t next;
  for (int i = 0; i < N; i++) ids[i] = i % 50;
  for (size_t n = 1; n <= 3; n++) {
    fl_mem_fault_after(n);
    ck_assert_int_eq(fl_suffix_reserve(&s, N), FL_ENOMEM);
    fl_mem_fault_after(0);
    ck_assert_ptr_null(s.head);
    ck_assert_uint_eq(s.cap, 0);
  }
  ck_assert_int_eq(fl_suffix_reserve(&s, N), FL_OK);
  fl_mem_guard_enter();
  for (int times = 0; times < 3; times++) {
    ck_assert_uint_eq(fl_suffix_match(&s, ids, N, &next), 0);
    for (int i = 0; i < N; i += 64) ck_assert_int_eq(fl_suffix_append(&s, ids + i, 64), FL_OK);
    ck_assert_uint_eq(fl_suffix_match(&s, ids, N, &next), FL_MATCH_MAX);
    fl_suffix_reset(&s);
  }
  fl_mem_guard_leave();
  ck_assert_uint_eq(fl_mem_guard_hits(), 0);
  fl_suffix_release(&s);
}
END_TEST

START_TEST(test_cost) {
  fl_cost c = { 0 };
  ck_assert(fl_cost_of(&c, 5) > fl_cost_of(&c, 4));
  fl_cost_learn(&c, 4, 7); /* the fastest of the first few */
  for (int i = 1; i < FL_COST_SURE; i++) fl_cost_learn(&c, 4, 1);
  ck_assert_double_eq_tol(fl_cost_of(&c, 4), 1, 1e-6);
  ck_assert(fl_cost_of(&c, 2) < 1 && fl_cost_of(&c, 8) > 1);
  fl_cost_learn(&c, 8, 50); /* once is not sure: 16 / 12 by the usual shape */
  ck_assert_double_eq_tol(fl_cost_of(&c, 8), 4.0 / 3, 1e-6);
  for (int i = 1; i < FL_COST_SURE; i++) fl_cost_learn(&c, 8, 2);
  ck_assert_double_eq_tol(fl_cost_of(&c, 8), 2, 1e-6);
  ck_assert_double_eq_tol(fl_cost_of(&c, 6), 1.5, 1e-6);
  fl_cost_learn(&c, 4, 1e9); /* one hiccup counts as four times at most, and little */
  ck_assert_double_eq_tol(fl_cost_of(&c, 4), 1.15, 1e-6);
  fl_cost_learn(&c, 4, 0.15);
  ck_assert_double_eq_tol(fl_cost_of(&c, 4), 0.65, 1e-6);
  fl_cost_learn(&c, 0, 1);
  fl_cost_learn(&c, FL_COST_ROWS + 1, 1);
  fl_cost_learn(&c, 3, -1);
  ck_assert(fl_cost_of(&c, 100000) > 0);
}
END_TEST

/* Flat costs: every draft pays. Costs in proportion to rows: none does. In between there are
 * probes, which grow rare. */
START_TEST(test_gate) {
  fl_cost flat = { 0 }, steep = { 0 };
  fl_gate g;
  for (size_t i = 1; i <= 32 * FL_COST_SURE; i++) {
    const size_t rows = (i + FL_COST_SURE - 1) / FL_COST_SURE;
    fl_cost_learn(&flat, rows, 1);
    fl_cost_learn(&steep, rows, (double)rows);
  }
  fl_gate_init(&g);
  ck_assert_uint_eq(fl_gate_length(&g, &flat, 8, 1, 1, 8), 8);
  ck_assert_uint_eq(fl_gate_length(&g, &flat, 8, 1, 1, 0), 0);
  for (size_t i = 0; i < 4096; i++) ck_assert_uint_eq(fl_gate_length(&g, &steep, 2, 1, 1, 8), 0);
  /* A second row for 0.7 of the first pays where seven of ten come true: worth a probe, rarely. */
  fl_cost dear = { 0 };
  for (size_t i = 1; i <= 32 * FL_COST_SURE; i++) {
    const size_t rows = (i + FL_COST_SURE - 1) / FL_COST_SURE;
    fl_cost_learn(&dear, rows, 0.3 + 0.7 * (double)rows);
  }
  size_t tried = 0, late = 0;
  for (size_t i = 0; i < 4096; i++) {
    size_t n = fl_gate_length(&g, &dear, 2, 1, 1, 8);
    fl_gate_learn(&g, 2, n, 0);
    tried += n > 0;
    late += n > 0 && i >= 2048;
    ck_assert_uint_le(n, 2);
  }
  ck_assert_uint_ge(tried, 2);
  ck_assert_uint_le(tried, 16);
  ck_assert_uint_le(late, 2);
  /* Drafts that never come true close the gate even where they are cheap; true ones open it. */
  fl_cost real = { 0 };
  for (size_t i = 1; i <= 32; i++) fl_cost_learn(&real, i, 8 + (double)i);
  fl_gate_init(&g);
  for (int i = 0; i < 40; i++) fl_gate_learn(&g, 2, 4, 0);
  g.wait[0] = 100;
  ck_assert_uint_eq(fl_gate_length(&g, &real, 2, 1, 1, 8), 0);
  for (int i = 0; i < 40; i++) fl_gate_learn(&g, 2, 4, 4);
  ck_assert_uint_eq(fl_gate_length(&g, &real, 2, 1, 1, 8), 8);
}
END_TEST

Suite *suite_speculate(void) {
  Suite *s = suite_create("speculate");
  TCase *t = tcase_create("core");
  tcase_add_loop_test(t, test_match_plain, 2, 4);
  tcase_add_loop_test(t, test_match_plain, 20, 22);
  tcase_add_test(t, test_separator);
  tcase_add_test(t, test_draft_choice);
  tcase_add_test(t, test_no_memory);
  tcase_add_test(t, test_reserve);
  tcase_add_test(t, test_cost);
  tcase_add_test(t, test_gate);
  suite_add_tcase(s, t);
  return s;
}
