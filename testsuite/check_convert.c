/* check_convert.c - other programs' forms: there and back, layouts read by the documented offsets,
 * and what cannot be said in a form. */
#include <math.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "cart_util.h"
#include "cartridge/cartridge_io.h"
#include "convert/convert.h"
#include "convert/shape.h"
#include "scratch.h"

static char model[4096], cart[1024], other[1024], back[1024];

/* A cartridge of `n` rows with known values that fits the model `file`, written as a file. */
static fl_cartridge put_cartridge(const char *file, size_t n, size_t frozen) {
  const fl_provenance none = { 0 };
  model_shape shape = { 0 };
  fl_err err = { 0 };
  scratch_begin();
  snprintf(model, sizeof model, "%s", fixture(file));
  snprintf(cart, sizeof cart, "%s", scratch("cart.safetensors"));
  snprintf(other, sizeof other, "%s", scratch("other"));
  snprintf(back, sizeof back, "%s", scratch("back.safetensors"));
  ck_assert_msg(model_shape_open(&shape, model, &err) == FL_OK, "%s", err.text);
  fl_cartridge c = some_cartridge(shape.hp, n, frozen, 3);
  ck_assert_msg(fl_cartridge_write(cart, &c, &none, &err) == FL_OK, "%s", err.text);
  model_shape_close(&shape);
  return c;
}

static convert_job job(const char *source, const char *out) {
  return (convert_job){ .source = source, .model = model, .out = out };
}

/* --- torch --- */

static const char *const torch_models[] = { "embedded/model.gguf", "tiny/tiny-llama.gguf" };

/* Keys of the second model are sorted by pairs on the way out and back on the way in. */
START_TEST(torch_there_and_back) {
  fl_cartridge c = put_cartridge(torch_models[_i], 12, 2), again = { 0 };
  const convert_job out = job(cart, other), in = job(other, back);
  fl_err err = { 0 };
  fl_json *told = fl_json_object();
  uint64_t rows = 0, frozen = 0;
  ck_assert_msg(convert_torch_write(told, &out, &err) == FL_OK, "%s", err.text);
  ck_assert(fl_json_get_u64(told, "rows", &rows) && rows == 12);
  ck_assert(fl_json_get_u64(told, "frozen", &frozen) && frozen == 2);
  ck_assert_msg(convert_torch_read(told, &in, &err) == FL_OK, "%s", err.text);
  ck_assert_int_eq(fl_cartridge_read(&again, NULL, back, NULL, NULL), FL_OK);
  ck_assert_uint_eq(again.frozen, 2);
  ck_assert(rows_equal(&c.rows, &again.rows));
  fl_json_free(told);
  fl_cartridge_release(&again);
  fl_cartridge_release(&c);
  scratch_end();
}
END_TEST

START_TEST(torch_of_another_model_is_refused) {
  fl_cartridge c = put_cartridge("embedded/model.gguf", 8, 0);
  const convert_job out = job(cart, other);
  fl_err err = { 0 };
  fl_json *told = fl_json_object();
  ck_assert_int_eq(convert_torch_write(told, &out, &err), FL_OK);
  snprintf(model, sizeof model, "%s", fixture("tiny/tiny-qwen3.gguf"));
  const convert_job in = job(other, back);
  ck_assert_int_eq(convert_torch_read(told, &in, &err), FL_EINPUT);
  ck_assert(!fl_fs_exists(back));
  fl_json_free(told);
  fl_cartridge_release(&c);
  scratch_end();
}
END_TEST

/* --- llama.cpp --- */

static uint32_t u32_at(const fl_map *m, size_t at) {
  uint32_t v;
  ck_assert_uint_le(at + 4, m->size);
  memcpy(&v, m->data + at, 4);
  return v;
}

