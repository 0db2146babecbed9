/* tape.h - what a pass records of each layer for its backward, and the sizes that all layers share.
 * Private to this folder. */
#ifndef FL_MODEL_TAPE_H
#define FL_MODEL_TAPE_H

#include <stddef.h>
#include <stdint.h>

/* What the backward needs of a layer. With checkpointing only x_in is kept per layer and one set of
 * the others is refilled before each layer's backward. */
typedef struct fl_tape {
  float *x_in;    /* [rows, d_model] input of the layer */
  float *qkv_raw; /* [rows, qkv] before norms and rotation */
  float *att;     /* [rows, n_heads * head_dim] */
  float *stat;    /* [rows, n_heads] */
  float *attn_y;  /* [rows, d_model] output projection before its norm; NULL without that norm */
  float *x_mid;   /* [rows, d_model] after the attention's residual */
  float *gate_up; /* [rows, 2 * n_ff] */
  float *ffn_y;   /* [rows, d_model] before the post norm; NULL without that norm */
  /* Experts. */
  float *router;          /* [rows, n_experts] probabilities */
  int32_t *expert;        /* [rows, n_experts_used] chosen, best first */
  float *weight;          /* [rows, n_experts_used] */
  float *moe_gu;          /* [rows * n_experts_used, 2 * n_ff_expert], by expert, then row */
  float *dense_y, *moe_y; /* [rows, d_model] the branches before their own norms (gemma4) */
  /* Per-layer embedding. */
  float *ple_g; /* [rows, n_embd_per_layer] gate before its activation */
  float *ple_y; /* [rows, d_model] before the post norm */
} fl_tape;

/* Widest of the layers, for buffers that all layers share. */
typedef struct fl_widths {
  size_t q, kv, qkv, ff, heads;
} fl_widths;

/* Work space of the experts, shared by all layers. */
typedef struct fl_moe_space {
  float *in, *router_in, *out; /* [rows, d_model] */
  float *xe, *ye;              /* [rows, d_model] rows of one expert */
  float *h;                    /* [rows, n_ff_expert] */
  uint32_t *order;             /* [rows * used] row * used + slot, by expert, then row */
  size_t *first;               /* [n_experts + 1] an expert's first entry in order */
  fl_tape t;                   /* router, expert, weight, moe_gu when not recording */
  /* backward */
  float *dweight;          /* [rows, used] */
  float *drouter;          /* [rows, n_experts] */
  float *dgu;              /* [rows, 2 * n_ff_expert] */
  float *din, *drouter_in; /* [rows, d_model] */
} fl_moe_space;

#endif
