/* gguf.c - opening a GGUF file.
 *
 *   "GGUF", u32 version, u64 tensors, u64 pairs
 *   pairs:   string key, u32 type, value; an array is u32 element type, u64 count, elements
 *   tensors: string name, u32 dimensions, u64 each dimension, u32 type, u64 offset
 *   padding to the alignment, then the data; offsets count from there
 *   string:  u64 length, bytes
 *
 * Every read goes through a cursor that knows what remains. A count is accepted only when that many
 * of the smallest possible entries fit in the rest, so memory stays in proportion to the file. */
#include "formats/gguf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "formats/gguf_private.h"

#define MIN_PAIR_BYTES (8 + 1 + 4 + 1)
#define MIN_TENSOR_BYTES (8 + 1 + 4 + 8 + 4 + 8)
#define MAX_NAME_BYTES 65535
#define SAMPLE_BYTES 65536 /* of a tensor, for the fingerprint */
#define WHOLE_FILE_BYTES (64u << 20)

typedef struct cursor {
  const uint8_t *data;
  size_t size, at;
  const char *path;
  fl_err *err;
} cursor;

static int bad(const cursor *c, size_t at, const char *what) {
  return fl_fail(c->err, FL_EINPUT, "%s: %s at byte %zu; download or convert the file again",
                 c->path, what, at);
}

/* The next n bytes, NULL with the error set when there are fewer. */
static const void *take(cursor *c, uint64_t n) {
  if (n > c->size - c->at) {
    fl_fail(c->err, FL_EINPUT,
            "%s: cut short or damaged: %llu bytes wanted at byte %zu of %zu; download or convert "
            "the file again",
            c->path, (unsigned long long)n, c->at, c->size);
    return NULL;
  }
  const void *p = c->data + c->at;
  c->at += (size_t)n;
  return p;
}

static int take_u32(cursor *c, uint32_t *out) {
  const void *p = take(c, sizeof *out);
  if (p == NULL) return FL_EINPUT;
  memcpy(out, p, sizeof *out);
  return FL_OK;
}

static int take_u64(cursor *c, uint64_t *out) {
  const void *p = take(c, sizeof *out);
  if (p == NULL) return FL_EINPUT;
  memcpy(out, p, sizeof *out);
  return FL_OK;
}

static int take_string(cursor *c, fl_str *out) {
  uint64_t len;
  int rc = take_u64(c, &len);
  if (rc != FL_OK) return rc;
  const void *p = take(c, len);
  if (p == NULL) return FL_EINPUT;
  *out = (fl_str){ .data = p, .len = (size_t)len };
  return FL_OK;
}

/* Keys and tensor names: printable, so that a message may show them. */
static int take_name(cursor *c, fl_str *out) {
  size_t at = c->at;
  int rc = take_string(c, out);
  if (rc != FL_OK) return rc;
  if (out->len == 0 || out->len > MAX_NAME_BYTES) return bad(c, at, "a name of impossible length");
  for (size_t i = 0; i < out->len; i++) {
    unsigned char b = (unsigned char)out->data[i];
    if (b < 0x20 || b == 0x7F) return bad(c, at, "a name with control characters");
  }
  return FL_OK;
}

size_t fl_gguf_scalar_bytes(uint32_t type) {
  static const uint8_t bytes[] = {
    [FL_GGUF_U8] = 1,  [FL_GGUF_I8] = 1,  [FL_GGUF_U16] = 2, [FL_GGUF_I16] = 2,
    [FL_GGUF_U32] = 4, [FL_GGUF_I32] = 4, [FL_GGUF_F32] = 4, [FL_GGUF_BOOL] = 1,
    [FL_GGUF_U64] = 8, [FL_GGUF_I64] = 8, [FL_GGUF_F64] = 8,
  };
  return type < sizeof bytes ? bytes[type] : 0;
}

static int check_bools(const cursor *c, size_t at, const uint8_t *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (p[i] > 1) return bad(c, at + i, "a truth value that is neither 0 nor 1");
  return FL_OK;
}

