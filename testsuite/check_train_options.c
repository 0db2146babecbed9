/* check_train_options.c - every training flag: its default passes, its limits hold, it survives
 * JSON. */
#include <math.h>
#include <string.h>

#include "fleet/train_options.h"
#include "suite.h"

static fl_train_options defaults(void) {
  fl_train_options o;
  fl_train_options_default(&o);
  return o;
}

START_TEST(defaults_are_those_of_the_manual) {
  fl_train_options o = defaults();
  ck_assert_int_eq(fl_train_options_check(&o, NULL), FL_OK);
  ck_assert_uint_eq(o.p, 256);
  ck_assert_uint_eq(o.budget, 4);
  ck_assert_double_eq(o.lr, 2e-3);
  ck_assert_double_eq(o.p_iso, 0.5);
  ck_assert_uint_eq(o.max_a, 192);
}
END_TEST

static const struct {
  const char *name;
  double ok, low, high;
} limits[] = {
  { "p", 8, 7, 65537 },      { "budget", 1, 0, 4097 },      { "evict-frac", 1, 0, 1.01 },
  { "p-iso", 0, -0.1, 1.1 }, { "distract-max", 1, 0, 64 },  { "accum", 1, 0, 257 },
  { "lr", 1e-9, 0, 11 },     { "clip", 0, -1, 1e10 },       { "chunk-min", 1, 0, 65537 },
  { "top-k", 1, 0, 257 },    { "top-mass", 1, 0, 1.5 },     { "max-q", 1, 0, 4097 },
  { "max-a", 1, 0, 4097 },   { "embed-chunk", 1, 0, 8193 }, { "replay", 1, 0.5, 1001 },
  { "heldout", 0, -1, 65 },  { "seed", 0, -1, 1e17 },       { "rounds", 0, -1, 1e10 },
};

START_TEST(limits_are_checked_by_name) {
  fl_train_options o = defaults(), before = o;
  fl_err err = { 0 };
  ck_assert_int_eq(fl_train_options_set(&o, limits[_i].name, limits[_i].low, &err), FL_EUSAGE);
  ck_assert_ptr_nonnull(strstr(err.text, limits[_i].name));
  ck_assert_int_eq(fl_train_options_set(&o, limits[_i].name, limits[_i].high, NULL), FL_EUSAGE);
  ck_assert_int_eq(fl_train_options_set(&o, limits[_i].name, NAN, NULL), FL_EUSAGE);
  ck_assert_mem_eq(&o, &before, sizeof o);
  ck_assert_int_eq(fl_train_options_set(&o, limits[_i].name, limits[_i].ok, NULL), FL_OK);
}
END_TEST

START_TEST(flags_must_fit_together) {
  fl_train_options o = defaults();
  o.frozen = o.p;
  ck_assert_int_eq(fl_train_options_check(&o, NULL), FL_EUSAGE);
  o = defaults();
  o.chunk_min = o.chunk_max + 1;
  ck_assert_int_eq(fl_train_options_check(&o, NULL), FL_EUSAGE);
  o = defaults();
  o.lr = INFINITY;
  ck_assert_int_eq(fl_train_options_check(&o, NULL), FL_EUSAGE);
  ck_assert_int_eq(fl_train_options_set(&o, "no-such", 1, NULL), FL_EUSAGE);
  o = defaults();
  ck_assert_int_eq(fl_train_options_set(&o, "p", 32.5, NULL), FL_EUSAGE);
}
END_TEST

START_TEST(json_round_trip) {
  fl_train_options o = defaults();
  o.lr = 0.1 + 0.2; /* needs all 17 digits */
  o.seed = ((uint64_t)1 << 53) - 1;
  o.checkpoint = o.keep_moments = true;
  o.gen_kv = FL_KV_F16;
  o.positions = FL_POS_SEQUENTIAL;
  o.rounds = 7;
  fl_json *j = fl_json_object(), *back = NULL;
  fl_buf text = { 0 };
  ck_assert(fl_train_options_write(&o, j, false));
  fl_json_print(&text, j, true);
  ck_assert_ptr_null(strstr(text.data, "\"rounds\""));
  ck_assert_int_eq(fl_json_parse(&back, text.data, text.len, NULL), FL_OK);
  fl_train_options r = defaults();
  ck_assert_int_eq(fl_train_options_read(&r, back, NULL), FL_OK);
  o.rounds = r.rounds;
  ck_assert_uint_eq(r.seed, o.seed);
  ck_assert_double_eq(r.lr, o.lr);
  ck_assert(r.checkpoint && r.keep_moments && r.pack && r.gen_kv == FL_KV_F16);
  ck_assert_int_eq(r.positions, FL_POS_SEQUENTIAL);
  ck_assert_uint_eq(r.heldout, o.heldout);
  fl_json_free(j);
  fl_json_free(back);
  fl_buf_release(&text);
}
END_TEST

static const char *const damaged[] = {
  "{\"p\":\"48\"}",
  "{\"p\":4.5}",
  "{\"p\":-1}",
  "{\"lr\":true}",
  "{\"checkpoint\":1}",
  "{\"gen-kv\":\"f64\"}",
  "{\"positions\":\"none\"}",
  "{\"p-iso\":2}",
};

START_TEST(damaged_json_is_refused) {
  fl_json *j = NULL;
  fl_train_options o = defaults(), before = o;
  ck_assert_int_eq(fl_json_parse(&j, damaged[_i], strlen(damaged[_i]), NULL), FL_OK);
  ck_assert_int_eq(fl_train_options_read(&o, j, NULL), FL_EINPUT);
  ck_assert_mem_eq(&o, &before, sizeof o);
  fl_json_free(j);
}
END_TEST

Suite *suite_train_options(void);
Suite *suite_train_options(void) {
  Suite *s = suite_create("train_options");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, defaults_are_those_of_the_manual);
  tcase_add_loop_test(t, limits_are_checked_by_name, 0, sizeof limits / sizeof limits[0]);
  tcase_add_test(t, flags_must_fit_together);
  tcase_add_test(t, json_round_trip);
  tcase_add_loop_test(t, damaged_json_is_refused, 0, sizeof damaged / sizeof damaged[0]);
  suite_add_tcase(s, t);
  return s;
}
