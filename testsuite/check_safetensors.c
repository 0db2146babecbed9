/* check_safetensors.c - reading and writing; a file of the reference library, and hostile ones. */
#include "formats/safetensors.h"

#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "scratch.h"

static const float rows[6] = { 1, 2, 3, 4, 5, 6 };
static const int64_t chunks[2] = { 7, -8 };

/* A file from a header's text and n zero bytes of data, without padding. */
static int open_text(fl_safetensors **s, const char *header, size_t n_data, fl_err *err) {
  fl_buf b = { 0 };
  const uint64_t len = strlen(header);
  fl_buf_append(&b, &len, 8);
  fl_buf_puts(&b, header);
  for (size_t i = 0; i < n_data; i++) fl_buf_putc(&b, 0);
  scratch_put(scratch("x.safetensors"), b.data, b.len);
  fl_buf_release(&b);
  return fl_safetensors_open(s, scratch("x.safetensors"), err);
}

static int write_good(const char *path) {
  const fl_st_out out[] = {
    { "layers.10.k", FL_ST_F32, 2, { 2, 1 }, rows + 4 },
    { "layers.1.k", FL_ST_F32, 3, { 2, 1, 2 }, rows },
    { "z", FL_ST_I64, 1, { 2 }, chunks },
    { "empty", FL_ST_F32, 2, { 0, 5 }, NULL },
  };
  const fl_st_meta meta[] = { { "model", "a \"name\"" }, { "p", "256" } };
  return fl_safetensors_write(path, out, 4, meta, 2, NULL);
}

/* By the rules of the header: metadata first, I64 before F32, then by bytes of the name, header
 * padded to eight. */
START_TEST(written_bytes) {
  static const char header[] =
      "{\"__metadata__\":{\"model\":\"a \\\"name\\\"\",\"p\":\"256\"},"
      "\"z\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,16]},"
      "\"empty\":{\"dtype\":\"F32\",\"shape\":[0,5],\"data_offsets\":[16,16]},"
      "\"layers.1.k\":{\"dtype\":\"F32\",\"shape\":[2,1,2],\"data_offsets\":[16,32]},"
      "\"layers.10.k\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[32,40]}}";
  fl_buf b = { 0 };
  uint64_t len;
  ck_assert_int_eq(write_good(scratch("w")), FL_OK);
  ck_assert_int_eq(fl_fs_read(&b, scratch("w"), 10000, NULL), FL_OK);
  memcpy(&len, b.data, 8);
  ck_assert(len % 8 == 0 && len >= strlen(header) && len < strlen(header) + 8);
  ck_assert_mem_eq(b.data + 8, header, strlen(header));
  for (size_t i = strlen(header); i < len; i++) ck_assert_int_eq(b.data[8 + i], ' ');
  ck_assert_uint_eq(b.len, 8 + len + 40);
  ck_assert_mem_eq(b.data + 8 + len, chunks, 16);
  ck_assert_mem_eq(b.data + 8 + len + 16, rows, 24);
  fl_buf_release(&b);
}
END_TEST

START_TEST(what_is_written_comes_back) {
  fl_safetensors *s = NULL;
  fl_err err = { 0 };
  ck_assert_int_eq(write_good(scratch("w")), FL_OK);
  ck_assert_msg(fl_safetensors_open(&s, scratch("w"), &err) == FL_OK, "%s", err.text);
  ck_assert_uint_eq(fl_safetensors_count(s), 4);
  const fl_st_tensor *k = fl_safetensors_get(s, "layers.1.k"), *z = fl_safetensors_get(s, "z");
  ck_assert(k->type == FL_ST_F32 && k->n_dims == 3 && k->dim[0] == 2 && k->dim[2] == 2);
  ck_assert(k->n_bytes == 16 && k->n_values == 4);
  ck_assert_mem_eq(k->data, rows, 16);
  ck_assert(z->type == FL_ST_I64 && z->n_values == 2);
  ck_assert_mem_eq(z->data, chunks, 16);
  ck_assert_uint_eq(fl_safetensors_get(s, "empty")->n_bytes, 0);
  ck_assert_ptr_null(fl_safetensors_get(s, "layers.2.k"));
  ck_assert_ptr_null(fl_safetensors_at(s, 4));
  ck_assert_str_eq(fl_safetensors_at(s, 0)->name, "z");
  ck_assert_str_eq(fl_safetensors_meta(s, "model"), "a \"name\"");
  ck_assert_ptr_null(fl_safetensors_meta(s, "none"));
  ck_assert_uint_eq(fl_safetensors_n_meta(s), 2);
  const char *key, *value;
  fl_safetensors_meta_at(s, 1, &key, &value);
  ck_assert_str_eq(key, "p");
  ck_assert_str_eq(value, "256");
  fl_safetensors_close(s);
  fl_safetensors_close(NULL);
}
END_TEST

