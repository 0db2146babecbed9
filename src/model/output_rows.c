/* output_rows.c - rows whose outputs nobody reads.
 *
 * Of such a row only keys and values matter. After the last layer that has K/V rows of its own
 * nothing of it is needed: from that layer's attention on, the rows with an output stand together
 * at the front of every buffer, in their order, and the rest of the model runs over them alone. In
 * the backward the gradient of a row without output is zero down to that layer, where it is
 * inserted.
 *
 *   layer              rows in        keys, values    queries and rows out
 *   < last_kv_layer    all            all             all
 *   = last_kv_layer    all            all             with an output
 *   > last_kv_layer    with output    none            with an output
 */
#include <string.h>

#include "model/internal.h"

void fl_output_rows_place(fl_pass *p) {
  size_t row = 0, n = 0;
  for (size_t s = 0; s < p->n_spans; s++)
    for (size_t i = 0; i < p->span[s].n_rows; i++, row++) {
      const bool no_output = i < p->span[s].n_no_output;
      p->place[row] = no_output ? FL_NO_OUTPUT : (uint32_t)n;
      if (!no_output) p->output_row[n++] = (uint32_t)row;
    }
  p->n_output_rows = n;
}

void fl_output_rows_queries(fl_pass *p, size_t layer) {
  size_t at = 0;
  for (size_t s = 0; s < p->n_spans; s++) {
    fl_attn_span *a = &p->attn_span[s];
    a->q_first = at;
    a->n_q = p->span[s].n_rows - (layer >= p->last_kv_layer ? p->span[s].n_no_output : 0);
    at += a->n_q;
  }
}

void fl_output_rows_gather(const fl_pass *p, float *x) {
  const size_t d = p->model->hp.d_model;
  for (size_t i = 0; i < p->n_output_rows; i++)
    if (p->output_row[i] != i) memcpy(x + i * d, x + p->output_row[i] * d, d * sizeof *x);
}

void fl_output_rows_scatter(const fl_pass *p, float *x, size_t ld, size_t cols) {
  for (size_t row = p->n_rows; row-- > 0;) {
    if (p->place[row] == FL_NO_OUTPUT) memset(x + row * ld, 0, cols * sizeof *x);
    else if (p->place[row] != row) memcpy(x + row * ld, x + p->place[row] * ld, cols * sizeof *x);
  }
}
