/* matmul.c - Y = X . W^T: the choice between the two routes, and the check that they agree. */
#include "kernels/matmul.h"

#include <string.h>

#include "base/mem.h"
#include "kernels/dequant_isa.h"
#include "kernels/gemm_macro.h"
#include "kernels/gemm_small_isa.h"

/* A panel of f32 is what the micro-kernel reads. */
static const float *fill_panel(const fl_gemm_macro *nest, float *out, float *tmp, size_t unit,
                               size_t k0, size_t len) {
  (void)tmp;
  const fl_panels *w = nest->w;
  const size_t ld = w->kern->ukr.packnr;
  const float *there = ld == w->nr ? fl_panel_f32(w, nest->first + unit, k0) : NULL;
  if (there) return there;
  w->kern->dequant->dequant(w, out, ld, nest->first + unit, k0, len);
  return out;
}

static void ahead_panel(const fl_gemm_macro *nest, size_t unit, size_t k0, size_t share,
                        size_t shares) {
  const fl_panels *w = nest->w;
  if (k0 < w->n_in && nest->first + unit < w->n_panels)
    fl_panel_prefetch(w, nest->first + unit, k0, FL_KC, share, shares);
}

static fl_gemm_macro forward_nest(const fl_panels *w) {
  return (fl_gemm_macro){ .w = w,
                          .k_total = w->n_in,
                          .fill = fill_panel,
                          .prefetch = ahead_panel,
                          .unit_tiles = 1,
                          .along_k = true };
}

enum {
  FEW_MOST = 32, /* panels that a thread takes at a time */
  FEW_LIMIT = 32 /* rows up to which the route of few rows is the faster one everywhere */
};

typedef struct few_job {
  fl_gemm_small f;
  size_t p0, p1;
  float *buf; /* FL_SMALL_BUF per rank */
  atomic_size_t next;
} few_job;

static void few_rank(void *ctx, unsigned rank, unsigned n_ranks) {
  few_job *job = ctx;
  const struct fl_gemm_small_ops *ops = job->f.w->kern->gemm_small;
  const size_t grain = ops->grain(job->f.m);
  size_t first, end;
  while (fl_claim_chunk(&job->next, job->p1 - job->p0, grain, FEW_MOST, n_ranks, &first, &end))
    ops->run(&job->f, job->p0 + first, job->p0 + end, job->buf + rank * (size_t)FL_SMALL_BUF);
}

/* The rows of one call of many: evenly cut, in whole passes of AVX-512's kernel. So few that their
 * part of x stays in the second-level cache while all panels go by. */
static size_t few_rows(size_t m) {
  enum { PASS = 8 };
  const size_t calls = (m + FL_SMALL_ROWS - 1) / FL_SMALL_ROWS, rows = (m + calls - 1) / calls;
  return (rows + PASS - 1) / PASS * PASS;
}

static void few_run(const fl_gemm_small *all, fl_team *team, void *scratch) {
  const size_t rows = few_rows(all->m), nr = all->w->nr;
  for (size_t r = 0; r < all->m; r += rows) {
    few_job job = {
      .f = *all, .p0 = all->out0 / nr, .p1 = (all->out0 + all->n + nr - 1) / nr, .buf = scratch
    };
    job.f.x += r * all->ldx;
    job.f.y += r * all->ldy;
    job.f.m = all->m - r < rows ? all->m - r : rows;
    fl_team_run(team, few_rank, &job);
  }
}

void fl_matmul_cols(const fl_panels *w, fl_team *team, float *y, size_t ldy, const float *x,
                    size_t ldx, size_t m, size_t out0, size_t n, void *scratch) {
  if (m == 0 || n == 0) return;
  fl_gemm_macro_count(w, team, m, n);
  team = fl_team_for(team, m, n, w->n_in);
  if (w->kern->prefer_small || (m <= FEW_LIMIT && w->kern->few_rows_exact)) {
    const fl_gemm_small few = {
      .w = w, .x = x, .ldx = ldx, .m = m, .y = y, .ldy = ldy, .out0 = out0, .n = n
    };
    few_run(&few, team, scratch);
    return;
  }
  fl_gemm_macro nest = forward_nest(w);
  nest.a = x;
  nest.lda = ldx;
  nest.m = m;
  nest.c = y;
  nest.ldc = ldy;
  nest.n = n;
  nest.first = out0 / w->nr;
  fl_gemm_macro_run(&nest, team, scratch);
}

