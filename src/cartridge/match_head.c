/* match_head.c - choosing keys and fitting values for one head. Queries are taken in blocks. */
#include "cartridge/match_head.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/cholesky.h"
#include "kernels/matmul.h"
#include "kernels/pointwise.h"

enum { BLOCK = 256, /* queries */ STRIP = 128 /* rows of the system at a time */ };

/* Working state; all released by fit_release. */
typedef struct fit {
  const fl_match_head *h;
  const fl_kernels *kern;
  fl_team *team;
  fl_panels *keys, *values; /* of the document, then of the chosen rows */
  void *scratch;            /* of the products */
  size_t scratch_bytes;
  float *score;    /* [BLOCK, n_rows] */
  float *turned;   /* [p, BLOCK] */
  float *target;   /* [n_queries, head_dim] attention's output over the document */
  float *mass;     /* [n_queries] log M */
  float *rest;     /* [BLOCK, head_dim] */
  float *product;  /* [STRIP, p] */
  double *weight;  /* [n_rows] */
  double *system;  /* [p, p] lower triangle */
  double *right;   /* [p, head_dim] */
  double *solving; /* of the factorisation */
  /* The block that runs. */
  size_t first, n, n_keys;
  const size_t *from;
} fit;

static void fit_release(fit *f) {
  fl_panels_free(f->keys);
  fl_panels_free(f->values);
  fl_free(f->scratch);
  fl_free(f->score);
  fl_free(f->turned);
  fl_free(f->target);
  fl_free(f->mass);
  fl_free(f->rest);
  fl_free(f->product);
  fl_free(f->weight);
  fl_free(f->system);
  fl_free(f->right);
  fl_free(f->solving);
}

static int no_memory(const fit *f, fl_err *err) {
  return fl_fail(err, FL_ENOMEM, "not enough memory to match %zu rows to %zu", f->h->p,
                 f->h->n_rows);
}

static int pack(fit *f, fl_panels **out, const float *rows, size_t n, fl_err *err) {
  const void *data = rows;
  fl_panels *w = NULL;
  const int rc = fl_panels_pack(&w, f->kern, f->team, FL_F32, &data, &n, 1, f->h->head_dim, err);
  if (rc != FL_OK) return rc;
  fl_panels_free(*out);
  *out = w;
  return FL_OK;
}

/* Room for products with w of up to m rows. */
static int room_for(fit *f, const fl_panels *w, size_t m, fl_err *err) {
  const size_t n = fl_matmul_scratch(w, f->team, m);
  if (n <= f->scratch_bytes) return FL_OK;
  fl_free(f->scratch);
  f->scratch = fl_aligned_malloc(n, 1);
  f->scratch_bytes = f->scratch != NULL ? n : 0;
  return f->scratch != NULL ? FL_OK : no_memory(f, err);
}

static int use_rows(fit *f, const float *k, const float *v, size_t n, fl_err *err) {
  int rc = pack(f, &f->keys, k, n, err);
  if (rc == FL_OK) rc = pack(f, &f->values, v, n, err);
  if (rc == FL_OK) rc = room_for(f, f->keys, BLOCK, err);
  if (rc == FL_OK) rc = room_for(f, f->values, BLOCK, err);
  f->n_keys = n;
  return rc;
}

static int fit_init(fit *f, fl_err *err) {
  const fl_match_head *h = f->h;
  const size_t hd = h->head_dim, p = h->p;
  f->score = fl_aligned_malloc(BLOCK * h->n_rows, sizeof *f->score);
  f->turned = fl_aligned_malloc(p * BLOCK, sizeof *f->turned);
  f->target = fl_aligned_malloc(h->n_queries * hd, sizeof *f->target);
  f->mass = fl_aligned_malloc(h->n_queries, sizeof *f->mass);
  f->rest = fl_aligned_malloc(BLOCK * hd, sizeof *f->rest);
  f->product = fl_aligned_malloc(STRIP * p, sizeof *f->product);
  f->weight = fl_calloc(h->n_rows, sizeof *f->weight);
  f->system = fl_calloc(p * p, sizeof *f->system);
  f->right = fl_calloc(p * hd, sizeof *f->right);
  f->solving = fl_calloc(fl_cholesky_scratch(p, hd, f->team), sizeof *f->solving);
  if (!f->score || !f->turned || !f->target || !f->mass || !f->rest || !f->product || !f->weight ||
      !f->system || !f->right || !f->solving)
    return no_memory(f, err);
  return use_rows(f, h->k, h->v, h->n_rows, err);
}

/* The scores of the block that begins at query `first`; those that a query does not see are left
 * for the callers. */
static void score_block(fit *f, size_t first, const size_t *from) {
  const fl_match_head *h = f->h;
  f->first = first;
  f->n = h->n_queries - first < BLOCK ? h->n_queries - first : BLOCK;
  f->from = from;
  fl_matmul(f->keys, f->team, f->score, f->n_keys, h->q + first * h->head_dim, h->head_dim, f->n,
            f->scratch);
}

/* A row of scores, visible part from *lo on: capped, what stands before is weight zero. Returns the
 * logarithm of the sum of exponentials, *max is the largest score; -inf where nothing is seen. */
