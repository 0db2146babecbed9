/* model_util.h - a model with its threads, opened for a test; token lists; draws. */
#ifndef FL_TESTSUITE_MODEL_UTIL_H
#define FL_TESTSUITE_MODEL_UTIL_H

#include <math.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/rng.h"
#include "model/generate.h"
#include "model/model.h"
#include "model/pass.h"
#include "suite.h"

typedef struct rig {
  fl_team *team;
  fl_model *m;
  const fl_hparams *hp;
} rig;

static inline rig rig_open(const char *file, unsigned threads) {
  rig r = { 0 };
  fl_err err = { 0 };
  ck_assert_msg(fl_team_new(&r.team, threads, &err) == FL_OK, "%s", err.text);
  ck_assert_msg(fl_model_open(&r.m, fixture(file), NULL, r.team, &err) == FL_OK, "%s", err.text);
  r.hp = fl_model_hparams(r.m);
  return r;
}

static inline void rig_close(rig *r) {
  fl_model_close(r->m);
  fl_team_free(r->team);
}

static inline fl_kv_pool *rig_pool(const rig *r, fl_kv_type type) {
  fl_kv_pool *p;
  ck_assert_int_eq(fl_kv_pool_new(&p, r->hp, fl_model_kernels(r->m), type, 0, NULL), FL_OK);
  return p;
}

static inline fl_pass *rig_pass(const rig *r, fl_pass_options o) {
  fl_pass *p;
  fl_err err = { 0 };
  ck_assert_msg(fl_pass_new(&p, r->m, r->team, &o, &err) == FL_OK, "%s", err.text);
  return p;
}

static inline fl_seq *rig_seq(fl_kv_pool *pool) {
  fl_seq *s;
  ck_assert_int_eq(fl_seq_new(&s, pool, NULL), FL_OK);
  return s;
}

/* n token ids that are any but the same for all callers. */
static inline void some_ids(int32_t *ids, size_t n, size_t n_vocab, uint32_t stream) {
  fl_rng r = fl_rng_stream(7, FL_RNG_TEST, stream, 0, 0);
  for (size_t i = 0; i < n; i++) ids[i] = (int32_t)fl_rng_below(&r, n_vocab);
}

/* Logits [n, n_vocab] of all rows of `ids` behind `prefix` (may be NULL), in slices. */
static inline float *all_logits(const rig *r, fl_kv_type type, const int32_t *ids, size_t n,
                                size_t slice) {
  fl_kv_pool *pool = rig_pool(r, type);
  fl_seq *seq = rig_seq(pool);
  fl_pass *p = rig_pass(r, (fl_pass_options){ .max_rows = slice, .max_out_rows = slice });
  float *out = fl_calloc(n * r->hp->n_vocab, sizeof *out);
  size_t *rows = fl_calloc(slice, sizeof *rows);
  fl_err err = { 0 };
  for (size_t i = 0; i < slice; i++) rows[i] = i;
  for (size_t at = 0; at < n; at += slice) {
    size_t take = n - at < slice ? n - at : slice;
    fl_span s = { .seq = seq, .tokens = ids + at, .n_rows = take };
    ck_assert_msg(fl_pass_forward(p, &s, 1, &err) == FL_OK, "%s", err.text);
    fl_pass_logits(p, rows, take, out + at * r->hp->n_vocab);
  }
  fl_free(rows);
  fl_pass_free(p);
  fl_seq_free(seq);
  fl_kv_pool_free(pool);
  return out;
}

#endif
