/* match_head.h - the rows of one key/value head by attention matching.
 *
 * Given the head's T rows over a document and queries that will be asked behind it, p rows are
 * constructed, attention over which answers the queries as the T rows do. After "Fast KV Compaction
 * via Attention Matching" (arXiv 2602.16284): keys are chosen, values fitted. With, for a query q,
 *     s_j = q . k_j,  a_j = exp(s_j) / sum_i exp(s_i),  O = sum a_j v_j      over the T rows
 *     M = sum exp(s_j) over the T rows, M' over the chosen ones, m over the query's own rows, which
 *     stand behind the document (o: attention's output over these alone)
 * 1. Chosen are the p rows of the largest sum over the queries of (a_j M / (M + m))^2: the weight
 *    that a query gives to row j in the end. Ties go to the earlier row.
 * 2. Values: least squares, over the queries, of what attention puts out in the end,
 *     (sum_j exp(s_j) v'_j + m o) / (M' + m)  =  (M O + m o) / (M + m),
 *    with a ridge towards the rows' own values. What the chosen rows lack in mass is made up for by
 *    their values, where that is possible. Sums of products of f32 in blocks of queries, the blocks
 *    added in f64, the system solved in f64.
 */
#ifndef FL_CARTRIDGE_MATCH_HEAD_H
#define FL_CARTRIDGE_MATCH_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/kernels.h"

typedef struct fl_match_head {
  size_t head_dim;
  size_t n_rows;         /* T */
  const float *k, *v;    /* [n_rows, head_dim] */
  size_t n_queries;      /* >= 1 */
  const float *q;        /* [n_queries, head_dim], scaled */
  const float *own;      /* [n_queries, head_dim] o */
  const float *own_mass; /* [n_queries] log m; -inf: no rows of its own */
  /* [n_queries] the first row that a query sees, of all and of the chosen ones. NULL: the first. */
  const size_t *from, *from_chosen;
  float softcap;   /* of the scores; 0: none */
  size_t p;        /* 1 <= p <= n_rows */
  bool keep_first; /* row 0 is chosen */
  double ridge;    /* share of the mean diagonal */
} fl_match_head;

/* row [p] = the chosen rows, ascending; k, v [p, head_dim] their keys and new values. p == n_rows:
 * the rows as they are. Errors: memory. The bits do not depend on the team's size. */
int fl_match_head_fit(const fl_match_head *h, const fl_kernels *kern, fl_team *team, uint32_t *row,
                      float *k, float *v, fl_err *err);

#endif
