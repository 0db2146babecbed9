/* pass.h - running rows through the model: forward, logits, loss, backward.
 *
 * A pass is a workspace of a size fixed at birth (one arena) and the only thing that computes. One
 * call of fl_pass_forward takes spans: for each, `n_rows` new tokens of one sequence, which are
 * appended to it (room is reserved by the call, before computing). Any mixture is fine: many
 * sequences with one row each (batched decoding), one with many rows (prefill), packed training
 * sequences with a prefix each. The row rule holds: what a row gives does not depend on the others.
 *
 * Rows whose outputs nobody reads are run for their keys and values alone: a span says how many of
 * its first rows those are (n_no_output). All other rows and all gradients are bit-identical.
 *
 * Recording (`record`) keeps what the backward needs: the layer inputs and, unless `checkpoint`,
 * the inner activations too; with `checkpoint` each layer is run again in the backward, to the
 * same bits. The gradient goes to K/V rows that stood in the sequence before the pass (the prefix);
 * weights get none. Method: cartridges, arXiv 2506.06266, section 3.
 *
 * No function here allocates except fl_pass_new and the page reservation in fl_pass_forward.
 */
#ifndef FL_MODEL_PASS_H
#define FL_MODEL_PASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/loss.h"
#include "kernels/team.h"
#include "model/kv.h"
#include "model/model.h"

typedef struct fl_pass fl_pass;
/* Rows of one forward, for those who read prompts and have no other reason: the products gain
 * nothing from more. */
enum { FL_PASS_ROWS = 512 };

typedef struct fl_pass_options {
  size_t max_rows; /* new rows in one forward, all spans together */
  size_t max_spans;
  size_t max_out_rows; /* rows in one fl_pass_logits or fl_pass_loss call; 0: max_spans */
  size_t max_prefix;   /* longest prefix of a span in rows; not recording: of one that lies in no
                          sequence (layerwise.h), 0 where there is none */
  bool record, checkpoint;
  bool touch; /* its memory is taken at birth, not by the first pass that is so large */
  /* Called when a layer is done, in a forward and in a backward: the rows of detached prefixes in
   * it, and their gradients, are not touched until the next call reaches it. May be NULL. */
  void (*layer_done)(void *ctx, size_t layer);
  void *ctx;
} fl_pass_options;

int fl_pass_new(fl_pass **out, const fl_model *m, fl_team *team, const fl_pass_options *opt,
                fl_err *err);
void fl_pass_free(fl_pass *p);
/* Gives the memory of what the pass holds back to the system until it is used again. */
void fl_pass_evict_pages(fl_pass *p);
size_t fl_pass_max_rows(const fl_pass *p);
const fl_model *fl_pass_model(const fl_pass *p);

/* Rows that stand before a span and lie in no sequence. */
typedef struct fl_prefix_part {
  size_t n_rows;
  float *const *k; /* [n_layers] -> [n_rows, kv_heads, head_dim]; NULL where a layer has none */
  float *const *v;
} fl_prefix_part;

/* New rows of a sequence; or, with seq == NULL and recording, new rows behind a detached prefix:
 * parts that lie in arrays, one after the other. Such rows are not kept after the pass, so only one
 * layer's keys and values are held beside the parts. All spans of a call are of the same sort, and
 * parts must stay until its backward. */
typedef struct fl_span {
  fl_seq *seq;
  const int32_t *tokens;
  size_t n_rows;      /* >= 1 */
  size_t n_no_output; /* of them, from the first on: nobody reads their outputs. 0: all are read */
  const fl_prefix_part *parts;
  size_t n_parts, position; /* of the first new row, when seq is NULL */
} fl_span;

/* Rows are numbered 0.. over the spans in order. Positions past the model's context, ids outside
 * the vocabulary or more rows than max_rows: FL_EINPUT/FL_EFULL and no sequence changed. */
int fl_pass_forward(fl_pass *p, const fl_span *spans, size_t n_spans, fl_err *err);
/* Runs `n` tokens through in slices of max_rows; the pass then holds the last slice, whose last row
 * is number *last_row, the only one with an output; with last_row NULL no row has one. Not for
 * recording passes. */
int fl_pass_prefill(fl_pass *p, fl_seq *seq, const int32_t *tokens, size_t n, size_t *last_row,
                    fl_err *err);

/* logits [n, n_vocab] of the given rows of the last forward (soft cap applied). Here and below,
 * rows that have an output. */
void fl_pass_logits(fl_pass *p, const size_t *rows, size_t n, float *logits);
/* out [n, d_model]: hidden state after the final norm. */
void fl_pass_hidden(fl_pass *p, const size_t *rows, size_t n, float *out);

/* Training. losses [n] = the distillation loss of each row (not scaled); keeps the gradient of
 * `scale` x their sum for the backward. rows ascending, at most max_out_rows. */
void fl_pass_loss(fl_pass *p, const size_t *rows, const fl_target_row *targets, size_t n,
                  float scale, double *losses);

/* Where the gradient of a span's prefix rows goes: consecutive parts from row 0 on. The first
 * `skip` rows of a part get none (frozen). dk[layer], dv[layer]: [n_rows - skip, kv_heads,
 * head_dim], += ; NULL for layers without rows of their own, or dk == NULL for a part that is not
 * trained. */
typedef struct fl_grad_part {
  size_t n_rows, skip;
  float *const *dk;
  float *const *dv;
} fl_grad_part;
typedef struct fl_grad_span {
  const fl_grad_part *parts;
  size_t n_parts;
} fl_grad_span;

/* After fl_pass_loss: one entry per span of the forward. Contributions are added in span order, so
 * packing spans into one pass or running them one by one gives the same bits. */
void fl_pass_backward(fl_pass *p, const fl_grad_span *grads);

#endif
