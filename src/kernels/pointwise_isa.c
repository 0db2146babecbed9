/* pointwise_isa.c - row functions, compiled once per instruction-set level.
 *
 * A loop over n values takes VF at a time and the rest as the first lanes of one more vector, so a
 * value's bits do not depend on where it stands. Sums run in four interleaved vectors of lanes that
 * are added pairwise at the end: one order for each n.
 */
#include "kernels/pointwise_isa.h"
#include "kernels/simd_math.h"
#include "kernels/simd_narrow.h"

#include <math.h>

#include "kernels/table.h"
#include "kernels/vmath.h"

#define FOR_LANES(i, m, n)                                                                         \
  for (size_t i = 0, m = (n) < VF ? (n) : VF; i < (n); i += VF, m = (n)-i < VF ? (n)-i : VF)

static float dot(const float *a, const float *b, size_t n) {
  vf s[4] = { vf_zero(), vf_zero(), vf_zero(), vf_zero() };
  size_t i = 0;
  for (; n - i >= 4 * VF; i += 4 * VF)
    for (size_t j = 0; j < 4; j++)
      s[j] = vf_fma(vf_load(a + i + j * VF), vf_load(b + i + j * VF), s[j]);
  for (size_t j = 0; i < n; i += VF, j++) {
    size_t m = n - i;
    s[j] = vf_fma(vm_load(a + i, m), vm_load(b + i, m), s[j]);
  }
  return vm_sum((s[0] + s[1]) + (s[2] + s[3]));
}

/* --- RMSNorm ---------------------------------------------------------------------------------- */

static float inverse_rms(const float *x, size_t n, float eps) {
  return 1.0f / sqrtf(dot(x, x, n) / (float)n + eps);
}

static void rmsnorm(float *y, const float *x, const float *w, size_t cols, float eps) {
  float inv = inverse_rms(x, cols, eps);
  FOR_LANES(i, m, cols) {
    vf v = vm_load(x + i, m) * inv;
    vm_store(y + i, w ? v * vm_load(w + i, m) : v, m);
  }
}

/* Sum over the row of dy * w * x, in the order of dot(). */
static float dot3(const float *dy, const float *x, const float *w, size_t n) {
  if (!w) return dot(dy, x, n);
  vf s[4] = { vf_zero(), vf_zero(), vf_zero(), vf_zero() };
  size_t j = 0;
  FOR_LANES(i, m, n) {
    s[j] = vf_fma(vm_load(dy + i, m) * vm_load(w + i, m), vm_load(x + i, m), s[j]);
    j = (j + 1) % 4;
  }
  return vm_sum((s[0] + s[1]) + (s[2] + s[3]));
}

/* dx = inv * (dy*w - x * inv^2 * mean(dy*w*x)) */
static void rmsnorm_bwd(float *dx, const float *dy, const float *x, const float *w, size_t cols,
                        float eps, bool add) {
  float inv = inverse_rms(x, cols, eps);
  float shrink = -(dot3(dy, x, w, cols) / (float)cols) * inv * inv;
  FOR_LANES(i, m, cols) {
    vf g = vm_load(dy + i, m);
    if (w) g = g * vm_load(w + i, m);
    g = vf_fma(vf_set1(shrink), vm_load(x + i, m), g) * inv;
    vm_store(dx + i, add ? vm_load(dx + i, m) + g : g, m);
  }
}

/* --- rotary embedding ------------------------------------------------------------------------- */

/* Pairs (i, i + half). The table's cos and sin are taken apart once for all heads. */
static void rope_halves(float *x, size_t n_heads, size_t head_dim, size_t half, const float *cs,
                        float sign) {
  FOR_LANES(i, m, half) {
    float c[VF] = { 0 }, s[VF] = { 0 };
    for (size_t j = 0; j < m; j++) {
      c[j] = cs[2 * (i + j)];
      s[j] = cs[2 * (i + j) + 1] * sign;
    }
    vf vc = vf_load(c), vs = vf_load(s);
    for (size_t h = 0; h < n_heads; h++) {
      float *lo = x + h * head_dim + i, *hi = lo + half;
      vf a = vm_load(lo, m), b = vm_load(hi, m);
      vm_store(lo, vf_fma(a, vc, -(b * vs)), m);
      vm_store(hi, vf_fma(b, vc, a * vs), m);
    }
  }
}

