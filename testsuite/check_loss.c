/* check_loss.c - top-k against a full sort, the loss and its gradient against double and finite
 * differences, on every instruction-set level of the machine. */
#include "kernels/loss.h"

#include "kernels_util.h"

typedef struct entry {
  float x;
  int32_t id;
} entry;

static int descending(const void *pa, const void *pb) {
  const entry *a = pa, *b = pb;
  if (a->x != b->x) return a->x < b->x ? 1 : -1;
  return a->id < b->id ? -1 : a->id > b->id;
}

static double lse_double(const float *x, size_t n) {
  double top = -INFINITY, sum = 0;
  for (size_t i = 0; i < n; i++) top = (double)x[i] > top ? (double)x[i] : top;
  for (size_t i = 0; i < n; i++) sum += exp((double)x[i] - top);
  return top + log(sum);
}

/* What fl_topk_probs must give, from a sort of everything. */
static void check_topk(const fl_kernels *k, const float *x, size_t n, size_t top_k, double mass) {
  entry *all = room(n, sizeof *all);
  for (size_t i = 0; i < n; i++) all[i] = (entry){ x[i], (int32_t)i };
  qsort(all, n, sizeof *all, descending);
  int32_t *id = room(top_k + 1, sizeof *id);
  float *prob = room(top_k + 1, sizeof *prob);
  id[top_k] = -7;
  size_t kept = fl_topk_probs(k, id, prob, x, n, top_k, mass);
  double lse = lse_double(x, n), sum = 0;
  size_t want = top_k < n ? top_k : n;
  ck_assert_uint_ge(kept, 1);
  ck_assert_uint_le(kept, want);
  for (size_t e = 0; e < kept; e++) {
    ck_assert_int_eq(id[e], all[e].id);
    double p = exp((double)all[e].x - lse);
    /* the sum over the vocabulary is good to about 90 U (check_pointwise) */
    ck_near(prob[e], p, 100 * UNIT * p);
    if (e > 0) ck_assert(sum < mass * (1 + 1e-5)); /* it was not reached before */
    sum += p;
  }
  if (kept < want) ck_assert(sum >= mass * (1 - 1e-5));
  ck_assert_int_eq(id[top_k], -7);
  fl_free(all), fl_free(id), fl_free(prob);
}

START_TEST(topk_equals_a_sort) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  static const size_t sizes[] = { 1, 2, 5, 20, 21, 63, 64, 65, 1000, 4097 };
  fl_rng r = stream(21);
  for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++)
    for (int kind = 0; kind < 4; kind++) {
      size_t n = sizes[c];
      float *x = normals(&r, n);
      for (size_t i = 0; i < n; i++) {
        if (kind == 1) x[i] = floorf(x[i] * 2); /* many ties */
        if (kind == 2) x[i] = (float)i / 100;   /* every one goes through the heap */
        if (kind == 3) x[i] *= 6;               /* the mass is reached early */
      }
      check_topk(k, x, n, 1, 0.99);
      check_topk(k, x, n, 20, 0.99);
      check_topk(k, x, n, 20, 0.3);
      check_topk(k, x, n, 50, 2.0); /* never reached: all of them */
      fl_free(x);
    }
}
END_TEST

START_TEST(topk_keeps_the_entry_that_crosses) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  /* probabilities 1/2, 1/4, 1/8, 1/8, far from every threshold below */
  float x[4] = { logf(2), logf(4), logf(1), logf(1) }, prob[4];
  int32_t id[4];
  ck_assert_uint_eq(fl_topk_probs(k, id, prob, x, 4, 4, 0.1), 1);
  ck_assert_uint_eq(fl_topk_probs(k, id, prob, x, 4, 4, 0.6), 2);
  ck_assert_uint_eq(fl_topk_probs(k, id, prob, x, 4, 4, 0.8), 3);
  ck_assert_int_eq(id[0], 1);
  ck_assert_int_eq(id[1], 0);
  ck_assert_int_eq(id[2], 2); /* a tie: the lower id */
  ck_near(prob[0], 0.5, 8 * UNIT);
  ck_near(prob[1], 0.25, 4 * UNIT);
  ck_assert_uint_eq(fl_topk_probs(k, id, prob, x, 4, 4, 0.9), 4);
  ck_assert_uint_eq(fl_topk_probs(k, id, prob, x, 4, 9, 2.0), 4);
}
END_TEST

START_TEST(topk_of_minus_infinity) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  float x[40], prob[8];
  int32_t id[8];
  for (int i = 0; i < 40; i++) x[i] = -INFINITY;
  x[33] = 1;
  x[7] = 1;
  size_t kept = fl_topk_probs(k, id, prob, x, 40, 8, 0.99);
  ck_assert_uint_eq(kept, 2);
  ck_assert_int_eq(id[0], 7);
  ck_assert_int_eq(id[1], 33);
  ck_assert(prob[0] == 0.5f && prob[1] == 0.5f);
}
END_TEST

