/* attention_ref.c - attention in double over row-major K and V: the plain twins, for tests. */
#include <math.h>

#include "base/mem.h"
#include "kernels/attention.h"

static double dot(const float *a, const float *b, size_t n) {
  double s = 0;
  for (size_t i = 0; i < n; i++) s += (double)a[i] * (double)b[i];
  return s;
}

/* One query row and head: fills p [n_rows] (0 where unseen) and slope [n_rows], d(score)/d(q.k). */
static void softmax_row(const fl_attn *a, size_t pos, size_t n_rows, double *p, double *slope,
                        const float *q, const float *key, size_t ld) {
  size_t first = a->window && pos + 1 > a->window ? pos + 1 - a->window : 0;
  double top = -INFINITY, sum = 0;
  for (size_t j = first; j <= pos; j++) {
    double s = (double)a->scale * dot(q, key + j * ld, a->head_dim), cap = a->softcap;
    double t = cap != 0 ? tanh(s / cap) : 0;
    p[j] = cap != 0 ? cap * t : s;
    slope[j] = (double)a->scale * (1 - t * t);
    top = p[j] > top ? p[j] : top;
  }
  for (size_t j = 0; j < n_rows; j++) {
    p[j] = j < first || j > pos ? 0 : exp(p[j] - top);
    sum += p[j];
  }
  for (size_t j = 0; j < n_rows; j++) p[j] /= sum;
}

void fl_attention_ref(const fl_attn *a, size_t n_rows, size_t n_q, double *out, const float *q,
                      const float *key, const float *val) {
  size_t hd = a->head_dim, ld = a->kv_heads * hd, group = a->n_heads / a->kv_heads;
  double *p = fl_calloc(2 * n_rows + 1, sizeof *p);
  if (!p) return;
  for (size_t row = 0; row < n_q * a->n_heads; row++) {
    size_t i = row / a->n_heads, at = row % a->n_heads / group * hd;
    softmax_row(a, n_rows - n_q + i, n_rows, p, p + n_rows, q + row * hd, key + at, ld);
    for (size_t d = 0; d < hd; d++) {
      double o = 0;
      for (size_t j = 0; j < n_rows; j++) o += p[j] * (double)val[j * ld + at + d];
      out[row * hd + d] = o;
    }
  }
  fl_free(p);
}

/* Adds the gradient of one query row and head. */
static void row_bwd(const fl_attn *a, size_t n_rows, double *dq, double *dk, double *dv,
                    const float *dout, const float *q, const float *key, const float *val,
                    const double *p, const double *slope) {
  size_t hd = a->head_dim, ld = a->kv_heads * hd;
  double delta = 0;
  for (size_t j = 0; j < n_rows; j++) delta += p[j] * dot(dout, val + j * ld, hd);
  for (size_t j = 0; j < n_rows; j++) {
    if (p[j] == 0) continue;
    double ds = p[j] * (dot(dout, val + j * ld, hd) - delta) * slope[j];
    for (size_t d = 0; d < hd; d++) {
      dq[d] += ds * (double)key[j * ld + d];
      dk[j * ld + d] += ds * (double)q[d];
      dv[j * ld + d] += p[j] * (double)dout[d];
    }
  }
}

void fl_attention_bwd_ref(const fl_attn *a, size_t n_rows, size_t n_q, double *dq, double *dk,
                          double *dv, const float *dout, const float *q, const float *key,
                          const float *val) {
  size_t hd = a->head_dim, ld = a->kv_heads * hd, group = a->n_heads / a->kv_heads;
  double *p = fl_calloc(2 * n_rows + 1, sizeof *p);
  if (!p) return;
  for (size_t i = 0; i < n_rows * ld; i++) dk[i] = dv[i] = 0;
  for (size_t i = 0; i < n_q * a->n_heads * hd; i++) dq[i] = 0;
  for (size_t row = 0; row < n_q * a->n_heads; row++) {
    size_t i = row / a->n_heads, at = row % a->n_heads / group * hd, r = row * hd;
    softmax_row(a, n_rows - n_q + i, n_rows, p, p + n_rows, q + r, key + at, ld);
    row_bwd(a, n_rows, dq + r, dk + at, dv + at, dout + r, q + r, key + at, val + at, p,
            p + n_rows);
  }
  fl_free(p);
}
