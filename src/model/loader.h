/* loader.h - how the files that load weights (weights.c, weights_moe.c) work together. */
#ifndef FL_MODEL_LOADER_H
#define FL_MODEL_LOADER_H

#include <stdbool.h>

#include "model/weights.h"

typedef struct fl_weight_loader {
  const fl_gguf *g;
  const fl_hparams *hp;
  const fl_kernels *kern;
  bool pack_experts;
  fl_team *team;
  fl_weights *w;
  fl_err *err;
} fl_weight_loader;

/* The tensor "blk.<layer>.<kind>", or "<kind>" for layer -1; NULL when absent. */
const fl_tensor_info *fl_load_find(const fl_weight_loader *l, const char *kind, int layer);
/* A vector of n values, widened; *out stays NULL when it is absent and `optional`. */
int fl_load_vector(const fl_weight_loader *l, float **out, const char *kind, int layer, size_t n,
                   bool optional);
/* Matrices [n_out[i], n_in] over one input into p, named or given; parts of one type are packed as
 * one. */
int fl_load_proj(const fl_weight_loader *l, fl_linear *p, const char *const *kind, int layer,
                 const size_t *n_out, size_t n_parts, size_t n_in);
int fl_load_pack(const fl_weight_loader *l, fl_linear *p, const fl_tensor_info *const *t,
                 const size_t *n_out, size_t n_parts, size_t n_in);
/* The same for an expert's matrices: packed, or used in the mapping. */
int fl_load_expert(const fl_weight_loader *l, fl_linear *p, const fl_tensor_info *const *t,
                   const size_t *n_out, size_t n_parts, size_t n_in);
void fl_linear_release(fl_linear *p);

/* Experts, per-layer embedding, output scale of a layer; the input side of per-layer embeddings. */
int fl_weights_load_extras(const fl_weight_loader *l, fl_layer_weights *w, int layer);
int fl_weights_load_ple_input(const fl_weight_loader *l);
void fl_weights_release_extras(fl_layer_weights *w, size_t n_experts);

#endif
