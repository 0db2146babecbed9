/* dist.h - several processes ("ranks") that run one training together.
 *
 * Every rank holds the same state and takes the same decisions by itself. What is spread over them
 * is the work on single conversations, and what is exchanged are its results, so that N ranks give
 * the bits of one. All calls here are collective: every rank makes the same ones in the same order.
 * The transport is a table of three functions: this layer knows no MPI (net/mpi.h), and tests use
 * threads. NULL stands for a process that is alone: nothing is exchanged.
 *
 * Errors. A rank that fails returns through its callers as ever; the program's last call is
 * fl_dist_agree(), which meets the others wherever they are and hands them the code and the
 * sentence. After that the ranks have diverged: further calls return the same without waiting for
 * anybody.
 */
#ifndef FL_TRAIN_DIST_H
#define FL_TRAIN_DIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "kernels/kernels.h"

/* FL_OK or FL_EFAIL; count is the number of ranks. Nobody's arguments overlap. */
typedef struct fl_dist_ops {
  /* all [count, n_bytes] = own [n_bytes] of every rank. */
  int (*gather)(void *ctx, void *all, const void *own, size_t n_bytes);
  /* The same with n_bytes[r] of rank r, one after the other. */
  int (*gather_each)(void *ctx, void *all, const void *own, const size_t *n_bytes);
  /* The root's block is cut into n_bytes[r] for rank r, one after the other: own = this rank's. */
  int (*scatter)(void *ctx, void *own, const void *block, const size_t *n_bytes, size_t root);
} fl_dist_ops;

typedef struct fl_dist fl_dist;

/* count >= 2. ops and ctx are borrowed. */
int fl_dist_new(fl_dist **out, size_t rank, size_t count, const fl_dist_ops *ops, void *ctx,
                fl_err *err);
void fl_dist_free(fl_dist *d);
size_t fl_dist_rank(const fl_dist *d);  /* NULL: 0 */
size_t fl_dist_count(const fl_dist *d); /* NULL: 1 */
/* Rank 0: the one that writes, logs and listens. */
bool fl_dist_leads(const fl_dist *d);

/* FL_OK when every rank brings FL_OK; otherwise the code of the lowest that does not, FL_EINTR only
 * when nothing worse is there, with its sentence. `what` (short) names the place: ranks that meet
 * at different ones have diverged, FL_EFAIL. */
int fl_dist_agree(fl_dist *d, const char *what, int rc, fl_err *err);
/* Agrees and gathers: all [count, n_bytes]. */
int fl_dist_gather(fl_dist *d, const char *what, int rc, void *all, const void *own, size_t n_bytes,
                   fl_err *err);
/* Agrees and gathers texts of any length: rank r's is all->data[end[r - 1] .. end[r]),
 * end [count]. */
int fl_dist_exchange(fl_dist *d, const char *what, int rc, const fl_buf *own, fl_buf *all,
                     size_t *end, fl_err *err);

/* sum [n] = block 0 + block 1 + ..., each added to the sum of those before it, on every rank. Block
 * i lies with rank owner[i] alone (elsewhere block[i] is not looked at), may be `sum` itself on its
 * owner, and there is at least one. scratch [FL_DIST_PIECE]. Every rank adds up a share of the
 * values and passes it on, so what a rank sends and receives does not grow with their number. */
enum { FL_DIST_PIECE = 1 << 21 };
int fl_dist_sum(fl_dist *d, const fl_kernels *k, float *sum, const float *const *block,
                const size_t *owner, size_t n_blocks, size_t n, float *scratch, fl_err *err);

#endif
