/* spill_io.c - the bytes of a spill file. Layout: spill.h. */
#include "serve/spill_io.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "formats/quant.h"

static const char magic[8] = "FLSLOT1\n";

typedef struct head {
  char magic[8];
  uint32_t type, n_layers;
  uint64_t n, prefix_rows;
  uint32_t n_docs, owner;
  char model[FL_HASH_TEXT], print[FL_HASH_TEXT], key[FL_HASH_TEXT];
} head;
_Static_assert(sizeof(head) == 160, "the head has no gaps");

enum { BLOCK = FL_KV_ROWS };

void fl_spill_file_release(fl_spill_file *f) {
  fl_free(f->name);
  fl_free(f->doc);
  fl_free(f->ids);
  *f = (fl_spill_file){ 0 };
}

static size_t value_bytes(const fl_spill_shape *s) {
  return fl_kv_pool_type(s->pool) == FL_KV_F16 ? 2 : 4;
}

static size_t layer_width(const fl_spill_shape *s, size_t layer) {
  const fl_kv_layer *l = fl_kv_layer_at(s->pool, layer);
  return l->owned ? l->kv_heads * l->head_dim : 0;
}

static size_t widest(const fl_spill_shape *s) {
  size_t most = 0;
  for (size_t l = 0; l < fl_kv_n_layers(s->pool); l++)
    if (layer_width(s, l) > most) most = layer_width(s, l);
  return most;
}

/* --- writing --- */

typedef struct writer {
  int fd;
  fl_hasher *hash;
  int failed; /* errno */
} writer;

static void put(writer *w, const void *data, size_t n) {
  const char *p = data;
  fl_hasher_add(w->hash, data, n);
  while (n > 0 && w->failed == 0) {
    ssize_t done = write(w->fd, p, n);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      w->failed = done < 0 ? errno : ENOSPC;
      return;
    }
    p += done;
    n -= (size_t)done;
  }
}

static void put_head(writer *w, const fl_spill_shape *s, const fl_spill_file *f) {
  head h = { .type = fl_kv_pool_type(s->pool) == FL_KV_F16, .n = f->n,
             .n_layers = (uint32_t)fl_kv_n_layers(s->pool), .prefix_rows = f->prefix_rows,
             .n_docs = (uint32_t)f->n_docs, .owner = f->owner };
  memcpy(h.magic, magic, sizeof magic);
  snprintf(h.model, sizeof h.model, "%s", s->model_hash);
  snprintf(h.print, sizeof h.print, "%s", f->print);
  snprintf(h.key, sizeof h.key, "%s", f->key);
  put(w, &h, sizeof h);
  for (size_t l = 0; l < h.n_layers; l++) {
    const fl_kv_layer *k = fl_kv_layer_at(s->pool, l);
    const uint32_t shape[2] = { k->owned ? (uint32_t)k->kv_heads : 0,
                                k->owned ? (uint32_t)k->head_dim : 0 };
    put(w, shape, sizeof shape);
  }
  put(w, f->doc, f->n_docs * sizeof *f->doc);
  put(w, f->ids, f->n * sizeof *f->ids);
}

/* k, v [BLOCK, width] and room for one of them in f16. */
typedef struct block {
  float *k, *v;
  uint16_t *half;
} block;

static int block_init(block *b, const fl_spill_shape *s) {
  size_t n = widest(s) * BLOCK;
  *b = (block){ .k = fl_calloc(n, sizeof *b->k), .v = fl_calloc(n, sizeof *b->v),
                .half = fl_calloc(n, sizeof *b->half) };
  return b->k != NULL && b->v != NULL && b->half != NULL ? FL_OK : FL_ENOMEM;
}

static void block_release(block *b) {
  fl_free(b->k);
  fl_free(b->v);
  fl_free(b->half);
}

/* Rows [first, first + n_rows) of a layer, keys or values. */
static void put_layer(writer *w, const fl_spill_shape *s, const fl_seq *seq, size_t first,
                      size_t n_rows, size_t layer, bool values, block *b) {
  const size_t width = layer_width(s, layer);
  for (size_t at = 0; at < n_rows && w->failed == 0; at += BLOCK) {
    size_t n = n_rows - at < BLOCK ? n_rows - at : BLOCK;
    fl_seq_read(seq, layer, first + at, n, b->k, b->v);
    const float *x = values ? b->v : b->k;
    if (value_bytes(s) == 2) fl_quantise_f16(b->half, x, n * width);
    if (value_bytes(s) == 2) put(w, b->half, n * width * sizeof *b->half);
    else put(w, x, n * width * sizeof *x);
  }
}

