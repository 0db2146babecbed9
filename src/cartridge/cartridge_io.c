/* cartridge_io.c - the files of a cartridge.
 *
 * Reading trusts nothing: the safetensors reader has checked that every tensor lies in the file and
 * has the size its shape says; here the set of names, the ranks, the agreement of the shapes, the
 * metadata that repeats them, and every value are checked before a cartridge exists.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "cartridge/cartridge_io.h"
#include "formats/fza.h"
#include "formats/safetensors.h"

enum { NAME_MAX_BYTES = 48, N_META = 11, NUMBER_BYTES = 24 };

static const char draft_reference[] = "draft_reference";

typedef char tensor_name[NAME_MAX_BYTES];

static void layer_name(tensor_name out, size_t layer, const char *part) {
  snprintf(out, NAME_MAX_BYTES, "layers.%zu.%s", layer, part);
}

void fl_provenance_release(fl_provenance *p) {
  fl_free(p->model_name);
  fl_free(p->model_hash);
  fl_free(p->tokenizer_hash);
  fl_free(p->doc_name);
  fl_free(p->doc_hash);
  fl_free(p->version);
  *p = (fl_provenance){ 0 };
}

/* --- writing ------------------------------------------------------------------------------- */

typedef struct meta_list {
  fl_st_meta item[N_META];
  char number[5][NUMBER_BYTES];
  size_t n, n_numbers;
} meta_list;

static void meta_text(meta_list *m, const char *key, const char *value) {
  if (value) m->item[m->n++] = (fl_st_meta){ key, value };
}

static void meta_number(meta_list *m, const char *key, uint64_t value) {
  char *text = m->number[m->n_numbers++];
  snprintf(text, NUMBER_BYTES, "%llu", (unsigned long long)value);
  m->item[m->n++] = (fl_st_meta){ key, text };
}

static void meta_collect(meta_list *m, const fl_cartridge *c, const fl_provenance *prov) {
  if (prov) {
    meta_text(m, "model_name", prov->model_name);
    meta_text(m, "model_hash", prov->model_hash);
    meta_text(m, "tokenizer_hash", prov->tokenizer_hash);
    meta_text(m, "doc_name", prov->doc_name);
    meta_text(m, "doc_hash", prov->doc_hash);
    meta_text(m, "version", prov->version);
    meta_number(m, "generation", prov->generation);
    meta_number(m, "seed", prov->seed);
  }
  meta_number(m, "p", c->rows.n_rows);
  meta_number(m, "frozen", c->frozen);
  meta_number(m, "steps", c->steps);
}

typedef struct out_list {
  fl_st_out *tensor;
  tensor_name *name;
  size_t n;
} out_list;

static void add_tensor(out_list *o, const fl_rows *r, size_t layer, const char *part,
                       const float *data, size_t n_rows) {
  layer_name(o->name[o->n], layer, part);
  o->tensor[o->n] =
      (fl_st_out){ .name = o->name[o->n],
                   .type = FL_ST_F32,
                   .n_dims = 3,
                   .dim = { n_rows, r->kv_heads[layer], r->width[layer] / r->kv_heads[layer] },
                   .data = data };
  o->n++;
}

static void add_layer(out_list *o, const fl_cartridge *c, size_t l) {
  const fl_rows *r = &c->rows;
  const size_t skip = c->frozen * r->width[l];
  if (c->frozen > 0) {
    add_tensor(o, r, l, "k_sink", r->k[l], c->frozen);
    add_tensor(o, r, l, "v_sink", r->v[l], c->frozen);
  }
  add_tensor(o, r, l, "k", r->k[l] + skip, r->n_rows - c->frozen);
  add_tensor(o, r, l, "v", r->v[l] + skip, r->n_rows - c->frozen);
}

int fl_cartridge_write(const char *path, const fl_cartridge *c, const fl_provenance *prov,
                       fl_err *err) {
  out_list o = { 0 };
  meta_list meta = { 0 };
  int rc;
  o.tensor = fl_calloc(4 * c->rows.n_layers, sizeof *o.tensor);
  o.name = fl_calloc(4 * c->rows.n_layers, sizeof *o.name);
  if (!o.tensor || !o.name) {
    rc = fl_fail(err, FL_ENOMEM, "%s: out of memory while writing a cartridge", path);
    goto done;
  }
  for (size_t l = 0; l < c->rows.n_layers; l++)
    if (c->rows.width[l] > 0) add_layer(&o, c, l);
  meta_collect(&meta, c, prov);
  rc = fl_safetensors_write(path, o.tensor, o.n, meta.item, meta.n, err);
done:
  fl_free(o.tensor);
  fl_free(o.name);
  return rc;
}

/* --- reading ------------------------------------------------------------------------------- */

