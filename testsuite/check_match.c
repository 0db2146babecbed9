/* check_match.c - matched cartridges of a model: what they answer, threads, families, short
 * documents; and running a model layer by layer. */
#include "cartridge/match.h"

#include "cart_util.h"
#include "model/layerwise.h"

static const char *const doc_file = "embedded/docs/lighthouse.md";

static fl_buf read_doc(void) {
  fl_buf b = { 0 };
  ck_assert_int_eq(fl_fs_read(&b, fixture(doc_file), 1 << 20, NULL), FL_OK);
  return b;
}

/* A user's turn and an answer. */
static fl_ids conversation(const fl_model *m, const char *ask, const char *answer) {
  fl_ids ids = { 0 };
  const fl_tokenizer *t = fl_model_tokenizer(m);
  const fl_template tpl = fl_model_template(m);
  ck_assert_int_eq(fl_chat_user(&ids, tpl, t, ask, strlen(ask), true, false, NULL), FL_OK);
  ck_assert_int_eq(fl_tokenize(t, &ids, answer, strlen(answer), 0, NULL), FL_OK);
  return ids;
}

enum { N_ASKS = 8 };
typedef struct asks {
  fl_ids ids[N_ASKS];
  fl_match_conv conv[N_ASKS];
} asks;

/* Models without a template get the plain one. */
static rig rig_plain(const char *file, unsigned threads) {
  const bool tiny = strncmp(file, "tiny", 4) == 0;
  const fl_model_options o = { .force_template = tiny ? FL_TEMPLATE_PLAIN : FL_TEMPLATE_NONE };
  rig r = { 0 };
  fl_err err = { 0 };
  ck_assert_int_eq(fl_team_new(&r.team, threads, &err), FL_OK);
  ck_assert_msg(fl_model_open(&r.m, fixture(file), &o, r.team, &err) == FL_OK, "%s", err.text);
  r.hp = fl_model_hparams(r.m);
  return r;
}

/* Pieces of the document, had repeated. */
static void some_asks(asks *a, const fl_model *m, const fl_buf *doc) {
  char answer[256];
  for (size_t i = 0; i < N_ASKS; i++) {
    snprintf(answer, sizeof answer, "%.*s", 200, doc->data + i * (doc->len - 200) / N_ASKS);
    a->ids[i] = conversation(m, "Repeat a part of the document.", answer);
    a->conv[i] = (fl_match_conv){ a->ids[i].data, a->ids[i].len };
  }
}

static void asks_release(asks *a) {
  for (size_t i = 0; i < N_ASKS; i++) fl_ids_release(&a->ids[i]);
}

static int match_doc(fl_cartridge *out, const rig *r, const fl_buf *doc, const asks *a, size_t p,
                     fl_err *err) {
  const fl_match_options o = { .p = p, .frozen = 1, .convs = a->conv, .n_convs = N_ASKS };
  fl_kv_pool *pool = rig_pool(r, FL_KV_F32);
  fl_pass *pass = rig_pass(r, (fl_pass_options){ .max_rows = 128 });
  const int rc = fl_cartridge_match(out, pass, pool, r->team, doc->data, doc->len, &o, err);
  fl_pass_free(pass);
  fl_kv_pool_free(pool);
  return rc;
}

/* Logits [n, n_vocab] of a conversation behind a cartridge. */
static float *logits_behind(const rig *r, const fl_cartridge *c, const fl_ids *conv) {
  fl_kv_pool *pool = rig_pool(r, FL_KV_F32);
  fl_seq *seq = rig_seq(pool);
  fl_pass *pass =
      rig_pass(r, (fl_pass_options){ .max_rows = conv->len, .max_out_rows = conv->len });
  float *out = fl_calloc(conv->len * r->hp->n_vocab, sizeof *out);
  size_t *rows = fl_calloc(conv->len, sizeof *rows);
  for (size_t i = 0; i < conv->len; i++) rows[i] = i;
  ck_assert_int_eq(fl_compose(seq, &c, 1, FL_POS_SHARED, NULL), FL_OK);
  const fl_span s = { .seq = seq, .tokens = conv->data, .n_rows = conv->len };
  ck_assert_int_eq(fl_pass_forward(pass, &s, 1, NULL), FL_OK);
  fl_pass_logits(pass, rows, conv->len, out);
  fl_free(rows);
  fl_pass_free(pass);
  fl_seq_free(seq);
  fl_kv_pool_free(pool);
  return out;
}

