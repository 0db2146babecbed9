/* weights.c - finding, checking and packing the tensors of a file. */
#include "model/weights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/loader.h"

static void tensor_name(char name[128], const char *kind, int layer) {
  if (layer < 0) snprintf(name, 128, "%s", kind);
  else snprintf(name, 128, "blk.%d.%s", layer, kind);
}

const fl_tensor_info *fl_load_find(const fl_weight_loader *l, const char *kind, int layer) {
  char name[128];
  tensor_name(name, kind, layer);
  return fl_gguf_tensor(l->g, name);
}

static int name_of(const fl_tensor_info *t) { return (int)(t->name.len < 100 ? t->name.len : 100); }

/* The tensor must be a matrix [n_out, n_in] of a supported type. */
static int check_matrix(const fl_weight_loader *l, const fl_tensor_info *t, size_t n_out,
                        size_t n_in) {
  if (fl_dtype_get(t->ggml_type) == NULL)
    return fl_fail(l->err, FL_EINPUT,
                   "%s: tensor %.*s has the type %s, which is not supported; "
                   "convert the file to f16, q8_0 or another usual type",
                   fl_gguf_path(l->g), name_of(t), t->name.data, fl_dtype_any_name(t->ggml_type));
  if (t->dim[0] != n_in || t->dim[1] != n_out || t->dim[2] != 1 || t->dim[3] != 1)
    return fl_fail(l->err, FL_EINPUT, "%s: tensor %.*s is [%llu, %llu] where [%zu, %zu] is needed",
                   fl_gguf_path(l->g), name_of(t), t->name.data, (unsigned long long)t->dim[1],
                   (unsigned long long)t->dim[0], n_out, n_in);
  return FL_OK;
}

/* A vector of n values, widened; *out stays NULL when it is absent and `optional`. */
int fl_load_vector(const fl_weight_loader *l, float **out, const char *kind, int layer, size_t n,
                   bool optional) {
  const fl_tensor_info *t = fl_load_find(l, kind, layer);
  const fl_dtype_traits *d;
  char name[128];
  tensor_name(name, kind, layer);
  if (t == NULL) {
    if (optional) return FL_OK;
    return fl_fail(l->err, FL_EINPUT, "%s: the tensor %s is missing", fl_gguf_path(l->g), name);
  }
  d = fl_dtype_get(t->ggml_type);
  if (d == NULL || t->dim[0] != n || t->dim[1] != 1 || n % d->block != 0)
    return fl_fail(l->err, FL_EINPUT, "%s: the tensor %s must hold %zu values of a supported type",
                   fl_gguf_path(l->g), name, n);
  *out = fl_aligned_calloc(n, sizeof **out);
  if (*out == NULL) return fl_fail(l->err, FL_ENOMEM, "out of memory");
  d->dequantise(*out, t->data, n);
  for (size_t i = 0; i < n; i++)
    if (!isfinite((*out)[i]))
      return fl_fail(l->err, FL_EINPUT, "%s: the tensor %s holds a value that is not finite",
                     fl_gguf_path(l->g), name);
  return FL_OK;
}

/* Takes consecutive parts of equal type together. */
static int load_parts(const fl_weight_loader *l, fl_linear *p, const fl_tensor_info *const *t,
                      const size_t *n_out, size_t n_parts, size_t n_in, bool pack) {
  int rc;
  for (size_t i = 0; i < n_parts; i++)
    if ((rc = check_matrix(l, t[i], n_out[i], n_in)) < 0) return rc;
  for (size_t i = 0; i < n_parts;) {
    const void *data[3];
    size_t k = 0;
    p->col[p->n] = p->n_out;
    do {
      data[k] = t[i + k]->data;
      p->n_out += n_out[i + k];
      k++;
    } while (i + k < n_parts && t[i + k]->ggml_type == t[i]->ggml_type);
    const fl_dtype type = (fl_dtype)t[i]->ggml_type;
    fl_panels **w = &p->w[p->n];
    rc = pack ? fl_panels_pack(w, l->kern, l->team, type, data, n_out + i, k, n_in, l->err)
              : fl_panels_map(w, l->kern, type, data, n_out + i, k, n_in, l->err);
    if (rc < 0) return rc;
    l->w->bytes += fl_panels_bytes(p->w[p->n]);
    p->n++;
    i += k;
  }
  for (size_t i = 0; i < n_parts && pack; i++) fl_gguf_drop(l->g, t[i]);
  return FL_OK;
}

int fl_load_pack(const fl_weight_loader *l, fl_linear *p, const fl_tensor_info *const *t,
                 const size_t *n_out, size_t n_parts, size_t n_in) {
  return load_parts(l, p, t, n_out, n_parts, n_in, true);
}

