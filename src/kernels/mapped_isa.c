/* mapped_isa.c - dequantising rows of the file's own layout (formats/quant_block.c, quant_k.c),
 * one build per level. A value is formed as dequant_read.h does: an exact product, then at most
 * one sum. */
#include "kernels/mapped_isa.h"

#include "formats/quant.h"
#include "kernels/simd.h"
#include "kernels/simd_math.h"
#include "kernels/simd_narrow.h"
#include "kernels/transpose_isa.h"

enum { GROUP = 32, SUB = 16 };

/* out [32] = fma(q, scale, min), q the nibbles low of bytes 0 to 15, then high, with fifth bits. */
FL_VEC void nibbles_32(float *out, const uint8_t *in, uint32_t fifth, bool five, float scale,
                       float min) {
  const vf s = vf_set1(scale), m = vf_set1(min);
  const vu bits = (vu){ 0 } + fifth;
  vi lane;
  for (int i = 0; i < VF; i++) lane[i] = i;
  for (size_t i = 0; i < SUB; i += VF) {
    const vi b = vi_load_u8(in + i);
    vi lo = b & 15, hi = b >> 4;
    if (five) {
      const vi at = lane + (int)i;
      lo |= (vi)((bits >> (vu)at) & 1) << 4;
      hi |= (vi)((bits >> (vu)(at + SUB)) & 1) << 4;
    }
    vf_store(out + i, vf_fma(vf_from_i32(lo), s, m));
    vf_store(out + SUB + i, vf_fma(vf_from_i32(hi), s, m));
  }
}

/* out [32] of a K-quant's sub-block: nibbles of 32 bytes, `shift` 0 or 4, bit `bit` of fifth. */
FL_VEC void nibbles_k(float *out, const uint8_t *in, int shift, const uint8_t *fifth, int bit,
                      float scale, float min) {
  const vf s = vf_set1(scale), m = vf_set1(min);
  for (size_t i = 0; i < GROUP; i += VF) {
    vi q = (vi_load_u8(in + i) >> shift) & 15;
    if (fifth) q |= ((vi_load_u8(fifth + i) >> bit) & 1) << 4;
    vf_store(out + i, vf_fma(vf_from_i32(q), s, m));
  }
}

/* Six-bit scale and minimum of sub-block s. */
FL_VEC void k_scale(const uint8_t *block, size_t s, float *scale, float *min) {
  const uint8_t *packed = block + 4;
  unsigned a, b;
  if (s < 4) {
    a = packed[s] & 63;
    b = packed[s + 4] & 63;
  } else {
    a = (packed[s + 4] & 15u) | (unsigned)packed[s - 4] >> 6 << 4;
    b = (unsigned)packed[s + 4] >> 4 | (unsigned)packed[s] >> 6 << 4;
  }
  *scale = fl_half_at(block) * (float)a;
  *min = -(fl_half_at(block + 2) * (float)b);
}

static void group_q6_k(float *out, const uint8_t *block, size_t g) {
  const size_t half = g / 4, i = g % 4;
  const uint8_t *low = block + half * 64 + i % 2 * GROUP, *upper = block + 128 + half * GROUP;
  const int8_t *scales = (const int8_t *)block + 192 + g * 2;
  const int shift = i < 2 ? 0 : 4, pair = (int)i * 2;
  const float d = fl_half_at(block + 208);
  for (size_t l = 0; l < GROUP; l += VF) {
    const vf s = vf_set1(d * (float)scales[l / SUB]);
    vi q = ((vi_load_u8(low + l) >> shift) & 15) | ((vi_load_u8(upper + l) >> pair) & 3) << 4;
    vf_store(out + l, vf_fma(vf_from_i32(q), s, s * -32.0f));
  }
}

static void group_q8_0(float *out, const uint8_t *block) {
  const vf d = vf_set1(fl_half_at(block));
  for (size_t i = 0; i < GROUP; i += VF)
    vf_store(out + i, vf_load_i8((const int8_t *)block + 2 + i) * d);
}

