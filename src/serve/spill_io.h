/* spill_io.h - writing and reading one spill file; private to spill.c. */
#ifndef FL_SERVE_SPILL_IO_H
#define FL_SERVE_SPILL_IO_H

#include "serve/spill.h"

/* What a file must say to be ours. */
typedef struct fl_spill_shape {
  const fl_kv_pool *pool;
  const char *model_hash;
  size_t n_ctx, n_vocab;
} fl_spill_shape;

/* Writes dir/name, what `f` describes with the rows of `seq`, by way of a temporary file; nothing
 * is left behind after a failure. Any thread: it reads rows, f and the shape, and nothing else. */
int fl_spill_write(const fl_spill_shape *shape, const char *dir, const char *name,
                   const fl_spill_file *f, const fl_seq *seq, fl_err *err);
/* Everything but the rows. FL_ENOENT: for another model or cache type; FL_EINPUT: damaged. */
int fl_spill_read_head(const fl_spill_shape *shape, const char *path, fl_spill_file *out,
                       fl_err *err);
/* Checks the whole file, then writes its first n rows behind the prefix's of seq, where room is
 * reserved; its length stays. `file` is what its head said. Any thread, as above. */
int fl_spill_read_rows(const fl_spill_shape *shape, const char *path, const fl_spill_file *file,
                       fl_seq *seq, size_t n, fl_err *err);
void fl_spill_file_release(fl_spill_file *f);

#endif