static int take_array(cursor *c, fl_gguf_arr *arr) {
  uint32_t type;
  uint64_t n;
  size_t at = c->at;
  int rc = take_u32(c, &type);
  if (rc == FL_OK) rc = take_u64(c, &n);
  if (rc != FL_OK) return rc;
  size_t each = fl_gguf_scalar_bytes(type);
  if (type == FL_GGUF_ARR) return bad(c, at, "an array of arrays");
  if (each == 0 && type != FL_GGUF_STR) return bad(c, at, "an array of an unknown type");
  size_t least = type == FL_GGUF_STR ? sizeof(uint64_t) : each;
  if (n > (c->size - c->at) / least) return bad(c, at, "an array longer than the file");
  const size_t first = c->at;
  if (type == FL_GGUF_STR) {
    fl_str s;
    for (uint64_t i = 0; i < n; i++)
      if ((rc = take_string(c, &s)) != FL_OK) return rc;
  } else {
    const void *p = take(c, n * each);
    if (p == NULL) return FL_EINPUT;
    if (type == FL_GGUF_BOOL && (rc = check_bools(c, first, p, (size_t)n)) != FL_OK) return rc;
  }
  *arr = (fl_gguf_arr){
    .type = (fl_gguf_type)type, .n = (size_t)n, .data = c->data + first, .n_bytes = c->at - first
  };
  return FL_OK;
}

static int take_pair(cursor *c, gguf_pair *out) {
  const size_t first = c->at;
  uint32_t type;
  gguf_pair pair = { 0 };
  int rc = take_name(c, &pair.key);
  const size_t at = c->at;
  if (rc == FL_OK) rc = take_u32(c, &type);
  if (rc != FL_OK) return rc;
  size_t each = fl_gguf_scalar_bytes(type);
  if (type == FL_GGUF_ARR) {
    rc = take_array(c, &pair.arr);
  } else if (type == FL_GGUF_STR) {
    fl_str s;
    rc = take_string(c, &s);
    if (rc == FL_OK) {
      pair.value = (const uint8_t *)s.data;
      pair.value_len = s.len;
    }
  } else if (each > 0) {
    pair.value = take(c, each);
    pair.value_len = each;
    if (pair.value == NULL) return FL_EINPUT;
    if (type == FL_GGUF_BOOL) rc = check_bools(c, c->at - 1, pair.value, 1);
  } else {
    rc = bad(c, at, "a value of an unknown type");
  }
  if (rc != FL_OK) return rc;
  pair.type = (fl_gguf_type)type;
  pair.raw = c->data + first;
  pair.raw_len = c->at - first;
  *out = pair;
  return FL_OK;
}

/* The number of data bytes; false on overflow or when a row is no whole number of blocks. */
static bool tensor_bytes(fl_tensor_info *t, uint32_t block, uint32_t bytes) {
  size_t n = 0;
  if (t->dim[0] % block != 0) return false;
  bool fits = fl_mul_size((size_t)(t->dim[0] / block), bytes, &n);
  for (uint32_t d = 1; d < t->n_dims; d++) fits = fits && fl_mul_size(n, (size_t)t->dim[d], &n);
  t->n_bytes = n;
  return fits;
}

static int take_tensor(cursor *c, fl_tensor_info *out) {
  const size_t first = c->at;
  uint64_t n_values = 1;
  fl_tensor_info t = { .dim = { 1, 1, 1, 1 } };
  int rc = take_name(c, &t.name);
  if (rc == FL_OK) rc = take_u32(c, &t.n_dims);
  if (rc != FL_OK) return rc;
  if (t.n_dims < 1 || t.n_dims > 4) return bad(c, first, "a tensor without 1 to 4 dimensions");
  for (uint32_t d = 0; d < t.n_dims; d++) {
    if ((rc = take_u64(c, &t.dim[d])) != FL_OK) return rc;
    /* The number of values must be countable too: callers loop over it. */
    if (t.dim[d] == 0 || __builtin_mul_overflow(n_values, t.dim[d], &n_values) ||
        n_values > INT64_MAX)
      return bad(c, first, "a tensor of impossible size");
  }
  rc = take_u32(c, &t.ggml_type);
  if (rc == FL_OK) rc = take_u64(c, &t.file_offset); /* from data_start, until place_tensors() */
  if (rc != FL_OK) return rc;
  uint32_t block, bytes;
  if (fl_dtype_any_block(t.ggml_type, &block, &bytes) && !tensor_bytes(&t, block, bytes))
    return bad(c, first, "a tensor of impossible size");
  *out = t;
  return FL_OK;
}

