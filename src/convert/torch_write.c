/* torch_write.c - a cartridge as torch.save writes it, in the layout of HazyResearch/cartridges.
 *
 * A zip file without compression: data.pkl, byteorder, data/0, data/1, ..., version. The pickle
 * (protocol 2) is a dict of four lists, trainable_keys, trainable_values, fixed_keys, fixed_values,
 * with a float tensor [1, kv_heads, rows, head_dim] for each layer; fixed lists are empty where
 * nothing is frozen. Values lie at multiples of 64 bytes, as torch has them.
 *
 * Files of the llama family keep the dimensions of a key in pairs that are rotated together;
 * torch's models have the first of all pairs before the second ones. */
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "convert/convert.h"
#include "convert/shape.h"

enum { LISTS = 4, ALIGN = 64, ENTRY_MAX = 4 * FL_MAX_LAYERS + 3 };

static const char folder[] = "cartridge";
static const char *const list_names[LISTS] = { "trainable_keys", "trainable_values", "fixed_keys",
                                               "fixed_values" };

typedef struct entry { /* of the zip's directory */
  char name[48];
  uint32_t crc, size, at;
} entry;

typedef struct torch {
  fl_sink *out;
  const fl_cartridge *c;
  size_t heads, dim, half; /* half: pairs of a key; 0: they need no sorting */
  size_t n_layers;
  uint64_t at; /* bytes written */
  uint32_t crc[256];
  entry *entry;
  size_t n_entries;
  float *tensor; /* [rows, width] */
} torch;

/* --- zip ----------------------------------------------------------------------------------- */

static void make_crc(uint32_t *table) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t v = i;
    for (int k = 0; k < 8; k++) v = v & 1 ? 0xEDB88320u ^ v >> 1 : v >> 1;
    table[i] = v;
  }
}

static uint32_t crc_of(const torch *t, const void *data, size_t n) {
  const uint8_t *p = data;
  uint32_t v = UINT32_MAX;
  for (size_t i = 0; i < n; i++) v = t->crc[(v ^ p[i]) & 255] ^ v >> 8;
  return ~v;
}

static void put(torch *t, const void *data, size_t n) {
  fl_sink_write(t->out, data, n);
  t->at += n;
}

static void put_u16(torch *t, size_t v) {
  const uint16_t x = (uint16_t)v;
  put(t, &x, sizeof x);
}

static void put_u32(torch *t, uint32_t v) { put(t, &v, sizeof v); }

/* What a local and a directory header share: from the version needed to the name's length. */
static void put_common(torch *t, const entry *e) {
  put_u16(t, 0);          /* flags */
  put_u16(t, 0);          /* stored */
  put_u32(t, 0x00210000); /* the first of January 1980: equal cartridges give equal files */
  put_u32(t, e->crc);
  put_u32(t, e->size);
  put_u32(t, e->size);
  put_u16(t, strlen(e->name));
}

static void put_file(torch *t, const char *name, const void *data, size_t n) {
  static const char zero[2 * ALIGN] = "";
  entry *e = &t->entry[t->n_entries++];
  snprintf(e->name, sizeof e->name, "%s/%s", folder, name);
  e->crc = crc_of(t, data, n);
  e->size = (uint32_t)n;
  e->at = (uint32_t)t->at;
  const uint64_t begins = t->at + 30 + strlen(e->name) + 4;
  const size_t pad = (size_t)((ALIGN - begins % ALIGN) % ALIGN);
  put(t, "PK\3\4", 4);
  put_u16(t, 10);
  put_common(t, e);
  put_u16(t, 4 + pad); /* an extra field that says nothing */
  put(t, e->name, strlen(e->name));
  put(t, "FB", 2);
  put_u16(t, pad);
  put(t, zero, pad);
  put(t, data, n);
}

