/* spill_io.c - the bytes of a spill file. Layout: spill.h. */
#include "serve/spill_io.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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
  char model[FL_HASH_TEXT], digest[FL_HASH_TEXT], key[FL_HASH_TEXT];
} head;
_Static_assert(sizeof(head) == 160, "the head has no gaps");

enum { BLOCK = FL_KV_ROWS };

void fl_spill_file_release(fl_spill_file *f) {
  fl_free(f->name);
  fl_free(f->doc);
  fl_free(f->ids);
  *f = (fl_spill_file){ 0 };
}

void fl_spill_file_free(fl_spill_file *f) {
  if (f != NULL) fl_spill_file_release(f);
  fl_free(f);
}

static size_t value_bytes(const fl_spill_shape *s) { return s->type == FL_KV_F16 ? 2 : 4; }

static size_t layer_width(const fl_spill_shape *s, size_t layer) {
  const fl_kv_layer *l = &s->layer[layer];
  return l->owned ? l->kv_heads * l->head_dim : 0;
}

static size_t widest(const fl_spill_shape *s) {
  size_t most = 0;
  for (size_t l = 0; l < s->n_layers; l++)
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
  head h = { .type = s->type == FL_KV_F16,
             .n = f->n,
             .n_layers = (uint32_t)s->n_layers,
             .prefix_rows = f->prefix_rows,
             .n_docs = (uint32_t)f->n_docs,
             .owner = f->owner };
  memcpy(h.magic, magic, sizeof magic);
  snprintf(h.model, sizeof h.model, "%s", s->model_hash);
  snprintf(h.digest, sizeof h.digest, "%s", f->digest);
  snprintf(h.key, sizeof h.key, "%s", f->key);
  put(w, &h, sizeof h);
  for (size_t l = 0; l < h.n_layers; l++) {
    const fl_kv_layer *k = &s->layer[l];
    const uint32_t shape[2] = { k->owned ? (uint32_t)k->kv_heads : 0,
                                k->owned ? (uint32_t)k->head_dim : 0 };
    put(w, shape, sizeof shape);
  }
  put(w, f->doc, f->n_docs * sizeof *f->doc);
  put(w, f->ids, f->n * sizeof *f->ids);
}

/* k, v: [BLOCK, width]; half: one of them in f16. */
typedef struct block {
  float *k, *v;
  uint16_t *half;
} block;

static int block_init(block *b, const fl_spill_shape *s) {
  size_t n = widest(s) * BLOCK;
  *b = (block){ .k = fl_calloc(n, sizeof *b->k),
                .v = fl_calloc(n, sizeof *b->v),
                .half = fl_calloc(n, sizeof *b->half) };
  return b->k != NULL && b->v != NULL && b->half != NULL ? FL_OK : FL_ENOMEM;
}

static void block_release(block *b) {
  fl_free(b->k);
  fl_free(b->v);
  fl_free(b->half);
}

/* The file's rows of a layer, keys or values. */
static void put_layer(writer *w, const fl_spill_shape *s, const fl_spill_file *f,
                      const fl_spill_rows *rows, size_t layer, bool values, block *b) {
  const size_t width = layer_width(s, layer);
  for (size_t at = 0; at < f->n && w->failed == 0; at += BLOCK) {
    const size_t n = f->n - at < BLOCK ? f->n - at : BLOCK;
    const fl_seq *seq = rows->borrow(rows->ctx);
    if (seq == NULL) {
      w->failed = ECANCELED;
      return;
    }
    fl_seq_read(seq, layer, f->prefix_rows + at, n, b->k, b->v);
    rows->give_back(rows->ctx);
    const float *x = values ? b->v : b->k;
    if (value_bytes(s) == 2) fl_quantise_f16(b->half, x, n * width);
    if (value_bytes(s) == 2) put(w, b->half, n * width * sizeof *b->half);
    else put(w, x, n * width * sizeof *x);
  }
}

static int too_slow(const char *path, fl_err *err) {
  return fl_fail(err, FL_EBUSY, "%s: its disk takes and gives too slowly; see whether it answers",
                 path);
}

