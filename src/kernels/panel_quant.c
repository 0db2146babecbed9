/* panel_quant.c - panels of the types of 4 to 6 bits: taking the file's blocks apart and laying
 * their bits out for vectors of lanes (layout in panel.h, blocks of the file in formats/quant*.c).
 */
#include <string.h>

#include "formats/quant.h"
#include "kernels/panel.h"

enum { GROUP = 32, BLOCK_MAX = 256, HEAD_MAX = 20 };

/* A block of a file row: its quants one a byte, and its head as one lane of a panel has it. */
typedef struct parts {
  uint8_t q[BLOCK_MAX];
  uint8_t head[HEAD_MAX];
} parts;

/* 16 bytes of nibbles, the high ones 16 values on, and the u32 of fifth bits where there is one. */
static void split_32(parts *p, const uint8_t *nibbles, const uint8_t *fifth) {
  for (size_t i = 0; i < 16; i++) {
    p->q[i] = nibbles[i] & 15;
    p->q[i + 16] = nibbles[i] >> 4;
  }
  for (size_t i = 0; fifth && i < GROUP; i++)
    p->q[i] = (uint8_t)(p->q[i] | (fifth[i / 8] >> (i % 8) & 1) << 4);
}

/* d, dmin and the eight scales and minima of six bits. */
static void split_k_head(parts *p, const uint8_t *in) {
  memcpy(p->head, in, 4);
  const uint8_t *packed = in + 4;
  for (size_t s = 0; s < 4; s++) {
    p->head[4 + s] = packed[s] & 63;
    p->head[12 + s] = packed[s + 4] & 63;
    p->head[8 + s] = (uint8_t)((packed[s + 8] & 15) | packed[s] >> 6 << 4);
    p->head[16 + s] = (uint8_t)(packed[s + 8] >> 4 | packed[s + 4] >> 6 << 4);
  }
}

/* 128 bytes of nibbles, the high ones 32 values on; fifth bits [32], bit s for sub-block s. */
static void split_k(parts *p, const uint8_t *nibbles, const uint8_t *fifth) {
  for (size_t i = 0; i < BLOCK_MAX; i++) {
    size_t s = i / GROUP, l = i % GROUP;
    uint8_t low = nibbles[s / 2 * GROUP + l] >> (s % 2 * 4) & 15;
    p->q[i] = (uint8_t)(low | (fifth ? (fifth[l] >> s & 1) << 4 : 0));
  }
}

static void split_q6_k(parts *p, const uint8_t *in) {
  for (size_t i = 0; i < BLOCK_MAX; i++) {
    size_t half = i / 128, g = i % 128 / GROUP, l = i % GROUP;
    uint8_t low = in[half * 64 + g % 2 * GROUP + l] >> (g / 2 * 4) & 15;
    uint8_t upper = in[128 + half * GROUP + l] >> (g * 2) & 3;
    p->q[i] = (uint8_t)(low | upper << 4);
  }
  memcpy(p->head, in + 208, 2);
  memcpy(p->head + 2, in + 192, 16);
}

static void split(parts *p, fl_dtype type, const uint8_t *in) {
  switch (type) {
  case FL_Q4_0:
    memcpy(p->head, in, 2);
    split_32(p, in + 2, NULL);
    break;
  case FL_Q4_1:
    memcpy(p->head, in, 4);
    split_32(p, in + 4, NULL);
    break;
  case FL_Q5_0:
    memcpy(p->head, in, 2);
    split_32(p, in + 6, in + 2);
    break;
  case FL_Q5_1:
    memcpy(p->head, in, 4);
    split_32(p, in + 8, in + 4);
    break;
  case FL_Q4_K:
    split_k_head(p, in);
    split_k(p, in + 16, NULL);
    break;
  case FL_Q5_K:
    split_k_head(p, in);
    split_k(p, in + 48, in + 16);
    break;
  default: split_q6_k(p, in); break;
  }
}

