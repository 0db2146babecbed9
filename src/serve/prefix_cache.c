/* prefix_cache.c - composing, digests, and the texts that drafts are taken from. */
#include "serve/prefix_cache.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { HISTORY_TOKENS = 4096 };

static void prefix_free(fl_prefix *x) {
  if (x == NULL) return;
  fl_seq_free(x->seq);
  fl_suffix_release(&x->text);
  fl_suffix_release(&x->history);
  fl_free(x);
}

void fl_prefixes_release(fl_prefixes *p) {
  for (size_t i = 0; i < p->n; i++) prefix_free(p->entry[i]);
  fl_free(p->entry);
  *p = (fl_prefixes){ 0 };
}

bool fl_doc_by_id(const fl_fleet *f, uint32_t id, size_t *at) {
  fl_doc_info d;
  for (size_t i = 0; i < fl_fleet_n_docs(f); i++) {
    fl_fleet_doc(f, i, &d);
    if (d.id != id) continue;
    *at = i;
    return true;
  }
  return false;
}

int fl_selection_rows(const fl_fleet *f, const fl_selection *s, size_t *rows, fl_err *err) {
  size_t sum = 0, at;
  for (size_t i = 0; i < s->n; i++) {
    fl_doc_info d;
    if (!fl_doc_by_id(f, s->doc[i], &at))
      return fl_fail(err, FL_ENOENT, "document %lu has left the fleet", (unsigned long)s->doc[i]);
    fl_fleet_doc(f, at, &d);
    sum += d.rows;
  }
  *rows = sum;
  return FL_OK;
}

fl_prefix *fl_prefix_find(fl_prefixes *p, const fl_selection *s, const char *digest,
                          uint64_t generation) {
  for (size_t i = 0; i < p->n; i++) {
    fl_prefix *x = p->entry[i];
    if (!fl_same_docs(x->doc, x->n_docs, s->doc, s->n)) continue;
    if (digest != NULL ? strcmp(x->digest, digest) == 0 : x->generation == generation || s->n == 0)
      return x;
  }
  return NULL;
}

/* --- composing --- */

static int make_digest(fl_prefix *x, fl_err *err) {
  const fl_kv_pool *pool = fl_seq_pool(x->seq);
  size_t widest = 0;
  for (size_t l = 0; l < fl_kv_n_layers(pool); l++) {
    const fl_kv_layer *k = fl_kv_layer_at(pool, l);
    if (k->owned && k->kv_heads * k->head_dim > widest) widest = k->kv_heads * k->head_dim;
  }
  fl_hasher *h = fl_hasher_new();
  float *buf = fl_calloc(2 * widest, FL_KV_ROWS * sizeof *buf);
  if (h == NULL || buf == NULL) {
    fl_hasher_free(h);
    fl_free(buf);
    return fl_fail(err, FL_ENOMEM, "not enough memory for a composition");
  }
  for (size_t l = 0; l < fl_kv_n_layers(pool); l++) {
    const fl_kv_layer *k = fl_kv_layer_at(pool, l);
    const size_t width = k->kv_heads * k->head_dim;
    for (size_t at = 0; k->owned && at < x->rows; at += FL_KV_ROWS) {
      size_t n = x->rows - at < FL_KV_ROWS ? x->rows - at : FL_KV_ROWS;
      fl_seq_read(x->seq, l, at, n, buf, buf + n * width);
      fl_hasher_add(h, buf, 2 * n * width * sizeof *buf);
    }
  }
  fl_hasher_text(h, x->digest);
  fl_hasher_free(h);
  fl_free(buf);
  return FL_OK;
}

static int compose(fl_prefix *x, fl_prefixes *p, fl_fleet *f, const fl_fetch_plan *from,
                   fl_err *err) {
  int rc = fl_seq_new(&x->seq, p->pool, err);
  for (size_t i = 0; rc == FL_OK && i < x->n_docs; i++) {
    const size_t had = fl_seq_rows(x->seq);
    size_t at;
    if (!fl_doc_by_id(f, x->doc[i], &at))
      return fl_fail(err, FL_ENOENT, "document %lu has left the fleet", (unsigned long)x->doc[i]);
    rc = fl_fetch_plan_compose(from, f, x->seq, at, err);
    x->doc_rows[i] = rc == FL_OK ? fl_seq_rows(x->seq) - had : 0;
  }
  x->generation = fl_fleet_generation(f);
  return rc;
}

