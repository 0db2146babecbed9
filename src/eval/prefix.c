/* prefix.c - what stands before a question in each arm.
 *
 * The text arms hold what a reader of retrieved text would hold in the same memory: the best chunks
 * of the same index, best first, wrapped as documents are, cut to as many tokens as the retrieved
 * cartridges have rows (or four times that). */
#include "eval/state.h"

#include <string.h>

#include "base/mem.h"

enum { CHUNKS = 256 };

typedef enum whose { NONE, OWN, FOUND, EVERY } whose;
static const struct way {
  fl_arm arm;
  whose docs;   /* that stand before */
  size_t times; /* text: tokens for each row of the cartridges found */
} ways[EVAL_N_ARMS] = {
  [EVAL_BARE] = { FL_ARM_BARE, NONE, 0 },       [EVAL_CONTEXT] = { FL_ARM_CONTEXT, OWN, 0 },
  [EVAL_TEXT] = { FL_ARM_TEXT, NONE, 1 },       [EVAL_TEXT4] = { FL_ARM_TEXT, NONE, 4 },
  [EVAL_ORACLE] = { FL_ARM_CARTRIDGE, OWN, 0 }, [EVAL_RETRIEVED] = { FL_ARM_CARTRIDGE, FOUND, 0 },
  [EVAL_ALL] = { FL_ARM_CARTRIDGE, EVERY, 0 },
};

bool eval_arm_searches(eval_arm arm) { return ways[arm].times > 0 || ways[arm].docs == FOUND; }

static int retrieve(eval_state *b, fl_hits *hits, const fl_rag_options *rag, fl_err *err) {
  for (size_t i = 0; i < b->q->n; i++) {
    const char *question = b->q->q[i].question;
    if (b->o->stop()) return FL_EINTR;
    int rc = fl_fleet_retrieve(b->f, question, strlen(question), rag, &hits[i], err);
    if (rc == FL_ENOENT)
      return fl_fail(err, FL_EFAIL, "the fleet has no index; make it with flotilla index");
    if (rc != FL_OK) return rc;
  }
  return FL_OK;
}

int eval_retrieve(eval_state *b, eval_arm arm, fl_err *err) {
  int rc = FL_OK;
  if (!eval_arm_searches(arm)) return FL_OK;
  if (!b->have_hits) rc = retrieve(b, b->hits, b->o->rag, err);
  if (rc != FL_OK) return rc;
  b->have_hits = true;
  if (ways[arm].times == 0 || b->have_chunks) return FL_OK;
  fl_rag_options many = *b->o->rag;
  many.chunks = CHUNKS;
  rc = retrieve(b, b->chunks, &many, err);
  b->have_chunks = rc == FL_OK;
  return rc;
}

static int compare_sizes(size_t a, size_t b) { return (a > b) - (a < b); }

static int compare_hits(const fl_hits *a, const fl_hits *b) {
  int c = compare_sizes(a->n_docs, b->n_docs);
  for (size_t i = 0; c == 0 && i < a->n_docs; i++) c = compare_sizes(a->doc[i].doc, b->doc[i].doc);
  return c;
}

int eval_compare_prefix(const eval_state *b, eval_arm arm, size_t i, size_t j) {
  if (ways[arm].times > 0) return compare_sizes(i, j);
  switch (ways[arm].docs) {
  case NONE:
  case EVERY: return 0;
  case FOUND: return compare_hits(&b->hits[i], &b->hits[j]);
  case OWN: break;
  }
  return compare_sizes(b->q->q[i].doc_index, b->q->q[j].doc_index);
}

static size_t rows_of_hits(const eval_state *b, const fl_hits *h) {
  size_t rows = 0;
  for (size_t i = 0; i < h->n_docs; i++) {
    fl_doc_info info;
    fl_fleet_doc(b->f, h->doc[i].doc, &info);
    rows += info.rows;
  }
  return rows;
}

/* docs [n_docs + 1]: room for the positions. */
static fl_prefix_spec prefix_of(const eval_state *b, eval_arm arm, size_t i, size_t *docs) {
  const struct way *w = &ways[arm];
  const fl_hits *h = &b->hits[i];
  fl_prefix_spec p = { .arm = w->arm, .docs = docs };
  if (w->docs == OWN) docs[p.n_docs++] = b->q->q[i].doc_index;
  if (w->docs == EVERY)
    for (; p.n_docs < b->n_docs; p.n_docs++) docs[p.n_docs] = p.n_docs;
  if (w->docs == FOUND)
    for (; p.n_docs < h->n_docs; p.n_docs++) docs[p.n_docs] = h->doc[p.n_docs].doc;
  if (w->times > 0) {
    p.budget = rows_of_hits(b, h) * w->times;
    if (p.budget > 0) p.hits = &b->chunks[i];
    else p.arm = FL_ARM_BARE; /* nothing was found */
  }
  return p;
}

static int check_room(const eval_state *b, eval_arm arm, size_t rows, fl_err *err) {
  const size_t n_ctx = fl_model_hparams(b->model)->n_ctx;
  if (rows == 0 || rows + b->o->max_new < n_ctx) return FL_OK;
  return fl_fail(err, FL_EUSAGE,
                 "%s: %zu rows do not fit the model's context of %zu; leave the arm out of --arms",
                 eval_arm_names[arm], rows, n_ctx);
}

int eval_prefix(fl_seq **out, size_t *n_read, eval_state *b, eval_arm arm, size_t i, fl_err *err) {
  fl_seq *seq = NULL;
  fl_ids ids = { 0 };
  size_t *docs = fl_calloc(b->n_docs + 1, sizeof *docs);
  int rc = docs ? fl_seq_new(&seq, b->pool, err) : fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK) {
    const fl_prefix_spec p = prefix_of(b, arm, i, docs);
    rc = fl_prefix_build(seq, &ids, b->texts, &p, err);
  }
  if (rc == FL_OK) rc = check_room(b, arm, fl_seq_rows(seq) + ids.len, err);
  if (rc == FL_OK && ids.len > 0) rc = fl_pass_prefill(b->pass, seq, ids.data, ids.len, NULL, err);
  *n_read = ids.len;
  fl_ids_release(&ids);
  fl_free(docs);
  if (rc != FL_OK) {
    if (seq) fl_seq_free(seq);
    return rc;
  }
  *out = seq;
  return FL_OK;
}
