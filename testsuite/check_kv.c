/* check_kv.c - sequences, forks and limits of the key/value pages. */
#include "model_util.h"

/* A geometry without a model: two layers of different shape, the third sharing the first's rows. */
static fl_hparams shape(void) {
  fl_hparams hp = { .n_layers = 3 };
  hp.layer[0] = (fl_layer_hparams){ .n_heads = 4, .kv_heads = 2, .head_dim = 16, .kv_from = 0 };
  hp.layer[1] = (fl_layer_hparams){ .n_heads = 4, .kv_heads = 1, .head_dim = 32, .kv_from = 1 };
  hp.layer[2] = (fl_layer_hparams){ .n_heads = 4, .kv_heads = 2, .head_dim = 16, .kv_from = 0 };
  return hp;
}

static void fill(float *x, size_t n, uint32_t stream) {
  fl_rng r = fl_rng_stream(1, FL_RNG_TEST, stream, 0, 0);
  /* Values that half precision holds exactly, so that both cache types give them back. */
  for (size_t i = 0; i < n; i++) x[i] = (float)((int)fl_rng_below(&r, 2048) - 1024) / 64.0f;
}

static void append(fl_seq *s, size_t n, uint32_t stream) {
  size_t at = fl_seq_rows(s);
  float *k = fl_calloc(n * 32, sizeof *k), *v = fl_calloc(n * 32, sizeof *v);
  ck_assert_int_eq(fl_seq_reserve(s, at + n, NULL), FL_OK);
  for (size_t layer = 0; layer < 2; layer++) {
    fill(k, n * 32, stream * 4 + (uint32_t)layer * 2);
    fill(v, n * 32, stream * 4 + (uint32_t)layer * 2 + 1);
    fl_seq_write(s, layer, at, n, k, v);
  }
  fl_seq_advance(s, n);
  fl_free(k);
  fl_free(v);
}

static void expect(const fl_seq *s, size_t first, size_t n, uint32_t stream, size_t skip) {
  float k[64 * 32], v[64 * 32], wk[64 * 32], wv[64 * 32];
  for (size_t layer = 0; layer < 2; layer++) {
    fill(wk, (n + skip) * 32, stream * 4 + (uint32_t)layer * 2);
    fill(wv, (n + skip) * 32, stream * 4 + (uint32_t)layer * 2 + 1);
    fl_seq_read(s, layer, first, n, k, v);
    ck_assert_mem_eq(k, wk + skip * 32, n * 32 * sizeof *k);
    ck_assert_mem_eq(v, wv + skip * 32, n * 32 * sizeof *v);
  }
}

START_TEST(rows_come_back) {
  fl_hparams hp = shape();
  fl_kv_pool *pool;
  fl_seq *s;
  ck_assert_int_eq(fl_kv_pool_new(&pool, &hp, fl_kernels_select(), (fl_kv_type)_i, 0, NULL), FL_OK);
  s = rig_seq(pool);
  append(s, 33, 1);
  append(s, 10, 2);
  ck_assert_uint_eq(fl_seq_rows(s), 43);
  expect(s, 0, 33, 1, 0);
  expect(s, 33, 10, 2, 0);
  ck_assert_uint_eq(fl_kv_page_bytes(pool),
                    FL_KV_ROWS * 2 * (32 + 32) * (_i == FL_KV_F16 ? 2u : 4u));
  fl_seq_free(s);
  ck_assert_uint_eq(fl_kv_pool_bytes(pool), 0);
  fl_kv_pool_free(pool);
}
END_TEST