static int add_entry(fl_prefixes *p, fl_prefix *x, fl_err *err) {
  if (p->n == p->cap) {
    size_t cap = p->cap > 0 ? 2 * p->cap : 16;
    fl_prefix **e = fl_reallocarray(p->entry, cap, sizeof *e);
    if (e == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for a composition");
    p->entry = e;
    p->cap = cap;
  }
  p->entry[p->n++] = x;
  return FL_OK;
}

int fl_prefix_make(fl_prefix **out, fl_prefixes *p, fl_fleet *f, const fl_selection *s,
                   const fl_fetch_plan *from, fl_err *err) {
  fl_prefix *x = fl_calloc(1, sizeof *x);
  if (x == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory for a composition");
  memcpy(x->doc, s->doc, s->n * sizeof *x->doc);
  x->n_docs = s->n;
  snprintf(x->digest, sizeof x->digest, "bare");
  int rc = s->n > 0 ? compose(x, p, f, from, err) : FL_OK;
  if (rc == FL_OK && x->seq != NULL) {
    x->rows = fl_seq_rows(x->seq);
    rc = make_digest(x, err);
  }
  fl_prefix *same = rc == FL_OK ? fl_prefix_find(p, s, x->digest, 0) : NULL;
  if (same != NULL) { /* a new generation with the same rows */
    same->generation = x->generation;
    prefix_free(x);
    *out = same;
    return FL_OK;
  }
  if (rc == FL_OK) rc = add_entry(p, x, err);
  if (rc != FL_OK) {
    prefix_free(x);
    return rc;
  }
  x->used = ++p->clock;
  *out = x;
  return FL_OK;
}

void fl_prefix_hold(fl_prefixes *p, fl_prefix *x) {
  x->refs++;
  x->used = ++p->clock;
}

void fl_prefix_drop(fl_prefix *x) {
  if (x != NULL) x->refs--;
}

bool fl_prefix_evict(fl_prefixes *p, const fl_prefix *keep) {
  size_t at = p->n;
  for (size_t i = 0; i < p->n; i++) {
    const fl_prefix *x = p->entry[i];
    if (x->refs > 0 || x == keep || x->rows == 0) continue;
    if (at == p->n || x->used < p->entry[at]->used) at = i;
  }
  if (at == p->n) return false;
  prefix_free(p->entry[at]);
  p->entry[at] = p->entry[--p->n];
  return true;
}

/* --- drafts --- */

void fl_prefix_take_texts(fl_prefix *x, const fl_tokenizer *tok, const fl_fetch_plan *from) {
  static const int32_t separator = -1;
  if (x->text.ids.len > 0) return;
  for (size_t i = 0; i < from->n; i++) {
    const fl_buf *text = &from->doc[i].text;
    fl_ids ids = { 0 };
    if (text->len > 0 && fl_tokenize(tok, &ids, text->data, text->len, 0, NULL) == FL_OK) {
      (void)fl_suffix_append(&x->text, &separator, 1);
      (void)fl_suffix_append(&x->text, ids.data, ids.len);
    }
    fl_ids_release(&ids);
  }
}

void fl_prefix_remember(fl_prefix *x, uint32_t owner, const int32_t *ids, size_t n) {
  static const int32_t separator = -1;
  if (n == 0 || n > HISTORY_TOKENS) return;
  if (x->history.cap == 0 && fl_suffix_reserve(&x->history, HISTORY_TOKENS) != FL_OK) return;
  if (x->history_owner != owner || x->history.ids.len + n + 1 > HISTORY_TOKENS)
    fl_suffix_reset(&x->history);
  x->history_owner = owner;
  (void)fl_suffix_append(&x->history, &separator, 1);
  (void)fl_suffix_append(&x->history, ids, n);
}
