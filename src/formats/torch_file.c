/* torch_file.c - see torch_file.h. */
#include "formats/torch_file.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "formats/torch_pickle.h"

enum { END_BYTES = 22, HEAD_BYTES = 46, LOCAL_BYTES = 30, MAX_COMMENT = 65535 };

struct fl_torch {
  char *path;
  fl_map map;
  size_t directory, n_entries; /* of the zip */
  char *folder;                /* with its slash */
  fl_pickle pickle;
};

typedef struct part { /* of the zip */
  const char *name;
  size_t n_name;
  const uint8_t *data;
  size_t n;
} part;

static uint32_t le(const uint8_t *p, size_t n) {
  uint32_t v = 0;
  for (size_t i = 0; i < n; i++) v |= (uint32_t)p[i] << 8 * i;
  return v;
}

static int bad(const fl_torch *t, const char *what, fl_err *err) {
  return fl_fail(err, FL_EINPUT, "%s: not a file of torch.save: %s", t->path, what);
}

/* --- zip ------------------------------------------------------------------------------------- */

static int find_directory(fl_torch *t, fl_err *err) {
  const size_t size = t->map.size;
  if (size < END_BYTES) return bad(t, "no zip file", err);
  for (size_t back = END_BYTES; back <= size && back <= END_BYTES + MAX_COMMENT; back++) {
    const uint8_t *end = t->map.data + size - back;
    if (memcmp(end, "PK\5\6", 4) != 0) continue;
    t->n_entries = le(end + 10, 2);
    t->directory = le(end + 16, 4);
    if (t->directory > size - back || le(end + 12, 4) > size - back - t->directory)
      return bad(t, "its directory lies outside of it", err);
    return FL_OK;
  }
  return bad(t, "no zip file, or one cut short", err);
}

/* The bytes of the entry whose head in the directory is `head`. */
static int entry_bytes(part *out, const fl_torch *t, const uint8_t *head, fl_err *err) {
  const size_t size = t->map.size, at = le(head + 42, 4), n = le(head + 24, 4);
  if (le(head + 10, 2) != 0 || le(head + 20, 4) != n) return bad(t, "a part is compressed", err);
  if (at > size || size - at < LOCAL_BYTES || memcmp(t->map.data + at, "PK\3\4", 4) != 0)
    return bad(t, "a part lies outside of it", err);
  const size_t skip = LOCAL_BYTES + le(t->map.data + at + 26, 2) + le(t->map.data + at + 28, 2);
  if (skip > size - at || n > size - at - skip) return bad(t, "a part lies outside of it", err);
  out->data = t->map.data + at + skip;
  out->n = n;
  return FL_OK;
}

/* The entry whose name is the folder and `name`; folder NULL: the first whose name ends so. */
static int find_entry(part *out, const fl_torch *t, const char *folder, const char *name,
                      fl_err *err) {
  const uint8_t *head = t->map.data + t->directory, *end = t->map.data + t->map.size;
  const size_t n_folder = folder ? strlen(folder) : 0, len = strlen(name);
  for (size_t i = 0; i < t->n_entries; i++) {
    if (end - head < HEAD_BYTES || memcmp(head, "PK\1\2", 4) != 0) break;
    const size_t n = le(head + 28, 2), skip = HEAD_BYTES + n + le(head + 30, 2) + le(head + 32, 2);
    const char *own = (const char *)head + HEAD_BYTES;
    if ((size_t)(end - head) < skip) break;
    const bool ends = n >= len && memcmp(own + n - len, name, len) == 0;
    if (ends && (!folder || (n == n_folder + len && memcmp(own, folder, n_folder) == 0))) {
      out->name = own;
      out->n_name = n;
      return entry_bytes(out, t, head, err);
    }
    head += skip;
  }
  return fl_fail(err, FL_EINPUT, "%s: not a file of torch.save: it has no part %s", t->path, name);
}

/* data.pkl, in whatever folder, which is the folder of all. */
static int take_folder(part *out, fl_torch *t, fl_err *err) {
  int rc = find_entry(out, t, NULL, "data.pkl", err);
  if (rc != FL_OK) return rc;
  t->folder = fl_strndup(out->name, out->n_name - strlen("data.pkl"));
  return t->folder ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory");
}

/* --- tensors --------------------------------------------------------------------------------- */

static const fl_pvalue *item(const fl_torch *t, const fl_pvalue *v, size_t i) {
  return &t->pickle.value[v->item[i]];
}

/* The list under a name, or the dict of parameters of a ParameterList under it. */
static const fl_pvalue *list_of(const fl_torch *t, const char *name) {
  const fl_pvalue *v = fl_pickle_get(&t->pickle, &t->pickle.value[t->pickle.root], name);
  if (v && v->kind == FL_P_OBJECT && v->n > 0)
    v = fl_pickle_get(&t->pickle, item(t, v, 0), "_parameters");
  return v && (v->kind == FL_P_LIST || v->kind == FL_P_DICT) ? v : NULL;
}

size_t fl_torch_count(const fl_torch *t, const char *name) {
  const fl_pvalue *v = list_of(t, name);
  return !v ? 0 : v->kind == FL_P_LIST ? v->n : v->n / 2;
}

