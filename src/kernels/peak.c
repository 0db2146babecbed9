/* peak.c - see peak.h. */
#include "kernels/peak.h"

#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "kernels/blis.h"
#include "kernels/kernels.h"
#include "kernels/panel.h"

enum {
  TRIES = 5, TILES = 4000, READ_BYTES = 256 << 20, READ_LEAST = 16 << 20, STREAMS = 4, LINE = 64
};

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double best_time(fl_team *team, fl_team_fn *fn, void *ctx) {
  double best = 0;
  for (int i = 0; i < TRIES; i++) {
    double t = now_s();
    fl_team_run(team, fn, ctx);
    t = now_s() - t;
    if (i == 0 || t < best) best = t;
  }
  return best;
}

typedef struct tiles {
  fl_ukr u;
  float *space;  /* per rank: a, b, c */
  size_t floats; /* of one rank */
} tiles;

static void tiles_rank(void *ctx, unsigned rank, unsigned n_ranks) {
  const tiles *t = ctx;
  float *a = t->space + rank * t->floats, *b = a + t->u.packmr * FL_KC;
  float *c = b + t->u.packnr * FL_KC;
  (void)n_ranks;
  for (int i = 0; i < TILES; i++) fl_ukr_tile(&t->u, FL_KC, a, b, c, t->u.nr, true);
}

double fl_peak_gflops(fl_team *team) {
  tiles t = { 0 };
  fl_ukr_query(&t.u);
  t.floats = (t.u.packmr + t.u.packnr) * FL_KC + t.u.mr * t.u.nr;
  t.floats = (t.floats + 15) / 16 * 16;
  t.space = fl_aligned_calloc(t.floats * fl_team_size(team), sizeof *t.space);
  if (!t.space) return 0;
  double s = best_time(team, tiles_rank, &t);
  fl_free(t.space);
  return 2.0 * (double)(t.u.mr * t.u.nr * FL_KC) * TILES * fl_team_size(team) / s * 1e-9;
}

typedef struct piece {
  const uint8_t *data; /* aligned to a line */
  size_t lines;
} piece;

typedef struct reader {
  const piece *piece;
  size_t n, passes; /* little is read several times, so that a start of the team weighs nothing */
  uint64_t sum[64]; /* what was read must be used */
} reader;

/* One word of every line, in several streams: what counts is the line's way in. */
static uint64_t read_lines(const uint8_t *data, size_t lines) {
  enum { WORDS = LINE / sizeof(uint64_t) };
  const uint64_t *p = (const uint64_t *)(const void *)data;
  const size_t n = lines / STREAMS;
  uint64_t s[STREAMS] = { 0 }, all = 0;
  for (size_t i = 0; i < n; i++, p += WORDS)
    for (size_t j = 0; j < STREAMS; j++) s[j] ^= p[j * n * WORDS];
  for (size_t j = 0; j < STREAMS; j++) all ^= s[j];
  return all;
}

static void read_rank(void *ctx, unsigned rank, unsigned n_ranks) {
  reader *r = ctx;
  for (size_t pass = 0; pass < r->passes; pass++)
    for (size_t i = 0; i < r->n; i++) {
      size_t first, end;
      fl_share(r->piece[i].lines, rank, n_ranks, &first, &end);
      r->sum[rank % 64] ^= read_lines(r->piece[i].data + first * LINE, end - first);
    }
}

static double read_rate(fl_team *team, const piece *p, size_t n) {
  size_t bytes = 0;
  for (size_t i = 0; i < n; i++) bytes += p[i].lines * LINE;
  if (bytes == 0) return 0;
  reader r = { .piece = p, .n = n, .passes = 1 + READ_LEAST / bytes };
  double s = best_time(team, read_rank, &r);
  return (double)r.passes * (double)bytes / s * 1e-9;
}

double fl_peak_read(fl_team *team) {
  uint8_t *data = fl_aligned_calloc(READ_BYTES, 1);
  if (!data) return 0;
  memset(data, 1, READ_BYTES); /* pages of their own, not the one of zeros */
  double rate = read_rate(team, &(piece){ data, READ_BYTES / LINE }, 1);
  fl_free(data);
  return rate;
}

double fl_peak_read_panels(fl_team *team, const fl_panels *const *w, size_t n) {
  piece *p = fl_calloc(n, sizeof *p);
  size_t used = 0, lines = 0;
  if (!p) return 0;
  for (size_t i = 0; i < n && lines < READ_BYTES / LINE; i++) {
    if (!w[i]->data) continue;
    p[used] = (piece){ w[i]->data, fl_panels_bytes(w[i]) / LINE };
    lines += p[used++].lines;
  }
  double rate = read_rate(team, p, used);
  fl_free(p);
  return rate;
}
