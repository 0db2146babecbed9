/* manifest.c - changing a manifest and writing it; reading is in manifest_read.c. */
#include "fleet/manifest.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "fleet/train_options.h"

static void doc_release(fl_doc_entry *d) {
  fl_free(d->name);
  fl_free(d->hash);
  fl_free(d->cart_file);
  fl_free(d->opt_file);
  fl_free(d->study_file);
  fl_coverage_release(&d->coverage);
  fl_json_free(d->extra);
  fl_json_free(d->extra_ours);
}

void fl_manifest_release(fl_manifest *m) {
  for (size_t i = 0; i < m->n; i++) doc_release(&m->doc[i]);
  for (size_t i = 0; i < m->n_members; i++) {
    fl_free(m->member[i].name);
    fl_free(m->member[i].hash);
  }
  fl_free(m->doc);
  fl_free(m->member);
  fl_free(m->model_name);
  fl_free(m->model_hash);
  fl_free(m->tokenizer_hash);
  fl_free(m->template_name);
  fl_free(m->model_path);
  fl_free(m->index_file);
  fl_free(m->lexical_file);
  fl_json_free(m->root);
  fl_buf_release(&m->saved);
  *m = (fl_manifest){ 0 };
}

bool fl_set_string(char **dst, const char *s) {
  char *copy = NULL;
  if (s != NULL && (copy = fl_strdup(s)) == NULL) return false;
  fl_free(*dst);
  *dst = copy;
  return true;
}

char *fl_study_file_name(uint32_t id, uint64_t gen) {
  return fl_asprintf("doc-%03lu.g%06llu.study.jsonl", (unsigned long)id, (unsigned long long)gen);
}

char *fl_index_file_name(uint64_t gen) {
  return fl_asprintf("index.g%06llu.safetensors", (unsigned long long)gen);
}

char *fl_lexical_file_name(uint64_t gen) {
  return fl_asprintf("index.g%06llu.sqlite", (unsigned long long)gen);
}

int fl_doc_entry_name_files(fl_doc_entry *d, uint64_t gen) {
  char *cart =
      fl_asprintf("doc-%03lu.g%06llu.safetensors", (unsigned long)d->id, (unsigned long long)gen);
  char *opt = fl_asprintf("doc-%03lu.g%06llu.fza", (unsigned long)d->id, (unsigned long long)gen);
  if (cart == NULL || opt == NULL) {
    fl_free(cart);
    fl_free(opt);
    return FL_ENOMEM;
  }
  fl_free(d->cart_file);
  fl_free(d->opt_file);
  d->cart_file = cart;
  d->opt_file = opt;
  return FL_OK;
}

static const char *skip_digits(const char *s) {
  size_t n = strspn(s, "0123456789");
  return n > 0 ? s + n : NULL;
}

bool fl_is_generation_file(const char *name) {
  bool index = strncmp(name, "index", 5) == 0;
  const char *s = name + 5;
  if (!index) {
    if (strncmp(name, "doc-", 4) != 0) return false;
    s = skip_digits(name + 4);
  }
  if (s == NULL || strncmp(s, ".g", 2) != 0) return false;
  s = skip_digits(s + 2);
  if (s == NULL) return false;
  if (strcmp(s, ".safetensors") == 0) return true;
  if (index) return strcmp(s, ".sqlite") == 0;
  return strcmp(s, ".fza") == 0 || strcmp(s, ".study.jsonl") == 0;
}

int fl_manifest_add(fl_manifest *m, const char *name, const char *hash, uint64_t tokens,
                    fl_err *err) {
  if (m->n >= FL_MANIFEST_MAX_DOCS || m->next_id >= UINT32_MAX - 1)
    return fl_fail(err, FL_EUSAGE, "--docs: more documents than a fleet can hold; split them");
  fl_doc_entry *p = fl_reallocarray(m->doc, m->n + 1, sizeof *p);
  if (p == NULL) goto oom;
  m->doc = p;
  fl_doc_entry d = { .id = m->next_id, .tokens = tokens };
  if (!fl_set_string(&d.name, name) || !fl_set_string(&d.hash, hash) ||
      fl_doc_entry_name_files(&d, fl_manifest_generation(m)) != FL_OK) {
    doc_release(&d);
    goto oom;
  }
  m->doc[m->n++] = d;
  m->next_id++;
  return FL_OK;
oom:
  return fl_fail(err, FL_ENOMEM, "%s: not enough memory to add it", name);
}