/* Turns offsets into places in the file. */
static int place_tensors(fl_gguf *g, const cursor *c) {
  size_t start;
  if (!fl_add_size(c->at, g->alignment - 1, &start))
    return bad(c, c->at, "an impossible alignment");
  g->data_start = start / g->alignment * g->alignment;
  for (size_t i = 0; i < g->n_tensors; i++) {
    fl_tensor_info *t = &g->tensors[i];
    size_t first, end;
    bool inside = t->file_offset % g->alignment == 0 &&
                  fl_add_size(g->data_start, (size_t)t->file_offset, &first) &&
                  fl_add_size(first, t->n_bytes, &end) && end <= g->map.size;
    if (!inside)
      return fl_fail(c->err, FL_EINPUT,
                     "%s: the data of tensor '%.*s' (offset %llu, %zu bytes) do not lie in the "
                     "file of %zu bytes; download or convert the file again",
                     g->path, (int)(t->name.len < 80 ? t->name.len : 80), t->name.data,
                     (unsigned long long)t->file_offset, t->n_bytes, g->map.size);
    t->file_offset = first;
    if (t->n_bytes > 0) t->data = g->map.data + first;
  }
  return FL_OK;
}

int fl_str_compare(const fl_str *a, const fl_str *b) {
  int order = memcmp(a->data, b->data, a->len < b->len ? a->len : b->len);
  return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
}

static int by_key(const void *a, const void *b) {
  return fl_str_compare(&(*(const gguf_pair *const *)a)->key, &(*(const gguf_pair *const *)b)->key);
}

static int by_name(const void *a, const void *b) {
  return fl_str_compare(&(*(const fl_tensor_info *const *)a)->name,
                        &(*(const fl_tensor_info *const *)b)->name);
}

static int twice(const cursor *c, const char *what, const fl_str *name) {
  return fl_fail(c->err, FL_EINPUT,
                 "%s: the %s '%.*s' stands twice; download or convert the file "
                 "again",
                 c->path, what, (int)(name->len < 80 ? name->len : 80), name->data);
}

static int no_memory(const cursor *c) {
  return fl_fail(c->err, FL_ENOMEM, "%s: no memory to read its header", c->path);
}

static int read_pairs(fl_gguf *g, cursor *c) {
  g->pairs = fl_calloc(g->n_pairs, sizeof *g->pairs);
  g->pairs_by_key = fl_calloc(g->n_pairs, sizeof *g->pairs_by_key);
  if (g->pairs == NULL || g->pairs_by_key == NULL) return no_memory(c);
  for (size_t i = 0; i < g->n_pairs; i++) {
    int rc = take_pair(c, &g->pairs[i]);
    if (rc != FL_OK) return rc;
    g->pairs_by_key[i] = &g->pairs[i];
  }
  qsort(g->pairs_by_key, g->n_pairs, sizeof *g->pairs_by_key, by_key);
  for (size_t i = 1; i < g->n_pairs; i++)
    if (by_key(&g->pairs_by_key[i - 1], &g->pairs_by_key[i]) == 0)
      return twice(c, "key", &g->pairs_by_key[i]->key);
  return FL_OK;
}

static int read_alignment(fl_gguf *g, const cursor *c) {
  uint64_t v = 32;
  const bool given = fl_gguf_has(g, "general.alignment");
  if (given && !fl_gguf_get_u64(g, "general.alignment", &v)) v = 0;
  if (v < 8 || v > (1u << 30) || (v & (v - 1)) != 0)
    return bad(c, c->at, "a general.alignment that is no power of two from 8, before the tensors");
  g->alignment = (uint32_t)v;
  return FL_OK;
}

static int read_tensors(fl_gguf *g, cursor *c) {
  g->tensors = fl_calloc(g->n_tensors, sizeof *g->tensors);
  g->tensors_by_name = fl_calloc(g->n_tensors, sizeof *g->tensors_by_name);
  if (g->tensors == NULL || g->tensors_by_name == NULL) return no_memory(c);
  for (size_t i = 0; i < g->n_tensors; i++) {
    int rc = take_tensor(c, &g->tensors[i]);
    if (rc != FL_OK) return rc;
    g->tensors_by_name[i] = &g->tensors[i];
  }
  qsort(g->tensors_by_name, g->n_tensors, sizeof *g->tensors_by_name, by_name);
  for (size_t i = 1; i < g->n_tensors; i++)
    if (by_name(&g->tensors_by_name[i - 1], &g->tensors_by_name[i]) == 0)
      return twice(c, "tensor", &g->tensors_by_name[i]->name);
  return place_tensors(g, c);
}