static float row_mass(const fit *f, float *s, size_t query, size_t *lo, float *max) {
  *lo = f->from != NULL ? f->from[query] : 0;
  if (*lo > f->n_keys) *lo = f->n_keys;
  memset(s, 0, *lo * sizeof *s);
  const size_t n = f->n_keys - *lo;
  *max = 0;
  if (n == 0) return -INFINITY;
  if (f->h->softcap != 0) fl_softcap(f->kern, s + *lo, s + *lo, n, f->h->softcap);
  *max = fl_max(f->kern, s + *lo, n);
  return *max + logf(fl_sum_exp(f->kern, s + *lo, n, *max));
}

/* M / (M + m) from the logarithms; 0 where there is neither. */
static float share(float mass, float own) {
  if (mass == -INFINITY) return 0;
  return 1 / (1 + expf(own - mass));
}

/* --- the document: outputs, masses, what rows weigh --------------------------------------------
 */

static void reference_rows(void *ctx, unsigned rank, unsigned n_ranks) {
  fit *f = ctx;
  size_t first, end;
  fl_thread_range(f->n, rank, n_ranks, &first, &end);
  for (size_t i = first; i < end; i++) {
    float *s = f->score + i * f->n_keys, max;
    size_t lo;
    const float mass = row_mass(f, s, f->first + i, &lo, &max);
    f->mass[f->first + i] = mass;
    if (lo < f->n_keys)
      fl_exp_scaled(f->kern, s + lo, s + lo, f->n_keys - lo, max, expf(max - mass));
  }
}

/* Columns are shared out; in each, queries ascend. */
static void weigh_columns(void *ctx, unsigned rank, unsigned n_ranks) {
  fit *f = ctx;
  size_t first, end;
  fl_thread_range(f->n_keys, rank, n_ranks, &first, &end);
  for (size_t i = 0; i < f->n; i++) {
    const size_t query = f->first + i;
    const double a = (double)share(f->mass[query], f->h->own_mass[query]);
    const float *s = f->score + i * f->n_keys;
    for (size_t j = first; j < end; j++) {
      const double w = a * (double)s[j];
      f->weight[j] += w * w;
    }
  }
}

static void reference(fit *f) {
  const size_t hd = f->h->head_dim;
  for (size_t at = 0; at < f->h->n_queries; at += BLOCK) {
    score_block(f, at, f->h->from);
    fl_team_run(f->team, reference_rows, f);
    fl_team_run(f->team, weigh_columns, f);
    fl_matmul_dx(f->values, f->team, f->target + at * hd, hd, f->score, f->n_keys, f->n, false,
                 f->scratch);
  }
}

/* --- choosing ----------------------------------------------------------------------------------
 */

typedef struct ranked {
  double weight;
  uint32_t row;
} ranked;

static int by_weight(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
  return x->row < y->row ? -1 : x->row > y->row;
}

