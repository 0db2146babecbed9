/* prefix_case.h - packed sequences behind a prefix, whose loss and gradient tests compare. */
#ifndef FL_TESTSUITE_PREFIX_CASE_H
#define FL_TESTSUITE_PREFIX_CASE_H

#include "model_util.h"

static inline void same_bits(const float *a, const float *b, size_t n, const char *what) {
  for (size_t i = 0; i < n; i++)
    ck_assert_msg(memcmp(&a[i], &b[i], sizeof *a) == 0, "%s: value %zu is %.9g and %.9g", what, i,
                  (double)a[i], (double)b[i]);
}

enum { P = 40, SEQS = 3, MAX_Q = 12, PARTS = 2, PART0 = 3 };

/* Row of sequence s. */
static inline size_t first_supervised(size_t s) { return 2 * (1 + s); }

/* Three sequences behind a prefix of P rows (captured from other tokens), with targets. */
typedef struct study_case {
  rig r;
  fl_kv_pool *pool;
  fl_seq *prefix;
  int32_t ids[SEQS][MAX_Q];
  size_t len[SEQS];
  size_t rows[SEQS * MAX_Q];
  fl_target_row target[SEQS * MAX_Q];
  int32_t tid[SEQS * MAX_Q][3];
  float tprob[SEQS * MAX_Q][3];
  size_t n_sup;
  size_t width[FL_MAX_LAYERS];                  /* of a layer's K row; 0: it has none of its own */
  float *dk[FL_MAX_LAYERS], *dv[FL_MAX_LAYERS]; /* [P, width] */
  /* The prefix once more as arrays [PARTS], cut at row PART0; what `loose` runs stand behind. */
  float *k[PARTS][FL_MAX_LAYERS], *v[PARTS][FL_MAX_LAYERS];
  fl_prefix_part part[PARTS];
  bool loose;
  bool silent; /* rows before a sequence's first supervised one are */
} study_case;

static inline void read_prefix(study_case *c) {
  for (size_t i = 0; i < PARTS; i++) {
    const size_t first = i == 0 ? 0 : PART0, n = i == 0 ? PART0 : P - PART0;
    c->part[i] = (fl_prefix_part){ .n_rows = n, .k = c->k[i], .v = c->v[i] };
    for (size_t l = 0; l < c->r.hp->n_layers; l++) {
      if (c->width[l] == 0) continue;
      c->k[i][l] = fl_calloc(n * c->width[l], sizeof(float));
      c->v[i][l] = fl_calloc(n * c->width[l], sizeof(float));
      fl_seq_read(c->prefix, l, first, n, c->k[i][l], c->v[i][l]);
    }
  }
}

static inline void case_open(study_case *c, const char *file, unsigned threads) {
  int32_t pre[P];
  fl_pass *p;
  size_t last, row = 0;
  memset(c, 0, sizeof *c);
  c->r = rig_open(file, threads);
  c->pool = rig_pool(&c->r, FL_KV_F32);
  c->prefix = rig_seq(c->pool);
  some_ids(pre, P, c->r.hp->n_vocab, 99);
  p = rig_pass(&c->r, (fl_pass_options){ .max_rows = P });
  ck_assert_int_eq(fl_pass_prefill(p, c->prefix, pre, P, &last, NULL), FL_OK);
  fl_pass_free(p);
  for (uint32_t s = 0; s < SEQS; s++) {
    c->len[s] = 6 + 3 * s;
    some_ids(c->ids[s], MAX_Q, c->r.hp->n_vocab, 10 + s);
    for (size_t i = first_supervised(s); i < c->len[s]; i += 2) {
      size_t n = c->n_sup++;
      some_ids(c->tid[n], 3, c->r.hp->n_vocab, 100 + (uint32_t)n);
      c->tprob[n][0] = 0.6f;
      c->tprob[n][1] = 0.25f;
      c->tprob[n][2] = 0.1f;
      c->target[n] = (fl_target_row){ .id = c->tid[n], .prob = c->tprob[n], .n = 1 + n % 3 };
      c->rows[n] = row + i;
    }
    row += c->len[s];
  }
  for (size_t l = 0; l < c->r.hp->n_layers; l++) {
    const fl_layer_hparams *h = &c->r.hp->layer[l];
    if (h->kv_from != (int32_t)l) continue;
    c->width[l] = h->kv_heads * h->head_dim;
    c->dk[l] = fl_calloc(P * c->width[l], sizeof(float));
    c->dv[l] = fl_calloc(P * c->width[l], sizeof(float));
  }
  read_prefix(c);
}

