/* check_lexical.c - the index of words: scores against the formula written out, what matches what,
 * changes document by document, files that are damaged. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/rng.h"
#include "retrieval/lexical.h"
#include "suite.h"

enum { MAX_DOCS = 8 };

typedef struct library {
  fl_lexical_doc doc[MAX_DOCS];
  const char *text[MAX_DOCS];
  size_t n;
  size_t asked;      /* how many texts were asked for */
  size_t fails_from; /* of them, from this one on FL_EINPUT; 0: none */
} library;

static char dir[64], *path, *other;

static void setup(void) {
  snprintf(dir, sizeof dir, "/tmp/flotilla-lexical.XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(dir));
  path = fl_fs_join(dir, "index.g000000.sqlite");
  other = fl_fs_join(dir, "index.g000001.sqlite");
}

static void teardown(void) {
  fl_fs_remove(path);
  fl_fs_remove(other);
  ck_assert_int_eq(rmdir(dir), 0); /* nothing else was left */
  fl_free(path);
  fl_free(other);
}

static int read_text(void *ctx, size_t i, fl_buf *out, fl_err *err) {
  library *l = ctx;
  l->asked++;
  if (l->fails_from > 0 && l->asked >= l->fails_from)
    return fl_fail(err, FL_EINPUT, "%s: changed", l->doc[i].name);
  fl_buf_puts(out, l->text[i]);
  return FL_OK;
}

static void put(library *l, uint32_t id, const char *name, const char *hash, const char *text) {
  l->text[l->n] = text;
  l->doc[l->n++] = (fl_lexical_doc){ id, name, hash };
}

static int build(fl_lexical **out, const char *to, const char *from, library *l, fl_err *err) {
  const fl_lexical_source s = { l->doc, l->n, read_text, l };
  return fl_lexical_build(out, to, from, &s, err);
}

static fl_lexical *made(library *l) {
  fl_lexical *x = NULL;
  fl_err err = { 0 };
  ck_assert_msg(build(&x, NULL, NULL, l, &err) == FL_OK, "%s", err.text);
  return x;
}

static fl_lexical_hits ask(fl_lexical *x, const char *q) {
  fl_lexical_hits h = { 0 };
  fl_err err = { 0 };
  ck_assert_msg(fl_lexical_search(x, q, strlen(q), 10, 10, &h, &err) == FL_OK, "%s: %s", q,
                err.text);
  return h;
}

/* The ids of the documents found, best first. */
static void finds(fl_lexical *x, const char *q, const uint32_t *id, size_t n) {
  fl_lexical_hits h = ask(x, q);
  ck_assert_msg(h.n_docs == n, "%s: %zu documents, not %zu", q, h.n_docs, n);
  for (size_t i = 0; i < n; i++) ck_assert_uint_eq(h.doc[i].doc, id[i]);
  fl_lexical_hits_release(&h);
}
#define FINDS(x, q, ...)                                                                           \
  finds(x, q, (const uint32_t[]){ __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / 4)

static void harbour(library *l) {
  put(l, 7, "docs/harbour.md", "a",
      "# Harbour\n\nBoats are moored at the pier. Call fl_embed(3.14).");
  put(l, 2, "docs/bakery.md", "b", "# Bakery\n\nBread is baked with --rag-floor 0.2 at night.");
  put(l, 5, "docs/mine.md", "c", "The miners' lamps are lit; a boat was never seen. HTMLParser.");
}

/* Three passages of one short line: lengths 4, 4 and 2 without names that count. */
START_TEST(scores_by_the_formula) {
  library l = { 0 };
  put(&l, 1, "x", "a", "pier pier crab gull");
  put(&l, 2, "y", "b", "pier worm moss fern");
  put(&l, 3, "z", "c", "crab kelp");
  fl_lexical *x = made(&l);
  fl_lexical_hits h = ask(x, "pier crab");
  const double k = 0.9, b = 0.4, average = 10.0 / 3;
  const double idf = log(1 + (3 - 2 + 0.5) / (2 + 0.5)); /* each is in two of three */
  const double four = 1 / (1 - b + b * 4 / average), two = 1 / (1 - b + b * 2 / average);
  const double want1 = idf * (k + 1) * (2 * four / (2 * four + k) + four / (four + k));
  const double want2 = idf * (k + 1) * four / (four + k);
  const double want3 = idf * (k + 1) * two / (two + k);
  ck_assert_uint_eq(h.n_docs, 3);
  ck_assert_uint_eq(h.n_passages, 3);
  ck_assert_uint_eq(h.matched, 3);
  ck_assert_uint_eq(h.doc[0].doc, 1);
  ck_assert_uint_eq(h.doc[1].doc, 3);
  /* Sums of a few products: rounding apart, the same. */
  ck_assert_double_eq_tol(h.doc[0].score, want1, 1e-12);
  ck_assert_double_eq_tol(h.doc[1].score, want3, 1e-12);
  ck_assert_double_eq_tol(h.doc[2].score, want2, 1e-12);
  ck_assert_double_eq_tol(h.full, 2 * idf * (k + 1), 1e-12);
  ck_assert_uint_eq(h.doc[0].words, 3);
  ck_assert_uint_eq(h.doc[1].words, 2);
  ck_assert_str_eq(h.word[0], "pier");
  fl_lexical_hits_release(&h);
  fl_lexical_close(x);
}
END_TEST

START_TEST(words_of_all_kinds) {
  library l = { 0 };
  harbour(&l);
  fl_lexical *x = made(&l);
  FINDS(x, "Where is a mooring for boats?", 7, 5); /* by stems; "boat" alone in the other */
  FINDS(x, "fl_embed", 7);
  FINDS(x, "3.14", 7);
  FINDS(x, "embed", 7); /* a part of an identifier */
  FINDS(x, "what does --rag-floor do", 2);
  FINDS(x, "floor", 2);
  FINDS(x, "the parser", 5);
  FINDS(x, "bakery", 2); /* heading and name */
  FINDS(x, "MINE", 5);   /* the name alone, not \"miners\" */
  fl_lexical_hits h = ask(x, "zebra");
  ck_assert_uint_eq(h.n_docs, 0);
  ck_assert_double_eq(h.full, 0);
  fl_lexical_hits_release(&h);
  fl_lexical_close(x);
}
END_TEST

START_TEST(stop_words_count_when_there_is_nothing_else) {
  library l = { 0 };
  harbour(&l);
  fl_lexical *x = made(&l);
  fl_lexical_hits h = ask(x, "what was the");
  ck_assert_uint_eq(h.n_words, 3);
  ck_assert_uint_eq(h.doc[0].doc, 5); /* has "was" */
  fl_lexical_hits_release(&h);
  h = ask(x, " ... ");
  ck_assert_uint_eq(h.n_words, 0);
  ck_assert_uint_eq(h.n_docs, 0);
  ck_assert_double_eq(h.full, 0);
  fl_lexical_hits_release(&h);
  fl_lexical_close(x);
}
END_TEST

/* What FTS5 would read as an operator, a column, a prefix or the end of a text. */
START_TEST(a_question_is_never_syntax) {
  static const char *const hostile[] = { "pier AND NOT pier",
                                         "text : pier",
                                         "pier*",
                                         "\"pier",
                                         "NEAR(pier lamp, 2)",
                                         "{text name} : pier",
                                         "^pier",
                                         "pier) OR (",
                                         "pier'; DROP TABLE words; --",
                                         "-pier",
                                         "\"\" pier \"\"",
                                         "pier + lamps",
                                         "pier OR",
                                         "(((pier" };
  library l = { 0 };
  harbour(&l);
  fl_lexical *x = made(&l);
  for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
    fl_lexical_hits h = ask(x, hostile[i]);
    bool found = false;
    for (size_t k = 0; k < h.n_docs; k++) found = found || h.doc[k].doc == 7;
    ck_assert_msg(found, "%s", hostile[i]);
    fl_lexical_hits_release(&h);
  }
  fl_buf many = { 0 };
  for (int i = 0; i < 500; i++) fl_buf_printf(&many, "word%d ", i);
  fl_lexical_hits h = ask(x, many.data);
  ck_assert_uint_eq(h.n_words, FL_LEXICAL_WORDS);
  fl_lexical_hits_release(&h);
  fl_buf_release(&many);
  fl_lexical_close(x);
}
END_TEST

START_TEST(passages_can_be_read) {
  library l = { 0 };
  harbour(&l);
  fl_lexical *x = made(&l);
  fl_lexical_hits h = ask(x, "bread");
  fl_lexical_passage p = { 0 };
  ck_assert_int_eq(fl_lexical_read(x, h.passage[0].doc, h.passage[0].passage, &p, NULL), FL_OK);
  ck_assert_str_eq(p.heading.data, "Bakery");
  ck_assert_str_eq(p.text.data, l.text[1]);
  ck_assert_uint_eq(p.first, 0);
  ck_assert_uint_eq(p.end, strlen(l.text[1]));
  fl_buf whole = { 0 };
  fl_lexical_passage_print(&p, &whole);
  ck_assert(strncmp(whole.data, "Bakery\n\n# Bakery", 16) == 0);
  fl_buf_release(&whole);
  fl_lexical_passage_release(&p);
  ck_assert_int_eq(fl_lexical_read(x, 7, 99, &p, NULL), FL_ENOENT);
  fl_lexical_hits_release(&h);
  fl_lexical_close(x);
}
END_TEST

/* A document of many passages: it is one document, and its best passage is the one asked for. */
START_TEST(documents_of_many_passages) {
  library l = { 0 };
  fl_buf b = { 0 };
  for (int i = 0; i < 30; i++) {
    fl_buf_printf(&b, "# Part %d\n\n", i);
    for (int k = 0; k < 40; k++) fl_buf_puts(&b, "common words stand here ");
    fl_buf_printf(&b, "unique%d\n\n", i);
  }
  put(&l, 3, "long.md", "a", b.data);
  put(&l, 4, "short.md", "b", "common");
  fl_lexical *x = made(&l);
  fl_lexical_hits h = ask(x, "common unique17");
  ck_assert_uint_eq(h.n_docs, 2);
  ck_assert_uint_eq(h.doc[0].doc, 3);
  ck_assert_uint_eq(h.n_passages, 10);
  ck_assert_uint_eq(h.passage[0].passage, h.doc[0].passage);
  for (size_t i = 1; i < h.n_passages; i++) ck_assert(h.passage[i].score <= h.passage[i - 1].score);
  fl_lexical_passage p = { 0 };
  ck_assert_int_eq(fl_lexical_read(x, 3, h.doc[0].passage, &p, NULL), FL_OK);
  ck_assert_ptr_nonnull(strstr(p.text.data, "unique17\n"));
  fl_lexical_passage_release(&p);
  fl_lexical_hits_release(&h);
  fl_lexical_close(x);
  fl_buf_release(&b);
}
END_TEST

/* --- files --- */

static void same_results(fl_lexical *a, fl_lexical *b, const char *q) {
  fl_lexical_hits h = ask(a, q), k = ask(b, q);
  ck_assert_uint_eq(h.n_docs, k.n_docs);
  for (size_t i = 0; i < h.n_docs; i++) {
    ck_assert_uint_eq(h.doc[i].doc, k.doc[i].doc);
    ck_assert_double_eq(h.doc[i].score, k.doc[i].score);
  }
  fl_lexical_hits_release(&h);
  fl_lexical_hits_release(&k);
}

START_TEST(changes_are_made_document_by_document) {
  library l = { 0 }, now = { 0 };
  harbour(&l);
  fl_lexical *x = NULL;
  ck_assert_int_eq(build(&x, path, NULL, &l, NULL), FL_OK);
  ck_assert(fl_lexical_is_current(x, l.doc, l.n));
  fl_lexical_close(x);
  put(&now, 9, "docs/new.md", "d", "A kite over the pier.");       /* joins */
  put(&now, 5, "docs/mine.md", "c2", "Coal is carried by boats."); /* changed */
  put(&now, 2, "docs/bakery.md", "b", NULL);                       /* as it was: not asked for */
  ck_assert_int_eq(build(&x, other, path, &now, NULL), FL_OK);     /* 7 is gone */
  ck_assert_uint_eq(now.asked, 2);
  ck_assert(fl_lexical_is_current(x, now.doc, now.n));
  ck_assert(!fl_lexical_is_current(x, l.doc, l.n));
  FINDS(x, "pier", 9);
  FINDS(x, "boats coal", 5);
  FINDS(x, "bread", 2);
  now.text[2] = l.text[1];
  fl_lexical *whole = made(&now);
  same_results(x, whole, "pier boats bread lamps night");
  fl_lexical_close(whole);
  fl_lexical_close(x);
}
END_TEST

static void bytes_of(fl_buf *b, const char *file) {
  ck_assert_int_eq(fl_fs_read(b, file, (size_t)1 << 24, NULL), FL_OK);
}

START_TEST(the_same_documents_give_the_same_bytes) {
  library l = { 0 };
  fl_buf a = { 0 }, b = { 0 };
  harbour(&l);
  ck_assert_int_eq(build(NULL, path, NULL, &l, NULL), FL_OK);
  ck_assert_int_eq(build(NULL, other, NULL, &l, NULL), FL_OK);
  bytes_of(&a, path);
  bytes_of(&b, other);
  ck_assert_uint_eq(a.len, b.len);
  ck_assert_mem_eq(a.data, b.data, a.len);
  fl_buf_release(&a);
  fl_buf_release(&b);
}
END_TEST

START_TEST(a_failure_leaves_no_file) {
  library l = { 0 };
  fl_err err = { 0 };
  harbour(&l);
  l.fails_from = 2;
  ck_assert_int_eq(build(NULL, path, NULL, &l, &err), FL_EINPUT);
  ck_assert_str_eq(err.text, "docs/mine.md: changed"); /* in the order of ids: the second */
  ck_assert(!fl_fs_exists(path));
}
END_TEST

START_TEST(no_file_and_no_index) {
  fl_lexical *x = NULL;
  fl_err err = { 0 };
  ck_assert_int_eq(fl_lexical_open(&x, path, &err), FL_ENOENT);
  fl_sink *s = NULL;
  ck_assert_int_eq(fl_sink_open(&s, path, NULL), FL_OK);
  fl_sink_write(s, "this is no database at all, whatever its name says", 50);
  ck_assert_int_eq(fl_sink_close(s, NULL), FL_OK);
  err = (fl_err){ 0 };
  ck_assert_int_eq(fl_lexical_open(&x, path, &err), FL_EINPUT);
  ck_assert_ptr_nonnull(strstr(err.text, "rebuild it with flotilla index"));
  library l = { 0 };
  harbour(&l); /* one that cannot be used is no hindrance */
  ck_assert_int_eq(build(&x, other, path, &l, NULL), FL_OK);
  ck_assert_uint_eq(l.asked, 3);
  FINDS(x, "bread", 2);
  fl_lexical_close(x);
}
END_TEST

/* Cut short and with bytes changed: a refusal or an answer, never anything else. */
START_TEST(damaged_files) {
  library l = { 0 };
  fl_buf whole = { 0 };
  harbour(&l);
  ck_assert_int_eq(build(NULL, path, NULL, &l, NULL), FL_OK);
  bytes_of(&whole, path);
  size_t refused = 0;
  for (uint32_t trial = 0; trial < 200; trial++) {
    fl_rng r = fl_rng_stream(13, FL_RNG_TEST, trial, 0, 0);
    fl_sink *s = NULL;
    fl_buf b = { 0 };
    size_t n = trial % 2 ? whole.len : fl_rng_below(&r, (uint32_t)whole.len);
    fl_buf_append(&b, whole.data, n);
    for (int k = 0; k < 20 && trial % 2; k++)
      b.data[fl_rng_below(&r, (uint32_t)n)] = (char)fl_rng_below(&r, 256);
    ck_assert_int_eq(fl_sink_open(&s, other, NULL), FL_OK);
    if (n > 0) fl_sink_write(s, b.data, n);
    ck_assert_int_eq(fl_sink_close(s, NULL), FL_OK);
    fl_lexical *x = NULL;
    fl_lexical_hits h = { 0 };
    fl_err err = { 0 };
    int rc = fl_lexical_open(&x, other, &err);
    if (rc == FL_OK) (void)fl_lexical_is_current(x, l.doc, l.n);
    if (rc == FL_OK) rc = fl_lexical_search(x, "boats bread lamps", 17, 10, 10, &h, &err);
    ck_assert_msg(rc == FL_OK || rc == FL_EINPUT, "trial %u gave %d: %s", trial, rc, err.text);
    refused += rc != FL_OK;
    ck_assert(rc == FL_OK || err.text[0] != '\0');
    fl_lexical_hits_release(&h);
    fl_lexical_close(x);
    fl_buf_release(&b);
  }
  ck_assert_uint_gt(refused, 90);
  fl_buf_release(&whole);
}
END_TEST

START_TEST(without_memory) {
  library l = { 0 };
  harbour(&l);
  fl_lexical *x = made(&l);
  for (size_t n = 1; n < 12; n++) {
    fl_lexical_hits h = { 0 };
    fl_mem_fault_after(n);
    int rc = fl_lexical_search(x, "boats bread", 11, 4, 4, &h, NULL);
    fl_mem_fault_after(0);
    ck_assert(rc == FL_OK || rc == FL_ENOMEM);
    ck_assert(n > 1 || rc == FL_ENOMEM);
    fl_lexical_hits_release(&h);
  }
  fl_lexical_close(x);
}
END_TEST

Suite *suite_lexical(void);
Suite *suite_lexical(void) {
  Suite *s = suite_create("lexical");
  TCase *core = tcase_create("Core"), *files = tcase_create("Files");
  tcase_add_test(core, scores_by_the_formula);
  tcase_add_test(core, words_of_all_kinds);
  tcase_add_test(core, stop_words_count_when_there_is_nothing_else);
  tcase_add_test(core, a_question_is_never_syntax);
  tcase_add_test(core, passages_can_be_read);
  tcase_add_test(core, documents_of_many_passages);
  tcase_add_test(core, without_memory);
  tcase_add_checked_fixture(files, setup, teardown);
  tcase_add_test(files, changes_are_made_document_by_document);
  tcase_add_test(files, the_same_documents_give_the_same_bytes);
  tcase_add_test(files, a_failure_leaves_no_file);
  tcase_add_test(files, no_file_and_no_index);
  tcase_add_test(files, damaged_files);
  suite_add_tcase(s, core);
  suite_add_tcase(s, files);
  return s;
}
