/* shape.h - a model as far as cartridges depend on it: its file and its hyperparameters, without a
 * weight being read. */
#ifndef FL_CONVERT_SHAPE_H
#define FL_CONVERT_SHAPE_H

#include "cartridge/cartridge.h"
#include "formats/gguf.h"
#include "model/hparams.h"

typedef struct model_shape { /* zeroed: nothing to close */
  fl_gguf *gguf;
  fl_hparams *hp;
} model_shape;

int model_shape_open(model_shape *out, const char *path, fl_err *err);
void model_shape_close(model_shape *s);

/* The cartridge in file `path`, for layouts that know no positions: FL_EINPUT where its rows do not
 * begin at 0. */
int model_shape_cartridge(fl_cartridge *out, const model_shape *s, const char *path, fl_err *err);

#endif
