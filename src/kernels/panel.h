/* panel.h - the layout of packed weights. Private to this folder.
 *
 * Panel p holds outputs [p * nr, (p + 1) * nr) of W, `panel_bytes` from panel to panel, lanes past
 * n_out zero. Within a panel, by type (k: input, lane: output - p * nr):
 *   F32, F16, BF16   [n_in][nr] elements
 *   Q8_0             per 32 inputs: scales [nr] f16, then quants [32][nr] int8
 *   others ("raw")   per FL_KC inputs: [nr] pieces of a file row, as they were; the last one shorter
 * The first kinds are read directly by the few-row route; raw ones are widened first.
 */
#ifndef FL_KERNELS_PANEL_H
#define FL_KERNELS_PANEL_H

#include "kernels/matmul.h"
#include "kernels/table.h"

enum { FL_Q8_BLOCK = 32 };

struct fl_panels {
  const fl_kernels *kern;
  const fl_dtype_traits *traits;
  size_t n_out, n_in, nr, n_panels, panel_bytes;
  bool raw;
  uint8_t *data;
};

static inline const uint8_t *fl_panel_base(const fl_panels *w, size_t panel) {
  return w->data + panel * w->panel_bytes;
}

/* One value of a panel that is not raw, in plain C. */
float fl_panel_value(const fl_panels *w, size_t panel, size_t k, size_t lane);

#endif
