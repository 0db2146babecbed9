/* evict.c - evict: cartridges that are evicted and loaded again after every round end as those
 * that never left memory.
 *
 * Three documents of equal length are made of the given text. One fleet holds all of them, the
 * other one at a time. Isolated conversations depend on the document and the round alone, and with
 * equal lengths both fleets take the documents in turns, so every file must agree byte for byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "fleet/fleet_dir.h"
#include "fleet/hooks.h"
#include "gate/gate.h"
#include "trainer/trainer.h"

enum { N_DOCS = 3 };

typedef struct piece {
  const char *text;
  size_t len, tokens;
} piece;

static int by_tokens_descending(const void *a, const void *b) {
  const piece *x = a, *y = b;
  return x->tokens > y->tokens ? -1 : x->tokens < y->tokens;
}

/* Equal pieces of the text, the one with most tokens first: that is the order of turns. */
static int cut(piece out[N_DOCS], const fl_buf *text, const fl_model *m, fl_err *err) {
  size_t at = 0;
  for (size_t i = 0; i < N_DOCS; i++) {
    size_t end = fl_utf8_whole_prefix(text->data, text->len * (i + 1) / N_DOCS);
    fl_ids ids = { 0 };
    out[i] = (piece){ .text = text->data + at, .len = end - at };
    int rc = fl_tokenize(fl_model_tokenizer(m), &ids, out[i].text, out[i].len, 0, err);
    out[i].tokens = ids.len;
    fl_ids_release(&ids);
    if (rc != FL_OK) return rc;
    at = end;
  }
  qsort(out, N_DOCS, sizeof *out, by_tokens_descending);
  return FL_OK;
}

/* Turns a document takes before unequal lengths would give one of them two in a row. */
static size_t even_turns(const piece p[N_DOCS], size_t wanted) {
  size_t turns = 1;
  while (turns < wanted && p[0].tokens * (turns + 1) < p[N_DOCS - 1].tokens * (turns + 2)) turns++;
  return turns;
}

static void release_docs(fl_source_list *l) {
  for (size_t i = 0; l->doc && i < l->n; i++) {
    fl_free(l->doc[i].name);
    fl_free(l->doc[i].text);
  }
  fl_free(l->doc);
}

static int make_docs(fl_source_list *out, const piece p[N_DOCS], fl_err *err) {
  fl_source_list l = { .doc = fl_calloc(N_DOCS, sizeof *l.doc), .n = N_DOCS };
  bool ok = l.doc != NULL;
  for (size_t i = 0; i < N_DOCS && ok; i++) {
    l.doc[i].name = fl_asprintf("piece-%zu", i);
    l.doc[i].text = fl_strndup(p[i].text, p[i].len);
    l.doc[i].len = p[i].len;
    fl_hash_bytes(l.doc[i].hash, p[i].text, p[i].len);
    ok = l.doc[i].name && l.doc[i].text;
  }
  if (ok) {
    *out = l;
    return FL_OK;
  }
  release_docs(&l);
  return fl_fail(err, FL_ENOMEM, "not enough memory");
}

static int train(const gate_run *g, const gate_model *m, const char *dir,
                 const fl_source_list *docs, const fl_train_options *o, fl_err *err) {
  fl_fleet *f = NULL;
  fl_open_options how = { .allow_add = true };
  fl_train_hooks hooks = { .poll = g->opt->poll };
  int rc = fl_fleet_open(&f, dir, m->model, m->team, docs, o, &how, err);
  if (rc == FL_OK) rc = fl_fleet_train(f, &hooks, err);
  if (f) fl_fleet_close(f);
  return rc;
}

