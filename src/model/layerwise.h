/* layerwise.h - spans run through the model one layer at a time, the caller holding what goes from
 * layer to layer. For those who make the rows that stand before a span from what the span asks for:
 * matching (cartridge/match.h).
 *
 * The pass is one that does not record, made with max_prefix for the longest prefix. Spans have no
 * sequence: they stand behind parts, and `position` says where. A layer's rows may be run in any
 * number of calls; nothing is kept between two of them. Every call places the spans anew, so that
 * the pass is free for others in between. Only layers up to the last one with K/V rows of its own
 * (fl_last_kv_layer) can be run so: those behind it read rows that nobody keeps.
 */
#ifndef FL_MODEL_LAYERWISE_H
#define FL_MODEL_LAYERWISE_H

#include "model/pass.h"

/* x [rows, d_model] = the input of the first layer. Errors as of fl_pass_forward. */
int fl_layerwise_embed(fl_pass *p, const fl_span *spans, size_t n_spans, float *x, fl_err *err);

/* What the rows' queries are at a layer, x being its input. The spans' parts are left out.
 *   q    [rows, n_heads * head_dim]  after norm and rotary, as attention sees them
 *   own  [rows, n_heads * head_dim]  attention over the span's own rows alone
 *   mass [rows, n_heads]             the logarithm of its sum of exponentials */
typedef struct fl_layer_queries {
  float *q, *own, *mass;
} fl_layer_queries;
int fl_layerwise_queries(fl_pass *p, const fl_span *spans, size_t n_spans, size_t layer,
                         const float *x, const fl_layer_queries *out, fl_err *err);

/* x [rows, d_model]: a layer's input becomes its output, attention being over the spans' parts and
 * their own rows. */
int fl_layerwise_run(fl_pass *p, const fl_span *spans, size_t n_spans, size_t layer, float *x,
                     fl_err *err);

#endif
