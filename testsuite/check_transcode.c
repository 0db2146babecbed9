/* check_transcode.c - writing GGUF: what is written reads back, and a file goes to another type and
 * back without a bit lost where the types allow it. The fixtures that other tools made in several
 * types from the same weights are the references. */
#include "formats/transcode.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "formats/gguf_write.h"
#include "scratch.h"

static fl_gguf *open_ok(const char *path) {
  fl_gguf *g = NULL;
  fl_err err = { 0 };
  ck_assert_msg(fl_gguf_open(&g, path, &err) == FL_OK, "%s", err.text);
  return g;
}

static int to_type(const char *from, const char *type, const char *out, fl_transcode_report *r,
                   fl_err *err) {
  fl_gguf *g = open_ok(from);
  int rc = fl_transcode(g, fl_dtype_by_name(type), out, NULL, NULL, r, err);
  fl_gguf_close(g);
  return rc;
}

static void to_type_ok(const char *from, const char *type, const char *out) {
  fl_transcode_report r;
  fl_err err = { 0 };
  ck_assert_msg(to_type(from, type, out, &r, &err) == FL_OK, "%s", err.text);
}

static fl_tensor_info info(const char *name, fl_dtype type, uint64_t cols, uint64_t rows) {
  const fl_dtype_traits *d = fl_dtype_get(type);
  return (fl_tensor_info){ .name = { name, strlen(name) },
                           .n_dims = rows > 0 ? 2 : 1,
                           .dim = { cols, rows > 0 ? rows : 1, 1, 1 },
                           .ggml_type = type,
                           .n_bytes = cols / d->block * d->bytes * (rows > 0 ? rows : 1) };
}

/* A file of its own: pairs of three kinds, a matrix and a vector of values[0..n). */
static void write_small(const char *path, const float *values) {
  fl_tensor_info t[2] = { info("blk.0.ffn_up.weight", FL_F32, 64, 3),
                          info("a_norm.weight", FL_F32, 5, 0) };
  fl_gguf_pairs pairs = { 0 };
  fl_gguf_writer *w = NULL;
  fl_err err = { 0 };
  fl_gguf_pairs_str(&pairs, "general.architecture", "none");
  fl_gguf_pairs_f32(&pairs, "a.number", 0.5f);
  fl_gguf_pairs_u32(&pairs, "general.file_type", 7);
  ck_assert_int_eq(fl_gguf_writer_open(&w, path, &pairs, t, 2, 32, &err), FL_OK);
  /* Across the tensors' border, in pieces of no particular size. */
  ck_assert_int_eq(fl_gguf_writer_put(w, values, 100), FL_OK);
  ck_assert_int_eq(fl_gguf_writer_put(w, (const char *)values + 100, 192 * 4 - 100 + 8), FL_OK);
  ck_assert_int_eq(fl_gguf_writer_put(w, (const char *)values + 192 * 4 + 8, 12), FL_OK);
  ck_assert_int_eq(fl_gguf_writer_commit(w, &err), FL_OK);
  fl_gguf_pairs_release(&pairs);
}

static void ramp(float *v, size_t n) {
  for (size_t i = 0; i < n; i++) v[i] = (float)((double)i * 0.37 - 20);
}

START_TEST(what_is_written_reads_back) {
  float v[197];
  ramp(v, 197);
  scratch_begin();
  write_small(scratch("a.gguf"), v);
  fl_gguf *g = open_ok(scratch("a.gguf"));
  fl_str s;
  double number;
  ck_assert(fl_gguf_get_str(g, "general.architecture", &s) && s.len == 4);
  ck_assert(fl_gguf_get_f64(g, "a.number", &number) && number == 0.5);
  ck_assert_uint_eq(fl_gguf_n_tensors(g), 2);
  const fl_tensor_info *m = fl_gguf_tensor(g, "blk.0.ffn_up.weight");
  const fl_tensor_info *n = fl_gguf_tensor(g, "a_norm.weight");
  ck_assert_uint_eq(m->n_bytes, 192 * 4);
  ck_assert_mem_eq(m->data, v, 192 * 4);
  ck_assert_mem_eq(n->data, v + 192, 5 * 4);
  ck_assert_uint_eq(scratch_count(), 1);
  fl_gguf_close(g);
  scratch_end();
}
END_TEST

