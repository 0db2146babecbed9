/* stages.h - stages of a forward, for who runs them one by one (layerwise.c). Private to this
 * folder. */
#ifndef FL_MODEL_STAGES_H
#define FL_MODEL_STAGES_H

#include "model/internal.h"

/* pass.c: checks and places the spans; p->x becomes the input of the first layer. */
int fl_pass_begin(fl_pass *p, const fl_span *spans, size_t n_spans, fl_err *err);
/* block_attention.c, not recording: from a layer's input to its attention. p->qkv holds q as
 * attention saw it, p->att what it put out, stat [rows, n_heads] m + log(l). */
void fl_attention_queries(fl_pass *p, size_t layer, float *stat);

#endif