/* The 32 values of group g of a row of quantised blocks. */
static void group_of(fl_dtype type, float *out, const uint8_t *row, size_t g) {
  uint32_t fifth;
  float scale, min;
  const uint8_t *b;
  switch (type) {
  case FL_Q8_0: group_q8_0(out, row + g * 34); return;
  case FL_Q4_0:
    b = row + g * 18;
    scale = fl_half_at(b);
    nibbles_32(out, b + 2, 0, false, scale, scale * -8.0f);
    return;
  case FL_Q4_1:
    b = row + g * 20;
    nibbles_32(out, b + 4, 0, false, fl_half_at(b), fl_half_at(b + 2));
    return;
  case FL_Q5_0:
    b = row + g * 22;
    memcpy(&fifth, b + 2, sizeof fifth);
    scale = fl_half_at(b);
    nibbles_32(out, b + 6, fifth, true, scale, scale * -16.0f);
    return;
  case FL_Q5_1:
    b = row + g * 24;
    memcpy(&fifth, b + 4, sizeof fifth);
    nibbles_32(out, b + 8, fifth, true, fl_half_at(b), fl_half_at(b + 2));
    return;
  case FL_Q4_K:
    b = row + g / 8 * 144;
    k_scale(b, g % 8, &scale, &min);
    nibbles_k(out, b + 16 + g % 8 / 2 * GROUP, (int)(g % 2) * 4, NULL, 0, scale, min);
    return;
  case FL_Q5_K:
    b = row + g / 8 * 176;
    k_scale(b, g % 8, &scale, &min);
    nibbles_k(out, b + 48 + g % 8 / 2 * GROUP, (int)(g % 2) * 4, b + 16, (int)(g % 8), scale, min);
    return;
  default: group_q6_k(out, row + g / 8 * 210, g % 8); return;
  }
}

/* Values [k0, k0 + n) of a row of one of the types without blocks. */
static void plain_values(fl_dtype type, float *out, const uint8_t *row, size_t k0, size_t n) {
  size_t k = 0;
  if (type == FL_F32) {
    memcpy(out, row + k0 * 4, n * sizeof *out);
    return;
  }
  const uint8_t *in = row + k0 * 2;
  for (; k + VF <= n; k += VF) {
    uint16_t h[VF]; /* rows of a file have no alignment of their own */
    memcpy(h, in + k * 2, sizeof h);
    vf_store(out + k, type == FL_F16 ? vf_load_f16(h) : vf_load_bf16(h));
  }
  for (; k < n; k++) {
    uint16_t h;
    memcpy(&h, in + k * 2, sizeof h);
    out[k] = type == FL_F16 ? fl_f16_to_f32(h) : fl_bf16_to_f32(h);
  }
}

static void values(fl_dtype type, float *out, const uint8_t *row, size_t k0, size_t n) {
  float group[GROUP];
  if (type == FL_F32 || type == FL_F16 || type == FL_BF16) {
    plain_values(type, out, row, k0, n);
    return;
  }
  for (size_t k = k0; k < k0 + n;) {
    const size_t from = k % GROUP, left = k0 + n - k,
                 len = GROUP - from < left ? GROUP - from : left;
    if (len == GROUP) {
      group_of(type, out + (k - k0), row, k / GROUP);
    } else {
      group_of(type, group, row, k / GROUP);
      memcpy(out + (k - k0), group + from, len * sizeof *out);
    }
    k += len;
  }
}

enum { LANES = 16, RUN = 64 }; /* rows and inputs in the buffer at a time */

static void dequant(const fl_panels *w, float *out, size_t ld, size_t panel, size_t k0, size_t n) {
  float rows[LANES * RUN];
  const size_t first = panel * w->nr;
  for (size_t lane = 0; lane < w->nr; lane += LANES) {
    const size_t n_lanes = w->nr - lane < LANES ? w->nr - lane : LANES;
    for (size_t k = 0; k < n; k += RUN) {
      const size_t len = n - k < RUN ? n - k : RUN;
      for (size_t l = 0; l < n_lanes; l++) {
        const size_t o = first + lane + l;
        if (o < w->n_out) values(w->format->type, rows + l * RUN, fl_mapped_row(w, o), k0 + k, len);
        else memset(rows + l * RUN, 0, len * sizeof *rows);
      }
      w->kern->transpose->transpose(out + k * ld + lane, ld, rows, RUN, n_lanes, len);
    }
  }
}

const struct fl_mapped_ops FL_ISA_TABLE(fl_mapped_ops) = { .dequant = dequant };