START_TEST(too_little_and_too_much_data) {
  fl_tensor_info t = info("x.weight", FL_F32, 4, 0);
  fl_gguf_pairs pairs = { 0 };
  const float v[5] = { 0 };
  scratch_begin();
  for (size_t n = 3; n <= 5; n += 2) {
    fl_gguf_writer *w = NULL;
    fl_err err = { 0 };
    ck_assert_int_eq(fl_gguf_writer_open(&w, scratch("a.gguf"), &pairs, &t, 1, 32, &err), FL_OK);
    fl_gguf_writer_put(w, v, n * 4);
    ck_assert_int_eq(fl_gguf_writer_commit(w, &err), FL_EFAIL);
    ck_assert_ptr_nonnull(strstr(err.text, n == 3 ? "less" : "more"));
    ck_assert_uint_eq(scratch_count(), 0);
  }
  scratch_end();
}
END_TEST

/* The tensors of two files, one by one, bit for bit. */
static void same_tensors(const char *a, const char *b) {
  fl_gguf *x = open_ok(a), *y = open_ok(b);
  ck_assert_uint_eq(fl_gguf_n_tensors(x), fl_gguf_n_tensors(y));
  for (size_t i = 0; i < fl_gguf_n_tensors(x); i++) {
    const fl_tensor_info *t = fl_gguf_tensor_at(x, i);
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.data);
    const fl_tensor_info *u = fl_gguf_tensor(y, name);
    ck_assert_msg(u != NULL && u->ggml_type == t->ggml_type && u->n_bytes == t->n_bytes, "%s",
                  name);
    ck_assert_msg(memcmp(t->data, u->data, t->n_bytes) == 0, "%s", name);
  }
  fl_gguf_close(x);
  fl_gguf_close(y);
}

static bool key_is(fl_str key, const char *want) {
  return key.len == strlen(want) && memcmp(key.data, want, key.len) == 0;
}

/* Every pair of `a` stands in `b`, byte for byte, but for the file's type. */
static void same_pairs(const char *a, const char *b) {
  fl_gguf *x = open_ok(a), *y = open_ok(b);
  fl_str key, other;
  fl_gguf_type type;
  for (size_t i = 0; fl_gguf_meta_at(x, i, &key, &type); i++) {
    const uint8_t *p, *q;
    size_t n, m;
    ck_assert(fl_gguf_meta_at(y, i, &other, &type));
    fl_gguf_meta_raw(x, i, &p, &n);
    fl_gguf_meta_raw(y, i, &q, &m);
    if (key_is(key, "general.file_type")) continue;
    ck_assert_uint_eq(n, m);
    ck_assert_mem_eq(p, q, n);
  }
  fl_gguf_close(x);
  fl_gguf_close(y);
}

/* The same weights as the makers of the fixtures wrote them in these types: f16 and bf16 by the
 * rounding of numpy and of the gguf package, q8_0 by that package's quantiser. */
START_TEST(equals_the_files_of_another_writer) {
  static const char *const types[] = { "f16", "bf16", "q8_0" };
  char *from = fl_strdup(fixture("tiny/tiny-qwen3.gguf"));
  scratch_begin();
  for (size_t i = 0; i < 3; i++) {
    char ref[64];
    snprintf(ref, sizeof ref, "tiny/tiny-qwen3-%s.gguf", types[i]);
    to_type_ok(from, types[i], scratch("out.gguf"));
    same_tensors(scratch("out.gguf"), fixture(ref));
    same_pairs(from, scratch("out.gguf"));
  }
  fl_free(from);
  scratch_end();
}
END_TEST

/* f32 holds every value of every type, so widening and narrowing again loses nothing where the
 * narrowing of an exact value is exact: f16 and bf16. */
START_TEST(there_and_back) {
  static const char *const types[] = { "f16", "bf16" };
  scratch_begin();
  for (size_t i = 0; i < 2; i++) {
    char name[64];
    snprintf(name, sizeof name, "tiny/tiny-qwen3-%s.gguf", types[i]);
    to_type_ok(fixture(name), "f32", scratch("wide.gguf"));
    to_type_ok(scratch("wide.gguf"), types[i], scratch("back.gguf"));
    same_tensors(scratch("back.gguf"), fixture(name));
  }
  scratch_end();
}
END_TEST