void fl_manifest_remove(fl_manifest *m, size_t i) {
  doc_release(&m->doc[i]);
  memmove(&m->doc[i], &m->doc[i + 1], (m->n - i - 1) * sizeof m->doc[0]);
  m->n--;
}

bool fl_manifest_find(const fl_manifest *m, const char *name, size_t *out) {
  for (size_t i = 0; i < m->n; i++)
    if (strcmp(m->doc[i].name, name) == 0) {
      *out = i;
      return true;
    }
  return false;
}

/* --- writing: every known member is set each time, in one order, absent texts as "" --- */

static const char *text_or_empty(const char *s) { return s != NULL ? s : ""; }

/* A copy of the object member `key` of obj, an empty one where it is not there. */
static fl_json *object_of(const fl_json *obj, const char *key) {
  const fl_json *have = fl_json_get(obj, key);
  return fl_json_is_obj(have) ? fl_json_dup(have) : fl_json_object();
}

static fl_json *coverage_json(const fl_coverage *c) {
  fl_buf b = { 0 };
  fl_json *v = NULL;
  fl_coverage_print(&b, NULL, c);
  if (!b.oom) (void)fl_json_parse(&v, b.data, b.len, NULL);
  fl_buf_release(&b);
  return v;
}

static bool set_new(fl_json *obj, const char *key, fl_json *v) {
  return v != NULL && fl_json_set(obj, key, v);
}

static bool add_copies(fl_json *to, const fl_json *extra) {
  const fl_json *v = extra != NULL ? fl_json_first(extra) : NULL;
  for (; v != NULL; v = fl_json_next(v))
    if (!set_new(to, fl_json_key(v), fl_json_dup(v))) return false;
  return true;
}

static bool set_doc_ours(const fl_doc_entry *d, fl_json *ours) {
  return fl_json_set_u64(ours, "id", d->id) &&
         fl_json_set_str(ours, "hash", text_or_empty(d->hash)) &&
         fl_json_set_u64(ours, "rows", d->rows) && fl_json_set_u64(ours, "targeted", d->targeted) &&
         fl_json_set_u64(ours, "made", d->made) && fl_json_set_bool(ours, "born", d->born) &&
         fl_json_set_bool(ours, "resident", d->resident) &&
         fl_json_set_bool(ours, "marked", d->marked) &&
         fl_json_set_str(ours, "study_file", text_or_empty(d->study_file)) &&
         fl_json_set_u64(ours, "kept", d->kept) &&
         set_new(ours, "coverage", coverage_json(&d->coverage)) && add_copies(ours, d->extra_ours);
}

static fl_json *doc_json(const fl_doc_entry *d) {
  fl_json *o = fl_json_object(), *ours = fl_json_object();
  bool ok = o != NULL && ours != NULL && fl_json_set_str(o, "name", d->name) &&
            fl_json_set_str(o, "cart_file", d->cart_file) &&
            fl_json_set_str(o, "opt_file", d->opt_file) &&
            fl_json_set_u64(o, "tokens", d->tokens) && fl_json_set_u64(o, "steps", d->steps) &&
            set_doc_ours(d, ours);
  if (!ok) fl_json_free(ours);
  if (ok && fl_json_set(o, "flotilla", ours) && add_copies(o, d->extra)) return o;
  fl_json_free(o);
  return NULL;
}

static int print_docs(const fl_manifest *m, fl_buf *out) {
  fl_buf_putc(out, '[');
  for (size_t i = 0; i < m->n; i++) {
    fl_json *o = doc_json(&m->doc[i]);
    if (o == NULL) return FL_ENOMEM;
    fl_buf_puts(out, i > 0 ? ",\n    " : "\n    ");
    fl_json_print_inside(out, o, 2);
    fl_json_free(o);
  }
  fl_buf_puts(out, m->n > 0 ? "\n  ]" : "]");
  return FL_OK;
}

