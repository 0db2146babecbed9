/* check_index.c - pieces, centring, search and the file of the index, without a model. */
#include <math.h>

#include "base/rng.h"
#include "retrieval/retrieval.h"
#include "scratch.h"

START_TEST(pieces_of_a_document) {
  static const struct {
    size_t tokens, chunk, pieces, last;
  } t[] = {
    { 0, 100, 0, 0 },     { 1, 100, 1, 1 },    { 31, 100, 1, 31 },   { 100, 100, 1, 100 },
    { 131, 100, 1, 100 }, { 132, 100, 2, 32 }, { 200, 100, 2, 100 }, { 331, 100, 3, 100 },
    { 5, 8, 1, 5 },       { 20, 8, 2, 8 }, /* a last piece of 4 is dropped: it is under 32 */
  };
  for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
    size_t n = fl_chunk_count(t[i].tokens, t[i].chunk), first = 0, end = 0;
    ck_assert_uint_eq(n, t[i].pieces);
    if (n == 0) continue;
    fl_chunk_span(t[i].tokens, t[i].chunk, n - 1, &first, &end);
    ck_assert_uint_eq(end - first, t[i].last);
  }
}
END_TEST

enum { DIM = 16, PIECES = 12, DOCS = 5 };

static fl_index *random_index(float raw[PIECES][DIM]) {
  fl_index *x = NULL;
  fl_rng r = fl_rng_stream(4, FL_RNG_TEST, 0, 0, 0);
  ck_assert_int_eq(fl_index_new(&x, DIM, NULL), FL_OK);
  for (size_t i = 0; i < PIECES; i++) {
    for (size_t j = 0; j < DIM; j++) raw[i][j] = (float)(fl_rng_normal(&r) + 3);
    ck_assert_int_eq(fl_index_add(x, raw[i], i % DOCS), FL_OK);
  }
  fl_index_finish(x);
  return x;
}

static void unit(double v[DIM]) {
  double s = 0;
  for (size_t j = 0; j < DIM; j++) s += v[j] * v[j];
  for (size_t j = 0; j < DIM; j++) v[j] /= sqrt(s);
}

/* The definition in double. Vectors of length 1 held in floats: differences under 1e-6 each. */
START_TEST(centring_is_as_defined) {
  float raw[PIECES][DIM];
  double v[PIECES][DIM], c[DIM] = { 0 };
  fl_index *x = random_index(raw);
  for (size_t i = 0; i < PIECES; i++) {
    for (size_t j = 0; j < DIM; j++) v[i][j] = raw[i][j];
    unit(v[i]);
    for (size_t j = 0; j < DIM; j++) c[j] += v[i][j] / PIECES;
  }
  for (size_t i = 0; i < PIECES; i++) {
    for (size_t j = 0; j < DIM; j++) v[i][j] -= c[j];
    unit(v[i]);
    for (size_t j = 0; j < DIM; j++) ck_assert_double_eq_tol(x->vector[i * DIM + j], v[i][j], 1e-6);
    float q[DIM];
    memcpy(q, raw[i], sizeof q);
    fl_index_centre(x, q); /* a query is treated as a piece was */
    for (size_t j = 0; j < DIM; j++) ck_assert_double_eq_tol(q[j], v[i][j], 1e-6);
  }
  fl_index_free(x);
}
END_TEST

START_TEST(vectors_without_direction_stay_finite) {
  fl_index *x = NULL;
  float v[DIM] = { 0 }, q[DIM];
  v[3] = 2;
  ck_assert_int_eq(fl_index_new(&x, DIM, NULL), FL_OK);
  ck_assert_int_eq(fl_index_add(x, v, 0), FL_OK);
  fl_index_finish(x); /* alone: not centred, so it still matches itself */
  memcpy(q, v, sizeof q);
  fl_index_centre(x, q);
  fl_rag_options o = { .docs = 2, .chunks = 8, .floor = -1 };
  fl_hits h = { 0 };
  ck_assert_int_eq(fl_index_search(x, q, 1, &o, &h, NULL), FL_OK);
  ck_assert_double_eq_tol(h.doc[0].score, 1, 1e-6);
  ck_assert_double_eq(h.margin, 0);
  fl_hits_release(&h);
  fl_index_free(x);
  ck_assert_int_eq(fl_index_new(&x, DIM, NULL), FL_OK);
  for (size_t i = 0; i < 3; i++) ck_assert_int_eq(fl_index_add(x, v, i), FL_OK);
  fl_index_finish(x); /* all alike: centred they are zero */
  for (size_t i = 0; i < 3 * DIM; i++) ck_assert(isfinite(x->vector[i]));
  ck_assert_int_eq(fl_index_search(x, q, 3, &o, &h, NULL), FL_OK);
  ck_assert_uint_eq(h.n_docs, 2); /* equal: the first pieces */
  ck_assert_uint_eq(h.doc[0].doc, 0);
  ck_assert_uint_eq(h.doc[1].doc, 1);
  fl_hits_release(&h);
  fl_index_free(x);
}
END_TEST

