/* manifest_read.c - from the text of fleet.json to a checked fl_manifest. The file may come from
 * anybody: every member is checked for type and range before anything is made of it. */
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/sort.h"
#include "fleet/manifest.h"
#include "fleet/train_options.h"

enum { MAX_MANIFEST_BYTES = 1 << 30 };

/* Of a document. */
static const char *const known_members[] = { "name",  "cart_file", "opt_file", "tokens",
                                             "steps", "flotilla",  NULL };
static const char *const known_ours[] = { "id",         "hash", "rows",     "targeted",
                                          "made",       "born", "resident", "marked",
                                          "study_file", "kept", "coverage", NULL };

typedef struct reader {
  const char *path;
  fl_err *err;
} reader;

static int bad(const reader *r, const char *what) {
  return fl_fail(r->err, FL_EINPUT, "%s: %s; restore the file or start a new fleet", r->path, what);
}

static int oom(const reader *r) {
  return fl_fail(r->err, FL_ENOMEM, "%s: not enough memory to read it", r->path);
}

static int need_u64(const reader *r, const fl_json *obj, const char *key, uint64_t max,
                    uint64_t *out) {
  uint64_t v = 0;
  if (!fl_json_get_u64(obj, key, &v) || v > max)
    return fl_fail(r->err, FL_EINPUT,
                   "%s: \"%s\" is missing or no whole number of at most %llu; restore the file or "
                   "start a new fleet",
                   r->path, key, (unsigned long long)max);
  *out = v;
  return FL_OK;
}

/* A string member; `plain`: a file name without a folder. */
static int need_str(const reader *r, const fl_json *obj, const char *key, bool plain, char **out) {
  const char *s = NULL;
  if (!fl_json_get_str(obj, key, &s) || s[0] == '\0')
    return fl_fail(r->err, FL_EINPUT,
                   "%s: \"%s\" is missing or no text; restore the file or start a new fleet",
                   r->path, key);
  if (plain && !fl_fs_is_plain_name(s))
    return fl_fail(r->err, FL_EINPUT,
                   "%s: \"%s\" is no plain file name but \"%.80s\"; correct it by hand", r->path,
                   key, s);
  return fl_set_string(out, s) ? FL_OK : oom(r);
}

/* A text, or a plain file name, that may be absent or "". */
static int maybe_str(const reader *r, const fl_json *obj, const char *key, bool plain, char **out) {
  const char *s = NULL;
  if (!fl_json_get_str(obj, key, &s) || s[0] == '\0') return FL_OK;
  return need_str(r, obj, key, plain, out);
}

static int read_doc_ours(const reader *r, const fl_json *o, fl_doc_entry *d) {
  const uint64_t exact = (uint64_t)1 << 53;
  uint64_t id = 0;
  int rc = need_u64(r, o, "id", UINT32_MAX - 1, &id);
  if (rc == FL_OK) rc = need_str(r, o, "hash", false, &d->hash);
  if (rc == FL_OK) rc = need_u64(r, o, "rows", 1 << 24, &d->rows);
  if (rc == FL_OK) rc = need_u64(r, o, "targeted", exact, &d->targeted);
  if (rc == FL_OK) rc = need_u64(r, o, "made", UINT32_MAX, &d->made);
  if (rc == FL_OK) rc = maybe_str(r, o, "study_file", true, &d->study_file);
  if (rc == FL_OK && fl_json_get(o, "kept") != NULL)
    rc = need_u64(r, o, "kept", UINT32_MAX, &d->kept);
  if (rc != FL_OK) return rc;
  d->id = (uint32_t)id;
  if (!fl_json_get_bool(o, "born", &d->born) || !fl_json_get_bool(o, "resident", &d->resident) ||
      !fl_json_get_bool(o, "marked", &d->marked))
    return bad(r, "\"born\", \"resident\" or \"marked\" of a document is missing");
  const fl_json *cover = fl_json_get(o, "coverage");
  rc = cover == NULL ? FL_EINPUT : fl_coverage_parse(&d->coverage, cover, d->tokens);
  if (rc == FL_ENOMEM) return oom(r);
  if (rc == FL_OK) return FL_OK;
  return bad(r, "\"coverage\" of a document is no list of spans of its tokens");
}

