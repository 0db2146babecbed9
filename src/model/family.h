/* family.h - what distinguishes one model family from another, as data and a few functions.
 *
 * A family is found by general.architecture. Its `read` fills what the common reader could not
 * know; the flags say which optional weights a block has. The forward and the backward are common.
 */
#ifndef FL_MODEL_FAMILY_H
#define FL_MODEL_FAMILY_H

#include <stdbool.h>

#include "base/err.h"
#include "formats/gguf.h"
#include "model/hparams.h"

typedef struct fl_family {
  const char *arch;
  /* Called after the common keys were read and every layer has the defaults; NULL: that was all. */
  int (*read)(fl_hparams *hp, const fl_gguf *g, fl_err *err);
} fl_family;

const fl_family *fl_family_find(const char *arch); /* NULL: not supported */
/* "llama, qwen2, ..." for error sentences, cut to size. */
void fl_family_names(char *out, size_t size);

int fl_read_gemma3(fl_hparams *hp, const fl_gguf *g, fl_err *err);
int fl_read_gemma4(fl_hparams *hp, const fl_gguf *g, fl_err *err);

/* Metadata under the architecture's prefix: "<arch>.<key>". */
bool fl_meta_u64(const fl_gguf *g, const fl_hparams *hp, const char *key, uint64_t *out);
bool fl_meta_f64(const fl_gguf *g, const fl_hparams *hp, const char *key, double *out);
/* A value per layer: an array of n_layers, or one number for all. False when the key is absent or
 * has another length. */
bool fl_meta_per_layer(const fl_gguf *g, const fl_hparams *hp, const char *key, double *out);
/* inv_freq[i] = base^(-2i/dim), i < dim/2; with `scaled` then by the file's rope metadata (linear,
 * yarn) and its factors tensor rope_freqs.weight (llama3, gemma4's proportional rotary). */
int fl_rope_init(fl_rope_hparams *r, const fl_gguf *g, const fl_hparams *hp, double base,
                 size_t dim, bool scaled, fl_err *err);
/* expert_count, expert_used_count, expert_feed_forward_length, checked. */
int fl_experts_read(fl_hparams *hp, const fl_gguf *g, fl_err *err);

#endif