/* From every quantised type to f32: the values that the format defines. */
START_TEST(widens_every_type) {
  static const char *const types[] = { "q4_0", "q4_1", "q5_0", "q5_1",
                                       "q8_0", "q4_k", "q5_k", "q6_k" };
  scratch_begin();
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    char name[64];
    snprintf(name, sizeof name, "tiny/tiny-qwen3-k256-%s.gguf", types[i]);
    to_type_ok(fixture(name), "f32", scratch("wide.gguf"));
    fl_gguf *x = open_ok(fixture(name)), *y = open_ok(scratch("wide.gguf"));
    for (size_t k = 0; k < fl_gguf_n_tensors(x); k++) {
      const fl_tensor_info *t = fl_gguf_tensor_at(x, k), *u = fl_gguf_tensor_at(y, k);
      const fl_dtype_traits *d = fl_dtype_get(t->ggml_type);
      size_t n = (size_t)(t->dim[0] * t->dim[1]);
      float *want = fl_calloc(n, sizeof *want);
      d->dequantise(want, t->data, n);
      ck_assert_uint_eq(u->ggml_type, FL_F32);
      ck_assert_mem_eq(u->data, want, n * sizeof *want);
      fl_free(want);
    }
    fl_gguf_close(x);
    fl_gguf_close(y);
  }
  scratch_end();
}
END_TEST

/* Experts are matrices too, their router is not touched; per-layer tables of gemma4 are ragged for
 * blocks of 32 where their rows are 16 long. */
