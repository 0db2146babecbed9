/* safetensors.c - reading a safetensors file: u64 header length, JSON header, data. The parsed
 * header lives as long as the object; names and metadata point into it, data into the mapping. */
#include "formats/safetensors.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"

#define HEADER_MAX 100000000u
#define MAX_DIMS 8

struct fl_safetensors {
  fl_map map;
  fl_json *header;
  const fl_json *meta; /* the object, NULL when there is none */
  size_t n;
  fl_st_tensor *tensors;        /* in order of their data */
  const fl_st_tensor **by_name; /* in byte order of their names */
};

/* A tensor with its place, while the header is read. */
typedef struct entry {
  fl_st_tensor tensor;
  uint64_t begin, end;
} entry;

static const struct st_type {
  const char *name;
  fl_st_type type;
  size_t bytes;
} types[] = {
  { "F32", FL_ST_F32, 4 },    { "I64", FL_ST_I64, 8 },   { "F16", FL_ST_F16, 2 },
  { "BF16", FL_ST_BF16, 2 },  { "I32", FL_ST_I32, 4 },   { "F64", FL_ST_OTHER, 8 },
  { "U64", FL_ST_OTHER, 8 },  { "U32", FL_ST_OTHER, 4 }, { "I16", FL_ST_OTHER, 2 },
  { "U16", FL_ST_OTHER, 2 },  { "I8", FL_ST_OTHER, 1 },  { "U8", FL_ST_OTHER, 1 },
  { "BOOL", FL_ST_OTHER, 1 },
};

static const struct st_type *find_type(const char *name) {
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, name) == 0) return &types[i];
  return NULL;
}

static int bad(const char *path, const char *name, const char *what, fl_err *err) {
  return fl_fail(err, FL_EINPUT, "%s: tensor '%.80s' %s; restore or write the file again", path,
                 name, what);
}

static bool exact_u64(const fl_json *v, uint64_t *out) {
  double d;
  if (v == NULL || !fl_json_as_num(v, &d)) return false;
  if (!(d >= 0) || d > 0x1p53 || d != floor(d)) return false;
  *out = (uint64_t)d;
  return true;
}

static bool read_shape(const fl_json *shape, fl_st_tensor *t) {
  uint64_t n_values = 1;
  if (!fl_json_is_arr(shape)) return false;
  for (const fl_json *v = fl_json_first(shape); v != NULL; v = fl_json_next(v)) {
    if (t->n_dims == MAX_DIMS || !exact_u64(v, &t->dim[t->n_dims])) return false;
    if (__builtin_mul_overflow(n_values, t->dim[t->n_dims], &n_values)) return false;
    t->n_dims++;
  }
  t->n_values = (size_t)n_values;
  return n_values <= PTRDIFF_MAX;
}

/* One member of the header. */
static int read_entry(entry *out, const fl_json *member, const fl_map *map, uint64_t data_start,
                      const char *path, fl_err *err) {
  entry e = { .tensor = { .name = fl_json_key(member), .type = FL_ST_OTHER } };
  const char *dtype;
  const fl_json *span = fl_json_get(member, "data_offsets");
  if (!fl_json_get_str(member, "dtype", &dtype))
    return bad(path, e.tensor.name, "has no type", err);
  if (!read_shape(fl_json_get(member, "shape"), &e.tensor))
    return bad(path, e.tensor.name, "has an impossible shape", err);
  if (!fl_json_is_arr(span) || fl_json_len(span) != 2 ||
      !exact_u64(fl_json_at(span, 0), &e.begin) || !exact_u64(fl_json_at(span, 1), &e.end) ||
      e.begin > e.end || e.end > map->size - data_start)
    return bad(path, e.tensor.name, "does not lie in the file", err);
  e.tensor.n_bytes = (size_t)(e.end - e.begin);
  e.tensor.data = map->data + data_start + e.begin;
  const struct st_type *type = find_type(dtype);
  if (type != NULL) {
    size_t want;
    e.tensor.type = type->type;
    if (!fl_mul_size(e.tensor.n_values, type->bytes, &want) || want != e.tensor.n_bytes)
      return bad(path, e.tensor.name, "has another number of bytes than its shape and type", err);
    if ((uintptr_t)e.tensor.data % type->bytes != 0)
      return bad(path, e.tensor.name, "is not aligned to its type", err);
  }
  *out = e;
  return FL_OK;
}

static int by_place(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  if (x->end != y->end) return x->end < y->end ? -1 : 1;
  return strcmp(x->tensor.name, y->tensor.name);
}

static int by_name(const void *a, const void *b) {
  return strcmp((*(const fl_st_tensor *const *)a)->name, (*(const fl_st_tensor *const *)b)->name);
}

/* The data are used from the first byte to the last, without gap or overlap. */
static int check_cover(const entry *e, size_t n, uint64_t data_bytes, const char *path,
                       fl_err *err) {
  uint64_t at = 0;
  for (size_t i = 0; i < n; i++) {
    if (e[i].begin != at)
      return bad(path, e[i].tensor.name, "does not begin where the one before it ends", err);
    at = e[i].end;
  }
  if (at == data_bytes) return FL_OK;
  return fl_fail(err, FL_EINPUT,
                 "%s: %llu bytes of data where the header describes %llu; restore or write the "
                 "file again",
                 path, (unsigned long long)data_bytes, (unsigned long long)at);
}

