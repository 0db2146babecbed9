/* check_torch_file.c - reading what torch.save wrote (fixtures/tiny/torch/make.py), and hostile
 * files. That the rows come out right is compared in cli/archive.sh. */
#include "formats/torch_file.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "scratch.h"

START_TEST(lists_of_parameters) {
  fl_torch *t = NULL;
  fl_torch_tensor x;
  ck_assert_int_eq(fl_torch_open(&t, fixture("tiny/torch/module.pt"), NULL), FL_OK);
  ck_assert_uint_eq(fl_torch_count(t, "trainable_keys"), 2);
  ck_assert_uint_eq(fl_torch_count(t, "frozen_values"), 2);
  ck_assert_uint_eq(fl_torch_count(t, "fixed_keys"), 0);
  ck_assert_int_eq(fl_torch_get(&x, t, "trainable_values", 1, NULL), FL_OK);
  ck_assert_int_eq(x.type->type, FL_BF16);
  ck_assert_uint_eq(x.n_dims, 4);
  const size_t dim[4] = { 1, 2, 5, 32 }, stride[4] = { 320, 160, 32, 1 };
  ck_assert_mem_eq(x.dim, dim, sizeof dim);
  ck_assert_mem_eq(x.stride, stride, sizeof stride);
  fl_torch_close(t);
}
END_TEST

START_TEST(tensors_that_are_parts_or_turned) {
  fl_torch *t = NULL;
  fl_torch_tensor a, b;
  ck_assert_int_eq(fl_torch_open(&t, fixture("tiny/torch/plain.pt"), NULL), FL_OK);
  ck_assert_int_eq(fl_torch_get(&a, t, "trainable_keys", 0, NULL), FL_OK);
  ck_assert_int_eq(fl_torch_get(&b, t, "trainable_values", 1, NULL), FL_OK);
  ck_assert_int_eq(b.data - a.data, 3 * 2 * 4 * 32 * 4); /* one storage */
  ck_assert_uint_eq(fl_torch_count(t, "frozen_keys"), 0);
  fl_torch_close(t);
  ck_assert_int_eq(fl_torch_open(&t, fixture("tiny/torch/pairs.pt"), NULL), FL_OK);
  ck_assert_int_eq(fl_torch_get(&a, t, "trainable_keys", 0, NULL), FL_OK);
  ck_assert_int_eq(a.type->type, FL_F16);
  ck_assert_uint_eq(a.stride[3], 3);
  fl_torch_close(t);
}
END_TEST

/* Every value of every tensor, if the file can be read at all; returns how many. */
static size_t touch_all(const char *path) {
  static const char *const names[] = { "trainable_keys", "trainable_values", "frozen_keys",
                                       "frozen_values",  "fixed_keys",       "fixed_values" };
  fl_torch *t = NULL;
  fl_err err = { 0 };
  size_t n = 0;
  if (fl_torch_open(&t, path, &err) != FL_OK) {
    ck_assert(err.text[0] != '\0');
    return 0;
  }
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    for (size_t i = 0; i < fl_torch_count(t, names[k]); i++) {
      fl_torch_tensor x;
      if (fl_torch_get(&x, t, names[k], i, &err) != FL_OK) continue;
      size_t last = 0, all = x.n_dims > 0;
      for (size_t d = 0; d < x.n_dims; d++) {
        last += x.dim[d] ? (x.dim[d] - 1) * x.stride[d] : 0;
        all *= x.dim[d];
      }
      volatile uint8_t sum = 0;
      if (all) sum = (uint8_t)(x.data[0] + x.data[(last + 1) * x.type->bytes - 1]);
      (void)sum;
      n++;
    }
  fl_torch_close(t);
  return n;
}

/* A byte changed anywhere, or the file cut anywhere: tensors or a sentence, and never a value from
 * outside of the file. */
START_TEST(damaged_files) {
  fl_buf b = { 0 };
  ck_assert_int_eq(fl_fs_read(&b, fixture("tiny/torch/module.pt"), 1 << 20, NULL), FL_OK);
  ck_assert_uint_eq(touch_all(fixture("tiny/torch/module.pt")), 8);
  size_t refused = 0;
  for (size_t i = 0; i < b.len; i++) {
    const char kept = b.data[i];
    b.data[i] = (char)(i % 3 == 0 ? 0xFF : i % 3 == 1 ? kept ^ 1 : '.');
    scratch_put(scratch("x.pt"), b.data, b.len);
    refused += touch_all(scratch("x.pt")) < 8;
    b.data[i] = kept;
  }
  ck_assert_uint_gt(refused, 500); /* most bytes of the pickle and the directory matter */
  for (size_t n = 0; n < b.len; n += 7) {
    scratch_put(scratch("x.pt"), b.data, n);
    ck_assert_uint_eq(touch_all(scratch("x.pt")), 0);
  }
  fl_buf_release(&b);
}
END_TEST

START_TEST(lack_of_memory_is_reported) {
  for (size_t n = 1; n < 200; n++) {
    fl_torch *t = NULL;
    fl_mem_fault_after(n);
    int rc = fl_torch_open(&t, fixture("tiny/torch/module.pt"), NULL);
    fl_mem_fault_after(0);
    if (rc == FL_OK) {
      ck_assert_uint_gt(n, 4);
      fl_torch_close(t);
      return;
    }
    ck_assert_int_eq(rc, FL_ENOMEM);
  }
}
END_TEST

Suite *suite_torch_file(void);
Suite *suite_torch_file(void) {
  Suite *s = suite_create("torch_file");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, scratch_begin, scratch_end);
  tcase_add_test(t, lists_of_parameters);
  tcase_add_test(t, tensors_that_are_parts_or_turned);
  tcase_add_test(t, damaged_files);
  tcase_add_test(t, lack_of_memory_is_reported);
  suite_add_tcase(s, t);
  return s;
}
