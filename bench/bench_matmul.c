/* bench_matmul.c - the products with packed weights beside what the machine can do: the
 * micro-kernel on data in cache, and a streaming read. Best of a few repetitions; a few seconds a
 * run.
 *
 *   bench_matmul [THREADS [N_OUT [N_IN [TYPE [COPIES]]]]]
 *
 * COPIES of the matrix take turns; as many as exceed the caches by default.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "kernels/matmul.h"
#include "kernels/peak.h"

enum { REPS = 5, COPIES_MAX = 64 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *room(size_t n, size_t size) {
  void *p = fl_aligned_calloc(n, size);
  if (!p) {
    fprintf(stderr, "bench_matmul: no memory for %zu x %zu bytes\n", n, size);
    exit(EXIT_FAILURE);
  }
  return p;
}

static void fill(float *x, size_t n) {
  uint32_t s = 1;
  for (size_t i = 0; i < n; i++) {
    s = s * 1664525u + 1013904223u;
    x[i] = (float)(s >> 8) / 0x1p24f - 0.5f;
  }
}

typedef struct bench {
  fl_team *team;
  fl_panels **w;  /* [n_w] */
  size_t n_w;     /* 0: as many as together exceed the caches */
  size_t n_calls; /* that are timed together */
  double peak, bandwidth;
} bench;

static double time_of(const bench *b, size_t m, bool backward) {
  const size_t n_in = fl_panels_n_in(b->w[0]), n_out = fl_panels_n_out(b->w[0]);
  float *x = room(m * n_in, sizeof *x), *y = room(m * n_out, sizeof *y);
  void *scratch = room(1, fl_matmul_scratch(b->w[0], b->team, m));
  fill(x, m * n_in);
  fill(y, m * n_out);
  double best = 1e30;
  for (int i = 0; i < REPS; i++) {
    double t = now();
    for (size_t j = 0; j < b->n_calls; j++)
      if (backward) fl_matmul_dx(b->w[j % b->n_w], b->team, x, n_in, y, n_out, m, false, scratch);
      else fl_matmul(b->w[j % b->n_w], b->team, y, n_out, x, n_in, m, scratch);
    t = (now() - t) / (double)b->n_calls;
    if (t < best) best = t;
  }
  fl_free(scratch);
  fl_free(y);
  fl_free(x);
  return best;
}

static void report(const bench *b, size_t m, bool backward) {
  double t = time_of(b, m, backward);
  double gflops = 2.0 * (double)m * (double)fl_panels_n_in(b->w[0]) *
                  (double)fl_panels_n_out(b->w[0]) / t * 1e-9;
  double gb = (double)fl_panels_bytes(b->w[0]) / t * 1e-9;
  printf("  %s m %4zu  %9.1f us  %7.1f GFLOP/s (%.2f of peak)  %6.2f GB/s (%.2f of reading)\n",
         backward ? "dX" : "Y ", m, t * 1e6, gflops, gflops / b->peak, gb, gb / b->bandwidth);
}

static void run_type(bench *b, const fl_kernels *k, const char *name, size_t n_out, size_t n_in) {
  const fl_dtype_traits *t = fl_dtype_by_name(name);
  size_t row = 0;
  if (!t || !fl_dtype_row_bytes(t, n_in, &row)) {
    fprintf(stderr, "bench_matmul: %s does not fit rows of %zu\n", name, n_in);
    exit(EXIT_FAILURE);
  }
  uint8_t *raw = room(n_out, row);
  float *x = room(n_in, sizeof *x);
  fill(x, n_in);
  for (size_t i = 0; i < n_out && t->quantise; i++) t->quantise(raw + i * row, x, n_in);
  const void *data[] = { raw };
  fl_panels *w[COPIES_MAX];
  b->w = w;
  const size_t n_w = b->n_w;
  b->n_calls = (size_t)(64 << 20) / (n_out * row) + 1;
  if (b->n_w == 0) b->n_w = b->n_calls;
  if (b->n_w > COPIES_MAX) b->n_w = COPIES_MAX;
  for (size_t i = 0; i < b->n_w; i++)
    if (fl_panels_pack(&w[i], k, b->team, t->type, data, &n_out, 1, n_in, NULL) != FL_OK)
      exit(EXIT_FAILURE);
  printf("%s [%zu, %zu] x %zu\n", name, n_out, n_in, b->n_w);
  const size_t ms[] = { 1, 2, 4, 8, 16, 32, 128, 512 };
  for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) report(b, ms[i], false);
  report(b, 32, true);
  report(b, 128, true);
  report(b, 512, true);
  for (size_t i = 0; i < b->n_w; i++) fl_panels_free(w[i]);
  b->n_w = n_w;
  fl_free(x);
  fl_free(raw);
}

int main(int argc, char **argv) {
  unsigned n_threads = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
  size_t n_out = argc > 2 ? (size_t)atoi(argv[2]) : 3072,
         n_in = argc > 3 ? (size_t)atoi(argv[3]) : 1024;
  bench b = { .n_w = argc > 5 ? (size_t)atoi(argv[5]) : 0 };
  fl_err err = { 0 };
  if (fl_team_new(&b.team, n_threads, &err) != FL_OK) {
    fprintf(stderr, "bench_matmul: %s\n", err.text);
    return EXIT_FAILURE;
  }
  const fl_kernels *k = fl_kernels_select();
  b.peak = fl_peak_gflops(b.team);
  b.bandwidth = fl_peak_read(b.team);
  printf("%s, %u threads: micro-kernel %.1f GFLOP/s, reading %.1f GB/s, few rows exact: %s\n",
         fl_kernels_name(k), fl_team_size(b.team), b.peak, b.bandwidth,
         fl_matmul_probe(k) ? "yes" : "no");
  const char *all[] = { "f16", "q8_0", "f32" };
  for (size_t i = 0; i < (argc > 4 ? 1 : sizeof all / sizeof *all); i++)
    run_type(&b, k, argc > 4 ? argv[4] : all[i], n_out, n_in);
  fl_team_free(b.team);
  return EXIT_SUCCESS;
}
