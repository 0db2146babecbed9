/* check_rope.c - rotary scaling: small models with each kind of it against llama.cpp.
 *
 * The references in fixtures/tiny/rope are log-probabilities of all 512 tokens after the first 12,
 * 26 and 40 ids of ids40.txt, from llama.cpp on the CPU with an f32 cache and no flash attention.
 * The files it read are made here again: a fixture with the keys of the case. On f32 files without
 * GELU it agrees with exact arithmetic to 1e-5 of the largest logit; the bound is that of all
 * logits, 1e-4. */
#include "formats/gguf_write.h"
#include "model_util.h"
#include "scratch.h"

enum { N_IDS = 40, N_VOCAB = 512, N_ROWS = 3, MAX_TENSORS = 64 };

typedef enum kind { LINEAR, YARN, YARN_BETAS, LLAMA3, NO_NUMBER, ODD } kind;

static void put_u32_key(fl_gguf_pairs *p, const char *arch, const char *key, uint32_t v) {
  char name[128];
  snprintf(name, sizeof name, "%s.rope.scaling.%s", arch, key);
  fl_gguf_pairs_u32(p, name, v);
}

static void put_f32_key(fl_gguf_pairs *p, const char *arch, const char *key, float v) {
  char name[128];
  snprintf(name, sizeof name, "%s.rope.scaling.%s", arch, key);
  fl_gguf_pairs_f32(p, name, v);
}

static void put_scaling(fl_gguf_pairs *p, const char *arch, kind k) {
  char name[128];
  if (k == LLAMA3) return;
  if (k == ODD) {
    snprintf(name, sizeof name, "%s.rope.dimension_count", arch);
    fl_gguf_pairs_u32(p, name, 15);
    return;
  }
  snprintf(name, sizeof name, "%s.rope.scaling.type", arch);
  fl_gguf_pairs_str(p, name, k == LINEAR ? "linear" : "yarn");
  put_f32_key(p, arch, "factor", k == NO_NUMBER ? NAN : 4);
  if (k != LINEAR) put_u32_key(p, arch, "original_context_length", 64);
  if (k != YARN_BETAS) return;
  put_f32_key(p, arch, "yarn_beta_fast", 8);
  put_f32_key(p, arch, "yarn_beta_slow", 0.5f);
  put_f32_key(p, arch, "attn_factor", 0.9f);
}

/* The factors that Llama 3 gives for base 1e5, 16 dimensions, factor 8, bounds 1 and 4, 64
 * positions: wave lengths below 64 / 4 stay, those above 64 / 1 go by the factor, between them a
 * mixture. */
static void llama3_factors(float out[8]) {
  for (int i = 0; i < 8; i++) {
    double wave = 2 * 3.14159265358979324 * pow(1e5, 2.0 * i / 16);
    double mix = (64 / wave - 1) / (4 - 1);
    out[i] = (float)(wave < 16 ? 1 : wave > 64 ? 8 : 1 / ((1 - mix) / 8 + mix));
  }
}

static void make_case(const char *path, const char *base, const char *arch, kind k) {
  fl_tensor_info t[MAX_TENSORS];
  float factors[8];
  fl_gguf *g = NULL;
  fl_gguf_pairs pairs = { 0 };
  fl_gguf_writer *w = NULL;
  fl_err err = { 0 };
  fl_str key;
  fl_gguf_type type;
  ck_assert_int_eq(fl_gguf_open(&g, fixture(base), &err), FL_OK);
  size_t n = fl_gguf_n_tensors(g);
  ck_assert_uint_lt(n, MAX_TENSORS);
  for (size_t i = 0; fl_gguf_meta_at(g, i, &key, &type); i++) {
    const uint8_t *raw;
    size_t len;
    fl_gguf_meta_raw(g, i, &raw, &len);
    fl_gguf_pairs_raw(&pairs, raw, len);
  }
  put_scaling(&pairs, arch, k);
  for (size_t i = 0; i < n; i++) t[i] = *fl_gguf_tensor_at(g, i);
  llama3_factors(factors);
  t[n] = (fl_tensor_info){ .name = { "rope_freqs.weight", 17 },
                           .n_dims = 1,
                           .dim = { 8, 1, 1, 1 },
                           .ggml_type = FL_F32,
                           .n_bytes = sizeof factors,
                           .data = factors };
  if (k == LLAMA3) n++;
  ck_assert_int_eq(fl_gguf_writer_open(&w, path, &pairs, t, n, 32, &err), FL_OK);
  for (size_t i = 0; i < n; i++) fl_gguf_writer_put(w, t[i].data, t[i].n_bytes);
  ck_assert_msg(fl_gguf_writer_commit(w, &err) == FL_OK, "%s", err.text);
  fl_gguf_pairs_release(&pairs);
  fl_gguf_close(g);
}

