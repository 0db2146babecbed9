/* attention_isa.h - attention of one tile, of one instruction-set level. Private to this folder.
 *
 * A tile is n_q consecutive queries of one span by n_h heads of one kv head's group; its rows are
 * numbered query by query, heads within. attention.c cuts the work into tiles and the bits do not
 * depend on how it does.
 */
#ifndef FL_KERNELS_ATTENTION_ISA_H
#define FL_KERNELS_ATTENTION_ISA_H

#include "kernels/attention.h"

enum { FL_ATTN_ROWS = 48 /* most rows of a tile, unless one query's group has more heads */ };

typedef struct fl_attn_tile {
  const fl_attn *a;
  const void *const *pages;
  size_t k_at, v_at; /* bytes from a page's base to this kv head's K and V */
  size_t n_q, n_h;   /* n_q * n_h <= FL_ATTN_ROWS */
  size_t pos0;       /* absolute position of the first query */
  const float *q;    /* of query 0, head 0 of the tile: + i * ldq + h * head_dim */
  float *out;        /* likewise, ldo */
  float *stat;       /* likewise, + i * n_heads + h; may be NULL */
  size_t ldq, ldo;
  float *scratch; /* fl_attn_tile_floats() */
} fl_attn_tile;

static inline size_t fl_attn_tile_floats(size_t head_dim) {
  return FL_ATTN_ROWS * (head_dim + FL_KV_ROWS + 3) + FL_KV_ROWS * head_dim;
}

struct fl_attention_ops {
  void (*tile)(const fl_attn_tile *t);
};

#endif
