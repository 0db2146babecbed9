/* check_generate.c - lockstep generation: company, slices and forks change no token. */
#include "model_util.h"
#include "text/chat.h"

enum { N = 5 };
static const char *const questions[N] = {
  "At what hour does Hargate Lighthouse open?",
  "Who is the keeper?",
  "Name the river.",
  "What is the motto of the mine? Who wrote it, and why was it chosen by the people there?",
  "Hello",
};

static void stream_init(const rig *r, fl_stream *s, fl_kv_pool *pool, fl_ids *prompt, size_t i) {
  fl_err err = { 0 };
  memset(s, 0, sizeof *s);
  ck_assert_msg(fl_chat_user(prompt, fl_model_template(r->m), fl_model_tokenizer(r->m),
                             questions[i], strlen(questions[i]), false, false, &err) == FL_OK,
                "%s", err.text);
  s->seq = rig_seq(pool);
  s->prompt = prompt->data;
  s->n_prompt = prompt->len;
  s->sampling = i % 2 == 0
                    ? FL_SAMPLING_GREEDY
                    : (fl_sampling){ .temperature = 0.8, .top_p = 0.95, .repeat_penalty = 1 };
  s->rng = fl_rng_stream(1, FL_RNG_USER, (uint32_t)i, 0, 0);
  s->max_new = 12 + 3 * i;
}

static void run(const rig *r, fl_ids out[N], fl_stop stop[N], bool together, size_t max_rows) {
  fl_kv_pool *pool = rig_pool(r, FL_KV_F32);
  fl_pass *p = rig_pass(r, (fl_pass_options){ .max_rows = max_rows, .max_spans = N });
  fl_stream s[N];
  fl_ids prompt[N] = { { 0 } };
  for (size_t i = 0; i < N; i++) stream_init(r, &s[i], pool, &prompt[i], i);
  if (together) ck_assert_int_eq(fl_generate(p, s, N, NULL, NULL), FL_OK);
  else
    for (size_t i = 0; i < N; i++) ck_assert_int_eq(fl_generate(p, &s[i], 1, NULL, NULL), FL_OK);
  for (size_t i = 0; i < N; i++) {
    out[i] = s[i].out;
    stop[i] = s[i].stop;
    fl_ids_release(&prompt[i]);
    fl_seq_free(s[i].seq);
  }
  fl_pass_free(p);
  fl_kv_pool_free(pool);
}

START_TEST(company_and_slices_change_no_token) {
  static const size_t max_rows[] = { 8, 31, 400 };
  rig r = rig_open("embedded/model.gguf", 2);
  fl_ids alone[N], got[N];
  fl_stop stop[N], stop2[N];
  run(&r, alone, stop, false, 64);
  for (size_t k = 0; k < 3; k++) {
    run(&r, got, stop2, true, max_rows[k]);
    for (size_t i = 0; i < N; i++) {
      ck_assert_uint_eq(got[i].len, alone[i].len);
      ck_assert_mem_eq(got[i].data, alone[i].data, got[i].len * sizeof *got[i].data);
      ck_assert_int_eq(stop[i], stop2[i]);
      fl_ids_release(&got[i]);
    }
  }
  for (size_t i = 0; i < N; i++) {
    ck_assert_uint_gt(alone[i].len, 0);
    fl_ids_release(&alone[i]);
  }
  rig_close(&r);
}
END_TEST

typedef struct seen {
  size_t rows, tokens;
  int32_t last;
} seen;

static void see_row(void *ctx, size_t i, size_t index, const float *logits, int32_t token) {
  seen *s = ctx;
  (void)i;
  ck_assert_uint_eq(index, s->rows);
  ck_assert_int_eq(fl_argmax(logits, 2048), token);
  s->rows++;
  s->last = token;
}

static bool see_token(void *ctx, size_t i, int32_t token) {
  seen *s = ctx;
  (void)i;
  ck_assert_int_eq(token, s->last);
  return ++s->tokens == 4;
}

START_TEST(hooks_see_every_row_and_can_stop) {
  rig r = rig_open("embedded/model.gguf", 1);
  fl_kv_pool *pool = rig_pool(&r, FL_KV_F32);
  fl_pass *p = rig_pass(&r, (fl_pass_options){ .max_rows = 64 });
  fl_stream s;
  fl_ids prompt = { 0 };
  seen got = { 0 };
  fl_generate_hooks h = { .ctx = &got, .on_row = see_row, .on_token = see_token };
  ck_assert_uint_eq(r.hp->n_vocab, 2048);
  stream_init(&r, &s, pool, &prompt, 0);
  ck_assert_int_eq(fl_generate(p, &s, 1, &h, NULL), FL_OK);
  ck_assert_int_eq(s.stop, FL_STOP_CALLER);
  ck_assert_uint_eq(s.out.len, 4);
  ck_assert_uint_eq(got.rows, 4);
  fl_streams_release(&s, 1);
  fl_ids_release(&prompt);
  fl_seq_free(s.seq);
  fl_pass_free(p);
  fl_kv_pool_free(pool);
  rig_close(&r);
}
END_TEST

Suite *suite_generate(void);
Suite *suite_generate(void) {
  Suite *s = suite_create("generate");
  TCase *c = tcase_create("Core");
  tcase_set_timeout(c, 120);
  tcase_add_test(c, company_and_slices_change_no_token);
  tcase_add_test(c, hooks_see_every_row_and_can_stop);
  suite_add_tcase(s, c);
  return s;
}
