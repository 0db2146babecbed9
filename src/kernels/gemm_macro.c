/* gemm_macro.c - packing of the activations and the loops around the micro-kernel.
 *
 *   for chunks of rows (their tiles stay in the second-level cache)
 *     for chunks of k (bounds the packed copy)
 *       pack A | barrier
 *       until no units of B are left: a thread takes some
 *         for k-blocks of FL_KC, those units            per unit in ascending k: order of the sums
 *           fill                                      one block of B stays in the first-level cache
 *           for column tiles, for row tiles: micro-kernel
 *       barrier
 *
 * A tile of C that sticks out of the matrix goes through a whole tile beside it; rows that do not
 * fill a tile take the product with few rows instead, which has the same bits. Threads take columns
 * as they become free (rows are divided where there are fewer units than threads), so a slow thread
 * does not hold up the others, and no element is written by two.
 */
#include "kernels/gemm_macro.h"

#include <string.h>

#include "kernels/gemm_small_isa.h"
#include "kernels/transpose_isa.h"

enum {
  ROWS_CHUNK = 324, /* a step's pass of 320 rows is one chunk: a block of B is made once for it */
  CACHED_FLOATS = ROWS_CHUNK * FL_KC, /* 324 KiB */
  UNITS_MOST = 8, /* that a thread takes at a time: C's part of them stays in cache too */
  K_CHUNK = 16 * FL_KC,
  EDGE_ROWS = 64,         /* that take the product with few rows in one piece */
  SMALL_PRODUCT = 1 << 16 /* multiply-adds, some microseconds of work */
};

/* Sizes that follow from the micro-kernel. */
static size_t tiles_of(const fl_ukr *u, size_t m) { return (m + u->mr - 1) / u->mr; }
static size_t a_tile(const fl_ukr *u) { return u->packmr * FL_KC; }
static size_t b_tile(const fl_ukr *u) { return u->packnr * FL_KC; }
static size_t c_tile(const fl_ukr *u) { return u->mr * u->nr; }

static size_t round_line(size_t floats) { return (floats + 15) / 16 * 16; }

/* Rows that do not fill a tile, and a whole tile with them where that makes two passes of few rows
 * instead of two nearly empty tiles. All, where that route is the faster one. */
static size_t edge_rows_of(const fl_gemm_macro *nest, size_t rows) {
  const fl_kernels *k = nest->w->kern;
  if (k->prefer_small) return rows;
  if (!k->few_rows_exact || k->ukr.packnr != k->ukr.nr) return 0;
  const size_t edge = rows % k->ukr.mr;
  return edge > 0 && edge <= k->ukr.mr / 2 && rows > k->ukr.mr ? edge + k->ukr.mr : edge;
}

/* Rows are cut evenly into as few chunks as fit. */
static size_t chunk_rows(const fl_ukr *u, size_t m) {
  size_t most = ROWS_CHUNK > u->mr ? ROWS_CHUNK / u->mr : 1; /* in tiles */
  size_t tiles = tiles_of(u, m), chunks = (tiles + most - 1) / most;
  return chunks ? (tiles + chunks - 1) / chunks * u->mr : u->mr;
}

static size_t a_floats(const fl_gemm_macro *nest, size_t m) {
  const fl_ukr *u = &nest->w->kern->ukr;
  if (nest->w->kern->prefer_small) return 0; /* read as they are */
  size_t k = nest->k_total < K_CHUNK ? nest->k_total : K_CHUNK;
  return tiles_of(u, chunk_rows(u, m)) * ((k + FL_KC - 1) / FL_KC) * a_tile(u);
}

/* Beside the matrix there is room for a tile of C, and for a piece of the edge by its width. */
static size_t thread_floats(const fl_gemm_macro *nest) {
  const fl_ukr *u = &nest->w->kern->ukr;
  const size_t tile = c_tile(u), piece = EDGE_ROWS * u->nr;
  return nest->unit_tiles * b_tile(u) + round_line(nest->tmp_floats) +
         round_line(tile > piece ? tile : piece);
}

size_t fl_gemm_macro_scratch(const fl_gemm_macro *nest, unsigned n_threads, size_t m) {
  /* Chunks are cut evenly, so fewer rows may make a larger chunk than m rows do: take the most. */
  const fl_ukr *u = &nest->w->kern->ukr;
  size_t most = ROWS_CHUNK > u->mr ? ROWS_CHUNK / u->mr * u->mr : u->mr;
  size_t a = a_floats(nest, m < most ? m : most);
  return (a + n_threads * thread_floats(nest)) * sizeof(float);
}

fl_team *fl_team_for(fl_team *team, size_t m, size_t n, size_t k) {
  return m * n < SMALL_PRODUCT / k ? NULL : team;
}

