/* check_mapped.c - matrices used in the file's layout: every product has the bits of the packed
 * matrix, on every level of the machine, for every type, route, part and slice. (That the packed
 * one is right is the business of check_matmul.c.) */
#include "kernels/matmul.h"
#include "kernels_util.h"

static const fl_dtype types[] = { FL_F32,  FL_F16,  FL_BF16, FL_Q8_0, FL_Q4_0, FL_Q4_1,
                                  FL_Q5_0, FL_Q5_1, FL_Q4_K, FL_Q5_K, FL_Q6_K };
enum { N_TYPES = sizeof types / sizeof *types };

/* Offsets of the f16 scales in a block; the other bytes may hold anything. */
static size_t scales_of(fl_dtype type, size_t at[2]) {
  at[0] = type == FL_Q6_K ? 208 : 0;
  at[1] = 2;
  return type == FL_Q4_1 || type == FL_Q5_1 || type == FL_Q4_K || type == FL_Q5_K ? 2 : 1;
}

/* Rows as a file holds them, at an odd address: they need no alignment. */
static uint8_t *random_rows(const fl_dtype_traits *t, size_t n_values, fl_rng *r, uint8_t **block) {
  size_t n_bytes = n_values / t->block * t->bytes, at[2], n = scales_of(t->type, at);
  *block = room(n_bytes + 1, 1);
  uint8_t *raw = *block + 1;
  if (t->block == 1) {
    float *x = normals(r, n_values);
    t->quantise(raw, x, n_values);
    fl_free(x);
    return raw;
  }
  for (size_t i = 0; i < n_bytes; i++) raw[i] = (uint8_t)fl_rng_below(r, 256);
  for (size_t b = 0; b < n_values / t->block; b++)
    for (size_t i = 0; i < n; i++) {
      uint16_t half = fl_f32_to_f16((float)fl_rng_normal(r) * 0.01f);
      memcpy(raw + b * t->bytes + at[i], &half, sizeof half);
    }
  return raw;
}

static void products(const fl_panels *packed, const fl_panels *lent, fl_team *team, size_t m,
                     fl_rng *r) {
  size_t n_in = fl_panels_n_in(packed), n_out = fl_panels_n_out(packed), nr = fl_panels_nr(packed);
  float *x = normals(r, m * n_in), *dy = normals(r, m * n_out);
  float *a = room(m * (n_in + n_out), 4), *b = room(m * (n_in + n_out), 4);
  void *scratch = room(1, fl_matmul_scratch(lent, team, m));
  fl_matmul(packed, team, a, n_out, x, n_in, m, scratch);
  fl_matmul(lent, team, b, n_out, x, n_in, m, scratch);
  ck_assert_msg(same_bits(a, b, m * n_out), "type %d, %zu rows", fl_panels_type(lent), m);
  fl_matmul_dx(packed, team, a, n_in, dy, n_out, m, false, scratch);
  fl_matmul_dx(lent, team, b, n_in, dy, n_out, m, false, scratch);
  ck_assert_msg(same_bits(a, b, m * n_in), "dx of type %d, %zu rows", fl_panels_type(lent), m);
  if (n_out > nr) {
    fl_matmul_cols(packed, team, a, n_out - nr, x, n_in, m, nr, n_out - nr, scratch);
    fl_matmul_cols(lent, team, b, n_out - nr, x, n_in, m, nr, n_out - nr, scratch);
    ck_assert(same_bits(a, b, m * (n_out - nr)));
  }
  fl_free(x);
  fl_free(dy);
  fl_free(a);
  fl_free(b);
  fl_free(scratch);
}

/* One matrix of two parts whose border lies inside a panel, or of one. */
static void one_matrix(const fl_kernels *k, fl_team *team, fl_dtype type, size_t n_out, size_t n_in,
                       size_t first, fl_rng *r) {
  const fl_dtype_traits *t = fl_dtype_get(type);
  size_t row = 0, n_parts = first < n_out ? 2 : 1, n[2] = { first, n_out - first };
  uint8_t *block, *raw = random_rows(t, n_out * n_in, r, &block);
  fl_panels *packed = NULL, *lent = NULL;
  ck_assert(fl_dtype_row_bytes(t, n_in, &row));
  const void *data[2] = { raw, raw + first * row };
  ck_assert_int_eq(fl_panels_pack(&packed, k, team, type, data, n, n_parts, n_in, NULL), FL_OK);
  ck_assert_int_eq(fl_panels_map(&lent, k, type, data, n, n_parts, n_in, NULL), FL_OK);
  ck_assert_uint_eq(fl_panels_bytes(lent), 0);
  float *a = room(n_in, 4), *b = room(n_in, 4);
  for (size_t o = 0; o < n_out; o++) {
    fl_panels_row(packed, a, o);
    fl_panels_row(lent, b, o);
    for (size_t i = 0; i < n_in; i++) ck_assert(a[i] == b[i]);
  }
  products(packed, lent, team, 1, r);
  products(packed, lent, team, 5, r);
  products(packed, lent, team, 35, r);
  fl_free(a);
  fl_free(b);
  fl_panels_free(packed);
  fl_panels_free(lent);
  fl_free(block);
}

START_TEST(has_the_packed_matrixs_bits) {
  fl_team *team = NULL;
  ck_assert_int_eq(fl_team_new(&team, 2, NULL), FL_OK);
  for (int i = 0; i < N_ISAS; i++) {
    const fl_kernels *k = level(i);
    fl_rng r = stream(100);
    for (size_t ty = 0; k && ty < N_TYPES; ty++) {
      one_matrix(k, team, types[ty], 70, 512, 33, &r);
      one_matrix(k, NULL, types[ty], 280, 256, 280, &r);
      if (fl_dtype_get(types[ty])->block <= 32) one_matrix(k, team, types[ty], 19, 96, 7, &r);
      if (fl_dtype_get(types[ty])->block == 1) one_matrix(k, NULL, types[ty], 5, 37, 5, &r);
    }
  }
  fl_team_free(team);
}
END_TEST

START_TEST(bad_shapes_are_refused) {
  const fl_kernels *k = fl_kernels_select();
  const void *data[3] = { "", "", "" };
  size_t one[3] = { 1, 1, 1 }, none[1] = { 0 }, huge[2] = { SIZE_MAX, 2 };
  fl_panels *w = NULL;
  ck_assert_int_eq(fl_panels_map(&w, k, FL_Q8_0, data, one, 1, 33, NULL), FL_EINPUT);
  ck_assert_int_eq(fl_panels_map(&w, k, FL_F32, data, one, 1, 0, NULL), FL_EINPUT);
  ck_assert_int_eq(fl_panels_map(&w, k, FL_F32, data, none, 1, 4, NULL), FL_EINPUT);
  ck_assert_int_eq(fl_panels_map(&w, k, FL_F32, data, huge, 2, 4, NULL), FL_EINPUT);
  ck_assert_int_eq(fl_panels_map(&w, k, FL_F32, data, one, 3, 4, NULL), FL_EINPUT);
  ck_assert_ptr_null(w);
}
END_TEST

Suite *suite_mapped(void);
Suite *suite_mapped(void) {
  Suite *s = suite_create("mapped");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, has_the_packed_matrixs_bits);
  tcase_add_test(t, bad_shapes_are_refused);
  suite_add_tcase(s, t);
  return s;
}
