/* weights_moe.c - weights that only some families have: experts, per-layer embeddings, scales. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/loader.h"

/* The matrix of one expert inside a fused tensor [n_experts, n_out, n_in], as a tensor of its
 * own. */
static int slice_expert(const fl_weight_loader *l, const fl_tensor_info *t, size_t expert,
                        size_t n_out, size_t n_in, fl_tensor_info *out) {
  const fl_dtype_traits *d = fl_dtype_get(t->ggml_type);
  size_t row;
  if (d == NULL)
    return fl_fail(l->err, FL_EINPUT, "%s: tensor %.*s has the type %s, which is not supported",
                   fl_gguf_path(l->g), (int)t->name.len, t->name.data,
                   fl_dtype_any_name(t->ggml_type));
  if (t->dim[0] != n_in || t->dim[1] != n_out || t->dim[2] != l->hp->n_experts || t->dim[3] != 1 ||
      !fl_dtype_row_bytes(d, n_in, &row))
    return fl_fail(l->err, FL_EINPUT, "%s: tensor %.*s is no [%zu, %zu, %zu]", fl_gguf_path(l->g),
                   (int)t->name.len, t->name.data, l->hp->n_experts, n_out, n_in);
  *out = *t;
  out->dim[2] = 1;
  out->n_bytes = n_out * row;
  out->data = (const char *)t->data + expert * out->n_bytes;
  out->file_offset = t->file_offset + expert * out->n_bytes;
  return FL_OK;
}

static int load_expert(const fl_weight_loader *l, fl_moe_weights *m, int layer, size_t e) {
  size_t d = l->hp->d_model, ff = l->hp->n_ff_expert;
  const fl_tensor_info *fused = fl_load_find(l, "ffn_gate_up_exps.weight", layer);
  const fl_tensor_info *gate = fl_load_find(l, "ffn_gate_exps.weight", layer);
  const fl_tensor_info *up = fl_load_find(l, "ffn_up_exps.weight", layer);
  const fl_tensor_info *down = fl_load_find(l, "ffn_down_exps.weight", layer);
  fl_tensor_info t[2];
  const fl_tensor_info *p[2] = { &t[0], &t[1] };
  size_t one = 2 * ff, two[2] = { ff, ff };
  int rc;
  if ((fused == NULL && (gate == NULL || up == NULL)) || down == NULL)
    return fl_fail(l->err, FL_EINPUT, "%s: the experts of layer %d are missing", fl_gguf_path(l->g),
                   layer);
  if (fused != NULL) {
    if ((rc = slice_expert(l, fused, e, one, d, &t[0])) < 0) return rc;
    if ((rc = fl_load_expert(l, &m->gate_up[e], p, &one, 1, d)) < 0) return rc;
  } else {
    if ((rc = slice_expert(l, gate, e, ff, d, &t[0])) < 0) return rc;
    if ((rc = slice_expert(l, up, e, ff, d, &t[1])) < 0) return rc;
    if ((rc = fl_load_expert(l, &m->gate_up[e], p, two, 2, d)) < 0) return rc;
  }
  if ((rc = slice_expert(l, down, e, d, ff, &t[0])) < 0) return rc;
  return fl_load_expert(l, &m->down[e], p, &d, 1, ff);
}

static int load_moe(const fl_weight_loader *l, fl_layer_weights *w, int i) {
  static const char *const router[] = { "ffn_gate_inp.weight" };
  size_t d = l->hp->d_model, n = l->hp->n_experts;
  fl_moe_weights *m = w->moe = fl_calloc(1, sizeof *m);
  int rc;
  if (m == NULL) return fl_fail(l->err, FL_ENOMEM, "out of memory");
  m->gate_up = fl_calloc(n, sizeof *m->gate_up);
  m->down = fl_calloc(n, sizeof *m->down);
  if (m->gate_up == NULL || m->down == NULL) return fl_fail(l->err, FL_ENOMEM, "out of memory");
  if ((rc = fl_load_proj(l, &m->router, router, i, &n, 1, d)) < 0) return rc;
  if ((rc = fl_load_vector(l, &m->router_scale, "ffn_gate_inp.scale", i, d, true)) < 0 ||
      (rc = fl_load_vector(l, &m->expert_scale, "ffn_down_exps.scale", i, n, true)) < 0 ||
      (rc = fl_load_vector(l, &m->pre_norm, "pre_ffw_norm_2.weight", i, d, true)) < 0 ||
      (rc = fl_load_vector(l, &m->post_norm, "post_ffw_norm_2.weight", i, d, true)) < 0 ||
      (rc = fl_load_vector(l, &m->dense_post_norm, "post_ffw_norm_1.weight", i, d, true)) < 0)
    return rc;
  if (l->hp->layer[i].n_ff != 0 &&
      (m->router_scale == NULL || m->pre_norm == NULL || m->post_norm == NULL ||
       m->dense_post_norm == NULL || w->post_ffn_norm == NULL))
    return fl_fail(l->err, FL_EINPUT,
                   "%s: layer %d has experts beside a dense part but lacks a norm "
                   "of theirs",
                   fl_gguf_path(l->g), i);
  /* The router's input scale comes with 1/sqrt(d): folded in once. */
  for (size_t j = 0; m->router_scale != NULL && j < d; j++) m->router_scale[j] /= sqrtf((float)d);
  for (size_t e = 0; e < n; e++)
    if ((rc = load_expert(l, m, i, e)) < 0) return rc;
  return FL_OK;
}

