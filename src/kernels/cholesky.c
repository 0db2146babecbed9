/* cholesky.c - the factorisation and the solution, cut into blocks and given to threads. */
#include "kernels/cholesky.h"

#include <math.h>
#include <string.h>

#include "kernels/cholesky_isa.h"
#include "kernels/table.h"

enum { BLOCK = FL_CHOL_BLOCK, LANES = FL_CHOL_LANES };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t panels_of(size_t n) { return (n + LANES - 1) / LANES; }

size_t fl_cholesky_scratch(size_t n, size_t n_rhs, const fl_team *team) {
  const size_t factor = (panels_of(n) + 1) * LANES * BLOCK;
  const size_t panels = panels_of(n_rhs) * n * LANES;
  const size_t solve = panels + fl_team_size(team) * (size_t)BLOCK * BLOCK;
  return factor > solve ? factor : solve;
}

typedef struct factor {
  const struct fl_cholesky_ops *ops;
  double *a, *packed; /* packed: the block's columns below it, in panels [BLOCK][LANES] of rows */
  size_t n, k0, k1;
} factor;

static bool diagonal(const factor *f) {
  for (size_t j = f->k0; j < f->k1; j++) {
    double *row = f->a + j * f->n;
    for (size_t i = f->k0; i < j; i++) {
      double s = row[i];
      for (size_t t = f->k0; t < i; t++) s -= row[t] * f->a[i * f->n + t];
      row[i] = s / f->a[i * f->n + i];
    }
    double d = row[j];
    for (size_t t = f->k0; t < j; t++) d -= row[t] * row[t];
    if (!(d > 0)) return false;
    row[j] = sqrt(d);
  }
  return true;
}

/* Rows of L below the block, and their copy in panels; whole panels of rows a thread. */
static void below(void *ctx, unsigned rank, unsigned n_ranks) {
  const factor *f = ctx;
  size_t first, end;
  fl_thread_range(panels_of(f->n - f->k1), rank, n_ranks, &first, &end);
  for (size_t p = first; p < end; p++) {
    double *to = f->packed + p * LANES * BLOCK;
    const size_t r0 = f->k1 + p * LANES, rows = least(LANES, f->n - r0);
    memset(to, 0, LANES * BLOCK * sizeof *to);
    for (size_t r = 0; r < rows; r++) {
      double *x = f->a + (r0 + r) * f->n;
      for (size_t j = f->k0; j < f->k1; j++) {
        const double *l = f->a + j * f->n;
        double s = x[j];
        for (size_t t = f->k0; t < j; t++) s -= x[t] * l[t];
        x[j] = s / l[j];
        to[(j - f->k0) * LANES + r] = x[j];
      }
    }
  }
}

/* The last panel of a block of rows crosses the diagonal, and may reach past the last column: there
 * it works on a copy. */
static void edge(const factor *f, size_t r0, size_t rows, size_t c0, const double *b) {
  double tile[BLOCK * LANES] = { 0 };
  const size_t cols = least(LANES, f->n - c0);
  for (size_t r = 0; r < rows; r++)
    memcpy(tile + r * LANES, f->a + (r0 + r) * f->n + c0, cols * sizeof *tile);
  f->ops->update(tile, LANES, f->a + r0 * f->n + f->k0, f->n, b, rows, f->k1 - f->k0);
  for (size_t r = 0; r < rows; r++) { /* nothing above the diagonal */
    if (r0 + r < c0) continue;
    const size_t keep = least(cols, r0 + r - c0 + 1);
    memcpy(f->a + (r0 + r) * f->n + c0, tile + r * LANES, keep * sizeof *tile);
  }
}

/* Blocks of rows, dealt out in turn: those below have more to the left of the diagonal. */
static void behind(void *ctx, unsigned rank, unsigned n_ranks) {
  enum { ROWS = 32 };
  const factor *f = ctx;
  for (size_t r0 = f->k1 + rank * ROWS; r0 < f->n; r0 += n_ranks * (size_t)ROWS) {
    const size_t rows = least(ROWS, f->n - r0);
    for (size_t c0 = f->k1; c0 < r0 + rows; c0 += LANES) {
      const double *b = f->packed + (c0 - f->k1) * BLOCK;
      if (c0 + LANES > r0) edge(f, r0, rows, c0, b);
      else
        f->ops->update(f->a + r0 * f->n + c0, f->n, f->a + r0 * f->n + f->k0, f->n, b, rows,
                       f->k1 - f->k0);
    }
  }
}