static inline void case_close(study_case *c) {
  for (size_t l = 0; l < c->r.hp->n_layers; l++) {
    fl_free(c->dk[l]);
    fl_free(c->dv[l]);
    for (size_t i = 0; i < PARTS; i++) {
      fl_free(c->k[i][l]);
      fl_free(c->v[i][l]);
    }
  }
  fl_seq_free(c->prefix);
  fl_kv_pool_free(c->pool);
  rig_close(&c->r);
}

/* Loss of sequences [first, end) of the case; with `grad`, their gradient is added to dk, dv. */
static inline double case_run(study_case *c, size_t first, size_t end, bool checkpoint, bool grad) {
  fl_pass *p = rig_pass(&c->r, (fl_pass_options){ .max_rows = SEQS * MAX_Q,
                                                  .max_spans = SEQS,
                                                  .max_out_rows = SEQS * MAX_Q,
                                                  .max_prefix = P,
                                                  .record = true,
                                                  .checkpoint = checkpoint });
  fl_span spans[SEQS];
  fl_grad_part part = { .n_rows = P, .dk = c->dk, .dv = c->dv };
  fl_grad_span grads[SEQS];
  size_t rows[SEQS * MAX_Q], n = 0, lo = 0, hi = 0;
  const fl_target_row *targets = NULL;
  double losses[SEQS * MAX_Q], loss = 0;
  for (size_t s = 0; s < end; s++) {
    if (s < first) lo += c->len[s];
    hi += c->len[s];
  }
  for (size_t i = 0; i < c->n_sup; i++) {
    if (c->rows[i] < lo || c->rows[i] >= hi) continue;
    if (targets == NULL) targets = &c->target[i];
    rows[n++] = c->rows[i] - lo;
  }
  for (size_t s = first; s < end; s++) {
    fl_seq *q = NULL;
    if (!c->loose) ck_assert_int_eq(fl_seq_fork(&q, c->prefix, P, NULL), FL_OK);
    spans[s - first] = (fl_span){ .seq = q,
                                  .tokens = c->ids[s],
                                  .n_rows = c->len[s],
                                  .n_no_output = c->silent ? first_supervised(s) : 0,
                                  .parts = c->part,
                                  .n_parts = PARTS,
                                  .position = P };
    grads[s - first] = (fl_grad_span){ .parts = &part, .n_parts = 1 };
  }
  ck_assert_int_eq(fl_pass_forward(p, spans, end - first, NULL), FL_OK);
  fl_pass_loss(p, rows, targets, n, 1.0f / (float)c->n_sup, losses);
  for (size_t i = 0; i < n; i++) loss += losses[i];
  if (grad) fl_pass_backward(p, grads);
  fl_pass_evict_pages(p);
  for (size_t s = first; s < end; s++) fl_seq_free(spans[s - first].seq);
  fl_pass_free(p);
  return loss / (double)c->n_sup;
}

static inline size_t n_values(const study_case *c) {
  size_t n = 0;
  for (size_t l = 0; l < c->r.hp->n_layers; l++) n += 2 * P * c->width[l];
  return n;
}

/* The gradient so far, layer by layer k then v; the accumulators start again from zero. */
static inline float *snapshot(const study_case *c) {
  float *out = fl_calloc(n_values(c), sizeof *out), *at = out;
  for (size_t l = 0; l < c->r.hp->n_layers; l++) {
    size_t n = P * c->width[l];
    if (n == 0) continue;
    memcpy(at, c->dk[l], n * sizeof *at);
    memcpy(at + n, c->dv[l], n * sizeof *at);
    memset(c->dk[l], 0, n * sizeof *at);
    memset(c->dv[l], 0, n * sizeof *at);
    at += 2 * n;
  }
  return out;
}

#endif
