/* spill_io.h - writing and reading one spill file; private to spill.c. */
#ifndef FL_SERVE_SPILL_IO_H
#define FL_SERVE_SPILL_IO_H

#include "serve/spill.h"

/* What a file must agree with to be used. */
typedef struct fl_spill_shape {
  fl_kv_type type;
  const fl_kv_layer *layer; /* [n_layers] */
  size_t n_layers;
  const char *model_hash;
  size_t n_ctx, n_vocab;
} fl_spill_shape;

/* Rows that may be taken away while the disk is waited for, and are therefore used only between
 * these two calls. borrow: NULL once they were taken away; otherwise give_back follows. */
typedef struct fl_spill_rows {
  void *ctx;
  fl_seq *(*borrow)(void *ctx);
  void (*give_back)(void *ctx);
} fl_spill_rows;

/* Writes the file that `f` describes into dir, by way of a temporary file, which a failure removes.
 * FL_EBUSY: the rows were taken away. Any thread. */
int fl_spill_write_file(const fl_spill_shape *shape, const char *dir, const fl_spill_file *f,
                        const fl_spill_rows *rows, fl_err *err);
/* Reads everything but the rows. FL_ENOENT: of another model or cache type; FL_EINPUT: damaged. */
int fl_spill_read_head(const fl_spill_shape *shape, const char *path, fl_spill_file *out,
                       fl_err *err);
/* Checks the whole file, which must be what `file` says; then copies its first n rows behind those
 * of the prefix, where room is reserved, without making the sequence longer. FL_EBUSY: the rows
 * were taken away. Any thread. */
int fl_spill_read_rows(const fl_spill_shape *shape, const char *path, const fl_spill_file *file,
                       const fl_spill_rows *rows, size_t n, fl_err *err);
void fl_spill_file_release(fl_spill_file *f);
void fl_spill_file_free(fl_spill_file *f); /* one of fl_calloc; NULL is nothing */

#endif
