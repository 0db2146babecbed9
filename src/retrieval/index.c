/* index.c - the vectors of all pieces: centring, file. Embedding is in retrieval.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "retrieval/retrieval.h"
#include "formats/safetensors.h"

size_t fl_chunk_count(size_t n_tokens, size_t embed_chunk) {
  if (n_tokens == 0) return 0;
  size_t n = n_tokens / embed_chunk, rest = n_tokens % embed_chunk;
  return n + (n == 0 || rest >= FL_INDEX_CHUNK_MIN ? (rest > 0) : 0);
}

void fl_chunk_span(size_t n_tokens, size_t embed_chunk, size_t i, size_t *first, size_t *end) {
  *first = i * embed_chunk;
  *end = n_tokens - *first < embed_chunk ? n_tokens : *first + embed_chunk;
}

void fl_index_free(fl_index *x) {
  if (x == NULL) return;
  fl_free(x->vector);
  fl_free(x->centroid);
  fl_free(x->doc);
  fl_lexical_close(x->lexical);
  fl_free(x);
}

int fl_index_new(fl_index **out, size_t dim, fl_err *err) {
  fl_index *x = fl_calloc(1, sizeof *x);
  if (x != NULL) x->centroid = fl_calloc(dim, sizeof *x->centroid);
  if (x == NULL || x->centroid == NULL) {
    fl_index_free(x);
    return fl_fail(err, FL_ENOMEM, "not enough memory for the retrieval index");
  }
  x->dim = dim;
  *out = x;
  return FL_OK;
}

int fl_index_add(fl_index *x, const float *v, size_t doc) {
  if (x->n == x->cap) {
    size_t cap = x->cap ? x->cap * 2 : 64, room;
    if (!fl_mul_size(cap, x->dim, &room)) return FL_ENOMEM;
    float *vector = fl_reallocarray(x->vector, room, sizeof *vector);
    if (vector == NULL) return FL_ENOMEM;
    x->vector = vector;
    int64_t *d = fl_reallocarray(x->doc, cap, sizeof *d);
    if (d == NULL) return FL_ENOMEM;
    x->doc = d;
    x->cap = cap;
  }
  memcpy(x->vector + x->n * x->dim, v, x->dim * sizeof *v);
  x->doc[x->n++] = (int64_t)doc;
  return FL_OK;
}

/* To length 1; a vector without direction becomes zero. */
static void normalise(float *v, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += (double)v[i] * v[i];
  double norm = sqrt(sum);
  double scale = norm > 1e-12 && isfinite(norm) ? 1 / norm : 0;
  for (size_t i = 0; i < n; i++) v[i] = isfinite(v[i]) ? (float)(v[i] * scale) : 0.0f;
}

static void subtract(float *v, const float *c, size_t n) {
  for (size_t i = 0; i < n; i++) v[i] -= c[i];
}

void fl_index_finish(fl_index *x) {
  for (size_t i = 0; i < x->n; i++) normalise(x->vector + i * x->dim, x->dim);
  if (x->n < 2) return;
  for (size_t j = 0; j < x->dim; j++) {
    double sum = 0;
    for (size_t i = 0; i < x->n; i++) sum += x->vector[i * x->dim + j];
    x->centroid[j] = (float)(sum / (double)x->n);
  }
  for (size_t i = 0; i < x->n; i++) {
    subtract(x->vector + i * x->dim, x->centroid, x->dim);
    normalise(x->vector + i * x->dim, x->dim);
  }
}

void fl_index_centre(const fl_index *x, float *v) {
  normalise(v, x->dim);
  subtract(v, x->centroid, x->dim);
  normalise(v, x->dim);
}

