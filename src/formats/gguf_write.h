/* gguf_write.h - writing GGUF v3 in one pass, tensor by tensor: memory does not grow with the file.
 *
 * The header is made from metadata pairs collected beforehand and from the tensors' names, shapes
 * and types; then their data follow in that order. The file is a temporary one beside `path` until
 * it is committed: a reader sees the old file or the new one whole, and a failure leaves nothing
 * behind.
 */
#ifndef FL_FORMATS_GGUF_WRITE_H
#define FL_FORMATS_GGUF_WRITE_H

#include "base/buf.h"
#include "formats/gguf.h"

/* Metadata pairs to be. Zeroed is empty. A key must not be added twice. */
typedef struct fl_gguf_pairs {
  fl_buf bytes;
  uint64_t n;
} fl_gguf_pairs;
/* From fl_gguf_meta_raw. */
void fl_gguf_pairs_raw(fl_gguf_pairs *p, const uint8_t *pair, size_t n_bytes);
void fl_gguf_pairs_u32(fl_gguf_pairs *p, const char *key, uint32_t value);
void fl_gguf_pairs_f32(fl_gguf_pairs *p, const char *key, float value);
void fl_gguf_pairs_str(fl_gguf_pairs *p, const char *key, const char *value);
void fl_gguf_pairs_release(fl_gguf_pairs *p);

typedef struct fl_gguf_writer fl_gguf_writer;

/* Of the tensors name, shape, type and n_bytes count; offsets follow from the order. The tensors
 * are borrowed until the writer ends. `alignment` must be what the pairs say (32 where they do
 * not). */
int fl_gguf_writer_open(fl_gguf_writer **out, const char *path, const fl_gguf_pairs *pairs,
                        const fl_tensor_info *tensors, size_t n_tensors, uint32_t alignment,
                        fl_err *err);
/* The next bytes of data, tensor after tensor; padding is added where one ends. Errors stick and
 * are told by the commit; bytes beyond the last tensor's are a caller's error and refused. */
int fl_gguf_writer_put(fl_gguf_writer *w, const void *data, size_t n_bytes);
/* The path to read back what was written so far, before the commit; NULL once a write has
 * failed. */
const char *fl_gguf_writer_settle(fl_gguf_writer *w);
/* Fails, and leaves nothing behind, when data are missing. Always frees `w`. */
int fl_gguf_writer_commit(fl_gguf_writer *w, fl_err *err);
void fl_gguf_writer_abandon(fl_gguf_writer *w);

#endif
