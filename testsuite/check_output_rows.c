/* check_output_rows.c - rows whose outputs nobody reads: nothing else has other bits for them. */
#include <signal.h>

#include "model/weights.h"
#include "prefix_case.h"

static const char *const models[] = {
  "tiny/tiny-qwen3.gguf",  "tiny/tiny-gemma4-moe.gguf",   "tiny/tiny-qwen2.gguf",
  "tiny/tiny-gemma3.gguf", "tiny/tiny-gemma4-dense.gguf", "tiny/tiny-qwen3moe.gguf",
};
enum { N_MODELS = sizeof models / sizeof *models, N_FAST = 2 /* the first, in check-fast too */ };

/* ---- Forward ---- */

enum { N_SEQ = 4, N_ROWS = 63 };
static const size_t lengths[N_SEQ] = { 3, 41, 1, 18 };
static const size_t silent[N_SEQ] = { 3, 40, 0, 7 }; /* all, all but the last, none, some */

static size_t n_loud(void) {
  size_t n = N_ROWS;
  for (size_t s = 0; s < N_SEQ; s++) n -= silent[s];
  return n;
}

/* Logits of the rows that are read, then of one more row of each sequence, which sees the keys and
 * values of all. */
static float *packed_logits(const rig *r, fl_kv_type type, bool hush) {
  fl_kv_pool *pool = rig_pool(r, type);
  fl_pass *p =
      rig_pass(r, (fl_pass_options){ .max_rows = N_ROWS, .max_spans = N_SEQ, .max_out_rows = 64 });
  int32_t ids[N_SEQ][64];
  fl_span span[N_SEQ];
  size_t row[N_ROWS], n = 0, at = 0;
  for (uint32_t s = 0; s < N_SEQ; s++) {
    some_ids(ids[s], 64, r->hp->n_vocab, s);
    span[s] = (fl_span){ .seq = rig_seq(pool),
                         .tokens = ids[s],
                         .n_rows = lengths[s],
                         .n_no_output = hush ? silent[s] : 0 };
    for (size_t i = silent[s]; i < lengths[s]; i++) row[n++] = at + i;
    at += lengths[s];
  }
  float *out = fl_calloc((n + N_SEQ) * r->hp->n_vocab, sizeof *out);
  ck_assert_int_eq(fl_pass_forward(p, span, N_SEQ, NULL), FL_OK);
  fl_pass_logits(p, row, n, out);
  for (size_t s = 0; s < N_SEQ; s++) {
    span[s].tokens += lengths[s];
    span[s].n_rows = 1;
    span[s].n_no_output = 0;
    row[s] = s;
  }
  ck_assert_int_eq(fl_pass_forward(p, span, N_SEQ, NULL), FL_OK);
  fl_pass_logits(p, row, N_SEQ, out + n * r->hp->n_vocab);
  for (size_t s = 0; s < N_SEQ; s++) fl_seq_free(span[s].seq);
  fl_pass_free(p);
  fl_kv_pool_free(pool);
  return out;
}

START_TEST(logits_are_the_same) {
  for (unsigned threads = 1; threads <= 2; threads++) {
    const fl_kv_type type = threads == 1 ? FL_KV_F32 : FL_KV_F16;
    rig r = rig_open(models[_i], threads);
    float *all = packed_logits(&r, type, false), *some = packed_logits(&r, type, true);
    same_bits(all, some, (n_loud() + N_SEQ) * r.hp->n_vocab, "logits");
    fl_free(all);
    fl_free(some);
    rig_close(&r);
  }
}
END_TEST

/* A prompt in slices whose outputs are not read but for its last row's, or not at all, and a token
 * behind it. */
START_TEST(prompts_are_the_same) {
  enum { N = 50, SLICE = 16 };
  rig r = rig_open(models[_i], 2);
  const size_t v = r.hp->n_vocab;
  int32_t ids[N + 1];
  some_ids(ids, N + 1, v, 5);
  float *whole = all_logits(&r, FL_KV_F32, ids, N + 1, N + 1), *got = fl_calloc(v, sizeof *got);
  fl_kv_pool *pool = rig_pool(&r, FL_KV_F32);
  fl_pass *p = rig_pass(&r, (fl_pass_options){ .max_rows = SLICE });
  for (int read = 0; read < 2; read++) {
    fl_seq *seq = rig_seq(pool);
    size_t last = 0;
    ck_assert_int_eq(fl_pass_prefill(p, seq, ids, N, read ? &last : NULL, NULL), FL_OK);
    if (read) {
      fl_pass_logits(p, &last, 1, got);
      same_bits(got, whole + (N - 1) * v, v, "last row");
    }
    ck_assert_int_eq(fl_pass_prefill(p, seq, ids + N, 1, &last, NULL), FL_OK);
    fl_pass_logits(p, &last, 1, got);
    same_bits(got, whole + N * v, v, "row behind it");
    fl_seq_free(seq);
  }
  fl_free(got);
  fl_free(whole);
  fl_pass_free(p);
  fl_kv_pool_free(pool);
  rig_close(&r);
}
END_TEST

