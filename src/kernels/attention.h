/* attention.h - causal grouped-query attention over block-aligned key/value pages.
 *
 * Keys and values of a sequence live in pages of FL_KV_ROWS rows aligned to the absolute row index.
 * Within a page, for one layer and one kv head:
 *     K  [head_dim][FL_KV_ROWS]   (key rows are lanes)
 *     V  [FL_KV_ROWS][head_dim]
 * stored as f32 or f16 (kv_f16). Rows of a page that were never written are zero.
 *
 * Forward for a query row at absolute position t (sees rows max(0, t - window + 1) .. t; window 0 =
 * all), for each page in ascending order, from m = -1e30, l = 0, o = 0:
 *     s_j  = scale * chain over d ascending of fma(q_d, K[d][j], .) from 0; softcap if asked; rows
 *            outside the visible range: s_j = -inf
 *     m'   = max(m, max_j s_j);  c = exp(m - m');  p_j = exp(s_j - m')
 *     l    = l*c + (sum of p_j in one fixed lane order over the 32)
 *     o_d  = chain over j ascending of fma(p_j, V[j][d], .) from o_d * c
 *     pages without any visible row are skipped, and V rows outside the range are not read: what
 *     lies there (later rows, rows given up) cannot show, not even in the sign of a zero.
 * out = o / l. (Dao et al. 2022, FlashAttention, algorithm 1, with blocks aligned to rows.)
 * These operations are the same whether a row is computed alone or in a tile: the row rule.
 * `exp` is the kernels' own (vmath.h), with exp(0) == 1 and exp(-inf) == 0. f16 caches are widened
 * exactly and then the same: pages that hold the same values give the same bits.
 */
#ifndef FL_KERNELS_ATTENTION_H
#define FL_KERNELS_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

/* One sequence's queries in a pass. */
typedef struct fl_attn_span {
  const void *const *pages; /* page base addresses, in row order */
  size_t n_rows;            /* rows in the sequence now, those of this pass included */
  size_t q_first;           /* index of the first query row in q/out */
  size_t n_q;               /* query rows; query i stands at position n_rows - n_q + i */
} fl_attn_span;

typedef struct fl_attn {
  size_t n_heads, kv_heads, head_dim; /* n_heads a multiple of kv_heads; head_dim a multiple of 8 */
  size_t k_offset, v_offset;          /* bytes from a page's base to this layer's K and V; kv head h
                                         is at + h * FL_KV_ROWS * head_dim * sizeof(element) */
  bool kv_f16;
  float scale;
  float softcap; /* 0: none */
  size_t window; /* 0: none */
} fl_attn;

/* Bytes of scratch for the calls below with this team (any span lengths). */
size_t fl_attention_scratch(const fl_attn *a, const fl_team *team);

/* out [q rows, n_heads * head_dim] = attention of q, of the same shape (strides ldo, ldq).
 * stat (may be NULL): [q rows, n_heads] gets m + log(l), for the backward. Tiles of (span, kv head,
 * queries) go to threads as they come to need them; heads of one group are split only where threads
 * would be idle. A span may have no queries. */
void fl_attention(const fl_kernels *k, fl_team *team, const fl_attn *a, const fl_attn_span *spans,
                  size_t n_spans, float *out, size_t ldo, const float *q, size_t ldq, float *stat,
                  void *scratch);

/* Backward. dout, out, q, stat as in the forward, kv f32 (training caches are f32).
 *   dq   [q rows, n_heads * head_dim]  =
 *   dkv of span i: dk[i], dv[i] [n_rows, kv_heads, head_dim], rows [0, n_rows) of that sequence, =
 *     (all rows, prefix and own; the caller adds prefix rows to the cartridges' gradients and feeds
 *     own rows to the K/V projections' backward). With dkv_from > 0 rows below it are not computed
 *     (nor written): frozen context.
 * P is recomputed from stat. For each key row the sum runs over query rows ascending, and for each
 * query row over the heads of the group ascending; for dq over key rows ascending within pages,
 * pages ascending. Unit of work: (span, kv head), whole, on one thread; where those are fewer than
 * the threads, dk and dv of single pages and dq of blocks of rows, at 7 products for 5. The chains
 * are the same, so results do not depend on threads or on which other spans are in the call. */
typedef struct fl_attn_grad_span {
  float *dk, *dv;  /* [n_rows - dkv_from, kv_heads, head_dim] */
  size_t dkv_from; /* 0: gradients of all rows */
} fl_attn_grad_span;

void fl_attention_bwd(const fl_kernels *k, fl_team *team, const fl_attn *a,
                      const fl_attn_span *spans, const fl_attn_grad_span *grads, size_t n_spans,
                      float *dq, size_t lddq, const float *dout, size_t lddo, const float *out,
                      size_t ldo, const float *q, size_t ldq, const float *stat, void *scratch);

/* Writes/reads rows in page layout: x [kv_heads, head_dim] for one row, of K (is_key) or V. */
void fl_page_put(const fl_kernels *k, void *page, const fl_attn *a, bool is_key, size_t row_in_page,
                 const float *x);
/* The same for rows [row_in_page, row_in_page + n) of it: x [n, kv_heads, head_dim]. */
void fl_page_put_rows(const fl_kernels *k, void *page, const fl_attn *a, bool is_key,
                      size_t row_in_page, size_t n, const float *x);
void fl_page_get(const fl_kernels *k, const void *page, const fl_attn *a, bool is_key,
                 size_t row_in_page, float *x);

/* Plain C twins in double (for accuracy) over row-major K, V [n_rows, kv_heads, head_dim]. */
void fl_attention_ref(const fl_attn *a, size_t n_rows, size_t n_q, double *out, const float *q,
                      const float *key, const float *val);
void fl_attention_bwd_ref(const fl_attn *a, size_t n_rows, size_t n_q, double *dq, double *dk,
                          double *dv, const float *dout, const float *q, const float *key,
                          const float *val);

#endif