START_TEST(search_orders_pieces_and_documents) {
  float raw[PIECES][DIM], q[DIM];
  fl_index *x = random_index(raw);
  memcpy(q, raw[7], sizeof q);
  fl_index_centre(x, q);
  fl_hits h = { 0 };
  fl_rag_options o = { .docs = 3, .chunks = 6, .floor = -1 };
  ck_assert_int_eq(fl_index_search(x, q, DOCS, &o, &h, NULL), FL_OK);
  ck_assert_uint_eq(h.n_chunks, 6);
  ck_assert_uint_eq(h.chunk[0].chunk, 7);
  ck_assert_double_eq_tol(h.chunk[0].score, 1, 1e-5);
  for (size_t i = 1; i < h.n_chunks; i++) ck_assert(h.chunk[i].score <= h.chunk[i - 1].score);
  ck_assert_uint_eq(h.doc[0].doc, 7 % DOCS);
  ck_assert_uint_eq(h.n_ranked, DOCS);
  ck_assert_double_eq(h.margin, h.ranked[0].score - h.ranked[1].score);
  for (size_t i = 1; i < h.n_docs; i++)
    for (size_t k = 0; k < i; k++) ck_assert_uint_ne(h.doc[i].doc, h.doc[k].doc);
  double second = h.ranked[1].score;
  fl_hits_release(&h);
  o.floor = second + 1e-9;
  ck_assert_int_eq(fl_index_search(x, q, DOCS, &o, &h, NULL), FL_OK);
  ck_assert_uint_eq(h.n_docs, 1);
  fl_hits_release(&h);
  o.floor = 1.5; /* nothing is near enough */
  ck_assert_int_eq(fl_index_search(x, q, DOCS, &o, &h, NULL), FL_OK);
  ck_assert_uint_eq(h.n_docs, 0);
  fl_hits_release(&h);
  fl_index_free(x);
}
END_TEST

static const fl_index_meta meta = { "xxh3:model", 100 };

START_TEST(the_file_comes_back) {
  float raw[PIECES][DIM];
  fl_index *x = random_index(raw), *y = NULL;
  const char *path = scratch("i");
  bool own = false;
  fl_err err = { 0 };
  ck_assert_int_eq(fl_index_write(path, x, &meta, NULL), FL_OK);
  int rc = fl_index_read(&y, &own, path, DOCS, DIM, &meta, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  ck_assert(own);
  ck_assert_uint_eq(y->n, PIECES);
  ck_assert_mem_eq(x->vector, y->vector, PIECES * DIM * sizeof(float));
  ck_assert_mem_eq(x->centroid, y->centroid, DIM * sizeof(float));
  ck_assert_mem_eq(x->doc, y->doc, PIECES * sizeof(int64_t));
  fl_index_free(y);
  y = NULL;
  const fl_index_meta other = { "xxh3:other", 100 };
  ck_assert_int_eq(fl_index_read(&y, &own, path, DOCS, DIM, &other, NULL), FL_OK);
  ck_assert(!own);
  fl_index_free(y);
  y = NULL;
  ck_assert_int_eq(fl_index_read(&y, &own, path, DOCS - 1, DIM, &meta, NULL), FL_EINPUT);
  ck_assert_int_eq(fl_index_read(&y, &own, path, DOCS, DIM + 1, &meta, NULL), FL_EINPUT);
  x->vector[5] = NAN;
  ck_assert_int_eq(fl_index_write(path, x, &meta, NULL), FL_OK);
  ck_assert_int_eq(fl_index_read(&y, &own, path, DOCS, DIM, &meta, NULL), FL_EINPUT);
  x->vector[5] = 0;
  x->doc[0] = -1;
  ck_assert_int_eq(fl_index_write(path, x, &meta, NULL), FL_OK);
  ck_assert_int_eq(fl_index_read(&y, &own, path, DOCS, DIM, &meta, NULL), FL_EINPUT);
  ck_assert_ptr_null(y);
  fl_index_free(x);
}
END_TEST

Suite *suite_index(void);
Suite *suite_index(void) {
  Suite *s = suite_create("index");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, scratch_begin, scratch_end);
  tcase_add_test(t, pieces_of_a_document);
  tcase_add_test(t, centring_is_as_defined);
  tcase_add_test(t, vectors_without_direction_stay_finite);
  tcase_add_test(t, search_orders_pieces_and_documents);
  tcase_add_test(t, the_file_comes_back);
  suite_add_tcase(s, t);
  return s;
}