bool fl_claim_chunk(atomic_size_t *next, size_t n, size_t grain, size_t most, unsigned n_ranks,
                    size_t *first, size_t *end) {
  size_t at = atomic_load_explicit(next, memory_order_relaxed), want;
  do {
    if (at >= n) return false;
    want = n_ranks == 1 ? most : (n - at) / (2 * n_ranks) / grain * grain;
    want = want > most ? most : want > grain ? want : grain;
    if (want > n - at) want = n - at;
  } while (!atomic_compare_exchange_weak_explicit(next, &at, at + want, memory_order_relaxed,
                                                  memory_order_relaxed));
  *first = at;
  *end = at + want;
  return true;
}

typedef struct run {
  const fl_gemm_macro *nest;
  fl_team *team;
  float *a;      /* packed: [k-block][row tile][FL_KC][packmr] */
  float *thread; /* thread_floats per rank */
  size_t n_units;
  atomic_size_t next; /* unit that nobody has taken */
} run;

/* Rows and inputs of a chunk, and the tiles of the rows: whole ones, and pieces of the edge. */
typedef struct chunk {
  size_t row0, rows, k0, len;
  size_t whole, edge;
} chunk;

static chunk chunk_of(const fl_gemm_macro *nest, size_t row0, size_t rows, size_t k0) {
  const fl_ukr *u = &nest->w->kern->ukr;
  const size_t left = nest->k_total - k0, edge = edge_rows_of(nest, rows);
  return (chunk){ .row0 = row0,
                  .rows = rows,
                  .k0 = k0,
                  .len = left < K_CHUNK ? left : K_CHUNK,
                  .whole = tiles_of(u, rows - edge),
                  .edge = edge };
}

static size_t tiles_in(const chunk *c) { return c->whole + (c->edge + EDGE_ROWS - 1) / EDGE_ROWS; }

/* A tile's first row, of the chunk's. */
static size_t row_of(const chunk *c, const fl_ukr *u, size_t t) {
  return t < c->whole ? t * u->mr : c->whole * u->mr + (t - c->whole) * EDGE_ROWS;
}

/* What one rank computes at a time. */
typedef struct share {
  size_t unit0, unit1, tile0, tile1;
} share;

/* Fewer units than ranks: each gets a fixed part of the rows instead. */
static share share_of(const run *r, size_t tiles, unsigned rank, unsigned n_ranks) {
  const unsigned across = (unsigned)r->n_units, down = n_ranks / across;
  share s = { 0 };
  if (rank >= across * down) return s;
  fl_thread_range(r->n_units, rank % across, across, &s.unit0, &s.unit1);
  fl_thread_range(tiles, rank / across, down, &s.tile0, &s.tile1);
  return s;
}

