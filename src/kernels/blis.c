/* blis.c - the one file that knows BLIS. Asks its context for the f32 micro-kernel of this machine.
 *
 * A kernel with more vectors along the rows of C than along its columns "prefers rows": its NR is
 * the long side. One that prefers columns has the long side in MR. Here the long side always runs
 * along the outputs of a weight matrix (which are contiguous in Y), so for a kernel that prefers
 * columns the product is handed over transposed: weights as A, activations as B, C^T with unit row
 * stride. Callers see `nr` = outputs of a panel, `mr` = rows of a tile, whichever way round it is.
 */
#include "kernels/blis.h"
#include "kernels/peak.h"

/* Its header is not clean under our warnings. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wfloat-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <blis.h>
#pragma GCC diagnostic pop

/* BLIS's micro-kernel since 0.9: edge sizes m, n come first. */
typedef void gemm_ukr(dim_t m, dim_t n, dim_t k, void *alpha, void *a, void *b, void *beta, void *c,
                      inc_t rs_c, inc_t cs_c, auxinfo_t *data, cntx_t *cntx);

void fl_ukr_query(fl_ukr *u) {
  const cntx_t *cntx = bli_gks_query_cntx();
#ifdef HAVE_BLI_CNTX_GET_UKR_DT
  u->fn = (void (*)(void))bli_cntx_get_ukr_dt(BLIS_FLOAT, BLIS_GEMM_UKR, cntx);
  u->transposed = !bli_cntx_get_ukr_prefs_dt(BLIS_FLOAT, BLIS_GEMM_UKR_ROW_PREF, cntx);
#else
  u->fn = (void (*)(void))bli_cntx_get_l3_nat_ukr_dt(BLIS_FLOAT, BLIS_GEMM_UKR, (cntx_t *)cntx);
  u->transposed = !bli_cntx_get_l3_nat_ukr_prefs_dt(BLIS_FLOAT, BLIS_GEMM_UKR, (cntx_t *)cntx);
#endif
  size_t mr = (size_t)bli_cntx_get_blksz_def_dt(BLIS_FLOAT, BLIS_MR, (cntx_t *)cntx);
  size_t nr = (size_t)bli_cntx_get_blksz_def_dt(BLIS_FLOAT, BLIS_NR, (cntx_t *)cntx);
  size_t packmr = (size_t)bli_cntx_get_blksz_max_dt(BLIS_FLOAT, BLIS_MR, (cntx_t *)cntx);
  size_t packnr = (size_t)bli_cntx_get_blksz_max_dt(BLIS_FLOAT, BLIS_NR, (cntx_t *)cntx);
  u->cntx = cntx;
  u->mr = u->transposed ? nr : mr;
  u->nr = u->transposed ? mr : nr;
  u->packmr = u->transposed ? packnr : packmr;
  u->packnr = u->transposed ? packmr : packnr;
  u->arch = bli_arch_string(bli_arch_query_id());
}

void fl_ukr_tile(const fl_ukr *u, size_t k, const float *x, const float *w, float *y, size_t ldy,
                 bool add) {
  /* BLIS's prototypes are not const-correct; it writes to y alone. */
  gemm_ukr *fn = (gemm_ukr *)u->fn;
  cntx_t *cntx = (cntx_t *)u->cntx;
  float one = 1.0f, beta = add ? 1.0f : 0.0f;
  auxinfo_t aux = { 0 };
  void *a = (void *)(u->transposed ? w : x);
  void *b = (void *)(u->transposed ? x : w);
  /* What the kernel may prefetch: this tile's own operands, which are there. */
  bli_auxinfo_set_next_ab(a, b, &aux);
  if (u->transposed)
    fn((dim_t)u->nr, (dim_t)u->mr, (dim_t)k, &one, a, b, &beta, y, 1, (inc_t)ldy, &aux, cntx);
  else fn((dim_t)u->mr, (dim_t)u->nr, (dim_t)k, &one, a, b, &beta, y, (inc_t)ldy, 1, &aux, cntx);
}

void fl_peak_sgemm(unsigned n_threads, float *y, const float *x, const float *w, size_t m, size_t n,
                   size_t k) {
  float one = 1.0f, zero = 0.0f;
  rntm_t rntm = BLIS_RNTM_INITIALIZER;
  bli_rntm_set_num_threads((dim_t)n_threads, &rntm);
  bli_sgemm_ex(BLIS_NO_TRANSPOSE, BLIS_TRANSPOSE, (dim_t)m, (dim_t)n, (dim_t)k, &one, (float *)x,
               (inc_t)k, 1, (float *)w, (inc_t)k, 1, &zero, y, (inc_t)n, 1, NULL, &rntm);
}
