/* transpose_isa.h - the transpose of a block of rows. Private to this folder. */
#ifndef FL_KERNELS_TRANSPOSE_ISA_H
#define FL_KERNELS_TRANSPOSE_ISA_H

#include <stddef.h>

struct fl_transpose_ops {
  /* out [n_cols][ldo] = transpose of in [n_rows][ldi] */
  void (*transpose)(float *out, size_t ldo, const float *in, size_t ldi, size_t n_rows,
                    size_t n_cols);
};

#endif