int fl_load_expert(const fl_weight_loader *l, fl_linear *p, const fl_tensor_info *const *t,
                   const size_t *n_out, size_t n_parts, size_t n_in) {
  return load_parts(l, p, t, n_out, n_parts, n_in, l->pack_experts);
}

int fl_load_proj(const fl_weight_loader *l, fl_linear *p, const char *const *kind, int layer,
                 const size_t *n_out, size_t n_parts, size_t n_in) {
  const fl_tensor_info *t[3];
  for (size_t i = 0; i < n_parts; i++) {
    t[i] = fl_load_find(l, kind[i], layer);
    if (t[i] == NULL) {
      char name[128];
      tensor_name(name, kind[i], layer);
      return fl_fail(l->err, FL_EINPUT, "%s: the tensor %s is missing", fl_gguf_path(l->g), name);
    }
  }
  return fl_load_pack(l, p, t, n_out, n_parts, n_in);
}

static int load_qkv_bias(const fl_weight_loader *l, fl_layer_weights *w, int i,
                         const size_t n_out[3]) {
  static const char *const kind[] = { "attn_q.bias", "attn_k.bias", "attn_v.bias" };
  size_t at = 0;
  int rc;
  if (fl_load_find(l, kind[0], i) == NULL) return FL_OK;
  w->qkv_bias = fl_aligned_calloc(w->qkv.n_out, sizeof *w->qkv_bias);
  if (w->qkv_bias == NULL) return fl_fail(l->err, FL_ENOMEM, "out of memory");
  for (size_t j = 0; j < 3; j++) {
    float *part = NULL;
    if ((rc = fl_load_vector(l, &part, kind[j], i, n_out[j], false)) < 0) {
      fl_free(part);
      return rc;
    }
    memcpy(w->qkv_bias + at, part, n_out[j] * sizeof *part);
    fl_free(part);
    at += n_out[j];
  }
  return FL_OK;
}

static int load_attention(const fl_weight_loader *l, fl_layer_weights *w, int i) {
  static const char *const qkv[] = { "attn_q.weight", "attn_k.weight", "attn_v.weight" };
  static const char *const o[] = { "attn_output.weight" };
  const fl_layer_hparams *h = &l->hp->layer[i];
  size_t d = l->hp->d_model, nq = h->n_heads * h->head_dim, nkv = h->kv_heads * h->head_dim;
  size_t n_out[3] = { nq, nkv, nkv }, n_parts = h->kv_from != i ? 1 : h->v_from_k ? 2 : 3;
  int rc;
  if ((rc = fl_load_vector(l, &w->attn_norm, "attn_norm.weight", i, d, false)) < 0) return rc;
  rc = fl_load_vector(l, &w->q_norm, "attn_q_norm.weight", i, h->head_dim, true);
  if (rc < 0) return rc;
  rc = fl_load_vector(l, &w->k_norm, "attn_k_norm.weight", i, h->head_dim, true);
  if (rc < 0) return rc;
  rc = fl_load_vector(l, &w->post_attn_norm, "post_attention_norm.weight", i, d, true);
  if (rc < 0) return rc;
  if ((rc = fl_load_proj(l, &w->qkv, qkv, i, n_out, n_parts, d)) < 0) return rc;
  if (n_parts == 3 && (rc = load_qkv_bias(l, w, i, n_out)) < 0) return rc;
  return fl_load_proj(l, &w->attn_out, o, i, &d, 1, nq);
}

static int load_ffn(const fl_weight_loader *l, fl_layer_weights *w, int i) {
  static const char *const gu[] = { "ffn_gate.weight", "ffn_up.weight" };
  static const char *const dn[] = { "ffn_down.weight" };
  size_t d = l->hp->d_model, ff = l->hp->layer[i].n_ff;
  size_t n_out[2] = { ff, ff };
  int rc;
  if ((rc = fl_load_vector(l, &w->ffn_norm, "ffn_norm.weight", i, d, false)) < 0) return rc;
  rc = fl_load_vector(l, &w->post_ffn_norm, "post_ffw_norm.weight", i, d, true);
  if (rc < 0 || ff == 0) return rc;
  if ((rc = fl_load_proj(l, &w->gate_up, gu, i, n_out, 2, d)) < 0) return rc;
  return fl_load_proj(l, &w->ffn_down, dn, i, &d, 1, ff);
}