/* *out = a copy of the members of o that are not in `known`; NULL when there are none. */
static int take_extra(const reader *r, const fl_json *o, const char *const *known, fl_json **out) {
  for (const fl_json *v = fl_json_first(o); v != NULL; v = fl_json_next(v)) {
    const char *const *k = known;
    while (*k != NULL && strcmp(*k, fl_json_key(v)) != 0) k++;
    if (*k != NULL) continue;
    if (*out == NULL && (*out = fl_json_object()) == NULL) return oom(r);
    if (!fl_json_set(*out, fl_json_key(v), fl_json_dup(v))) return oom(r);
  }
  return FL_OK;
}

static int read_doc(const reader *r, const fl_json *o, uint32_t position, bool foreign,
                    fl_doc_entry *d) {
  const uint64_t exact = (uint64_t)1 << 53;
  if (!fl_json_is_obj(o)) return bad(r, "an entry of \"docs\" is no object");
  int rc = need_str(r, o, "name", false, &d->name);
  if (rc == FL_OK) rc = need_str(r, o, "cart_file", true, &d->cart_file);
  if (rc == FL_OK) rc = need_str(r, o, "opt_file", true, &d->opt_file);
  if (rc == FL_OK) rc = need_u64(r, o, "tokens", UINT32_MAX, &d->tokens);
  if (rc == FL_OK) rc = need_u64(r, o, "steps", exact, &d->steps);
  if (rc == FL_OK) rc = take_extra(r, o, known_members, &d->extra);
  if (rc != FL_OK) return rc;
  if (foreign) { /* its steps count duty beside other targets too, which is the best there is */
    d->id = position;
    d->born = true;
    d->targeted = d->steps;
    return FL_OK;
  }
  const fl_json *ours = fl_json_get(o, "flotilla");
  if (!fl_json_is_obj(ours)) return bad(r, "a document has no \"flotilla\" object");
  rc = take_extra(r, ours, known_ours, &d->extra_ours);
  return rc == FL_OK ? read_doc_ours(r, ours, d) : rc;
}

static int read_docs(const reader *r, const fl_json *arr, fl_manifest *m) {
  if (!fl_json_is_arr(arr)) return bad(r, "\"docs\" is missing or no list");
  size_t n = fl_json_len(arr);
  if (n > FL_MANIFEST_MAX_DOCS) return bad(r, "\"docs\" has too many entries");
  if (n == 0) return FL_OK;
  m->doc = fl_calloc(n, sizeof *m->doc);
  if (m->doc == NULL) return oom(r);
  for (const fl_json *o = fl_json_first(arr); o != NULL && m->n < n; o = fl_json_next(o)) {
    m->n++; /* counted first, so that release sees what a failure leaves behind */
    int rc = read_doc(r, o, (uint32_t)(m->n - 1), m->foreign, &m->doc[m->n - 1]);
    if (rc != FL_OK) return rc;
  }
  return FL_OK;
}

/* Sorts v and names the first text that stands twice. */
static int refuse_twice(const reader *r, const char **v, size_t n, const char *what) {
  const char *twice = fl_sort_names(v, n);
  if (twice == NULL) return FL_OK;
  return fl_fail(r->err, FL_EINPUT, "%s: the %s \"%.200s\" stands twice; correct it by hand",
                 r->path, what, twice);
}

