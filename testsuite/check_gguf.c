/* check_gguf.c - reading GGUF: a small file written here by the format's description, an enum of
 * ways to be wrong, every cut and every changed byte, and files that others made. */
#include "base/hash.h"
#include "gguf_faults.h"

static bool str_is(fl_str s, const char *want) {
  return s.len == strlen(want) && memcmp(s.data, want, s.len) == 0;
}

static fl_gguf *open_good(void) {
  fl_buf b = { 0 };
  fl_gguf *g = NULL;
  fl_err err = { 0 };
  write_gguf(&b, NO_FAULT);
  ck_assert_msg(open_bytes(&g, b.data, b.len, &err) == FL_OK, "%s", err.text);
  fl_buf_release(&b);
  return g;
}

START_TEST(scalars) {
  fl_gguf *g = open_good();
  fl_str s;
  uint64_t u = 0;
  double d = 0;
  bool b = false;
  ck_assert(fl_gguf_version(g) == 3 && fl_gguf_alignment(g) == 32 && fl_gguf_n_meta(g) == 18);
  ck_assert(fl_gguf_get_str(g, "general.architecture", &s) && str_is(s, "qwen3"));
  ck_assert(fl_gguf_get_u64(g, "u8", &u) && u == 255);
  ck_assert(fl_gguf_get_f64(g, "i8", &d) && d == -1);
  ck_assert(fl_gguf_get_u64(g, "u16", &u) && u == 65534);
  ck_assert(fl_gguf_get_f64(g, "i16", &d) && d == -2);
  ck_assert(fl_gguf_get_u64(g, "u32", &u) && u == 4000000000u);
  ck_assert(fl_gguf_get_u64(g, "u64", &u) && u == UINT64_MAX);
  ck_assert(fl_gguf_get_f64(g, "i64", &d) && d == -0x1p63);
  ck_assert(fl_gguf_get_f64(g, "f32", &d) && d == 1.5);
  ck_assert(fl_gguf_get_f64(g, "f64", &d) && d == -0.1);
  ck_assert(fl_gguf_get_f64(g, "i32", &d) && d == -7);
  ck_assert(fl_gguf_get_bool(g, "yes", &b) && b);
  /* What does not fit or is of another kind leaves the value alone. */
  ck_assert(!fl_gguf_get_u64(g, "i8", &u) && !fl_gguf_get_u64(g, "i64", &u));
  ck_assert(!fl_gguf_get_u64(g, "f32", &u) && !fl_gguf_get_u64(g, "yes", &u));
  ck_assert(!fl_gguf_get_u64(g, "general.architecture", &u) && !fl_gguf_get_u64(g, "ints", &u));
  ck_assert(!fl_gguf_get_f64(g, "nan", &d) && !fl_gguf_get_f64(g, "yes", &d));
  ck_assert(!fl_gguf_get_bool(g, "u8", &b) && !fl_gguf_get_str(g, "u8", &s));
  ck_assert(u == UINT64_MAX && d == -7);
  ck_assert(fl_gguf_has(g, "yes") && !fl_gguf_has(g, "ye") && !fl_gguf_has(g, "yess"));
  fl_gguf_close(g);
}
END_TEST

START_TEST(arrays) {
  fl_gguf *g = open_good();
  fl_gguf_arr a;
  fl_str s;
  size_t cursor = 0;
  ck_assert(fl_gguf_get_arr(g, "ints", &a) && a.type == FL_GGUF_I16 && a.n == 3);
  ck_assert(fl_gguf_arr_i64(&a, 1) == -2 && fl_gguf_arr_f64(&a, 2) == 300);
  ck_assert(fl_gguf_get_arr(g, "floats", &a) && a.n == 2);
  ck_assert(fl_gguf_arr_f64(&a, 0) == 0.5 && fl_gguf_arr_i64(&a, 1) == -8);
  ck_assert(!fl_gguf_arr_next_str(&a, &cursor, &s));
  ck_assert(fl_gguf_get_arr(g, "flags", &a) && fl_gguf_arr_i64(&a, 0) == 1);
  ck_assert(fl_gguf_get_arr(g, "none", &a) && a.n == 0 && !fl_gguf_arr_next_str(&a, &cursor, &s));
  ck_assert(!fl_gguf_get_arr(g, "u8", &a) && !fl_gguf_get_arr(g, "missing", &a));
  ck_assert(fl_gguf_get_arr(g, "words", &a) && a.n == 3);
  static const char *const words[] = { "one", "", "three" };
  for (size_t i = 0; i < 3; i++)
    ck_assert(fl_gguf_arr_next_str(&a, &cursor, &s) && str_is(s, words[i]));
  ck_assert(!fl_gguf_arr_next_str(&a, &cursor, &s));
  fl_gguf_close(g);
}
END_TEST

