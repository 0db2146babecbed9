/* family.c - the table of families and the metadata helpers that they share. */
#include "model/family.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* Every block's feed-forward is a router and its experts; the weights of the chosen ones are
 * renormalised. */
static int read_qwen3moe(fl_hparams *hp, const fl_gguf *g, fl_err *err) {
  for (size_t i = 0; i < hp->n_layers; i++) hp->layer[i].n_ff = 0;
  return fl_experts_read(hp, g, err);
}

/* Rotary pairs are neighbours (2i, 2i + 1), as the file's q and k rows are permuted for it. */
static int read_llama(fl_hparams *hp, const fl_gguf *g, fl_err *err) {
  uint64_t n_experts = 0;
  fl_meta_u64(g, hp, "expert_count", &n_experts);
  if (n_experts != 0)
    return fl_fail(err, FL_EINPUT, "%s: llama with experts is not supported", fl_gguf_path(g));
  hp->rope_interleaved = true;
  return FL_OK;
}

/* The common block, with the norms on q and k and the biases that a file has, is all of Qwen2 and
 * Qwen3; SmolLM2 is a Llama. */
static const fl_family families[] = {
  { "qwen3", NULL },       { "qwen3moe", read_qwen3moe }, { "qwen2", NULL },
  { "llama", read_llama }, { "gemma3", fl_read_gemma3 },  { "gemma4", fl_read_gemma4 },
};
enum { N_FAMILIES = sizeof families / sizeof *families };

const fl_family *fl_family_find(const char *arch) {
  for (size_t i = 0; i < N_FAMILIES; i++)
    if (strcmp(families[i].arch, arch) == 0) return &families[i];
  return NULL;
}

void fl_family_names(char *out, size_t size) {
  size_t at = 0;
  for (size_t i = 0; i < N_FAMILIES && at < size; i++)
    at += (size_t)snprintf(out + at, size - at, "%s%s", i ? ", " : "", families[i].arch);
}

static const char *arch_key(char buf[256], const fl_hparams *hp, const char *key) {
  snprintf(buf, 256, "%s.%s", hp->arch, key);
  return buf;
}

bool fl_meta_u64(const fl_gguf *g, const fl_hparams *hp, const char *key, uint64_t *out) {
  char buf[256];
  return fl_gguf_get_u64(g, arch_key(buf, hp, key), out);
}

bool fl_meta_f64(const fl_gguf *g, const fl_hparams *hp, const char *key, double *out) {
  char buf[256];
  return fl_gguf_get_f64(g, arch_key(buf, hp, key), out);
}

bool fl_meta_per_layer(const fl_gguf *g, const fl_hparams *hp, const char *key, double *out) {
  char buf[256];
  fl_gguf_arr a;
  double one;
  if (fl_gguf_get_arr(g, arch_key(buf, hp, key), &a)) {
    if (a.n != hp->n_layers || a.type == FL_GGUF_STR) return false;
    for (size_t i = 0; i < a.n; i++) out[i] = fl_gguf_arr_f64(&a, i);
    return true;
  }
  if (!fl_gguf_get_f64(g, buf, &one)) return false;
  for (size_t i = 0; i < hp->n_layers; i++) out[i] = one;
  return true;
}

typedef struct yarn {
  double factor, n_orig;
  double beta_fast, beta_slow; /* turns over the original context at the ends of the ramp */
  double ext, attn;            /* share of the frequencies kept; what multiplies cos and sin */
} yarn;

/* Yarn (Peng et al. 2023, section 3): frequencies whose wavelength is long against the original
 * context are interpolated, short ones kept, with a linear ramp between. */
static void yarn_scale(fl_rope_hparams *r, double base, size_t dim, const yarn *y) {
  const double two_pi = 6.283185307179586;
  double lo = (double)dim * log(y->n_orig / (y->beta_fast * two_pi)) / (2.0 * log(base));
  double hi = (double)dim * log(y->n_orig / (y->beta_slow * two_pi)) / (2.0 * log(base));
  lo = floor(lo) < 0 ? 0 : floor(lo);
  hi = ceil(hi) > (double)dim - 1 ? (double)dim - 1 : ceil(hi);
  for (size_t i = 0; i < r->half; i++) {
    double ramp = ((double)i - lo) / (hi - lo > 0.001 ? hi - lo : 0.001);
    ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    double kept = (1.0 - ramp) * y->ext;
    r->inv_freq[i] = r->inv_freq[i] / y->factor * (1.0 - kept) + r->inv_freq[i] * kept;
  }
  r->mscale = y->attn * (y->ext != 0 ? 1.0 + 0.1 * log(y->factor) : 1.0);
}

