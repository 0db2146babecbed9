/* lexical.c - opening a lexical index and searching it. Rows come in the order of their documents,
 * so that a document is done when the next one begins. */
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "retrieval/lexical_db.h"
#include "retrieval/words.h"

/* What a document's other passages count of words that its best passage lacks or has less of. */
static const double rest_share = 0.1;

int fl_lexical_open(fl_lexical **out, const char *path, fl_err *err) {
  fl_lexical *x = NULL;
  sqlite3_stmt *s = NULL;
  uint64_t size = 0;
  bool more = false;
  int rc = fl_fs_size(&size, path, err); /* says that it is not there in the program's words */
  if (rc == FL_OK) rc = fl_lexical_connect(&x, path, SQLITE_OPEN_READONLY, err);
  if (rc == FL_OK) rc = fl_lexical_exec(x, "PRAGMA mmap_size=1099511627776", err);
  if (rc == FL_OK) rc = fl_lexical_exec(x, "PRAGMA cell_size_check=1", err);
  if (rc == FL_OK)
    rc = fl_lexical_prepare(x, &s, "SELECT value FROM meta WHERE key = 'format'", err);
  if (rc == FL_OK) rc = fl_lexical_step(x, s, &more, err);
  if (rc == FL_OK) {
    const char *format = more ? (const char *)sqlite3_column_text(s, 0) : NULL;
    if (format == NULL || strcmp(format, FL_LEXICAL_FORMAT) != 0)
      rc = fl_fail(err, FL_EINPUT, "%s: of another version; rebuild it with flotilla index", path);
  }
  (void)sqlite3_finalize(s);
  if (rc == FL_OK) *out = x;
  else fl_lexical_close(x);
  return rc;
}