int fl_index_write(const char *path, const fl_index *x, const fl_index_meta *meta, fl_err *err) {
  char chunk[32];
  snprintf(chunk, sizeof chunk, "%zu", meta->embed_chunk);
  const fl_st_out t[] = {
    { .name = "embeddings",
      .type = FL_ST_F32,
      .n_dims = 2,
      .dim = { x->n, x->dim },
      .data = x->vector },
    { .name = "centroid", .type = FL_ST_F32, .n_dims = 1, .dim = { x->dim }, .data = x->centroid },
    { .name = "chunk_doc", .type = FL_ST_I64, .n_dims = 1, .dim = { x->n }, .data = x->doc },
  };
  const fl_st_meta m[] = { { "recipe", FL_EMBED_RECIPE },
                           { "embed_chunk", chunk },
                           { "model_hash", meta->model_hash } };
  return fl_safetensors_write(path, t, 3, m, 3, err);
}

static int damaged(const char *path, const char *what, fl_err *err) {
  return fl_fail(err, FL_EINPUT, "%s: %s; rebuild it with flotilla index", path, what);
}

static bool all_finite(const float *v, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!isfinite(v[i])) return false;
  return true;
}

static int check_tensors(const fl_st_tensor *e, const fl_st_tensor *c, const fl_st_tensor *d,
                         const char *path, size_t n_docs, size_t dim, fl_err *err) {
  if (e == NULL || c == NULL || d == NULL) return damaged(path, "no retrieval index", err);
  if (e->type != FL_ST_F32 || c->type != FL_ST_F32 || d->type != FL_ST_I64 || e->n_dims != 2 ||
      c->n_dims != 1 || d->n_dims != 1)
    return damaged(path, "a tensor has another type or rank", err);
  if (e->dim[1] != dim || c->dim[0] != dim)
    return damaged(path, "its vectors are not of this model's width", err);
  if (e->dim[0] != d->dim[0] || e->dim[0] == 0)
    return damaged(path, "its tensors differ in length", err);
  if (!all_finite(e->data, e->n_values) || !all_finite(c->data, c->n_values))
    return damaged(path, "a value is not finite", err);
  for (size_t i = 0; i < d->n_values; i++) {
    int64_t v;
    memcpy(&v, (const char *)d->data + i * sizeof v, sizeof v);
    if (v < 0 || (uint64_t)v >= n_docs)
      return damaged(path, "it names a document that is not there", err);
  }
  return FL_OK;
}

static bool is_own(const fl_safetensors *s, const fl_index_meta *meta) {
  const char *recipe = fl_safetensors_meta(s, "recipe");
  const char *model = fl_safetensors_meta(s, "model_hash");
  return recipe != NULL && strcmp(recipe, FL_EMBED_RECIPE) == 0 && model != NULL &&
         meta->model_hash != NULL && strcmp(model, meta->model_hash) == 0;
}

int fl_index_read(fl_index **out, bool *own_recipe, const char *path, size_t n_docs, size_t dim,
                  const fl_index_meta *meta, fl_err *err) {
  fl_safetensors *s = NULL;
  fl_index *x = NULL;
  fl_err why = { 0 };
  int rc = fl_safetensors_open(&s, path, &why);
  if (rc != FL_OK)
    return fl_fail(err, rc, "%s%s", why.text,
                   rc == FL_EINPUT ? ", or rebuild it with flotilla index" : "");
  const fl_st_tensor *e = fl_safetensors_get(s, "embeddings");
  const fl_st_tensor *c = fl_safetensors_get(s, "centroid");
  const fl_st_tensor *d = fl_safetensors_get(s, "chunk_doc");
  rc = check_tensors(e, c, d, path, n_docs, dim, err);
  if (rc == FL_OK) rc = fl_index_new(&x, dim, err);
  if (rc != FL_OK) goto done;
  x->vector = fl_calloc(e->n_values, sizeof(float));
  x->doc = fl_calloc(d->n_values, sizeof(int64_t));
  if (x->vector == NULL || x->doc == NULL) {
    rc = fl_fail(err, FL_ENOMEM, "%s: not enough memory to read it", path);
    goto done;
  }
  memcpy(x->vector, e->data, e->n_bytes);
  memcpy(x->centroid, c->data, c->n_bytes);
  memcpy(x->doc, d->data, d->n_bytes);
  x->n = x->cap = (size_t)e->dim[0];
  *own_recipe = is_own(s, meta);
  *out = x;
  x = NULL;
done:
  fl_index_free(x);
  fl_safetensors_close(s);
  return rc;
}
