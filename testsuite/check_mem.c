/* check_mem.c - allocation: sizes, alignment, arena, hooks. */
#include "base/mem.h"

#include <string.h>

#include "base/err.h"
#include "suite.h"

START_TEST(products_that_overflow_give_nothing) {
  ck_assert_ptr_null(fl_calloc(SIZE_MAX / 2, 3));
  ck_assert_ptr_null(fl_reallocarray(NULL, SIZE_MAX, 2));
  ck_assert_ptr_null(fl_aligned_calloc(SIZE_MAX / 4 + 1, 4));
  ck_assert_ptr_null(fl_malloc(SIZE_MAX));
  size_t v = 7;
  ck_assert(!fl_mul_size(SIZE_MAX, 2, &v));
  ck_assert(fl_mul_size(1u << 20, 1u << 20, &v) && v == (size_t)1 << 40);
  ck_assert(!fl_add_size(SIZE_MAX, 1, &v));
}
END_TEST

START_TEST(empty_requests_give_a_block) {
  void *a = fl_malloc(0), *b = fl_calloc(0, 8), *c = fl_aligned_calloc(0, 4);
  ck_assert(a != NULL && b != NULL && c != NULL);
  a = fl_reallocarray(a, 0, 0);
  ck_assert_ptr_nonnull(a);
  fl_free(a);
  fl_free(b);
  fl_free(c);
  fl_free(NULL);
}
END_TEST

START_TEST(aligned_blocks_are_aligned_and_zero) {
  for (size_t n = 1; n < 300; n += 37) {
    unsigned char *p = fl_aligned_calloc(n, 3);
    ck_assert_ptr_nonnull(p);
    ck_assert_uint_eq((uintptr_t)p % FL_ALIGN, 0);
    for (size_t i = 0; i < 3 * n; i++) ck_assert_uint_eq(p[i], 0);
    memset(p, 0xA5, 3 * n); /* so that a reused block would show */
    fl_free(p);
  }
}
END_TEST

START_TEST(text_copies) {
  char *a = fl_strdup("anchor"), *b = fl_strndup("anchor", 3), *c = fl_strndup("a", 99);
  char *d = fl_asprintf("%s-%03d", "doc", 7);
  ck_assert_str_eq(a, "anchor");
  ck_assert_str_eq(b, "anc");
  ck_assert_str_eq(c, "a");
  ck_assert_str_eq(d, "doc-007");
  fl_free(a);
  fl_free(b);
  fl_free(c);
  fl_free(d);
}
END_TEST

START_TEST(fault_hits_the_nth_and_every_later_one) {
  fl_mem_fault_after(3);
  void *a = fl_malloc(8), *b = fl_calloc(1, 8);
  ck_assert(a != NULL && b != NULL);
  ck_assert_ptr_null(fl_malloc(8));
  ck_assert_ptr_null(fl_aligned_calloc(1, 8));
  ck_assert_ptr_null(fl_reallocarray(NULL, 1, 8));
  ck_assert_ptr_null(fl_strdup("x"));
  ck_assert_ptr_null(fl_asprintf("x"));
  fl_arena arena;
  ck_assert_int_eq(fl_arena_init(&arena, 64), FL_ENOMEM);
  fl_mem_fault_after(0);
  void *c = fl_malloc(8);
  ck_assert_ptr_nonnull(c);
  fl_free(a);
  fl_free(b);
  fl_free(c);
}
END_TEST

START_TEST(guard_counts_only_inside) {
  size_t before = fl_mem_guard_hits();
  fl_free(fl_malloc(1));
  ck_assert_uint_eq(fl_mem_guard_hits(), before);
  fl_mem_guard_enter();
  fl_mem_guard_enter();
  fl_free(fl_malloc(1));
  fl_mem_guard_leave();
  fl_free(fl_calloc(1, 1));
  fl_mem_guard_leave();
  fl_free(fl_malloc(1));
  ck_assert_uint_eq(fl_mem_guard_hits(), before + 2);
}
END_TEST

