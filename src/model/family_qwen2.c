/* family_qwen2.c - Qwen2: biases on q, k and v (used because the file has them). */
#include "model/family.h"

static int read_nothing(fl_hparams *hp, const fl_gguf *g, fl_err *err) {
  (void)hp, (void)g, (void)err;
  return FL_OK;
}

const fl_family fl_family_qwen2 = { .arch = "qwen2", .read = read_nothing };
