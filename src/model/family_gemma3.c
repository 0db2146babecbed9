/* family_gemma3.c - Gemma 3: five sliding layers, then one that sees all; a rotary base of its own
 * for the sliding ones; norms before and after each half; tanh GELU; scaled embedding. */
#include "model/family.h"

#include <math.h>

enum { PATTERN = 6, LAYERS_27B = 62 };

int fl_read_gemma3(fl_hparams *hp, const fl_gguf *g, fl_err *err) {
  uint64_t window = 0;
  double base = 1e6, base_local = 1e4;
  size_t dim = hp->layer[0].head_dim;
  int rc;
  fl_meta_u64(g, hp, "attention.sliding_window", &window);
  fl_meta_f64(g, hp, "rope.freq_base", &base);
  fl_meta_f64(g, hp, "rope.freq_base_swa", &base_local);
  if (window < 1 || !(base > 1) || !(base_local > 1))
    return fl_fail(err, FL_EINPUT,
                   "%s: a sliding window of %llu rows or rotary base %g makes no sense",
                   fl_gguf_path(g), (unsigned long long)window, base);
  for (size_t i = 0; i < hp->n_layers; i++) {
    bool full = i % PATTERN == PATTERN - 1;
    hp->layer[i].window = full ? 0 : (size_t)window;
    hp->layer[i].rope_set = full ? 0 : 1;
  }
  hp->act = FL_ACT_GELU_TANH;
  hp->embed_scale = sqrtf((float)hp->d_model);
  /* The 27B model scales by the width a head would have, not the one it has. */
  if (hp->n_layers == LAYERS_27B)
    hp->attn_scale = 1.0f / sqrtf((float)(hp->d_model / hp->layer[0].n_heads));
  if ((rc = fl_rope_init(&hp->rope[0], g, hp, base, dim, true, err)) < 0) return rc;
  return fl_rope_init(&hp->rope[1], g, hp, base_local, dim, false, err);
}
