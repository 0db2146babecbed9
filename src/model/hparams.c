/* hparams.c - the metadata that every family has, checked; then the family's own. */
#include "model/hparams.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/family.h"

/* Upper bounds keep every later size product far from overflow and refuse nonsense by name. */
enum { MAX_DIM = 1 << 20, MAX_HEADS = 4096, MAX_HEAD_DIM = 512 };

static int need_u64(const fl_gguf *g, const fl_hparams *hp, const char *key, uint64_t lo,
                    uint64_t hi, size_t *out, fl_err *err) {
  uint64_t v;
  if (!fl_meta_u64(g, hp, key, &v))
    return fl_fail(err, FL_EINPUT, "%s: the metadata lack %s.%s", fl_gguf_path(g), hp->arch, key);
  if (v < lo || v > hi)
    return fl_fail(err, FL_EINPUT, "%s: %s.%s is %llu, outside %llu..%llu", fl_gguf_path(g),
                   hp->arch, key, (unsigned long long)v, (unsigned long long)lo,
                   (unsigned long long)hi);
  *out = (size_t)v;
  return FL_OK;
}

static int per_layer(const fl_gguf *g, const fl_hparams *hp, const char *key, double lo, double hi,
                     double *out, fl_err *err) {
  if (!fl_meta_per_layer(g, hp, key, out))
    return fl_fail(err, FL_EINPUT, "%s: the metadata lack a usable %s.%s", fl_gguf_path(g),
                   hp->arch, key);
  for (size_t i = 0; i < hp->n_layers; i++)
    if (!(out[i] >= lo && out[i] <= hi) || out[i] != floor(out[i]))
      return fl_fail(err, FL_EINPUT, "%s: %s.%s is %g for layer %zu, outside %g..%g",
                     fl_gguf_path(g), hp->arch, key, out[i], i, lo, hi);
  return FL_OK;
}

static int read_layers(fl_hparams *hp, const fl_gguf *g, fl_err *err) {
  double heads[FL_MAX_LAYERS], kv[FL_MAX_LAYERS], ff[FL_MAX_LAYERS];
  uint64_t head_dim = 0;
  int rc;
  if ((rc = per_layer(g, hp, "attention.head_count", 1, MAX_HEADS, heads, err)) < 0) return rc;
  if (!fl_meta_per_layer(g, hp, "attention.head_count_kv", kv))
    memcpy(kv, heads, hp->n_layers * sizeof *kv);
  else if ((rc = per_layer(g, hp, "attention.head_count_kv", 1, MAX_HEADS, kv, err)) < 0) return rc;
  if ((rc = per_layer(g, hp, "feed_forward_length", 1, MAX_DIM, ff, err)) < 0) return rc;
  fl_meta_u64(g, hp, "attention.key_length", &head_dim);
  for (size_t i = 0; i < hp->n_layers; i++) {
    fl_layer_hparams *l = &hp->layer[i];
    l->n_heads = (size_t)heads[i];
    l->kv_heads = (size_t)kv[i];
    l->head_dim = head_dim != 0 ? (size_t)head_dim : hp->d_model / l->n_heads;
    l->n_ff = (size_t)ff[i];
    l->kv_from = (int32_t)i;
  }
  return FL_OK;
}

static int check_layers(const fl_hparams *hp, const fl_gguf *g, fl_err *err) {
  for (size_t i = 0; i < hp->n_layers; i++) {
    const fl_layer_hparams *l = &hp->layer[i];
    if (l->kv_heads == 0 || l->n_heads % l->kv_heads != 0)
      return fl_fail(err, FL_EINPUT, "%s: layer %zu has %zu heads, no multiple of its %zu kv heads",
                     fl_gguf_path(g), i, l->n_heads, l->kv_heads);
    if (l->head_dim < 8 || l->head_dim > MAX_HEAD_DIM || l->head_dim % 8 != 0)
      return fl_fail(err, FL_EINPUT, "%s: head size %zu of layer %zu is no multiple of 8 in 8..%d",
                     fl_gguf_path(g), l->head_dim, i, MAX_HEAD_DIM);
    if (2 * hp->rope[l->rope_set].half > l->head_dim)
      return fl_fail(err, FL_EINPUT, "%s: rotary size %zu is over the head size %zu of layer %zu",
                     fl_gguf_path(g), 2 * hp->rope[l->rope_set].half, l->head_dim, i);
  }
  return FL_OK;
}

