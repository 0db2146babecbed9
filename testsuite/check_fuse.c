/* check_fuse.c - the rule that makes one ranking of two, and which documents are chosen. */
#include <string.h>

#include "retrieval/fuse.h"
#include "suite.h"

enum { N = 5 };
/*                            doc    words  cosine          */
static const fl_hit found[N] = { { .doc = 0, .words = 0.0, .cosine = 0.9 },
                                 { .doc = 1, .words = 0.5, .cosine = 0.1 },
                                 { .doc = 2, .words = 0.4, .cosine = -0.3 },
                                 { .doc = 3, .words = 0.0, .cosine = -2 }, /* found by none */
                                 { .doc = 4, .words = 0.5, .cosine = -2 } };

static void order(fl_rag_by by, const size_t *docs, size_t n) {
  fl_hit v[N];
  memcpy(v, found, sizeof v);
  fl_fuse(v, N, by);
  for (size_t i = 0; i < n; i++) ck_assert_uint_eq(v[i].doc, docs[i]);
  for (size_t i = 1; i < N; i++) ck_assert(v[i].score <= v[i - 1].score);
}

START_TEST(each_way_has_its_order) {
  order(FL_RAG_LEXICAL, (const size_t[]){ 1, 4, 2 }, 3);
  order(FL_RAG_EMBEDDING, (const size_t[]){ 0, 1, 2 }, 3);
  order(FL_RAG_HYBRID, (const size_t[]){ 1, 4, 2, 0 }, 4);
}
END_TEST

START_TEST(ranks_are_of_each_ranking) {
  static const uint32_t by_words[N] = { 0, 1, 3, 0, 2 }, by_cosine[N] = { 1, 2, 3, 0, 0 };
  fl_hit v[N];
  memcpy(v, found, sizeof v);
  fl_fuse(v, N, FL_RAG_HYBRID);
  for (size_t i = 0; i < N; i++) {
    ck_assert_uint_eq(v[i].words_rank, by_words[v[i].doc]);
    ck_assert_uint_eq(v[i].cosine_rank, by_cosine[v[i].doc]);
  }
}
END_TEST

START_TEST(the_rule) {
  const double c = FL_FUSE_COSINE;
  ck_assert_double_eq(fl_fuse_score(FL_RAG_LEXICAL, 0.3, 0.9), 0.3);
  ck_assert_double_eq(fl_fuse_score(FL_RAG_EMBEDDING, 0.3, -0.9), -0.9);
  ck_assert_double_eq_tol(fl_fuse_score(FL_RAG_HYBRID, 0.3, 0.9), (1 - c) * 0.3 + c * 0.9, 1e-15);
  ck_assert_double_eq_tol(fl_fuse_score(FL_RAG_HYBRID, 0.3, -0.9), (1 - c) * 0.3, 1e-15);
}
END_TEST

/* A gain of as much as the words can give at most is worth 1. */
START_TEST(gains_move_what_was_weighed) {
  fl_hit v[N];
  memcpy(v, found, sizeof v);
  fl_fuse(v, N, FL_RAG_LEXICAL);
  v[0].gain = 1;
  v[1].gain = 4; /* document 4 */
  fl_fuse_gains(v, 2, 20);
  ck_assert_uint_eq(v[0].doc, 4);
  ck_assert_double_eq_tol(v[0].score, 0.5 + 4.0 / 20, 1e-12);
  ck_assert_double_eq_tol(v[1].score, 0.5 + 1.0 / 20, 1e-12);
  ck_assert_uint_eq(v[2].doc, 2);
  fl_fuse_gains(v, 2, 0); /* a question without words: nothing to compare with */
  ck_assert_uint_eq(v[0].doc, 4);
}
END_TEST

static size_t choose(fl_hits *h, fl_rag_options o, double least_cosine) {
  fl_hit v[N];
  memcpy(v, found, sizeof v);
  fl_fuse(v, N, (fl_rag_by)o.by);
  fl_fuse_choose(h, v, N, &o, least_cosine);
  return h->n_docs;
}

START_TEST(choosing) {
  fl_hit doc[N + 1], ranked[N + 1];
  fl_hits h = { .doc = doc, .ranked = ranked };
  fl_rag_options o = { .docs = 2, .chunks = 8, .floor = -1, .by = FL_RAG_HYBRID };
  ck_assert_uint_eq(choose(&h, o, -1), 2);
  ck_assert_uint_eq(h.n_ranked, 4); /* the one that nothing found is not among them */
  ck_assert_double_eq(h.margin, h.ranked[0].score - h.ranked[1].score);
  o.docs = 9;
  ck_assert_uint_eq(choose(&h, o, -1), 4);
  o.floor = 0.3;
  ck_assert_uint_eq(choose(&h, o, -1), 3);
  o.floor = 0.99;
  ck_assert_uint_eq(choose(&h, o, -1), 0);
  o.floor = -1;
  o.chunks = 1; /* the first by words, and whose chunk is the best */
  ck_assert_uint_eq(choose(&h, o, 0.9), 2);
  ck_assert_uint_eq(h.doc[0].doc, 1);
  ck_assert_uint_eq(h.doc[1].doc, 0);
  o.by = FL_RAG_LEXICAL;
  ck_assert_uint_eq(choose(&h, o, 0.9), 1);
  o.by = FL_RAG_EMBEDDING;
  ck_assert_uint_eq(choose(&h, o, 0.9), 1);
  ck_assert_uint_eq(h.doc[0].doc, 0);
}
END_TEST

Suite *suite_fuse(void);
Suite *suite_fuse(void) {
  Suite *s = suite_create("fuse");
  TCase *core = tcase_create("Core");
  tcase_add_test(core, each_way_has_its_order);
  tcase_add_test(core, ranks_are_of_each_ranking);
  tcase_add_test(core, the_rule);
  tcase_add_test(core, gains_move_what_was_weighed);
  tcase_add_test(core, choosing);
  suite_add_tcase(s, core);
  return s;
}
