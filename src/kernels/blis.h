/* blis.h - BLIS's f32 micro-kernel for this machine, seen without BLIS's headers (blis.c alone
 * includes them).
 *
 * The micro-kernel computes one tile: C [mr, nr] = beta * C + A . B over k steps, A packed [k][mr],
 * B packed [k][nr]. BLIS picks the kernel for the machine at run time; MR, NR and the packing
 * strides come with it. Private to this folder.
 */
#ifndef FL_KERNELS_BLIS_H
#define FL_KERNELS_BLIS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fl_ukr {
  void (*fn)(void); /* BLIS's function, of a type that only blis.c knows */
  const void *cntx; /* BLIS's context; lives as long as the process */
  size_t mr, nr;    /* the tile */
  size_t packmr, packnr; /* strides of packed A and B from one k to the next */
  bool rows;        /* the kernel likes C with unit stride along a row (else along a column) */
  const char *arch; /* "zen3" */
} fl_ukr;

/* Fills *u with the machine's micro-kernel. Cheap after the first call; any thread. */
void fl_ukr_query(fl_ukr *u);

/* C [mr, nr] = A . B (add: C += A . B) over k >= 1 steps. a and b are FL_ALIGN-aligned and packed
 * as above; element (i, j) of C is c[i * rs + j * cs]. */
void fl_ukr_tile(const fl_ukr *u, size_t k, const float *a, const float *b, float *c, size_t rs,
                 size_t cs, bool add);

#endif