static void read_ids(int32_t ids[N_IDS]) {
  FILE *f = fopen(fixture("tiny/ids40.txt"), "r");
  ck_assert_ptr_nonnull(f);
  for (size_t i = 0; i < N_IDS; i++) ck_assert_int_eq(fscanf(f, "%d", &ids[i]), 1);
  fclose(f);
}

/* Largest difference of a row's log-probabilities from the reference's; *top: largest logit. */
static double row_difference(const float *logits, const float *ref, double *top) {
  double max = logits[0], sum = 0, worst = 0;
  for (size_t i = 0; i < N_VOCAB; i++) max = logits[i] > max ? (double)logits[i] : max;
  for (size_t i = 0; i < N_VOCAB; i++) sum += exp((double)logits[i] - max);
  for (size_t i = 0; i < N_VOCAB; i++) {
    double d = fabs((double)logits[i] - max - log(sum) - (double)ref[i]);
    worst = d > worst || d != d ? d : worst;
    if (fabs((double)logits[i]) > *top) *top = fabs((double)logits[i]);
  }
  return worst;
}

static const struct rope_case {
  const char *base, *arch, *ref;
  kind k;
} cases[] = {
  { "tiny/tiny-qwen3.gguf", "qwen3", "tiny/rope/qwen3-linear.f32", LINEAR },
  { "tiny/tiny-qwen3.gguf", "qwen3", "tiny/rope/qwen3-yarn.f32", YARN },
  { "tiny/tiny-qwen2.gguf", "qwen2", "tiny/rope/qwen2-yarn.f32", YARN },
  { "tiny/tiny-llama.gguf", "llama", "tiny/rope/llama-yarn-beta.f32", YARN_BETAS },
  { "tiny/tiny-llama.gguf", "llama", "tiny/rope/llama-llama3.f32", LLAMA3 },
};

START_TEST(agrees_with_llama_cpp) {
  static const size_t rows[N_ROWS] = { 11, 25, 39 };
  const struct rope_case *c = &cases[_i];
  float ref[N_ROWS * N_VOCAB];
  int32_t ids[N_IDS];
  double worst = 0, top = 0;
  rig r = { 0 };
  fl_err err = { 0 };
  scratch_begin();
  make_case(scratch("m.gguf"), c->base, c->arch, c->k);
  FILE *f = fopen(fixture(c->ref), "rb");
  ck_assert(f != NULL && fread(ref, sizeof ref, 1, f) == 1);
  fclose(f);
  read_ids(ids);
  ck_assert_int_eq(fl_team_new(&r.team, 1, &err), FL_OK);
  int rc = fl_model_open(&r.m, scratch("m.gguf"), NULL, r.team, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  r.hp = fl_model_hparams(r.m);
  float *logits = all_logits(&r, FL_KV_F32, ids, N_IDS, N_IDS);
  for (size_t i = 0; i < N_ROWS; i++) {
    double d = row_difference(logits + rows[i] * N_VOCAB, ref + i * N_VOCAB, &top);
    worst = d > worst || d != d ? d : worst;
  }
  ck_assert_msg(worst <= 1e-4 * top, "%s: off by %g, largest logit %g", c->ref, worst, top);
  fl_free(logits);
  rig_close(&r);
  scratch_end();
}
END_TEST

/* Neither becomes the value that an absent key would have. */
START_TEST(senseless_values_are_refused) {
  static const struct {
    kind k;
    const char *says;
  } bad[] = {
    { NO_NUMBER, "qwen3.rope.scaling.factor is no finite number" },
    { ODD, "the rotary size 15 is odd" },
  };
  rig r = { 0 };
  fl_err err = { 0 };
  scratch_begin();
  ck_assert_int_eq(fl_team_new(&r.team, 1, &err), FL_OK);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    err = (fl_err){ 0 };
    make_case(scratch("m.gguf"), "tiny/tiny-qwen3.gguf", "qwen3", bad[i].k);
    ck_assert_int_eq(fl_model_open(&r.m, scratch("m.gguf"), NULL, r.team, &err), FL_EINPUT);
    ck_assert_msg(strstr(err.text, bad[i].says) != NULL, "%s", err.text);
  }
  rig_close(&r);
  scratch_end();
}
END_TEST

Suite *suite_rope(void);
Suite *suite_rope(void) {
  Suite *s = suite_create("rope");
  TCase *t = tcase_create("golden");
  tcase_add_loop_test(t, agrees_with_llama_cpp, 0, sizeof cases / sizeof *cases);
  suite_add_tcase(s, t);
  TCase *errors = tcase_create("errors");
  tcase_add_test(errors, senseless_values_are_refused);
  suite_add_tcase(s, errors);
  return s;
}
