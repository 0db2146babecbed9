/* kv.h - key/value rows of sequences, in pages that sequences share.
 *
 * A page holds FL_KV_ROWS consecutive rows of every layer that owns K/V (layout: attention.h). A
 * sequence is a list of pages; page i holds rows [i*FL_KV_ROWS, (i+1)*FL_KV_ROWS). Pages are
 * counted references: a fork shares all whole pages with its origin and copies the last partial
 * one, so the chunk's rows are held once for bot A, bot B and every conversation of a group. A page
 * that is shared is never written.
 *
 * The position of a row is its index in the sequence, until fl_seq_place says where the rows that
 * follow stand: composed cartridges may share positions. Attention goes by index: every row sees
 * all rows before it, and a window counts rows.
 *
 * A pool and its sequences belong to one thread at a time.
 */
#ifndef FL_MODEL_KV_H
#define FL_MODEL_KV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/attention.h"
#include "model/hparams.h"

typedef enum fl_kv_type { FL_KV_F32, FL_KV_F16 } fl_kv_type;

typedef struct fl_kv_layer {
  size_t kv_heads, head_dim;
  size_t k_offset, v_offset; /* bytes within a page */
  bool owned;                /* false: this layer uses another layer's rows */
} fl_kv_layer;

typedef struct fl_kv_pool fl_kv_pool;
typedef struct fl_seq fl_seq;

/* max_bytes 0: no limit but memory. */
int fl_kv_pool_new(fl_kv_pool **out, const fl_hparams *hp, const fl_kernels *kern, fl_kv_type type,
                   size_t max_bytes, fl_err *err);
void fl_kv_pool_free(fl_kv_pool *p); /* its sequences must be freed before */
void fl_kv_pool_trim(fl_kv_pool *p); /* frees the pages that no sequence uses */
fl_kv_type fl_kv_pool_type(const fl_kv_pool *p);
size_t fl_kv_pool_bytes(const fl_kv_pool *p); /* bytes of pages in use */
size_t fl_kv_page_bytes(const fl_kv_pool *p); /* of FL_KV_ROWS rows over all layers */
size_t fl_kv_n_layers(const fl_kv_pool *p);
const fl_kv_layer *fl_kv_layer_at(const fl_kv_pool *p, size_t layer);

int fl_seq_new(fl_seq **out, fl_kv_pool *p, fl_err *err);
/* A sequence that begins with rows [0, n_rows) of src (n_rows <= its length). */
int fl_seq_fork(fl_seq **out, const fl_seq *src, size_t n_rows, fl_err *err);
void fl_seq_free(fl_seq *s);
size_t fl_seq_rows(const fl_seq *s);
void fl_seq_truncate(fl_seq *s, size_t n_rows);
/* The position of the next row. */
size_t fl_seq_position(const fl_seq *s);
/* The next row stands at `position` (<= fl_seq_rows), those behind it follow. A fork keeps this; a
 * fork or truncation to fewer rows than there are now forgets it. */
void fl_seq_place(fl_seq *s, size_t position);
/* Makes room for rows up to n_rows in all, so that appending does not allocate. FL_EFULL when the
 * pool's limit is reached. */
int fl_seq_reserve(fl_seq *s, size_t n_rows, fl_err *err);
fl_kv_pool *fl_seq_pool(const fl_seq *s);
const void *const *fl_seq_pages(const fl_seq *s);

/* Appending from outside (cartridge rows): for every owned layer write k, v [n, kv_heads, head_dim]
 * at rows [first, first + n), then advance once with fl_seq_advance. Room must be reserved. */
void fl_seq_write(fl_seq *s, size_t layer, size_t first, size_t n, const float *k, const float *v);
void fl_seq_advance(fl_seq *s, size_t n);
/* k, v [n, kv_heads, head_dim] = rows [first, first + n) of a layer, widened. */
void fl_seq_read(const fl_seq *s, size_t layer, size_t first, size_t n, float *k, float *v);

#endif