static int load_ple(const fl_weight_loader *l, fl_layer_weights *w, int i) {
  static const char *const gate[] = { "inp_gate.weight" };
  static const char *const out[] = { "proj.weight" };
  size_t d = l->hp->d_model, n = l->hp->n_embd_per_layer;
  int rc;
  w->ple = fl_calloc(1, sizeof *w->ple);
  if (w->ple == NULL) return fl_fail(l->err, FL_ENOMEM, "out of memory");
  if ((rc = fl_load_proj(l, &w->ple->gate, gate, i, &n, 1, d)) < 0) return rc;
  if ((rc = fl_load_proj(l, &w->ple->out, out, i, &d, 1, n)) < 0) return rc;
  return fl_load_vector(l, &w->ple->post_norm, "post_norm.weight", i, d, false);
}

int fl_weights_load_extras(const fl_weight_loader *l, fl_layer_weights *w, int i) {
  float *scale = NULL;
  int rc = fl_load_vector(l, &scale, "layer_output_scale.weight", i, 1, true);
  w->out_scale = scale != NULL ? *scale : 1;
  fl_free(scale);
  if (rc < 0) return rc;
  if (l->hp->n_experts != 0 && (rc = load_moe(l, w, i)) < 0) return rc;
  if (l->hp->n_embd_per_layer != 0) return load_ple(l, w, i);
  return FL_OK;
}

int fl_weights_load_ple_input(const fl_weight_loader *l) {
  static const char *const proj[] = { "per_layer_model_proj.weight" };
  size_t width = l->hp->n_layers * l->hp->n_embd_per_layer;
  const fl_tensor_info *t;
  int rc;
  if (width == 0) return FL_OK;
  t = fl_load_find(l, "per_layer_token_embd.weight", -1);
  if (t == NULL || fl_dtype_get(t->ggml_type) == NULL || t->dim[0] != width ||
      t->dim[1] != l->hp->n_vocab || t->dim[2] != 1 ||
      l->hp->n_embd_per_layer % fl_dtype_get(t->ggml_type)->block != 0)
    return fl_fail(l->err, FL_EINPUT,
                   "%s: per_layer_token_embd.weight is missing or no [%zu, %zu] of "
                   "a supported type",
                   fl_gguf_path(l->g), l->hp->n_vocab, width);
  l->w->ple_embd = t;
  if ((rc = fl_load_proj(l, &l->w->ple_proj, proj, -1, &width, 1, l->hp->d_model)) < 0) return rc;
  return fl_load_vector(l, &l->w->ple_norm, "per_layer_proj_norm.weight", -1,
                        l->hp->n_embd_per_layer, false);
}

void fl_weights_release_extras(fl_layer_weights *w, size_t n_experts) {
  fl_moe_weights *m = w->moe;
  if (m != NULL) {
    for (size_t e = 0; e < n_experts; e++) {
      if (m->gate_up != NULL) fl_linear_release(&m->gate_up[e]);
      if (m->down != NULL) fl_linear_release(&m->down[e]);
    }
    fl_linear_release(&m->router);
    fl_free(m->gate_up);
    fl_free(m->down);
    fl_free(m->router_scale);
    fl_free(m->expert_scale);
    fl_free(m->pre_norm);
    fl_free(m->post_norm);
    fl_free(m->dense_post_norm);
    fl_free(m);
  }
  if (w->ple != NULL) {
    fl_linear_release(&w->ple->gate);
    fl_linear_release(&w->ple->out);
    fl_free(w->ple->post_norm);
    fl_free(w->ple);
  }
}
