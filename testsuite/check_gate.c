/* check_gate.c - the gates: comparison of logits, the table, checks as they are told, what the gate
 * of killed trainings draws and compares, and two gates on a small model. */
#include <math.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "gate/gate.h"
#include "gate/resume.h"
#include "scratch.h"

/* --- comparison --- */

enum { VOCAB = 3 };

START_TEST(equal_logits) {
  const float a[2 * VOCAB] = { 1, 2, 3, -4, 0, 4 };
  const gate_diff d = gate_compare(a, a, 2, VOCAB);
  ck_assert_double_eq(d.max, 0);
  ck_assert_uint_eq(d.differing, 0);
  ck_assert_uint_eq(d.greedy, 2);
}
END_TEST

/* One row moves without its largest value changing place, in the other it does. */
START_TEST(differences_are_counted) {
  const float a[2 * VOCAB] = { 1, 2, 3, 0, 5, 4 }, b[2 * VOCAB] = { 1, 2.5f, 3, 0, 5, 7 };
  const gate_diff d = gate_compare(a, b, 2, VOCAB);
  ck_assert_double_eq(d.max, 3);
  ck_assert_uint_eq(d.differing, 2);
  ck_assert_uint_eq(d.greedy, 1);
}
END_TEST

START_TEST(zeros_of_both_signs_differ) {
  const float a[VOCAB] = { 0, 1, 2 }, b[VOCAB] = { -0.0f, 1, 2 };
  const gate_diff d = gate_compare(a, b, 1, VOCAB);
  ck_assert_double_eq(d.max, 0);
  ck_assert_uint_eq(d.differing, 1);
}
END_TEST

START_TEST(not_a_number_shows) {
  const float a[VOCAB] = { 0, 1, 2 }, b[VOCAB] = { 0, NAN, 2 };
  const gate_diff d = gate_compare(a, b, 1, VOCAB);
  ck_assert(!(d.max <= 1e30));
  ck_assert_uint_eq(d.differing, 1);
}
END_TEST

START_TEST(cache_types_asked_for) {
  fl_kv_type t[2];
  ck_assert_uint_eq(gate_kv_types(&(gate_options){ .kv = GATE_KV_BOTH }, t), 2);
  ck_assert(t[0] == FL_KV_F32 && t[1] == FL_KV_F16);
  ck_assert_uint_eq(gate_kv_types(&(gate_options){ .kv = GATE_KV_F16 }, t), 1);
  ck_assert_str_eq(gate_kv_name(t[0]), "f16");
  ck_assert_uint_eq(gate_kv_types(&(gate_options){ .kv = GATE_KV_F32 }, t), 1);
  ck_assert_str_eq(gate_kv_name(t[0]), "f32");
}
END_TEST

/* --- the table and what is told --- */

START_TEST(gates_by_name) {
  fl_err err = { 0 };
  for (const gate *const *g = gates; *g; g++) ck_assert_ptr_eq(gate_find((*g)->name, &err), *g);
  ck_assert_ptr_null(gate_find("compos", &err));
  ck_assert_int_eq(err.code, FL_EUSAGE);
  ck_assert_ptr_nonnull(strstr(err.text, "equiv, compose, batch, grad, logits, resume, evict"));
}
END_TEST

typedef struct heard {
  size_t n, passed;
  char last[512];
  double max_dlogit; /* the largest that a check gave */
} heard;

static void hear(void *ctx, bool pass, const char *text, fl_json *figures) {
  heard *h = ctx;
  double d = 0;
  h->n++;
  h->passed += pass;
  snprintf(h->last, sizeof h->last, "%s", text);
  if (figures && fl_json_get_num(figures, "max_dlogit", &d) && d > h->max_dlogit) h->max_dlogit = d;
  fl_json_free(figures);
}

START_TEST(checks_are_told_and_failures_counted) {
  const gate_options o = { 0 };
  heard h = { 0 };
  gate_run g = { .opt = &o, .told = hear, .ctx = &h };
  gate_check(&g, true, NULL, "%d rows", 3);
  ck_assert_str_eq(h.last, "3 rows");
  gate_check(&g, false, fl_json_object(), "other");
  ck_assert_uint_eq(h.n, 2);
  ck_assert_uint_eq(h.passed, 1);
  ck_assert_uint_eq(g.failed, 1);
}
END_TEST