bool fl_cholesky(const fl_kernels *k, fl_team *team, double *a, size_t n, double *scratch) {
  factor f = { .ops = k->cholesky, .a = a, .packed = scratch, .n = n };
  for (; f.k0 < n; f.k0 = f.k1) {
    f.k1 = least(f.k0 + BLOCK, n);
    if (!diagonal(&f)) return false;
    if (f.k1 == n) break;
    fl_team_run(team, below, &f);
    fl_team_run(team, behind, &f);
  }
  return true;
}

/* --- solving ---------------------------------------------------------------------------------- */

typedef struct solve {
  const struct fl_cholesky_ops *ops;
  const double *l;
  double *b, *panel, *turned; /* panel: [n][LANES] of each; turned: [BLOCK, BLOCK] of a thread */
  size_t n, n_rhs;
} solve;

static void forward(const solve *s, double *x) {
  for (size_t i0 = 0; i0 < s->n; i0 += BLOCK) {
    const size_t i1 = least(i0 + BLOCK, s->n);
    s->ops->update(x + i0 * LANES, LANES, s->l + i0 * s->n, s->n, x, i1 - i0, i0);
    for (size_t i = i0; i < i1; i++) {
      const double *row = s->l + i * s->n;
      for (size_t t = i0; t < i; t++)
        for (size_t c = 0; c < LANES; c++) x[i * LANES + c] -= row[t] * x[t * LANES + c];
      for (size_t c = 0; c < LANES; c++) x[i * LANES + c] /= row[i];
    }
  }
}

/* What the solved block takes from the rows before it: L's rows are L^T's columns. */
static void take_back(const solve *s, double *x, size_t j0, size_t j1, double *turned) {
  for (size_t i0 = 0; i0 < j0; i0 += BLOCK) {
    for (size_t j = j0; j < j1; j++)
      for (size_t i = 0; i < BLOCK; i++) turned[i * BLOCK + j - j0] = s->l[j * s->n + i0 + i];
    s->ops->update(x + i0 * LANES, LANES, turned, BLOCK, x + j0 * LANES, BLOCK, j1 - j0);
  }
}

static void backward(const solve *s, double *x, double *turned) {
  const size_t last = s->n == 0 ? 0 : (s->n - 1) / BLOCK * BLOCK;
  for (size_t b = last + BLOCK; b > 0; b -= BLOCK) {
    const size_t j0 = b - BLOCK, j1 = least(b, s->n);
    for (size_t i = j1; i-- > j0;) {
      for (size_t t = i + 1; t < j1; t++)
        for (size_t c = 0; c < LANES; c++)
          x[i * LANES + c] -= s->l[t * s->n + i] * x[t * LANES + c];
      for (size_t c = 0; c < LANES; c++) x[i * LANES + c] /= s->l[i * s->n + i];
    }
    take_back(s, x, j0, j1, turned);
  }
}

static void solve_panels(void *ctx, unsigned rank, unsigned n_ranks) {
  const solve *s = ctx;
  size_t first, end;
  fl_thread_range(panels_of(s->n_rhs), rank, n_ranks, &first, &end);
  for (size_t p = first; p < end; p++) {
    double *x = s->panel + p * s->n * LANES;
    const size_t c0 = p * LANES, cols = least(LANES, s->n_rhs - c0);
    memset(x, 0, s->n * LANES * sizeof *x);
    for (size_t i = 0; i < s->n; i++)
      memcpy(x + i * LANES, s->b + i * s->n_rhs + c0, cols * sizeof *x);
    forward(s, x);
    backward(s, x, s->turned + rank * (size_t)BLOCK * BLOCK);
    for (size_t i = 0; i < s->n; i++)
      memcpy(s->b + i * s->n_rhs + c0, x + i * LANES, cols * sizeof *x);
  }
}

void fl_cholesky_solve(const fl_kernels *k, fl_team *team, const double *l, size_t n, double *b,
                       size_t n_rhs, double *scratch) {
  solve s = { .ops = k->cholesky,
              .l = l,
              .b = b,
              .panel = scratch,
              .turned = scratch + panels_of(n_rhs) * n * LANES,
              .n = n,
              .n_rhs = n_rhs };
  if (n > 0) fl_team_run(team, solve_panels, &s);
}
