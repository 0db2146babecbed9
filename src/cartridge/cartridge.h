/* cartridge.h - trained key/value rows that stand for one document.
 *
 * Rows [n_rows, kv_heads, head_dim] f32 per layer that owns K/V, position-major; keys after
 * q/k-norm and RoPE at positions 0..n_rows-1, values raw. Rows before `frozen` (the sink) are never
 * trained; they are the first rows of the same arrays. Layers that share another layer's K/V have
 * k == v == NULL. arXiv 2506.06266, section 3.
 */
#ifndef FL_CARTRIDGE_CARTRIDGE_H
#define FL_CARTRIDGE_CARTRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/kv.h"
#include "model/pass.h"

typedef struct fl_rows { /* one set of per-layer arrays: rows, a gradient, a moment */
  size_t n_layers, n_rows;
  size_t *width;    /* [n_layers] kv_heads * head_dim; 0 where the layer owns no rows */
  size_t *kv_heads; /* [n_layers]; 0 where the layer owns no rows */
  float **k, **v;   /* [n_layers] -> [n_rows, kv_heads, head_dim]; NULL where width is 0 */
  float *block;     /* the one allocation behind them; each array begins at FL_ALIGN */
  size_t n_values;  /* floats in block, the zeros that pad the arrays included */
  bool in_file;     /* the block is scratch (scratch.h) */
} fl_rows;

/* Zeroed arrays. Refused: 0 rows, no layer with rows (FL_EINPUT). */
int fl_rows_init(fl_rows *r, const fl_hparams *hp, size_t n_rows, fl_err *err);
/* As fl_rows_init with the layers of `shape` instead of a model's. */
int fl_rows_like(fl_rows *r, const fl_rows *shape, size_t n_rows, fl_err *err);
/* As fl_rows_init with the layers given as arrays [n_layers]. */
int fl_rows_init_shape(fl_rows *r, size_t n_layers, const size_t *kv_heads, const size_t *width,
                       size_t n_rows, fl_err *err);
void fl_rows_release(fl_rows *r);
/* Moves the block to a nameless file of folder dir; where there can be none it stays in memory. */
void fl_rows_to_file(fl_rows *r, const char *dir);
/* Bytes in memory of a cartridge's rows. */
uint64_t fl_rows_bytes(const fl_hparams *hp, uint64_t rows);
/* Not needed for a while: what lies in a file leaves memory; of all layers, or of one. */
void fl_rows_evict_pages(const fl_rows *r);
void fl_rows_evict_pages_layer(const fl_rows *r, size_t layer);

typedef struct fl_cartridge {
  fl_rows rows;
  size_t frozen;  /* <= rows.n_rows - 1 */
  uint64_t steps; /* optimizer steps since birth */
  size_t first;   /* position of row 0: not 0 only after a capture from the middle */
} fl_cartridge;

/* Where the parts of a composition stand, and so what follows them. A cartridge's own rows are
 * always at the positions it was made at; the question is the distance from them to the text.
 * sequential: the text follows all rows, at a position of their number: the parts but the last are
 *   further from it than they were in training (arXiv 2606.04557 and the systems that follow it).
 * shared: the text follows the part that ends last, so that every part is as near as it was alone;
 *   the order of the parts then makes no difference but by rounding. */
typedef enum fl_positions { FL_POS_SEQUENTIAL, FL_POS_SHARED } fl_positions;

void fl_cartridge_release(fl_cartridge *c);

/* Birth: the model's own K/V over the system message that wraps the document (fl_wrapped_system).
 * Longer than p: cut to p with the closing ids kept; shorter: a cartridge of its own length.
 * frozen >= length is FL_EINPUT. pool: f32. */
int fl_cartridge_birth(fl_cartridge *out, fl_pass *pass, fl_kv_pool *pool, const char *doc,
                       size_t doc_len, size_t p, size_t frozen, fl_err *err);
/* From a capture: rows [first, first + n) of a sequence. */
int fl_cartridge_capture(fl_cartridge *out, const fl_hparams *hp, const fl_seq *seq, size_t first,
                         size_t n, size_t frozen, fl_err *err);
/* Appends the ids of the wrapped system message of a text (what birth and self-study both use):
 * head, text, "\n</document>" as one system turn, tokenised in one piece, so that they equal the
 * ids of the same message in a chat. Cut to max_ids (0: whole) with the closing ids
 * ("\n</document>" and the turn's close) kept; FL_EUSAGE when max_ids has no room for a row before
 * them. A user turn that follows is rendered with after_system = true, behind cartridges too. */
int fl_wrapped_system(fl_ids *out, const fl_model *m, const char *doc, size_t doc_len,
                      size_t max_ids, fl_err *err);
/* What stands around the text, for those who send the message elsewhere. */
extern const char fl_wrap_head[], fl_wrap_tail[];

/* The position of what follows a cartridge that is composed where the next row was to stand at
 * `here`. */
size_t fl_position_after(const fl_cartridge *c, size_t here, fl_positions positions);
/* Appends the parts' rows to seq in order (composition); may be called again for more parts.
 * Geometry must fit: FL_EINPUT. */
int fl_compose(fl_seq *seq, const fl_cartridge *const *parts, size_t n_parts,
               fl_positions positions, fl_err *err);
/* FL_EINPUT with a sentence unless the rows fit the model's layers. */
int fl_cartridge_fits(const fl_cartridge *c, const fl_hparams *hp, const char *what, fl_err *err);

#endif