/* --- kills --- */

/* A thousand draws of a training of 30 rounds that takes 10 seconds: every child may commit at
 * least one round more, none is to live longer than its share of the whole, and about a third (a
 * binomial share, +- 4 sqrt(2/9/1000) = 0.06) waits for a change of the folder. */
START_TEST(kills_are_spread) {
  enum { DRAWS = 1000, ROUNDS = 30 };
  fl_rng rng = fl_rng_stream(1, FL_RNG_TEST, 0, 0, 0);
  size_t at_a_change = 0;
  for (size_t i = 0; i < DRAWS; i++) {
    const uint64_t done = i % ROUNDS;
    const gate_doom d = gate_doom_draw(ROUNDS, done, 10, 1 + i % 5, &rng);
    ck_assert_uint_gt(d.rounds, done);
    ck_assert(d.rounds == UINT64_MAX || d.rounds < ROUNDS);
    ck_assert_double_gt(d.age_s, 0);
    ck_assert_double_lt(d.age_s, 10.0 * (double)(ROUNDS - done + 1) / (ROUNDS + 1));
    ck_assert_uint_le(d.changes, 12);
    at_a_change += d.changes > 0;
  }
  ck_assert_double_eq_tol((double)at_a_change / DRAWS, 1.0 / 3, 0.06);
}
END_TEST

/* With k kills to come a child gets one part in k + 1 of what is left. */
START_TEST(rounds_are_shared_out) {
  fl_rng rng = fl_rng_stream(1, FL_RNG_TEST, 0, 0, 0);
  ck_assert_uint_eq(gate_doom_draw(40, 0, 1, 3, &rng).rounds, 10);
  ck_assert_uint_eq(gate_doom_draw(40, 10, 1, 2, &rng).rounds, 20);
  ck_assert_uint_eq(gate_doom_draw(40, 30, 1, 9, &rng).rounds, 31);
  ck_assert_uint_eq(gate_doom_draw(40, 39, 1, 1, &rng).rounds, UINT64_MAX);
}
END_TEST

static void put(const char *dir, const char *name, const char *text) {
  char path[2048];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  scratch_put(path, text, strlen(text));
}

START_TEST(folders_are_compared) {
  char *a, *b, *other = NULL;
  size_t files = 0, same = 0;
  ck_assert_int_eq(gate_temp_dir(&a, NULL), FL_OK);
  ck_assert_int_eq(gate_temp_dir(&b, NULL), FL_OK);
  put(a, "doc-000.safetensors", "rows");
  put(b, "doc-000.safetensors", "rows");
  put(a, "doc-001.safetensors", "rows");
  put(b, "doc-001.safetensors", "rowz");
  put(a, "fleet.json", "{}");
  put(a, FL_EVENTS_FILE, "1"); /* differs by nature */
  ck_assert_int_eq(gate_compare_folders(a, b, &files, &same, &other, NULL), FL_OK);
  ck_assert_uint_eq(files, 3);
  ck_assert_uint_eq(same, 1);
  ck_assert(strcmp(other, "doc-001.safetensors") == 0 || strcmp(other, "fleet.json") == 0);
  files = same = 0;
  ck_assert_int_eq(gate_compare_folders(b, a, &files, &same, &other, NULL), FL_OK);
  ck_assert_uint_eq(files, 2);
  ck_assert_uint_eq(same, 1);
  fl_free(other);
  gate_temp_remove(b);
  ck_assert(fl_fs_is_dir(a));
  char *gone = fl_strdup(a);
  gate_temp_remove(a);
  ck_assert(!fl_fs_exists(gone));
  fl_free(gone);
}
END_TEST

/* --- on a model --- */

static gate_options on_model(char *model, size_t cap, const char *const *docs) {
  snprintf(model, cap, "%s", fixture("embedded/model.gguf"));
  gate_options o = {
    .model = model, .threads = 1, .docs = docs, .n_docs = 1, .suffix = 6, .streams = 3
  };
  fl_train_options_default(&o.train);
  o.train.p = 20;
  return o;
}

