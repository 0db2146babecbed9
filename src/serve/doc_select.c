/* doc_select.c - retrieval once per conversation, and when the choice changes. */
#include "serve/doc_select.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* A query is embedded in one go while others wait; of a longer message the end is used, where the
 * question usually stands. */
enum { QUERY_BYTES = 2048 };

int fl_affinities_init(fl_affinities *s, size_t cap) {
  *s = (fl_affinities){ .cap = cap };
  s->entry = fl_calloc(cap, sizeof *s->entry);
  return s->entry != NULL ? FL_OK : FL_ENOMEM;
}

void fl_affinities_release(fl_affinities *s) {
  fl_free(s->entry);
  *s = (fl_affinities){ 0 };
}

fl_affinity *fl_affinities_find(fl_affinities *s, const char *key) {
  for (size_t i = 0; i < s->n; i++)
    if (strcmp(s->entry[i].key, key) == 0) {
      s->entry[i].used = ++s->clock;
      return &s->entry[i];
    }
  return NULL;
}

static fl_affinity *place(fl_affinities *s) {
  if (s->n < s->cap) return &s->entry[s->n++];
  size_t at = 0;
  for (size_t i = 1; i < s->n; i++)
    if (s->entry[i].used < s->entry[at].used) at = i;
  return &s->entry[at];
}

void fl_affinities_put(fl_affinities *s, const char *key, const fl_selection *docs,
                       const char *digest) {
  fl_affinity *e = fl_affinities_find(s, key);
  if (e == NULL) e = place(s);
  if (key != e->key) snprintf(e->key, sizeof e->key, "%s", key);
  if (docs != &e->docs) e->docs = *docs;
  if (digest != e->digest) snprintf(e->digest, sizeof e->digest, "%s", digest);
  e->used = ++s->clock;
}

static void take_hits(fl_selection *out, const fl_fleet *f, const fl_hits *h) {
  out->n = 0;
  for (size_t i = 0; i < h->n_docs && i < FL_PREFIX_DOCS; i++) {
    fl_doc_info d;
    fl_fleet_doc(f, h->doc[i].doc, &d);
    out->doc[out->n] = d.id;
    fl_hits_evidence(h, &h->doc[i], &out->why[out->n++]);
  }
}

static bool contains(const size_t *set, size_t n, size_t x) {
  for (size_t i = 0; i < n; i++)
    if (set[i] == x) return true;
  return false;
}

bool fl_doc_select_switches(const fl_doc_select_options *o, const size_t *chosen, size_t n_chosen,
                            const fl_hits *hits) {
  double inside = o->rag.floor, outside = -2; /* cosines: -2 is under all */
  for (size_t i = 0; i < hits->n_ranked; i++)
    if (contains(chosen, n_chosen, hits->ranked[i].doc) && hits->ranked[i].score > inside)
      inside = hits->ranked[i].score;
  for (size_t i = 0; i < hits->n_docs; i++)
    if (!contains(chosen, n_chosen, hits->doc[i].doc) && hits->doc[i].score > outside)
      outside = hits->doc[i].score;
  return outside >= inside + o->margin;
}

/* Positions of the known documents; false when one has left the fleet. */
static bool positions(const fl_fleet *f, const fl_selection *s, size_t *at) {
  for (size_t i = 0; i < s->n; i++)
    if (!fl_doc_by_id(f, s->doc[i], &at[i])) return false;
  return true;
}

static void keep(fl_selection *out, bool *kept, const fl_affinity *known) {
  *out = known->docs;
  *kept = true;
}

int fl_doc_select(fl_selection *out, bool *kept, fl_fleet *f, const fl_doc_select_options *o,
                  const fl_affinity *known, const char *query, size_t len, fl_err *err) {
  size_t at[FL_PREFIX_DOCS];
  fl_hits hits = { 0 };
  bool has = known != NULL && known->docs.n > 0 && positions(f, &known->docs, at);
  *kept = false;
  if (has && !o->adaptive) {
    keep(out, kept, known);
    return FL_OK;
  }
  if (len > QUERY_BYTES) {
    size_t skip = len - QUERY_BYTES;
    while (skip < len && ((unsigned char)query[skip] & 0xC0) == 0x80) skip++;
    query += skip;
    len -= skip;
  }
  int rc = fl_fleet_retrieve(f, query, len, &o->rag, &hits, err);
  if (rc != FL_OK) return rc;
  /* The retrieval may have followed a trainer's commit. */
  if (has && positions(f, &known->docs, at) && !fl_doc_select_switches(o, at, known->docs.n, &hits))
    keep(out, kept, known);
  else take_hits(out, f, &hits);
  fl_hits_release(&hits);
  return FL_OK;
}
