/* family_qwen3.c - Qwen3 dense: RMSNorm on each head's q and k, half-split rotary, SwiGLU. All of
 * it is the common block; q/k norms are used because the file has them. */
#include "model/family.h"

static int read_nothing(fl_hparams *hp, const fl_gguf *g, fl_err *err) {
  (void)hp, (void)g, (void)err;
  return FL_OK;
}

const fl_family fl_family_qwen3 = { .arch = "qwen3", .read = read_nothing };
