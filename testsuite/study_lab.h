/* study_lab.h - the embedded model with its four documents, and what their conversations are
 * compared by. */
#ifndef FL_TESTSUITE_STUDY_LAB_H
#define FL_TESTSUITE_STUDY_LAB_H

#include "cart_util.h"
#include "study/study.h"

enum { N = 8 };
static const char *const files[4] = { "embedded/docs/lighthouse.md", "embedded/docs/bakery.md",
                                      "embedded/docs/library.md", "embedded/docs/mine.md" };

typedef struct lab {
  rig r;
  fl_doc_text doc[4];
  fl_kv_pool *pool;
  fl_pass *pass;
  fl_study_options o;
  fl_conv_plan plan[N];
  const fl_doc_text *text[N];
} lab;

static inline lab *lab_new(unsigned threads, size_t max_rows) {
  lab *s = fl_calloc(1, sizeof *s);
  s->r = rig_open("embedded/model.gguf", threads);
  s->pool = rig_pool(&s->r, FL_KV_F32);
  s->pass = rig_pass(&s->r, (fl_pass_options){ .max_rows = max_rows, .max_spans = N });
  s->o = (fl_study_options){ .chunk_min = 64,
                             .chunk_max = 160,
                             .top_k = 20,
                             .top_mass = 0.99,
                             .max_q = 48,
                             .max_a = 64,
                             .temperature = 0.6,
                             .seed = 42 };
  for (size_t i = 0; i < 4; i++) {
    fl_buf b = { 0 };
    ck_assert_int_eq(fl_fs_read(&b, fixture(files[i]), 1 << 20, NULL), FL_OK);
    ck_assert_int_eq(fl_doc_text_init(&s->doc[i], fl_model_tokenizer(s->r.m), b.data, b.len, NULL),
                     FL_OK);
    fl_buf_release(&b);
  }
  for (uint32_t i = 0; i < N; i++) {
    s->plan[i] = (fl_conv_plan){ .doc = i % 4, .round = 1 + i / 4, .conv = i % 2, .draw = i / 4 };
    s->text[i] = &s->doc[i % 4];
  }
  return s;
}

static inline void lab_free(lab *s) {
  for (size_t i = 0; i < 4; i++) fl_doc_text_release(&s->doc[i]);
  fl_pass_free(s->pass);
  fl_kv_pool_free(s->pool);
  rig_close(&s->r);
  fl_free(s);
}

static inline size_t make(lab *s, fl_conv *out, bool *ok, size_t first, size_t n, fl_events *log,
                          fl_study_stats *stats) {
  fl_err err = { 0 };
  size_t made = 0;
  int rc = fl_study_make(out, ok, s->plan + first, s->text + first, n, &s->o, s->pass, s->pool, log,
                         stats, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  ck_assert_uint_eq(fl_kv_pool_bytes(s->pool), 0); /* every sequence is given back */
  for (size_t i = 0; i < n; i++) {
    ck_assert(ok[i] || (!out[i].tokens.data && !out[i].request && !out[i].sup));
    made += ok[i];
  }
  return made;
}

static inline bool convs_equal(const fl_conv *a, const fl_conv *b) {
  const fl_targets *s = &a->targets, *t = &b->targets;
  const size_t n = s->n_rows ? s->first[s->n_rows] : 0;
  return a->tokens.len == b->tokens.len && s->n_rows == t->n_rows && a->kind == b->kind &&
         a->first == b->first && a->end == b->end && strcmp(a->request, b->request) == 0 &&
         strcmp(a->answer, b->answer) == 0 &&
         memcmp(a->tokens.data, b->tokens.data, a->tokens.len * sizeof(int32_t)) == 0 &&
         memcmp(a->sup, b->sup, s->n_rows * sizeof *a->sup) == 0 &&
         memcmp(s->first, t->first, (s->n_rows + 1) * sizeof *s->first) == 0 &&
         memcmp(s->id, t->id, n * sizeof *s->id) == 0 &&
         memcmp(s->prob, t->prob, n * sizeof *s->prob) == 0;
}

static inline void release(fl_conv *c, size_t n) {
  for (size_t i = 0; i < n; i++) fl_conv_release(&c[i]);
}

/* The ids the teacher read when it wrote the conversation. */
static inline void teacher_ids(const lab *s, size_t i, const fl_conv *c, fl_ids *ids) {
  const fl_doc_text *d = s->text[i];
  const size_t from = c->first ? d->token_end[c->first - 1] : 0, to = d->token_end[c->end - 1];
  ck_assert_int_eq(fl_wrapped_system(ids, s->r.m, d->text + from, to - from, 0, NULL), FL_OK);
}

static inline void check_teacher(const lab *s, size_t i, const fl_conv *c, bool greedy) {
  const size_t n_vocab = s->r.hp->n_vocab, k = s->o.top_k;
  fl_ids ids = { 0 };
  teacher_ids(s, i, c, &ids);
  const size_t system = ids.len;
  fl_ids_append(&ids, c->tokens.data, c->tokens.len);
  float *logits = all_logits(&s->r, FL_KV_F32, ids.data, ids.len, 100), prob[20];
  int32_t id[20];
  for (size_t r = 0; r < c->targets.n_rows; r++) {
    const float *row = logits + (system + c->sup[r]) * n_vocab;
    const size_t n =
        fl_topk_probs(fl_model_kernels(s->r.m), id, prob, row, n_vocab, k, s->o.top_mass);
    const uint32_t at = c->targets.first[r];
    ck_assert_uint_eq(c->targets.first[r + 1] - at, n);
    ck_assert(memcmp(id, c->targets.id + at, n * sizeof *id) == 0);
    ck_assert(memcmp(prob, c->targets.prob + at, n * sizeof *prob) == 0);
    /* Bot B is greedy: what follows is the likeliest. */
    if (greedy) ck_assert_int_eq(c->tokens.data[c->sup[r] + 1], id[0]);
  }
  fl_free(logits);
  fl_ids_release(&ids);
}

#endif