static bool same_file(const char *dir_a, const char *a, const char *dir_b, const char *b) {
  fl_buf x = { 0 }, y = { 0 };
  char *pa = fl_fs_join(dir_a, a), *pb = fl_fs_join(dir_b, b);
  bool same = pa && pb && fl_fs_read(&x, pa, (size_t)1 << 32, NULL) == FL_OK &&
              fl_fs_read(&y, pb, (size_t)1 << 32, NULL) == FL_OK && x.len == y.len && x.len > 0 &&
              memcmp(x.data, y.data, x.len) == 0;
  fl_buf_release(&x);
  fl_buf_release(&y);
  fl_free(pa);
  fl_free(pb);
  return same;
}

static int compare(gate_run *g, const char *all, const char *few, size_t turns, fl_err *err) {
  fl_manifest ma = { 0 }, mf = { 0 };
  size_t same = 0, trained = 0;
  int rc = fl_fleet_dir_load(&ma, all, err);
  if (rc == FL_OK) rc = fl_fleet_dir_load(&mf, few, err);
  for (size_t i = 0; i < N_DOCS && rc == FL_OK; i++) {
    same += same_file(all, ma.doc[i].cart_file, few, mf.doc[i].cart_file);
    same += same_file(all, ma.doc[i].opt_file, few, mf.doc[i].opt_file);
    trained += ma.doc[i].steps == mf.doc[i].steps && ma.doc[i].steps > 0;
  }
  fl_manifest_release(&ma);
  fl_manifest_release(&mf);
  if (rc != FL_OK) return rc;
  fl_json *row = fl_json_object();
  fl_json_set_u64(row, "docs", N_DOCS);
  fl_json_set_u64(row, "turns", turns);
  fl_json_set_u64(row, "files", 2 * N_DOCS);
  fl_json_set_u64(row, "same", same);
  gate_check(g, same == 2 * N_DOCS && trained == N_DOCS, row,
             "%d documents, %zu turns each, one in memory against all: %zu/%d files agree byte for "
             "byte",
             N_DOCS, turns, same, 2 * N_DOCS);
  return FL_OK;
}

static int run_in(gate_run *g, const char *tmp, const fl_buf *text, fl_err *err) {
  gate_model m = { 0 };
  piece pieces[N_DOCS];
  fl_source_list docs = { 0 };
  fl_train_options o = g->opt->train;
  char *all = fl_fs_join(tmp, "all"), *few = fl_fs_join(tmp, "few");
  int rc =
      all && few ? gate_model_open(&m, g, NULL, err) : fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK) rc = cut(pieces, text, m.model, err);
  if (rc == FL_OK) rc = make_docs(&docs, pieces, err);
  size_t turns = rc == FL_OK ? even_turns(pieces, (o.rounds + N_DOCS - 1) / N_DOCS) : 0;
  o.rounds = turns * N_DOCS;
  o.p_iso = 1;
  o.budget = N_DOCS;
  o.budget_bytes = 0;
  o.rotate_every = 0;
  if (rc == FL_OK) rc = train(g, &m, all, &docs, &o, err);
  o.budget = 1;
  o.rotate_every = 1;
  o.evict_frac = 1;
  if (rc == FL_OK) rc = train(g, &m, few, &docs, &o, err);
  if (rc == FL_OK) rc = compare(g, all, few, turns, err);
  release_docs(&docs);
  gate_model_close(&m);
  fl_free(all);
  fl_free(few);
  return rc;
}

static int run(gate_run *g, fl_err *err) {
  fl_source_list docs = { 0 };
  fl_buf text = { 0 };
  char *tmp = NULL;
  int rc = fl_train_options_check(&g->opt->train, err);
  if (rc == FL_OK) rc = gate_sources(&docs, g, err);
  for (size_t i = 0; i < docs.n && rc == FL_OK; i++)
    fl_buf_append(&text, docs.doc[i].text, docs.doc[i].len);
  if (rc == FL_OK && text.oom) rc = fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK) rc = gate_temp_dir(&tmp, err);
  if (rc == FL_OK) rc = run_in(g, tmp, &text, err);
  gate_temp_remove(tmp);
  fl_buf_release(&text);
  fl_source_release(&docs);
  return rc;
}

const gate gate_evict = { "evict", "evicted and loaded again equals never evicted", run };