static void put_directory(torch *t) {
  const uint32_t at = (uint32_t)t->at;
  for (size_t i = 0; i < t->n_entries; i++) {
    const entry *e = &t->entry[i];
    put(t, "PK\1\2", 4);
    put_u16(t, 10);
    put_u16(t, 10);
    put_common(t, e);
    put_u16(t, 0); /* extra field, comment, disk, attributes */
    put_u16(t, 0);
    put_u16(t, 0);
    put_u16(t, 0);
    put_u32(t, 0);
    put_u32(t, e->at);
    put(t, e->name, strlen(e->name));
  }
  const uint32_t size = (uint32_t)(t->at - at);
  put(t, "PK\5\6", 4);
  put_u32(t, 0); /* disks */
  put_u16(t, t->n_entries);
  put_u16(t, t->n_entries);
  put_u32(t, size);
  put_u32(t, at);
  put_u16(t, 0); /* comment */
}

/* --- pickle -------------------------------------------------------------------------------- */

static void say_text(fl_buf *b, const char *s) {
  const uint32_t n = (uint32_t)strlen(s);
  fl_buf_putc(b, 'X');
  fl_buf_append(b, &n, sizeof n);
  fl_buf_append(b, s, n);
}

static void say_int(fl_buf *b, size_t v) {
  const int32_t x = (int32_t)v;
  fl_buf_putc(b, 'J');
  fl_buf_append(b, &x, sizeof x);
}

static void say_ints(fl_buf *b, const size_t *v, size_t n) {
  fl_buf_putc(b, '(');
  for (size_t i = 0; i < n; i++) say_int(b, v[i]);
  fl_buf_putc(b, 't');
}

/* Tensor of storage number `key`. */
static void say_tensor(fl_buf *b, const torch *t, size_t key, size_t rows) {
  const size_t size[] = { 1, t->heads, rows, t->dim };
  const size_t stride[] = { t->heads * rows * t->dim, rows * t->dim, t->dim, 1 };
  char name[24];
  snprintf(name, sizeof name, "%zu", key);
  fl_buf_puts(b, "ctorch._utils\n_rebuild_tensor_v2\n((");
  say_text(b, "storage");
  fl_buf_puts(b, "ctorch\nFloatStorage\n");
  say_text(b, name);
  say_text(b, "cpu");
  say_int(b, stride[0]);
  fl_buf_puts(b, "tQ"); /* a persistent id: the storage */
  say_int(b, 0);
  say_ints(b, size, 4);
  say_ints(b, stride, 4);
  fl_buf_puts(b, "\x89"
                 "ccollections\nOrderedDict\n)RtR"); /* no gradient, no hooks */
}

static size_t rows_of(const torch *t, size_t list) {
  return list < 2 ? t->c->rows.n_rows - t->c->frozen : t->c->frozen;
}

static void say_all(fl_buf *b, const torch *t) {
  size_t key = 0;
  fl_buf_append(b, "\x80\2}(", 4);
  for (size_t list = 0; list < LISTS; list++) {
    say_text(b, list_names[list]);
    fl_buf_puts(b, "](");
    for (size_t l = 0; rows_of(t, list) > 0 && l < t->n_layers; l++)
      say_tensor(b, t, key++, rows_of(t, list));
    fl_buf_putc(b, 'e');
  }
  fl_buf_puts(b, "u.");
}

/* --- values -------------------------------------------------------------------------------- */

/* One head of one row, with the pairs of a key sorted. */
static void copy_head(const torch *t, float *to, const float *from, bool key) {
  memcpy(to, from, t->dim * sizeof *to);
  for (size_t i = 0; key && i < t->half; i++) {
    to[i] = from[2 * i];
    to[t->half + i] = from[2 * i + 1];
  }
}

