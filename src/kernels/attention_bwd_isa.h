/* attention_bwd_isa.h - backward attention of one piece of work, of one instruction-set level.
 * Private to this folder.
 *
 * The rows of a piece are queries by heads of one kv head's group, numbered query by query, heads
 * within. A piece is some rows by some pages: the whole of a (span, kv head), or, to spread few of
 * those over many threads, dK and dV of one page (all rows) and dQ of some rows (all pages). Chains
 * run in the same order either way, so the bits are the same.
 */
#ifndef FL_KERNELS_ATTENTION_BWD_ISA_H
#define FL_KERNELS_ATTENTION_BWD_ISA_H

#include "kernels/attention.h"

enum {
  FL_ATTN_BWD_ROWS = 48,   /* rows that are worked on at a time */
  FL_ATTN_BWD_PACKED = 960 /* up to so many rows of a piece are packed once for all its pages */
};

typedef struct fl_attn_piece {
  const fl_attn *a;
  const void *const *pages;
  size_t k_at, v_at;   /* bytes from a page's base to this kv head's K and V */
  size_t n_rows, pos0; /* key rows; absolute position of query 0 */
  size_t n_q, n_h;     /* queries; heads of the group */
  size_t row0, row1;   /* rows taken, of n_q * n_h */
  size_t page0, page1; /* pages taken */
  bool want_dq, want_dkv;
  const float *q, *out, *dout; /* of query 0, first head of the group: + i * ld + h * head_dim */
  float *dq;                   /* likewise; rows taken are overwritten */
  size_t ldq, ldo, lddo, lddq;
  const float *stat; /* likewise: + i * n_heads + h */
  float *dk, *dv;    /* of key row dkv_from: + j * kv_heads * head_dim */
  size_t dkv_from;
  float *scratch; /* fl_attn_piece_floats() */
} fl_attn_piece;

static inline size_t fl_attn_piece_floats(size_t head_dim) {
  return head_dim * 4 * FL_KV_ROWS + FL_ATTN_BWD_PACKED * (2 * head_dim + 1) +
         FL_ATTN_BWD_ROWS * 2 * FL_KV_ROWS;
}

struct fl_attention_bwd_ops {
  void (*piece)(const fl_attn_piece *t);
};

#endif