static int write_all(const fl_spill_shape *s, const char *path, const fl_spill_file *f,
                     const fl_spill_rows *rows, fl_err *err) {
  block b = { 0 };
  char sum[FL_HASH_TEXT] = "";
  writer w = { .fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) };
  if (w.fd < 0) return fl_fs_fail_errno(err, path, "written", errno);
  w.hash = fl_hasher_new();
  if (w.hash == NULL || block_init(&b, s) != FL_OK) {
    w.failed = ENOMEM;
  } else {
    put_head(&w, s, f);
    for (size_t l = 0; l < s->n_layers; l++)
      for (int values = 0; values < 2 && layer_width(s, l) > 0; values++)
        put_layer(&w, s, f, rows, l, values, &b);
    fl_hasher_text(w.hash, sum);
    put(&w, sum, sizeof sum);
  }
  if (close(w.fd) != 0 && w.failed == 0) w.failed = errno;
  fl_hasher_free(w.hash);
  block_release(&b);
  if (w.failed == ECANCELED) return too_slow(path, err);
  return w.failed == 0 ? FL_OK : fl_fs_fail_errno(err, path, "written", w.failed);
}

int fl_spill_write_file(const fl_spill_shape *shape, const char *dir, const fl_spill_file *f,
                        const fl_spill_rows *rows, fl_err *err) {
  if (rows->borrow(rows->ctx) == NULL) return too_slow(dir, err); /* before it was begun */
  rows->give_back(rows->ctx);
  char *path = fl_fs_join(dir, f->name), *temp = path != NULL ? fl_asprintf("%s.tmp", path) : NULL;
  int rc = FL_ENOMEM;
  if (temp != NULL) {
    (void)fl_fs_remove(temp);
    rc = write_all(shape, temp, f, rows, err);
    if (rc == FL_OK && rename(temp, path) != 0) rc = fl_fs_fail_errno(err, path, "written", errno);
    if (rc != FL_OK) (void)fl_fs_remove(temp);
  }
  fl_free(path);
  fl_free(temp);
  return rc == FL_ENOMEM ? fl_fail(err, rc, "%s: not enough memory to write %s", dir, f->name) : rc;
}

/* --- reading --- */

/* By read(2): in a mapping, a page that cannot be read would end the process. */
typedef struct reader {
  const char *path;
  int fd;
  uint64_t size;
} reader;

static int open_file(reader *r, const char *path, fl_err *err) {
  struct stat st;
  *r = (reader){ .path = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) };
  if (r->fd < 0) return fl_fs_fail_errno(err, path, "opened", errno);
  if (fstat(r->fd, &st) == 0 && S_ISREG(st.st_mode)) {
    r->size = (uint64_t)st.st_size;
    return FL_OK;
  }
  close(r->fd);
  return fl_fail(err, FL_EINPUT, "%s: not a file; it is thrown away", path);
}