START_TEST(a_composition_equals_the_prefill) {
  char model[4096], doc[4096];
  snprintf(doc, sizeof doc, "%s", fixture("embedded/docs/bakery.md"));
  const char *const docs[] = { doc };
  const gate_options o = on_model(model, sizeof model, docs);
  heard h = { .max_dlogit = -1 };
  gate_run g = { .opt = &o, .told = hear, .ctx = &h };
  fl_err err = { 0 };
  ck_assert_msg(gate_compose.run(&g, &err) == FL_OK, "%s", err.text);
  ck_assert_uint_eq(h.n, 2);
  ck_assert_uint_eq(h.passed, 2);
  ck_assert_uint_eq(g.failed, 0);
  ck_assert_double_eq(h.max_dlogit, 0);
}
END_TEST

START_TEST(too_little_text_is_refused) {
  char model[4096], doc[4096];
  snprintf(doc, sizeof doc, "%s", fixture("embedded/docs/bakery.md"));
  const char *const docs[] = { doc };
  gate_options o = on_model(model, sizeof model, docs);
  heard h = { 0 };
  gate_run g = { .opt = &o, .told = hear, .ctx = &h };
  fl_err err = { 0 };
  o.train.p = 100000;
  ck_assert_int_eq(gate_equiv.run(&g, &err), FL_EUSAGE);
  ck_assert_ptr_nonnull(strstr(err.text, "tokens where"));
  o.n_docs = 0;
  ck_assert_int_eq(gate_equiv.run(&g, &err), FL_EUSAGE);
  ck_assert_ptr_nonnull(strstr(err.text, "--docs"));
  ck_assert_uint_eq(h.n, 0);
}
END_TEST

/* The rows that are kept are the last ones, whether one forward takes all or several do. */
START_TEST(prefill_keeps_the_last_rows) {
  char model[4096];
  const gate_options o = on_model(model, sizeof model, NULL);
  gate_run g = { .opt = &o };
  gate_model m = { 0 };
  fl_kv_pool *pool;
  int32_t ids[50];
  for (int32_t i = 0; i < 50; i++) ids[i] = i + 5;
  const fl_pass_options small = { .max_rows = 16, .max_spans = 1 };
  ck_assert_int_eq(gate_model_open(&m, &g, &small, NULL), FL_OK);
  ck_assert_int_eq(fl_kv_pool_new(&pool, fl_model_hparams(m.model), fl_model_kernels(m.model),
                                  FL_KV_F32, 0, NULL),
                   FL_OK);
  for (size_t n = 10; n <= 50; n += 40) {
    fl_seq *seq;
    size_t first = 99;
    ck_assert_int_eq(fl_seq_new(&seq, pool, NULL), FL_OK);
    ck_assert_int_eq(gate_prefill(m.pass, seq, ids, n, 4, &first, NULL), FL_OK);
    ck_assert_uint_eq(first, (n < 16 ? n : 16) - 4);
    ck_assert_uint_eq(fl_seq_rows(seq), n);
    fl_seq_free(seq);
  }
  fl_kv_pool_free(pool);
  gate_model_close(&m);
}
END_TEST

Suite *suite_gate(void) {
  Suite *s = suite_create("gate");
  TCase *t = tcase_create("core");
  tcase_add_test(t, equal_logits);
  tcase_add_test(t, differences_are_counted);
  tcase_add_test(t, zeros_of_both_signs_differ);
  tcase_add_test(t, not_a_number_shows);
  tcase_add_test(t, cache_types_asked_for);
  tcase_add_test(t, gates_by_name);
  tcase_add_test(t, checks_are_told_and_failures_counted);
  tcase_add_test(t, kills_are_spread);
  tcase_add_test(t, rounds_are_shared_out);
  tcase_add_test(t, folders_are_compared);
  tcase_add_test(t, a_composition_equals_the_prefill);
  tcase_add_test(t, too_little_text_is_refused);
  tcase_add_test(t, prefill_keeps_the_last_rows);
  suite_add_tcase(s, t);
  return s;
}

int main(void) {
  static suite_fn *const fns[] = { suite_gate };
  return suite_main(fns, 1);
}