/* The whole tiles of a chunk, this rank's part of them. */
static void pack_rows(const run *r, const chunk *c, unsigned rank, unsigned n_ranks) {
  const fl_gemm_macro *nest = r->nest;
  const fl_ukr *u = &nest->w->kern->ukr;
  size_t blocks = (c->len + FL_KC - 1) / FL_KC, first, end;
  fl_thread_range(c->whole * blocks, rank, n_ranks, &first, &end);
  for (size_t i = first; i < end; i++) {
    float *to = r->a + i * a_tile(u);
    size_t row = i % c->whole * u->mr, k = i / c->whole * FL_KC;
    size_t n_rows = c->rows - row < u->mr ? c->rows - row : u->mr;
    size_t n_k = c->len - k < FL_KC ? c->len - k : FL_KC;
    if (n_rows < u->packmr) memset(to, 0, n_k * u->packmr * sizeof *to);
    nest->w->kern->transpose->transpose(
        to, u->packmr, nest->a + (c->row0 + row) * nest->lda + c->k0 + k, nest->lda, n_rows, n_k);
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

/* The rows that fill no tile, against one column tile; x their inputs. */
static void edge_tile(const fl_gemm_macro *nest, size_t rows, size_t len, const float *x,
                      const float *b, float *c, size_t cols, bool add, float *beside) {
  const size_t nr = nest->w->kern->ukr.nr;
  const bool whole = cols >= nr;
  nest->w->kern->gemm_small->f32_panel(rows, len, x, nest->lda, b, nr, whole ? c : beside,
                                       whole ? nest->ldc : nr, whole && add);
  for (size_t i = 0; !whole && i < rows; i++)
    for (size_t j = 0; j < cols; j++) {
      float v = beside[i * nr + j];
      c[i * nest->ldc + j] = add ? c[i * nest->ldc + j] + v : v;
    }
}

/* The unit and the k at which the block after this one begins. */
typedef struct next_block {
  size_t unit, k0;
} next_block;

/* One k-block (at `k` of the chunk) of one unit, all of this rank's row tiles. The next block's
 * weights are prefetched meanwhile, a part with every tile. */
static void unit_block(const run *r, const chunk *c, const share *s, size_t unit, size_t k,
                       next_block next, float *space) {
  const fl_gemm_macro *nest = r->nest;
  const fl_ukr *u = &nest->w->kern->ukr;
  float *tmp = space + nest->unit_tiles * b_tile(u), *beside = tmp + round_line(nest->tmp_floats);
  const size_t n_tiles = s->tile1 - s->tile0, len = c->len - k < FL_KC ? c->len - k : FL_KC;
  const float *a = r->a + k / FL_KC * c->whole * a_tile(u);
  const float *x = nest->a + c->row0 * nest->lda + c->k0 + k;
  const float *b = nest->fill(nest, space, tmp, unit, c->k0 + k, len);
  const bool add = nest->add || c->k0 + k > 0;
  for (size_t j = 0; j < nest->unit_tiles; j++) {
    const size_t col = (unit * nest->unit_tiles + j) * u->nr;
    if (col >= nest->n) break;
    for (size_t t = s->tile0; t < s->tile1; t++) {
      const size_t row = row_of(c, u, t), rows = c->rows - row, cols = nest->n - col;
      float *to = nest->c + (c->row0 + row) * nest->ldc + col;
      nest->prefetch(nest, next.unit, next.k0, j * n_tiles + t - s->tile0,
                     nest->unit_tiles * n_tiles);
      if (t < c->whole)
        tile(u, len, a + t * a_tile(u), b + j * b_tile(u), to, nest->ldc, rows, cols, add, beside);
      else
        edge_tile(nest, rows < EDGE_ROWS ? rows : EDGE_ROWS, len, x + row * nest->lda,
                  b + j * b_tile(u), to, cols, add, beside);
    }
  }
}

/* k-blocks that are taken one after another of the same unit: as many as keep the packed rows in
 * the second-level cache. The order of the sums is the same. */
static size_t blocks_at_once(const fl_gemm_macro *nest, size_t block_floats) {
  size_t n = block_floats > 0 ? CACHED_FLOATS / block_floats : 1;
  return nest->along_k && n > 1 ? n : 1;
}

static void run_share(const run *r, const chunk *c, const share *s, float *space) {
  const fl_ukr *u = &r->nest->w->kern->ukr;
  const size_t step = blocks_at_once(r->nest, (c->whole + 1) * a_tile(u)) * FL_KC;
  for (size_t from = 0; from < c->len; from += step) {
    const size_t end = c->len - from < step ? c->len : from + step;
    for (size_t unit = s->unit0; unit < s->unit1; unit++)
      for (size_t k = from; k < end; k += FL_KC) {
        next_block next = { unit, c->k0 + k + FL_KC };
        if (k + FL_KC >= end) next = (next_block){ unit + 1, c->k0 + from };
        if (next.unit == s->unit1) next = (next_block){ s->unit0, c->k0 + end };
        if (next.k0 >= c->k0 + c->len) /* what this rank is likely to take next */
          next = (next_block){ atomic_load_explicit(&r->next, memory_order_relaxed), c->k0 };
        unit_block(r, c, s, unit, k, next, space);
      }
  }
}

static void run_chunk(run *r, const chunk *c, unsigned rank, unsigned n_ranks, float *space) {
  if (r->n_units < n_ranks) {
    const share s = share_of(r, tiles_in(c), rank, n_ranks);
    run_share(r, c, &s, space);
    return;
  }
  share s = { .tile1 = tiles_in(c) };
  while (fl_claim_chunk(&r->next, r->n_units, 1, UNITS_MOST, n_ranks, &s.unit0, &s.unit1))
    run_share(r, c, &s, space);
}

static void run_rank(void *ctx, unsigned rank, unsigned n_ranks) {
  run *r = ctx;
  const fl_gemm_macro *nest = r->nest;
  const fl_ukr *u = &nest->w->kern->ukr;
  float *space = r->thread + rank * thread_floats(nest);
  const size_t most = chunk_rows(u, nest->m);
  for (size_t row0 = 0; row0 < nest->m; row0 += most) {
    const size_t rows = nest->m - row0 < most ? nest->m - row0 : most;
    for (size_t k0 = 0; k0 < nest->k_total; k0 += K_CHUNK) {
      const chunk c = chunk_of(nest, row0, rows, k0);
      if (rank == 0) atomic_store_explicit(&r->next, 0, memory_order_relaxed);
      pack_rows(r, &c, rank, n_ranks);
      fl_team_barrier(r->team);
      run_chunk(r, &c, rank, n_ranks, space);
      fl_team_barrier(r->team);
    }
  }
}

void fl_gemm_macro_run(const fl_gemm_macro *nest, fl_team *team, void *scratch) {
  const size_t width = nest->unit_tiles * nest->w->kern->ukr.nr;
  run r = { .nest = nest, .team = team, .a = scratch, .n_units = (nest->n + width - 1) / width };
  r.thread = r.a + a_floats(nest, nest->m);
  fl_team_run(team, run_rank, &r);
}

void fl_gemm_macro_count(const fl_panels *w, fl_team *team, size_t m, size_t n) {
  const double part = (double)n / (double)w->n_out;
  fl_team_count(team, 2.0 * (double)m * (double)n * (double)w->n_in,
                part * (double)fl_panels_bytes(w));
}
