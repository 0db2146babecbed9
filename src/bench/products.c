/* products.c - products with packed weights of the feed-forward's shape, beside plain f32
 * products by BLIS and OpenBLAS. Copies of the matrix together exceed the caches, as a model does.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "formats/dtype.h"
#include "kernels/matmul.h"
#include "kernels/peak.h"

enum { COPIES_MAX = 64, WORKING_SET = 64 << 20, PLAIN_COPIES = 6 };

static const size_t row_counts[] = { 1, 2, 4, 8, 16, 32, 128, 512 };
enum { N_COUNTS = sizeof row_counts / sizeof *row_counts, ROWS_MAX = 512 };

typedef void sgemm_fn(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                      int lda, const float *b, int ldb, float beta, float *c, int ldc);

typedef struct bench_speed {
  bench *b;
  size_t n_out, n_in;
  float *x, *y, *dx; /* [ROWS_MAX, n_in], [ROWS_MAX, n_out], [ROWS_MAX, n_in] */
  float *plain;      /* [PLAIN_COPIES][n_out, n_in] */
  fl_panels *w[COPIES_MAX];
  size_t n_w;
  void *scratch;
  void *lib; /* OpenBLAS */
  sgemm_fn *sgemm;
} products;

static void fill(float *x, size_t n) {
  uint32_t s = 1;
  for (size_t i = 0; i < n; i++) {
    s = s * 1664525u + 1013904223u;
    x[i] = (float)(s >> 8) / 0x1p24f - 0.5f;
  }
}

typedef enum way { OURS, OURS_DX, BLIS, OPENBLAS } way;

static void once(products *p, way how, size_t copy, size_t m) {
  const float *plain = p->plain + copy % PLAIN_COPIES * p->n_out * p->n_in;
  fl_team *team = p->b->team;
  switch (how) {
  case OURS: fl_matmul(p->w[copy], team, p->y, p->n_out, p->x, p->n_in, m, p->scratch); break;
  case OURS_DX:
    fl_matmul_dx(p->w[copy], team, p->dx, p->n_in, p->y, p->n_out, m, false, p->scratch);
    break;
  case BLIS: fl_peak_sgemm(fl_team_size(team), p->y, p->x, plain, m, p->n_out, p->n_in); break;
  case OPENBLAS: /* row-major, not transposed, transposed */
    p->sgemm(101, 111, 112, (int)m, (int)p->n_out, (int)p->n_in, 1, p->x, (int)p->n_in, plain,
             (int)p->n_in, 0, p->y, (int)p->n_out);
    break;
  }
}

/* Seconds of a plain product by a peer. */
static double peer_seconds(products *p, way how, size_t m) {
  double t = fl_now_s();
  for (size_t i = 0; i < PLAIN_COPIES; i++) once(p, how, i, m);
  return (fl_now_s() - t) / PLAIN_COPIES;
}

/* A repetition of ours over all copies, in turns with the machine; `amount` is one product's. */
static void turn(products *p, bench_turns *t, way how, size_t m, double amount) {
  for (size_t i = 0; i < p->n_w; i++) {
    const double from = fl_now_s();
    once(p, how, i, m);
    bench_turn(t, fl_now_s() - from);
  }
  bench_turns_end(t, amount * (double)p->n_w);
}

static void one_size(products *p, const char *type, size_t m, way ours, way peer,
                     const char *peer_name) {
  const double ops = 2.0 * (double)m * (double)p->n_out * (double)p->n_in;
  bench_turns t = { .meter = p->b->compute };
  double best_peer = 0;
  for (size_t r = 0; r < p->b->opt->reps; r++) {
    turn(p, &t, ours, m, ops);
    const double u = peer_name ? peer_seconds(p, peer, m) : 0;
    if (r == 0 || u < best_peer) best_peer = u;
  }
  bench_figure f = { .part = "products",
                     .unit = "GFLOP/s",
                     .peer = peer_name,
                     .value = ops * (double)p->n_w / t.best * 1e-9,
                     .share = bench_turns_share(&t) };
  snprintf(f.what, sizeof f.what, "%s %s %zu rows", ours == OURS ? "Y " : "dX", type, m);
  if (peer_name) f.peer_value = ops / best_peer * 1e-9;
  bench_add(p->b, &f);
}

/* How fast the weights came in: what bounds products with few rows. */
static void add_weights(products *p, const char *type, size_t m) {
  const double bytes = (double)fl_panels_bytes(p->w[0]);
  bench_turns t = { .meter = p->b->read };
  for (size_t r = 0; r < p->b->opt->reps; r++) turn(p, &t, OURS, m, bytes);
  bench_figure f = { .part = "products",
                     .unit = "GB/s",
                     .value = bytes * (double)p->n_w / t.best * 1e-9,
                     .share = bench_turns_share(&t) };
  snprintf(f.what, sizeof f.what, "weights %s %zu rows", type, m);
  bench_add(p->b, &f);
}

static void free_panels(products *p) {
  for (size_t i = 0; i < p->n_w; i++) fl_panels_free(p->w[i]);
  fl_free(p->scratch);
  p->scratch = NULL;
  p->n_w = 0;
}