/* Pairs (2i, 2i+1): the neighbour is brought over by turning each 64-bit lane by 32 bits. */
static void rope_pairs(float *x, size_t n_heads, size_t head_dim, size_t half, const float *cs,
                       float sign) {
  typedef uint64_t vw __attribute__((vector_size(4 * VF)));
  size_t n = 2 * half;
  FOR_LANES(i, m, n) {
    float c[VF] = { 0 }, s[VF] = { 0 };
    for (size_t j = 0; j < m; j += 2) {
      c[j] = c[j + 1] = cs[i + j];
      s[j + 1] = cs[i + j + 1] * sign;
      s[j] = -s[j + 1];
    }
    vf vc = vf_load(c), vs = vf_load(s);
    for (size_t h = 0; h < n_heads; h++) {
      float *p = x + h * head_dim + i;
      vf a = vm_load(p, m);
      vf swapped = (vf)(((vw)a >> 32) | ((vw)a << 32));
      vm_store(p, vf_fma(a, vc, swapped * vs), m);
    }
  }
}

/* --- activations ------------------------------------------------------------------------------ */

/* gelu_tanh(x) = x * (1 + tanh(u)) / 2 = x * sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3); the
 * second form keeps its relative accuracy where 1 + tanh(u) cancels. */
static const float gelu_a = 1.59576912f, gelu_b = 0.0713548163f; /* 2 sqrt(2/pi), times 0.044715 */

/* Beyond +-30 the sigmoid is 0 or 1 already; the bound keeps x^3 finite. */
FL_VEC vf gelu_gate(vf x) {
  vf c = vf_max(vf_set1(-30.0f), vf_min(vf_set1(30.0f), x));
  return vm_sigmoid(c * vf_fma(c * c, vf_set1(gelu_b), vf_set1(gelu_a)));
}

FL_VEC vf act(vf x, fl_act kind) {
  return x * (kind == FL_ACT_SILU ? vm_sigmoid(x) : gelu_gate(x));
}

/* Sets *y = act(x) and returns act'(x). */
FL_VEC vf act_slope(vf *y, vf x, fl_act kind) {
  vf one = vf_set1(1.0f);
  vf s = kind == FL_ACT_SILU ? vm_sigmoid(x) : gelu_gate(x);
  *y = x * s;
  if (kind == FL_ACT_SILU) return s * vf_fma(x, one - s, one);
  vf c = vf_max(vf_set1(-30.0f), vf_min(vf_set1(30.0f), x));
  vf slope = vf_fma(c * c, vf_set1(3.0f * gelu_b), vf_set1(gelu_a));
  return vf_fma(c * (s * (one - s)), slope, s);
}

static void glu(float *h, const float *g, const float *u, size_t n, fl_act kind) {
  FOR_LANES(i, m, n) vm_store(h + i, act(vm_load(g + i, m), kind) * vm_load(u + i, m), m);
}

static void glu_bwd(float *dg, float *du, const float *dh, const float *g, const float *u, size_t n,
                    fl_act kind) {
  FOR_LANES(i, m, n) {
    vf y, d = vm_load(dh + i, m), vu_ = vm_load(u + i, m);
    vf slope = act_slope(&y, vm_load(g + i, m), kind);
    vm_store(dg + i, d * vu_ * slope, m);
    vm_store(du + i, d * y, m);
  }
}

static void act_bwd(float *dx, const float *dy, const float *x, size_t n, fl_act kind) {
  FOR_LANES(i, m, n) {
    vf y, slope = act_slope(&y, vm_load(x + i, m), kind);
    vm_store(dx + i, vm_load(dy + i, m) * slope, m);
  }
}

static void softcap(float *y, const float *x, size_t n, float cap) {
  FOR_LANES(i, m, n) vm_store(y + i, vm_softcap(vm_load(x + i, m), cap), m);
}