START_TEST(which_tensors_change) {
  fl_transcode_report r;
  fl_err err = { 0 };
  scratch_begin();
  int rc = to_type(fixture("tiny/tiny-qwen3moe.gguf"), "q8_0", scratch("m.gguf"), &r, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  fl_gguf *g = open_ok(scratch("m.gguf"));
  ck_assert_uint_eq(fl_gguf_tensor(g, "blk.0.ffn_up_exps.weight")->ggml_type, FL_Q8_0);
  ck_assert_uint_eq(fl_gguf_tensor(g, "blk.0.ffn_gate_inp.weight")->ggml_type, FL_F32);
  ck_assert_uint_eq(fl_gguf_tensor(g, "blk.0.attn_norm.weight")->ggml_type, FL_F32);
  ck_assert_uint_eq(r.converted + r.kept + r.same + r.ragged, fl_gguf_n_tensors(g));
  ck_assert_uint_eq(r.file_bytes, fl_gguf_file_size(g));
  uint64_t type;
  ck_assert(fl_gguf_get_u64(g, "general.file_type", &type) && type == 7);
  fl_gguf_close(g);
  rc = to_type(fixture("tiny/tiny-gemma4-dense.gguf"), "q8_0", scratch("m.gguf"), &r, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  ck_assert_uint_gt(r.ragged, 0);
  g = open_ok(scratch("m.gguf"));
  ck_assert_uint_eq(fl_gguf_tensor(g, "blk.0.proj.weight")->ggml_type, FL_F32);
  fl_gguf_close(g);
  scratch_end();
}
END_TEST

/* Values that the new type does not hold are refused by the tensor's name; nothing is left. */
START_TEST(values_that_do_not_fit) {
  static const struct {
    float value;
    const char *type, *says;
  } cases[] = {
    { NAN, "f16", "not finite" },  { INFINITY, "bf16", "not finite" },
    { 65520, "f16", "too large" }, { -7e4f, "f16", "too large" },
    { 9e6f, "q8_0", "too large" }, { 3.4e38f, "bf16", "too large" },
  };
  float v[197];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fl_transcode_report r;
    fl_err err = { 0 };
    ramp(v, 197);
    v[100] = cases[i].value;
    scratch_begin();
    write_small(scratch("in.gguf"), v);
    int rc = to_type(scratch("in.gguf"), cases[i].type, scratch("out.gguf"), &r, &err);
    ck_assert_int_eq(rc, FL_EINPUT);
    ck_assert_msg(strstr(err.text, cases[i].says) && strstr(err.text, "blk.0.ffn_up.weight"), "%s",
                  err.text);
    ck_assert_uint_eq(scratch_count(), 1);
    scratch_end();
  }
  /* The largest that fits, in both. */
  ramp(v, 197);
  v[100] = 65519;
  scratch_begin();
  write_small(scratch("in.gguf"), v);
  to_type_ok(scratch("in.gguf"), "f16", scratch("out.gguf"));
  scratch_end();
}
END_TEST

/* A type that is known by its size alone is copied where nothing has to be converted and refused by
 * name where something has. */
START_TEST(types_that_cannot_be_read) {
  fl_tensor_info t = info("blk.0.ffn_up.weight", FL_Q4_0, 64, 2);
  fl_gguf_pairs pairs = { 0 };
  fl_gguf_writer *w = NULL;
  fl_transcode_report r;
  fl_err err = { 0 };
  const uint8_t zeros[72] = { 0 };
  t.ggml_type = 20; /* iq4_nl: 18 bytes for 32 values, as q4_0 */
  scratch_begin();
  ck_assert_int_eq(fl_gguf_writer_open(&w, scratch("in.gguf"), &pairs, &t, 1, 32, &err), FL_OK);
  fl_gguf_writer_put(w, zeros, sizeof zeros);
  ck_assert_int_eq(fl_gguf_writer_commit(w, &err), FL_OK);
  ck_assert_int_eq(to_type(scratch("in.gguf"), "f16", scratch("out.gguf"), &r, &err), FL_EINPUT);
  ck_assert_msg(strstr(err.text, "iq4_nl") != NULL, "%s", err.text);
  ck_assert_uint_eq(scratch_count(), 1);
  scratch_end();
}
END_TEST

/* A disk that is full, stood in for by the limit of a file's size: the old file stays, whole. */
START_TEST(a_full_disk) {
  const struct rlimit small = { 100000, RLIM_INFINITY };
  struct rlimit before;
  fl_transcode_report r;
  fl_err err = { 0 };
  scratch_begin();
  scratch_put(scratch("out.gguf"), "old", 3);
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  int rc = to_type(fixture("tiny/tiny-qwen3.gguf"), "f16", scratch("out.gguf"), &r, &err);
  setrlimit(RLIMIT_FSIZE, &before);
  ck_assert_int_eq(rc, FL_EFAIL);
  ck_assert_uint_eq(scratch_count(), 1);
  FILE *f = fopen(scratch("out.gguf"), "rb");
  char text[4] = "";
  ck_assert(f != NULL && fread(text, 1, 4, f) == 3 && strncmp(text, "old", 3) == 0);
  fclose(f);
  scratch_end();
}
END_TEST

START_TEST(no_memory) {
  fl_transcode_report r;
  scratch_begin();
  for (size_t n = 1; n < 200; n++) {
    fl_gguf *g = open_ok(fixture("tiny/tiny-qwen3.gguf"));
    fl_err err = { 0 };
    fl_mem_fault_after(n);
    int rc = fl_transcode(g, fl_dtype_by_name("q8_0"), scratch("out.gguf"), NULL, NULL, &r, &err);
    fl_mem_fault_after(0);
    fl_gguf_close(g);
    if (rc == FL_OK) break;
    ck_assert_int_eq(rc, FL_ENOMEM);
    /* Nothing is left, or the whole file, where only the folder could not be synced. */
    if (scratch_count() > 0)
      same_tensors(scratch("out.gguf"), fixture("tiny/tiny-qwen3-q8_0.gguf"));
    ck_assert_uint_le(scratch_count(), 1);
    ck_assert_uint_lt(n, 199);
  }
  scratch_end();
}
END_TEST

Suite *suite_transcode(void);
Suite *suite_transcode(void) {
  Suite *s = suite_create("transcode");
  TCase *t = tcase_create("core");
  tcase_add_test(t, what_is_written_reads_back);
  tcase_add_test(t, too_little_and_too_much_data);
  tcase_add_test(t, equals_the_files_of_another_writer);
  tcase_add_test(t, there_and_back);
  tcase_add_test(t, widens_every_type);
  tcase_add_test(t, which_tensors_change);
  tcase_add_test(t, values_that_do_not_fit);
  tcase_add_test(t, types_that_cannot_be_read);
  tcase_add_test(t, a_full_disk);
  tcase_add_test(t, no_memory);
  suite_add_tcase(s, t);
  return s;
}
