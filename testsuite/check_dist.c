/* check_dist.c - src/train/dist.c over ranks that are threads: agreements, texts, sums in order. */
#include <stdio.h>

#include "base/mem.h"
#include "base/rng.h"
#include "dist_util.h"

/* --- agreeing --- */

typedef struct outcome {
  int give[RANKS_MAX], got[RANKS_MAX], later;
  const char *text[RANKS_MAX], *what[RANKS_MAX];
  fl_err err[RANKS_MAX];
} outcome;

static void agree_once(void *ctx, fl_dist *d) {
  outcome *o = ctx;
  const size_t r = fl_dist_rank(d);
  if (o->give[r] != FL_OK && o->text[r]) fl_fail(&o->err[r], o->give[r], "%s", o->text[r]);
  o->got[r] = fl_dist_agree(d, o->what[r] ? o->what[r] : "here", o->give[r], &o->err[r]);
  /* After an end nobody waits: only this rank calls again. */
  if (r == 1 && o->got[r] != FL_OK) o->later = fl_dist_agree(d, "later", FL_OK, NULL);
}

START_TEST(all_well_is_well) {
  outcome o = { 0 };
  run_ranks(3, agree_once, &o);
  for (size_t r = 0; r < 3; r++) ck_assert_int_eq(o.got[r], FL_OK);
  ck_assert_str_eq(o.err[0].text, "");
}
END_TEST

START_TEST(one_error_is_everybodys) {
  outcome o = { .give = { 0, FL_EINTR, FL_EINPUT, FL_ENOMEM },
                .text = { NULL, NULL, "a file is damaged", "no memory" } };
  run_ranks(4, agree_once, &o);
  for (size_t r = 0; r < 4; r++) {
    ck_assert_int_eq(o.got[r], FL_EINPUT); /* before the stop of rank 1, and the lowest */
    ck_assert_str_eq(o.err[r].text, "rank 2: a file is damaged");
  }
  ck_assert_int_eq(o.later, FL_EINPUT);
}
END_TEST

START_TEST(a_stop_is_everybodys) {
  outcome o = { .give = { 0, 0, FL_EINTR } };
  run_ranks(3, agree_once, &o);
  for (size_t r = 0; r < 3; r++) {
    ck_assert_int_eq(o.got[r], FL_EINTR);
    ck_assert_str_eq(o.err[r].text, "");
  }
}
END_TEST

START_TEST(the_first_rank_is_not_named) {
  outcome o = { .give = { FL_EFAIL, FL_EFAIL }, .text = { "a full disk", "a full disk" } };
  run_ranks(2, agree_once, &o);
  for (size_t r = 0; r < 2; r++) ck_assert_str_eq(o.err[r].text, "a full disk");
}
END_TEST

START_TEST(ranks_at_different_places_notice) {
  outcome o = { .what = { "round", "round", "save" } };
  run_ranks(3, agree_once, &o);
  for (size_t r = 0; r < 3; r++) {
    ck_assert_int_eq(o.got[r], FL_EFAIL);
    ck_assert_ptr_nonnull(strstr(o.err[r].text, "rank 2 is at \"save\""));
  }
}
END_TEST

START_TEST(a_broken_connection_is_an_error) {
  outcome o = { 0 };
  run_ranks_breaking(2, 1, agree_once, &o);
  for (size_t r = 0; r < 2; r++) {
    ck_assert_int_eq(o.got[r], FL_EFAIL);
    ck_assert_ptr_nonnull(strstr(o.err[r].text, "broke"));
  }
}
END_TEST

/* --- texts --- */

typedef struct texts {
  int give, got[RANKS_MAX];
  fl_buf all[RANKS_MAX];
  size_t end[RANKS_MAX][RANKS_MAX];
} texts;

/* Rank r brings r * 1000 bytes: the first one nothing. */
static void exchange_texts(void *ctx, fl_dist *d) {
  texts *t = ctx;
  const size_t r = fl_dist_rank(d);
  fl_buf mine = { 0 };
  fl_buf_puts(&t->all[r], "what stood there before");
  for (size_t i = 0; i < r * 1000; i++) fl_buf_putc(&mine, (char)('a' + r));
  t->got[r] = fl_dist_exchange(d, "texts", t->give, &mine, &t->all[r], t->end[r], NULL);
  fl_buf_release(&mine);
}

START_TEST(texts_of_all_lengths_reach_all) {
  const size_t n = (size_t)_i + 1;
  texts t = { 0 };
  run_ranks(n, exchange_texts, &t);
  for (size_t r = 0; r < n; r++) {
    size_t at = 0;
    ck_assert_int_eq(t.got[r], FL_OK);
    for (size_t k = 0; k < n; k++) {
      ck_assert_uint_eq(t.end[r][k], at + k * 1000);
      for (; at < t.end[r][k]; at++)
        if (t.all[r].data[at] != (char)('a' + k)) ck_abort_msg("rank %zu: byte %zu", r, at);
    }
    ck_assert_uint_eq(t.all[r].len, at);
    fl_buf_release(&t.all[r]);
  }
}
END_TEST

