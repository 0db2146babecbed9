/* lexical_fts.c - what a lexical index adds to FTS5: a tokenizer over words.h, on which FTS5's own
 * stemmer is put, and the score.
 *
 * score(row) = sum over the question's words of idf * f * (k + 1) / (f + k),
 * f = times in the text / (1 - b + b * words of the text / average) + weights * times elsewhere,
 * idf = ln(1 + (N - n + 0.5) / (n + 0.5)), N passages, n of them with the word. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "retrieval/lexical_db.h"
#include "retrieval/words.h"

static const double bm25_k = 0.9, bm25_b = 0.4;
enum { COL_TEXT, COL_NAME, COL_HEADING };
static const double col_weight[] = { [COL_TEXT] = 1, [COL_NAME] = 1, [COL_HEADING] = 1 };

typedef int token_fn(void *ctx, int flags, const char *token, int len, int first, int end);

typedef struct passing {
  void *ctx;
  token_fn *token;
  bool after_whole;
} passing;

/* A whole and its first part have one place, so that phrases and lengths are as without it. */
static int pass_word(void *ctx, const fl_word *w) {
  passing *p = ctx;
  int flags = p->after_whole && w->is_part ? FTS5_TOKEN_COLOCATED : 0;
  p->after_whole = w->is_whole;
  return p->token(p->ctx, flags, w->text, (int)w->len, (int)w->first, (int)w->end);
}

static int tokenize(Fts5Tokenizer *t, void *ctx, int flags, const char *text, int len,
                    token_fn *token) {
  (void)t;
  /* A question comes in words already: what stands in quotes is one. */
  if (flags & FTS5_TOKENIZE_QUERY) return token(ctx, 0, text, len, 0, len);
  passing p = { .ctx = ctx, .token = token };
  return fl_words_each(text, (size_t)len, pass_word, &p);
}

static int tokenizer_new(void *ctx, const char **arg, int n, Fts5Tokenizer **out) {
  (void)arg;
  (void)n;
  *out = ctx; /* nothing to keep: any pointer but NULL */
  return SQLITE_OK;
}

static void tokenizer_free(Fts5Tokenizer *t) { (void)t; }

/* --- the score --- */

static int count_row(const Fts5ExtensionApi *api, Fts5Context *fts, void *count) {
  (void)api;
  (void)fts;
  ++*(sqlite3_int64 *)count;
  return SQLITE_OK;
}

static int weigh(const Fts5ExtensionApi *api, Fts5Context *fts, fl_lexical_query *q) {
  sqlite3_int64 rows = 0, words = 0;
  int rc = api->xRowCount(fts, &rows);
  if (rc == SQLITE_OK) rc = api->xColumnTotalSize(fts, COL_TEXT, &words);
  for (size_t i = 0; rc == SQLITE_OK && i < q->n; i++) {
    sqlite3_int64 with = 0;
    rc = api->xQueryPhrase(fts, (int)i, &with, count_row);
    if (with > rows) with = rows;
    q->idf[i] = log(1 + ((double)(rows - with) + 0.5) / ((double)with + 0.5));
  }
  q->average = rows > 0 && words > 0 ? (double)words / (double)rows : 1;
  q->weighed = rc == SQLITE_OK;
  return rc;
}

static int count_words(const Fts5ExtensionApi *api, Fts5Context *fts, fl_lexical_query *q) {
  int n = 0, size = 0, rc = api->xInstCount(fts, &n);
  if (rc == SQLITE_OK) rc = api->xColumnSize(fts, COL_TEXT, &size);
  memset(q->part, 0, sizeof q->part);
  const double once = 1 / (1 - bm25_b + bm25_b * size / q->average);
  for (int i = 0; rc == SQLITE_OK && i < n; i++) {
    int word, col, place;
    rc = api->xInst(fts, i, &word, &col, &place);
    if (rc != SQLITE_OK || word < 0 || (size_t)word >= q->n || col < 0 || col > COL_HEADING)
      continue;
    q->part[word] += col == COL_TEXT ? once : col_weight[col];
  }
  return rc;
}

static void word_score(const Fts5ExtensionApi *api, Fts5Context *fts, sqlite3_context *ctx, int n,
                       sqlite3_value **arg) {
  fl_lexical_query *q = api->xUserData(fts);
  double sum = 0;
  (void)n;
  (void)arg;
  int rc = api->xPhraseCount(fts) == (int)q->n ? SQLITE_OK : SQLITE_ERROR;
  if (rc == SQLITE_OK && !q->weighed) rc = weigh(api, fts, q);
  if (rc == SQLITE_OK) rc = count_words(api, fts, q);
  for (size_t i = 0; rc == SQLITE_OK && i < q->n; i++) {
    q->part[i] = q->idf[i] * q->part[i] * (bm25_k + 1) / (q->part[i] + bm25_k);
    sum += q->part[i];
  }
  if (rc == SQLITE_OK) sqlite3_result_double(ctx, sum);
  else sqlite3_result_error_code(ctx, rc);
}

double fl_lexical_full(const fl_lexical_query *q) {
  double sum = 0;
  for (size_t i = 0; i < q->n; i++) sum += q->idf[i] * (bm25_k + 1);
  return sum;
}

static fts5_api *fts5_of(sqlite3 *db) {
  fts5_api *api = NULL;
  sqlite3_stmt *s = NULL;
  if (sqlite3_prepare_v2(db, "SELECT fts5(?1)", -1, &s, NULL) == SQLITE_OK) {
    (void)sqlite3_bind_pointer(s, 1, &api, "fts5_api_ptr", NULL);
    (void)sqlite3_step(s);
  }
  (void)sqlite3_finalize(s);
  return api;
}

int fl_lexical_register(fl_lexical *x, fl_err *err) {
  fts5_api *api = fts5_of(x->db);
  if (api == NULL)
    return fl_fail(err, FL_EFAIL, "this SQLite (%s) is built without FTS5", sqlite3_libversion());
  fts5_tokenizer t = { tokenizer_new, tokenizer_free, tokenize };
  int rc = api->xCreateTokenizer(api, "words", &x->query, &t, NULL);
  if (rc == SQLITE_OK) rc = api->xCreateFunction(api, "word_score", &x->query, word_score, NULL);
  return rc == SQLITE_OK ? FL_OK : fl_lexical_fail(x, rc, err);
}