typedef struct reader {
  const char *path;
  const fl_safetensors *st;
  fl_err *err;
  size_t n_known; /* tensors accounted for */
} reader;

/* The tensor layers.<l>.<part>, F32, rank 3, no empty dimension; *out is NULL when missing. */
static int get_tensor(reader *r, size_t l, const char *part, const fl_st_tensor **out) {
  tensor_name name;
  layer_name(name, l, part);
  const fl_st_tensor *t = fl_safetensors_get(r->st, name);
  *out = t;
  if (!t) return FL_OK;
  r->n_known++;
  if (t->type != FL_ST_F32 || t->n_dims != 3)
    return fl_fail(r->err, FL_EINPUT, "%s: %s is no F32 tensor of rank 3; restore the file",
                   r->path, name);
  if (t->dim[0] == 0 || t->dim[1] == 0 || t->dim[2] == 0)
    return fl_fail(r->err, FL_EINPUT, "%s: %s is empty; restore the file", r->path, name);
  return FL_OK;
}

typedef struct layer_tensors {
  const fl_st_tensor *k, *v, *k_sink, *v_sink; /* sinks NULL when nothing is frozen */
} layer_tensors;

static bool same_shape(const fl_st_tensor *a, const fl_st_tensor *b) {
  return a->dim[0] == b->dim[0] && a->dim[1] == b->dim[1] && a->dim[2] == b->dim[2];
}

/* Layer l as a whole; present is false when it has no tensor at all. */
static int get_layer(reader *r, size_t l, layer_tensors *t, bool *present) {
  int rc = get_tensor(r, l, "k", &t->k);
  if (rc == FL_OK) rc = get_tensor(r, l, "v", &t->v);
  if (rc == FL_OK) rc = get_tensor(r, l, "k_sink", &t->k_sink);
  if (rc == FL_OK) rc = get_tensor(r, l, "v_sink", &t->v_sink);
  if (rc != FL_OK) return rc;
  *present = t->k || t->v || t->k_sink || t->v_sink;
  if (!*present) return FL_OK;
  if (!t->k || !t->v || !t->k_sink != !t->v_sink)
    return fl_fail(r->err, FL_EINPUT, "%s: layer %zu lacks some of its tensors; restore the file",
                   r->path, l);
  if (!same_shape(t->k, t->v) || (t->k_sink && !same_shape(t->k_sink, t->v_sink)) ||
      (t->k_sink && (t->k_sink->dim[1] != t->k->dim[1] || t->k_sink->dim[2] != t->k->dim[2])))
    return fl_fail(r->err, FL_EINPUT,
                   "%s: the tensors of layer %zu have shapes that do not agree; restore the file",
                   r->path, l);
  return FL_OK;
}

typedef struct shape {
  size_t n_layers, frozen, trained;
  size_t kv_heads[FL_MAX_LAYERS], width[FL_MAX_LAYERS];
} shape;

static bool layer_owned(const fl_hparams *hp, size_t l) {
  return hp->layer[l].kv_from >= 0 && (size_t)hp->layer[l].kv_from == l;
}

static int check_row_counts(reader *r, shape *s, const layer_tensors *t, size_t l, bool first) {
  const size_t frozen = t->k_sink ? t->k_sink->dim[0] : 0;
  if (first) {
    s->frozen = frozen;
    s->trained = t->k->dim[0];
  } else if (s->frozen != frozen || s->trained != t->k->dim[0]) {
    return fl_fail(r->err, FL_EINPUT,
                   "%s: layer %zu has another number of rows than the layers "
                   "before it; restore the file",
                   r->path, l);
  }
  s->kv_heads[l] = t->k->dim[1];
  s->width[l] = t->k->dim[1] * t->k->dim[2]; /* both under the file's size: no overflow */
  return FL_OK;
}

/* Walks the layers: the model's when hp is given, otherwise as far as the names go. */
static int read_shape(reader *r, const fl_hparams *hp, shape *s) {
  const size_t max = hp ? hp->n_layers : FL_MAX_LAYERS;
  bool any = false;
  for (size_t l = 0; l < max; l++) {
    layer_tensors t;
    bool present;
    int rc = get_layer(r, l, &t, &present);
    if (rc != FL_OK) return rc;
    if (!present && !hp) break;
    if (hp && present != layer_owned(hp, l))
      return fl_fail(r->err, FL_EINPUT,
                     "%s: %s rows for layer %zu, unlike the model; use the "
                     "model it was trained on",
                     r->path, present ? "has" : "has no", l);
    s->n_layers = l + 1;
    if (!present) continue;
    rc = check_row_counts(r, s, &t, l, !any);
    if (rc != FL_OK) return rc;
    any = true;
  }
  if (!any)
    return fl_fail(r->err, FL_EINPUT, "%s: has no tensor layers.0.k: not a cartridge", r->path);
  return FL_OK;
}