/* Where the head's fields of two bytes end and those of one begin. */
static size_t halves_of(fl_dtype type) {
  return type == FL_Q4_0 || type == FL_Q5_0 || type == FL_Q6_K ? 2 : 4;
}

/* A lane's head: fields of two bytes first, each [nr], then bytes. */
static void put_head(const fl_panel_format *f, uint8_t *block, size_t nr, size_t lane,
                     const uint8_t *head) {
  const size_t halves = halves_of(f->type);
  for (size_t i = 0; i < halves; i += 2) memcpy(block + i * nr + 2 * lane, head + i, 2);
  for (size_t i = halves; i < f->head; i++) block[i * nr + lane] = head[i];
}

static size_t group_bytes(const fl_panel_format *f) {
  return (f->bytes - f->head) * GROUP / f->block;
}

/* The group's 32 quants of one lane into its planes; the panel was zero before. */
static void put_group(const fl_panel_format *f, uint8_t *group, size_t nr, size_t lane,
                      const uint8_t *q) {
  uint8_t *low = group + lane, *high = low + 16 * nr;
  for (size_t k = 0; k < GROUP; k++) {
    uint8_t *at = low + k / 2 * nr;
    *at = (uint8_t)(*at | (q[k] & 15) << (k % 2 * 4));
    if (f->kind == FL_PANEL_5BIT) high[k / 8 * nr] |= (uint8_t)(q[k] >> 4 << (k % 8));
    if (f->kind == FL_PANEL_6BIT) high[k / 4 * nr] |= (uint8_t)(q[k] >> 4 << (k % 4 * 2));
  }
}

void fl_panel_pack_bits(const fl_panels *w, uint8_t *panel, const uint8_t *row, size_t lane) {
  const fl_panel_format *f = w->format;
  const fl_dtype_traits *file = fl_dtype_get(f->type);
  parts p;
  for (size_t b = 0; b < w->n_in / f->block; b++) {
    uint8_t *block = panel + b * f->bytes * w->nr;
    split(&p, f->type, row + b * file->bytes);
    put_head(f, block, w->nr, lane, p.head);
    for (size_t g = 0; g < f->block / GROUP; g++)
      put_group(f, block + (f->head + g * group_bytes(f)) * w->nr, w->nr, lane, p.q + g * GROUP);
  }
}

static int quant_at(const fl_panel_format *f, const uint8_t *block, size_t nr, size_t k,
                    size_t lane) {
  const uint8_t *low = block + (f->head + k / GROUP * group_bytes(f)) * nr + lane;
  const uint8_t *high = low + 16 * nr;
  size_t i = k % GROUP;
  int q = low[i / 2 * nr] >> (i % 2 * 4) & 15;
  if (f->kind == FL_PANEL_5BIT) q |= (high[i / 8 * nr] >> (i % 8) & 1) << 4;
  if (f->kind == FL_PANEL_6BIT) q |= (high[i / 4 * nr] >> (i % 4 * 2) & 3) << 4;
  return q;
}

static float half_at(const uint8_t *field, size_t lane) { return fl_half_at(field + 2 * lane); }

float fl_panel_value_bits(const fl_panels *w, const uint8_t *block, size_t k, size_t lane) {
  const size_t nr = w->nr;
  const int q = quant_at(w->format, block, nr, k, lane);
  const float d = half_at(block, lane);
  switch (w->format->type) {
  case FL_Q4_0: return (float)(q - 8) * d;
  case FL_Q5_0: return (float)(q - 16) * d;
  case FL_Q4_1:
  case FL_Q5_1: return (float)q * d + half_at(block + 2 * nr, lane);
  case FL_Q6_K: {
    int8_t scale = (int8_t)block[(2 + k / 16) * nr + lane];
    return d * (float)scale * (float)(q - 32);
  }
  default: { /* Q4_K, Q5_K */
    const float scale = (float)block[(4 + k / GROUP) * nr + lane];
    const float min = (float)block[(12 + k / GROUP) * nr + lane];
    return d * scale * (float)q - half_at(block + 2 * nr, lane) * min;
  }
  }
}
