/* check_eval.c - eval: intervals, weighing of answers, question files, thresholds, the page. */
#include <math.h>
#include <string.h>

#include "eval/eval.h"
#include "eval/score.h"
#include "eval/stats.h"
#include "formats/safetensors.h"
#include "model_util.h"
#include "scratch.h"

/* --- intervals --- */

enum { N = 20, RESAMPLES = 2000 };
static const double right_a[N] = { 1, 1, 0, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 0, 1 };
static const double right_b[N] = { 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0 };
static const double nll[N] = { 3.5,  1.25, 2,   0.5, 4, 1, 1,    2.25, 3, 1,
                               0.75, 5,    1.5, 2,   6, 1, 0.25, 2.5,  3, 1 };
static const double tokens[N] = { 4, 3, 4, 2, 5, 3, 3, 4, 5, 2, 2, 6, 3, 4, 7, 3, 1, 4, 5, 3 };

static double *resampled(void) {
  double x[N * 4];
  double *sums = fl_calloc(RESAMPLES * 4, sizeof *sums);
  for (size_t i = 0; i < N; i++) {
    x[i * 4] = right_a[i];
    x[i * 4 + 1] = right_b[i];
    x[i * 4 + 2] = nll[i];
    x[i * 4 + 3] = tokens[i];
  }
  eval_resample(sums, RESAMPLES, x, N, 4);
  return sums;
}

/* The expected values come from a Python program of 30 lines that was written from the description
 * in stats.h and rng.h alone: its own Philox4x32-10 (which gives the published answer for the
 * zero counter), its own sampling and sorting. */
START_TEST(intervals_as_computed_elsewhere) {
  double *sums = resampled(), v[RESAMPLES], low, high;
  for (size_t k = 0; k < RESAMPLES; k++) v[k] = sums[k * 4] / N;
  eval_middle95(v, RESAMPLES, &low, &high);
  ck_assert_double_eq_tol(low, 0.45, 1e-12);
  ck_assert_double_eq_tol(high, 0.85, 1e-12);
  for (size_t k = 0; k < RESAMPLES; k++) v[k] = (sums[k * 4] - sums[k * 4 + 1]) / N;
  eval_middle95(v, RESAMPLES, &low, &high);
  ck_assert_double_eq_tol(low, 0.0, 1e-12);
  ck_assert_double_eq_tol(high, 0.4, 1e-12);
  for (size_t k = 0; k < RESAMPLES; k++) v[k] = sums[k * 4 + 2] / sums[k * 4 + 3];
  eval_middle95(v, RESAMPLES, &low, &high);
  ck_assert_double_eq_tol(low, 0.484375, 1e-12);
  ck_assert_double_eq_tol(high, 0.6686746987951807, 1e-12);
  fl_free(sums);
}
END_TEST

/* A resampled share of 13 in 20 is binomial. With 2000 resamples the rank of a bound stays within
 * 0.025 +- 4 sqrt(0.025 * 0.975 / 2000) = 0.011..0.039; the binomial quantiles there are 0.40 and
 * 0.45 below, 0.85 and 0.90 above. */
START_TEST(intervals_as_the_binomial_has_them) {
  double *sums = resampled(), v[RESAMPLES], low, high, mean = 0;
  for (size_t k = 0; k < RESAMPLES; k++) {
    v[k] = sums[k * 4] / N;
    mean += v[k] / RESAMPLES;
  }
  eval_middle95(v, RESAMPLES, &low, &high);
  ck_assert(low >= 0.40 - 1e-12 && low <= 0.45 + 1e-12);
  ck_assert(high >= 0.85 - 1e-12 && high <= 0.90 + 1e-12);
  /* deviation of the mean: sqrt(0.65 * 0.35 / 20 / 2000) = 0.0024; four of them */
  ck_assert_double_eq_tol(mean, 0.65, 0.0096);
  fl_free(sums);
}
END_TEST

START_TEST(interval_of_the_smallest_number) {
  double v[40], low, high;
  for (size_t i = 0; i < 40; i++) v[i] = (double)(39 - i);
  eval_middle95(v, 40, &low, &high);
  ck_assert_double_eq(low, 1);
  ck_assert_double_eq(high, 38);
}
END_TEST

/* --- weighing --- */

typedef struct golden {
  int32_t ids[64];
  size_t n, n_vocab;
  double nll[64]; /* [n], from 1: of token i behind those before it */
} golden;

