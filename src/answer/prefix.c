/* prefix.c - see prefix.h. */
#include "answer/prefix.h"

#include "base/mem.h"
#include "cartridge/cartridge.h"
#include "fleet/state.h"
#include "study/study.h"

/* --- texts --- */

typedef struct entry {
  fl_buf text;
  fl_doc_text tokens;
  bool read, tokenised;
} entry;

struct fl_doc_reader {
  fl_fleet *f;
  entry *doc; /* [n] */
  size_t n;
};

int fl_doc_reader_new(fl_doc_reader **out, fl_fleet *f, fl_err *err) {
  fl_doc_reader *r = fl_calloc(1, sizeof *r);
  if (r != NULL) *r = (fl_doc_reader){ .f = f, .n = f->m.n };
  if (r != NULL) r->doc = fl_calloc(r->n + 1, sizeof *r->doc);
  if (r == NULL || r->doc == NULL) {
    fl_free(r);
    return fl_fail(err, FL_ENOMEM, "not enough memory for the documents");
  }
  *out = r;
  return FL_OK;
}

void fl_doc_reader_free(fl_doc_reader *r) {
  if (r == NULL) return;
  for (size_t i = 0; i < r->n; i++) {
    fl_buf_release(&r->doc[i].text);
    fl_doc_text_release(&r->doc[i].tokens);
  }
  fl_free(r->doc);
  fl_free(r);
}

static int text_of(const fl_buf **out, fl_doc_reader *r, size_t doc, fl_err *err) {
  if (doc >= r->n) return fl_fail(err, FL_ENOENT, "%s: no document %zu", r->f->dir, doc);
  entry *e = &r->doc[doc];
  if (!e->read) {
    fl_buf_release(&e->text);
    int rc = fl_fleet_text(r->f, doc, &e->text, err);
    if (rc != FL_OK) return rc;
    if (e->text.oom) return fl_fail(err, FL_ENOMEM, "not enough memory for a text");
    e->read = true;
  }
  *out = &e->text;
  return FL_OK;
}

static int tokens_of(const fl_doc_text **out, fl_doc_reader *r, size_t doc, fl_err *err) {
  const fl_buf *text;
  int rc = text_of(&text, r, doc, err);
  if (rc != FL_OK) return rc;
  entry *e = &r->doc[doc];
  if (!e->tokenised)
    rc = fl_doc_text_init(&e->tokens, fl_model_tokenizer(r->f->model),
                          text->data != NULL ? text->data : "", text->len, err);
  if (rc != FL_OK) return rc;
  e->tokenised = true;
  *out = &e->tokens;
  return FL_OK;
}

/* --- text in a system message --- */

/* Two texts in one message: each stands in a <document> of its own (fl_wrapped_system). */
static void part_from_last(fl_buf *text) {
  if (text->len > 0) fl_buf_puts(text, "\n</document>\n\n<document>\n");
}

static int wrap(fl_ids *ids, const fl_doc_reader *r, const fl_buf *text, size_t budget,
                fl_err *err) {
  if (text->oom) return fl_fail(err, FL_ENOMEM, "not enough memory for the documents");
  fl_ids_reset(ids);
  int rc = fl_wrapped_system(ids, r->f->model, text->data != NULL ? text->data : "", text->len,
                             budget, err);
  return rc == FL_OK && ids->oom ? fl_fail(err, FL_ENOMEM, "not enough memory for the documents")
                                 : rc;
}

static int read_documents(fl_ids *ids, fl_doc_reader *r, const fl_prefix_spec *p, fl_err *err) {
  fl_buf text = { 0 };
  int rc = FL_OK;
  for (size_t i = 0; rc == FL_OK && i < p->n_docs; i++) {
    const fl_buf *one = NULL;
    rc = text_of(&one, r, p->docs[i], err);
    if (rc != FL_OK) break;
    part_from_last(&text);
    fl_buf_append(&text, one->data, one->len);
  }
  if (rc == FL_OK && p->n_docs > 0) rc = wrap(ids, r, &text, 0, err);
  fl_buf_release(&text);
  return rc;
}

static int append_chunk(fl_buf *text, fl_doc_reader *r, const fl_hit *hit, fl_err *err) {
  const fl_doc_text *t;
  size_t first, end, len;
  int rc = tokens_of(&t, r, hit->doc, err);
  if (rc == FL_OK) rc = fl_fleet_chunk_span(r->f, hit, t->n_tokens, &first, &end, err);
  if (rc != FL_OK) return rc;
  const char *chunk = fl_doc_text_span(t, first, end, &len);
  part_from_last(text);
  fl_buf_append(text, chunk, len);
  return FL_OK;
}

static int append_passage(fl_buf *text, fl_doc_reader *r, const fl_hit *hit, fl_err *err) {
  part_from_last(text);
  return fl_fleet_passage(r->f, hit, text, err);
}

/* The best passages, or chunks where the search was by vectors alone. With a budget they come in
 * until it is full; the last is cut so that the message has exactly its tokens. */
static int read_chunks(fl_ids *ids, fl_doc_reader *r, const fl_prefix_spec *p, fl_err *err) {
  if (p->hits == NULL || fl_fleet_index_of(r->f) == NULL)
    return fl_fail(err, FL_EUSAGE, "the text arm needs a retrieval first");
  const bool passages = p->hits->n_passages > 0;
  const size_t n = passages ? p->hits->n_passages : p->hits->n_chunks;
  fl_buf text = { 0 };
  int rc = FL_OK;
  for (size_t i = 0; rc == FL_OK && i < n && (p->budget == 0 || ids->len < p->budget); i++) {
    rc = passages ? append_passage(&text, r, &p->hits->passage[i], err)
                  : append_chunk(&text, r, &p->hits->chunk[i], err);
    if (rc == FL_OK && (p->budget > 0 || i + 1 == n)) rc = wrap(ids, r, &text, 0, err);
  }
  if (rc == FL_OK && p->budget > 0 && ids->len > p->budget)
    rc = wrap(ids, r, &text, p->budget, err);
  fl_buf_release(&text);
  return rc;
}

/* --- the ways --- */

static int read_nothing(fl_ids *ids, fl_doc_reader *r, const fl_prefix_spec *p, fl_err *err) {
  (void)ids, (void)r, (void)p, (void)err;
  return FL_OK;
}

static const struct way {
  const char *name;
  bool composes; /* the documents' cartridges */
  int (*read)(fl_ids *ids, fl_doc_reader *r, const fl_prefix_spec *p, fl_err *err);
} ways[] = { [FL_ARM_CARTRIDGE] = { "cartridge", true, read_nothing },
             [FL_ARM_BARE] = { "bare", false, read_nothing },
             [FL_ARM_CONTEXT] = { "context", false, read_documents },
             [FL_ARM_TEXT] = { "text", false, read_chunks } };

const char *fl_arm_name(fl_arm a) { return a <= FL_ARM_TEXT ? ways[a].name : "unknown"; }

int fl_prefix_build(fl_seq *seq, fl_ids *ids, fl_doc_reader *r, const fl_prefix_spec *p,
                    fl_err *err) {
  const struct way *w = &ways[p->arm];
  int rc = FL_OK;
  if (w->composes && p->n_docs > 0) rc = fl_fleet_compose(r->f, seq, p->docs, p->n_docs, err);
  return rc == FL_OK ? w->read(ids, r, p, err) : rc;
}
