/* peak.c - see peak.h. */
#include "kernels/peak.h"

#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "kernels/blis.h"
#include "kernels/kernels.h"
#include "kernels/panel.h"

enum {
  TRIES = 5,
  TILES = 4000,
  TILES_MOST = 1 << 30,
  READ_BYTES = 256 << 20,
  READ_LEAST = 16 << 20,
  STREAMS = 4,
  LINE = 64
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

/* --- computing -------------------------------------------------------------------------------- */

typedef struct tiles {
  fl_ukr u;
  float *space;  /* per rank: a, b, c */
  size_t floats; /* of one rank */
  size_t n;      /* tiles that a rank computes */
} tiles;

static void tiles_rank(void *ctx, unsigned rank, unsigned n_ranks) {
  const tiles *t = ctx;
  float *a = t->space + rank * t->floats, *b = a + t->u.packmr * FL_KC;
  float *c = b + t->u.packnr * FL_KC;
  (void)n_ranks;
  for (size_t i = 0; i < t->n; i++) fl_ukr_tile(&t->u, FL_KC, a, b, c, t->u.nr, true);
}

static bool tiles_init(tiles *t, const fl_team *team) {
  *t = (tiles){ .n = TILES };
  fl_ukr_query(&t->u);
  t->floats = (t->u.packmr + t->u.packnr) * FL_KC + t->u.mr * t->u.nr;
  t->floats = (t->floats + 15) / 16 * 16;
  t->space = fl_aligned_calloc(t->floats * fl_team_size(team), sizeof *t->space);
  return t->space != NULL;
}

/* Operations of one tile on every rank. */
static double tile_ops(const tiles *t, const fl_team *team) {
  return 2.0 * (double)(t->u.mr * t->u.nr * FL_KC) * fl_team_size(team);
}

double fl_peak_gflops(fl_team *team) {
  tiles t;
  if (!tiles_init(&t, team)) return 0;
  double s = best_time(team, tiles_rank, &t);
  fl_free(t.space);
  return tile_ops(&t, team) * (double)t.n / s * 1e-9;
}

/* --- reading ---------------------------------------------------------------------------------- */

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
      fl_thread_range(r->piece[i].lines, rank, n_ranks, &first, &end);
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

static uint8_t *read_data(void) {
  uint8_t *data = fl_aligned_calloc(READ_BYTES, 1);
  if (data) memset(data, 1, READ_BYTES); /* pages of their own, not the one of zeros */
  return data;
}

double fl_peak_read(fl_team *team) {
  uint8_t *data = read_data();
  if (!data) return 0;
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

/* --- in turns --------------------------------------------------------------------------------- */

struct fl_meter {
  fl_meter_kind kind;
  fl_team *team;
  tiles tiles;
  uint8_t *data; /* READ_BYTES, read round and round */
  size_t at;
  double rate; /* of the last run; 0: none yet */
};

fl_meter *fl_meter_open(fl_meter_kind kind, fl_team *team) {
  fl_meter *m = fl_calloc(1, sizeof *m);
  if (!m) return NULL;
  m->kind = kind;
  m->team = team;
  if (kind == FL_METER_OPS) {
    if (tiles_init(&m->tiles, team)) return m;
  } else {
    m->data = read_data();
    if (m->data) return m;
  }
  fl_free(m);
  return NULL;
}

void fl_meter_close(fl_meter *m) {
  if (!m) return;
  fl_free(m->tiles.space);
  fl_free(m->data);
  fl_free(m);
}

static double compute(fl_meter *m, double ops) {
  const double n = m->rate > 0 ? ops / tile_ops(&m->tiles, m->team) : TILES;
  m->tiles.n = n < 1 ? 1 : n > TILES_MOST ? TILES_MOST : (size_t)n;
  fl_team_run(m->team, tiles_rank, &m->tiles);
  return tile_ops(&m->tiles, m->team) * (double)m->tiles.n;
}

/* Blocks of the data, so that the ranks read near each other as they do with weights. */
static double read_on(fl_meter *m, double bytes) {
  double done = 0;
  do {
    reader r = { .piece = &(piece){ m->data + m->at, READ_LEAST / LINE }, .n = 1, .passes = 1 };
    fl_team_run(m->team, read_rank, &r);
    m->at = (m->at + READ_LEAST) % READ_BYTES;
    done += READ_LEAST;
  } while (done + READ_LEAST / 2 < bytes);
  return done;
}

double fl_meter_run(fl_meter *m, double seconds, double *amount) {
  const double want = m->rate * seconds, t = now_s();
  const double done = m->kind == FL_METER_OPS ? compute(m, want) : read_on(m, want);
  const double took = now_s() - t;
  if (took > 0) m->rate = done / took;
  *amount += done;
  return took;
}
