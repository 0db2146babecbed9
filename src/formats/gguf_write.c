/* gguf_write.c - see gguf_write.h; the layout stands in gguf.c. */
#include "formats/gguf_write.h"

#include <string.h>

#include "base/fs.h"
#include "base/mem.h"

struct fl_gguf_writer {
  fl_sink *sink;
  char *path;
  const fl_tensor_info *tensors;
  size_t n_tensors, tensor; /* `tensor` takes the next byte */
  size_t done;              /* bytes of it written */
  uint32_t alignment;
  bool wrong; /* more data than the tensors have */
};

static void put_u32(fl_buf *b, uint32_t v) { fl_buf_append(b, &v, sizeof v); }

static void put_u64(fl_buf *b, uint64_t v) { fl_buf_append(b, &v, sizeof v); }

static void put_string(fl_buf *b, const char *s, size_t len) {
  put_u64(b, len);
  fl_buf_append(b, s, len);
}

static void put_key(fl_gguf_pairs *p, const char *key, fl_gguf_type type) {
  put_string(&p->bytes, key, strlen(key));
  put_u32(&p->bytes, type);
  p->n++;
}

void fl_gguf_pairs_raw(fl_gguf_pairs *p, const uint8_t *pair, size_t n_bytes) {
  fl_buf_append(&p->bytes, pair, n_bytes);
  p->n++;
}

void fl_gguf_pairs_u32(fl_gguf_pairs *p, const char *key, uint32_t value) {
  put_key(p, key, FL_GGUF_U32);
  put_u32(&p->bytes, value);
}

void fl_gguf_pairs_f32(fl_gguf_pairs *p, const char *key, float value) {
  put_key(p, key, FL_GGUF_F32);
  fl_buf_append(&p->bytes, &value, sizeof value);
}

void fl_gguf_pairs_str(fl_gguf_pairs *p, const char *key, const char *value) {
  put_key(p, key, FL_GGUF_STR);
  put_string(&p->bytes, value, strlen(value));
}

void fl_gguf_pairs_release(fl_gguf_pairs *p) {
  fl_buf_release(&p->bytes);
  p->n = 0;
}

static size_t padding(size_t at, uint32_t alignment) {
  return (alignment - at % alignment) % alignment;
}

/* Everything before the data; false when the sizes overflow. */
static bool put_header(fl_buf *b, const fl_gguf_pairs *pairs, const fl_tensor_info *t, size_t n,
                       uint32_t alignment) {
  size_t at = 0;
  fl_buf_puts(b, "GGUF");
  put_u32(b, 3);
  put_u64(b, n);
  put_u64(b, pairs->n);
  fl_buf_append(b, pairs->bytes.data, pairs->bytes.len);
  for (size_t i = 0; i < n; i++) {
    put_string(b, t[i].name.data, t[i].name.len);
    put_u32(b, t[i].n_dims);
    for (uint32_t d = 0; d < t[i].n_dims; d++) put_u64(b, t[i].dim[d]);
    put_u32(b, t[i].ggml_type);
    put_u64(b, at);
    if (!fl_add_size(at, t[i].n_bytes, &at) || !fl_add_size(at, padding(at, alignment), &at))
      return false;
  }
  for (size_t pad = padding(b->len, alignment); pad > 0; pad--) fl_buf_putc(b, 0);
  return true;
}

static void writer_free(fl_gguf_writer *w) {
  fl_free(w->path);
  fl_free(w);
}

int fl_gguf_writer_open(fl_gguf_writer **out, const char *path, const fl_gguf_pairs *pairs,
                        const fl_tensor_info *tensors, size_t n_tensors, uint32_t alignment,
                        fl_err *err) {
  fl_buf head = { 0 };
  fl_gguf_writer *w = fl_calloc(1, sizeof *w);
  int rc = FL_OK;
  if (w == NULL) return fl_fail(err, FL_ENOMEM, "%s: no memory to write it", path);
  w->path = fl_strdup(path);
  w->tensors = tensors;
  w->n_tensors = n_tensors;
  w->alignment = alignment;
  if (!put_header(&head, pairs, tensors, n_tensors, alignment))
    rc = fl_fail(err, FL_EFAIL, "%s: its tensors are larger than a file can be", path);
  if (rc == FL_OK && (w->path == NULL || head.oom || pairs->bytes.oom))
    rc = fl_fail(err, FL_ENOMEM, "%s: no memory to write it", path);
  if (rc == FL_OK) rc = fl_fs_open_temp(&w->sink, path, err);
  if (rc == FL_OK) {
    fl_sink_write(w->sink, head.data, head.len);
    *out = w;
  } else {
    writer_free(w);
  }
  fl_buf_release(&head);
  return rc;
}

/* Ends the tensors that have all their data. */
static void end_tensors(fl_gguf_writer *w) {
  static const uint8_t zeros[256];
  while (w->tensor < w->n_tensors && w->done == w->tensors[w->tensor].n_bytes) {
    for (size_t pad = padding(w->done, w->alignment); pad > 0;) {
      size_t n = pad < sizeof zeros ? pad : sizeof zeros;
      fl_sink_write(w->sink, zeros, n);
      pad -= n;
    }
    w->tensor++;
    w->done = 0;
  }
}

int fl_gguf_writer_put(fl_gguf_writer *w, const void *data, size_t n_bytes) {
  const uint8_t *p = data;
  int rc = FL_OK;
  end_tensors(w);
  while (n_bytes > 0 && rc == FL_OK) {
    if (w->tensor == w->n_tensors) {
      w->wrong = true;
      return FL_EFAIL;
    }
    size_t left = w->tensors[w->tensor].n_bytes - w->done, n = n_bytes < left ? n_bytes : left;
    rc = fl_sink_write(w->sink, p, n);
    p += n;
    n_bytes -= n;
    w->done += n;
    end_tensors(w);
  }
  return rc;
}

const char *fl_gguf_writer_settle(fl_gguf_writer *w) { return fl_sink_settle(w->sink); }

int fl_gguf_writer_commit(fl_gguf_writer *w, fl_err *err) {
  int rc;
  end_tensors(w);
  if (fl_sink_settle(w->sink) != NULL && (w->tensor != w->n_tensors || w->wrong)) {
    rc = fl_fail(err, FL_EFAIL, "%s: not written: it got %s data than its tensors have", w->path,
                 w->wrong ? "more" : "less");
    fl_sink_abandon(w->sink);
  } else {
    rc = fl_fs_commit_temp(w->sink, w->path, err);
  }
  writer_free(w);
  return rc;
}

void fl_gguf_writer_abandon(fl_gguf_writer *w) {
  if (w == NULL) return;
  fl_sink_abandon(w->sink);
  writer_free(w);
}
