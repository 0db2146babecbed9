/* blis.h - BLIS's f32 micro-kernel for this machine, seen without BLIS's headers (blis.c alone
 * includes them). Private to this folder.
 *
 * The micro-kernel computes one tile y [mr, nr] = x . w or += over k steps, with x packed as
 * [k][packmr] and w as [k][packnr]. BLIS picks it for the machine at run time; the sizes come with
 * it.
 */
#ifndef FL_KERNELS_BLIS_H
#define FL_KERNELS_BLIS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fl_ukr {
  void (*fn)(void);      /* BLIS's function, of a type that only blis.c knows */
  const void *cntx;      /* BLIS's context; lives as long as the process */
  size_t mr, nr;         /* rows and outputs of a tile */
  size_t packmr, packnr; /* strides of packed x and w from one k to the next */
  bool transposed;       /* BLIS's MR runs along the outputs (blis.c) */
  const char *arch;      /* "zen3" */
} fl_ukr;

/* Fills *u with the machine's micro-kernel. Cheap after the first call; any thread. */
void fl_ukr_query(fl_ukr *u);

/* y [mr, nr], row stride ldy, = x . w (add: y + x . w) over k >= 1 steps; x, w FL_ALIGN-aligned. */
void fl_ukr_tile(const fl_ukr *u, size_t k, const float *x, const float *w, float *y, size_t ldy,
                 bool add);

#endif
