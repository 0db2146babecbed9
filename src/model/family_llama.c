/* family_llama.c - Llama and SmolLM2: rotary pairs are neighbours (2i, 2i + 1), as the file's q and
 * k rows are permuted for it. */
#include "model/family.h"

static int read_llama(fl_hparams *hp, const fl_gguf *g, fl_err *err) {
  uint64_t n_experts = 0;
  fl_meta_u64(g, hp, "expert_count", &n_experts);
  if (n_experts != 0)
    return fl_fail(err, FL_EINPUT, "%s: llama with experts is not supported", fl_gguf_path(g));
  hp->rope_interleaved = true;
  return FL_OK;
}

const fl_family fl_family_llama = { .arch = "llama", .read = read_llama };
