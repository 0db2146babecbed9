/* turns.c - work and the machine's own peak in turns. */
#include <stdlib.h>

#include "bench/bench.h"

void bench_turn(bench_turns *t, double ours) {
  t->ours += ours;
  t->peak += fl_meter_run(t->meter, ours, &t->amount);
}

void bench_turns_end(bench_turns *t, double amount) {
  if (t->n < BENCH_REPS_MAX && t->ours > 0 && t->peak > 0)
    t->share[t->n++] = amount / t->ours / (t->amount / t->peak);
  if (t->best <= 0 || t->ours < t->best) t->best = t->ours;
  t->ours = t->peak = t->amount = 0;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double bench_turns_share(bench_turns *t) {
  qsort(t->share, t->n, sizeof *t->share, by_value);
  return t->n ? t->share[t->n / 2] : 0;
}
