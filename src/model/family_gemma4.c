/* family_gemma4.c - Gemma 4, dense and with experts: head sizes by layer kind, trailing layers that
 * use an earlier layer's K/V, V without a projection (raw K) in some, a weightless norm on V,
 * attention scale 1, proportional rotary factors for the full layers, per-layer embeddings, an
 * output scale by layer, a soft cap on the logits. */
#include "model/family.h"

#include <math.h>
#include <stdio.h>

static int layer_kinds(fl_hparams *hp, const fl_gguf *g, fl_err *err) {
  double sliding[FL_MAX_LAYERS];
  uint64_t window = 0, hd_full = 0, hd_swa = 0;
  if (!fl_meta_per_layer(g, hp, "attention.sliding_window_pattern", sliding) ||
      !fl_meta_u64(g, hp, "attention.sliding_window", &window) || window < 1 ||
      !fl_meta_u64(g, hp, "attention.key_length", &hd_full) ||
      !fl_meta_u64(g, hp, "attention.key_length_swa", &hd_swa) || hd_full > 512 || hd_swa > 512)
    return fl_fail(err, FL_EINPUT,
                   "%s: the metadata lack the sliding window's pattern, size or head "
                   "sizes",
                   fl_gguf_path(g));
  for (size_t i = 0; i < hp->n_layers; i++) {
    fl_layer_hparams *l = &hp->layer[i];
    bool swa = sliding[i] != 0;
    l->window = swa ? (size_t)window : 0;
    l->rope_set = swa ? 1 : 0;
    l->head_dim = (size_t)(swa ? hd_swa : hd_full);
  }
  return FL_OK;
}

/* The last `shared` layers use the rows of the last layer of their kind before them. */
static int share_kv(fl_hparams *hp, const fl_gguf *g, fl_err *err) {
  uint64_t shared = 0;
  size_t first;
  int32_t owner[2] = { -1, -1 };
  fl_meta_u64(g, hp, "attention.shared_kv_layers", &shared);
  if (shared >= hp->n_layers)
    return fl_fail(err, FL_EINPUT, "%s: %llu of %zu layers share K/V; one at least must own them",
                   fl_gguf_path(g), (unsigned long long)shared, hp->n_layers);
  first = hp->n_layers - (size_t)shared;
  for (size_t i = 0; i < hp->n_layers; i++) {
    fl_layer_hparams *l = &hp->layer[i];
    if (i < first) {
      owner[l->rope_set] = (int32_t)i;
      continue;
    }
    if (owner[l->rope_set] < 0 || hp->layer[owner[l->rope_set]].kv_heads != l->kv_heads)
      return fl_fail(err, FL_EINPUT, "%s: layer %zu shares K/V with no layer of its kind",
                     fl_gguf_path(g), i);
    l->kv_from = owner[l->rope_set];
  }
  return FL_OK;
}

static void find_missing_v(fl_hparams *hp, const fl_gguf *g) {
  char name[64];
  for (size_t i = 0; i < hp->n_layers; i++) {
    snprintf(name, sizeof name, "blk.%zu.attn_v.weight", i);
    hp->layer[i].v_from_k = fl_gguf_tensor(g, name) == NULL;
  }
}

int fl_read_gemma4(fl_hparams *hp, const fl_gguf *g, fl_err *err) {
  uint64_t ple = 0, experts = 0, rot = 0, rot_swa = 0;
  double cap = 0, base = 1e6, base_swa = 1e4;
  int rc;
  if ((rc = layer_kinds(hp, g, err)) < 0 || (rc = share_kv(hp, g, err)) < 0) return rc;
  find_missing_v(hp, g);
  fl_meta_u64(g, hp, "embedding_length_per_layer_input", &ple);
  fl_meta_u64(g, hp, "expert_count", &experts);
  fl_meta_f64(g, hp, "final_logit_softcapping", &cap);
  fl_meta_f64(g, hp, "rope.freq_base", &base);
  fl_meta_f64(g, hp, "rope.freq_base_swa", &base_swa);
  fl_meta_u64(g, hp, "rope.dimension_count", &rot);
  fl_meta_u64(g, hp, "rope.dimension_count_swa", &rot_swa);
  if (ple > 65536 || !(cap >= 0) || !(base > 1) || !(base_swa > 1) || rot > 512 || rot_swa > 512)
    return fl_fail(err, FL_EINPUT,
                   "%s: per-layer width %llu, soft cap %g, rotary bases %g and %g or "
                   "sizes make no sense",
                   fl_gguf_path(g), (unsigned long long)ple, cap, base, base_swa);
  hp->n_embd_per_layer = (size_t)ple;
  hp->logit_softcap = (float)cap;
  hp->act = FL_ACT_GELU_TANH;
  hp->v_norm = true;
  hp->attn_scale = 1;
  hp->embed_scale = sqrtf((float)hp->d_model);
  if (experts != 0 && (rc = fl_experts_read(hp, g, err)) < 0) return rc;
  for (size_t i = 0; i < hp->n_layers; i++) {
    if (hp->layer[i].rope_set == 0 && rot == 0) rot = hp->layer[i].head_dim;
    if (hp->layer[i].rope_set == 1 && rot_swa == 0) rot_swa = hp->layer[i].head_dim;
  }
  if ((rc = fl_rope_init(&hp->rope[0], g, hp, base, (size_t)rot, true, err)) < 0) return rc;
  return fl_rope_init(&hp->rope[1], g, hp, base_swa, (size_t)rot_swa, false, err);
}
