/* dequant_isa.h - panels of any weight type to f32. Private to this folder. */
#ifndef FL_KERNELS_DEQUANT_ISA_H
#define FL_KERNELS_DEQUANT_ISA_H

#include "kernels/panel.h"

struct fl_dequant_ops {
  /* out [n][ld] = inputs [k0, k0 + n) of a panel; ld >= nr. k0 and, unless the range ends at n_in,
   * n are multiples of 32. */
  void (*dequant)(const fl_panels *w, float *out, size_t ld, size_t panel, size_t k0, size_t n);
};

#endif
