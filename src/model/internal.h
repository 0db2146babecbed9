/* internal.h - what the files of this layer share and nobody else sees. */
#ifndef FL_MODEL_INTERNAL_H
#define FL_MODEL_INTERNAL_H

#include "base/hash.h"
#include "base/mem.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/pointwise.h"
#include "model/model.h"
#include "model/pass.h"
#include "model/tape.h"
#include "model/weights.h"

struct fl_model {
  char *path;
  fl_gguf *gguf;
  fl_hparams hp;
  fl_tokenizer *tok;
  fl_template tpl;
  const fl_kernels *kern;
  fl_weights weights;
  char hash[FL_HASH_TEXT], tok_hash[FL_HASH_TEXT];
};

enum { FL_ACCUMULATED = 2 }; /* layers whose rows later layers use, at most */

struct fl_pass {
  const fl_model *model;
  fl_team *team;
  fl_pass_options opt;
  fl_widths wide;
  fl_arena arena;
  size_t kept_bytes; /* bytes of the arena that outlast a forward and its backward */
  size_t loss_rows;  /* rows of the head at a time in fl_pass_loss */
  bool recomputing;  /* a layer is being run again for its backward: K/V rows are in place */

  /* The forward that the pass holds. */
  size_t n_rows, n_spans;
  size_t last_kv_layer; /* from its attention on, only rows with an output run (output_rows.c) */
  size_t n_output_rows;
  uint32_t *output_row;         /* [max_rows] numbers of the rows with an output, ascending */
  uint32_t *place;              /* [max_rows] where a row stands among them, or FL_NO_OUTPUT */
  fl_span *span;                /* [max_spans] copies */
  fl_attn_span *attn_span;      /* [max_spans] with the queries of the layer that runs */
  fl_attn_grad_span *grad_span; /* [max_spans], recording */
  uint32_t *row_span;           /* [max_rows] */
  int32_t *row_token;           /* [max_rows] */
  size_t rows_looked_up;        /* in the tables of embeddings, since their pages were given back */
  size_t *row_pos;              /* [max_rows] */
  float *rope[2];               /* [max_rows, half, 2] */

  float *x;            /* [max_rows, d_model] the residual stream; after last_kv_layer and after a
                              forward, of the rows with an output */
  float *h;            /* [max_rows, d_model] a norm's output, a projection's */
  float *qkv;          /* [max_rows, wide.qkv] */
  float *att;          /* [max_rows, wide.q] */
  float *gu;           /* [max_rows, 2 * wide.ff] when not recording */
  float *glu;          /* [max_rows, wide.ff]; in the backward its gradient */
  float *out_h;        /* [max_out_rows, d_model] */
  float *loss_logits;  /* [loss_rows, n_vocab], recording */
  float *loss_dlogits; /* the same with a soft cap, else == loss_logits */
  void *scratch;       /* matmul and attention */
  fl_moe_space moe;
  float *ple_in;        /* [max_rows, n_layers * n_embd_per_layer] */
  float *ple_a, *ple_g; /* [max_rows, n_embd_per_layer] */

  /* Recording. */
  fl_tape *tape;                 /* [n_layers] */
  float *dx;                     /* [max_rows, d_model] */
  float *dh;                     /* [max_rows, d_model] */
  float *dy;                     /* [max_rows, d_model] */
  float *dqkv;                   /* [max_rows, wide.qkv] */
  float *datt;                   /* [max_rows, wide.q] */
  float *dgu;                    /* [max_rows, 2 * wide.ff] */
  float *dk, *dv;                /* [rows of all sequences, wide.kv] */
  size_t *kv_first;              /* [max_spans] a span's first row in them */
  float *dk_acc[FL_ACCUMULATED]; /* for layers whose rows later layers use */
  float *dv_acc[FL_ACCUMULATED];
  int32_t acc_of[FL_ACCUMULATED]; /* those layers; -1 */

  /* Spans behind detached prefixes: their pages, a layer at a time (pages.c). */
  bool detached;
  size_t n_pages;
  size_t *page_first; /* [max_spans] a span's first page */
  const void **page[1 + FL_ACCUMULATED];
  float *page_mem[1 + FL_ACCUMULATED]; /* pages of K and V, each [wide.kv * FL_KV_ROWS] */
};

