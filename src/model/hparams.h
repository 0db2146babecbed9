/* hparams.h - what a model is made of, in numbers, read from the GGUF's metadata by its family. */
#ifndef FL_MODEL_HPARAMS_H
#define FL_MODEL_HPARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "formats/gguf.h"
#include "kernels/pointwise.h"

enum { FL_MAX_LAYERS = 512, FL_MAX_EXPERTS_USED = 64 };

/* Sizes and switches of one layer; they may differ by layer. */
typedef struct fl_layer_hparams {
  size_t n_heads, kv_heads, head_dim;
  size_t n_ff;       /* dense feed-forward width; 0: none */
  size_t window;     /* sliding window in rows; 0: sees all */
  uint32_t rope_set; /* which of hparams.rope applies */
  bool v_from_k;     /* no V projection: V is the raw K projection */
  int32_t kv_from;   /* layer whose K/V rows are used; its own index unless shared */
} fl_layer_hparams;

typedef struct fl_rope_hparams {
  double *inv_freq; /* [half], scaling and proportional factors applied */
  size_t half;      /* rotated pairs */
  double mscale;    /* multiplies cos and sin (yarn); 1 otherwise */
} fl_rope_hparams;

typedef struct fl_hparams {
  char arch[32];
  char name[128]; /* general.name */
  size_t n_layers, d_model, n_vocab, n_ctx;
  float rms_eps;
  float attn_scale;                  /* 0: 1 / sqrt(head_dim) of the layer */
  float attn_softcap, logit_softcap; /* 0: none */
  float embed_scale;                 /* multiplies the embedding; 1: none */
  bool rope_interleaved;
  bool v_norm; /* weightless RMSNorm on each head's V */
  fl_act act;
  size_t n_experts, n_experts_used, n_ff_expert;
  bool expert_renorm;      /* top-k router weights renormalised */
  size_t n_embd_per_layer; /* gemma4 per-layer embedding width; 0: none */
  fl_rope_hparams rope[2];
  fl_layer_hparams layer[FL_MAX_LAYERS];
} fl_hparams;

/* From the metadata alone; keeps nothing of g. FL_EINPUT, naming the file and the key, for an
 * unknown architecture and for what is missing, out of range or not finite. Without FL_OK *hp needs
 * no release. */
int fl_hparams_read(fl_hparams *hp, const fl_gguf *g, fl_err *err);
void fl_hparams_release(fl_hparams *hp);
/* The last layer with K/V rows of its own: behind its projections a row is computed for the sake of
 * its own output and of no other row. */
size_t fl_last_kv_layer(const fl_hparams *hp);

#endif