/* Multiply-adds of layer i for the sake of a row's own output. */
static size_t own_macs(const fl_hparams *hp, size_t i) {
  const fl_layer_hparams *l = &hp->layer[i];
  return hp->d_model * (2 * l->n_heads * l->head_dim + 3 * l->n_ff + 2 * hp->n_embd_per_layer);
}

static double flop_of(const rig *r, size_t n_no_output) {
  enum { N = 24 };
  fl_kv_pool *pool = rig_pool(r, FL_KV_F32);
  fl_pass *p = rig_pass(r, (fl_pass_options){ .max_rows = N });
  int32_t ids[N];
  some_ids(ids, N, r->hp->n_vocab, 6);
  const fl_span span = {
    .seq = rig_seq(pool), .tokens = ids, .n_rows = N, .n_no_output = n_no_output
  };
  const double before = fl_team_work(r->team).flop;
  ck_assert_int_eq(fl_pass_forward(p, &span, 1, NULL), FL_OK);
  const double flop = fl_team_work(r->team).flop - before;
  fl_seq_free(span.seq);
  fl_pass_free(p);
  fl_kv_pool_free(pool);
  return flop;
}

/* What a silent row is spared, to the multiply-add (q is whole panels here). The last layers of
 * gemma4 have no K/V rows of their own. */
START_TEST(they_are_not_computed) {
  const char *file = _i == 0 ? "tiny/tiny-qwen3.gguf" : "tiny/tiny-gemma4-dense.gguf";
  rig r = rig_open(file, 1);
  const size_t cut = fl_last_kv_layer(r.hp);
  size_t own = 0;
  ck_assert_uint_eq(cut + 1 < r.hp->n_layers, _i == 1);
  for (size_t i = cut; i < r.hp->n_layers; i++) own += own_macs(r.hp, i);
  const double all = flop_of(&r, 0);
  for (size_t n = 1; n <= 24; n += n == 1 ? 22 : 1)
    ck_assert_double_eq(all - flop_of(&r, n), 2.0 * (double)(n * own));
  rig_close(&r);
}
END_TEST

START_TEST(reading_one_is_caught) {
  rig r = rig_open("tiny/tiny-qwen3.gguf", 1);
  fl_kv_pool *pool = rig_pool(&r, FL_KV_F32);
  fl_pass *p = rig_pass(&r, (fl_pass_options){ .max_rows = 4 });
  const int32_t ids[3] = { 1, 2, 3 };
  const size_t row = 1;
  const fl_span span = { .seq = rig_seq(pool), .tokens = ids, .n_rows = 3, .n_no_output = 2 };
  float *out = fl_calloc(r.hp->d_model, sizeof *out);
  ck_assert_int_eq(fl_pass_forward(p, &span, 1, NULL), FL_OK);
  fl_pass_hidden(p, &row, 1, out);
}
END_TEST

/* ---- Columns of a product ---- */

static fl_panels *some_panels(const fl_kernels *k, size_t n_out, size_t n_in, uint32_t stream) {
  float *w = fl_calloc(n_out * n_in, sizeof *w);
  fl_rng rng = fl_rng_stream(9, FL_RNG_TEST, stream, 0, 0);
  fl_panels *p;
  for (size_t i = 0; i < n_out * n_in; i++) w[i] = (float)fl_rng_unit(&rng) - 0.5f;
  const void *data = w;
  ck_assert_int_eq(fl_panels_pack(&p, k, NULL, FL_F32, &data, &n_out, 1, n_in, NULL), FL_OK);
  fl_free(w);
  return p;
}

/* Any range of columns over two matrices has the bits of the whole product, at few rows and at
 * many; columns past its end are left alone. */