static double distance(const float *a, const float *b, size_t n) {
  double s = 0;
  for (size_t i = 0; i < n; i++) s += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
  return sqrt(s / (double)n);
}

/* A question that none of the queries asks, behind the whole document, behind matched rows and
 * behind the document's first ones. */
START_TEST(matched_rows_answer_nearer_to_the_document_than_first_ones) {
  rig r = rig_open("embedded/model.gguf", 2);
  fl_buf doc = read_doc();
  asks a;
  some_asks(&a, r.m, &doc);
  fl_ids q = conversation(r.m, "Who is the keeper of Hargate Lighthouse?", "The keeper of Hargate");
  fl_kv_pool *pool = rig_pool(&r, FL_KV_F32);
  fl_pass *pass = rig_pass(&r, (fl_pass_options){ .max_rows = 128 });
  fl_cartridge whole = { 0 }, first = { 0 }, matched = { 0 };
  const size_t n = q.len * r.hp->n_vocab, p = 100;
  ck_assert_int_eq(fl_cartridge_birth(&whole, pass, pool, doc.data, doc.len, 1000, 1, NULL), FL_OK);
  ck_assert_int_eq(fl_cartridge_birth(&first, pass, pool, doc.data, doc.len, p, 1, NULL), FL_OK);
  ck_assert_int_eq(match_doc(&matched, &r, &doc, &a, p, NULL), FL_OK);
  ck_assert_uint_eq(matched.rows.n_rows, p);
  ck_assert_uint_eq(matched.frozen, 1);
  ck_assert_uint_eq(matched.steps, 0);
  float *want = logits_behind(&r, &whole, &q), *got = logits_behind(&r, &matched, &q);
  float *far = logits_behind(&r, &first, &q);
  const double near_by = distance(got, want, n), far_off = distance(far, want, n);
  ck_assert_msg(near_by < 0.85 * far_off, "%g beside %g", near_by, far_off);
  fl_free(want);
  fl_free(got);
  fl_free(far);
  fl_cartridge_release(&whole);
  fl_cartridge_release(&first);
  fl_cartridge_release(&matched);
  fl_ids_release(&q);
  asks_release(&a);
  fl_pass_free(pass);
  fl_kv_pool_free(pool);
  fl_buf_release(&doc);
  rig_close(&r);
}
END_TEST

/* Sliding windows, rows shared between layers, experts, scaled rotations. */
static const char *const families[] = { "tiny/tiny-qwen2.gguf", "tiny/tiny-gemma3.gguf",
                                        "tiny/tiny-gemma4-dense.gguf", "tiny/tiny-gemma4-moe.gguf",
                                        "tiny/tiny-llama.gguf" };
enum { N_FAMILIES = sizeof families / sizeof *families };

static bool all_finite(const fl_rows *r) {
  for (size_t i = 0; i < r->n_values; i++)
    if (!isfinite(r->block[i])) return false;
  return true;
}

static void check_threads(const char *model, size_t doc_bytes, size_t p) {
  fl_buf doc = read_doc();
  doc.len = doc_bytes < doc.len ? doc_bytes : doc.len;
  fl_cartridge one = { 0 };
  for (unsigned threads = 1; threads <= 3; threads++) {
    rig r = rig_plain(model, threads);
    asks a;
    some_asks(&a, r.m, &doc);
    fl_cartridge c = { 0 };
    fl_err err = { 0 };
    ck_assert_msg(match_doc(&c, &r, &doc, &a, p, &err) == FL_OK, "%s: %s", model, err.text);
    ck_assert(all_finite(&c.rows));
    ck_assert_int_eq(fl_cartridge_fits(&c, r.hp, "it", NULL), FL_OK);
    if (threads > 1) ck_assert_msg(rows_equal(&c.rows, &one.rows), "%s: other bits", model);
    if (threads > 1) fl_cartridge_release(&c);
    else one = c;
    asks_release(&a);
    rig_close(&r);
  }
  fl_cartridge_release(&one);
  fl_buf_release(&doc);
}