START_TEST(forks_share_and_do_not_disturb) {
  fl_hparams hp = shape();
  fl_kv_pool *pool;
  fl_seq *a, *b, *c;
  size_t one;
  ck_assert_int_eq(fl_kv_pool_new(&pool, &hp, fl_kernels_select(), FL_KV_F32, 0, NULL), FL_OK);
  a = rig_seq(pool);
  append(a, 50, 1);
  one = fl_kv_pool_bytes(pool) / 2;
  ck_assert_int_eq(fl_seq_fork(&b, a, 50, NULL), FL_OK);
  ck_assert_uint_eq(fl_kv_pool_bytes(pool), 3 * one); /* the whole page is shared */
  ck_assert_int_eq(fl_seq_fork(&c, a, 32, NULL), FL_OK);
  ck_assert_uint_eq(fl_kv_pool_bytes(pool), 3 * one);
  append(a, 5, 2);
  append(b, 5, 3);
  append(c, 5, 4);
  expect(a, 0, 50, 1, 0);
  expect(a, 50, 5, 2, 0);
  expect(b, 0, 50, 1, 0);
  expect(b, 50, 5, 3, 0);
  expect(c, 32, 5, 4, 0);
  /* Truncated into a shared page and written on: the other keeps its rows. */
  fl_seq_truncate(b, 20);
  append(b, 3, 5);
  expect(b, 20, 3, 5, 0);
  expect(a, 0, 50, 1, 0);
  fl_seq_free(a);
  expect(b, 0, 20, 1, 0);
  fl_seq_free(b);
  fl_seq_free(c);
  ck_assert_uint_eq(fl_kv_pool_bytes(pool), 0);
  fl_kv_pool_free(pool);
}
END_TEST

START_TEST(a_place_holds_for_what_follows) {
  fl_hparams hp = shape();
  fl_kv_pool *pool;
  fl_seq *s, *f = NULL;
  ck_assert_int_eq(fl_kv_pool_new(&pool, &hp, fl_kernels_select(), FL_KV_F32, 0, NULL), FL_OK);
  ck_assert_int_eq(fl_seq_new(&s, pool, NULL), FL_OK);
  append(s, 30, 1);
  ck_assert_uint_eq(fl_seq_position(s), 30);
  fl_seq_place(s, 12);
  append(s, 5, 2);
  ck_assert_uint_eq(fl_seq_position(s), 17);
  ck_assert_int_eq(fl_seq_fork(&f, s, 32, NULL), FL_OK);
  ck_assert_uint_eq(fl_seq_position(f), 14);
  fl_seq_free(f);
  ck_assert_int_eq(fl_seq_fork(&f, s, 29, NULL), FL_OK); /* inside what was placed */
  ck_assert_uint_eq(fl_seq_position(f), 29);
  fl_seq_truncate(s, 31);
  ck_assert_uint_eq(fl_seq_position(s), 13);
  fl_seq_truncate(s, 29);
  ck_assert_uint_eq(fl_seq_position(s), 29);
  fl_seq_free(f);
  fl_seq_free(s);
  fl_kv_pool_free(pool);
}
END_TEST

START_TEST(limit_and_lack_of_memory_are_errors) {
  fl_hparams hp = shape();
  fl_kv_pool *pool;
  fl_seq *s;
  fl_err err = { 0 };
  ck_assert_int_eq(fl_kv_pool_new(&pool, &hp, fl_kernels_select(), FL_KV_F32, 2 * 32 * 512, NULL),
                   FL_OK);
  s = rig_seq(pool);
  ck_assert_int_eq(fl_seq_reserve(s, 64, NULL), FL_OK);
  ck_assert_int_eq(fl_seq_reserve(s, 65, &err), FL_EFULL);
  ck_assert_str_ne(err.text, "");
  fl_seq_free(s);
  fl_kv_pool_free(pool);
  ck_assert_int_eq(fl_kv_pool_new(&pool, &hp, fl_kernels_select(), FL_KV_F32, 0, NULL), FL_OK);
  s = rig_seq(pool);
  for (size_t n = 1; n < 4; n++) {
    fl_mem_fault_after(n);
    ck_assert_int_eq(fl_seq_reserve(s, 200, NULL), FL_EFULL);
    fl_mem_fault_after(0);
  }
  ck_assert_int_eq(fl_seq_reserve(s, 200, NULL), FL_OK);
  fl_seq_free(s);
  fl_kv_pool_free(pool);
}
END_TEST

Suite *suite_kv(void);
Suite *suite_kv(void) {
  Suite *s = suite_create("kv");
  TCase *core = tcase_create("Core"), *limits = tcase_create("Limits");
  tcase_add_loop_test(core, rows_come_back, FL_KV_F32, FL_KV_F16 + 1);
  tcase_add_test(core, forks_share_and_do_not_disturb);
  tcase_add_test(core, a_place_holds_for_what_follows);
  tcase_add_test(limits, limit_and_lack_of_memory_are_errors);
  suite_add_tcase(s, core);
  suite_add_tcase(s, limits);
  return s;
}