START_TEST(nothing_at_all) {
  fl_safetensors *s = NULL;
  ck_assert_int_eq(fl_safetensors_write(scratch("w"), NULL, 0, NULL, 0, NULL), FL_OK);
  ck_assert_int_eq(fl_safetensors_open(&s, scratch("w"), NULL), FL_OK);
  ck_assert(fl_safetensors_count(s) == 0 && fl_safetensors_n_meta(s) == 0);
  ck_assert_ptr_null(fl_safetensors_get(s, "x"));
  ck_assert_ptr_null(fl_safetensors_meta(s, "x"));
  fl_safetensors_close(s);
}
END_TEST

START_TEST(other_types_are_listed) {
  fl_safetensors *s = NULL;
  fl_err err = { 0 };
  const char *text = "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                     "\"b\":{\"dtype\":\"F8_NEW\",\"shape\":[9],\"data_offsets\":[4,8]},"
                     "\"c\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[8,10]}}  ";
  ck_assert_msg(open_text(&s, text, 10, &err) == FL_OK, "%s", err.text);
  ck_assert(fl_safetensors_get(s, "a")->type == FL_ST_OTHER);
  ck_assert(fl_safetensors_get(s, "b")->n_bytes == 4);
  const fl_st_tensor *c = fl_safetensors_get(s, "c");
  ck_assert(c->type == FL_ST_F16 && c->n_dims == 0 && c->n_values == 1);
  fl_safetensors_close(s);
}
END_TEST

#define F32(name, shape, from, to)                                                                 \
  "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]}"