START_TEST(any_number_of_threads_gives_the_same_bits) {
  check_threads("embedded/model.gguf", SIZE_MAX, 64);
}
END_TEST

START_TEST(every_family_is_matched) { check_threads(families[_i], 400, 24); }
END_TEST

/* Exactly what a birth gives. */
START_TEST(short_documents_are_born_as_ever) {
  rig r = rig_open("embedded/model.gguf", 2);
  fl_buf doc = read_doc();
  asks a;
  some_asks(&a, r.m, &doc);
  fl_ids ids = { 0 };
  ck_assert_int_eq(fl_wrapped_system(&ids, r.m, doc.data, doc.len, 0, NULL), FL_OK);
  fl_kv_pool *pool = rig_pool(&r, FL_KV_F32);
  fl_pass *pass = rig_pass(&r, (fl_pass_options){ .max_rows = 128 });
  for (size_t p = ids.len - 1; p <= ids.len + 1; p++) {
    fl_cartridge born = { 0 }, c = { 0 };
    ck_assert_int_eq(match_doc(&c, &r, &doc, &a, p, NULL), FL_OK);
    ck_assert_int_eq(fl_cartridge_birth(&born, pass, pool, doc.data, doc.len, p, 1, NULL), FL_OK);
    ck_assert(rows_equal(&c.rows, &born.rows) == (p >= ids.len));
    ck_assert_uint_eq(c.rows.n_rows, p < ids.len ? p : ids.len);
    fl_cartridge_release(&born);
    fl_cartridge_release(&c);
  }
  fl_ids_release(&ids);
  fl_pass_free(pass);
  fl_kv_pool_free(pool);
  asks_release(&a);
  fl_buf_release(&doc);
  rig_close(&r);
}
END_TEST

/* A document longer than the context: matched as far as it fits; refused where conversations have
 * no room behind the rows. */
START_TEST(what_does_not_fit_the_context) {
  rig r = rig_plain("tiny/tiny-qwen2.gguf", 2);
  fl_buf doc = read_doc();
  asks a;
  some_asks(&a, r.m, &doc);
  fl_cartridge c = { 0 };
  fl_err err = { 0 };
  const fl_buf once = doc;
  doc = (fl_buf){ 0 };
  while (doc.len < 16 * r.hp->n_ctx) fl_buf_append(&doc, once.data, once.len);
  ck_assert_int_eq(match_doc(&c, &r, &doc, &a, r.hp->n_ctx - 1, &err), FL_EUSAGE);
  ck_assert_ptr_nonnull(strstr(err.text, "--p"));
  ck_assert_ptr_null(c.rows.block);
  ck_assert_int_eq(match_doc(&c, &r, &doc, &a, 16, NULL), FL_OK);
  ck_assert_uint_eq(c.rows.n_rows, 16);
  ck_assert(all_finite(&c.rows));
  fl_cartridge_release(&c);
  asks_release(&a);
  fl_buf_release(&doc);
  doc = once;
  fl_buf_release(&doc);
  rig_close(&r);
}
END_TEST

/* Two conversations behind the rows of a document, layer by layer, in one call and in two: the rows
 * that come out of the last layer are, after the final norm, what a pass behind the same rows has,
 * bit for bit. */