START_TEST(tensors) {
  fl_gguf *g = open_good();
  ck_assert_uint_eq(fl_gguf_n_tensors(g), 3);
  const fl_tensor_info *b = fl_gguf_tensor_at(g, 0), *a = fl_gguf_tensor(g, "a.weight");
  ck_assert(str_is(b->name, "b.weight") && b->n_dims == 2 && b->n_bytes == 68);
  ck_assert(b->dim[0] == 32 && b->dim[1] == 2 && b->dim[2] == 1 && b->dim[3] == 1);
  ck_assert_uint_eq(*(const uint8_t *)b->data, 0);
  ck_assert(a->n_bytes == 16 && *(const uint8_t *)a->data == 96);
  const fl_tensor_info *f = fl_gguf_tensor(g, "future");
  ck_assert(f->data == NULL && f->n_bytes == 0 && f->ggml_type == 1000);
  ck_assert_ptr_null(fl_gguf_tensor(g, "c"));
  ck_assert_ptr_null(fl_gguf_tensor_at(g, 3));
  fl_gguf_drop(g, b);
  ck_assert_uint_eq(((const uint8_t *)b->data)[67], 67);
  use_everything(g);
  fl_gguf_close(g);
  fl_gguf_close(NULL);
}
END_TEST

/* The raw pairs in a row are what the writer put between the counts and the tensors. */
START_TEST(raw_pairs) {
  fl_gguf *g = open_good();
  fl_buf want = { 0 }, got = { 0 };
  put_good_pairs(&want);
  for (size_t i = 0; i < fl_gguf_n_meta(g); i++) {
    const uint8_t *p;
    size_t n;
    fl_gguf_meta_raw(g, i, &p, &n);
    fl_buf_append(&got, p, n);
  }
  ck_assert_uint_eq(got.len, want.len);
  ck_assert_mem_eq(got.data, want.data, want.len);
  fl_buf_release(&want);
  fl_buf_release(&got);
  fl_gguf_close(g);
}
END_TEST

START_TEST(ways_to_be_wrong) {
  fl_buf b = { 0 };
  fl_gguf *g = NULL;
  fl_err err = { 0 };
  write_gguf(&b, (fault)_i);
  ck_assert_msg(open_bytes(&g, b.data, b.len, &err) == FL_EINPUT, "fault %d accepted", _i);
  ck_assert_ptr_null(g);
  ck_assert_ptr_nonnull(strstr(err.text, "x.gguf: "));
  for (const char *c = err.text; *c != '\0'; c++) ck_assert_msg(*c >= ' ', "%s", err.text);
  ck_assert_int_eq(open_bytes(&g, b.data, b.len, NULL), FL_EINPUT);
  fl_buf_release(&b);
}
END_TEST

START_TEST(every_cut) {
  fl_buf b = { 0 };
  write_gguf(&b, NO_FAULT);
  /* "future" has no known size: only its offset, 128 bytes into the data, is needed. */
  const size_t needed = b.len - DATA_BYTES + 128;
  for (size_t n = 0; n < b.len; n++) {
    fl_gguf *g = NULL;
    int rc = open_bytes(&g, b.data, n, NULL);
    ck_assert_msg(rc == (n < needed ? FL_EINPUT : FL_OK), "%zu of %zu bytes: %d", n, b.len, rc);
    fl_gguf_close(g);
  }
  fl_buf_release(&b);
}
END_TEST