static fl_json *members_json(const fl_manifest *m) {
  fl_json *arr = fl_json_array();
  for (size_t i = 0; arr != NULL && i < m->n_members; i++) {
    fl_json *o = fl_json_object();
    bool ok = o != NULL && fl_json_set_str(o, "name", m->member[i].name) &&
              fl_json_set_str(o, "hash", m->member[i].hash);
    if (!ok) fl_json_free(o);
    if (!ok || !fl_json_push(arr, o)) {
      fl_json_free(arr);
      return NULL;
    }
  }
  return arr;
}

static fl_json *flags_json(const fl_manifest *m, const fl_json *ours) {
  fl_json *have = object_of(ours, "flags");
  if (have != NULL && fl_train_options_write(&m->opts, have, false)) return have;
  fl_json_free(have);
  return NULL;
}

static bool set_ours(const fl_manifest *m, fl_json *ours) {
  return fl_json_set_u64(ours, "edits", m->edits) &&
         fl_json_set_u64(ours, "generation", fl_manifest_generation(m)) &&
         fl_json_set_u64(ours, "next_id", m->next_id) &&
         fl_json_set_str(ours, "model_name", text_or_empty(m->model_name)) &&
         fl_json_set_str(ours, "model_hash", text_or_empty(m->model_hash)) &&
         fl_json_set_str(ours, "tokenizer_hash", text_or_empty(m->tokenizer_hash)) &&
         fl_json_set_str(ours, "template", text_or_empty(m->template_name)) &&
         fl_json_set_str(ours, "model_path", text_or_empty(m->model_path)) &&
         fl_json_set_str(ours, "index_file", text_or_empty(m->index_file)) &&
         fl_json_set_str(ours, "lexical_file", text_or_empty(m->lexical_file)) &&
         set_new(ours, "flags", flags_json(m, ours)) && set_new(ours, "merged", members_json(m));
}

static fl_json *root_json(const fl_manifest *m) {
  fl_json *root = m->root != NULL ? fl_json_dup(m->root) : fl_json_object();
  if (root == NULL) return NULL;
  fl_json *ours = object_of(root, "flotilla");
  bool ok = fl_json_set_str(root, "format", "fucina.cartridge_fleet") &&
            fl_json_set_u64(root, "version", 1) && fl_json_set_u64(root, "p", m->p) &&
            fl_json_set_u64(root, "frozen_prefix", m->frozen) &&
            fl_json_set_u64(root, "embed_chunk", m->embed_chunk) &&
            fl_json_set_u64(root, "embed_dim", m->embed_dim) &&
            fl_json_set_u64(root, "rounds", m->rounds) && set_new(root, "docs", fl_json_array()) &&
            ours != NULL && set_ours(m, ours);
  if (!ok) {
    fl_json_free(ours);
    fl_json_free(root);
    return NULL;
  }
  if (fl_json_set(root, "flotilla", ours)) return root;
  fl_json_free(root);
  return NULL;
}

int fl_manifest_print(fl_manifest *m, fl_buf *out) {
  fl_json *root = root_json(m);
  int rc = root != NULL ? FL_OK : FL_ENOMEM;
  const fl_json *v = rc == FL_OK ? fl_json_first(root) : NULL;
  for (const char *before = "{\n  "; rc == FL_OK && v != NULL; v = fl_json_next(v)) {
    const char *key = fl_json_key(v);
    fl_buf_puts(out, before);
    before = ",\n  ";
    fl_json_escape(out, key, strlen(key));
    fl_buf_puts(out, ": ");
    if (strcmp(key, "docs") == 0) rc = print_docs(m, out);
    else fl_json_print_inside(out, v, 1);
  }
  fl_buf_puts(out, "\n}\n");
  if (rc != FL_OK || out->oom) {
    fl_json_free(root);
    return FL_ENOMEM;
  }
  fl_json_free(m->root);
  m->root = root;
  return FL_OK;
}

static void note_name(fl_buf *b, const char *name) {
  if (name != NULL) fl_buf_append(b, name, strlen(name) + 1);
}

void fl_manifest_note_saved(fl_manifest *m) {
  fl_buf_reset(&m->saved);
  for (size_t i = 0; i < m->n; i++) {
    note_name(&m->saved, m->doc[i].cart_file);
    note_name(&m->saved, m->doc[i].opt_file);
    note_name(&m->saved, m->doc[i].study_file);
  }
  note_name(&m->saved, m->index_file);
  note_name(&m->saved, m->lexical_file);
}