static golden read_golden(void) {
  golden g = { 0 };
  fl_safetensors *st;
  ck_assert_int_eq(fl_safetensors_open(&st, fixture("embedded/goldens.safetensors"), NULL), FL_OK);
  const fl_st_tensor *ids = fl_safetensors_get(st, "prompt_ids");
  const fl_st_tensor *logits = fl_safetensors_get(st, "prompt_logits");
  ck_assert(ids && logits && ids->n_values <= 64 && logits->type == FL_ST_F32);
  g.n = ids->n_values;
  g.n_vocab = logits->n_values / g.n;
  for (size_t i = 0; i < g.n; i++)
    g.ids[i] = ids->type == FL_ST_I64 ? (int32_t)((const int64_t *)ids->data)[i]
                                      : ((const int32_t *)ids->data)[i];
  for (size_t i = 1; i < g.n; i++) { /* plainly, in double */
    const float *row = (const float *)logits->data + (i - 1) * g.n_vocab;
    double sum = 0;
    for (size_t k = 0; k < g.n_vocab; k++) sum += exp((double)row[k]);
    g.nll[i] = log(sum) - (double)row[g.ids[i]];
  }
  fl_safetensors_close(st);
  return g;
}

/* nll of tokens [n_prompt, n) behind `before` tokens that stand in the prefix, in one item. */
static double weigh_one(const rig *r, const golden *g, size_t before, size_t n_prompt,
                        size_t max_rows, size_t max_out) {
  fl_kv_pool *pool = rig_pool(r, FL_KV_F32);
  fl_seq *prefix = rig_seq(pool);
  fl_pass *p = rig_pass(
      r, (fl_pass_options){ .max_rows = max_rows, .max_spans = 2, .max_out_rows = max_out });
  eval_item item = { .prefix = prefix, .n_prompt = n_prompt - before };
  size_t last;
  fl_err err = { 0 };
  if (before > 0) ck_assert_int_eq(fl_pass_prefill(p, prefix, g->ids, before, &last, &err), FL_OK);
  fl_ids_append(&item.tokens, g->ids + before, g->n - before);
  ck_assert_msg(eval_weigh(p, &item, 1, 2, max_out, &err) == FL_OK, "%s", err.text);
  ck_assert_uint_eq(fl_seq_rows(prefix), before);
  double nll_sum = item.nll;
  eval_items_release(&item, 1);
  fl_pass_free(p);
  fl_seq_free(prefix);
  fl_kv_pool_free(pool);
  return nll_sum;
}

/* Logits agree with torch's within 1e-4 of the largest (check_pass.c says why; |logit| < 40), so a
 * log probability within twice that, and the mean over the tokens too. */
START_TEST(perplexity_as_torch_has_it) {
  rig r = rig_open("embedded/model.gguf", 2);
  golden g = read_golden();
  ck_assert_uint_eq(g.n_vocab, r.hp->n_vocab);
  for (size_t n_prompt = 1; n_prompt < g.n; n_prompt += 13) {
    double want = 0;
    for (size_t i = n_prompt; i < g.n; i++) want += g.nll[i];
    double got = weigh_one(&r, &g, 0, n_prompt, 64, 64), n = (double)(g.n - n_prompt);
    ck_assert_double_eq_tol(got / n, want / n, 2 * 1e-4 * 40);
    ck_assert_double_eq_tol(exp(got / n), exp(want / n), exp(want / n) * 2 * 1e-4 * 40);
    ck_assert_double_gt(want, 0.1);
  }
  rig_close(&r);
}
END_TEST

/* By the row rule neither slices, nor company, nor what stood before as rows change a bit. */
START_TEST(weighing_alone_and_in_slices) {
  rig r = rig_open("embedded/model.gguf", 2);
  golden g = read_golden();
  double whole = weigh_one(&r, &g, 0, 20, 64, 64);
  ck_assert(weigh_one(&r, &g, 0, 20, 7, 3) == whole);
  ck_assert(weigh_one(&r, &g, 15, 20, 5, 64) == whole);
  fl_kv_pool *pool = rig_pool(&r, FL_KV_F32);
  fl_seq *empty = rig_seq(pool);
  fl_pass *p = rig_pass(&r, (fl_pass_options){ .max_rows = 48, .max_spans = 3, .max_out_rows = 5 });
  eval_item item[4] = { 0 };
  for (size_t i = 0; i < 4; i++) {
    item[i] = (eval_item){ .prefix = empty, .n_prompt = 20 };
    fl_ids_append(&item[i].tokens, g.ids, i == 2 ? g.n : 21 + i * 4);
  }
  ck_assert_int_eq(eval_weigh(p, item, 4, 3, 5, NULL), FL_OK);
  ck_assert(item[2].nll == whole);
  ck_assert(item[0].nll > 0 && item[0].nll < item[1].nll && item[1].nll < item[3].nll);
  eval_items_release(item, 4);
  fl_pass_free(p);
  fl_seq_free(empty);
  fl_kv_pool_free(pool);
  rig_close(&r);
}
END_TEST

/* --- question files --- */

