/* attention_util.h - sequences in pages and calls on them, for the tests of attention. */
#ifndef FL_TESTSUITE_ATTENTION_UTIL_H
#define FL_TESTSUITE_ATTENTION_UTIL_H

#include "kernels/attention.h"

#include "kernels_util.h"

enum { PAGE = FL_KV_ROWS, PAD = 8 /* between rows of q and out: never touched */ };

typedef struct shape {
  size_t heads, kv, hd, n_rows, n_q, window;
  float softcap;
} shape;

static const shape shapes[] = {
  { 1, 1, 8, 1, 1, 0, 0 },      { 2, 2, 8, 32, 32, 0, 0 },       { 4, 1, 16, 33, 33, 0, 0 },
  { 4, 2, 16, 70, 41, 0, 20 },  { 3, 1, 32, 65, 20, 0, 0 },      { 4, 2, 64, 100, 37, 31, 0 },
  { 4, 4, 64, 200, 9, 32, 0 },  { 2, 1, 64, 131, 130, 33, 0 },   { 4, 2, 80, 97, 50, 0, 50 },
  { 4, 1, 128, 150, 60, 0, 0 }, { 8, 4, 128, 64, 3, 1, 0 },      { 6, 2, 40, 161, 70, 64, 0 },
  { 2, 1, 24, 90, 90, 5, 10 },  { 4, 1, 256, 80, 40, 40, 0 },    { 2, 1, 512, 50, 20, 0, 0 },
  { 50, 1, 8, 40, 3, 0, 0 },    { 12, 4, 56, 260, 11, 1000, 0 }, { 50, 1, 8, 70, 40, 33, 0 },
  { 8, 1, 16, 150, 130, 0, 0 }
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/* One sequence: random rows, pages of two layers of which the second is used. */
typedef struct seq {
  shape s;
  fl_attn a;
  float *key, *val; /* [n_rows, kv, hd] */
  float *q, *dout;  /* [n_q, heads * hd + PAD] */
  size_t ld, n_pages;
  void **pages;
  fl_attn_span span;
} seq;

static inline void fill_pages(const fl_kernels *k, seq *x) {
  size_t row = x->s.kv * x->s.hd;
  for (size_t j = 0; j < x->s.n_rows; j++) {
    fl_page_put(k, x->pages[j / PAGE], &x->a, true, j % PAGE, x->key + j * row);
    fl_page_put(k, x->pages[j / PAGE], &x->a, false, j % PAGE, x->val + j * row);
  }
}

static inline void make_pages(const fl_kernels *k, seq *x, bool f16) {
  size_t bytes = PAGE * x->s.kv * x->s.hd * (f16 ? 2 : 4);
  x->a.kv_f16 = f16;
  x->a.k_offset = 2 * bytes;
  x->a.v_offset = 3 * bytes;
  x->n_pages = (x->s.n_rows + PAGE - 1) / PAGE;
  x->pages = room(x->n_pages, sizeof *x->pages);
  for (size_t p = 0; p < x->n_pages; p++) x->pages[p] = room(4, bytes);
  fill_pages(k, x);
  x->span = (fl_attn_span){ (const void *const *)x->pages, x->s.n_rows, 0, x->s.n_q };
}

static inline void make_seq(const fl_kernels *k, seq *x, shape s, uint32_t which) {
  fl_rng r = stream(which);
  memset(x, 0, sizeof *x);
  x->s = s;
  x->a = (fl_attn){ .n_heads = s.heads,
                    .kv_heads = s.kv,
                    .head_dim = s.hd,
                    .scale = 1.0f / sqrtf((float)s.hd),
                    .softcap = s.softcap,
                    .window = s.window };
  x->ld = s.heads * s.hd + PAD;
  x->key = normals(&r, s.n_rows * s.kv * s.hd);
  x->val = normals(&r, s.n_rows * s.kv * s.hd);
  x->q = normals(&r, s.n_q * x->ld);
  x->dout = normals(&r, s.n_q * x->ld);
  for (size_t i = 0; i < s.n_rows * s.kv * s.hd; i++) { /* what f16 can hold */
    x->key[i] = fl_f16_to_f32(fl_f32_to_f16(x->key[i]));
    x->val[i] = fl_f16_to_f32(fl_f32_to_f16(x->val[i]));
  }
  make_pages(k, x, false);
}

static inline void drop_pages(seq *x) {
  for (size_t p = 0; p < x->n_pages; p++) fl_free(x->pages[p]);
  fl_free(x->pages);
}

static inline void drop_seq(seq *x) {
  drop_pages(x);
  fl_free(x->key), fl_free(x->val), fl_free(x->q), fl_free(x->dout);
}

/* Results of a forward: out [n_q, ld], stat [n_q, heads]. */
typedef struct result {
  float *out, *stat;
  size_t n_out, n_stat;
} result;

static inline result new_result(const seq *x) {
  result r = { .n_out = x->s.n_q * x->ld, .n_stat = x->s.n_q * x->s.heads };
  r.out = room(r.n_out, sizeof *r.out);
  r.stat = room(r.n_stat, sizeof *r.stat);
  return r;
}

static inline void drop_result(result *r) { fl_free(r->out), fl_free(r->stat); }

static inline bool same_result(const result *a, const result *b) {
  return same_bits(a->out, b->out, a->n_out) && same_bits(a->stat, b->stat, a->n_stat);
}

static inline void call(const fl_kernels *k, fl_team *team, const seq *x, const fl_attn_span *spans,
                        size_t n, float *out, const float *q, float *stat) {
  size_t bytes = fl_attention_scratch(&x->a, team);
  float *scratch = room(1, bytes);
  memset(scratch, 0xff, bytes); /* NaN: nothing is read before it is written */
  fl_attention(k, team, &x->a, spans, n, out, x->ld, q, x->ld, stat, scratch);
  fl_free(scratch);
}

static inline result forward(const fl_kernels *k, fl_team *team, const seq *x) {
  result r = new_result(x);
  call(k, team, x, &x->span, 1, r.out, x->q, r.stat);
  return r;
}

static inline fl_team *team_of(unsigned n) {
  fl_team *t = NULL;
  ck_assert_int_eq(fl_team_new(&t, n, NULL), FL_OK);
  return t;
}

/* Rows without the padding, as the twins take them. */
static inline float *packed(const seq *x, const float *rows) {
  size_t n = x->s.heads * x->s.hd;
  float *p = room(x->s.n_q * n, sizeof *p);
  for (size_t i = 0; i < x->s.n_q; i++) memcpy(p + i * n, rows + i * x->ld, n * sizeof *p);
  return p;
}

/* Three sequences of one geometry, different lengths, in one call, out of order. */
enum { MANY = 3 };

static inline void make_many(const fl_kernels *k, seq x[MANY], size_t heads, size_t kv, size_t hd) {
  static const size_t rows[MANY] = { 75, 3, 130 }, queries[MANY] = { 20, 3, 1 };
  for (uint32_t i = 0; i < MANY; i++) {
    shape s = { heads, kv, hd, rows[i], queries[i], 50, 0 };
    make_seq(k, &x[i], s, 40 + i);
  }
}

#endif