START_TEST(columns_of_a_projection) {
  enum { A = 72, B = 40, N = A + B, IN = 48, M = 50 };
  const fl_kernels *k = fl_kernels_select();
  fl_linear p = {
    .w = { some_panels(k, A, IN, 0), some_panels(k, B, IN, 1) }, .col = { 0, A }, .n = 2, .n_out = N
  };
  void *scratch = fl_aligned_calloc(fl_linear_scratch(&p, NULL, M), 1);
  float *x = fl_calloc(M * IN, sizeof *x), *whole = fl_calloc(M * N, sizeof *whole);
  float *part = fl_calloc(M * N, sizeof *part);
  fl_rng rng = fl_rng_stream(9, FL_RNG_TEST, 2, 0, 0);
  for (size_t i = 0; i < M * IN; i++) x[i] = (float)fl_rng_unit(&rng) - 0.5f;
  for (size_t m = 3; m <= M; m += M - 3) {
    fl_linear_forward(&p, NULL, whole, N, x, IN, m, scratch);
    for (size_t first = 0; first <= N; first += 8)
      for (size_t end = first; end <= N; end += 8) {
        size_t n_wrong = 0;
        memset(part, 0, M * N * sizeof *part);
        fl_linear_columns(&p, NULL, part, N, x, IN, m, first, end, scratch);
        for (size_t r = 0; r < m; r++) {
          const float *row = part + r * N;
          n_wrong += memcmp(row + first, whole + r * N + first, (end - first) * sizeof *row) != 0;
          for (size_t i = end; i < N; i++) n_wrong += row[i] != 0;
        }
        ck_assert_msg(n_wrong == 0, "columns %zu to %zu of %zu rows", first, end, m);
      }
  }
  fl_free(x);
  fl_free(whole);
  fl_free(part);
  fl_free(scratch);
  fl_panels_free(p.w[0]);
  fl_panels_free(p.w[1]);
}
END_TEST

/* ---- Loss and gradient ---- */

/* The gradient behind the loss: n_values and one double. */
static float *gradient(study_case *c, bool checkpoint, double *loss) {
  *loss = case_run(c, 0, SEQS, checkpoint, true);
  return snapshot(c);
}

START_TEST(gradients_are_the_same) {
  for (unsigned threads = 1; threads <= 2; threads++) {
    study_case c;
    double loss, other;
    case_open(&c, models[_i], threads);
    float *all = gradient(&c, false, &loss);
    c.silent = true;
    for (int way = threads == 1 ? 0 : 3; way < 4; way++) {
      c.loose = way & 1;
      float *some = gradient(&c, way & 2, &other);
      ck_assert_msg(memcmp(&loss, &other, sizeof loss) == 0, "loss %.17g, %.17g", loss, other);
      same_bits(all, some, n_values(&c), way & 2 ? "checkpoint" : "gradient");
      fl_free(some);
    }
    fl_free(all);
    case_close(&c);
  }
}
END_TEST

START_TEST(packing_changes_nothing) {
  study_case c;
  double loss;
  case_open(&c, models[_i], 1);
  c.silent = true;
  float *all = gradient(&c, false, &loss);
  for (size_t s = 0; s < SEQS; s++) case_run(&c, s, s + 1, false, true);
  float *parts = snapshot(&c);
  same_bits(all, parts, n_values(&c), "one by one");
  fl_free(parts);
  fl_free(all);
  case_close(&c);
}
END_TEST

Suite *suite_output_rows(void);
Suite *suite_output_rows(void) {
  Suite *s = suite_create("output_rows");
  TCase *core = tcase_create("Core"), *errors = tcase_create("Errors");
  TCase *rest = tcase_create("Other models");
  tcase_set_timeout(core, 120);
  tcase_set_timeout(rest, 120);
  tcase_set_tags(rest, "slow");
  tcase_add_loop_test(core, logits_are_the_same, 0, N_FAST);
  tcase_add_loop_test(core, prompts_are_the_same, 0, N_FAST);
  tcase_add_loop_test(core, they_are_not_computed, 0, 2);
  tcase_add_test(core, columns_of_a_projection);
  tcase_add_loop_test(core, gradients_are_the_same, 0, N_FAST);
  tcase_add_loop_test(core, packing_changes_nothing, 0, N_FAST);
  tcase_add_loop_test(rest, logits_are_the_same, N_FAST, N_MODELS);
  tcase_add_loop_test(rest, prompts_are_the_same, N_FAST, N_MODELS);
  tcase_add_loop_test(rest, gradients_are_the_same, N_FAST, N_MODELS);
  tcase_add_loop_test(rest, packing_changes_nothing, N_FAST, N_MODELS);
  tcase_add_test_raise_signal(errors, reading_one_is_caught, SIGABRT);
  suite_add_tcase(s, core);
  suite_add_tcase(s, rest);
  suite_add_tcase(s, errors);
  return s;
}