static const struct {
  const char *header; /* padded so that the data are aligned where that is not the point */
  size_t n_data;
} wrong[] = {
  { "", 8 },
  { "[]", 8 },
  { " {}", 0 },
  { "{}", 1 },                                                              /* data nobody owns */
  { "{" F32("a", "[2]", "0", "8") "}", 7 },                                 /* cut */
  { "{" F32("a", "[2]", "0", "8") "}", 12 },                                /* too long */
  { "{" F32("a", "[2]", "4", "12") "}", 12 },                               /* a gap at the start */
  { "{" F32("a", "[1]", "0", "4") "," F32("b", "[1]", "8", "12") "}", 12 }, /* a gap between */
  { "{" F32("a", "[2]", "0", "8") "," F32("b", "[2]", "4", "12") "}", 12 }, /* an overlap */
  { "{" F32("a", "[1]", "0", "4") "," F32("b", "[1]", "0", "4") "}", 4 },   /* the same place */
  { "{" F32("a", "[1]", "0", "4") "," F32("a", "[1]", "4", "8") "}", 8 },   /* the same name */
  { "{" F32("a", "[3]", "0", "8") "}", 8 }, /* bytes and shape disagree */
  { "{" F32("a", "[2]", "8", "0") "}", 8 }, /* backwards */
  { "{" F32("a", "[2]", "-8", "0") "}", 8 },
  { "{" F32("a", "[2]", "0", "8.5") "}", 8 },
  { "{" F32("a", "[2]", "0", "1e300") "}", 8 },
  { "{" F32("a", "[-2]", "0", "8") "}", 8 },
  { "{" F32("a", "[1.5]", "0", "8") "}", 8 },
  { "{" F32("a", "2", "0", "8") "}", 8 },
  { "{" F32("a", "[\"2\"]", "0", "8") "}", 8 },
  { "{" F32("a", "[1,1,1,1,1,1,1,1,2]", "0", "8") "}", 8 },     /* nine dimensions */
  { "{" F32("a", "[4294967296,4294967296]", "0", "0") "}", 0 }, /* product overflows to 0 */
  { "{" F32("a", "[4611686018427387904]", "0", "0") "}", 0 },   /* bytes overflow to 0 */
  { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8 },
  { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8 },
  { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]}}", 8 },
  { "{\"a\":{\"dtype\":7,\"shape\":[2],\"data_offsets\":[0,8]}}", 8 },
  { "{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8 },
  { "{\"a\":5}", 8 },
  { "{\"__metadata__\":{\"k\":1}}", 0 },
  { "{\"__metadata__\":[]}", 0 },
  { "{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0 },
  { "{" F32("a\xFF", "[2]", "0", "8") "}", 8 },     /* no UTF-8 */
  { "{" F32("a\\u0000b", "[2]", "0", "8") "}", 8 }, /* a name cut by NUL */
  { "{" F32("a", "[2]", "0", "8") "} ", 8 },        /* not aligned */
};

START_TEST(ways_to_be_wrong) {
  fl_safetensors *s = NULL;
  fl_err err = { 0 };
  ck_assert_msg(open_text(&s, wrong[_i].header, wrong[_i].n_data, &err) == FL_EINPUT,
                "accepted: %s", wrong[_i].header);
  ck_assert_ptr_null(s);
  ck_assert_msg(strstr(err.text, "x.safetensors: ") != NULL, "%s", err.text);
}
END_TEST

/* The same header, padded, is taken: so the one above fails for its alignment alone. */
START_TEST(alignment_is_what_was_wrong) {
  fl_safetensors *s = NULL;
  fl_err err = { 0 };
  char text[128] = "{" F32("a", "[2]", "0", "8") "}";
  while (strlen(text) % 8 != 0) strcat(text, " ");
  ck_assert_msg(open_text(&s, text, 8, &err) == FL_OK, "%s", err.text);
  fl_safetensors_close(s);
  strcat(text, " ");
  ck_assert_int_eq(open_text(&s, text, 8, &err), FL_EINPUT);
  ck_assert_msg(strstr(err.text, "not aligned") != NULL, "%s", err.text);
}
END_TEST

START_TEST(header_lengths) {
  static const uint64_t lengths[] = {
    0, 1, 100, 100000001, (uint64_t)1 << 40, UINT64_MAX, UINT64_MAX - 7
  };
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    fl_safetensors *s = NULL;
    char bytes[64] = { 0 };
    memcpy(bytes, &lengths[i], 8);
    memcpy(bytes + 8, "{}", 2);
    scratch_put(scratch("x"), bytes, sizeof bytes);
    ck_assert_int_eq(fl_safetensors_open(&s, scratch("x"), NULL), FL_EINPUT);
  }
}
END_TEST

START_TEST(every_cut_and_every_changed_byte) {
  fl_buf b = { 0 };
  ck_assert_int_eq(write_good(scratch("w")), FL_OK);
  ck_assert_int_eq(fl_fs_read(&b, scratch("w"), 10000, NULL), FL_OK);
  for (size_t n = 0; n < b.len; n++) {
    fl_safetensors *s = NULL;
    scratch_put(scratch("x"), b.data, n);
    ck_assert_msg(fl_safetensors_open(&s, scratch("x"), NULL) == FL_EINPUT, "%zu bytes", n);
  }
  static const uint8_t flips[] = { 0x01, 0x10, 0x80 };
  volatile unsigned sum = 0;
  for (size_t at = 0; at < b.len - 40; at++) {
    for (size_t k = 0; k < sizeof flips; k++) {
      fl_safetensors *s = NULL;
      b.data[at] ^= (char)flips[k];
      scratch_put(scratch("x"), b.data, b.len);
      int rc = fl_safetensors_open(&s, scratch("x"), NULL);
      ck_assert(rc == FL_OK || rc == FL_EINPUT);
      for (size_t i = 0; rc == FL_OK && i < fl_safetensors_count(s); i++) {
        const fl_st_tensor *t = fl_safetensors_at(s, i);
        for (size_t j = 0; j < t->n_bytes; j++) sum += ((const uint8_t *)t->data)[j];
      }
      fl_safetensors_close(s);
      b.data[at] ^= (char)flips[k];
    }
  }
  fl_buf_release(&b);
}
END_TEST