/* The layout at the head of state.c, read by its offsets: this model has no sliding window. */
START_TEST(a_state_by_its_offsets) {
  enum { ROWS = 5 };
  fl_cartridge c = put_cartridge("embedded/model.gguf", ROWS, 1);
  const convert_job out = job(cart, other);
  const convert_state_options o = { .half = false, .version = 3 };
  fl_json *told = fl_json_object();
  fl_err err = { 0 };
  fl_map m = { 0 };
  ck_assert_msg(convert_state(told, &out, &o, &err) == FL_OK, "%s", err.text);
  ck_assert_int_eq(fl_map_open(&m, other, NULL), FL_OK);
  ck_assert_mem_eq(m.data, "qsgg", 4);
  ck_assert_uint_eq(u32_at(&m, 4), 3);
  ck_assert_uint_eq(u32_at(&m, 8), ROWS + 4);
  ck_assert_uint_eq(u32_at(&m, 12), UINT32_MAX);
  ck_assert_uint_eq(u32_at(&m, 16), 1);
  ck_assert_uint_eq(u32_at(&m, 20), ROWS);
  size_t at = 24 + 4 * ROWS + 4;
  ck_assert_uint_eq(u32_at(&m, at), 1);
  ck_assert_uint_eq(u32_at(&m, at + 4), ROWS);
  at += 8;
  for (uint32_t i = 0; i < ROWS; i++, at += 12) {
    ck_assert_uint_eq(u32_at(&m, at), i);
    ck_assert_uint_eq(u32_at(&m, at + 4), 1);
  }
  ck_assert_uint_eq(u32_at(&m, at + 4), c.rows.n_layers);
  at += 8;
  for (int v = 0; v < 2; v++)
    for (size_t l = 0; l < c.rows.n_layers; l++) {
      const size_t row = c.rows.width[l] * sizeof(float);
      ck_assert_uint_eq(u32_at(&m, at), 0);
      ck_assert_uint_eq(u32_at(&m, at + 4), row);
      ck_assert_uint_le(at + 12 + row * ROWS, m.size);
      ck_assert_mem_eq(m.data + at + 12, v ? c.rows.v[l] : c.rows.k[l], row * ROWS);
      at += 12 + row * ROWS;
    }
  ck_assert_uint_eq(at, m.size);
  fl_map_close(&m);
  fl_json_free(told);
  fl_cartridge_release(&c);
  scratch_end();
}
END_TEST

/* f16 ends below 65520; what is beyond would become infinite. */
START_TEST(values_beyond_f16_are_refused) {
  const fl_provenance none = { 0 };
  fl_cartridge c = put_cartridge("embedded/model.gguf", 4, 0);
  const convert_job out = job(cart, other);
  convert_state_options o = { .half = true, .version = 4 };
  fl_json *told = fl_json_object();
  fl_err err = { 0 };
  c.rows.k[0][1] = 65519;
  unlink(cart);
  ck_assert_int_eq(fl_cartridge_write(cart, &c, &none, NULL), FL_OK);
  ck_assert_int_eq(convert_state(told, &out, &o, &err), FL_OK);
  unlink(other);
  c.rows.k[0][1] = 65520;
  unlink(cart);
  ck_assert_int_eq(fl_cartridge_write(cart, &c, &none, NULL), FL_OK);
  ck_assert_int_eq(convert_state(told, &out, &o, &err), FL_EINPUT);
  ck_assert_ptr_nonnull(strstr(err.text, "f16"));
  ck_assert(!fl_fs_exists(other));
  o.half = false;
  ck_assert_int_eq(convert_state(told, &out, &o, &err), FL_OK);
  fl_json_free(told);
  fl_cartridge_release(&c);
  scratch_end();
}
END_TEST

START_TEST(rows_from_the_middle_are_refused) {
  fl_cartridge c = put_cartridge("embedded/model.gguf", 4, 0), got = { 0 };
  model_shape shape = { 0 };
  fl_err err = { 0 };
  ck_assert_int_eq(model_shape_open(&shape, model, NULL), FL_OK);
  ck_assert_int_eq(model_shape_cartridge(&got, &shape, cart, &err), FL_OK);
  ck_assert(rows_equal(&c.rows, &got.rows));
  fl_cartridge_release(&got);
  ck_assert_int_eq(model_shape_cartridge(&got, &shape, scratch("none"), &err), FL_ENOENT);
  model_shape_close(&shape);
  fl_cartridge_release(&c);
  scratch_end();
}
END_TEST

/* --- the model --- */

static int stop(void *ctx) {
  (void)ctx;
  return FL_EINTR;
}

START_TEST(a_stop_leaves_no_file) {
  scratch_begin();
  snprintf(model, sizeof model, "%s", fixture("tiny/tiny-qwen3-k256-q4_k.gguf"));
  snprintf(other, sizeof other, "%s", scratch("other"));
  convert_job j = job(NULL, other);
  fl_json *told = fl_json_object();
  uint64_t n = 0;
  j.poll = stop;
  ck_assert_int_eq(convert_model(told, &j, "f32", NULL), FL_EINTR);
  ck_assert_uint_eq(scratch_count(), 0);
  j.poll = NULL;
  ck_assert_int_eq(convert_model(told, &j, "f32", NULL), FL_OK);
  ck_assert(fl_json_get_u64(told, "converted", &n) && n == 8);
  fl_json_free(told);
  scratch_end();
}
END_TEST

Suite *suite_convert(void) {
  Suite *s = suite_create("convert");
  TCase *t = tcase_create("core");
  tcase_add_loop_test(t, torch_there_and_back, 0, 2);
  tcase_add_test(t, torch_of_another_model_is_refused);
  tcase_add_test(t, a_state_by_its_offsets);
  tcase_add_test(t, values_beyond_f16_are_refused);
  tcase_add_test(t, rows_from_the_middle_are_refused);
  tcase_add_test(t, a_stop_leaves_no_file);
  suite_add_tcase(s, t);
  return s;
}

int main(void) {
  static suite_fn *const fns[] = { suite_convert };
  return suite_main(fns, 1);
}