static int load_ends(const fl_weight_loader *l) {
  const fl_tensor_info *head = fl_gguf_tensor(l->g, "output.weight");
  fl_weights *w = l->w;
  size_t d = l->hp->d_model, n_vocab = l->hp->n_vocab;
  const void *data;
  int rc;
  w->embd = fl_gguf_tensor(l->g, "token_embd.weight");
  if (w->embd == NULL)
    return fl_fail(l->err, FL_EINPUT, "%s: the tensor token_embd.weight is missing",
                   fl_gguf_path(l->g));
  if ((rc = check_matrix(l, w->embd, n_vocab, d)) < 0) return rc;
  if (head == NULL) head = w->embd;
  if ((rc = check_matrix(l, head, n_vocab, d)) < 0) return rc;
  data = head->data;
  rc = fl_panels_pack(&w->head, l->kern, l->team, (fl_dtype)head->ggml_type, &data, &n_vocab, 1, d,
                      l->err);
  if (rc < 0) return rc;
  w->bytes += fl_panels_bytes(w->head);
  fl_gguf_drop(l->g, head);
  rc = fl_load_vector(l, &w->out_norm, "output_norm.weight", -1, d, false);
  return rc < 0 ? rc : fl_weights_load_ple_input(l);
}

int fl_weights_load(fl_weights *w, const fl_gguf *g, const fl_hparams *hp, const fl_kernels *kern,
                    bool pack_experts, fl_team *team, fl_err *err) {
  fl_weight_loader l = {
    .g = g, .hp = hp, .kern = kern, .pack_experts = pack_experts, .team = team, .w = w, .err = err
  };
  int rc;
  memset(w, 0, sizeof *w);
  w->n_layers = hp->n_layers;
  w->n_experts = hp->n_experts;
  w->layer = fl_calloc(hp->n_layers, sizeof *w->layer);
  if (w->layer == NULL) return fl_fail(err, FL_ENOMEM, "out of memory");
  if ((rc = load_ends(&l)) < 0) goto done;
  for (size_t i = 0; i < hp->n_layers; i++) {
    if ((rc = load_attention(&l, &w->layer[i], (int)i)) < 0) goto done;
    if ((rc = load_ffn(&l, &w->layer[i], (int)i)) < 0) goto done;
    if ((rc = fl_weights_load_extras(&l, &w->layer[i], (int)i)) < 0) goto done;
  }
done:
  if (rc < 0) fl_weights_release(w);
  return rc;
}

void fl_linear_release(fl_linear *p) {
  for (size_t i = 0; i < 3; i++) fl_panels_free(p->w[i]);
}

void fl_weights_release(fl_weights *w) {
  for (size_t i = 0; w->layer != NULL && i < w->n_layers; i++) {
    fl_layer_weights *l = &w->layer[i];
    fl_free(l->attn_norm);
    fl_free(l->q_norm);
    fl_free(l->k_norm);
    fl_free(l->post_attn_norm);
    fl_free(l->ffn_norm);
    fl_free(l->post_ffn_norm);
    fl_free(l->qkv_bias);
    fl_linear_release(&l->qkv);
    fl_linear_release(&l->gate_up);
    fl_linear_release(&l->attn_out);
    fl_linear_release(&l->ffn_down);
    fl_weights_release_extras(l, w->n_experts);
  }
  fl_free(w->layer);
  fl_free(w->out_norm);
  fl_linear_release(&w->ple_proj);
  fl_free(w->ple_norm);
  fl_panels_free(w->head);
  memset(w, 0, sizeof *w);
}

void fl_linear_forward(const fl_linear *p, fl_team *team, float *y, size_t ldy, const float *x,
                       size_t ldx, size_t m, void *scratch) {
  for (size_t i = 0; i < p->n; i++)
    fl_matmul(p->w[i], team, y + p->col[i], ldy, x, ldx, m, scratch);
}

void fl_linear_columns(const fl_linear *p, fl_team *team, float *y, size_t ldy, const float *x,
                       size_t ldx, size_t m, size_t first, size_t end, void *scratch) {
  for (size_t i = 0; i < p->n; i++) {
    const size_t col = p->col[i], past = col + fl_panels_n_out(p->w[i]);
    const size_t from =
        first > col ? (first - col) / fl_panels_nr(p->w[i]) * fl_panels_nr(p->w[i]) : 0;
    const size_t to = end < past ? end : past;
    if (col + from < to)
      fl_matmul_cols(p->w[i], team, y + col + from, ldy, x, ldx, m, from, to - col - from, scratch);
  }
}

void fl_linear_backward(const fl_linear *p, fl_team *team, float *dx, size_t lddx, const float *dy,
                        size_t lddy, size_t m, void *scratch) {
  for (size_t i = 0; i < p->n; i++)
    fl_matmul_dx(p->w[i], team, dx, lddx, dy + p->col[i], lddy, m, i != 0, scratch);
}

size_t fl_linear_scratch(const fl_linear *p, const fl_team *team, size_t m) {
  size_t most = 0;
  for (size_t i = 0; i < p->n; i++) {
    size_t n = fl_matmul_scratch(p->w[i], team, m);
    if (n > most) most = n;
  }
  return most;
}