START_TEST(no_text_comes_with_an_error) {
  texts t = { .give = FL_EFULL };
  run_ranks(3, exchange_texts, &t);
  for (size_t r = 0; r < 3; r++) {
    ck_assert_int_eq(t.got[r], FL_EFULL);
    ck_assert_uint_eq(t.all[r].len, 0);
    fl_buf_release(&t.all[r]);
  }
}
END_TEST

/* --- sums --- */

enum { N_BLOCKS = 7, N_VALUES = 3 * FL_DIST_PIECE / 2 + 5 };

typedef struct sums {
  float *block[N_BLOCKS], *want;
  float *got[RANKS_MAX];
  int rc[RANKS_MAX];
} sums;

static void sum_blocks(void *ctx, fl_dist *d) {
  sums *s = ctx;
  const size_t r = fl_dist_rank(d), n = fl_dist_count(d);
  const float *block[N_BLOCKS];
  size_t owner[N_BLOCKS];
  float *scratch = fl_aligned_calloc(FL_DIST_PIECE, sizeof *scratch);
  bool placed = false;
  for (size_t i = 0; i < N_BLOCKS; i++) {
    owner[i] = i * 5 % n;
    block[i] = owner[i] == r ? s->block[i] : NULL;
    if (owner[i] != r || placed) continue;
    memcpy(s->got[r], s->block[i], N_VALUES * sizeof(float)); /* one lies where the sum goes */
    block[i] = s->got[r];
    placed = true;
  }
  s->rc[r] = fl_dist_sum(d, fl_kernels_select(), s->got[r], block, owner, N_BLOCKS, N_VALUES,
                         scratch, NULL);
  fl_free(scratch);
}

/* Values of very different size: another order gives other bits in most of them. */
START_TEST(sums_are_taken_in_order) {
  const size_t n = (size_t)_i + 2;
  sums s = { .want = fl_aligned_calloc(N_VALUES, sizeof(float)) };
  size_t n_differ = 0;
  for (size_t i = 0; i < N_BLOCKS; i++) {
    fl_rng g = fl_rng_stream(31, FL_RNG_TEST, (uint32_t)i, 0, 0);
    s.block[i] = fl_aligned_calloc(N_VALUES, sizeof(float));
    for (size_t k = 0; k < N_VALUES; k++)
      s.block[i][k] = (float)(fl_rng_unit(&g) - 0.5) * (float)(1 << (k + i) % 7);
  }
  for (size_t k = 0; k < N_VALUES; k++) {
    float back = 0;
    for (size_t i = 0; i < N_BLOCKS; i++) s.want[k] += s.block[i][k];
    for (size_t i = N_BLOCKS; i-- > 0;) back += s.block[i][k];
    n_differ += back != s.want[k];
  }
  ck_assert_uint_gt(n_differ, N_VALUES / 8);
  for (size_t r = 0; r < n; r++) s.got[r] = fl_aligned_calloc(N_VALUES, sizeof(float));
  run_ranks(n, sum_blocks, &s);
  for (size_t r = 0; r < n; r++) {
    ck_assert_int_eq(s.rc[r], FL_OK);
    ck_assert_int_eq(memcmp(s.got[r], s.want, N_VALUES * sizeof(float)), 0);
    fl_free(s.got[r]);
  }
  for (size_t i = 0; i < N_BLOCKS; i++) fl_free(s.block[i]);
  fl_free(s.want);
}
END_TEST

START_TEST(alone_nothing_is_needed) {
  int in = 7, out = 0;
  ck_assert_int_eq(fl_dist_agree(NULL, "x", FL_EINPUT, NULL), FL_EINPUT);
  ck_assert_int_eq(fl_dist_gather(NULL, "x", FL_OK, &out, &in, sizeof in, NULL), FL_OK);
  ck_assert_int_eq(out, 7);
  ck_assert_uint_eq(fl_dist_count(NULL), 1);
  ck_assert(fl_dist_leads(NULL));
  fl_dist_free(NULL);
}
END_TEST

Suite *suite_dist(void);
Suite *suite_dist(void) {
  Suite *s = suite_create("dist");
  TCase *core = tcase_create("core"), *errors = tcase_create("errors");
  tcase_set_timeout(core, 60);
  tcase_add_test(core, all_well_is_well);
  tcase_add_loop_test(core, texts_of_all_lengths_reach_all, 0, 4);
  tcase_add_loop_test(core, sums_are_taken_in_order, 0, 3);
  tcase_add_test(core, alone_nothing_is_needed);
  tcase_add_test(errors, one_error_is_everybodys);
  tcase_add_test(errors, a_stop_is_everybodys);
  tcase_add_test(errors, the_first_rank_is_not_named);
  tcase_add_test(errors, ranks_at_different_places_notice);
  tcase_add_test(errors, a_broken_connection_is_an_error);
  tcase_add_test(errors, no_text_comes_with_an_error);
  suite_add_tcase(s, core);
  suite_add_tcase(s, errors);
  return s;
}
