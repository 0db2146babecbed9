/* check_model_file.c - files that are no usable model: one sentence each, nothing leaks. */
#include <unistd.h>

#include "model_util.h"

/* The file's bytes with `from` replaced by `to` (same length) at its first occurrence. */
static char *patched(const char *file, const void *from, const void *to, size_t n) {
  fl_buf b = { 0 };
  char *at, *path = fl_asprintf("/tmp/flotilla-check-%d.gguf", (int)getpid());
  ck_assert_int_eq(fl_fs_read(&b, fixture(file), (size_t)1 << 30, NULL), FL_OK);
  at = memmem(b.data, b.len, from, n);
  ck_assert_ptr_nonnull(at);
  memcpy(at, to, n);
  ck_assert_int_eq(fl_fs_replace(path, b.data, b.len, NULL), FL_OK);
  fl_buf_release(&b);
  return path;
}

static void refuse(const char *from, const char *to, size_t n, const char *word) {
  char *path = patched("tiny/tiny-qwen3.gguf", from, to, n);
  fl_model *m = NULL;
  fl_err err = { 0 };
  ck_assert_int_eq(fl_model_open(&m, path, NULL, NULL, &err), FL_EINPUT);
  ck_assert_ptr_null(m);
  ck_assert_msg(strstr(err.text, word) != NULL, "\"%s\" does not name %s", err.text, word);
  ck_assert_ptr_nonnull(strstr(err.text, path));
  remove(path);
  fl_free(path);
}

START_TEST(wrong_files_are_refused_by_name) {
  refuse("qwen3.block_count", "qwen3.block_caunt", 17, "block_count");
  refuse("blk.1.attn_k.weight", "blk.1.attn_x.weight", 19, "attn_k");
  refuse("output_norm.weight", "autput_norm.weight", 18, "output_norm");
  refuse("token_embd.weight", "tokem_embd.weight", 17, "token_embd");
  /* the architecture's value: length 5, then the name */
  refuse("\5\0\0\0\0\0\0\0qwen3", "\5\0\0\0\0\0\0\0qwenX", 13, "qwenX");
}
END_TEST

START_TEST(a_whole_file_opens) {
  rig r = rig_open("embedded/model.gguf", 2);
  ck_assert_uint_eq(r.hp->n_layers, 4);
  ck_assert_uint_eq(r.hp->d_model, 256);
  ck_assert_uint_eq(r.hp->n_vocab, 2048);
  ck_assert_str_eq(r.hp->arch, "qwen3");
  ck_assert_int_eq(fl_model_template(r.m), FL_TEMPLATE_CHATML);
  ck_assert_str_ne(fl_model_hash(r.m), "");
  rig_close(&r);
}
END_TEST

START_TEST(lack_of_memory_is_an_error) {
  fl_err err = { 0 };
  for (size_t n = 1; n < 60; n += 3) {
    fl_model *m = NULL;
    int rc;
    fl_mem_fault_after(n);
    rc = fl_model_open(&m, fixture("tiny/tiny-qwen3.gguf"), NULL, NULL, &err);
    fl_mem_fault_after(0);
    if (rc == FL_OK) {
      fl_model_close(m);
      break;
    }
    ck_assert_int_eq(rc, FL_ENOMEM);
  }
}
END_TEST

Suite *suite_model_file(void);
Suite *suite_model_file(void) {
  Suite *s = suite_create("model_file");
  TCase *c = tcase_create("Core"), *e = tcase_create("Errors");
  tcase_add_test(c, a_whole_file_opens);
  tcase_add_test(e, wrong_files_are_refused_by_name);
  tcase_add_test(e, lack_of_memory_is_an_error);
  suite_add_tcase(s, c);
  suite_add_tcase(s, e);
  return s;
}
