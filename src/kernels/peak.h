/* peak.h - what the machine can do at best, for measurements to be held against. */
#ifndef FL_KERNELS_PEAK_H
#define FL_KERNELS_PEAK_H

#include <stddef.h>

#include "kernels/matmul.h"
#include "kernels/team.h"

/* GFLOP/s of BLIS's micro-kernel on data in the first-level cache, on every thread of the team; the
 * best of several tries, some 50 ms. 0: no memory. */
double fl_peak_gflops(fl_team *team);

/* GB/s of a streaming read by the team: every line of 256 MiB once. 0: no memory. */
double fl_peak_read(fl_team *team);
/* The same of packed weights, which are in memory anyway; up to 256 MiB of them. 0: none are. */
double fl_peak_read_panels(fl_team *team, const fl_panels *const *w, size_t n);

/* What the machine does at best, in pieces that are run in turns with what is held against it:
 * where its speed changes from moment to moment, as a virtual machine's does, both see the same
 * moments. */
typedef struct fl_meter fl_meter;
typedef enum fl_meter_kind {
  FL_METER_OPS,  /* the micro-kernel as in fl_peak_gflops(); operations */
  FL_METER_BYTES /* the read of fl_peak_read(); bytes */
} fl_meter_kind;

/* NULL: no memory. The team must outlive the meter. */
fl_meter *fl_meter_open(fl_meter_kind kind, fl_team *team);
void fl_meter_close(fl_meter *m); /* NULL is nothing */
/* Works for about `seconds` and returns how many it took; *amount += operations or bytes. */
double fl_meter_run(fl_meter *m, double seconds, double *amount);

/* y [m, n] = x [m, k] . w^T for a plain w [n, k] by BLIS's own bli_sgemm, packing and all. */
void fl_peak_sgemm(unsigned n_threads, float *y, const float *x, const float *w, size_t m, size_t n,
                   size_t k);

#endif
