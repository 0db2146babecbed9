/* check_slots.c - who may use whose rows, who goes, what fits. Rows are made by the model, so that
 * using the wrong ones would show. */
#include "model_util.h"
#include "scratch.h"
#include "serve/slots.h"

static rig r;
static fl_kv_pool *pool;
static fl_prefixes prefixes;
static fl_pass *pass;
static fl_slots slots;
static fl_prefix *bare;
static size_t page_bytes;

static void setup_with(size_t n, size_t pages) {
  fl_err err = { 0 };
  const fl_selection none = { .n = 0 };
  r = rig_open("embedded/model.gguf", 1);
  pool = rig_pool(&r, FL_KV_F32);
  pass = rig_pass(&r, (fl_pass_options){ .max_rows = 64 });
  prefixes = (fl_prefixes){ .pool = pool };
  page_bytes = fl_kv_page_bytes(pool);
  ck_assert_msg(fl_slots_init(&slots, n, pool, pages * page_bytes, &prefixes, NULL, &err) == FL_OK,
                "%s", err.text);
  ck_assert_uint_eq(slots.max_pages, pages);
  ck_assert_int_eq(fl_prefix_make(&bare, &prefixes, NULL, &none, NULL, &err), FL_OK);
}

static void teardown(void) {
  fl_slots_release(&slots);
  ck_assert_uint_eq(bare->refs, 0);
  fl_prefixes_release(&prefixes);
  ck_assert_uint_eq(fl_kv_pool_bytes(pool), 0); /* every page came back */
  fl_pass_free(pass);
  fl_kv_pool_free(pool);
  rig_close(&r);
}

/* Ids a0..a(n-1) of a conversation: base + i, but `fork` from position at on. */
static void ids_of(int32_t *ids, size_t n, int32_t base, size_t at, int32_t fork) {
  for (size_t i = 0; i < n; i++) ids[i] = (i < at ? base : fork) + (int32_t)i;
}

static uint32_t owner; /* of the next wishes */

static int open_slot(fl_slot **out, const int32_t *ids, size_t n, size_t answer, const char *key) {
  const fl_slot_wish w = {
    .prefix = bare, .ids = ids, .n = n, .rows = n + answer, .key = key, .owner = owner
  };
  return fl_slots_open(out, &slots, &w, NULL);
}

/* Runs what is missing of the prompt, and checks that all rows are what a lone run gives. */
static void run_rest(fl_slot *s, const int32_t *ids, size_t n) {
  const size_t have = s->ids.len, v = r.hp->n_vocab;
  size_t last = 0;
  fl_err err = { 0 };
  ck_assert_uint_lt(have, n);
  ck_assert_uint_eq(fl_seq_rows(s->seq), have);
  ck_assert_msg(fl_pass_prefill(pass, s->seq, ids + have, n - have, &last, &err) == FL_OK, "%s",
                err.text);
  fl_ids_append(&s->ids, ids + have, n - have);
  float *got = fl_calloc(v, sizeof *got), *all = all_logits(&r, FL_KV_F32, ids, n, 64);
  fl_pass_logits(pass, &last, 1, got);
  ck_assert_int_eq(memcmp(got, all + (n - 1) * v, v * sizeof *got), 0);
  fl_free(got);
  fl_free(all);
}

static fl_slot *talk(const int32_t *ids, size_t n, const char *key, size_t *cached) {
  fl_slot *s = NULL;
  ck_assert_int_eq(open_slot(&s, ids, n, 4, key), FL_OK);
  *cached = s->ids.len;
  run_rest(s, ids, n);
  fl_slots_close(&slots, s);
  return s;
}

