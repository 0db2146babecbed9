/* weights.h - the frozen weights of a model, packed (kernels/matmul.h), by layer.
 *
 * Projections that share their input and their type are packed as one (q, k, v; gate, up); where
 * types differ they are separate products into columns of the same buffer. Optional weights are
 * NULL; the block uses what is there.
 */
#ifndef FL_MODEL_WEIGHTS_H
#define FL_MODEL_WEIGHTS_H

#include <stddef.h>

#include "base/err.h"
#include "formats/gguf.h"
#include "kernels/matmul.h"
#include "model/hparams.h"

/* Several matrices over one input whose outputs stand side by side. */
typedef struct fl_linear {
  fl_panels *w[3];
  size_t col[3]; /* first output column of w[i] */
  size_t n;      /* products */
  size_t n_out;  /* columns in all */
} fl_linear;

/* Router and experts of one layer. */
typedef struct fl_moe_weights {
  fl_linear router;    /* [n_experts, d_model] */
  float *router_scale; /* [d_model] or NULL: multiplies the normed router input (gemma4) */
  float *expert_scale; /* [n_experts] or NULL: multiplies the weights of chosen experts */
  float *pre_norm, *post_norm, *dense_post_norm; /* gemma4's norms around both branches, or NULL */
  fl_linear *gate_up, *down;                     /* [n_experts] */
} fl_moe_weights;

/* Per-layer embedding of one layer (gemma4). */
typedef struct fl_ple_weights {
  fl_linear gate, out;
  float *post_norm;
} fl_ple_weights;

typedef struct fl_layer_weights {
  float *attn_norm, *q_norm, *k_norm, *post_attn_norm; /* [d_model] or [head_dim] */
  float *ffn_norm, *post_ffn_norm;
  fl_linear qkv, gate_up;
  float *qkv_bias; /* [qkv.n_out] or NULL */
  fl_linear attn_out, ffn_down;
  fl_moe_weights *moe; /* NULL: dense only */
  fl_ple_weights *ple; /* NULL: none */
  float out_scale;     /* multiplies the block's output; 1: none */
} fl_layer_weights;

typedef struct fl_weights {
  fl_panels *head;            /* [n_vocab, d_model] */
  const fl_tensor_info *embd; /* rows are read from the mapping */
  float *out_norm;
  const fl_tensor_info *ple_embd; /* [n_vocab, n_layers * n_embd_per_layer] or NULL */
  fl_linear ple_proj;             /* [n_layers * n_embd_per_layer, d_model] */
  float *ple_norm;                /* [n_embd_per_layer] */
  fl_layer_weights *layer;
  size_t n_layers, n_experts, bytes;
} fl_weights;

/* Experts are packed too, or used where they lie in the mapping (fl_panels_map). */
int fl_weights_load(fl_weights *w, const fl_gguf *g, const fl_hparams *hp, const fl_kernels *kern,
                    bool pack_experts, fl_team *team, fl_err *err);
void fl_weights_release(fl_weights *w);

/* y [m, proj->n_out] = x [m, n_in] . W^T for all parts; dx (+)= dy . W. */
void fl_linear_forward(const fl_linear *p, fl_team *team, float *y, size_t ldy, const float *x,
                       size_t ldx, size_t m, void *scratch);
/* Columns [first, end) of it, and a few before `first`, as panels begin there. */
void fl_linear_columns(const fl_linear *p, fl_team *team, float *y, size_t ldy, const float *x,
                       size_t ldx, size_t m, size_t first, size_t end, void *scratch);
void fl_linear_backward(const fl_linear *p, fl_team *team, float *dx, size_t lddx, const float *dy,
                        size_t lddy, size_t m, void *scratch);
size_t fl_linear_scratch(const fl_linear *p, const fl_team *team, size_t m);

#endif