START_TEST(layer_by_layer_is_a_forward) {
  rig r = rig_open("embedded/model.gguf", 2);
  fl_kv_pool *pool = rig_pool(&r, FL_KV_F32);
  fl_pass *pass =
      rig_pass(&r, (fl_pass_options){ .max_rows = 64, .max_spans = 2, .max_out_rows = 64 });
  fl_pass *layers =
      rig_pass(&r, (fl_pass_options){ .max_rows = 64, .max_spans = 2, .max_prefix = 40 });
  fl_cartridge c = { 0 };
  fl_buf doc = read_doc();
  enum { N = 2, LEN = 21 };
  const size_t d = r.hp->d_model;
  int32_t ids[N][LEN];
  size_t rows[N * LEN];
  for (size_t i = 0; i < N; i++) some_ids(ids[i], LEN, r.hp->n_vocab, (uint32_t)i);
  for (size_t i = 0; i < N * LEN; i++) rows[i] = i;
  ck_assert_int_eq(fl_cartridge_birth(&c, pass, pool, doc.data, doc.len, 40, 1, NULL), FL_OK);
  const fl_prefix_part part = { .n_rows = 40, .k = c.rows.k, .v = c.rows.v };
  fl_span loose[N], span[N];
  fl_seq *seq[N];
  for (size_t i = 0; i < N; i++) {
    const fl_cartridge *parts = &c;
    seq[i] = rig_seq(pool);
    ck_assert_int_eq(fl_compose(seq[i], &parts, 1, FL_POS_SHARED, NULL), FL_OK);
    span[i] = (fl_span){ .seq = seq[i], .tokens = ids[i], .n_rows = LEN };
    loose[i] =
        (fl_span){ .tokens = ids[i], .n_rows = LEN, .parts = &part, .n_parts = 1, .position = 40 };
  }
  float *want = fl_calloc(N * LEN * d, sizeof *want), *x = fl_calloc(N * LEN * d, sizeof *x);
  ck_assert_int_eq(fl_pass_forward(pass, span, N, NULL), FL_OK);
  fl_pass_hidden(pass, rows, N * LEN, want);
  ck_assert_int_eq(fl_layerwise_embed(layers, loose, N, x, NULL), FL_OK);
  for (size_t l = 0; l < r.hp->n_layers; l++) {
    const size_t at_once = l % 2 == 0 ? 2 : 1;
    for (size_t i = 0; i < N; i += at_once)
      ck_assert_int_eq(fl_layerwise_run(layers, loose + i, at_once, l, x + i * LEN * d, NULL),
                       FL_OK);
  }
  const fl_tensor_info *w = fl_gguf_tensor(fl_model_gguf(r.m), "output_norm.weight");
  fl_rmsnorm(fl_model_kernels(r.m), x, x, w->data, N * LEN, d, d, d, r.hp->rms_eps);
  ck_assert(memcmp(x, want, N * LEN * d * sizeof *x) == 0);
  fl_free(x);
  fl_free(want);
  for (size_t i = 0; i < N; i++) fl_seq_free(seq[i]);
  fl_cartridge_release(&c);
  fl_buf_release(&doc);
  fl_pass_free(pass);
  fl_pass_free(layers);
  fl_kv_pool_free(pool);
  rig_close(&r);
}
END_TEST

Suite *suite_match(void);
Suite *suite_match(void) {
  Suite *s = suite_create("match");
  TCase *core = tcase_create("Core"), *limits = tcase_create("Limits");
  TCase *errors = tcase_create("Errors");
  tcase_set_timeout(core, 120);
  tcase_set_timeout(limits, 120);
  tcase_add_test(core, matched_rows_answer_nearer_to_the_document_than_first_ones);
  tcase_add_test(core, any_number_of_threads_gives_the_same_bits);
  tcase_add_test(core, layer_by_layer_is_a_forward);
  tcase_add_loop_test(limits, every_family_is_matched, 0, N_FAMILIES);
  tcase_add_test(limits, short_documents_are_born_as_ever);
  tcase_add_test(errors, what_does_not_fit_the_context);
  suite_add_tcase(s, core);
  suite_add_tcase(s, limits);
  suite_add_tcase(s, errors);
  return s;
}