START_TEST(test_goes_on) {
  int32_t a[100], b[100];
  size_t cached;
  setup_with(2, 100);
  ids_of(a, 100, 100, 100, 0);
  ids_of(b, 100, 500, 100, 0);
  fl_slot *s = talk(a, 40, "a", &cached);
  ck_assert_uint_eq(cached, 0);
  fl_slot *again = talk(a, 70, "a", &cached); /* the next turn */
  ck_assert_uint_eq(cached, 40);
  ck_assert_ptr_eq(again, s);
  again = talk(a, 70, "a", &cached); /* asked again: the last token runs again */
  ck_assert_uint_eq(cached, 69);
  ck_assert_ptr_eq(again, s);
  fl_slot *other = talk(b, 33, "b", &cached);
  ck_assert_uint_eq(cached, 0);
  ck_assert_ptr_ne(other, s);
  (void)talk(a, 100, "a", &cached);
  ck_assert_uint_eq(cached, 70);
  teardown();
}
END_TEST

/* Another conversation with the same beginning gets a copy, the donor keeps its own. */
START_TEST(test_forks) {
  int32_t a[100], b[100];
  size_t cached;
  setup_with(3, 100);
  ids_of(a, 100, 100, 100, 0);
  ids_of(b, 100, 100, 50, 700);
  fl_slot *s = talk(a, 90, "a", &cached);
  fl_slot *t = talk(b, 80, "b", &cached);
  ck_assert_uint_eq(cached, 50);
  ck_assert_ptr_ne(t, s);
  (void)talk(a, 95, "a", &cached);
  ck_assert_uint_eq(cached, 90);
  (void)talk(b, 81, "b", &cached);
  ck_assert_uint_eq(cached, 80);
  teardown();
}
END_TEST

/* Nobody sees by what is found again what another owner said. */
START_TEST(test_owners) {
  int32_t a[100];
  size_t cached;
  setup_with(3, 100);
  ids_of(a, 100, 100, 100, 0);
  owner = 1;
  (void)talk(a, 90, "a", &cached);
  owner = 2;
  (void)talk(a, 90, "a", &cached);
  ck_assert_uint_eq(cached, 0);
  owner = 0;
  (void)talk(a, 95, "a", &cached);
  ck_assert_uint_eq(cached, 0);
  owner = 1;
  (void)talk(a, 95, "a", &cached);
  ck_assert_uint_eq(cached, 90);
  owner = 0;
  teardown();
}
END_TEST

/* A busy slot lends, and is not touched; two jobs of one conversation have a slot each. */
START_TEST(test_busy_lends) {
  int32_t a[100];
  fl_slot *x = NULL, *y = NULL, *z = NULL;
  setup_with(2, 100);
  ids_of(a, 100, 100, 100, 0);
  ck_assert_int_eq(open_slot(&x, a, 80, 4, "a"), FL_OK);
  run_rest(x, a, 80);
  ck_assert_int_eq(open_slot(&y, a, 90, 4, "a"), FL_OK);
  ck_assert_ptr_ne(x, y);
  ck_assert_uint_eq(y->ids.len, 80);
  run_rest(y, a, 90);
  ck_assert_int_eq(open_slot(&z, a, 20, 4, "c"), FL_EBUSY);
  fl_slots_close(&slots, x);
  ck_assert_int_eq(open_slot(&z, a, 20, 4, "c"), FL_OK);
  fl_slots_close(&slots, y);
  fl_slots_close(&slots, z);
  teardown();
}
END_TEST

START_TEST(test_least_used_goes) {
  int32_t a[40], b[40], c[40];
  size_t cached;
  setup_with(2, 100);
  ids_of(a, 40, 100, 40, 0);
  ids_of(b, 40, 300, 40, 0);
  ids_of(c, 40, 500, 40, 0);
  (void)talk(a, 30, "a", &cached);
  (void)talk(b, 30, "b", &cached);
  (void)talk(a, 32, "a", &cached);
  (void)talk(c, 30, "c", &cached); /* b was used longest ago */
  (void)talk(a, 34, "a", &cached);
  ck_assert_uint_eq(cached, 32);
  (void)talk(b, 30, "b", &cached);
  ck_assert_uint_eq(cached, 0);
  teardown();
}
END_TEST