static void softcap_bwd(float *dx, const float *dy, const float *y, size_t n, float cap) {
  FOR_LANES(i, m, n) {
    vf t = vm_load(y + i, m) / cap;
    vm_store(dx + i, vm_load(dy + i, m) * vf_fma(-t, t, vf_set1(1.0f)), m);
  }
}

/* --- elementwise ------------------------------------------------------------------------------ */

static void add(float *y, const float *x, size_t n) {
  FOR_LANES(i, m, n) vm_store(y + i, vm_load(y + i, m) + vm_load(x + i, m), m);
}

static void scale(float *y, float s, size_t n) {
  FOR_LANES(i, m, n) vm_store(y + i, vm_load(y + i, m) * s, m);
}

static void axpy(float *y, float a, const float *x, size_t n) {
  FOR_LANES(i, m, n) vm_store(y + i, vf_fma(vf_set1(a), vm_load(x + i, m), vm_load(y + i, m)), m);
}

static void mul(float *y, const float *x, size_t n) {
  FOR_LANES(i, m, n) vm_store(y + i, vm_load(y + i, m) * vm_load(x + i, m), m);
}

/* --- softmax pieces --------------------------------------------------------------------------- */

static float max_of(const float *x, size_t n) {
  vf m = vf_set1(-INFINITY);
  size_t i = 0;
  for (; n - i >= VF; i += VF) m = vf_max(vf_load(x + i), m);
  float best = vm_hmax(m);
  for (; i < n; i++) best = x[i] > best ? x[i] : best;
  return best;
}

/* Short runs are added in f32 lanes and the runs in double: 150,000 terms lose nothing. */
static float sum_exp(const float *x, size_t n, float max) {
  enum { RUN = 64 * VF };
  double total = 0;
  for (size_t first = 0; first < n; first += RUN) {
    size_t len = n - first < RUN ? n - first : RUN;
    vf s = vf_zero();
    size_t i = 0;
    for (; len - i >= VF; i += VF) s = s + vm_exp(vf_load(x + first + i) - max);
    if (i < len) {
      float rest[VF] = { 0 };
      vf_store_n(rest, vm_exp(vf_load_n(x + first + i, len - i) - max), len - i);
      s = s + vf_load(rest);
    }
    total += (double)vm_sum(s);
  }
  return (float)total;
}

static void exp_scaled(float *y, const float *x, size_t n, float max, float factor) {
  FOR_LANES(i, m, n) vm_store(y + i, vm_exp(vm_load(x + i, m) - max) * factor, m);
}

/* --- f16 -------------------------------------------------------------------------------------- */

static void to_f16(uint16_t *y, const float *x, size_t n) {
  size_t i = 0;
  for (; n - i >= VF; i += VF) vf_store_f16(y + i, vf_load(x + i));
  if (i == n) return;
  uint16_t rest[VF];
  vf_store_f16(rest, vf_load_n(x + i, n - i));
  memcpy(y + i, rest, (n - i) * sizeof *y);
}

static void from_f16(float *y, const uint16_t *x, size_t n) {
  size_t i = 0;
  for (; n - i >= VF; i += VF) vf_store(y + i, vf_load_f16(x + i));
  if (i == n) return;
  uint16_t rest[VF] = { 0 };
  memcpy(rest, x + i, (n - i) * sizeof *x);
  vf_store_n(y + i, vf_load_f16(rest), n - i);
}

extern const struct fl_pointwise_ops FL_ISA_TABLE(fl_pointwise_ops);
const struct fl_pointwise_ops FL_ISA_TABLE(fl_pointwise_ops) = {
  .rmsnorm = rmsnorm,
  .rmsnorm_bwd = rmsnorm_bwd,
  .rope_halves = rope_halves,
  .rope_pairs = rope_pairs,
  .glu = glu,
  .glu_bwd = glu_bwd,
  .act_bwd = act_bwd,
  .add = add,
  .scale = scale,
  .axpy = axpy,
  .mul = mul,
  .dot = dot,
  .softcap = softcap,
  .softcap_bwd = softcap_bwd,
  .max = max_of,
  .sum_exp = sum_exp,
  .exp_scaled = exp_scaled,
  .to_f16 = to_f16,
  .from_f16 = from_f16,
};