static int read_text(eval_questions *q, const char *text, fl_err *err) {
  scratch_begin();
  scratch_put(scratch("q"), text, strlen(text));
  int rc = eval_questions_read(q, scratch("q"), err);
  scratch_end();
  return rc;
}

START_TEST(questions_in_both_shapes) {
  eval_questions q;
  ck_assert_int_eq(read_text(&q,
                             "\n{\"question\":\"a\",\"doc\":\"d\",\"value\":[\"x\",\"y\"]}\n"
                             "  \n{\"question\":\"b\",\"document\":\"d\",\"answer\":\"It is z.\","
                             "\"value\":\"z\"}",
                             NULL),
                   FL_OK);
  ck_assert_uint_eq(q.n, 2);
  ck_assert_uint_eq(q.q[0].value.n, 2);
  ck_assert_str_eq(q.q[0].value.v[1], "y");
  ck_assert_str_eq(q.q[0].reference, "x");
  ck_assert_str_eq(q.q[1].reference, "It is z.");
  eval_questions_limit(&q, 1);
  ck_assert_uint_eq(q.n, 1);
  eval_questions_release(&q);
  ck_assert_int_eq(read_text(&q,
                             " [{\"question\":\"a\",\"doc\":\"d\",\"options\":[\"x\",\"y\"],"
                             "\"correct\":1},{\"question\":\"a\",\"doc\":\"d\",\"value\":\"Y\","
                             "\"options\":[\"x\",\"z\",\"y\"]}]",
                             NULL),
                   FL_OK);
  ck_assert_uint_eq(q.n_options, 2);
  ck_assert_uint_eq(q.q[0].correct, 1);
  ck_assert_str_eq(q.q[0].value.v[0], "y");
  ck_assert_uint_eq(q.q[1].correct, 2);
  eval_questions_release(&q);
}
END_TEST

START_TEST(questions_that_are_refused) {
  static const char *const bad[] = {
    "",
    "\n \n",
    "[]",
    "[1]",
    "{}",
    "[",
    "{\"question\":\"a\",\"value\":\"v\"}",
    "{\"question\":\"a\",\"doc\":\"d\",\"value\":[]}",
    "{\"question\":\"a\",\"doc\":\"d\",\"value\":[1]}",
    "{\"question\":\"a\",\"doc\":\"d\",\"value\":\"\"}",
    "{\"question\":\"a\",\"doc\":\"d\"}",
    "{\"question\":\"a\",\"doc\":\"d\",\"value\":{\"x\":\"y\"}}",
    "{\"question\":\"a\",\"doc\":\"d\",\"options\":[\"x\"],\"correct\":0}",
    "{\"question\":\"a\",\"doc\":\"d\",\"options\":[\"x\",\"y\"],\"correct\":2}",
    "{\"question\":\"a\",\"doc\":\"d\",\"options\":[\"x\",\"y\"],\"correct\":-1}",
    "{\"question\":\"a\",\"doc\":\"d\",\"options\":[\"x\",\"y\"],\"value\":\"w\"}",
    "{\"question\":\"a\",\"doc\":\"d\",\"options\":\"xy\",\"value\":\"xy\"}",
    "{\"question\":\"a\",\"doc\":\"d\",\"value\":\"v\"}\n{\"question\":\"a\"",
    "{\"question\":\"a\",\"doc\":\"d\",\"value\":\"v\"}\nnot json"
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    eval_questions q;
    fl_err err = { 0 };
    ck_assert_msg(read_text(&q, bad[i], &err) == FL_EINPUT, "%s was taken", bad[i]);
    ck_assert_msg(err.text[0] != '\0', "%s: no sentence", bad[i]);
  }
}
END_TEST

START_TEST(arms_by_name) {
  eval_arms a;
  ck_assert_int_eq(eval_arms_parse(&a, "--arms", "all,bare,text4", NULL), FL_OK);
  ck_assert_uint_eq(a.n, 3);
  ck_assert_int_eq(a.arm[0], EVAL_ALL);
  ck_assert_int_eq(a.arm[2], EVAL_TEXT4);
  static const char *const bad[] = { "", "bar", "bare,bare", "bare,,all", "bare all", ",bare" };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    ck_assert_msg(eval_arms_parse(&a, "--arms", bad[i], NULL) == FL_EUSAGE, "'%s'", bad[i]);
}
END_TEST

/* --- thresholds and the page --- */

static fl_json *some_summary(void) {
  static const char text[] =
      "{\"questions\":4,\"score\":\"contains\",\"resamples\":2000,\"arms\":["
      "{\"arm\":\"context\",\"share\":0.75,\"low\":0.5,\"high\":1,\"rows\":400},"
      "{\"arm\":\"oracle\",\"share\":0.65,\"low\":0.25,\"high\":1,\"rows\":100}],"
      "\"perplexity\":[{\"arm\":\"oracle\",\"perplexity\":1.5,\"low\":1.1,\"high\":2}],"
      "\"documents\":[{\"document\":\"<script>alert(1)</script>&\\\"'\\u0001\\u001f\\uffff\","
      "\"n\":1}],"
      "\"answers\":[{\"question\":\"]]>--><!--\",\"oracle\":null}]}";
  fl_json *o;
  ck_assert_int_eq(fl_json_parse(&o, text, sizeof text - 1, NULL), FL_OK);
  return o;
}