START_TEST(what_cannot_be_written) {
  const fl_st_out twice[] = { { "a", FL_ST_F32, 1, { 2 }, rows },
                              { "a", FL_ST_I64, 1, { 2 }, chunks } };
  const fl_st_out reserved = { "__metadata__", FL_ST_F32, 1, { 2 }, rows };
  const fl_st_out type = { "a", FL_ST_F16, 1, { 2 }, rows },
                  dims = { "a", FL_ST_F32, 9, { 2 }, rows };
  const fl_st_out huge = { "a", FL_ST_F32, 2, { SIZE_MAX, 2 }, rows };
  const fl_st_meta meta[] = { { "k", "1" }, { "k", "2" } };
  const char *path = scratch("w");
  ck_assert_int_eq(fl_safetensors_write(path, twice, 2, NULL, 0, NULL), FL_EFAIL);
  ck_assert_int_eq(fl_safetensors_write(path, &reserved, 1, NULL, 0, NULL), FL_EFAIL);
  ck_assert_int_eq(fl_safetensors_write(path, &type, 1, NULL, 0, NULL), FL_EFAIL);
  ck_assert_int_eq(fl_safetensors_write(path, &dims, 1, NULL, 0, NULL), FL_EFAIL);
  ck_assert_int_eq(fl_safetensors_write(path, &huge, 1, NULL, 0, NULL), FL_EFAIL);
  ck_assert_int_eq(fl_safetensors_write(path, twice, 1, meta, 2, NULL), FL_EFAIL);
  ck_assert_uint_eq(scratch_count(), 0);
  fl_err err = { 0 };
  ck_assert_int_eq(fl_safetensors_write("/dev/full", twice, 1, NULL, 0, &err), FL_EFAIL);
  ck_assert_ptr_nonnull(strstr(err.text, "no space left on the disk"));
}
END_TEST

START_TEST(no_memory) {
  ck_assert_int_eq(write_good(scratch("w")), FL_OK);
  for (size_t n = 1; n <= 4; n++) {
    fl_safetensors *s = NULL;
    fl_mem_fault_after(n);
    ck_assert_int_eq(fl_safetensors_open(&s, scratch("w"), NULL), FL_ENOMEM);
    fl_mem_fault_after(n);
    ck_assert_int_eq(write_good(scratch("other")), FL_ENOMEM);
    fl_mem_fault_after(0);
  }
  ck_assert_uint_eq(scratch_count(), 1);
}
END_TEST

/* Written by the reference library (Python, safetensors.torch). */
START_TEST(a_file_of_the_reference_library) {
  fl_safetensors *s = NULL;
  fl_err err = { 0 };
  size_t f32 = 0;
  ck_assert_msg(fl_safetensors_open(&s, fixture("embedded/goldens.safetensors"), &err) == FL_OK,
                "%s", err.text);
  for (size_t i = 0; i < fl_safetensors_count(s); i++) {
    const fl_st_tensor *t = fl_safetensors_at(s, i);
    ck_assert_ptr_eq(fl_safetensors_get(s, t->name), t);
    f32 += t->type == FL_ST_F32;
  }
  ck_assert_uint_gt(f32, 0);
  fl_safetensors_close(s);
}
END_TEST

Suite *suite_safetensors(void) {
  Suite *s = suite_create("safetensors");
  TCase *core = tcase_create("Core"), *errors = tcase_create("Errors");
  TCase *golden = tcase_create("Golden");
  TCase *const all[] = { core, errors, golden };
  for (size_t i = 0; i < 3; i++) {
    tcase_add_checked_fixture(all[i], scratch_begin, scratch_end);
    tcase_set_timeout(all[i], 60);
    suite_add_tcase(s, all[i]);
  }
  tcase_add_test(core, written_bytes);
  tcase_add_test(core, what_is_written_comes_back);
  tcase_add_test(core, nothing_at_all);
  tcase_add_test(core, other_types_are_listed);
  tcase_add_test(core, alignment_is_what_was_wrong);
  tcase_add_loop_test(errors, ways_to_be_wrong, 0, sizeof wrong / sizeof *wrong);
  tcase_add_test(errors, header_lengths);
  tcase_add_test(errors, every_cut_and_every_changed_byte);
  tcase_add_test(errors, what_cannot_be_written);
  tcase_add_test(errors, no_memory);
  tcase_add_test(golden, a_file_of_the_reference_library);
  return s;
}