static int check_names(reader *r) {
  const fl_st_tensor *draft = fl_safetensors_get(r->st, draft_reference);
  if (draft) r->n_known++;
  if (r->n_known == fl_safetensors_count(r->st)) return FL_OK;
  return fl_fail(r->err, FL_EINPUT,
                 "%s: has %zu tensors that no layer of the cartridge accounts for; use the model "
                 "it was trained on, or restore the file",
                 r->path, fl_safetensors_count(r->st) - r->n_known);
}

/* A number in the metadata; *out stays when the key is missing. */
static int meta_get_number(reader *r, const char *key, uint64_t *out) {
  const char *text = fl_safetensors_meta(r->st, key);
  if (!text || fl_parse_u64(out, text) == FL_OK) return FL_OK;
  return fl_fail(r->err, FL_EINPUT, "%s: the metadata's \"%s\" is no number; restore the file",
                 r->path, key);
}

static int check_meta(reader *r, const shape *s, uint64_t *steps) {
  uint64_t p = s->frozen + s->trained, frozen = s->frozen;
  int rc = meta_get_number(r, "p", &p);
  if (rc == FL_OK) rc = meta_get_number(r, "frozen", &frozen);
  if (rc == FL_OK) rc = meta_get_number(r, "steps", steps);
  if (rc != FL_OK) return rc;
  if (p != s->frozen + s->trained || frozen != s->frozen)
    return fl_fail(r->err, FL_EINPUT,
                   "%s: the metadata speaks of %llu rows (%llu frozen), the "
                   "tensors have %zu (%zu); restore the file",
                   r->path, (unsigned long long)p, (unsigned long long)frozen,
                   s->frozen + s->trained, s->frozen);
  return FL_OK;
}

static bool all_finite(const float *x, size_t n) {
  const uint32_t exponent = 0x7f800000u;
  uint32_t bad = 0;
  for (size_t i = 0; i < n; i++) {
    uint32_t u;
    memcpy(&u, x + i, sizeof u);
    bad |= (u & exponent) == exponent;
  }
  return bad == 0;
}

static int copy_tensor(reader *r, float *to, size_t l, const char *part) {
  tensor_name name;
  layer_name(name, l, part);
  const fl_st_tensor *t = fl_safetensors_get(r->st, name);
  if (!all_finite(t->data, t->n_values))
    return fl_fail(r->err, FL_EINPUT,
                   "%s: %s has values that are not finite; restore the file or "
                   "train the document again",
                   r->path, name);
  memcpy(to, t->data, t->n_bytes);
  return FL_OK;
}

static int copy_layer(reader *r, fl_cartridge *c, size_t l) {
  fl_rows *to = &c->rows;
  const size_t skip = c->frozen * to->width[l];
  int rc = copy_tensor(r, to->k[l] + skip, l, "k");
  if (rc == FL_OK) rc = copy_tensor(r, to->v[l] + skip, l, "v");
  if (c->frozen == 0) return rc;
  if (rc == FL_OK) rc = copy_tensor(r, to->k[l], l, "k_sink");
  if (rc == FL_OK) rc = copy_tensor(r, to->v[l], l, "v_sink");
  return rc;
}

static int read_rows(reader *r, const fl_hparams *hp, fl_cartridge *c) {
  shape s = { 0 };
  int rc = read_shape(r, hp, &s);
  if (rc == FL_OK) rc = check_names(r);
  if (rc == FL_OK) rc = check_meta(r, &s, &c->steps);
  if (rc == FL_OK)
    rc =
        fl_rows_init_shape(&c->rows, s.n_layers, s.kv_heads, s.width, s.frozen + s.trained, r->err);
  if (rc != FL_OK) return rc;
  c->frozen = s.frozen;
  if (hp) rc = fl_cartridge_fits(c, hp, r->path, r->err);
  for (size_t l = 0; rc == FL_OK && l < c->rows.n_layers; l++)
    if (c->rows.width[l] > 0) rc = copy_layer(r, c, l);
  return rc;
}

static int meta_get_text(reader *r, const char *key, char **out) {
  const char *text = fl_safetensors_meta(r->st, key);
  if (!text) return FL_OK;
  *out = fl_strdup(text);
  return *out ? FL_OK : fl_fail(r->err, FL_ENOMEM, "%s: out of memory", r->path);
}