static int pack(products *p, const fl_dtype_traits *t, fl_err *err) {
  size_t row, n;
  const fl_kernels *k = fl_model_kernels(p->b->model);
  if (!fl_dtype_row_bytes(t, p->n_in, &row) || !fl_mul_size(row, p->n_out, &n)) return FL_OK;
  uint8_t *raw = fl_aligned_calloc(n, 1);
  if (!raw) return fl_fail(err, FL_ENOMEM, "not enough memory");
  for (size_t i = 0; i < p->n_out; i++) t->quantise(raw + i * row, p->plain + i * p->n_in, p->n_in);
  const void *data[] = { raw };
  size_t copies = WORKING_SET / n + 1;
  int rc = FL_OK;
  while (rc == FL_OK && p->n_w < copies && p->n_w < COPIES_MAX) {
    rc = fl_panels_pack(&p->w[p->n_w], k, p->b->team, t->type, data, &p->n_out, 1, p->n_in, err);
    if (rc == FL_OK) p->n_w++;
  }
  fl_free(raw);
  if (rc == FL_OK)
    p->scratch = fl_aligned_calloc(1, fl_matmul_scratch(p->w[0], p->b->team, ROWS_MAX));
  if (rc == FL_OK && !p->scratch) rc = fl_fail(err, FL_ENOMEM, "not enough memory");
  return rc;
}

static int one_type(products *p, const char *name, fl_err *err) {
  const bool blis = bench_has_peer(p->b, "blis");
  int rc = pack(p, fl_dtype_by_name(name), err);
  for (size_t i = 0; rc == FL_OK && p->n_w > 0 && i < N_COUNTS; i++) {
    const size_t m = row_counts[i];
    if (p->sgemm) one_size(p, name, m, OURS, OPENBLAS, "openblas");
    if (blis || !p->sgemm) one_size(p, name, m, OURS, BLIS, blis ? "blis" : NULL);
    if (m <= 8) add_weights(p, name, m);
    if (m >= 32) one_size(p, name, m, OURS_DX, BLIS, NULL);
  }
  free_panels(p);
  return rc;
}

static int open_openblas(products *p, fl_err *err) {
  if (!bench_has_peer(p->b, "openblas")) return FL_OK;
  p->lib = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void *sgemm = p->lib ? dlsym(p->lib, "cblas_sgemm") : NULL;
  void *threads = p->lib ? dlsym(p->lib, "openblas_set_num_threads") : NULL;
  if (!sgemm || !threads)
    return fl_fail(err, FL_ENOENT, "--peer openblas: libopenblas.so.0 is not there; install it");
  void (*set_threads)(int);
  memcpy(&p->sgemm, &sgemm, sizeof sgemm); /* POSIX: a symbol's address is the function's */
  memcpy(&set_threads, &threads, sizeof threads);
  set_threads((int)fl_team_size(p->b->team));
  return FL_OK;
}

static int products_init(products *p, bench *b, fl_err *err) {
  const fl_layer_hparams *l = &b->hp->layer[0];
  *p =
      (products){ .b = b, .n_in = b->hp->d_model, .n_out = l->n_ff ? l->n_ff : b->hp->n_ff_expert };
  p->x = fl_aligned_calloc(ROWS_MAX * p->n_in, sizeof *p->x);
  p->y = fl_aligned_calloc(ROWS_MAX * p->n_out, sizeof *p->y);
  p->dx = fl_aligned_calloc(ROWS_MAX * p->n_in, sizeof *p->dx);
  p->plain = fl_aligned_calloc(PLAIN_COPIES * p->n_out * p->n_in, sizeof *p->plain);
  if (!p->x || !p->y || !p->dx || !p->plain) return fl_fail(err, FL_ENOMEM, "not enough memory");
  fill(p->x, ROWS_MAX * p->n_in);
  fill(p->y, ROWS_MAX * p->n_out);
  fill(p->plain, PLAIN_COPIES * p->n_out * p->n_in);
  return FL_OK;
}

static void products_release(products *p) {
  if (p->lib) dlclose(p->lib);
  free_panels(p);
  fl_free(p->plain);
  fl_free(p->dx);
  fl_free(p->y);
  fl_free(p->x);
}

int bench_products(bench *b, fl_err *err) {
  static const char *const types[] = { "f32", "f16", "bf16", "q8_0" };
  products p;
  int rc = products_init(&p, b, err);
  if (rc == FL_OK) rc = bench_read_open(b, err);
  if (rc == FL_OK) rc = open_openblas(&p, err);
  for (size_t i = 0; rc == FL_OK && i < sizeof types / sizeof *types; i++)
    rc = one_type(&p, types[i], err);
  products_release(&p);
  return rc;
}

int bench_speed_open(bench_speed **out, bench *b, const char *type, fl_err *err) {
  bench_speed *s = fl_calloc(1, sizeof *s);
  const fl_dtype_traits *t = fl_dtype_by_name(type);
  if (!s) return fl_fail(err, FL_ENOMEM, "not enough memory");
  if (!t->quantise) t = fl_dtype_by_name("f16");
  int rc = products_init(s, b, err);
  if (rc == FL_OK) rc = pack(s, t, err);
  if (rc == FL_OK && s->n_w == 0)
    rc = fl_fail(err, FL_EFAIL, "no product of %s has the model's shape", type);
  if (rc != FL_OK) bench_speed_close(s);
  else *out = s;
  return rc;
}

void bench_speed_close(bench_speed *s) {
  if (!s) return;
  products_release(s);
  fl_free(s);
}

bench_pace bench_speed_now(bench_speed *s) {
  const double ops = 2e-9 * ROWS_MAX * (double)s->n_out * (double)s->n_in;
  double t[2] = { 0 };
  for (size_t i = 0; i < s->n_w; i++)
    for (int how = OURS; how <= OURS_DX; how++) {
      const double from = fl_now_s();
      once(s, how, i, ROWS_MAX);
      t[how] += fl_now_s() - from;
    }
  const double all = ops * (double)s->n_w;
  return (bench_pace){ t[OURS] / all, t[OURS_DX] / all };
}
