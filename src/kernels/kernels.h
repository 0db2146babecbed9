/* kernels.h - the arithmetic, chosen once for the machine.
 *
 * THE ROW RULE. The value of a row depends on that row's inputs and absolute position and on
 * nothing else: not on the rows beside it, the number of threads, or the route (few rows, many
 * rows). Every reduction has one fixed order: k ascending inside blocks of FL_KC, blocks ascending,
 * added in order; attention over keys in row order in blocks of FL_KV_ROWS aligned to the row
 * index.
 *
 * `fl_kernels` is a const table of functions compiled per instruction-set level;
 * fl_kernels_select() picks the best that the machine has (environment variable
 * FLOTILLA_ISA=v2|v3|v4|neon|ref lowers it, for tests). Nothing here allocates; scratch is passed
 * in. All buffers are FL_ALIGN-aligned unless said otherwise.
 */
#ifndef FL_KERNELS_KERNELS_H
#define FL_KERNELS_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "formats/dtype.h"
#include "kernels/team.h"

enum {
  FL_KC = 256,    /* k-block of every matrix product; part of the numerics, seldom changed */
  FL_KV_ROWS = 32 /* key rows of an attention block; likewise */
};

typedef struct fl_kernels fl_kernels;

const fl_kernels *fl_kernels_select(void);
const char *fl_kernels_name(const fl_kernels *k); /* "v3+blis:zen3 6x16" or so */
const char *fl_kernels_isa(const fl_kernels *k);  /* "v3" */

#endif