/* Each byte of the header set to a few values: refused, or accepted and usable. */
START_TEST(every_changed_byte) {
  fl_buf b = { 0 };
  write_gguf(&b, NO_FAULT);
  static const uint8_t flips[] = { 0x01, 0x08, 0x80, 0xFF };
  for (size_t at = 0; at < b.len - DATA_BYTES; at++) {
    for (size_t k = 0; k < sizeof flips; k++) {
      fl_gguf *g = NULL;
      b.data[at] ^= (char)flips[k];
      int rc = open_bytes(&g, b.data, b.len, NULL);
      ck_assert(rc == FL_OK || rc == FL_EINPUT);
      if (rc == FL_OK) use_everything(g);
      fl_gguf_close(g);
      b.data[at] ^= (char)flips[k];
    }
  }
  fl_buf_release(&b);
}
END_TEST

START_TEST(alignment_moves_the_data) {
  fl_buf b = { 0 };
  fl_gguf *g = NULL;
  fl_buf_puts(&b, "GGUF");
  put_u32(&b, 2);
  put_u64(&b, 1);
  put_u64(&b, 1);
  put_key(&b, "general.alignment", FL_GGUF_U32);
  put_u32(&b, 256);
  put_tensor(&b, "t", 1, (uint64_t[]){ 1 }, FL_F32, 256);
  while (b.len < 512) fl_buf_putc(&b, 0);
  fl_buf_append(&b, &(float){ 3.25f }, 4);
  ck_assert_int_eq(open_bytes(&g, b.data, b.len, NULL), FL_OK);
  ck_assert(fl_gguf_alignment(g) == 256 && fl_gguf_version(g) == 2);
  ck_assert(*(const float *)fl_gguf_tensor_at(g, 0)->data == 3.25f);
  ck_assert_uint_eq(fl_gguf_tensor_at(g, 0)->file_offset, 512);
  fl_gguf_close(g);
  fl_buf_release(&b);
}
END_TEST

START_TEST(no_tensors_and_no_pairs) {
  fl_buf b = { 0 };
  fl_gguf *g = NULL;
  fl_buf_puts(&b, "GGUF");
  put_u32(&b, 3);
  put_u64(&b, 0);
  put_u64(&b, 0);
  ck_assert_int_eq(open_bytes(&g, b.data, b.len, NULL), FL_OK);
  ck_assert(fl_gguf_n_tensors(g) == 0 && fl_gguf_n_meta(g) == 0 && !fl_gguf_has(g, "x"));
  ck_assert_ptr_null(fl_gguf_tensor(g, "x"));
  use_everything(g);
  fl_gguf_close(g);
  fl_buf_release(&b);
}
END_TEST

START_TEST(no_memory) {
  fl_buf b = { 0 };
  fl_gguf *g = NULL;
  write_gguf(&b, NO_FAULT);
  scratch_put(scratch("m.gguf"), b.data, b.len);
  for (size_t n = 1; n <= 6; n++) {
    fl_err err = { 0 };
    fl_mem_fault_after(n);
    ck_assert_int_eq(fl_gguf_open(&g, scratch("m.gguf"), &err), FL_ENOMEM);
    fl_mem_fault_after(0);
    ck_assert_str_ne(err.text, "");
  }
  fl_buf_release(&b);
}
END_TEST

START_TEST(other_files) {
  fl_gguf *g = NULL;
  fl_err err = { 0 };
  ck_assert_int_eq(fl_gguf_open(&g, scratch("none"), &err), FL_ENOENT);
  ck_assert_int_eq(fl_gguf_open(&g, scratch_dir, NULL), FL_EINPUT);
  ck_assert_int_eq(open_bytes(&g, "", 0, NULL), FL_EINPUT);
  ck_assert_ptr_null(g);
}
END_TEST

/* Figures as gguf-py 0.19.0 reads them from the same file. */
START_TEST(a_model_of_llama_cpps_tools) {
  fl_gguf *g = NULL;
  fl_err err = { 0 };
  fl_str s;
  uint64_t u = 0;
  fl_gguf_arr a;
  const char *path = fixture("tiny/tiny-qwen3-k256-q6_k.gguf");
  ck_assert_msg(fl_gguf_open(&g, path, &err) == FL_OK, "%s", err.text);
  ck_assert_str_eq(fl_gguf_path(g), path);
  ck_assert_uint_eq(fl_gguf_n_tensors(g), 13);
  ck_assert(fl_gguf_get_str(g, "general.architecture", &s) && str_is(s, "qwen3"));
  ck_assert(fl_gguf_get_u64(g, "qwen3.embedding_length", &u) && u == 256);
  ck_assert(fl_gguf_get_arr(g, "tokenizer.ggml.tokens", &a) && a.n == 512);
  const fl_tensor_info *t = fl_gguf_tensor(g, "token_embd.weight");
  ck_assert(t != NULL && t->dim[0] == 256 && t->dim[1] == 512 && t->n_bytes == 512 * 210);
  use_everything(g);
  fl_gguf_close(g);
}
END_TEST