static const fl_dtype_traits *type_of(const fl_pvalue *name) {
  static const struct {
    const char *name;
    fl_dtype type;
  } types[] = { { "torch\nFloatStorage", FL_F32 },
                { "torch\nHalfStorage", FL_F16 },
                { "torch\nBFloat16Storage", FL_BF16 } };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (fl_pvalue_is(name, FL_P_NAME, types[i].name)) return fl_dtype_get(types[i].type);
  return NULL;
}

/* A tuple of up to four numbers that are not negative. */
static bool read_sizes(size_t *out, size_t *n, const fl_torch *t, const fl_pvalue *v) {
  if (v->kind != FL_P_LIST || v->n > 4) return false;
  for (size_t i = 0; i < v->n; i++) {
    const fl_pvalue *s = item(t, v, i);
    if (s->kind != FL_P_INT || s->num < 0 || s->num > UINT32_MAX) return false;
    out[i] = (size_t)s->num;
  }
  *n = v->n;
  return true;
}

/* Values from the first to behind the last; false: more than `most`. Sizes and strides are below
 * 2^32, so one product does not overflow. */
static bool reach(const fl_torch_tensor *x, size_t first, size_t most, size_t *out) {
  size_t last = first;
  for (size_t d = 0; d < x->n_dims; d++) {
    if (x->dim[d] == 0) {
      *out = 0;
      return true;
    }
    const size_t step = (x->dim[d] - 1) * x->stride[d];
    if (last > most || step > most - last) return false;
    last += step;
  }
  *out = last + 1;
  return last < most;
}

int fl_torch_get(fl_torch_tensor *out, const fl_torch *t, const char *name, size_t i, fl_err *err) {
  const fl_pvalue *list = list_of(t, name);
  const fl_pvalue *v = item(t, list, list->kind == FL_P_LIST ? i : 2 * i + 1);
  fl_torch_tensor x = { 0 };
  part values;
  char of[48];
  size_t n_strides = 0, n = 0;
  if (v->kind != FL_P_TENSOR || item(t, v, 0)->kind != FL_P_STORAGE)
    return fl_fail(err, FL_EINPUT, "%s: %s %zu is no tensor", t->path, name, i);
  const fl_pvalue *storage = item(t, v, 0), *offset = item(t, v, 1), *key = item(t, storage, 2);
  x.type = type_of(item(t, storage, 1));
  if (!x.type)
    return fl_fail(err, FL_EINPUT,
                   "%s: %s %zu is not float32, float16 or bfloat16; convert it "
                   "with torch first",
                   t->path, name, i);
  if (offset->kind != FL_P_INT || offset->num < 0 || key->kind != FL_P_TEXT || key->len > 40 ||
      !read_sizes(x.dim, &x.n_dims, t, item(t, v, 2)) ||
      !read_sizes(x.stride, &n_strides, t, item(t, v, 3)) || n_strides != x.n_dims)
    return fl_fail(err, FL_EINPUT, "%s: %s %zu has no sizes", t->path, name, i);
  snprintf(of, sizeof of, "data/%.*s", (int)key->len, key->text);
  int rc = find_entry(&values, t, t->folder, of, err);
  if (rc != FL_OK) return rc;
  if (!reach(&x, (size_t)offset->num, values.n / x.type->bytes, &n))
    return fl_fail(err, FL_EINPUT, "%s: %s %zu has more values than its part %s", t->path, name, i,
                   of);
  x.data = n ? values.data + (size_t)offset->num * x.type->bytes : values.data;
  *out = x;
  return FL_OK;
}

int fl_torch_open(fl_torch **out, const char *path, fl_err *err) {
  part pickle = { 0 }, order;
  fl_err why = { 0 };
  fl_torch *t = fl_calloc(1, sizeof *t);
  if (!t || !(t->path = fl_strdup(path))) {
    fl_free(t);
    return fl_fail(err, FL_ENOMEM, "not enough memory");
  }
  int rc = fl_map_open(&t->map, path, err);
  if (rc == FL_OK) rc = find_directory(t, err);
  if (rc == FL_OK) rc = take_folder(&pickle, t, err);
  if (rc == FL_OK && find_entry(&order, t, t->folder, "byteorder", NULL) == FL_OK &&
      (order.n != 6 || memcmp(order.data, "little", 6) != 0))
    rc = bad(t, "its values are of the other byte order", err);
  if (rc == FL_OK) {
    rc = fl_pickle_read(&t->pickle, pickle.data, pickle.n, &why);
    if (rc == FL_EINPUT) bad(t, why.text, err);
    else if (rc != FL_OK) fl_fail(err, rc, "%s", why.text);
  }
  if (rc != FL_OK) {
    fl_torch_close(t);
    return rc;
  }
  *out = t;
  return FL_OK;
}

void fl_torch_close(fl_torch *t) {
  if (!t) return;
  fl_pickle_release(&t->pickle);
  fl_map_close(&t->map);
  fl_free(t->folder);
  fl_free(t->path);
  fl_free(t);
}