/* Room is counted with what running jobs may still need. */
START_TEST(test_room) {
  int32_t a[200], b[200];
  fl_slot *x = NULL, *y = NULL;
  size_t cached;
  setup_with(4, 8); /* 256 rows */
  ids_of(a, 200, 100, 200, 0);
  ids_of(b, 200, 600, 200, 0);
  ck_assert(fl_slots_too_large(&slots, 8 * 32));
  ck_assert(!fl_slots_too_large(&slots, 7 * 32));
  ck_assert_int_eq(open_slot(&x, a, 40, 100, "a"), FL_OK); /* 5 pages reserved, 6 with the spare */
  ck_assert_int_eq(open_slot(&y, b, 40, 100, "b"), FL_EFULL);
  ck_assert_int_eq(open_slot(&y, b, 20, 10, "b"), FL_OK);
  run_rest(y, b, 20);
  fl_slots_close(&slots, y);
  run_rest(x, a, 40);
  for (size_t i = 40; i < 140; i++) { /* all that was reserved fits, whatever came between */
    size_t last;
    ck_assert_int_eq(fl_pass_prefill(pass, x->seq, a + i, 1, &last, NULL), FL_OK);
    fl_ids_append(&x->ids, a + i, 1);
  }
  fl_slots_close(&slots, x);
  (void)talk(b, 150, "b", &cached); /* the idle ones make room */
  teardown();
}
END_TEST

/* A random course of conversations: rows are always right (run_rest), pages always come back. */
START_TEST(test_random_course) {
  int32_t ids[4][160];
  fl_slot *busy[3] = { NULL };
  fl_rng g = fl_rng_stream((uint64_t)_i, FL_RNG_TEST, 5, 0, 0);
  setup_with(3, 14);
  for (int k = 0; k < 4; k++) ids_of(ids[k], 160, 100 * (1 + k / 2), 60, 1000 + 200 * k);
  for (int step = 0; step < 60; step++) {
    size_t k = fl_rng_below(&g, 4), n = 1 + fl_rng_below(&g, 100), at = fl_rng_below(&g, 3);
    char key[2] = { (char)('a' + k), 0 };
    if (busy[at] != NULL) {
      fl_slots_close(&slots, busy[at]);
      busy[at] = NULL;
      continue;
    }
    if (open_slot(&busy[at], ids[k], n, fl_rng_below(&g, 30), key) != FL_OK) {
      busy[at] = NULL;
      continue;
    }
    run_rest(busy[at], ids[k], n);
  }
  for (int i = 0; i < 3; i++)
    if (busy[i] != NULL) fl_slots_close(&slots, busy[i]);
  teardown();
}
END_TEST

/* What is being loaded counts: a slot that just fits does not beside it. */
START_TEST(test_loading_bytes) {
  int32_t a[100];
  fl_slot *s = NULL;
  setup_with(2, 5);
  ids_of(a, 100, 100, 100, 0);
  slots.loading_bytes = page_bytes + 1; /* two of the five pages; rows and one spare need four */
  ck_assert_int_eq(open_slot(&s, a, 92, 4, "a"), FL_EFULL);
  slots.loading_bytes = page_bytes;
  ck_assert_int_eq(open_slot(&s, a, 92, 4, "a"), FL_OK);
  slots.loading_bytes = 0;
  fl_slots_close(&slots, s);
  teardown();
}
END_TEST

Suite *suite_slots(void) {
  Suite *s = suite_create("slots");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, test_loading_bytes);
  tcase_add_test(t, test_goes_on);
  tcase_add_test(t, test_forks);
  tcase_add_test(t, test_owners);
  tcase_add_test(t, test_busy_lends);
  tcase_add_test(t, test_least_used_goes);
  tcase_add_test(t, test_room);
  tcase_add_loop_test(t, test_random_course, 0, 6);
  suite_add_tcase(s, t);
  return s;
}