static int write_all(const fl_spill_shape *s, const char *path, const fl_spill_file *f,
                     const fl_seq *seq, fl_err *err) {
  block b = { 0 };
  char sum[FL_HASH_TEXT] = "";
  writer w = { .fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) };
  if (w.fd < 0) return fl_fs_fail_errno(err, path, "written", errno);
  w.hash = fl_hasher_new();
  if (w.hash == NULL || block_init(&b, s) != FL_OK) {
    w.failed = ENOMEM;
  } else {
    put_head(&w, s, f);
    for (size_t l = 0; l < fl_kv_n_layers(s->pool); l++)
      for (int values = 0; values < 2 && layer_width(s, l) > 0; values++)
        put_layer(&w, s, seq, f->prefix_rows, f->n, l, values, &b);
    fl_hasher_text(w.hash, sum);
    put(&w, sum, sizeof sum);
  }
  if (close(w.fd) != 0 && w.failed == 0) w.failed = errno;
  fl_hasher_free(w.hash);
  block_release(&b);
  return w.failed == 0 ? FL_OK : fl_fs_fail_errno(err, path, "written", w.failed);
}

int fl_spill_write(const fl_spill_shape *shape, const char *dir, const char *name,
                   const fl_spill_file *f, const fl_seq *seq, fl_err *err) {
  char *path = fl_fs_join(dir, name), *temp = path != NULL ? fl_asprintf("%s.tmp", path) : NULL;
  int rc = FL_ENOMEM;
  if (temp != NULL) {
    (void)fl_fs_remove(temp);
    rc = write_all(shape, temp, f, seq, err);
    if (rc == FL_OK && rename(temp, path) != 0)
      rc = fl_fs_fail_errno(err, path, "written", errno);
    if (rc != FL_OK) (void)fl_fs_remove(temp);
  }
  fl_free(path);
  fl_free(temp);
  return rc == FL_ENOMEM ? fl_fail(err, rc, "%s: not enough memory to write %s", dir, name) : rc;
}

/* --- reading --- */

static int damaged(const char *path, const char *what, fl_err *err) {
  return fl_fail(err, FL_EINPUT, "%s: %s; it is thrown away", path, what);
}

static bool text_ok(const char *s) { return memchr(s, '\0', FL_HASH_TEXT) != NULL; }

/* Bytes of the file whose head this is; false on overflow. The counts are bounded before. */
static bool file_bytes(const fl_spill_shape *s, const head *h, uint64_t *head_bytes,
                       uint64_t *all) {
  uint64_t row = 0, body;
  for (size_t l = 0; l < h->n_layers; l++) row += 2 * layer_width(s, l) * value_bytes(s);
  *head_bytes = sizeof *h + 8 * (uint64_t)h->n_layers + 4 * (uint64_t)h->n_docs + 4 * h->n;
  return !__builtin_mul_overflow(row, h->n, &body) &&
         !__builtin_add_overflow(body, *head_bytes + FL_HASH_TEXT, all);
}

static bool same_layers(const fl_spill_shape *s, const uint8_t *at) {
  for (size_t l = 0; l < fl_kv_n_layers(s->pool); l++, at += 8) {
    const fl_kv_layer *k = fl_kv_layer_at(s->pool, l);
    uint32_t shape[2];
    memcpy(shape, at, sizeof shape);
    if (shape[0] != (k->owned ? k->kv_heads : 0) || shape[1] != (k->owned ? k->head_dim : 0))
      return false;
  }
  return true;
}

static int check_head(const fl_spill_shape *s, const char *path, const fl_map *m, head *h,
                      uint64_t *head_bytes, fl_err *err) {
  uint64_t all;
  if (m->size < sizeof *h) return damaged(path, "cut short", err);
  memcpy(h, m->data, sizeof *h);
  if (memcmp(h->magic, magic, sizeof magic) != 0) return damaged(path, "not a spilled slot", err);
  if (!text_ok(h->model) || !text_ok(h->print) || !text_ok(h->key))
    return damaged(path, "a damaged head", err);
  if (strcmp(h->model, s->model_hash) != 0 ||
      h->type != (fl_kv_pool_type(s->pool) == FL_KV_F16))
    return FL_ENOENT;
  if (h->n_layers != fl_kv_n_layers(s->pool) || h->n == 0 || h->n > s->n_ctx ||
      h->prefix_rows > s->n_ctx || h->n_docs > FL_PREFIX_DOCS)
    return damaged(path, "counts out of range", err);
  if (!file_bytes(s, h, head_bytes, &all) || all != m->size)
    return damaged(path, "not of the length that its head says", err);
  if (!same_layers(s, m->data + sizeof *h)) return damaged(path, "of another geometry", err);
  return FL_OK;
}

