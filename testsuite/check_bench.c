/* check_bench.c - what the figures of `bench` are made of: ratios, turns, operations of a model.
 * How fast anything is plays no role. */
#include <string.h>

#include "base/mem.h"
#include "bench/bench.h"
#include "scratch.h"

typedef struct heard {
  size_t n;
  double ratio;
} heard;

static void hear(void *ctx, const bench_figure *f, double ratio) {
  heard *h = ctx;
  (void)f;
  h->n++;
  h->ratio = ratio;
}

/* Of a rate more is better, of a time less; a peer that was not asked has no ratio. */
START_TEST(ratios) {
  heard h = { 0 };
  bench b = { .told = hear, .ctx = &h, .rows = fl_json_array() };
  bench_figure f = {
    .part = "step", .unit = "tokens/s", .value = 30, .peer = "x", .peer_value = 10
  };
  double v;
  bench_add(&b, &f);
  ck_assert_double_eq(h.ratio, 3);
  f.unit = "s a step";
  bench_add(&b, &f);
  ck_assert_double_eq_tol(h.ratio, 1.0 / 3, 1e-15);
  f.peer = NULL;
  bench_add(&b, &f);
  ck_assert_double_eq(h.ratio, 0);
  ck_assert_uint_eq(h.n, 3);
  const fl_json *row = fl_json_first(b.rows);
  ck_assert(fl_json_get_num(row, "ratio", &v) && v == 3);
  row = fl_json_next(fl_json_next(row));
  ck_assert(!fl_json_get_num(row, "ratio", &v) && fl_json_get_num(row, "value", &v) && v == 30);
  fl_json_free(b.rows);
}
END_TEST

/* Three repetitions with shares 1/2, 1/4 and 1 of a machine that does 100 a second. */
START_TEST(the_share_is_the_median_and_the_time_the_best) {
  bench_turns t = { 0 };
  const double seconds[] = { 2, 4, 1 };
  for (size_t i = 0; i < 3; i++) {
    t.ours = seconds[i];
    t.peak = 3;
    t.amount = 300;
    bench_turns_end(&t, 100);
  }
  ck_assert_double_eq(t.best, 1);
  ck_assert_uint_eq(t.n, 3);
  ck_assert_double_eq_tol(bench_turns_share(&t), 0.5, 1e-15);
}
END_TEST

START_TEST(parts_and_peers_by_name) {
  for (const bench_part *p = bench_parts; p->name; p++) ck_assert_ptr_eq(bench_find(p->name), p);
  ck_assert_ptr_null(bench_find("speed"));
  const char *const asked[] = { "torch" };
  const bench_options o = { .peers = asked, .n_peers = 1 };
  const bench b = { .opt = &o };
  ck_assert(bench_has_peer(&b, "torch"));
  ck_assert(!bench_has_peer(&b, "blis"));
}
END_TEST

/* Two layers, width 8, 2 heads of 4 over 1 head of keys, feed-forward 16: q and o 2 * 8 * 8, k and
 * v 2 * 8 * 4, gate, up and down 3 * 8 * 16. A row whose output nobody reads is spared the last
 * layer but its k and v. */
START_TEST(operations_of_a_model) {
  fl_hparams *hp = fl_calloc(1, sizeof *hp);
  hp->n_layers = 2;
  hp->d_model = 8;
  hp->n_vocab = 100;
  for (int32_t l = 0; l < 2; l++)
    hp->layer[l] =
        (fl_layer_hparams){ .n_heads = 2, .kv_heads = 1, .head_dim = 4, .n_ff = 16, .kv_from = l };
  const bench b = { .hp = hp };
  const double qo = 2 * 8 * 8, kv = 2 * 8 * 4, ff = 3 * 8 * 16;
  ck_assert_double_eq(bench_layer_macs(&b), 2 * (qo + kv + ff));
  ck_assert_double_eq(bench_head_macs(&b), 800);
  ck_assert_double_eq(bench_spared_macs(&b, false), qo + ff);
  ck_assert_double_eq(bench_spared_macs(&b, true), qo / 2 + ff);
  fl_free(hp);
}
END_TEST

START_TEST(tokens_are_ids_of_the_model) {
  fl_hparams *hp = fl_calloc(1, sizeof *hp);
  int32_t ids[200];
  size_t other = 0;
  hp->n_vocab = 7;
  const bench b = { .hp = hp };
  bench_tokens(&b, ids, 200);
  for (size_t i = 0; i < 200; i++) {
    ck_assert(ids[i] >= 0 && ids[i] < 7);
    other += ids[i] != ids[0];
  }
  ck_assert_uint_gt(other, 100);
  fl_free(hp);
}
END_TEST

Suite *suite_bench(void) {
  Suite *s = suite_create("bench");
  TCase *t = tcase_create("core");
  tcase_add_test(t, ratios);
  tcase_add_test(t, the_share_is_the_median_and_the_time_the_best);
  tcase_add_test(t, parts_and_peers_by_name);
  tcase_add_test(t, operations_of_a_model);
  tcase_add_test(t, tokens_are_ids_of_the_model);
  suite_add_tcase(s, t);
  return s;
}

int main(void) {
  static suite_fn *const fns[] = { suite_bench };
  return suite_main(fns, 1);
}