void fl_matmul(const fl_panels *w, fl_team *team, float *y, size_t ldy, const float *x, size_t ldx,
               size_t m, void *scratch) {
  fl_matmul_cols(w, team, y, ldy, x, ldx, m, 0, w->n_out, scratch);
}

size_t fl_matmul_scratch(const fl_panels *w, const fl_team *team, size_t m) {
  unsigned n_threads = fl_team_size(team);
  fl_gemm_macro forward = forward_nest(w), backward = fl_matmul_dx_macro(w);
  size_t f = w->kern->prefer_small ? 0 : fl_gemm_macro_scratch(&forward, n_threads, m);
  size_t b = fl_gemm_macro_scratch(&backward, n_threads, m);
  size_t few = n_threads * (size_t)FL_SMALL_BUF * sizeof(float);
  if (f < b) f = b;
  return f > few ? f : few;
}

/* --- the probe -------------------------------------------------------------------------------- */

enum { PROBE_K = FL_KC + 37, PROBE_LANES = 64, PROBE_ROWS = 32 };

/* Values of mixed sign and size whose sums round at every step. */
static float probe_value(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return ((float)(*state >> 8) / 0x1p24f - 0.5f) * (float)(1u << (*state % 7));
}

/* Whether m rows of `few` over k inputs have the micro-kernel's bits, in each row of its tile. */
static bool probe_rows(const fl_panels *w, const float *x, size_t m) {
  float few[PROBE_ROWS * PROBE_LANES], many[PROBE_ROWS * PROBE_LANES];
  const size_t nr = w->nr;
  fl_gemm_small f = { .w = w, .x = x, .ldx = PROBE_K, .m = m, .y = few, .ldy = nr, .n = nr };
  w->kern->gemm_small->run(&f, 0, 1, NULL);
  fl_gemm_macro nest = forward_nest(w);
  nest.a = x;
  nest.lda = PROBE_K;
  nest.m = m;
  nest.c = many;
  nest.ldc = nr;
  nest.n = nr;
  void *scratch = fl_aligned_calloc(1, fl_gemm_macro_scratch(&nest, 1, m));
  if (!scratch) return false;
  fl_gemm_macro_run(&nest, NULL, scratch);
  fl_free(scratch);
  return memcmp(few, many, m * nr * sizeof *few) == 0;
}

static bool probe(const fl_kernels *kern) {
  const size_t nr = kern->ukr.nr;
  if (nr > PROBE_LANES || !kern->gemm_small->fits(nr)) return false;
  float x[PROBE_ROWS * PROBE_K];
  uint32_t state = 1;
  for (size_t i = 0; i < PROBE_ROWS * PROBE_K; i++) x[i] = probe_value(&state);
  float *data = fl_aligned_calloc(PROBE_K * nr, sizeof *data);
  if (!data) return false;
  for (size_t i = 0; i < PROBE_K * nr; i++) data[i] = probe_value(&state);
  bool same = true;
  for (size_t k = PROBE_K; k > FL_KC - 9 && same; k -= 9) {
    fl_panels w = { .kern = kern,
                    .format = fl_panel_format_of(FL_F32),
                    .n_out = nr,
                    .n_in = k,
                    .nr = nr,
                    .n_panels = 1,
                    .panel_bytes = k * nr * sizeof *data,
                    .data = (uint8_t *)data };
    for (size_t m = 1; m <= PROBE_ROWS && same; m++) same = probe_rows(&w, x, m);
  }
  fl_free(data);
  return same;
}

void fl_matmul_choose(struct fl_kernels *kern) {
  kern->prefer_small = false; /* or the probe would compare that route with itself */
  kern->few_rows_exact = probe(kern);
  kern->prefer_small = kern->few_rows_exact && kern->ukr.packnr == kern->ukr.nr &&
                       kern->gemm_small->is_faster(kern->ukr.nr);
}

bool fl_matmul_probe(const fl_kernels *kern) { return kern->few_rows_exact; }
