/* pointwise.h - norms, rotary embedding, activations, softmax pieces: row by row.
 *
 * Shapes are [rows, cols] with a row stride. Every function works on one row at a time in a fixed
 * lane order, so results do not depend on how rows are split between threads: callers split rows.
 * `_bwd` functions have `+=` or `=` as written. Methods: RMSNorm (Zhang & Sennrich 2019), RoPE
 * (Su et al. 2021), SwiGLU/GeGLU (Shazeer 2020).
 */
#ifndef FL_KERNELS_POINTWISE_H
#define FL_KERNELS_POINTWISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

/* y = x / sqrt(mean(x^2) + eps) * w  (w == NULL: no weight). y may be x. */
void fl_rmsnorm(const fl_kernels *k, float *y, const float *x, const float *w, size_t rows,
                size_t cols, size_t ldy, size_t ldx, float eps);
/* dx = gradient with respect to x (statistics recomputed); add: +=. dx may be dy when !add. */
void fl_rmsnorm_bwd(const fl_kernels *k, float *dx, const float *dy, const float *x, const float *w,
                    size_t rows, size_t cols, size_t lddx, size_t lddy, size_t ldx, float eps,
                    bool add);

/* cos/sin table rows for positions [pos0, pos0 + n): cs [n, half, 2]; angle = pos * inv_freq[i],
 * computed in double, rounded once. inv_freq [half] doubles carry scaling and proportional factors;
 * mscale multiplies cos and sin (yarn). */
void fl_rope_table(float *cs, size_t pos0, size_t n, const double *inv_freq, size_t half,
                   double mscale);
/* Rotates n_heads heads of head_dim in place: x row layout [n_heads, head_dim], pairs (i, i + half)
 * when !interleaved, (2i, 2i+1) when interleaved; only the first 2*half values turn. cs: the row's
 * [half, 2]. inverse: rotates back (the backward). */
void fl_rope_row(const fl_kernels *k, float *x, size_t n_heads, size_t head_dim, size_t half,
                 const float *cs, bool interleaved, bool inverse);

typedef enum fl_act { FL_ACT_SILU, FL_ACT_GELU_TANH } fl_act;
/* h = act(g) * u, elementwise over n values; h may be g. */
void fl_glu(const fl_kernels *k, float *h, const float *g, const float *u, size_t n, fl_act act);
/* dg = dh * u * act'(g), du = dh * act(g). dg may be dh, or g; du may be u. */
void fl_glu_bwd(const fl_kernels *k, float *dg, float *du, const float *dh, const float *g,
                const float *u, size_t n, fl_act act);
/* dx = dy * act'(x) */
void fl_act_bwd(const fl_kernels *k, float *dx, const float *dy, const float *x, size_t n,
                fl_act act);

void fl_add(const fl_kernels *k, float *y, const float *x, size_t n);           /* y += x */
void fl_scale(const fl_kernels *k, float *y, float s, size_t n);                /* y *= s */
void fl_axpy(const fl_kernels *k, float *y, float a, const float *x, size_t n); /* y += a*x (fma) */
void fl_mul(const fl_kernels *k, float *y, const float *x, size_t n);           /* y *= x */
/* In one fixed lane order. */
float fl_dot(const fl_kernels *k, const float *a, const float *b, size_t n);
/* y = cap * tanh(x / cap); backward dx = dy * (1 - (y/cap)^2). In place allowed. */
void fl_softcap(const fl_kernels *k, float *y, const float *x, size_t n, float cap);
void fl_softcap_bwd(const fl_kernels *k, float *dx, const float *dy, const float *y, size_t n,
                    float cap);

/* max over n; sum of exp(x - max) in a fixed order; log-sum-exp = max + log(sum). */
float fl_max(const fl_kernels *k, const float *x, size_t n);
float fl_sum_exp(const fl_kernels *k, const float *x, size_t n, float max);
/* y = exp(x - max) * scale */
void fl_exp_scaled(const fl_kernels *k, float *y, const float *x, size_t n, float max, float scale);

/* f32 <-> cache type conversion of n values (round to nearest even). */
void fl_f32_to_f16_n(const fl_kernels *k, uint16_t *y, const float *x, size_t n);
void fl_f16_to_f32_n(const fl_kernels *k, float *y, const uint16_t *x, size_t n);

#endif