static int get(const reader *r, void *to, size_t n, uint64_t at, fl_err *err) {
  for (char *p = to; n > 0;) {
    const ssize_t got = pread(r->fd, p, n, (off_t)at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fl_fs_fail_errno(err, r->path, "read", errno);
    if (got == 0) return fl_fail(err, FL_EINPUT, "%s: cut short; it is thrown away", r->path);
    p += got;
    at += (uint64_t)got;
    n -= (size_t)got;
  }
  return FL_OK;
}

static int damaged(const reader *r, const char *what, fl_err *err) {
  return fl_fail(err, FL_EINPUT, "%s: %s; it is thrown away", r->path, what);
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

static int check_layers(const fl_spill_shape *s, const reader *r, fl_err *err) {
  uint32_t shape[2];
  for (size_t l = 0; l < s->n_layers; l++) {
    const fl_kv_layer *k = &s->layer[l];
    const int rc = get(r, shape, sizeof shape, sizeof(head) + l * sizeof shape, err);
    if (rc != FL_OK) return rc;
    if (shape[0] != (k->owned ? k->kv_heads : 0) || shape[1] != (k->owned ? k->head_dim : 0))
      return damaged(r, "of another geometry", err);
  }
  return FL_OK;
}

static int check_head(const fl_spill_shape *s, const reader *r, head *h, uint64_t *head_bytes,
                      fl_err *err) {
  uint64_t all;
  if (r->size < sizeof *h) return damaged(r, "cut short", err);
  const int rc = get(r, h, sizeof *h, 0, err);
  if (rc != FL_OK) return rc;
  if (memcmp(h->magic, magic, sizeof magic) != 0) return damaged(r, "not a spilled slot", err);
  if (!text_ok(h->model) || !text_ok(h->digest) || !text_ok(h->key))
    return damaged(r, "a damaged head", err);
  if (strcmp(h->model, s->model_hash) != 0 || h->type != (s->type == FL_KV_F16)) return FL_ENOENT;
  if (h->n_layers != s->n_layers || h->n == 0 || h->n > s->n_ctx || h->prefix_rows > s->n_ctx ||
      h->n_docs > FL_PREFIX_DOCS)
    return damaged(r, "counts out of range", err);
  if (!file_bytes(s, h, head_bytes, &all) || all != r->size)
    return damaged(r, "not of the length that its head says", err);
  return check_layers(s, r, err);
}

static int get_lists(const fl_spill_shape *s, const reader *r, const head *h, fl_spill_file *out,
                     fl_err *err) {
  const uint64_t docs = sizeof *h + 8 * (uint64_t)h->n_layers, ids = docs + 4 * (uint64_t)h->n_docs;
  out->doc = fl_calloc(h->n_docs + 1, sizeof *out->doc);
  out->ids = fl_calloc(h->n, sizeof *out->ids);
  if (out->doc == NULL || out->ids == NULL)
    return fl_fail(err, FL_ENOMEM, "%s: not enough memory", r->path);
  int rc = get(r, out->doc, h->n_docs * sizeof *out->doc, docs, err);
  if (rc == FL_OK) rc = get(r, out->ids, h->n * sizeof *out->ids, ids, err);
  for (size_t i = 0; rc == FL_OK && i < h->n; i++)
    if (out->ids[i] < 0 || (size_t)out->ids[i] >= s->n_vocab)
      rc = damaged(r, "tokens outside the vocabulary", err);
  return rc;
}

/* *out = everything but the rows, which begin at *rows_at. */
static int get_head(const fl_spill_shape *s, const reader *r, fl_spill_file *out, uint64_t *rows_at,
                    fl_err *err) {
  head h;
  fl_spill_file f = { 0 };
  int rc = check_head(s, r, &h, rows_at, err);
  if (rc == FL_OK) rc = get_lists(s, r, &h, &f, err);
  if (rc != FL_OK) {
    fl_spill_file_release(&f);
    return rc;
  }
  f.n = (size_t)h.n;
  f.n_docs = h.n_docs;
  f.owner = h.owner;
  f.prefix_rows = (size_t)h.prefix_rows;
  memcpy(f.digest, h.digest, sizeof f.digest);
  memcpy(f.key, h.key, sizeof f.key);
  *out = f;
  return FL_OK;
}

int fl_spill_read_head(const fl_spill_shape *shape, const char *path, fl_spill_file *out,
                       fl_err *err) {
  reader r;
  uint64_t at;
  int rc = open_file(&r, path, err);
  if (rc != FL_OK) return rc;
  rc = get_head(shape, &r, out, &at, err);
  close(r.fd);
  return rc;
}

static int check_same(const fl_spill_shape *s, const reader *r, const fl_spill_file *want,
                      uint64_t *rows_at, fl_err *err) {
  fl_spill_file f = { 0 };
  int rc = get_head(s, r, &f, rows_at, err);
  if (rc == FL_OK &&
      (f.n != want->n || f.prefix_rows != want->prefix_rows ||
       strcmp(f.digest, want->digest) != 0 || memcmp(f.ids, want->ids, f.n * sizeof *f.ids) != 0))
    rc = damaged(r, "not what it was", err);
  fl_spill_file_release(&f);
  return rc;
}

/* Whether the rows are still wanted. Counts as progress of the disk. */
static bool wanted(const fl_spill_rows *rows) {
  const bool are = rows->borrow(rows->ctx) != NULL;
  if (are) rows->give_back(rows->ctx);
  return are;
}

static int check_sum(const reader *r, const fl_spill_rows *rows, fl_err *err) {
  enum { PIECE = 1 << 18 };
  char is[FL_HASH_TEXT] = "", says[FL_HASH_TEXT] = "";
  const uint64_t end = r->size - FL_HASH_TEXT;
  fl_hasher *hash = fl_hasher_new();
  char *piece = fl_malloc(PIECE);
  int rc = hash != NULL && piece != NULL
               ? FL_OK
               : fl_fail(err, FL_ENOMEM, "%s: not enough memory", r->path);
  for (uint64_t at = 0; rc == FL_OK && at < end; at += PIECE) {
    const size_t n = end - at < PIECE ? (size_t)(end - at) : PIECE;
    rc = get(r, piece, n, at, err);
    if (rc == FL_OK && !wanted(rows)) rc = too_slow(r->path, err);
    if (rc == FL_OK) fl_hasher_add(hash, piece, n);
  }
  if (rc == FL_OK) rc = get(r, says, sizeof says, end, err);
  if (rc == FL_OK) {
    fl_hasher_text(hash, is);
    if (memcmp(is, says, sizeof is) != 0) rc = damaged(r, "its checksum is wrong", err);
  }
  fl_hasher_free(hash);
  fl_free(piece);
  return rc;
}

/* x[n] = the values at byte `at`. */
static int get_values(const fl_spill_shape *s, const reader *r, float *x, uint64_t at, size_t n,
                      block *b, fl_err *err) {
  const bool half = value_bytes(s) == 2;
  int rc = half ? get(r, b->half, n * sizeof *b->half, at, err) : get(r, x, n * sizeof *x, at, err);
  if (rc == FL_OK && half) fl_dequantise_f16(x, b->half, n);
  for (size_t i = 0; rc == FL_OK && i < n; i++)
    if (!isfinite(x[i])) rc = damaged(r, "rows that are not finite", err);
  return rc;
}

/* Copies the first n rows; the file's rows begin at byte `from`. */
static int get_rows(const fl_spill_shape *s, const reader *r, uint64_t from,
                    const fl_spill_file *file, const fl_spill_rows *rows, size_t n, block *b,
                    fl_err *err) {
  int rc = FL_OK;
  for (size_t l = 0; l < s->n_layers; l++) {
    const size_t width = layer_width(s, l), row = width * value_bytes(s);
    for (size_t at = 0; width > 0 && at < n; at += BLOCK) {
      const size_t count = n - at < BLOCK ? n - at : BLOCK;
      const uint64_t k = from + at * row, v = k + file->n * row;
      rc = get_values(s, r, b->k, k, count * width, b, err);
      if (rc == FL_OK) rc = get_values(s, r, b->v, v, count * width, b, err);
      if (rc != FL_OK) return rc;
      fl_seq *seq = rows->borrow(rows->ctx);
      if (seq == NULL) return too_slow(r->path, err);
      fl_seq_write(seq, l, file->prefix_rows + at, count, b->k, b->v);
      rows->give_back(rows->ctx);
    }
    from += 2 * file->n * row;
  }
  return rc;
}

int fl_spill_read_rows(const fl_spill_shape *shape, const char *path, const fl_spill_file *file,
                       const fl_spill_rows *rows, size_t n, fl_err *err) {
  reader r;
  block b = { 0 };
  uint64_t at = 0;
  if (!wanted(rows)) return too_slow(path, err); /* before it was begun */
  int rc = open_file(&r, path, err);
  if (rc != FL_OK) return rc;
  rc = check_same(shape, &r, file, &at, err);
  if (rc == FL_OK && n > file->n) rc = damaged(&r, "not what it was", err);
  if (rc == FL_OK) rc = check_sum(&r, rows, err);
  if (rc == FL_OK && block_init(&b, shape) != FL_OK)
    rc = fl_fail(err, FL_ENOMEM, "%s: not enough memory", path);
  if (rc == FL_OK) rc = get_rows(shape, &r, at, file, rows, n, &b, err);
  block_release(&b);
  close(r.fd);
  return rc;
}
