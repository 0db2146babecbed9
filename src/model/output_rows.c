/* output_rows.c - rows whose outputs nobody reads.
 *
 * A silent row matters by its keys and values alone. After the last layer that has K/V rows of its
 * own (the cut) nothing of it is needed: from that layer's attention on, the live rows stand
 * together at the front of every buffer, in their order, and the rest of the model runs over them.
 * In the backward a silent row's gradient is zero down to the cut, where it is put in.
 *
 *   layer      rows in    keys, values    queries and rows out
 *   < cut      all        all             all
 *   = cut      all        all             live
 *   > cut      live       none            live
 */
#include <string.h>

#include "model/internal.h"

void fl_output_rows_place(fl_pass *p) {
  size_t row = 0, n = 0;
  for (size_t s = 0; s < p->n_spans; s++)
    for (size_t i = 0; i < p->span[s].n_rows; i++, row++) {
      const bool silent = i < p->span[s].n_no_output;
      p->place[row] = silent ? FL_NO_OUTPUT : (uint32_t)n;
      if (!silent) p->live[n++] = (uint32_t)row;
    }
  p->n_live = n;
}

void fl_output_rows_queries(fl_pass *p, size_t layer) {
  size_t at = 0;
  for (size_t s = 0; s < p->n_spans; s++) {
    fl_attn_span *a = &p->attn_span[s];
    a->q_first = at;
    a->n_q = p->span[s].n_rows - (layer >= p->cut ? p->span[s].n_no_output : 0);
    at += a->n_q;
  }
}

void fl_output_rows_gather(const fl_pass *p, float *x) {
  const size_t d = p->model->hp.d_model;
  for (size_t i = 0; i < p->n_live; i++)
    if (p->live[i] != i) memcpy(x + i * d, x + p->live[i] * d, d * sizeof *x);
}

void fl_output_rows_spread(const fl_pass *p, float *x, size_t ld, size_t cols) {
  for (size_t row = p->n_rows; row-- > 0;) {
    if (p->place[row] == FL_NO_OUTPUT) memset(x + row * ld, 0, cols * sizeof *x);
    else if (p->place[row] != row) memcpy(x + row * ld, x + p->place[row] * ld, cols * sizeof *x);
  }
}
