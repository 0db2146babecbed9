/* check_pass.c - forward against torch, the row rule, backward against differences and torch. */
#include "formats/safetensors.h"
#include "prefix_case.h"

/* ---- Golden: logits of torch in f32 with the file's weights widened ---- */

/* In each list the models that `make check-fast` tries stand first. */
enum { N_FAST = 2 };
static const char *const golden_models[] = {
  "tiny-qwen3",           "tiny-gemma4-moe",         "tiny-qwen3-f16",
  "tiny-qwen3-bf16",      "tiny-qwen3-q8_0",         "tiny-qwen2",
  "tiny-llama",           "tiny-qwen3-k256-f16",     "tiny-qwen3-k256-q8_0",
  "tiny-qwen3-k256-q4_0", "tiny-qwen3-k256-q4_1",    "tiny-qwen3-k256-q5_0",
  "tiny-qwen3-k256-q5_1", "tiny-qwen3-k256-q4_k",    "tiny-qwen3-k256-q5_k",
  "tiny-qwen3-k256-q6_k", "tiny-qwen3-k256-q6_k-py", "tiny-gemma3",
  "tiny-gemma4-dense",    "tiny-qwen3moe",
};
enum { N_GOLDEN = sizeof golden_models / sizeof *golden_models };

static size_t read_ids(int32_t *ids, size_t max, const char *file) {
  FILE *f = fopen(fixture(file), "r");
  size_t n = 0;
  ck_assert_ptr_nonnull(f);
  while (n < max && fscanf(f, "%d", &ids[n]) == 1) n++;
  fclose(f);
  return n;
}

/* Sums in f32 over at most 256 terms in two different orders: a relative error of 256 * 2^-24 =
 * 1.5e-5 a product, a handful of which follow each other; 1e-4 of the largest logit is what the
 * fixtures promise and any wrong constant breaks (the smallest known, a wrong eps, moves 5e-4). */
static void compare_logits(const float *got, const float *want, size_t rows, size_t n_vocab) {
  float most = 0;
  for (size_t i = 0; i < rows * n_vocab; i++) most = fmaxf(most, fabsf(want[i]));
  for (size_t r = 0; r < rows; r++) {
    const float *g = got + r * n_vocab, *w = want + r * n_vocab;
    for (size_t i = 0; i < n_vocab; i++)
      ck_assert_msg(fabsf(g[i] - w[i]) <= 1e-4f * most, "row %zu logit %zu: %g, torch %g", r, i,
                    (double)g[i], (double)w[i]);
    ck_assert_int_eq(fl_argmax(g, n_vocab), fl_argmax(w, n_vocab));
  }
}

START_TEST(logits_agree_with_torch) {
  char file[128];
  int32_t ids[64];
  fl_map ref;
  size_t n = read_ids(ids, 64, "tiny/ids40.txt");
  rig r;
  float *got;
  snprintf(file, sizeof file, "tiny/%s.gguf", golden_models[_i]);
  r = rig_open(file, 2);
  snprintf(file, sizeof file, "tiny/gold/%s.hf.f32", golden_models[_i]);
  ck_assert_int_eq(fl_map_open(&ref, fixture(file), NULL), FL_OK);
  ck_assert_uint_eq(ref.size, n * r.hp->n_vocab * sizeof(float));
  got = all_logits(&r, FL_KV_F32, ids, n, n);
  compare_logits(got, (const float *)(const void *)ref.data, n, r.hp->n_vocab);
  fl_free(got);
  fl_map_close(&ref);
  rig_close(&r);
}
END_TEST

START_TEST(embedded_model_agrees_with_torch) {
  rig r = rig_open("embedded/model.gguf", 2);
  fl_safetensors *st;
  const fl_st_tensor *ids_t, *want;
  int32_t ids[64];
  float *got;
  ck_assert_int_eq(fl_safetensors_open(&st, fixture("embedded/goldens.safetensors"), NULL), FL_OK);
  ids_t = fl_safetensors_get(st, "prompt_ids");
  want = fl_safetensors_get(st, "prompt_logits");
  ck_assert(ids_t != NULL && want != NULL && want->type == FL_ST_F32);
  ck_assert_uint_le(ids_t->n_values, 64);
  for (size_t i = 0; i < ids_t->n_values; i++) {
    if (ids_t->type == FL_ST_I64) ids[i] = (int32_t)((const int64_t *)ids_t->data)[i];
    else ids[i] = ((const int32_t *)ids_t->data)[i];
  }
  got = all_logits(&r, FL_KV_F32, ids, ids_t->n_values, ids_t->n_values);
  compare_logits(got, want->data, ids_t->n_values, r.hp->n_vocab);
  fl_free(got);
  fl_safetensors_close(st);
  rig_close(&r);
}
END_TEST

