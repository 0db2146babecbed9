/* table.h - what a `const fl_kernels *` points to: the tables of one instruction-set level and the
 * facts of BLIS's micro-kernel. Private to this folder.
 *
 * Every X_isa.c is compiled once per level, each time with FL_ISA defined as the level's name, and
 * defines one const table through FL_ISA_TABLE: in pointwise_isa.c
 *     const struct fl_pointwise_ops FL_ISA_TABLE(fl_pointwise_ops) = { ... };
 * which gives fl_pointwise_ops_v3 in the build for v3. The struct is defined in pointwise_isa.h
 * (likewise gemm_small_isa.h, attention_isa.h, attention_bwd_isa.h, loss_isa.h).
 */
#ifndef FL_KERNELS_TABLE_H
#define FL_KERNELS_TABLE_H

#include <stdbool.h>

#include "kernels/blis.h"
#include "kernels/kernels.h"

#define FL_ISA_PASTE2(a, b) a##_##b
#define FL_ISA_PASTE(a, b) FL_ISA_PASTE2(a, b)
#define FL_ISA_TABLE(name) FL_ISA_PASTE(name, FL_ISA)

struct fl_dequant_ops;
struct fl_transpose_ops;
struct fl_mapped_ops;
struct fl_gemm_small_ops;
struct fl_pointwise_ops;
struct fl_attention_ops;
struct fl_attention_bwd_ops;
struct fl_loss_ops;
struct fl_cholesky_ops;

struct fl_kernels {
  const char *isa; /* "v3" */
  const struct fl_dequant_ops *dequant;
  const struct fl_transpose_ops *transpose;
  const struct fl_gemm_small_ops *gemm_small;
  const struct fl_mapped_ops *mapped;
  const struct fl_pointwise_ops *pointwise;
  const struct fl_attention_ops *attention;
  const struct fl_attention_bwd_ops *attention_bwd;
  const struct fl_loss_ops *loss;
  const struct fl_cholesky_ops *cholesky;
  fl_ukr ukr;          /* BLIS's micro-kernel */
  bool few_rows_exact; /* the few-row route gives the micro-kernel's bits (fl_matmul_probe) */
  bool prefer_small;   /* ...and is the faster one for any number of rows */
  char name[64];
};

/* Sets few_rows_exact and prefer_small by what `ukr` and `gemm_small` are (matmul.c). */
void fl_matmul_choose(struct fl_kernels *kern);

/* The tables of every level, whichever of them this build has. */
#define FL_ISA_DECLARE(level)                                                                      \
  extern const struct fl_dequant_ops fl_dequant_ops_##level;                                       \
  extern const struct fl_transpose_ops fl_transpose_ops_##level;                                   \
  extern const struct fl_gemm_small_ops fl_gemm_small_ops_##level;                                 \
  extern const struct fl_mapped_ops fl_mapped_ops_##level;                                         \
  extern const struct fl_pointwise_ops fl_pointwise_ops_##level;                                   \
  extern const struct fl_attention_ops fl_attention_ops_##level;                                   \
  extern const struct fl_attention_bwd_ops fl_attention_bwd_ops_##level;                           \
  extern const struct fl_loss_ops fl_loss_ops_##level;                                             \
  extern const struct fl_cholesky_ops fl_cholesky_ops_##level;
FL_ISA_DECLARE(ref)
FL_ISA_DECLARE(v2)
FL_ISA_DECLARE(v3)
FL_ISA_DECLARE(v4)
FL_ISA_DECLARE(neon)
#undef FL_ISA_DECLARE

#endif