/* Work over rows, split between the team's threads in contiguous shares. `cost` is the number of
 * values touched a row: small jobs stay on the caller. */
typedef void fl_rows_fn(fl_pass *p, const void *ctx, size_t first, size_t end);
void fl_pass_rows(fl_pass *p, fl_rows_fn *fn, const void *ctx, size_t n_rows, size_t cost);

/* output_rows.c. Which rows have an output, after the spans were placed. */
#define FL_NO_OUTPUT UINT32_MAX
void fl_output_rows_place(fl_pass *p);
/* The spans' queries become those of a layer. */
void fl_output_rows_queries(fl_pass *p, size_t layer);
/* Rows of x [rows, d_model] that have an output come to the front. */
void fl_output_rows_gather(const fl_pass *p, float *x);
/* The first `cols` columns of rows with an output go back to their places (row stride ld), zeros
 * between them. */
void fl_output_rows_scatter(const fl_pass *p, float *x, size_t ld, size_t cols);
/* Rows that go into a layer; queries of its attention, and rows that come out. */
static inline size_t fl_rows_in(const fl_pass *p, size_t layer) {
  return layer > p->last_kv_layer ? p->n_output_rows : p->n_rows;
}
static inline size_t fl_rows_out(const fl_pass *p, size_t layer) {
  return layer >= p->last_kv_layer ? p->n_output_rows : p->n_rows;
}

/* pages.c. The geometry of a layer's attention in the pages of the spans that run. */
fl_attn fl_layer_attn(const fl_pass *p, size_t layer);
void fl_pages_layout(fl_pass *p);
void fl_pages_place(fl_pass *p); /* after the spans were placed */
/* The spans' pages become those of a layer, their prefixes are in them; true where the layer's own
 * rows are to be put there. kept: its forward has run before. */
bool fl_pages_open(fl_pass *p, size_t layer, bool kept);
/* One row's k, v [kv_heads, head_dim] into its span's pages. */
void fl_pages_put(fl_pass *p, size_t layer, size_t row, const float *k, const float *v);

/* The two parts of a layer, each way; block_attention.c and block_ffn.c. `t` may be NULL (not
 * recording). In the forward p->x becomes the output. In the backward p->dx [rows, d_model] holds
 * the gradient of the output and becomes that of the input (below layer 0 nothing is needed). Rows
 * are those of fl_rows_in and fl_rows_out; so are a tape's: those that go in for x_in and for k and
 * v in qkv_raw, those that come out for the others. */
void fl_attention_block_fwd(fl_pass *p, size_t layer, fl_tape *t);
void fl_attention_block_bwd(fl_pass *p, size_t layer, const fl_tape *t, const fl_grad_span *grads);
void fl_ffn_block_fwd(fl_pass *p, size_t layer, fl_tape *t);
void fl_ffn_block_bwd(fl_pass *p, size_t layer, const fl_tape *t);

/* Columns of a layer's qkv buffer: q, and k and v where the layer owns its rows. */
size_t fl_layer_qkv_cols(const fl_hparams *hp, size_t layer);

/* block_moe.c: p->moe.out = weighted sum of the chosen experts of p->moe.in, chosen by
 * p->moe.router_in. Backward: from dy [rows, d_model] to p->moe.din and p->moe.drouter_in (=). */
void fl_moe_fwd(fl_pass *p, size_t layer, fl_tape *t);
void fl_moe_bwd(fl_pass *p, size_t layer, const fl_tape *t, const float *dy);
void fl_moe_layout_tape(fl_pass *p, fl_tape *t);
void fl_moe_layout(fl_pass *p);
size_t fl_moe_scratch(const fl_pass *p, size_t layer);

/* block_ple.c: the inputs of all layers after the embedding; then one layer's addition to p->x, and
 * its backward on p->dx. */
void fl_ple_inputs(fl_pass *p);
void fl_ple_fwd(fl_pass *p, size_t layer, fl_tape *t);
void fl_ple_bwd(fl_pass *p, size_t layer, const fl_tape *t);

#endif