/* ---- The row rule ---- */

static const char *const rule_models[] = {
  "tiny/tiny-qwen3.gguf",  "tiny/tiny-gemma4-moe.gguf",   "tiny/tiny-qwen3-q8_0.gguf",
  "embedded/model.gguf",   "tiny/tiny-qwen2.gguf",        "tiny/tiny-qwen3-k256-q4_k.gguf",
  "tiny/tiny-gemma3.gguf", "tiny/tiny-gemma4-dense.gguf", "tiny/tiny-qwen3moe.gguf"
};
enum { N_RULE = sizeof rule_models / sizeof *rule_models };

START_TEST(slices_and_threads_change_nothing) {
  enum { N = 77 };
  static const size_t slices[] = { 1, 2, 5, 7, 32, 33 };
  rig r1 = rig_open(rule_models[_i], 1), r3 = rig_open(rule_models[_i], 3);
  int32_t ids[N];
  some_ids(ids, N, r1.hp->n_vocab, 1);
  for (int t = FL_KV_F32; t <= FL_KV_F16; t++) {
    float *whole = all_logits(&r1, (fl_kv_type)t, ids, N, N);
    float *threads = all_logits(&r3, (fl_kv_type)t, ids, N, N);
    same_bits(whole, threads, N * r1.hp->n_vocab, "threads");
    fl_free(threads);
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
      float *part = all_logits(&r3, (fl_kv_type)t, ids, N, slices[i]);
      same_bits(whole, part, N * r1.hp->n_vocab, "slices");
      fl_free(part);
    }
    fl_free(whole);
  }
  rig_close(&r1);
  rig_close(&r3);
}
END_TEST

/* Four sequences of different length in one pass against each alone. */
START_TEST(company_changes_nothing) {
  enum { S = 4 };
  static const size_t len[S] = { 3, 41, 1, 18 };
  rig r = rig_open(rule_models[_i], 2);
  fl_kv_pool *pool = rig_pool(&r, FL_KV_F16);
  fl_pass *p =
      rig_pass(&r, (fl_pass_options){ .max_rows = 64, .max_spans = S, .max_out_rows = 64 });
  int32_t ids[S][64];
  fl_span spans[S];
  size_t rows[64], at = 0, v = r.hp->n_vocab;
  float *got = fl_calloc(63 * v, sizeof *got);
  for (size_t i = 0; i < 63; i++) rows[i] = i;
  for (uint32_t s = 0; s < S; s++) {
    some_ids(ids[s], 64, v, s);
    spans[s] = (fl_span){ .seq = rig_seq(pool), .tokens = ids[s], .n_rows = len[s] };
  }
  ck_assert_int_eq(fl_pass_forward(p, spans, S, NULL), FL_OK);
  fl_pass_logits(p, rows, 63, got);
  for (size_t s = 0; s < S; s++) {
    float *alone = all_logits(&r, FL_KV_F16, ids[s], len[s], 16);
    same_bits(got + at * v, alone, len[s] * v, "company");
    at += len[s];
    fl_free(alone);
    fl_seq_free(spans[s].seq);
  }
  fl_free(got);
  fl_pass_free(p);
  fl_kv_pool_free(pool);
  rig_close(&r);
}
END_TEST

/* ---- Backward ---- */

static const char *const grad_models[] = {
  "tiny/tiny-qwen3.gguf",  "tiny/tiny-gemma4-moe.gguf",   "tiny/tiny-qwen2.gguf",
  "tiny/tiny-llama.gguf",  "tiny/tiny-qwen3-q8_0.gguf",   "embedded/model.gguf",
  "tiny/tiny-gemma3.gguf", "tiny/tiny-gemma4-dense.gguf", "tiny/tiny-qwen3moe.gguf"
};
enum { N_GRAD = sizeof grad_models / sizeof *grad_models };

