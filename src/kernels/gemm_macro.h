/* gemm_macro.h - the loop nest around the micro-kernel that both products with many rows use:
 *     C [m, n] (+)= A [m, k_total] . B,   k in blocks of FL_KC, ascending
 * A (activations) is packed once into tiles of mr rows; B (weights) is never whole: `fill` makes
 * one unit of it, some tiles of nr columns by one k-block, in a buffer of the thread. Private to
 * this folder.
 */
#ifndef FL_KERNELS_GEMM_MACRO_H
#define FL_KERNELS_GEMM_MACRO_H

#include <stdatomic.h>
#include <stdbool.h>

#include "kernels/panel.h"

typedef struct fl_gemm_macro fl_gemm_macro;

/* Fills out, unit_tiles blocks of [FL_KC][packnr], with unit `unit` of B at k in [k0, k0 + len),
 * and returns it; or returns where the same lies already. */
typedef const float *fl_gemm_macro_fill(const fl_gemm_macro *nest, float *out, float *tmp,
                                        size_t unit, size_t k0, size_t len);

/* Prefetches part `share` of `shares` of what that fill will read. */
typedef void fl_gemm_macro_prefetch(const fl_gemm_macro *nest, size_t unit, size_t k0, size_t share,
                                    size_t shares);

struct fl_gemm_macro {
  const fl_panels *w;
  const float *a;
  size_t lda, m, k_total;
  float *c;
  size_t ldc, n;
  bool add;
  fl_gemm_macro_fill *fill;
  fl_gemm_macro_prefetch *prefetch;
  size_t first;      /* of fill's own: the first panel */
  size_t unit_tiles; /* column tiles that one fill makes */
  size_t tmp_floats; /* fill's own space per thread */
  bool along_k;      /* B is contiguous along k: several k-blocks of a unit are taken in turn */
};

/* Bytes of scratch for up to m rows. */
size_t fl_gemm_macro_scratch(const fl_gemm_macro *nest, unsigned n_threads, size_t m);

void fl_gemm_macro_run(const fl_gemm_macro *nest, fl_team *team, void *scratch);

/* The loops of dX with this matrix, operands unset (matmul_dx.c). */
fl_gemm_macro fl_matmul_dx_macro(const fl_panels *w);
/* Counts the product of m rows with n of the outputs as the team's work. */
void fl_gemm_macro_count(const fl_panels *w, fl_team *team, size_t m, size_t n);

/* Claims the next of n pieces of work for one of n_ranks: whole grains, fewer towards the end, at
 * most `most`. *next counts what is taken, from 0; false: none left. */
bool fl_claim_chunk(atomic_size_t *next, size_t n, size_t grain, size_t most, unsigned n_ranks,
                    size_t *first, size_t *end);

/* `team`, or NULL where the product is so small that waking the team takes longer than it saves. */
fl_team *fl_team_for(fl_team *team, size_t m, size_t n, size_t k);

#endif