static int read_provenance(reader *r, fl_provenance *p, uint64_t steps) {
  int rc = meta_get_text(r, "model_name", &p->model_name);
  if (rc == FL_OK) rc = meta_get_text(r, "model_hash", &p->model_hash);
  if (rc == FL_OK) rc = meta_get_text(r, "tokenizer_hash", &p->tokenizer_hash);
  if (rc == FL_OK) rc = meta_get_text(r, "doc_name", &p->doc_name);
  if (rc == FL_OK) rc = meta_get_text(r, "doc_hash", &p->doc_hash);
  if (rc == FL_OK) rc = meta_get_text(r, "version", &p->version);
  if (rc == FL_OK) rc = meta_get_number(r, "generation", &p->generation);
  if (rc == FL_OK) rc = meta_get_number(r, "seed", &p->seed);
  p->steps = steps;
  return rc;
}

int fl_cartridge_read(fl_cartridge *out, fl_provenance *prov, const char *path,
                      const fl_hparams *hp, fl_err *err) {
  fl_cartridge c = { 0 };
  fl_provenance p = { 0 };
  fl_safetensors *st;
  int rc = fl_safetensors_open(&st, path, err);
  if (rc != FL_OK) return rc;
  reader r = { .path = path, .st = st, .err = err };
  rc = read_rows(&r, hp, &c);
  if (rc == FL_OK && prov) rc = read_provenance(&r, &p, c.steps);
  fl_safetensors_close(st);
  if (rc != FL_OK) {
    fl_cartridge_release(&c);
    fl_provenance_release(&p);
    return rc;
  }
  *out = c;
  if (prov) *prov = p;
  return FL_OK;
}

/* --- moments ------------------------------------------------------------------------------- */

typedef struct slot_list {
  fl_fza_slot *slot;
  tensor_name *name;
  size_t n;
} slot_list;

static void add_slot(slot_list *s, const fl_adam *a, size_t l, const char *part, float *m,
                     float *v) {
  layer_name(s->name[s->n], l, part);
  s->slot[s->n] = (fl_fza_slot){ .name = s->name[s->n],
                                 .rows = a->m.n_rows,
                                 .cols = a->m.width[l],
                                 .step = a->step,
                                 .m = m,
                                 .v = v };
  s->n++;
}

static int collect_slots(slot_list *s, const fl_adam *a, const char *path, fl_err *err) {
  s->slot = fl_calloc(2 * a->m.n_layers, sizeof *s->slot);
  s->name = fl_calloc(2 * a->m.n_layers, sizeof *s->name);
  if (!s->slot || !s->name)
    return fl_fail(err, FL_ENOMEM, "%s: out of memory for the optimizer's state", path);
  for (size_t l = 0; l < a->m.n_layers; l++) {
    if (a->m.width[l] == 0) continue;
    add_slot(s, a, l, "k", a->m.k[l], a->v.k[l]);
    add_slot(s, a, l, "v", a->m.v[l], a->v.v[l]);
  }
  return FL_OK;
}

static void release_slots(slot_list *s) {
  fl_free(s->slot);
  fl_free(s->name);
}

int fl_adam_write(const char *path, const fl_adam *a, const fl_cartridge *c, fl_err *err) {
  slot_list s = { 0 };
  (void)c;
  int rc = collect_slots(&s, a, path, err);
  if (rc == FL_OK) rc = fl_fza_write(path, s.slot, s.n, err);
  release_slots(&s);
  return rc;
}

/* One optimizer steps all slots together, so their counts are one number. */
static int common_step(fl_adam *a, const slot_list *s, const char *path, fl_err *err) {
  for (size_t i = 1; i < s->n; i++)
    if (s->slot[i].step != s->slot[0].step)
      return fl_fail(err, FL_EINPUT,
                     "%s: %s is at step %llu, %s at %llu; restore the file or "
                     "remove it to begin with fresh moments",
                     path, s->slot[0].name, (unsigned long long)s->slot[0].step, s->slot[i].name,
                     (unsigned long long)s->slot[i].step);
  a->step = s->slot[0].step;
  return FL_OK;
}

int fl_adam_read(fl_adam *out, const char *path, const fl_cartridge *c, fl_err *err) {
  const size_t trained = c->rows.n_rows - c->frozen;
  slot_list s = { 0 };
  fl_adam a = { 0 };
  int rc = fl_rows_like(&a.m, &c->rows, trained, err);
  if (rc == FL_OK) rc = fl_rows_like(&a.v, &c->rows, trained, err);
  if (rc == FL_OK) rc = collect_slots(&s, &a, path, err);
  if (rc == FL_OK) rc = fl_fza_read(path, s.slot, s.n, err);
  if (rc == FL_OK) rc = common_step(&a, &s, path, err);
  release_slots(&s);
  if (rc != FL_OK) {
    fl_adam_release(&a);
    return rc;
  }
  *out = a;
  return FL_OK;
}
