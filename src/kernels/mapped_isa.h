/* mapped_isa.h - dequantising of rows that lie as the file has them, one build per level. Private
 * to this folder.
 */
#ifndef FL_KERNELS_MAPPED_ISA_H
#define FL_KERNELS_MAPPED_ISA_H

#include "kernels/panel.h"

struct fl_mapped_ops {
  /* As fl_dequant_ops.dequant for a mapped matrix: out [n][ld] = inputs [k0, k0 + n) of
   * the rows of a panel, lanes past n_out zero. */
  void (*dequant)(const fl_panels *w, float *out, size_t ld, size_t panel, size_t k0, size_t n);
};

#endif
