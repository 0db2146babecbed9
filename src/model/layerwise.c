/* layerwise.c - one layer at a time, on the machinery of a pass. */
#include "model/layerwise.h"

#include <assert.h>
#include <string.h>

#include "model/stages.h"

/* Inputs that models add at every layer come from the tokens again: they are not kept. */
static int begin(fl_pass *p, const fl_span *spans, size_t n_spans, const float *x, fl_err *err) {
  assert(!p->opt.record && (n_spans == 0 || spans[0].seq == NULL));
  const int rc = fl_pass_begin(p, spans, n_spans, err);
  if (rc == FL_OK && x != NULL) memcpy(p->x, x, p->n_rows * p->model->hp.d_model * sizeof *x);
  return rc;
}

int fl_layerwise_embed(fl_pass *p, const fl_span *spans, size_t n_spans, float *x, fl_err *err) {
  const int rc = begin(p, spans, n_spans, NULL, err);
  if (rc == FL_OK) memcpy(x, p->x, p->n_rows * p->model->hp.d_model * sizeof *x);
  return rc;
}

/* Placed in pieces of as many spans as this has room for. */
enum { SPANS_A_CALL = 64 };

int fl_layerwise_queries(fl_pass *p, const fl_span *spans, size_t n_spans, size_t layer,
                         const float *x, const fl_layer_queries *out, fl_err *err) {
  const fl_layer_hparams *l = &p->model->hp.layer[layer];
  const size_t width = l->n_heads * l->head_dim, ld = fl_layer_qkv_cols(&p->model->hp, layer);
  const size_t d = p->model->hp.d_model;
  fl_span alone[SPANS_A_CALL];
  assert(layer <= p->last_kv_layer);
  for (size_t s = 0, row = 0; s < n_spans; s += SPANS_A_CALL) {
    const size_t n = n_spans - s < SPANS_A_CALL ? n_spans - s : SPANS_A_CALL;
    for (size_t i = 0; i < n; i++) {
      alone[i] = spans[s + i];
      alone[i].n_parts = 0;
    }
    const int rc = begin(p, alone, n, x + row * d, err);
    if (rc != FL_OK) return rc;
    fl_attention_queries(p, layer, out->mass + row * l->n_heads);
    for (size_t r = 0; r < p->n_rows; r++)
      memcpy(out->q + (row + r) * width, p->qkv + r * ld, width * sizeof *out->q);
    memcpy(out->own + row * width, p->att, p->n_rows * width * sizeof *out->own);
    row += p->n_rows;
  }
  return FL_OK;
}

int fl_layerwise_run(fl_pass *p, const fl_span *spans, size_t n_spans, size_t layer, float *x,
                     fl_err *err) {
  assert(layer <= p->last_kv_layer);
  const int rc = begin(p, spans, n_spans, x, err);
  if (rc != FL_OK) return rc;
  fl_attention_block_fwd(p, layer, NULL);
  fl_ffn_block_fwd(p, layer, NULL);
  memcpy(x, p->x, p->n_rows * p->model->hp.d_model * sizeof *x);
  return FL_OK;
}
