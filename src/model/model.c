/* model.c - opening a model file: metadata, tokenizer, weights, template. */
#include "model/model.h"

#include <string.h>

#include "base/mem.h"
#include "kernels/peak.h"
#include "model/internal.h"

static int check_vocab(fl_model *m, fl_err *err) {
  const fl_tensor_info *t = fl_gguf_tensor(m->gguf, "token_embd.weight");
  size_t n = fl_tokenizer_n_vocab(m->tok);
  if (t == NULL)
    return fl_fail(err, FL_EINPUT, "%s: the tensor token_embd.weight is missing", m->path);
  /* Files may pad the embedding beyond the vocabulary, never cut it. */
  if (t->dim[1] < n || t->dim[1] > (uint64_t)1 << 24)
    return fl_fail(err, FL_EINPUT, "%s: token_embd.weight has %llu rows for a vocabulary of %zu",
                   m->path, (unsigned long long)t->dim[1], n);
  m->hp.n_vocab = (size_t)t->dim[1];
  return FL_OK;
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

int fl_model_open(fl_model **out, const char *path, const fl_model_options *opt, fl_team *team,
                  fl_err *err) {
  fl_model *m = fl_calloc(1, sizeof *m);
  int rc = FL_ENOMEM;
  if (m == NULL) return fl_fail(err, FL_ENOMEM, "out of memory");
  m->path = fl_strdup(path);
  if (m->path == NULL) {
    fl_fail(err, FL_ENOMEM, "out of memory");
    goto done;
  }
  m->kern = fl_kernels_select();
  if ((rc = fl_gguf_open(&m->gguf, path, err)) < 0) goto done;
  if ((rc = fl_hparams_read(&m->hp, m->gguf, err)) < 0) goto done;
  if ((rc = fl_tokenizer_open(&m->tok, m->gguf, err)) < 0) goto done;
  if ((rc = check_vocab(m, err)) < 0) goto done;
  rc = fl_weights_load(&m->weights, m->gguf, &m->hp, m->kern, opt != NULL && opt->pack_experts,
                       team, err);
  if (rc < 0) goto done;
  m->tpl = opt != NULL && opt->force_template != FL_TEMPLATE_NONE
               ? opt->force_template
               : fl_template_detect(m->gguf, m->tok);
  fl_gguf_fingerprint(m->gguf, m->hash);
  fl_tokenizer_hash(m->tok, m->tok_hash);
  for (size_t i = 0; i < fl_gguf_n_tensors(m->gguf); i++) /* what the fingerprint looked at */
    fl_gguf_drop(m->gguf, fl_gguf_tensor_at(m->gguf, i));
  *out = m;
  m = NULL;
done:
  fl_model_close(m);
  return rc;
}

void fl_model_close(fl_model *m) {
  if (m == NULL) return;
  fl_weights_release(&m->weights);
  fl_tokenizer_close(m->tok);
  fl_hparams_release(&m->hp);
  fl_gguf_close(m->gguf);
  fl_free(m->path);
  fl_free(m);
}

const fl_hparams *fl_model_hparams(const fl_model *m) { return &m->hp; }

const fl_tokenizer *fl_model_tokenizer(const fl_model *m) { return m->tok; }

fl_template fl_model_template(const fl_model *m) { return m->tpl; }

const fl_kernels *fl_model_kernels(const fl_model *m) { return m->kern; }

const fl_gguf *fl_model_gguf(const fl_model *m) { return m->gguf; }

const char *fl_model_path(const fl_model *m) { return m->path; }

const char *fl_model_name(const fl_model *m) {
  return m->hp.name[0] != '\0' ? m->hp.name : base_name(m->path);
}

const char *fl_model_hash(const fl_model *m) { return m->hash; }

const char *fl_model_tokenizer_hash(const fl_model *m) { return m->tok_hash; }

size_t fl_model_weight_bytes(const fl_model *m) { return m->weights.bytes; }

double fl_model_read_rate(const fl_model *m, fl_team *team) {
  const fl_weights *w = &m->weights;
  const fl_panels **all = fl_calloc(w->n_layers * 12 + 1, sizeof(fl_panels *));
  size_t n = 0;
  if (all == NULL) return 0;
  all[n++] = w->head;
  for (size_t i = 0; i < w->n_layers; i++) {
    const fl_layer_weights *l = &w->layer[i];
    const fl_linear *const parts[] = { &l->qkv, &l->attn_out, &l->gate_up, &l->ffn_down };
    for (size_t k = 0; k < 4; k++)
      for (size_t j = 0; j < parts[k]->n; j++) all[n++] = parts[k]->w[j];
  }
  double rate = fl_peak_read_panels(team, all, n);
  fl_free(all);
  return rate;
}