START_TEST(packing_checkpoint_threads_change_nothing) {
  study_case c, c3;
  float *whole, *other;
  size_t n;
  case_open(&c, grad_models[_i], 1);
  case_open(&c3, grad_models[_i], 3);
  n = n_values(&c);
  case_run(&c, 0, SEQS, false, true);
  whole = snapshot(&c);
  case_run(&c, 0, SEQS, true, true);
  other = snapshot(&c);
  same_bits(whole, other, n, "checkpoint");
  fl_free(other);
  for (size_t s = 0; s < SEQS; s++) case_run(&c, s, s + 1, s == 1, true);
  other = snapshot(&c);
  same_bits(whole, other, n, "one by one");
  fl_free(other);
  case_run(&c3, 0, SEQS, false, true);
  other = snapshot(&c3);
  same_bits(whole, other, n, "threads");
  fl_free(other);
  c3.loose = true;
  for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
    case_run(&c3, 0, SEQS, checkpoint, true);
    other = snapshot(&c3);
    same_bits(whole, other, n, checkpoint ? "loose rows, checkpoint" : "loose rows");
    fl_free(other);
  }
  fl_free(whole);
  case_close(&c);
  case_close(&c3);
}
END_TEST

/* Loss with one prefix value moved by h. */
static double moved(study_case *c, size_t layer, bool key, size_t row, size_t i, float h) {
  float *k = fl_calloc(c->width[layer], sizeof *k), *v = fl_calloc(c->width[layer], sizeof *v);
  float *x = key ? k : v;
  double loss;
  fl_seq_read(c->prefix, layer, row, 1, k, v);
  x[i] += h;
  fl_seq_write(c->prefix, layer, row, 1, k, v);
  loss = case_run(c, 0, SEQS, false, false);
  x[i] -= h;
  fl_seq_write(c->prefix, layer, row, 1, k, v);
  fl_free(k);
  fl_free(v);
  return loss;
}

/* Central differences. With values of order 1, h = 1e-2 leaves a truncation error of order
 * h^2 = 1e-4 of the third derivative, and the loss, summed from f32 logits of a few units, is known
 * to about 1e-6, so the quotient to 1e-6 / 2e-2 = 5e-5; gradients here are up to 1e-1. */
START_TEST(gradient_is_the_slope) {
  study_case c;
  float *g, *at;
  double scale = 0;
  fl_rng rng = fl_rng_stream(3, FL_RNG_TEST, 5, 0, 0);
  case_open(&c, grad_models[_i], 2);
  case_run(&c, 0, SEQS, false, true);
  g = at = snapshot(&c);
  for (size_t i = 0; i < n_values(&c); i++) scale = fmax(scale, fabs((double)g[i]));
  ck_assert_msg(scale > 1e-4, "the gradient vanishes: %g", scale);
  for (size_t l = 0; l < c.r.hp->n_layers; l++) {
    size_t n = P * c.width[l];
    for (int t = 0; n != 0 && t < 8; t++) {
      size_t row = fl_rng_below(&rng, P), i = fl_rng_below(&rng, c.width[l]);
      bool key = t % 2 == 0;
      double slope = (moved(&c, l, key, row, i, 1e-2f) - moved(&c, l, key, row, i, -1e-2f)) / 2e-2;
      double got = (double)at[(key ? 0 : n) + row * c.width[l] + i];
      ck_assert_msg(fabs(slope - got) <= 1e-4 + 2e-2 * fabs(got),
                    "layer %zu %s row %zu value %zu: "
                    "%g, slope %g (largest %g)",
                    l, key ? "k" : "v", row, i, got, slope, scale);
    }
    at += 2 * n;
  }
  fl_free(g);
  case_close(&c);
}
END_TEST

/* ---- Errors ---- */

