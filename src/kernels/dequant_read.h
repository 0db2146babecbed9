/* dequant_read.h - reading panels in vectors of lanes; for dequant_isa.c and gemm_small_isa.c.
 *
 * A panel is read in runs: inputs that share their scales. Within a run a value is
 *     f32, f16, bf16   the element
 *     int8             (q * 2^24) * scale, 2^24 being taken out of the scale
 *     4 to 6 bits      fma(q, scale, min), with the types' biases folded into min
 * Each is exactly the type's value (formats/dtype.h): q * scale has at most 24 significant bits, so
 * only the sum may round, once, as it does there. (A zero may differ in its sign, which no chain
 * that begins at +0 can show.)
 * `kind` is a constant wherever these are inlined.
 */
#ifndef FL_KERNELS_DEQUANT_READ_H
#define FL_KERNELS_DEQUANT_READ_H

#include "kernels/panel.h"
#include "kernels/simd.h"
#include "kernels/simd_math.h"
#include "kernels/simd_narrow.h"

enum { FL_GROUP = 32 }; /* inputs of a group of bit planes */

typedef struct run {
  const uint8_t *base; /* the elements' first byte: of input 0, of the block or of the group */
  size_t i;            /* the run's first input, counted from there */
  size_t n;            /* its inputs */
} run;

typedef struct affine {
  vf scale, min;
} affine;

FL_VEC bool is_bits(fl_panel_kind kind) { return kind >= FL_PANEL_4BIT; }

/* Inputs that one step of a loop over a run takes: 4 share a word, 8 their bytes in bit planes. */
FL_VEC size_t step_of(fl_panel_kind kind) {
  return is_bits(kind) ? 8 : kind == FL_PANEL_I8 ? 4 : 1;
}

/* Inputs of a block and of a run, where the kind tells them: divisions by constants are cheap. */
FL_VEC size_t block_of(fl_panel_kind kind, const fl_panel_format *f) {
  return kind == FL_PANEL_I8 ? 32 : f->block;
}
FL_VEC size_t block_bytes(fl_panel_kind kind, const fl_panel_format *f) {
  return kind == FL_PANEL_I8 ? 34 : f->bytes;
}

/* The run of a panel from input k on, at most up to k1. Whole blocks of int8 are taken whole:
 * ranges of inputs are parted at multiples of 32 wherever vectors read them. */
FL_VEC run run_at(fl_panel_kind kind, const fl_panel_format *f, const uint8_t *panel, size_t nr,
                  size_t k, size_t k1) {
  if (kind <= FL_PANEL_BF16) return (run){ panel, k, k1 - k };
  if (kind == FL_PANEL_I8) return (run){ panel + (k / 32 * 34 + 2) * nr, 0, 32 };
  const size_t n_block = f->block, n_run = f->run;
  size_t i = k % n_block, left = n_run - i % n_run;
  const uint8_t *at = panel + (k / n_block * f->bytes + f->head) * nr;
  if (left > k1 - k) left = k1 - k;
  size_t group = kind == FL_PANEL_4BIT ? 16 : kind == FL_PANEL_5BIT ? 20 : 24;
  return (run){ at + i / FL_GROUP * group * nr, i % FL_GROUP, left };
}

FL_VEC vf half_at(const uint8_t *field, size_t lane) {
  return vf_load_f16((const uint16_t *)(const void *)field + lane);
}

/* Scales of lanes [lane, lane + VF) of the run at input k. */
FL_VEC affine affine_at(fl_panel_kind kind, const fl_panel_format *f, const uint8_t *panel,
                        size_t nr, size_t k, size_t lane) {
  affine a = { vf_zero(), vf_zero() };
  if (kind <= FL_PANEL_BF16) return a;
  const uint8_t *block = panel + k / block_of(kind, f) * block_bytes(kind, f) * nr;
  const size_t i = k % block_of(kind, f) / f->run;
  a.scale = half_at(block, lane);
  if (kind == FL_PANEL_I8) {
    a.scale *= 0x1p-24f;
    return a;
  }
  switch (f->type) {
  case FL_Q4_0: a.min = a.scale * -8.0f; break;
  case FL_Q5_0: a.min = a.scale * -16.0f; break;
  case FL_Q4_1:
  case FL_Q5_1: a.min = half_at(block + 2 * nr, lane); break;
  case FL_Q6_K:
    a.scale *= vf_load_i8((const int8_t *)block + (2 + i) * nr + lane);
    a.min = a.scale * -32.0f;
    break;
  default: /* Q4_K, Q5_K */
    a.scale *= vf_from_i32(vi_load_u8(block + (4 + i) * nr + lane));
    a.min =
        -(half_at(block + 2 * nr, lane) * vf_from_i32(vi_load_u8(block + (12 + i) * nr + lane)));
    break;
  }
  return a;
}

/* q * 2^24 of int8 q: loaded so that the byte comes to lie at the top of its lane; the block's head
 * is before the first. */
FL_VEC vi int8_at(const uint8_t *base, size_t nr, size_t i, size_t u, size_t lane) {
  return vi_load(base + i * nr + 4 * lane + u - 3) & vi_set1(INT32_MIN / 128);
}

/* Value of input i + u of the run at base, lanes [lane, lane + VF). i is a multiple of
 * step_of(kind) and u below it a constant, so that loads and shifts of neighbours are shared. */
FL_VEC vf value_at(fl_panel_kind kind, const uint8_t *base, size_t nr, size_t i, size_t u,
                   size_t lane, affine a) {
  if (kind == FL_PANEL_I8) return vf_from_i32(int8_at(base, nr, i, u, lane)) * a.scale;
  if (kind <= FL_PANEL_BF16) {
    const size_t at = (i + u) * nr + lane;
    switch (kind) {
    case FL_PANEL_F32: return vf_load((const float *)(const void *)base + at);
    case FL_PANEL_F16: return vf_load_f16((const uint16_t *)(const void *)base + at);
    default: return vf_load_bf16((const uint16_t *)(const void *)base + at);
    }
  }
  vi q = vi_load_u8(base + (i / 2 + u / 2) * nr + lane);
  q = u % 2 ? q >> 4 : q & 15;
  const uint8_t *high = base + 16 * nr + lane;
  if (kind == FL_PANEL_5BIT) q |= (vi_load_u8(high + i / 8 * nr) >> (int)u & 1) << 4;
  if (kind == FL_PANEL_6BIT)
    q |= (vi_load_u8(high + (i / 4 + u / 4) * nr) >> (int)(u % 4 * 2) & 3) << 4;
  return vf_fma(vf_from_i32(q), a.scale, a.min);
}

/* Widths that the vector loops know, those of BLIS's kernels for machines of the level; whole
 * vectors and multiples of 8. Others go lane by lane. */
enum { NARROW = VF == 4 ? 8 : 16, WIDE = 2 * NARROW };

static inline bool fits(size_t nr) { return nr == NARROW || nr == WIDE; }

#endif
