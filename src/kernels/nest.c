/* nest.c - packing of the activations and the loops around the micro-kernel.
 *
 *   for chunks of rows (their tiles stay in the second-level cache)
 *     for chunks of k (bounds the packed copy)
 *       pack A | barrier
 *       for k-blocks of FL_KC, this thread's units of B    per unit in ascending k: order of the sums
 *         fill                                        (one block of B stays in the first-level cache)
 *         for column tiles, for row tiles: micro-kernel
 *       barrier
 *
 * A tile of C that sticks out of the matrix goes through a whole tile beside it. Threads own columns
 * (and rows, where there are fewer units than threads), so no element is written by two.
 */
#include "kernels/nest.h"

#include <string.h>

#include "base/mem.h"
#include "kernels/gemv_isa.h"

enum {
  ROWS_CHUNK = 192,
  CACHED_FLOATS = ROWS_CHUNK * FL_KC, /* 192 KiB */
  K_CHUNK = 16 * FL_KC,
  SMALL_PRODUCT = 1 << 16   /* multiply-adds, some microseconds of work */
};

/* Sizes that follow from the micro-kernel. */
static size_t tiles_of(const fl_ukr *u, size_t m) { return (m + u->mr - 1) / u->mr; }
static size_t a_tile(const fl_ukr *u) { return u->packmr * FL_KC; }
static size_t b_tile(const fl_ukr *u) { return u->packnr * FL_KC; }
static size_t c_tile(const fl_ukr *u) { return u->mr * u->nr; }

static size_t round_line(size_t floats) { return (floats + 15) / 16 * 16; }

/* Rows are cut evenly into as few chunks as fit. */
static size_t chunk_rows(const fl_ukr *u, size_t m) {
  size_t most = ROWS_CHUNK > u->mr ? ROWS_CHUNK / u->mr : 1; /* in tiles */
  size_t tiles = tiles_of(u, m), chunks = (tiles + most - 1) / most;
  return chunks ? (tiles + chunks - 1) / chunks * u->mr : u->mr;
}

static size_t a_floats(const fl_nest *nest, size_t m) {
  const fl_ukr *u = &nest->w->kern->ukr;
  size_t k = nest->k_total < K_CHUNK ? nest->k_total : K_CHUNK;
  return tiles_of(u, chunk_rows(u, m)) * ((k + FL_KC - 1) / FL_KC) * a_tile(u);
}

static size_t thread_floats(const fl_nest *nest) {
  const fl_ukr *u = &nest->w->kern->ukr;
  return nest->unit_tiles * b_tile(u) + round_line(nest->tmp_floats) + round_line(c_tile(u));
}

size_t fl_nest_scratch(const fl_nest *nest, unsigned n_threads, size_t m) {
  /* Chunks are cut evenly, so fewer rows may make a larger chunk than m rows do: take the most. */
  const fl_ukr *u = &nest->w->kern->ukr;
  size_t most = ROWS_CHUNK > u->mr ? ROWS_CHUNK / u->mr * u->mr : u->mr;
  size_t a = a_floats(nest, m < most ? m : most);
  return (a + n_threads * thread_floats(nest)) * sizeof(float);
}

fl_team *fl_team_for(fl_team *team, size_t m, size_t n, size_t k) {
  return m * n < SMALL_PRODUCT / k ? NULL : team;
}

typedef struct run {
  const fl_nest *nest;
  fl_team *team;
  float *a;      /* packed: [k-block][row tile][FL_KC][packmr] */
  float *thread; /* thread_floats per rank */
} run;

/* What one rank computes in a chunk. */
typedef struct share {
  size_t unit0, unit1, tile0, tile1;
} share;

static share share_of(const fl_nest *nest, size_t tiles, unsigned rank, unsigned n_ranks) {
  const fl_ukr *u = &nest->w->kern->ukr;
  size_t width = nest->unit_tiles * u->nr;
  size_t units = (nest->n + width - 1) / width;
  unsigned across = units < n_ranks ? (unsigned)units : n_ranks, down = n_ranks / across;
  share s = { 0 };
  if (rank >= across * down) return s;
  fl_share(units, rank % across, across, &s.unit0, &s.unit1);
  fl_share(tiles, rank / across, down, &s.tile0, &s.tile1);
  return s;
}

/* Rows [row0, row0 + rows) by k in [k0, k0 + len) into packed tiles, this rank's part of them. */
static void pack_rows(const run *r, size_t row0, size_t rows, size_t k0, size_t len, unsigned rank,
                      unsigned n_ranks) {
  const fl_nest *nest = r->nest;
  const fl_ukr *u = &nest->w->kern->ukr;
  size_t tiles = tiles_of(u, rows), blocks = (len + FL_KC - 1) / FL_KC, first, end;
  fl_share(tiles * blocks, rank, n_ranks, &first, &end);
  for (size_t i = first; i < end; i++) {
    float *to = r->a + i * a_tile(u);
    size_t row = i % tiles * u->mr, k = i / tiles * FL_KC;
    size_t n_rows = rows - row < u->mr ? rows - row : u->mr;
    size_t n_k = len - k < FL_KC ? len - k : FL_KC;
    if (n_rows < u->packmr) memset(to, 0, n_k * u->packmr * sizeof *to);
    nest->w->kern->gemv->transpose(to, u->packmr, nest->a + (row0 + row) * nest->lda + k0 + k,
                                   nest->lda, n_rows, n_k);
  }
}