/* --- loss ------------------------------------------------------------------------------------- */

enum { N = 333, KEPT = 5 };

typedef struct row {
  float x[N], prob[KEPT];
  int32_t id[KEPT];
  fl_target_row target;
} row;

static void make_row(row *w, fl_rng *r) {
  double left = 0.97; /* not renormalised */
  for (size_t i = 0; i < N; i++) w->x[i] = (float)(3 * fl_rng_normal(r));
  for (size_t e = 0; e < KEPT; e++) {
    w->id[e] = (int32_t)(e * 66 + fl_rng_below(r, 66));
    w->prob[e] = (float)(left * 0.6);
    left -= (double)w->prob[e];
  }
  w->target = (fl_target_row){ w->id, w->prob, KEPT };
}

static double loss_double(const row *w, const float *x) {
  double lse = lse_double(x, N), loss = 0;
  for (size_t e = 0; e < KEPT; e++) loss -= (double)w->prob[e] * ((double)x[w->id[e]] - lse);
  return loss;
}

START_TEST(loss_equals_double) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  fl_rng r = stream(22);
  for (int round = 0; round < 20; round++) {
    row w;
    float d[N];
    make_row(&w, &r);
    /* only lse is f32 inside: its relative error of about 90 U is absolute in the logarithm */
    ck_near(fl_distill_row(k, d, w.x, N, &w.target, 1), loss_double(&w, w.x), 100 * UNIT);
  }
}
END_TEST

START_TEST(loss_gradient_is_its_slope) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  fl_rng r = stream(23);
  row w;
  float d[N], x[N];
  make_row(&w, &r);
  fl_distill_row(k, d, w.x, N, &w.target, 0.25f);
  memcpy(x, w.x, sizeof x);
  double sum = 0;
  for (size_t i = 0; i < N; i++) {
    double f[2], at[2];
    for (int s = 0; s < 2; s++) {
      x[i] = w.x[i] + (s ? 0x1p-8f : -0x1p-8f);
      at[s] = (double)x[i];
      f[s] = loss_double(&w, x);
    }
    x[i] = w.x[i];
    /* h^2/6 = 2.5e-6 times a third derivative below 0.1 */
    ck_near(d[i], 0.25 * (f[1] - f[0]) / (at[1] - at[0]), 1e-6);
    sum += (double)d[i];
  }
  ck_near(sum, 0, 1e-5); /* adding a constant to all logits changes nothing */
}
END_TEST

START_TEST(gradient_over_the_logits_themselves) {
  const fl_kernels *k = level(_i);
  if (!k) return;
  fl_rng r = stream(24);
  row w;
  float d[N];
  make_row(&w, &r);
  double apart = fl_distill_row(k, d, w.x, N, &w.target, 0.5f);
  double in_place = fl_distill_row(k, w.x, w.x, N, &w.target, 0.5f);
  ck_assert(apart == in_place);
  ck_assert(same_bits(d, w.x, N));
}
END_TEST

START_TEST(argmax_takes_the_first_of_equals) {
  float x[100] = { 0 };
  ck_assert_int_eq(fl_argmax(x, 100), 0);
  x[40] = x[77] = 3;
  ck_assert_int_eq(fl_argmax(x, 100), 40);
  x[99] = 4;
  ck_assert_int_eq(fl_argmax(x, 100), 99);
  x[0] = NAN;
  ck_assert_int_eq(fl_argmax(x, 100), 99);
  ck_assert_int_eq(fl_argmax(x, 1), 0);
}
END_TEST

Suite *suite_loss(void);
Suite *suite_loss(void) {
  Suite *s = suite_create("loss");
  TCase *c = tcase_create("topk");
  tcase_add_loop_test(c, topk_equals_a_sort, 0, N_ISAS);
  tcase_add_loop_test(c, topk_keeps_the_entry_that_crosses, 0, N_ISAS);
  tcase_add_loop_test(c, topk_of_minus_infinity, 0, N_ISAS);
  suite_add_tcase(s, c);
  c = tcase_create("distill");
  tcase_add_loop_test(c, loss_equals_double, 0, N_ISAS);
  tcase_add_loop_test(c, loss_gradient_is_its_slope, 0, N_ISAS);
  tcase_add_loop_test(c, gradient_over_the_logits_themselves, 0, N_ISAS);
  tcase_add_test(c, argmax_takes_the_first_of_equals);
  suite_add_tcase(s, c);
  return s;
}