static int ascending(const void *a, const void *b) {
  const uint32_t *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

static int choose(const fit *f, uint32_t *row, fl_err *err) {
  const fl_match_head *h = f->h;
  ranked *r = fl_calloc(h->n_rows, sizeof *r);
  if (r == NULL) return no_memory(f, err);
  for (size_t j = 0; j < h->n_rows; j++) r[j] = (ranked){ f->weight[j], (uint32_t)j };
  if (h->keep_first) r[0].weight = INFINITY;
  qsort(r, h->n_rows, sizeof *r, by_weight);
  for (size_t i = 0; i < h->p; i++) row[i] = r[i].row;
  qsort(row, h->p, sizeof *row, ascending);
  fl_free(r);
  return FL_OK;
}

/* --- values ------------------------------------------------------------------------------------
 */

/* The weights that the chosen rows have in the end; and minus what their values are to give. */
static void design_rows(void *ctx, unsigned rank, unsigned n_ranks) {
  fit *f = ctx;
  const size_t hd = f->h->head_dim;
  size_t first, end;
  fl_thread_range(f->n, rank, n_ranks, &first, &end);
  for (size_t i = first; i < end; i++) {
    const size_t query = f->first + i;
    const float *target = f->target + query * hd, *own = f->h->own + query * hd;
    const float m = f->h->own_mass[query];
    float *s = f->score + i * f->n_keys, *rest = f->rest + i * hd, max;
    size_t lo;
    const float mass = row_mass(f, s, query, &lo, &max);
    const float was = share(f->mass[query], m), is = share(mass, m);
    if (lo < f->n_keys)
      fl_exp_scaled(f->kern, s + lo, s + lo, f->n_keys - lo, max, is * expf(max - mass));
    for (size_t d = 0; d < hd; d++) rest[d] = (was - is) * own[d] - was * target[d];
  }
}

static void turn(void *ctx, unsigned rank, unsigned n_ranks) {
  enum { LINE = 16 };
  fit *f = ctx;
  size_t first, end;
  fl_thread_range((f->n_keys + LINE - 1) / LINE, rank, n_ranks, &first, &end);
  for (size_t b = first; b < end; b++) {
    const size_t j0 = b * LINE, j1 = j0 + LINE < f->n_keys ? j0 + LINE : f->n_keys;
    for (size_t i = 0; i < f->n; i++)
      for (size_t j = j0; j < j1; j++) f->turned[j * f->n + i] = f->score[i * f->n_keys + j];
  }
}

typedef struct sum { /* to [rows, cols] (row stride ld) += product */
  double *to;
  const float *from;
  size_t rows, cols, ld;
} sum;

static void add_rows(void *ctx, unsigned rank, unsigned n_ranks) {
  const sum *s = ctx;
  size_t first, end;
  fl_thread_range(s->rows, rank, n_ranks, &first, &end);
  for (size_t i = first; i < end; i++)
    for (size_t j = 0; j < s->cols; j++) s->to[i * s->ld + j] += (double)s->from[i * s->cols + j];
}

/* to [rows, cols] (row stride ld) += product [rows, cols] */
static void add_product(fit *f, double *to, size_t ld, const float *product, size_t rows,
                        size_t cols) {
  sum s = { .to = to, .from = product, .rows = rows, .cols = cols, .ld = ld };
  fl_team_run(f->team, add_rows, &s);
}

/* The block's part of the system: turned . turned^T below the diagonal, turned . rest. */
static int add_block(fit *f, fl_err *err) {
  const size_t p = f->h->p, hd = f->h->head_dim;
  const void *turned = f->turned, *rest = f->rest;
  fl_panels *w = NULL, *r = NULL;
  int rc = fl_panels_pack(&w, f->kern, f->team, FL_F32, &turned, &p, 1, f->n, err);
  if (rc == FL_OK) rc = fl_panels_pack(&r, f->kern, f->team, FL_F32, &rest, &f->n, 1, hd, err);
  if (rc == FL_OK) rc = room_for(f, w, STRIP, err);
  if (rc == FL_OK) rc = room_for(f, r, STRIP, err);
  for (size_t r0 = 0; rc == FL_OK && r0 < p; r0 += STRIP) {
    const size_t rows = p - r0 < STRIP ? p - r0 : STRIP;
    const float *x = f->turned + r0 * f->n;
    fl_matmul_cols(w, f->team, f->product, r0 + rows, x, f->n, rows, 0, r0 + rows, f->scratch);
    add_product(f, f->system + r0 * p, p, f->product, rows, r0 + rows);
    fl_matmul_dx(r, f->team, f->product, hd, x, f->n, rows, false, f->scratch);
    add_product(f, f->right + r0 * hd, hd, f->product, rows, hd);
  }
  fl_panels_free(w);
  fl_panels_free(r);
  return rc;
}

static int build_system(fit *f, fl_err *err) {
  const size_t hd = f->h->head_dim;
  int rc = FL_OK;
  for (size_t at = 0; rc == FL_OK && at < f->h->n_queries; at += BLOCK) {
    score_block(f, at, f->h->from_chosen);
    fl_team_run(f->team, design_rows, f);
    fl_matmul_dx(f->values, f->team, f->rest, hd, f->score, f->n_keys, f->n, true, f->scratch);
    fl_team_run(f->team, turn, f);
    rc = add_block(f, err);
  }
  return rc;
}

/* Rows that no query weighs keep their values: the ridge alone is on their diagonal. */
static int solve_values(fit *f, float *v, fl_err *err) {
  const size_t p = f->h->p, hd = f->h->head_dim;
  double mean = 0;
  for (size_t i = 0; i < p; i++) mean += f->system[i * p + i] / (double)p;
  const double ridge = mean > 0 ? f->h->ridge * mean : 1;
  for (size_t i = 0; i < p; i++) f->system[i * p + i] += ridge;
  if (!fl_cholesky(f->kern, f->team, f->system, p, f->solving))
    return fl_fail(err, FL_EFAIL,
                   "%zu rows cannot be matched: the system of their values is not positive "
                   "definite; use fewer (--p)",
                   p);
  fl_cholesky_solve(f->kern, f->team, f->system, p, f->right, hd, f->solving);
  for (size_t i = 0; i < p * hd; i++) v[i] = (float)((double)v[i] - f->right[i]);
  return FL_OK;
}

int fl_match_head_fit(const fl_match_head *h, const fl_kernels *kern, fl_team *team, uint32_t *row,
                      float *k, float *v, fl_err *err) {
  fit f = { .h = h, .kern = kern, .team = team };
  const size_t hd = h->head_dim;
  int rc = fit_init(&f, err);
  if (rc == FL_OK) {
    reference(&f);
    rc = choose(&f, row, err);
  }
  for (size_t i = 0; rc == FL_OK && i < h->p; i++) {
    memcpy(k + i * hd, h->k + row[i] * hd, hd * sizeof *k);
    memcpy(v + i * hd, h->v + row[i] * hd, hd * sizeof *v);
  }
  if (rc == FL_OK && h->p < h->n_rows) {
    rc = use_rows(&f, k, v, h->p, err);
    if (rc == FL_OK) rc = build_system(&f, err);
    if (rc == FL_OK) rc = solve_values(&f, v, err);
  }
  fit_release(&f);
  return rc;
}