START_TEST(thresholds) {
  fl_json *s = some_summary();
  static const char *const met[] = { "context>=0.75",          "context<=0.75",
                                     "oracle>=context-0.1",    "oracle<=context",
                                     "perplexity:oracle<=1.5", "rows:oracle<=context-300",
                                     "low:oracle>=0.25" };
  static const char *const missed[] = { "context>=0.76", "oracle>=context-0.09", "context<=0.7",
                                        "perplexity:oracle<=1.4", "rows:context<=100" };
  static const char *const malformed_[] = { "",
                                            "context",
                                            "context>0.7",
                                            "context>=",
                                            "context>=x",
                                            ">=0.5",
                                            "nobody>=0.5",
                                            "context>=0.5x",
                                            "context>=nan",
                                            "context>=1e999",
                                            "context>=oracle-",
                                            "context>=oracle-x",
                                            "nothing:context>=1",
                                            ":context>=1",
                                            "perplexity:context<=2",
                                            "context>=-",
                                            "context=>1",
                                            "a-member-with-a-name-that-is-far-too-long:context>=1",
                                            "share:share:context>=1" };
  for (size_t i = 0; i < sizeof met / sizeof *met; i++)
    ck_assert_msg(eval_threshold(s, met[i], NULL) == FL_OK, "%s", met[i]);
  for (size_t i = 0; i < sizeof missed / sizeof *missed; i++)
    ck_assert_msg(eval_threshold(s, missed[i], NULL) == FL_EGATE, "%s", missed[i]);
  for (size_t i = 0; i < sizeof malformed_ / sizeof *malformed_; i++)
    ck_assert_msg(eval_threshold(s, malformed_[i], NULL) == FL_EUSAGE, "%s", malformed_[i]);
  fl_json_free(s);
  const eval_arms arms = { .arm = { EVAL_CONTEXT, EVAL_ORACLE }, .n = 2 };
  ck_assert_int_eq(eval_threshold_check(&arms, "perplexity:oracle<=context+0.1", NULL), FL_OK);
  ck_assert_int_eq(eval_threshold_check(&arms, "bare>=0.1", NULL), FL_EUSAGE);
}
END_TEST

START_TEST(the_page_escapes_everything) {
  fl_json *s = some_summary();
  fl_buf page = { 0 };
  eval_html(&page, s, "<b>\xff&");
  ck_assert(page.data != NULL && strncmp(page.data, "<!DOCTYPE html>", 15) == 0);
  ck_assert_ptr_null(strstr(page.data, "<script"));
  ck_assert_ptr_null(strstr(page.data, "<b>"));
  ck_assert_ptr_null(strstr(page.data, "<!--"));
  ck_assert_ptr_null(strstr(page.data, "http-equiv"));
  ck_assert_ptr_nonnull(strstr(page.data, "&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;'"
                                          "&#xFFFD;&#xFFFD;&#xFFFD;"));
  ck_assert_ptr_nonnull(strstr(page.data, "<title>&lt;b&gt;&#xFFFD;&amp;</title>"));
  ck_assert_ptr_nonnull(strstr(page.data, "]]&gt;--&gt;&lt;!--"));
  ck_assert_ptr_nonnull(strstr(page.data, "<svg"));
  for (size_t i = 0; i < page.len; i++)
    ck_assert((unsigned char)page.data[i] >= 0x20 || page.data[i] == '\n');
  fl_buf_release(&page);
  fl_json_free(s);
}
END_TEST

Suite *suite_eval(void) {
  Suite *s = suite_create("eval");
  TCase *t = tcase_create("core");
  tcase_add_test(t, intervals_as_computed_elsewhere);
  tcase_add_test(t, intervals_as_the_binomial_has_them);
  tcase_add_test(t, interval_of_the_smallest_number);
  tcase_add_test(t, perplexity_as_torch_has_it);
  tcase_add_test(t, weighing_alone_and_in_slices);
  tcase_add_test(t, questions_in_both_shapes);
  tcase_add_test(t, questions_that_are_refused);
  tcase_add_test(t, arms_by_name);
  tcase_add_test(t, thresholds);
  tcase_add_test(t, the_page_escapes_everything);
  suite_add_tcase(s, t);
  return s;
}

int main(void) {
  static suite_fn *const fns[] = { suite_eval };
  return suite_main(fns, 1);
}
