/* mapped.c - matrices that are used where they lie, in the file's own layout.
 *
 * There is no packed copy: what the products read are blocks dequantised from the rows into the
 * same small buffers that packed panels are dequantised into. From there on everything is the same,
 * so the bits are too. It costs the gathering of nr rows and their transposition for every block;
 * experts, of which a pass touches few, gain by it the memory of a second copy.
 */
#include "base/mem.h"
#include "kernels/panel.h"

int fl_panels_map(fl_panels **out, const fl_kernels *kern, fl_dtype type, const void *const *data,
                  const size_t *n_out, size_t n_parts, size_t n_in, fl_err *err) {
  const fl_dtype_traits *traits = fl_dtype_get(type);
  const fl_panel_format *format = fl_panel_format_of(type);
  size_t row_bytes, total = n_out[0], padded;
  if (!traits || !format || n_in == 0 || !fl_dtype_row_bytes(traits, n_in, &row_bytes))
    return fl_fail(err, FL_EINPUT, "a matrix of type %s cannot have rows of %zu values",
                   fl_dtype_any_name(type), n_in);
  const size_t nr = kern->ukr.nr;
  bool fits = n_parts >= 1 && n_parts <= FL_MAPPED_PARTS && n_out[0] > 0;
  if (fits && n_parts > 1) fits = fl_add_size(total, n_out[1], &total);
  if (!fits || !fl_add_size(total, nr - 1, &padded))
    return fl_fail(err, FL_EINPUT, "a matrix of %zu rows of %zu values is empty or too large",
                   total, n_in);
  fl_panels *w = fl_calloc(1, sizeof *w);
  if (!w) return fl_fail(err, FL_ENOMEM, "out of memory");
  *w = (fl_panels){ .kern = kern,
                    .format = format,
                    .n_out = total,
                    .n_in = n_in,
                    .nr = nr,
                    .n_panels = padded / nr,
                    .row_bytes = row_bytes };
  for (size_t i = 0; i < n_parts; i++) w->rows[i] = data[i];
  w->n_first = n_out[0];
  *out = w;
  return FL_OK;
}

float fl_mapped_value(const fl_panels *w, size_t o, size_t k) {
  const fl_dtype_traits *t = fl_dtype_get(w->format->type);
  float block[FL_BLOCK_MAX];
  if (o >= w->n_out) return 0;
  t->dequantise(block, fl_mapped_row(w, o) + k / t->block * t->bytes, t->block);
  return block[k % t->block];
}