static int read_yarn(yarn *y, const fl_gguf *g, const fl_hparams *hp, fl_err *err) {
  fl_meta_f64(g, hp, "rope.scaling.yarn_beta_fast", &y->beta_fast);
  fl_meta_f64(g, hp, "rope.scaling.yarn_beta_slow", &y->beta_slow);
  fl_meta_f64(g, hp, "rope.scaling.yarn_ext_factor", &y->ext);
  fl_meta_f64(g, hp, "rope.scaling.attn_factor", &y->attn);
  fl_meta_f64(g, hp, "rope.scaling.yarn_attn_factor", &y->attn);
  if (y->ext < 0) y->ext = 1; /* how a file says "the usual" */
  if (!(y->beta_slow > 0) || !(y->beta_fast >= y->beta_slow) || !(y->beta_fast < 1e6) ||
      !(y->attn > 0 && y->attn < 1e3) || !(y->ext <= 1))
    return fl_fail(err, FL_EINPUT,
                   "%s: rope.scaling: betas %g and %g, factors %g and %g make no sense",
                   fl_gguf_path(g), y->beta_fast, y->beta_slow, y->ext, y->attn);
  return FL_OK;
}

static int apply_factors(fl_rope_hparams *r, const fl_gguf *g, fl_err *err) {
  const fl_tensor_info *t = fl_gguf_tensor(g, "rope_freqs.weight");
  if (t == NULL) return FL_OK;
  if (t->ggml_type != FL_F32 || t->n_dims != 1 || t->dim[0] != r->half)
    return fl_fail(err, FL_EINPUT, "%s: rope_freqs.weight must hold %zu f32 values",
                   fl_gguf_path(g), r->half);
  for (size_t i = 0; i < r->half; i++) {
    float f;
    memcpy(&f, (const char *)t->data + i * sizeof f, sizeof f);
    if (!(f > 0) || !isfinite(f))
      return fl_fail(err, FL_EINPUT, "%s: rope_freqs.weight holds the factor %g, which is no scale",
                     fl_gguf_path(g), (double)f);
    r->inv_freq[i] /= (double)f;
  }
  return FL_OK;
}

int fl_rope_init(fl_rope_hparams *r, const fl_gguf *g, const fl_hparams *hp, double base,
                 size_t dim, bool scaled, fl_err *err) {
  char buf[256];
  fl_str type = { "", 0 };
  yarn y = {
    .factor = 1, .n_orig = (double)hp->n_ctx, .beta_fast = 32, .beta_slow = 1, .ext = 1, .attn = 1
  };
  int rc;
  if (dim % 2 != 0)
    return fl_fail(err, FL_EINPUT,
                   "%s: the rotary size %zu is odd; download or convert the file again",
                   fl_gguf_path(g), dim);
  r->half = dim / 2;
  r->mscale = 1;
  r->inv_freq = fl_calloc(r->half, sizeof *r->inv_freq);
  if (r->inv_freq == NULL) return fl_fail(err, FL_ENOMEM, "out of memory");
  for (size_t i = 0; i < r->half; i++) r->inv_freq[i] = pow(base, -2.0 * (double)i / (double)dim);
  if (!scaled) return FL_OK;
  fl_gguf_get_str(g, arch_key(buf, hp, "rope.scaling.type"), &type);
  fl_meta_f64(g, hp, "rope.scaling.factor", &y.factor);
  fl_meta_f64(g, hp, "rope.scaling.original_context_length", &y.n_orig);
  if (!(y.factor > 0) || !isfinite(y.factor) || !(y.n_orig >= 1))
    return fl_fail(err, FL_EINPUT, "%s: rope.scaling.factor %g is no scale", fl_gguf_path(g),
                   y.factor);
  if (type.len == 6 && memcmp(type.data, "linear", 6) == 0) {
    for (size_t i = 0; i < r->half; i++) r->inv_freq[i] /= y.factor;
  } else if (type.len == 4 && memcmp(type.data, "yarn", 4) == 0) {
    if ((rc = read_yarn(&y, g, hp, err)) < 0) return rc;
    yarn_scale(r, base, dim, &y);
  } else if (type.len != 0 && !(type.len == 4 && memcmp(type.data, "none", 4) == 0)) {
    return fl_fail(err, FL_EINPUT,
                   "%s: rope scaling \"%.*s\" is not supported; linear and yarn are",
                   fl_gguf_path(g), (int)type.len, type.data);
  }
  return apply_factors(r, g, err);
}

int fl_experts_read(fl_hparams *hp, const fl_gguf *g, fl_err *err) {
  uint64_t n = 0, used = 0, ff = 0;
  fl_meta_u64(g, hp, "expert_count", &n);
  fl_meta_u64(g, hp, "expert_used_count", &used);
  fl_meta_u64(g, hp, "expert_feed_forward_length", &ff);
  if (n < 1 || n > 4096 || used < 1 || used > n || used > FL_MAX_EXPERTS_USED || ff < 1 ||
      ff > (uint64_t)1 << 20)
    return fl_fail(err, FL_EINPUT, "%s: %llu experts, %llu used, of width %llu make no sense",
                   fl_gguf_path(g), (unsigned long long)n, (unsigned long long)used,
                   (unsigned long long)ff);
  hp->n_experts = (size_t)n;
  hp->n_experts_used = (size_t)used;
  hp->n_ff_expert = (size_t)ff;
  hp->expert_renorm = true;
  return FL_OK;
}
