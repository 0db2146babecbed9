/* panel.h - the layout of packed weights. Private to this folder.
 *
 * Panel p holds outputs [p * nr, (p + 1) * nr) of W, `panel_bytes` from panel to panel, lanes past
 * n_out zero. A panel is a row of blocks along the inputs, each of `bytes` per lane; what belongs
 * to one input lies side by side for the nr lanes (k: input within the block):
 *   F32, F16, BF16   [nr] elements; a block is one input
 *   Q8_0             d [nr] f16, then [8][nr] words of four inputs' int8
 *   others           the head, then for every 32 inputs
 *                      low nibbles [16][nr]: byte k / 2, low nibble for even k, high for odd
 *                      Q5_*: fifth bits [4][nr]: byte k / 8, bit k % 8
 *                      Q6_K: upper pairs [8][nr]: byte k / 4, bits 2 * (k % 4) and up
 * Heads, each field [nr] per lane:  Q4_0, Q5_0  d f16;  Q4_1, Q5_1  d f16, m f16;
 *   Q4_K, Q5_K  d f16, dmin f16, scales [8] u8, minima [8] u8;  Q6_K  d f16, scales [16] i8
 * Sizes per weight are those of the file, but for 6-bit scales that have a byte each here.
 */
#ifndef FL_KERNELS_PANEL_H
#define FL_KERNELS_PANEL_H

#include "base/mem.h"
#include "kernels/matmul.h"
#include "kernels/table.h"

/* How the elements are stored; several types share one. */
typedef enum fl_panel_kind {
  FL_PANEL_F32,
  FL_PANEL_F16,
  FL_PANEL_BF16,
  FL_PANEL_I8,
  FL_PANEL_4BIT,
  FL_PANEL_5BIT,
  FL_PANEL_6BIT
} fl_panel_kind;

typedef struct fl_panel_format {
  fl_dtype type;
  fl_panel_kind kind;
  size_t block; /* inputs of a block */
  size_t head;  /* bytes per lane before the elements */
  size_t bytes; /* bytes per lane of a block */
  size_t run;   /* inputs that share a scale */
} fl_panel_format;

enum { FL_MAPPED_PARTS = 2, FL_BLOCK_MAX = 256 };

/* Packed: data, panel_bytes. Borrowed (mapped.c): rows, in the file's layout; data is NULL. */
struct fl_panels {
  const fl_kernels *kern;
  const fl_panel_format *format;
  size_t n_out, n_in, nr, n_panels, panel_bytes;
  uint8_t *data;
  const uint8_t *rows[FL_MAPPED_PARTS]; /* the parts' rows, the second from output n_first on */
  size_t n_first, row_bytes;
};

const fl_panel_format *fl_panel_format_of(fl_dtype type); /* NULL: not supported */

static inline const uint8_t *fl_panel_base(const fl_panels *w, size_t panel) {
  return w->data + panel * w->panel_bytes;
}

/* Row `o` < n_out of a mapped matrix; one value of it, 0 past n_out. */
static inline const uint8_t *fl_mapped_row(const fl_panels *w, size_t o) {
  return o < w->n_first ? w->rows[0] + o * w->row_bytes
                        : w->rows[1] + (o - w->n_first) * w->row_bytes;
}
float fl_mapped_value(const fl_panels *w, size_t o, size_t k);

/* Asks memory for the line at p, into the first-level cache or the second. A function that only
 * asks has no effect in a compiler's eyes, which drops its calls; the asm is one. */
static inline void fl_prefetch_line(const uint8_t *p, bool first_level) {
  if (first_level) __builtin_prefetch(p, 0, 3);
  else __builtin_prefetch(p, 0, 2);
  __asm__ volatile("" : : "r"(p));
}

/* Where inputs [k0, k0 + n) of a packed panel lie, and how many lines they are. */
static inline const uint8_t *fl_panel_lines(const fl_panels *w, size_t panel, size_t k0, size_t n,
                                            size_t *lines) {
  if (n > w->n_in - k0) n = w->n_in - k0;
  *lines = n / w->format->block * w->format->bytes * w->nr / FL_ALIGN;
  return fl_panel_base(w, panel) + k0 / w->format->block * w->format->bytes * w->nr;
}

/* Asks memory for part `share` of `shares` of inputs [k0, k0 + n) of a panel, into the second-level
 * cache; of mapped ones for nothing. */
static inline void fl_panel_prefetch(const fl_panels *w, size_t panel, size_t k0, size_t n,
                                     size_t share, size_t shares) {
  if (!w->data) return;
  size_t lines;
  const uint8_t *at = fl_panel_lines(w, panel, k0, n, &lines);
  for (size_t i = lines * share / shares; i < lines * (share + 1) / shares; i++)
    fl_prefetch_line(at + i * FL_ALIGN, false);
}

/* Asks for inputs [k0, k0 + n) of a panel that is read next, into the first-level cache. */
static inline void fl_panel_prefetch_l1(const fl_panels *w, size_t panel, size_t k0, size_t n) {
  if (!w->data || panel >= w->n_panels) return;
  size_t lines;
  const uint8_t *at = fl_panel_lines(w, panel, k0, n, &lines);
  for (size_t i = 0; i < lines; i++) fl_prefetch_line(at + i * FL_ALIGN, true);
}

/* Inputs from k on of a packed panel of f32 as they lie, [..][nr]; NULL: of another kind. */
static inline const float *fl_panel_f32(const fl_panels *w, size_t panel, size_t k) {
  if (!w->data || w->format->kind != FL_PANEL_F32) return NULL;
  return (const float *)(const void *)fl_panel_base(w, panel) + k * w->nr;
}

/* One value, in plain C. */
float fl_panel_value(const fl_panels *w, size_t panel, size_t k, size_t lane);

/* Of the kinds of 4 to 6 bits (panel_quant.c): packs one row of the file; one value. */
void fl_panel_pack_bits(const fl_panels *w, uint8_t *panel, const uint8_t *row, size_t lane);
float fl_panel_value_bits(const fl_panels *w, const uint8_t *block, size_t k, size_t lane);

#endif
