/* loss_isa.h - scans over a vocabulary, of one instruction-set level. Private to this folder. */
#ifndef FL_KERNELS_LOSS_ISA_H
#define FL_KERNELS_LOSS_ISA_H

#include <stddef.h>

struct fl_loss_ops {
  /* The first i in [from, n) with x[i] > bar; n if there is none. NaN is never above. */
  size_t (*next_above)(const float *x, size_t from, size_t n, float bar);
};

#endif