START_TEST(bad_input_leaves_the_sequence) {
  rig r = rig_open("tiny/tiny-qwen3.gguf", 1);
  fl_kv_pool *pool = rig_pool(&r, FL_KV_F32);
  fl_pass *p = rig_pass(&r, (fl_pass_options){ .max_rows = 4 });
  fl_seq *seq = rig_seq(pool);
  int32_t good[5] = { 1, 2, 3, 4, 5 }, bad[2] = { 1, 1 << 20 }, neg[1] = { -1 };
  fl_err err = { 0 };
  fl_span s = { .seq = seq, .tokens = bad, .n_rows = 2 };
  ck_assert_int_eq(fl_pass_forward(p, &s, 1, &err), FL_EINPUT);
  s = (fl_span){ .seq = seq, .tokens = neg, .n_rows = 1 };
  ck_assert_int_eq(fl_pass_forward(p, &s, 1, &err), FL_EINPUT);
  s = (fl_span){ .seq = seq, .tokens = good, .n_rows = 5 };
  ck_assert_int_eq(fl_pass_forward(p, &s, 1, &err), FL_EFULL);
  ck_assert_uint_eq(fl_seq_rows(seq), 0);
  fl_seq_free(seq);
  fl_pass_free(p);
  fl_kv_pool_free(pool);
  rig_close(&r);
}
END_TEST

START_TEST(a_step_does_not_allocate) {
  rig r = rig_open("tiny/tiny-qwen3.gguf", 1);
  fl_kv_pool *pool = rig_pool(&r, FL_KV_F32);
  fl_pass *p = rig_pass(&r, (fl_pass_options){ .max_rows = 4 });
  fl_seq *seq = rig_seq(pool);
  int32_t ids[3] = { 1, 2, 3 };
  size_t row = 2;
  float *logits = fl_calloc(r.hp->n_vocab, sizeof *logits);
  fl_span s = { .seq = seq, .tokens = ids, .n_rows = 3 };
  ck_assert_int_eq(fl_seq_reserve(seq, 16, NULL), FL_OK);
  fl_mem_guard_enter();
  ck_assert_int_eq(fl_pass_forward(p, &s, 1, NULL), FL_OK);
  fl_pass_logits(p, &row, 1, logits);
  fl_mem_guard_leave();
  ck_assert_uint_eq(fl_mem_guard_hits(), 0);
  fl_free(logits);
  fl_seq_free(seq);
  fl_pass_free(p);
  fl_kv_pool_free(pool);
  rig_close(&r);
}
END_TEST

Suite *suite_pass(void);
Suite *suite_pass(void) {
  Suite *s = suite_create("pass");
  TCase *golden = tcase_create("Golden"), *core = tcase_create("Core");
  TCase *errors = tcase_create("Errors"), *limits = tcase_create("Limits");
  TCase *rest = tcase_create("Other models");
  tcase_set_timeout(golden, 120);
  tcase_set_timeout(core, 300);
  tcase_set_timeout(rest, 300);
  tcase_set_tags(rest, "slow");
  tcase_add_loop_test(golden, logits_agree_with_torch, 0, N_FAST);
  tcase_add_loop_test(rest, logits_agree_with_torch, N_FAST, N_GOLDEN);
  tcase_add_test(golden, embedded_model_agrees_with_torch);
  tcase_add_loop_test(core, slices_and_threads_change_nothing, 0, N_FAST);
  tcase_add_loop_test(core, company_changes_nothing, 0, N_FAST);
  tcase_add_loop_test(core, packing_checkpoint_threads_change_nothing, 0, N_FAST);
  tcase_add_loop_test(core, gradient_is_the_slope, 0, N_FAST);
  tcase_add_loop_test(rest, slices_and_threads_change_nothing, N_FAST, N_RULE);
  tcase_add_loop_test(rest, company_changes_nothing, N_FAST, N_RULE);
  tcase_add_loop_test(rest, packing_checkpoint_threads_change_nothing, N_FAST, N_GRAD);
  tcase_add_loop_test(rest, gradient_is_the_slope, N_FAST, N_GRAD);
  tcase_add_test(errors, bad_input_leaves_the_sequence);
  tcase_add_test(limits, a_step_does_not_allocate);
  suite_add_tcase(s, golden);
  suite_add_tcase(s, core);
  suite_add_tcase(s, rest);
  suite_add_tcase(s, limits);
  suite_add_tcase(s, errors);
  return s;
}
