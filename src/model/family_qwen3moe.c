/* family_qwen3moe.c - Qwen3 with experts: every block's feed-forward is a router and its experts;
 * the weights of the chosen ones are renormalised. */
#include "model/family.h"

static int read_qwen3moe(fl_hparams *hp, const fl_gguf *g, fl_err *err) {
  for (size_t i = 0; i < hp->n_layers; i++) hp->layer[i].n_ff = 0;
  return fl_experts_read(hp, g, err);
}

const fl_family fl_family_qwen3moe = { .arch = "qwen3moe", .read = read_qwen3moe };