static int by_id(const void *a, const void *b) {
  const fl_lexical_doc *const *x = a, *const *y = b;
  return ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

static bool same(const fl_lexical_doc *d, sqlite3_stmt *s) {
  const char *name = (const char *)sqlite3_column_text(s, 1);
  const char *hash = (const char *)sqlite3_column_text(s, 2);
  return sqlite3_column_int64(s, 0) == d->id && name != NULL && strcmp(name, d->name) == 0 &&
         hash != NULL && d->hash != NULL && strcmp(hash, d->hash) == 0;
}

bool fl_lexical_is_current(fl_lexical *x, const fl_lexical_doc *docs, size_t n) {
  const fl_lexical_doc **sorted = fl_calloc(n + 1, sizeof *sorted);
  sqlite3_stmt *s = NULL;
  bool more = true, current = sorted != NULL;
  size_t i = 0;
  if (sorted == NULL) return false;
  for (size_t k = 0; k < n; k++) sorted[k] = &docs[k];
  qsort(sorted, n, sizeof *sorted, by_id);
  if (fl_lexical_prepare(x, &s, "SELECT id, name, hash FROM doc ORDER BY id", NULL) != FL_OK)
    current = false;
  while (current && fl_lexical_step(x, s, &more, NULL) == FL_OK && more) {
    current = i < n && same(sorted[i], s);
    i++;
  }
  (void)sqlite3_finalize(s);
  fl_free(sorted);
  return current && !more && i == n;
}

/* --- the question --- */

typedef struct asking {
  fl_lexical_hits *hits;
  bool stops; /* stop words are taken too */
  bool oom;
} asking;

static int take_word(void *ctx, const fl_word *w) {
  asking *a = ctx;
  fl_lexical_hits *h = a->hits;
  if (h->n_words == FL_LEXICAL_WORDS) return 1;
  if (!a->stops && fl_word_is_stop(w->text)) return 0;
  for (size_t i = 0; i < h->n_words; i++)
    if (strcmp(h->word[i], w->text) == 0) return 0;
  char *copy = fl_strndup(w->text, w->len);
  if (copy == NULL) {
    a->oom = true;
    return 1;
  }
  h->word[h->n_words++] = copy;
  return 0;
}

/* The words as an expression of FTS5: each in quotes, so that none of them is an operator. */
static int read_question(fl_lexical_hits *h, fl_buf *match, const char *text, size_t len) {
  asking a = { .hits = h };
  h->word = fl_calloc(FL_LEXICAL_WORDS, sizeof *h->word);
  if (h->word == NULL) return FL_ENOMEM;
  (void)fl_words_each(text, len, take_word, &a);
  if (h->n_words == 0) {
    a.stops = true;
    (void)fl_words_each(text, len, take_word, &a);
  }
  for (size_t i = 0; i < h->n_words; i++) {
    fl_buf_puts(match, i > 0 ? " OR \"" : "\"");
    for (const char *p = h->word[i]; *p != '\0'; p++) {
      if (*p == '"') fl_buf_putc(match, '"');
      fl_buf_putc(match, *p);
    }
    fl_buf_putc(match, '"');
  }
  return a.oom || match->oom ? FL_ENOMEM : FL_OK;
}

/* --- the best --- */

static int better(const void *a, const void *b) {
  const fl_lexical_hit *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  if (x->doc != y->doc) return x->doc < y->doc ? -1 : 1;
  return (x->passage > y->passage) - (x->passage < y->passage);
}

typedef struct ranking {
  fl_lexical_hit *v; /* best first */
  size_t n, most;
} ranking;

static void rank(ranking *r, const fl_lexical_hit *h) {
  size_t at = r->n;
  if (r->n == r->most) {
    if (r->most == 0 || better(h, &r->v[r->n - 1]) > 0) return;
    at--;
  } else {
    r->n++;
  }
  for (; at > 0 && better(h, &r->v[at - 1]) < 0; at--) r->v[at] = r->v[at - 1];
  r->v[at] = *h;
}

typedef struct search {
  ranking passages, docs;
  fl_lexical_hit doc;            /* the document that is being read; score 0: none yet */
  double most[FL_LEXICAL_WORDS]; /* the most that a passage of it has by each word */
  size_t matched;
} search;

static void end_document(search *s, size_t n_words) {
  double all = 0;
  if (s->doc.score <= 0) return;
  for (size_t i = 0; i < n_words; i++) all += s->most[i];
  if (all > s->doc.score) s->doc.score += rest_share * (all - s->doc.score);
  rank(&s->docs, &s->doc);
  s->matched++;
  s->doc.score = 0;
}

static void take_row(search *s, const fl_lexical_query *q, sqlite3_int64 row, double score) {
  fl_lexical_hit h = { .doc = (uint32_t)(row >> FL_LEXICAL_PASSAGE_BITS),
                       .passage = (uint32_t)(row & ((1 << FL_LEXICAL_PASSAGE_BITS) - 1)),
                       .score = score };
  if (s->doc.score > 0 && s->doc.doc != h.doc) end_document(s, q->n);
  if (s->doc.score <= 0) {
    memset(s->most, 0, sizeof s->most);
    s->doc = (fl_lexical_hit){ .doc = h.doc };
  }
  for (size_t i = 0; i < q->n; i++) {
    if (q->part[i] > 0) h.words |= (uint64_t)1 << i;
    if (q->part[i] > s->most[i]) s->most[i] = q->part[i];
  }
  if (score > s->doc.score) {
    s->doc.score = score;
    s->doc.passage = h.passage;
  }
  s->doc.words |= h.words;
  rank(&s->passages, &h);
}

static int run(fl_lexical *x, search *s, const char *match, fl_err *err) {
  sqlite3_stmt *q = NULL;
  bool more = true;
  int rc = fl_lexical_prepare(
      x, &q, "SELECT rowid, word_score(words) FROM words WHERE words MATCH ?1", err);
  if (rc == FL_OK && sqlite3_bind_text(q, 1, match, -1, SQLITE_STATIC) != SQLITE_OK)
    rc = fl_lexical_fail(x, SQLITE_NOMEM, err);
  while (rc == FL_OK && (rc = fl_lexical_step(x, q, &more, err)) == FL_OK && more)
    take_row(s, &x->query, sqlite3_column_int64(q, 0), sqlite3_column_double(q, 1));
  (void)sqlite3_finalize(q);
  end_document(s, x->query.n);
  return rc;
}

static int no_memory(fl_err *err) {
  return fl_fail(err, FL_ENOMEM, "not enough memory to search the lexical index");
}

int fl_lexical_search(fl_lexical *x, const char *question, size_t len, size_t n_passages,
                      size_t n_docs, fl_lexical_hits *out, fl_err *err) {
  fl_lexical_hits h = { 0 };
  fl_buf match = { 0 };
  search *s = fl_calloc(1, sizeof *s);
  h.passage = fl_calloc(n_passages + 1, sizeof *h.passage);
  h.doc = fl_calloc(n_docs + 1, sizeof *h.doc);
  int rc = s == NULL || h.passage == NULL || h.doc == NULL ? no_memory(err) : FL_OK;
  if (rc == FL_OK && read_question(&h, &match, question, len) != FL_OK) rc = no_memory(err);
  if (rc == FL_OK && h.n_words > 0) {
    s->passages = (ranking){ h.passage, 0, n_passages };
    s->docs = (ranking){ h.doc, 0, n_docs };
    x->query = (fl_lexical_query){ .n = h.n_words };
    rc = run(x, s, match.data, err);
    h.n_passages = s->passages.n;
    h.n_docs = s->docs.n;
    h.matched = s->matched;
    h.full = fl_lexical_full(&x->query);
  }
  fl_buf_release(&match);
  fl_free(s);
  if (rc == FL_OK) *out = h;
  else fl_lexical_hits_release(&h);
  return rc;
}

void fl_lexical_hits_release(fl_lexical_hits *h) {
  for (size_t i = 0; i < h->n_words; i++) fl_free(h->word[i]);
  fl_free(h->word);
  fl_free(h->passage);
  fl_free(h->doc);
  *h = (fl_lexical_hits){ 0 };
}

/* --- a passage --- */

static void take_column(fl_buf *out, sqlite3_stmt *s, int col) {
  const void *text = sqlite3_column_text(s, col);
  if (text != NULL) fl_buf_append(out, text, (size_t)sqlite3_column_bytes(s, col));
}

int fl_lexical_read(fl_lexical *x, uint32_t doc, uint32_t passage, fl_lexical_passage *out,
                    fl_err *err) {
  sqlite3_stmt *s = NULL;
  fl_lexical_passage p = { 0 };
  bool more = false;
  int rc = fl_lexical_prepare(x, &s,
                              "SELECT text, heading, first, past FROM words WHERE rowid = ?1", err);
  if (rc == FL_OK)
    (void)sqlite3_bind_int64(s, 1, ((sqlite3_int64)doc << FL_LEXICAL_PASSAGE_BITS) | passage);
  if (rc == FL_OK) rc = fl_lexical_step(x, s, &more, err);
  if (rc == FL_OK && !more) rc = fl_fail(err, FL_ENOENT, "the lexical index has no such passage");
  if (rc == FL_OK) {
    take_column(&p.text, s, 0);
    take_column(&p.heading, s, 1);
    p.first = (size_t)sqlite3_column_int64(s, 2);
    p.end = (size_t)sqlite3_column_int64(s, 3);
    if (p.text.oom || p.heading.oom) rc = no_memory(err);
  }
  (void)sqlite3_finalize(s);
  if (rc == FL_OK) *out = p;
  else fl_lexical_passage_release(&p);
  return rc;
}

void fl_lexical_passage_print(const fl_lexical_passage *p, fl_buf *out) {
  if (p->heading.len > 0) {
    fl_buf_append(out, p->heading.data, p->heading.len);
    fl_buf_puts(out, "\n\n");
  }
  if (p->text.len > 0) fl_buf_append(out, p->text.data, p->text.len);
}

void fl_lexical_passage_release(fl_lexical_passage *p) {
  fl_buf_release(&p->text);
  fl_buf_release(&p->heading);
  *p = (fl_lexical_passage){ 0 };
}