static int read_common(fl_hparams *hp, const fl_gguf *g, fl_err *err) {
  fl_str name = { "", 0 };
  double eps = 0;
  int rc;
  if (fl_gguf_get_str(g, "general.name", &name))
    memcpy(hp->name, name.data, name.len < sizeof hp->name - 1 ? name.len : sizeof hp->name - 1);
  if ((rc = need_u64(g, hp, "block_count", 1, FL_MAX_LAYERS, &hp->n_layers, err)) < 0) return rc;
  if ((rc = need_u64(g, hp, "embedding_length", 8, MAX_DIM, &hp->d_model, err)) < 0) return rc;
  if ((rc = need_u64(g, hp, "context_length", 1, (uint64_t)1 << 31, &hp->n_ctx, err)) < 0)
    return rc;
  if (!fl_meta_f64(g, hp, "attention.layer_norm_rms_epsilon", &eps) || !(eps > 0 && eps < 1))
    return fl_fail(err, FL_EINPUT,
                   "%s: %s.attention.layer_norm_rms_epsilon is missing or no epsilon",
                   fl_gguf_path(g), hp->arch);
  hp->rms_eps = (float)eps;
  hp->embed_scale = 1;
  hp->act = FL_ACT_SILU;
  return read_layers(hp, g, err);
}

/* A number that is none must not pass for one that is absent and has a default. */
static int check_finite(const fl_hparams *hp, const fl_gguf *g, fl_err *err) {
  size_t prefix = strlen(hp->arch);
  fl_str key;
  fl_gguf_type type;
  for (size_t i = 0; fl_gguf_meta_at(g, i, &key, &type); i++) {
    char name[256];
    double v;
    if ((type != FL_GGUF_F32 && type != FL_GGUF_F64) || key.len >= sizeof name ||
        key.len <= prefix || memcmp(key.data, hp->arch, prefix) != 0 || key.data[prefix] != '.')
      continue;
    memcpy(name, key.data, key.len);
    name[key.len] = '\0';
    if (!fl_gguf_get_f64(g, name, &v))
      return fl_fail(err, FL_EINPUT,
                     "%s: %s is no finite number; download or convert the file again",
                     fl_gguf_path(g), name);
  }
  return FL_OK;
}

int fl_hparams_read(fl_hparams *hp, const fl_gguf *g, fl_err *err) {
  fl_str arch;
  const fl_family *family;
  double base = 10000;
  uint64_t rot = 0;
  int rc;
  memset(hp, 0, sizeof *hp);
  if (!fl_gguf_get_str(g, "general.architecture", &arch) || arch.len >= sizeof hp->arch)
    return fl_fail(err, FL_EINPUT, "%s: the file names no architecture", fl_gguf_path(g));
  memcpy(hp->arch, arch.data, arch.len);
  family = fl_family_find(hp->arch);
  if (family == NULL) {
    char names[128];
    fl_family_names(names, sizeof names);
    return fl_fail(err, FL_EINPUT, "%s: architecture \"%s\" is not supported; these are: %s",
                   fl_gguf_path(g), hp->arch, names);
  }
  if ((rc = check_finite(hp, g, err)) < 0) goto done;
  if ((rc = read_common(hp, g, err)) < 0) goto done;
  if (family->read != NULL && (rc = family->read(hp, g, err)) < 0) goto done;
  if (hp->rope[0].inv_freq == NULL) {
    fl_meta_f64(g, hp, "rope.freq_base", &base);
    fl_meta_u64(g, hp, "rope.dimension_count", &rot);
    if (!(base > 1) || rot > MAX_HEAD_DIM) {
      rc = fl_fail(err, FL_EINPUT, "%s: the rotary base %g or size %llu makes no sense",
                   fl_gguf_path(g), base, (unsigned long long)rot);
      goto done;
    }
    rc = fl_rope_init(&hp->rope[0], g, hp, base, rot != 0 ? (size_t)rot : hp->layer[0].head_dim,
                      true, err);
    if (rc < 0) goto done;
  }
  rc = check_layers(hp, g, err);
done:
  if (rc < 0) fl_hparams_release(hp);
  return rc;
}

size_t fl_last_kv_layer(const fl_hparams *hp) {
  size_t last = 0;
  for (size_t i = 0; i < hp->n_layers; i++)
    if (hp->layer[i].kv_from == (int32_t)i) last = i;
  return last;
}

void fl_hparams_release(fl_hparams *hp) {
  for (size_t i = 0; i < sizeof hp->rope / sizeof *hp->rope; i++) {
    fl_free(hp->rope[i].inv_freq);
    hp->rope[i].inv_freq = NULL;
  }
}
