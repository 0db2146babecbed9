/* check_retrieval.c - questions about a document find it, and what is embedded in company; with a
 * fleet that was trained. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/rng.h"
#include "retrieval/retrieval.h"
#include "fleet_util.h"
#include "formats/safetensors.h"
#include "suite.h"

static void make_fixture_fleet(void) {
  static const char *const names[] = { "bakery.md", "library.md", "lighthouse.md", "mine.md" };
  char from[64];
  for (size_t i = 0; i < 4; i++) {
    fl_buf text = { 0 };
    snprintf(from, sizeof from, "embedded/docs/%s", names[i]);
    ck_assert_int_eq(fl_fs_read(&text, fixture(from), 1 << 20, NULL), FL_OK);
    put_doc(names[i], text.data);
    fl_buf_release(&text);
  }
  fl_train_options o = small_options();
  o.embed_chunk = 100;
  train_rounds(0, o);
}

/* The fixture's own figures (README, torch): 76 to 78 of 80 right with pieces of 64 to 160 tokens;
 * a chance hit is one in four. */
START_TEST(questions_find_their_document) {
  make_fixture_fleet();
  fl_buf text = { 0 };
  fl_json *qs = NULL;
  size_t right = 0, asked = 0;
  fl_rag_options o = { .docs = 1, .chunks = 8, .floor = -1 };
  ck_assert_int_eq(fl_fs_read(&text, fixture("embedded/questions.json"), 1 << 20, NULL), FL_OK);
  ck_assert_int_eq(fl_json_parse(&qs, text.data, text.len, NULL), FL_OK);
  fl_fleet *f = open_reader();
  for (const fl_json *q = fl_json_first(qs); q != NULL; q = fl_json_next(q)) {
    const char *doc = NULL, *question = NULL;
    fl_hits h = { 0 };
    size_t want = 0;
    ck_assert(fl_json_get_str(q, "doc", &doc) && fl_json_get_str(q, "question", &question));
    ck_assert_int_eq(fl_fleet_find(f, doc, &want), FL_OK);
    ck_assert_int_eq(fl_fleet_retrieve(f, question, strlen(question), &o, &h, NULL), FL_OK);
    ck_assert_uint_eq(h.n_docs, 1);
    right += h.doc[0].doc == want;
    asked++;
    fl_hits_release(&h);
  }
  ck_assert_uint_eq(asked, 80);
  ck_assert_msg(right >= 72, "%zu of 80", right);
  fl_fleet_close(f);
  fl_json_free(qs);
  fl_buf_release(&text);
}
END_TEST

/* Embedding in company gives the bits of embedding alone. */
START_TEST(a_vector_does_not_depend_on_company) {
  put_docs();
  train_rounds(0, small_options());
  fl_fleet *f = open_reader();
  size_t dim = fl_model_hparams(fleet_model)->d_model;
  const char *text[] = { "The late fee is four ducats.", "A lamp.", "Where is the oven?" };
  size_t len[3];
  float *all = fl_calloc(3 * dim, sizeof *all), *one = fl_calloc(dim, sizeof *one);
  for (size_t i = 0; i < 3; i++) len[i] = strlen(text[i]);
  ck_assert_int_eq(fl_embed(f, text, len, 3, all, NULL), FL_OK);
  for (size_t i = 0; i < 3; i++) {
    ck_assert_int_eq(fl_embed(f, &text[i], &len[i], 1, one, NULL), FL_OK);
    ck_assert_mem_eq(one, all + i * dim, dim * sizeof *one);
  }
  fl_free(all);
  fl_free(one);
  fl_fleet_close(f);
}
END_TEST

START_TEST(no_index_is_said) {
  put_docs();
  train_rounds(0, small_options());
  char *path = fl_fs_join(fleet_dir, "index.g000000.safetensors");
  unlink(path);
  fl_free(path);
  fl_fleet *f = open_reader();
  fl_hits h = { 0 };
  fl_err err = { 0 };
  fl_rag_options o = { .docs = 1, .chunks = 8, .floor = -1 };
  ck_assert_int_eq(fl_fleet_retrieve(f, "x", 1, &o, &h, &err), FL_ENOENT);
  ck_assert_ptr_nonnull(strstr(err.text, "index"));
  fl_fleet_close(f);
}
END_TEST

Suite *suite_retrieval(void);
Suite *suite_retrieval(void) {
  Suite *s = suite_create("retrieval");
  TCase *t = tcase_create("model");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, fleet_setup_model, fleet_teardown_model);
  tcase_add_test(t, questions_find_their_document);
  tcase_add_test(t, a_vector_does_not_depend_on_company);
  tcase_add_test(t, no_index_is_said);
  suite_add_tcase(s, t);
  return s;
}