static int read_meta(fl_safetensors *s, const char *path, fl_err *err) {
  s->meta = fl_json_get(s->header, "__metadata__");
  if (s->meta == NULL) return FL_OK;
  bool texts = fl_json_is_obj(s->meta);
  for (const fl_json *m = fl_json_first(s->meta); m != NULL; m = fl_json_next(m))
    texts = texts && fl_json_as_str(m) != NULL;
  if (texts) return FL_OK;
  return fl_fail(err, FL_EINPUT,
                 "%s: __metadata__ is no object of texts; restore or write the file again", path);
}

static int read_entries(fl_safetensors *s, uint64_t data_start, const char *path, fl_err *err) {
  const size_t members = fl_json_len(s->header);
  int rc = FL_ENOMEM;
  entry *entries = fl_calloc(members, sizeof *entries);
  s->tensors = fl_calloc(members, sizeof *s->tensors);
  s->by_name = fl_calloc(members, sizeof *s->by_name);
  if (entries == NULL || s->tensors == NULL || s->by_name == NULL) {
    fl_fail(err, rc, "%s: no memory to read its header", path);
    goto done;
  }
  for (const fl_json *m = fl_json_first(s->header); m != NULL; m = fl_json_next(m)) {
    if (m == s->meta) continue;
    rc = read_entry(&entries[s->n], m, &s->map, data_start, path, err);
    if (rc != FL_OK) goto done;
    s->n++;
  }
  qsort(entries, s->n, sizeof *entries, by_place);
  rc = check_cover(entries, s->n, s->map.size - data_start, path, err);
  if (rc != FL_OK) goto done;
  for (size_t i = 0; i < s->n; i++) {
    s->tensors[i] = entries[i].tensor;
    s->by_name[i] = &s->tensors[i];
  }
  qsort(s->by_name, s->n, sizeof *s->by_name, by_name);
done:
  fl_free(entries);
  return rc;
}

static int read_file(fl_safetensors *s, const char *path, fl_err *err) {
  uint64_t len;
  if (s->map.size < sizeof len + 2)
    return fl_fail(err, FL_EINPUT, "%s: too short for a safetensors file; restore it", path);
  memcpy(&len, s->map.data, sizeof len);
  const char *text = (const char *)s->map.data + sizeof len;
  if (len > s->map.size - sizeof len || len > HEADER_MAX || text[0] != '{')
    return fl_fail(err, FL_EINPUT, "%s: not a safetensors file, or cut short; restore it", path);
  int rc = fl_json_parse(&s->header, text, (size_t)len, err);
  if (rc != FL_OK) {
    fl_err_prefix(err, "%s: damaged header", path);
    return rc;
  }
  rc = read_meta(s, path, err);
  return rc == FL_OK ? read_entries(s, sizeof len + len, path, err) : rc;
}

int fl_safetensors_open(fl_safetensors **out, const char *path, fl_err *err) {
  fl_safetensors *s = fl_calloc(1, sizeof *s);
  if (s == NULL) return fl_fs_fail_errno(err, path, "opened", ENOMEM);
  int rc = fl_map_open(&s->map, path, err);
  if (rc == FL_OK) rc = read_file(s, path, err);
  if (rc != FL_OK) {
    fl_safetensors_close(s);
    return rc;
  }
  *out = s;
  return FL_OK;
}

void fl_safetensors_close(fl_safetensors *s) {
  if (s == NULL) return;
  fl_map_close(&s->map);
  fl_json_free(s->header);
  fl_free(s->tensors);
  fl_free(s->by_name);
  fl_free(s);
}

size_t fl_safetensors_count(const fl_safetensors *s) { return s->n; }

const fl_st_tensor *fl_safetensors_at(const fl_safetensors *s, size_t i) {
  return i < s->n ? &s->tensors[i] : NULL;
}

const fl_st_tensor *fl_safetensors_get(const fl_safetensors *s, const char *name) {
  const fl_st_tensor probe = { .name = name }, *want = &probe;
  if (s->n == 0) return NULL;
  const fl_st_tensor **hit = bsearch(&want, s->by_name, s->n, sizeof *s->by_name, by_name);
  return hit != NULL ? *hit : NULL;
}

const char *fl_safetensors_meta(const fl_safetensors *s, const char *key) {
  return s->meta != NULL ? fl_json_as_str(fl_json_get(s->meta, key)) : NULL;
}

size_t fl_safetensors_n_meta(const fl_safetensors *s) {
  return s->meta != NULL ? fl_json_len(s->meta) : 0;
}

void fl_safetensors_meta_at(const fl_safetensors *s, size_t i, const char **key,
                            const char **value) {
  const fl_json *m = fl_json_at(s->meta, i);
  *key = fl_json_key(m);
  *value = fl_json_as_str(m);
}