/* One tile of C at c, of which only rows x cols exist. */
static void tile(const fl_ukr *u, size_t len, const float *a, const float *b, float *c, size_t ldc,
                 size_t rows, size_t cols, bool add, float *whole) {
  if (rows >= u->mr && cols >= u->nr) {
    fl_ukr_tile(u, len, a, b, c, ldc, add);
    return;
  }
  if (rows > u->mr) rows = u->mr;
  if (cols > u->nr) cols = u->nr;
  fl_ukr_tile(u, len, a, b, whole, u->nr, false);
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < cols; j++) {
      float v = whole[i * u->nr + j];
      c[i * ldc + j] = add ? c[i * ldc + j] + v : v;
    }
}

/* The unit and the k at which the block after this one begins. */
typedef struct coming {
  size_t unit, k0;
} coming;

/* One k-block of one unit, all of this rank's row tiles of the chunk. The next block's weights are
 * asked for meanwhile, a part with every tile: reading them costs memory's time otherwise. */
static void unit_block(const run *r, const share *s, size_t unit, size_t row0, size_t rows,
                       size_t k0, size_t len, const float *a, coming next, float *space) {
  const fl_nest *nest = r->nest;
  const fl_ukr *u = &nest->w->kern->ukr;
  float *b = space, *tmp = b + nest->unit_tiles * b_tile(u);
  float *whole = tmp + round_line(nest->tmp_floats);
  const size_t n_tiles = s->tile1 - s->tile0;
  nest->fill(nest, b, tmp, unit, k0, len);
  for (size_t j = 0; j < nest->unit_tiles; j++) {
    size_t col = (unit * nest->unit_tiles + j) * u->nr;
    if (col >= nest->n) break;
    for (size_t t = s->tile0; t < s->tile1; t++) {
      size_t row = t * u->mr;
      nest->ahead(nest, next.unit, next.k0, j * n_tiles + t - s->tile0, nest->unit_tiles * n_tiles);
      tile(u, len, a + t * a_tile(u), b + j * b_tile(u), nest->c + (row0 + row) * nest->ldc + col,
           nest->ldc, rows - row, nest->n - col, nest->add || k0 > 0, whole);
    }
  }
}

/* k-blocks that are taken one after another of the same unit: as many as keep the packed rows in the
 * second-level cache. The order of the sums is the same. */
static size_t blocks_at_once(const fl_nest *nest, size_t block_floats) {
  size_t n = CACHED_FLOATS / block_floats;
  return nest->along_k && n > 1 ? n : 1;
}

static void run_chunk(const run *r, const share *s, size_t row0, size_t rows, size_t k0, size_t len,
                      float *space) {
  const fl_ukr *u = &r->nest->w->kern->ukr;
  const size_t block_floats = tiles_of(u, rows) * a_tile(u);
  const size_t step = blocks_at_once(r->nest, block_floats) * FL_KC;
  for (size_t from = 0; from < len; from += step) {
    const size_t end = len - from < step ? len : from + step;
    for (size_t unit = s->unit0; unit < s->unit1; unit++)
      for (size_t k = from; k < end; k += FL_KC) {
        coming next = { unit, k0 + k + FL_KC };
        if (k + FL_KC >= end) next = (coming){ unit + 1, k0 + from };
        if (next.unit == s->unit1) next = (coming){ s->unit0, k0 + end };
        unit_block(r, s, unit, row0, rows, k0 + k, len - k < FL_KC ? len - k : FL_KC,
                   r->a + k / FL_KC * block_floats, next, space);
      }
  }
}

static void run_rank(void *ctx, unsigned rank, unsigned n_ranks) {
  const run *r = ctx;
  const fl_nest *nest = r->nest;
  const fl_ukr *u = &nest->w->kern->ukr;
  float *space = r->thread + rank * thread_floats(nest);
  size_t chunk = chunk_rows(u, nest->m);
  for (size_t row0 = 0; row0 < nest->m; row0 += chunk) {
    size_t rows = nest->m - row0 < chunk ? nest->m - row0 : chunk;
    share s = share_of(nest, tiles_of(u, rows), rank, n_ranks);
    for (size_t k0 = 0; k0 < nest->k_total; k0 += K_CHUNK) {
      size_t len = nest->k_total - k0 < K_CHUNK ? nest->k_total - k0 : K_CHUNK;
      pack_rows(r, row0, rows, k0, len, rank, n_ranks);
      fl_team_barrier(r->team);
      run_chunk(r, &s, row0, rows, k0, len, space);
      fl_team_barrier(r->team);
    }
  }
}

void fl_nest_run(const fl_nest *nest, fl_team *team, void *scratch) {
  run r = { .nest = nest, .team = team, .a = scratch };
  r.thread = r.a + a_floats(nest, nest->m);
  fl_team_run(team, run_rank, &r);
}

void fl_nest_count(const fl_panels *w, fl_team *team, size_t m, size_t n) {
  const double part = (double)n / (double)w->n_out;
  fl_team_count(team, 2.0 * (double)m * (double)n * (double)w->n_in,
                part * (double)fl_panels_bytes(w));
}
