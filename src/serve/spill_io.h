/* spill_io.h - writing and reading one spill file; private to spill.c. */
#ifndef FL_SERVE_SPILL_IO_H
#define FL_SERVE_SPILL_IO_H

#include "serve/spill.h"

/* What a file must say to be ours. */
typedef struct fl_spill_shape {
  fl_kv_type type;
  const fl_kv_layer *layer; /* [n_layers] */
  size_t n_layers;
  const char *model_hash;
  size_t n_ctx, n_vocab;
} fl_spill_shape;

/* Rows that may be taken away while the disk is waited for: they are looked at between two calls,
 * and not kept. borrow: NULL when they have gone; otherwise give_back follows. */
typedef struct fl_spill_rows {
  void *ctx;
  fl_seq *(*borrow)(void *ctx);
  void (*give_back)(void *ctx);
} fl_spill_rows;

/* Writes what `f` describes with its rows under its name in dir, by way of a temporary file;
 * nothing is left behind after a failure. FL_EBUSY: the rows have gone. Any thread. */
int fl_spill_write_file(const fl_spill_shape *shape, const char *dir, const fl_spill_file *f,
                        const fl_spill_rows *rows, fl_err *err);
/* Everything but the rows. FL_ENOENT: for another model or cache type; FL_EINPUT: damaged. */
int fl_spill_read_head(const fl_spill_shape *shape, const char *path, fl_spill_file *out,
                       fl_err *err);
/* Checks the whole file, then writes its first n rows behind the prefix's of the rows, where room
 * is reserved; their length stays. `file` is what its head said. FL_EBUSY: they have gone. Any
 * thread. */
int fl_spill_read_rows(const fl_spill_shape *shape, const char *path, const fl_spill_file *file,
                       const fl_spill_rows *rows, size_t n, fl_err *err);
void fl_spill_file_release(fl_spill_file *f);
void fl_spill_file_free(fl_spill_file *f); /* one of fl_calloc; NULL is nothing */

#endif