START_TEST(the_fingerprint_sees_a_changed_weight) {
  fl_gguf *g = NULL;
  fl_buf b = { 0 };
  char one[FL_HASH_TEXT], two[FL_HASH_TEXT];
  write_gguf(&b, NO_FAULT);
  ck_assert_int_eq(open_bytes(&g, b.data, b.len, NULL), FL_OK);
  fl_gguf_fingerprint(g, one);
  fl_gguf_close(g);
  fl_hash_bytes(two, b.data, b.len); /* a small file: all of it */
  ck_assert_str_eq(one, two);
  b.data[b.len - DATA_BYTES + 3] ^= 1;
  ck_assert_int_eq(open_bytes(&g, b.data, b.len, NULL), FL_OK);
  fl_gguf_fingerprint(g, two);
  ck_assert_str_ne(one, two);
  fl_gguf_close(g);
  fl_buf_release(&b);
}
END_TEST

/* Over 64 MiB only samples are read: a sparse file, one tensor; a change at its start, its middle
 * and its end shows. */
START_TEST(the_fingerprint_of_a_large_file) {
  enum { ROWS = 20 << 20 };
  fl_buf b = { 0 };
  char before[FL_HASH_TEXT], after[FL_HASH_TEXT];
  const char *path = scratch("big.gguf");
  fl_buf_puts(&b, "GGUF");
  put_u32(&b, 3);
  put_u64(&b, 1);
  put_u64(&b, 0);
  put_tensor(&b, "t", 1, (uint64_t[]){ ROWS }, FL_F32, 0);
  while (b.len % 32 != 0) fl_buf_putc(&b, 0);
  const long data = (long)b.len, size = (long)ROWS * 4;
  scratch_put(path, b.data, b.len);
  ck_assert_int_eq(truncate(path, data + size), 0);
  const long places[] = { -1, 0, size / 2, size - 1 };
  for (size_t i = 0; i < 4; i++) {
    fl_gguf *g = NULL;
    if (places[i] >= 0) {
      FILE *f = fopen(path, "r+b");
      ck_assert(f != NULL && fseek(f, data + places[i], SEEK_SET) == 0 && fputc(1, f) == 1);
      ck_assert_int_eq(fclose(f), 0);
    }
    ck_assert_int_eq(fl_gguf_open(&g, path, NULL), FL_OK);
    fl_gguf_fingerprint(g, after);
    if (i > 0) ck_assert_str_ne(before, after);
    memcpy(before, after, sizeof before);
    fl_gguf_close(g);
  }
  fl_buf_release(&b);
}
END_TEST

Suite *suite_gguf(void) {
  Suite *s = suite_create("gguf");
  TCase *core = tcase_create("Core"), *limits = tcase_create("Limits");
  TCase *errors = tcase_create("Errors"), *golden = tcase_create("Golden");
  TCase *const all[] = { core, limits, errors, golden };
  for (size_t i = 0; i < 4; i++) {
    tcase_add_checked_fixture(all[i], scratch_begin, scratch_end);
    tcase_set_timeout(all[i], 60);
    suite_add_tcase(s, all[i]);
  }
  tcase_add_test(core, scalars);
  tcase_add_test(core, arrays);
  tcase_add_test(core, tensors);
  tcase_add_test(core, raw_pairs);
  tcase_add_test(core, the_fingerprint_sees_a_changed_weight);
  tcase_add_test(limits, alignment_moves_the_data);
  tcase_add_test(limits, no_tensors_and_no_pairs);
  tcase_add_test(limits, the_fingerprint_of_a_large_file);
  tcase_add_loop_test(errors, ways_to_be_wrong, NO_FAULT + 1, N_FAULTS);
  tcase_add_test(errors, every_cut);
  tcase_add_test(errors, every_changed_byte);
  tcase_add_test(errors, no_memory);
  tcase_add_test(errors, other_files);
  tcase_add_test(golden, a_model_of_llama_cpps_tools);
  return s;
}