static int read_header(fl_gguf *g, cursor *c) {
  uint64_t n_tensors, n_pairs;
  if (c->size < 4 || memcmp(c->data, "GGUF", 4) != 0)
    return fl_fail(c->err, FL_EINPUT, "%s: not a GGUF file; name a model in that format", c->path);
  c->at = 4;
  int rc = take_u32(c, &g->version);
  if (rc != FL_OK) return rc;
  if (g->version != 2 && g->version != 3)
    return fl_fail(c->err, FL_EINPUT, "%s: GGUF version %u%s; only 2 and 3 can be read: convert it",
                   c->path, g->version, g->version > 0xFFFF ? " (big-endian?)" : "");
  rc = take_u64(c, &n_tensors);
  if (rc == FL_OK) rc = take_u64(c, &n_pairs);
  if (rc != FL_OK) return rc;
  if (n_pairs > (c->size - c->at) / MIN_PAIR_BYTES ||
      n_tensors > (c->size - c->at) / MIN_TENSOR_BYTES)
    return bad(c, 8, "more entries than the file can hold");
  g->n_tensors = (size_t)n_tensors;
  g->n_pairs = (size_t)n_pairs;
  return FL_OK;
}

int fl_gguf_open(fl_gguf **out, const char *path, fl_err *err) {
  fl_gguf *g = fl_calloc(1, sizeof *g);
  if (g == NULL) return fl_fs_fail_errno(err, path, "opened", ENOMEM);
  int rc = fl_map_open(&g->map, path, err);
  if (rc != FL_OK) goto done;
  cursor c = { .data = g->map.data, .size = g->map.size, .path = path, .err = err };
  g->path = fl_strdup(path);
  rc = g->path != NULL ? read_header(g, &c) : no_memory(&c);
  if (rc == FL_OK) rc = read_pairs(g, &c);
  if (rc == FL_OK) rc = read_alignment(g, &c);
  if (rc == FL_OK) rc = read_tensors(g, &c);
  if (rc != FL_OK) goto done;
  *out = g;
  return FL_OK;
done:
  fl_gguf_close(g);
  return rc;
}

void fl_gguf_close(fl_gguf *g) {
  if (g == NULL) return;
  fl_map_close(&g->map);
  fl_free(g->path);
  fl_free(g->pairs);
  fl_free(g->tensors);
  fl_free(g->pairs_by_key);
  fl_free(g->tensors_by_name);
  fl_free(g);
}

void fl_gguf_drop(const fl_gguf *g, const fl_tensor_info *t) {
  fl_map_drop(&g->map, (size_t)t->file_offset, t->n_bytes);
}

/* chain = hash(chain, hash(data)): a hash over many pieces that needs no memory of its own. */
static void chain_add(char chain[FL_HASH_TEXT], const void *data, size_t n_bytes) {
  char both[2 * FL_HASH_TEXT] = { 0 };
  memcpy(both, chain, FL_HASH_TEXT);
  fl_hash_bytes(both + FL_HASH_TEXT, data, n_bytes);
  fl_hash_bytes(chain, both, sizeof both);
}

void fl_gguf_fingerprint(const fl_gguf *g, char *out) {
  const fl_map *m = &g->map;
  char chain[FL_HASH_TEXT] = { 0 };
  if (m->size < WHOLE_FILE_BYTES) {
    fl_hash_bytes(out, m->data, m->size);
    return;
  }
  const uint64_t size = m->size;
  chain_add(chain, &size, sizeof size);
  chain_add(chain, m->data, g->data_start < m->size ? g->data_start : m->size);
  for (size_t i = 0; i < g->n_tensors; i++) {
    const uint8_t *p = g->tensors[i].data;
    const size_t n = g->tensors[i].n_bytes;
    const size_t piece = n < SAMPLE_BYTES ? n : SAMPLE_BYTES;
    if (p == NULL) continue;
    chain_add(chain, p, piece);
    chain_add(chain, p + (n - piece) / 2, piece);
    chain_add(chain, p + n - piece, piece);
  }
  memcpy(out, chain, sizeof chain);
}
