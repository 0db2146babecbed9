/* check_hash.c - XXH3-128 against published values. */
#include "base/hash.h"

#include <string.h>

#include "base/mem.h"
#include "suite.h"

/* xxHash's own sanity buffer (tests/sanity_test.c: bytes from a multiplicative generator). */
static void sanity_buffer(uint8_t *p, size_t n) {
  uint64_t g = 2654435761u;
  for (size_t i = 0; i < n; i++) {
    p[i] = (uint8_t)(g >> 56);
    g *= 11400714785074694797u;
  }
}

START_TEST(published_values) {
  uint8_t buffer[128];
  char text[FL_HASH_TEXT];
  sanity_buffer(buffer, sizeof buffer);
  fl_hash_bytes(text, NULL, 0);
  ck_assert_str_eq(text, "xxh3:99aa06d3014798d86001c324468d497f");
  fl_hash_bytes(text, "abc", 3);
  ck_assert_str_eq(text, "xxh3:06b05ab6733a618578af5f94892f3950");
  fl_hash_bytes(text, buffer, 1);
  ck_assert_str_eq(text, "xxh3:a6cd5e9392000f6ac44bdff4074eecdb");
  fl_hash_bytes(text, buffer, 100);
  ck_assert_str_eq(text, "xxh3:9b50b05817ab158e5fcbc2e3295f2476");
}
END_TEST

START_TEST(pieces_give_the_same_as_the_whole) {
  static uint8_t data[5000];
  char whole[FL_HASH_TEXT], pieces[FL_HASH_TEXT];
  sanity_buffer(data, sizeof data);
  fl_hash_bytes(whole, data, sizeof data);
  fl_hasher *h = fl_hasher_new();
  for (size_t at = 0, n = 0; at < sizeof data; at += n) {
    n = at % 701 + 1 < sizeof data - at ? at % 701 + 1 : sizeof data - at;
    fl_hasher_add(h, data + at, n);
    fl_hasher_add(h, NULL, 0);
    fl_hasher_text(h, pieces); /* reading does not disturb */
  }
  ck_assert_str_eq(pieces, whole);
  fl_hasher_free(h);
  data[4321] ^= 1;
  fl_hash_bytes(pieces, data, sizeof data);
  ck_assert_str_ne(pieces, whole);
}
END_TEST

START_TEST(no_memory) {
  fl_mem_fault_after(1);
  ck_assert_ptr_null(fl_hasher_new());
  fl_mem_fault_after(0);
  fl_hasher_free(NULL);
}
END_TEST

Suite *suite_hash(void) {
  Suite *s = suite_create("hash");
  TCase *core = tcase_create("Core");
  tcase_add_test(core, published_values);
  tcase_add_test(core, pieces_give_the_same_as_the_whole);
  tcase_add_test(core, no_memory);
  suite_add_tcase(s, core);
  return s;
}
