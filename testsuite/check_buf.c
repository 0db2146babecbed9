/* check_buf.c - growing byte strings and token arrays. */
#include "base/buf.h"

#include <string.h>

#include "base/mem.h"
#include "suite.h"

START_TEST(appends_of_every_kind) {
  fl_buf b = { 0 };
  fl_buf_puts(&b, "");
  ck_assert_str_eq(b.data, "");
  fl_buf_puts(&b, "ab");
  fl_buf_putc(&b, 'c');
  fl_buf_append(&b, "\0d", 2);
  fl_buf_printf(&b, "%05d", 42);
  ck_assert_uint_eq(b.len, 10);
  ck_assert_mem_eq(b.data, "abc\0d00042", 11);
  fl_buf_reset(&b);
  ck_assert_uint_eq(b.len, 0);
  ck_assert_str_eq(b.data, "");
  fl_buf_release(&b);
  fl_buf_release(&b);
  ck_assert_ptr_null(b.data);
}
END_TEST

START_TEST(grows_over_many_sizes) {
  fl_buf b = { 0 };
  char chunk[1000];
  size_t want = 0;
  for (size_t n = 0; n < sizeof chunk; n += 37) {
    memset(chunk, (int)('a' + n % 26), sizeof chunk);
    fl_buf_append(&b, chunk, n);
    fl_buf_printf(&b, "%.*s", (int)n, chunk);
    want += 2 * n;
    ck_assert_uint_eq(b.len, want);
    ck_assert_uint_eq(strlen(b.data), want);
  }
  fl_buf_release(&b);
}
END_TEST

START_TEST(failed_append_sticks_and_keeps_content) {
  fl_buf b = { 0 };
  fl_buf_puts(&b, "kept");
  fl_mem_fault_after(1);
  for (int i = 0; i < 100; i++) fl_buf_puts(&b, "more text than fits");
  fl_mem_fault_after(0);
  ck_assert(b.oom);
  size_t len = b.len;
  ck_assert_mem_eq(b.data, "kept", 4);
  fl_buf_puts(&b, "x"); /* there is memory now, but a hole would be worse */
  ck_assert_uint_eq(b.len, len);
  ck_assert_ptr_null(fl_buf_detach(&b));
  ck_assert_ptr_null(b.data);
}
END_TEST

START_TEST(length_overflow_is_oom) {
  fl_buf b = { .len = SIZE_MAX - 1, .cap = SIZE_MAX };
  fl_buf_append(&b, "xx", 2);
  ck_assert(b.oom);
  fl_ids v = { .len = SIZE_MAX, .cap = SIZE_MAX };
  fl_ids_push(&v, 1);
  ck_assert(v.oom);
}
END_TEST

START_TEST(detach_gives_the_string_away) {
  fl_buf b = { 0 };
  char *s = fl_buf_detach(&b);
  ck_assert_str_eq(s, "");
  fl_free(s);
  fl_buf_puts(&b, "text");
  s = fl_buf_detach(&b);
  ck_assert_str_eq(s, "text");
  ck_assert(b.data == NULL && b.len == 0 && b.cap == 0);
  fl_free(s);
}
END_TEST

START_TEST(ids) {
  fl_ids v = { 0 };
  static const int32_t more[] = { -1, 7, 9 };
  fl_ids_append(&v, more, 0);
  ck_assert_ptr_null(v.data);
  for (int32_t i = 0; i < 100; i++) fl_ids_push(&v, i);
  fl_ids_append(&v, more, 3);
  ck_assert_uint_eq(v.len, 103);
  ck_assert_int_eq(v.data[99], 99);
  ck_assert_int_eq(v.data[100], -1);
  fl_mem_fault_after(1);
  for (int i = 0; i < 1000; i++) fl_ids_append(&v, more, 3);
  fl_mem_fault_after(0);
  ck_assert(v.oom);
  ck_assert_int_eq(v.data[102], 9);
  fl_ids_reset(&v);
  ck_assert(v.len == 0 && !v.oom);
  fl_ids_release(&v);
}
END_TEST

Suite *suite_buf(void) {
  Suite *s = suite_create("buf");
  TCase *core = tcase_create("Core"), *limits = tcase_create("Limits");
  tcase_add_test(core, appends_of_every_kind);
  tcase_add_test(core, grows_over_many_sizes);
  tcase_add_test(core, detach_gives_the_string_away);
  tcase_add_test(core, ids);
  tcase_add_test(limits, failed_append_sticks_and_keeps_content);
  tcase_add_test(limits, length_overflow_is_oom);
  suite_add_tcase(s, core);
  suite_add_tcase(s, limits);
  return s;
}
