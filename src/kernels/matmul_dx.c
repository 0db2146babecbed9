/* matmul_dx.c - dX = dY . W from the panels that the forward uses.
 *
 * The sum runs over outputs, so a block of B is FL_KC outputs by nr inputs: pieces of FL_KC / nr
 * panels, each dequantised as [inputs][lanes] and turned.
 */
#include <string.h>

#include "kernels/dequant_isa.h"
#include "kernels/gemm_macro.h"
#include "kernels/matmul.h"
#include "kernels/transpose_isa.h"

/* Inputs [in0, in0 + n) of a panel, [n][nr]: in tmp, or where f32 lies already. */
static const float *dequantised(const fl_panels *w, float *tmp, size_t panel, size_t in0,
                                size_t n) {
  const float *there = fl_panel_f32(w, panel, in0);
  if (there) return there;
  w->kern->dequant->dequant(w, tmp, w->nr, panel, in0, n);
  return tmp;
}

static const float *fill_transposed(const fl_gemm_macro *nest, float *out, float *tmp, size_t unit,
                                    size_t k0, size_t len) {
  const fl_panels *w = nest->w;
  const struct fl_transpose_ops *ops = w->kern->transpose;
  const size_t nr = w->nr, ld = w->kern->ukr.packnr;
  const size_t in0 = unit * nest->unit_tiles * nr;
  const size_t n_in = w->n_in - in0 < nest->unit_tiles * nr ? w->n_in - in0 : nest->unit_tiles * nr;
  const size_t out_end = k0 + len;
  if (n_in % nr != 0) memset(out + n_in / nr * ld * FL_KC, 0, FL_KC * ld * sizeof *out);
  for (size_t o = k0; o < out_end;) {
    const size_t panel = o / nr, lane = o % nr;
    const size_t lanes = out_end - o < nr - lane ? out_end - o : nr - lane;
    fl_panel_prefetch_l1(w, panel + 1, in0, n_in);
    const float *from = dequantised(w, tmp, panel, in0, n_in) + lane;
    for (size_t j = 0; j * nr < n_in; j++) {
      float *tile = out + j * ld * FL_KC + (o - k0) * ld;
      ops->transpose(tile, ld, from + j * nr * nr, nr, n_in - j * nr < nr ? n_in - j * nr : nr,
                     lanes);
    }
    o += lanes;
  }
  return out;
}

/* A share is some whole panels' pieces. */
static void prefetch_transposed(const fl_gemm_macro *nest, size_t unit, size_t k0, size_t share,
                                size_t shares) {
  const fl_panels *w = nest->w;
  const size_t in0 = unit * nest->unit_tiles * w->nr;
  size_t p0 = k0 / w->nr, p1 = (k0 + FL_KC) / w->nr;
  if (p1 > w->n_panels) p1 = w->n_panels;
  if (in0 >= w->n_in || p0 >= p1) return;
  for (size_t p = p0 + (p1 - p0) * share / shares; p < p0 + (p1 - p0) * (share + 1) / shares; p++)
    fl_panel_prefetch(w, p, in0, nest->unit_tiles * w->nr, 0, 1);
}

/* Units of 32 inputs: whole groups of the types that have their bits in planes. Of f32 as many
 * bytes are read in one piece already with half of them, and the block stays in the first-level
 * cache. */
fl_gemm_macro fl_matmul_dx_macro(const fl_panels *w) {
  const size_t inputs = w->format->kind == FL_PANEL_F32 ? 16 : 32;
  size_t tiles = w->nr < inputs ? inputs / w->nr : 1;
  return (fl_gemm_macro){ .w = w,
                          .k_total = w->n_out,
                          .n = w->n_in,
                          .fill = fill_transposed,
                          .prefetch = prefetch_transposed,
                          .unit_tiles = tiles,
                          .tmp_floats = tiles * w->nr * w->nr };
}

void fl_matmul_dx(const fl_panels *w, fl_team *team, float *dx, size_t lddx, const float *dy,
                  size_t lddy, size_t m, bool add, void *scratch) {
  if (m == 0) return;
  fl_gemm_macro_count(w, team, m, w->n_out);
  fl_gemm_macro nest = fl_matmul_dx_macro(w);
  nest.a = dy;
  nest.lda = lddy;
  nest.m = m;
  nest.c = dx;
  nest.ldc = lddx;
  nest.add = add;
  fl_gemm_macro_run(&nest, fl_team_for(team, m, w->n_out, w->n_in), scratch);
}