/* t->tensor [heads, rows, dim] of a layer in a list; returns its bytes. */
static size_t fill(torch *t, size_t list, size_t layer) {
  const fl_rows *r = &t->c->rows;
  const bool key = list % 2 == 0;
  const size_t first = list < 2 ? t->c->frozen : 0, n = rows_of(t, list), width = r->width[layer];
  const float *from = (key ? r->k : r->v)[layer];
  for (size_t h = 0; h < t->heads; h++)
    for (size_t i = 0; i < n; i++)
      copy_head(t, t->tensor + (h * n + i) * t->dim, from + (first + i) * width + h * t->dim, key);
  return n * width * sizeof *t->tensor;
}

static void put_values(torch *t) {
  size_t key = 0;
  for (size_t list = 0; list < LISTS; list++)
    for (size_t l = 0; rows_of(t, list) > 0 && l < t->n_layers; l++) {
      char name[32];
      const size_t n = fill(t, list, l);
      snprintf(name, sizeof name, "data/%zu", key++);
      put_file(t, name, t->tensor, n);
    }
}

/* --- the export ---------------------------------------------------------------------------- */

static int take_shape(torch *t, const fl_hparams *hp, const char *path, fl_err *err) {
  const fl_rows *r = &t->c->rows;
  t->n_layers = r->n_layers;
  t->heads = r->kv_heads[0];
  for (size_t l = 0; l < r->n_layers; l++)
    if (r->width[l] == 0 || r->kv_heads[l] != t->heads || r->width[l] != r->width[0])
      return fl_fail(err, FL_EINPUT,
                     "%s: its layers differ in shape or share their rows, which "
                     "the layout does not have; use --to llama-state or the file as it is",
                     path);
  t->dim = r->width[0] / t->heads;
  t->half = hp->rope_interleaved ? hp->rope[hp->layer[0].rope_set].half : 0;
  /* What the lengths of a zip file hold, with room for its headers. */
  if (r->n_values > (UINT32_MAX - ((uint32_t)1 << 20)) / sizeof(float))
    return fl_fail(err, FL_EINPUT, "%s: more than 4 GiB; the layout takes no more", path);
  return FL_OK;
}

static int write_torch(torch *t, const convert_job *a, fl_err *err) {
  fl_buf pickle = { 0 };
  say_all(&pickle, t);
  int rc = pickle.oom ? fl_fail(err, FL_ENOMEM, "not enough memory") : FL_OK;
  if (rc == FL_OK) rc = fl_fs_open_temp(&t->out, a->out, err);
  if (rc == FL_OK) {
    make_crc(t->crc);
    put_file(t, "data.pkl", pickle.data, pickle.len);
    put_file(t, "byteorder", "little", 6);
    put_values(t);
    put_file(t, "version", "3\n", 2);
    put_directory(t);
    rc = fl_fs_commit_temp(t->out, a->out, err);
  }
  fl_buf_release(&pickle);
  return rc;
}

int convert_torch_write(fl_json *out, const convert_job *a, fl_err *err) {
  model_shape shape = { 0 };
  fl_cartridge c = { 0 };
  torch t = { .c = &c, .entry = fl_calloc(ENTRY_MAX, sizeof *t.entry) };
  int rc = t.entry ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK) rc = model_shape_open(&shape, a->model, err);
  if (rc == FL_OK) rc = model_shape_cartridge(&c, &shape, a->source, err);
  if (rc == FL_OK) rc = take_shape(&t, shape.hp, a->source, err);
  if (rc == FL_OK) {
    t.tensor = fl_calloc(c.rows.n_rows, c.rows.width[0] * sizeof *t.tensor);
    rc = t.tensor ? write_torch(&t, a, err) : fl_fail(err, FL_ENOMEM, "not enough memory");
  }
  if (rc == FL_OK) {
    fl_json_set_str(out, "out", a->out);
    fl_json_set_str(out, "type", "torch");
    fl_json_set_u64(out, "rows", c.rows.n_rows);
    fl_json_set_u64(out, "frozen", c.frozen);
  }
  fl_cartridge_release(&c);
  model_shape_close(&shape);
  fl_free(t.tensor);
  fl_free(t.entry);
  return rc;
}