/* The one function that both sizes and lays out. */
static void carve(fl_arena *a, void *out[3]) {
  out[0] = fl_arena_take(a, 3, 4);
  out[1] = fl_arena_take(a, 65, 1);
  out[2] = fl_arena_take(a, 10, 8);
}

typedef struct laid {
  void *out[3];
} laid;

static void carve_laid(fl_arena *a, void *ctx) { carve(a, ((laid *)ctx)->out); }

/* Arrays that do not overlap, aligned and zeroed; nothing where there is no memory. */
START_TEST(arena_lays_out) {
  static const size_t bytes[3] = { 12, 65, 80 };
  fl_arena a = { 0 };
  laid l = { { 0 } };
  ck_assert_int_eq(fl_arena_lay_out(&a, carve_laid, &l), FL_OK);
  for (size_t i = 0; i < 3; i++) {
    const uint8_t *p = l.out[i];
    ck_assert_uint_eq((uintptr_t)p % FL_ALIGN, 0);
    for (size_t b = 0; b < bytes[i]; b++) ck_assert_uint_eq(p[b], 0);
    memset(l.out[i], 1, bytes[i]);
  }
  fl_arena_release(&a);
  fl_mem_fault_after(1);
  ck_assert_int_eq(fl_arena_lay_out(&a, carve_laid, &l), FL_ENOMEM);
  fl_mem_fault_after(0);
  ck_assert_ptr_null(l.out[1]);
  fl_arena_release(&a);
}
END_TEST

START_TEST(arena_measures_what_it_then_hands_out) {
  fl_arena m, a;
  void *part[3];
  fl_arena_measure(&m);
  carve(&m, part);
  ck_assert(part[0] == NULL && part[1] == NULL && part[2] == NULL);
  ck_assert_uint_eq(m.used, 64 + 128 + 128);
  ck_assert_int_eq(fl_arena_init(&a, m.used), FL_OK);
  carve(&a, part);
  for (int i = 0; i < 3; i++) {
    ck_assert_ptr_nonnull(part[i]);
    ck_assert_uint_eq((uintptr_t)part[i] % FL_ALIGN, 0);
  }
  ck_assert_ptr_eq((char *)part[0] + 64, part[1]);
  ck_assert_ptr_eq((char *)part[1] + 128, part[2]);
  ck_assert_ptr_null(fl_arena_take(&a, 1, 1));
  fl_arena_release(&a);
  fl_arena_release(&a);
  ck_assert_ptr_null(a.base);
}
END_TEST

START_TEST(arena_refuses_overflow) {
  fl_arena m, a = { 0 };
  ck_assert_ptr_null(fl_arena_take(&a, 1, 1));
  fl_arena_measure(&m);
  fl_arena_take(&m, SIZE_MAX / 2, 3);
  ck_assert_uint_eq(m.used, SIZE_MAX);
  ck_assert_int_eq(fl_arena_init(&a, m.used), FL_ENOMEM);
}
END_TEST

Suite *suite_mem(void) {
  Suite *s = suite_create("mem");
  TCase *core = tcase_create("Core"), *limits = tcase_create("Limits");
  tcase_add_test(core, aligned_blocks_are_aligned_and_zero);
  tcase_add_test(core, text_copies);
  tcase_add_test(core, guard_counts_only_inside);
  tcase_add_test(core, arena_lays_out);
  tcase_add_test(core, arena_measures_what_it_then_hands_out);
  tcase_add_test(limits, products_that_overflow_give_nothing);
  tcase_add_test(limits, empty_requests_give_a_block);
  tcase_add_test(limits, fault_hits_the_nth_and_every_later_one);
  tcase_add_test(limits, arena_refuses_overflow);
  suite_add_tcase(s, core);
  suite_add_tcase(s, limits);
  return s;
}