static int by_id(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static int check_ids(const reader *r, const fl_manifest *m) {
  uint32_t *id = fl_calloc(m->n, sizeof *id);
  if (id == NULL) return oom(r);
  for (size_t i = 0; i < m->n; i++) id[i] = m->doc[i].id;
  qsort(id, m->n, sizeof *id, by_id);
  int rc = id[m->n - 1] >= m->next_id ? bad(r, "a document's id is not below \"next_id\"") : FL_OK;
  for (size_t i = 1; rc == FL_OK && i < m->n; i++)
    if (id[i] == id[i - 1]) rc = bad(r, "two documents have the same id");
  fl_free(id);
  return rc;
}

static int check_unique(const reader *r, const fl_manifest *m) {
  if (m->n == 0) return FL_OK;
  const char **v = fl_calloc(m->n, 5 * sizeof *v); /* names; then all kinds of files */
  if (v == NULL) return oom(r);
  for (size_t i = 0; i < m->n; i++) v[i] = m->doc[i].name;
  int rc = refuse_twice(r, v, m->n, "document");
  size_t n = 0;
  for (size_t i = 0; i < m->n; i++) {
    v[n++] = m->doc[i].cart_file;
    v[n++] = m->doc[i].opt_file;
    if (m->doc[i].study_file != NULL) v[n++] = m->doc[i].study_file;
  }
  if (m->index_file != NULL) v[n++] = m->index_file;
  if (m->lexical_file != NULL) v[n++] = m->lexical_file;
  if (rc == FL_OK) rc = refuse_twice(r, v, n, "file");
  fl_free(v);
  return rc == FL_OK ? check_ids(r, m) : rc;
}

static int read_members(const reader *r, const fl_json *arr, fl_manifest *m) {
  if (arr == NULL) return FL_OK;
  size_t n = fl_json_is_arr(arr) ? fl_json_len(arr) : SIZE_MAX;
  if (n > FL_MANIFEST_MAX_DOCS) return bad(r, "\"merged\" is no list");
  if (n == 0) return FL_OK;
  m->member = fl_calloc(n, sizeof *m->member);
  if (m->member == NULL) return oom(r);
  for (const fl_json *o = fl_json_first(arr); o != NULL && m->n_members < n; o = fl_json_next(o)) {
    fl_member *e = &m->member[m->n_members++];
    int rc = need_str(r, o, "name", false, &e->name);
    if (rc == FL_OK) rc = need_str(r, o, "hash", false, &e->hash);
    if (rc != FL_OK) return rc;
  }
  return FL_OK;
}

static int read_flags(const reader *r, const fl_json *obj, fl_manifest *m) {
  if (!fl_json_is_obj(obj)) return bad(r, "\"flags\" is missing");
  int rc = fl_train_options_read(&m->opts, obj, r->err);
  if (rc != FL_OK) fl_err_prefix(r->err, "%s", r->path);
  return rc;
}

static int read_ours(const reader *r, const fl_json *o, fl_manifest *m) {
  uint64_t next_id = 0;
  int rc = need_u64(r, o, "edits", (uint64_t)1 << 32, &m->edits);
  if (rc == FL_OK) rc = need_u64(r, o, "next_id", UINT32_MAX, &next_id);
  if (rc == FL_OK) rc = need_str(r, o, "model_name", false, &m->model_name);
  if (rc == FL_OK) rc = need_str(r, o, "model_hash", false, &m->model_hash);
  if (rc == FL_OK) rc = need_str(r, o, "tokenizer_hash", false, &m->tokenizer_hash);
  if (rc == FL_OK) rc = maybe_str(r, o, "template", false, &m->template_name);
  if (rc == FL_OK) rc = maybe_str(r, o, "model_path", false, &m->model_path);
  if (rc == FL_OK) rc = maybe_str(r, o, "index_file", true, &m->index_file);
  if (rc == FL_OK) rc = maybe_str(r, o, "lexical_file", true, &m->lexical_file);
  if (rc == FL_OK) rc = read_flags(r, fl_json_get(o, "flags"), m);
  if (rc == FL_OK) rc = read_members(r, fl_json_get(o, "merged"), m);
  m->next_id = (uint32_t)next_id;
  return rc;
}

static int read_top(const reader *r, fl_manifest *m) {
  const char *format = NULL;
  uint64_t version = 0;
  if (!fl_json_get_str(m->root, "format", &format) || strcmp(format, "fucina.cartridge_fleet") != 0)
    return fl_fail(r->err, FL_EINPUT,
                   "%s: no fleet manifest (\"format\" is not "
                   "fucina.cartridge_fleet); name another folder",
                   r->path);
  if (!fl_json_get_u64(m->root, "version", &version) || version != 1)
    return fl_fail(r->err, FL_EINPUT,
                   "%s: a version of the format that this program does not "
                   "know; use a newer program",
                   r->path);
  int rc = need_u64(r, m->root, "p", 65536, &m->p);
  if (rc == FL_OK) rc = need_u64(r, m->root, "frozen_prefix", 65536, &m->frozen);
  if (rc == FL_OK) rc = need_u64(r, m->root, "embed_chunk", 65536, &m->embed_chunk);
  if (rc == FL_OK) rc = need_u64(r, m->root, "embed_dim", 1 << 20, &m->embed_dim);
  if (rc == FL_OK) rc = need_u64(r, m->root, "rounds", UINT32_MAX, &m->rounds);
  if (rc != FL_OK) return rc;
  if (m->p == 0 || m->frozen >= m->p || m->embed_chunk == 0)
    return bad(r, "\"p\", \"frozen_prefix\" and \"embed_chunk\" do not fit together");
  fl_train_options_default(&m->opts);
  m->opts.positions = FL_POS_SEQUENTIAL; /* where no flag says otherwise: other programs' fleets */
  return FL_OK;
}

static int read_all(const reader *r, fl_manifest *m) {
  int rc = read_top(r, m);
  if (rc != FL_OK) return rc;
  const fl_json *ours = fl_json_get(m->root, "flotilla");
  m->foreign = ours == NULL;
  if (!m->foreign && !fl_json_is_obj(ours)) return bad(r, "\"flotilla\" is no object");
  if (!m->foreign) rc = read_ours(r, ours, m);
  if (rc == FL_OK) rc = read_docs(r, fl_json_get(m->root, "docs"), m);
  if (rc != FL_OK) return rc;
  if (m->foreign) {
    m->next_id = (uint32_t)m->n;
    if (m->embed_dim > 0 && !fl_set_string(&m->index_file, "index.safetensors")) return oom(r);
  }
  /* p, frozen and embed_chunk at the top are what the files were made with. */
  m->opts.p = (size_t)m->p;
  m->opts.frozen = (size_t)m->frozen;
  m->opts.embed_chunk = (size_t)m->embed_chunk;
  if ((m->embed_dim > 0) != (m->index_file != NULL))
    return bad(r, "\"embed_dim\" and \"index_file\" do not fit together");
  return check_unique(r, m);
}

int fl_manifest_parse(fl_manifest *out, const char *text, size_t len, const char *path,
                      fl_err *err) {
  reader r = { path, err };
  fl_manifest m = { 0 };
  fl_err why = { 0 };
  int rc = fl_json_parse(&m.root, text, len, &why);
  if (rc == FL_EINPUT) return bad(&r, why.text);
  if (rc != FL_OK) return oom(&r);
  rc = fl_json_is_obj(m.root) ? read_all(&r, &m) : bad(&r, "no object");
  if (rc == FL_OK && !fl_json_set(m.root, "docs", fl_json_array())) rc = oom(&r);
  if (rc == FL_OK) fl_manifest_note_saved(&m);
  if (rc == FL_OK && m.saved.oom) rc = oom(&r);
  if (rc != FL_OK) {
    fl_manifest_release(&m);
    return rc;
  }
  *out = m;
  return FL_OK;
}

int fl_manifest_load(fl_manifest *out, const char *dir, fl_err *err) {
  fl_buf text = { 0 };
  char *path = fl_fs_join(dir, FL_MANIFEST_FILE);
  if (path == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory", dir);
  int rc = fl_fs_read(&text, path, MAX_MANIFEST_BYTES, err);
  if (rc == FL_OK)
    rc = fl_manifest_parse(out, text.data != NULL ? text.data : "", text.len, path, err);
  fl_buf_release(&text);
  fl_free(path);
  return rc;
}