static int copy_lists(const fl_spill_shape *s, const char *path, const fl_map *m, const head *h,
                      fl_spill_file *out, fl_err *err) {
  const uint8_t *docs = m->data + sizeof *h + 8 * (size_t)h->n_layers;
  out->doc = fl_calloc(h->n_docs + 1, sizeof *out->doc);
  out->ids = fl_calloc(h->n, sizeof *out->ids);
  if (out->doc == NULL || out->ids == NULL)
    return fl_fail(err, FL_ENOMEM, "%s: not enough memory", path);
  memcpy(out->doc, docs, h->n_docs * sizeof *out->doc);
  memcpy(out->ids, docs + 4 * (size_t)h->n_docs, h->n * sizeof *out->ids);
  for (size_t i = 0; i < h->n; i++)
    if (out->ids[i] < 0 || (size_t)out->ids[i] >= s->n_vocab)
      return damaged(path, "tokens outside the vocabulary", err);
  return FL_OK;
}

int fl_spill_read_head(const fl_spill_shape *shape, const char *path, fl_spill_file *out,
                       fl_err *err) {
  fl_map m = { 0 };
  head h;
  uint64_t bytes;
  fl_spill_file f = { 0 };
  int rc = fl_map_open(&m, path, err);
  if (rc != FL_OK) return rc;
  rc = check_head(shape, path, &m, &h, &bytes, err);
  if (rc == FL_OK) rc = copy_lists(shape, path, &m, &h, &f, err);
  if (rc == FL_OK) {
    f.n = (size_t)h.n;
    f.n_docs = h.n_docs;
    f.owner = h.owner;
    f.prefix_rows = (size_t)h.prefix_rows;
    memcpy(f.print, h.print, sizeof f.print);
    memcpy(f.key, h.key, sizeof f.key);
    *out = f;
  } else {
    fl_spill_file_release(&f);
  }
  fl_map_close(&m);
  return rc;
}

/* x[n] = values at `from`; false when one is not finite. */
static bool get_values(const fl_spill_shape *s, float *x, const uint8_t *from, size_t n, block *b) {
  if (value_bytes(s) == 2) {
    memcpy(b->half, from, n * sizeof *b->half);
    fl_dequantise_f16(x, b->half, n);
  } else {
    memcpy(x, from, n * sizeof *x);
  }
  for (size_t i = 0; i < n; i++)
    if (!isfinite(x[i])) return false;
  return true;
}

static int get_rows(const fl_spill_shape *s, const char *path, const uint8_t *from,
                    const fl_spill_file *file, fl_seq *seq, size_t n, block *b, fl_err *err) {
  const size_t first = file->prefix_rows, bytes = value_bytes(s);
  for (size_t l = 0; l < fl_kv_n_layers(s->pool); l++) {
    const size_t width = layer_width(s, l), plane = file->n * width * bytes;
    for (size_t at = 0; width > 0 && at < n; at += BLOCK) {
      size_t rows = n - at < BLOCK ? n - at : BLOCK, off = at * width * bytes;
      if (!get_values(s, b->k, from + off, rows * width, b) ||
          !get_values(s, b->v, from + plane + off, rows * width, b))
        return damaged(path, "rows that are not finite", err);
      fl_seq_write(seq, l, first + at, rows, b->k, b->v);
    }
    from += 2 * plane;
  }
  return FL_OK;
}

int fl_spill_read_rows(const fl_spill_shape *shape, const char *path, const fl_spill_file *file,
                       fl_seq *seq, size_t n, fl_err *err) {
  fl_map m = { 0 };
  head h;
  block b = { 0 };
  uint64_t bytes = 0;
  char sum[FL_HASH_TEXT] = "";
  int rc = fl_map_open(&m, path, err);
  if (rc != FL_OK) return rc;
  rc = check_head(shape, path, &m, &h, &bytes, err);
  if (rc == FL_OK && (h.n != file->n || strcmp(h.print, file->print) != 0 || n > h.n ||
                      h.prefix_rows != file->prefix_rows))
    rc = damaged(path, "not what it was", err);
  if (rc == FL_OK) fl_hash_bytes(sum, m.data, m.size - FL_HASH_TEXT);
  if (rc == FL_OK && memcmp(sum, m.data + m.size - FL_HASH_TEXT, FL_HASH_TEXT) != 0)
    rc = damaged(path, "its checksum is wrong", err);
  if (rc == FL_OK && memcmp(m.data + bytes - 4 * file->n, file->ids, 4 * file->n) != 0)
    rc = damaged(path, "not what it was", err);
  if (rc == FL_OK && block_init(&b, shape) != FL_OK)
    rc = fl_fail(err, FL_ENOMEM, "%s: not enough memory", path);
  if (rc == FL_OK) rc = get_rows(shape, path, m.data + bytes, file, seq, n, &b, err);
  block_release(&b);
  fl_map_close(&m);
  return rc;
}
