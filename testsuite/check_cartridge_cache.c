/* check_cartridge_cache.c - which cartridges stay in memory, and where one comes from. */
#include "answer_util.h"

static still_fleet s;
static void setup(void) { still_begin(&s); }
static void teardown(void) { still_end(&s); }

static const fl_cartridge *must_get(size_t i) {
  const fl_cartridge *c = NULL;
  fl_err err = { 0 };
  ck_assert_msg(fl_fleet_cartridge(&s.f, i, &c, &err) == FL_OK, "%s", err.text);
  is_document(&s, c, i);
  return c;
}

/* Four places; a fifth document takes that of the one used longest ago. */
START_TEST(the_one_used_longest_ago_goes) {
  for (size_t i = 0; i < FL_CACHE_MIN; i++) must_get(i);
  const fl_cartridge *first = must_get(0); /* used again */
  must_get(FL_CACHE_MIN);
  ck_assert_ptr_eq(fl_cache_find(&s.f, 0), first);
  ck_assert(!fl_cache_has(&s.f, 1));
  for (size_t i = 2; i <= FL_CACHE_MIN; i++) ck_assert(fl_cache_has(&s.f, i));
  must_get(1);
  ck_assert(!fl_cache_has(&s.f, 2)); /* has() is not a use, find() is */
  ck_assert(fl_cache_has(&s.f, 0));
}
END_TEST

/* As many places as a trainer's budget, where that is more. */
START_TEST(the_budget_gives_places) {
  s.f.opts.budget = FL_CACHE_MIN + 1;
  for (size_t i = 0; i <= FL_CACHE_MIN; i++) must_get(i);
  for (size_t i = 0; i <= FL_CACHE_MIN; i++) ck_assert(fl_cache_has(&s.f, i));
}
END_TEST

START_TEST(what_is_in_memory_needs_no_disk) {
  const fl_cartridge *c = NULL;
  fl_err err = { 0 };
  must_get(2);
  s.f.off_disk = true;
  unlink(scratch(s.file[2]));
  must_get(2);
  ck_assert_int_eq(fl_fleet_cartridge(&s.f, 3, &c, &err), FL_EBUSY);
  ck_assert_ptr_null(c);
  ck_assert_ptr_nonnull(strstr(err.text, "d3.md"));
}
END_TEST

static const fl_cartridge *resident(const void *ctx, size_t doc) { return doc == 5 ? ctx : NULL; }

/* A trainer's own rows come first, and no copy of theirs is kept. */
START_TEST(a_trainers_rows_come_first) {
  const fl_cartridge *c = NULL;
  const fl_cartridge own = { .steps = 99 };
  must_get(5);
  s.f.rows_of = resident;
  s.f.rows_ctx = &own;
  ck_assert_int_eq(fl_fleet_cartridge(&s.f, 5, &c, NULL), FL_OK);
  ck_assert_ptr_eq(c, &own);
  must_get(4);
}
END_TEST

START_TEST(a_missing_file_leaves_the_cache_whole) {
  const fl_cartridge *c = NULL;
  fl_err err = { 0 };
  must_get(0);
  ck_assert_int_eq(fl_fleet_cartridge(&s.f, DOCS - 1, &c, &err), FL_ENOENT);
  ck_assert_ptr_null(c);
  must_get(0);
  ck_assert(!fl_cache_has(&s.f, DOCS - 1));
}
END_TEST

Suite *suite_cartridge_cache(void);
Suite *suite_cartridge_cache(void) {
  Suite *suite = suite_create("cartridge_cache");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, the_one_used_longest_ago_goes);
  tcase_add_test(t, the_budget_gives_places);
  tcase_add_test(t, what_is_in_memory_needs_no_disk);
  tcase_add_test(t, a_trainers_rows_come_first);
  tcase_add_test(t, a_missing_file_leaves_the_cache_whole);
  suite_add_tcase(suite, t);
  return suite;
}
