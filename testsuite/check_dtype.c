/* check_dtype.c - weight types: half precision against its definition, quantised types bit for bit
 * against gguf-py 0.19.0 (the values of ggml's reference code). */
#include "formats/dtype.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/rng.h"
#include "formats/gguf.h"
#include "suite.h"

static uint32_t bits(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}

static float number(uint32_t u) {
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}

/* An f16 by the definition of the format (IEEE 754), in double arithmetic. */
static double half_value(uint16_t h) {
  int exponent = h >> 10 & 31, fraction = h & 1023;
  double v = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
  return h & 0x8000 ? -v : v;
}

START_TEST(every_half) {
  for (uint32_t h = 0; h < 65536; h++) {
    float f = fl_f16_to_f32((uint16_t)h);
    bool special = (h & 0x7C00) == 0x7C00, nan = special && (h & 0x3FF) != 0;
    if (nan) ck_assert(isnan(f));
    else if (special) ck_assert(isinf(f));
    else ck_assert((double)f == half_value((uint16_t)h));
    ck_assert_int_eq(signbit(f) != 0, h >> 15);
    uint16_t back = fl_f32_to_f16(f);
    if (nan) ck_assert((back & 0x7C00) == 0x7C00 && (back & 0x3FF) != 0 && back >> 15 == h >> 15);
    else ck_assert_uint_eq(back, h);
  }
}
END_TEST

/* Between two neighbours: below the middle down, above it up, the middle to the even one. */
START_TEST(halves_round_to_nearest_even) {
  for (uint32_t h = 0; h < 0x7BFF; h++) {
    double low = half_value((uint16_t)h), high = half_value((uint16_t)(h + 1));
    float middle = (float)((low + high) / 2); /* exact: one bit more than a half */
    uint32_t even = h & 1 ? h + 1 : h;
    ck_assert_uint_eq(fl_f32_to_f16(middle), even);
    ck_assert_uint_eq(fl_f32_to_f16(-middle), even | 0x8000);
    ck_assert_uint_eq(fl_f32_to_f16(number(bits(middle) - 1)), h);
    ck_assert_uint_eq(fl_f32_to_f16(number(bits(middle) + 1)), h + 1);
  }
  ck_assert_uint_eq(fl_f32_to_f16(65519.996f), 0x7BFF);
  ck_assert_uint_eq(fl_f32_to_f16(65520), 0x7C00);
  ck_assert_uint_eq(fl_f32_to_f16(3e38f), 0x7C00);
  ck_assert_uint_eq(fl_f32_to_f16(-INFINITY), 0xFC00);
  ck_assert_uint_eq(fl_f32_to_f16(number(1)), 0);
}
END_TEST

START_TEST(bf16) {
  for (uint32_t b = 0; b < 65536; b++) {
    float f = fl_bf16_to_f32((uint16_t)b);
    ck_assert_uint_eq(bits(f), b << 16);
    if (isnan(f)) {
      ck_assert(isnan(fl_bf16_to_f32(fl_f32_to_bf16(f))));
      continue;
    }
    ck_assert_uint_eq(fl_f32_to_bf16(f), b);
    if ((b & 0x7FFF) >= 0x7F80) continue;
    ck_assert_uint_eq(fl_f32_to_bf16(number(b << 16 | 0x7FFF)), b);
    ck_assert_uint_eq(fl_f32_to_bf16(number(b << 16 | 0x8000)), b & 1 ? b + 1 : b);
    ck_assert_uint_eq(fl_f32_to_bf16(number(b << 16 | 0x8001)), b + 1);
  }
  /* A NaN whose payload is only in the lower half must not become an infinity. */
  ck_assert(isnan(fl_bf16_to_f32(fl_f32_to_bf16(number(0x7F800001)))));
}
END_TEST

/* Recipe: for every tensor of the file that is not F32, in file order,
 * gguf.quants.dequantize(t.data, t.tensor_type) as f32; XXH3-128 of all the bytes in a row. */
static const struct {
  const char *file;
  fl_dtype type;
  size_t values;
  const char *hash;
} files[] = {
  { "tiny-qwen3-bf16.gguf", FL_BF16, 131072, "xxh3:6eb04255a03856d150e50b0459b3d247" },
  { "tiny-qwen3-f16.gguf", FL_F16, 131072, "xxh3:0d46e5b1554e61f21c582b7d1157d428" },
  { "tiny-qwen3-k256-f16.gguf", FL_F16, 524288, "xxh3:02911eee25470753bf922daae453fb11" },
  { "tiny-qwen3-k256-q4_0.gguf", FL_Q4_0, 524288, "xxh3:d5a48fe9968b252ab930ccbae9605d88" },
  { "tiny-qwen3-k256-q4_1.gguf", FL_Q4_1, 524288, "xxh3:740979b438c40d3113ac3cb849f1be88" },
  { "tiny-qwen3-k256-q4_k.gguf", FL_Q4_K, 524288, "xxh3:d4d443300cf630de6d81cb667c933231" },
  { "tiny-qwen3-k256-q5_0.gguf", FL_Q5_0, 524288, "xxh3:8226ea7be9b9666e4015705a9644e942" },
  { "tiny-qwen3-k256-q5_1.gguf", FL_Q5_1, 524288, "xxh3:fd9543975766a57a93c8e5c222fbe26d" },
  { "tiny-qwen3-k256-q5_k.gguf", FL_Q5_K, 524288, "xxh3:e2d08ca4f2c9c370818df3a038f62f7a" },
  { "tiny-qwen3-k256-q6_k-py.gguf", FL_Q6_K, 524288, "xxh3:df95400f87dd4dc4f71390e908ea4320" },
  { "tiny-qwen3-k256-q6_k.gguf", FL_Q6_K, 524288, "xxh3:9b50df3762c393643b6d8071994a4728" },
  { "tiny-qwen3-k256-q8_0.gguf", FL_Q8_0, 524288, "xxh3:ee6f977b6c38be575be1d4461b0fb40b" },
  { "tiny-qwen3-q8_0.gguf", FL_Q8_0, 131072, "xxh3:60b48e7315afac729e9a96ac0e60c706" },
};

static fl_gguf *open_tiny(const char *name) {
  char rel[128];
  fl_gguf *g = NULL;
  fl_err err = { 0 };
  snprintf(rel, sizeof rel, "tiny/%s", name);
  ck_assert_msg(fl_gguf_open(&g, fixture(rel), &err) == FL_OK, "%s", err.text);
  return g;
}

static size_t n_values(const fl_tensor_info *t) {
  return (size_t)(t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3]);
}

START_TEST(weights_of_real_files) {
  fl_gguf *g = open_tiny(files[_i].file);
  fl_hasher *h = fl_hasher_new();
  size_t values = 0;
  for (size_t i = 0; i < fl_gguf_n_tensors(g); i++) {
    const fl_tensor_info *t = fl_gguf_tensor_at(g, i);
    if (t->ggml_type == FL_F32) continue;
    ck_assert_uint_eq(t->ggml_type, files[_i].type);
    const size_t n = n_values(t);
    float *out = fl_malloc(n * sizeof *out);
    fl_dtype_get(t->ggml_type)->dequantise(out, t->data, n);
    fl_hasher_add(h, out, n * sizeof *out);
    fl_free(out);
    values += n;
  }
  char text[FL_HASH_TEXT];
  fl_hasher_text(h, text);
  ck_assert_uint_eq(values, files[_i].values);
  ck_assert_str_eq(text, files[_i].hash);
  fl_hasher_free(h);
  fl_gguf_close(g);
}
END_TEST

/* Blocks of random bytes, so that every bit of scales, minima and quants takes both values; one bit
 * of each f16 exponent is cleared to keep it finite. Recipe: 64 blocks from philox4x32-10 words,
 * counter (i, 0, 0, 0) and key (type, 0), `high` the offsets of those bytes; then as above. */
static const struct {
  fl_dtype type;
  size_t high[2];
  const char *hash;
} random_blocks[] = {
  { FL_Q8_0, { 1 }, "xxh3:8eb6d3fd679e82fb078844f36b46dff8" },
  { FL_Q4_0, { 1 }, "xxh3:ffa3f42cf93b600645d7aea5e99efef2" },
  { FL_Q4_1, { 1, 3 }, "xxh3:f032109b43bb0b5f4241acdba559fa2a" },
  { FL_Q5_0, { 1 }, "xxh3:da36ff6cc323762c27507aa3912a7064" },
  { FL_Q5_1, { 1, 3 }, "xxh3:ef68cc5430615351634fb6fe7d550741" },
  { FL_Q4_K, { 1, 3 }, "xxh3:6a2022e62e66ff98d93d300159fad6c6" },
  { FL_Q5_K, { 1, 3 }, "xxh3:aadee285bb27616ef03c534fb09e5f59" },
  { FL_Q6_K, { 209 }, "xxh3:c32eac437ed1bb5329e9c13b8684c52f" },
};

START_TEST(blocks_of_random_bytes) {
  const fl_dtype_traits *t = fl_dtype_get(random_blocks[_i].type);
  const size_t n_bytes = 64 * t->bytes, n = 64 * t->block;
  const uint32_t key[2] = { (uint32_t)t->type, 0 };
  uint8_t *in = fl_malloc(n_bytes + 16 + 1), *odd = in + 1; /* blocks have no alignment */
  for (uint32_t i = 0; i * 16 < n_bytes; i++) {
    uint32_t word[4];
    fl_philox4x32(word, (const uint32_t[4]){ i, 0, 0, 0 }, key);
    memcpy(odd + i * 16, word, 16);
  }
  for (size_t b = 0; b < 64; b++)
    for (size_t k = 0; k < 2 && (k == 0 || random_blocks[_i].high[k] != 0); k++)
      odd[b * t->bytes + random_blocks[_i].high[k]] &= 0xBF;
  float *out = fl_malloc(n * sizeof *out);
  char text[FL_HASH_TEXT];
  t->dequantise(out, odd, n);
  fl_hash_bytes(text, out, n * sizeof *out);
  ck_assert_str_eq(text, random_blocks[_i].hash);
  fl_free(out);
  fl_free(in);
}
END_TEST

/* llama.cpp made the q8_0 file from the f16 one: quantising that again gives its bytes. */
START_TEST(q8_0_as_llama_cpp_makes_it) {
  fl_gguf *from = open_tiny("tiny-qwen3-k256-f16.gguf");
  fl_gguf *to = open_tiny("tiny-qwen3-k256-q8_0.gguf");
  size_t compared = 0;
  for (size_t i = 0; i < fl_gguf_n_tensors(from); i++) {
    const fl_tensor_info *a = fl_gguf_tensor_at(from, i);
    if (a->ggml_type != FL_F16) continue;
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)a->name.len, a->name.data);
    const fl_tensor_info *b = fl_gguf_tensor(to, name);
    const size_t n = n_values(a);
    float *values = fl_malloc(n * sizeof *values);
    uint8_t *q = fl_malloc(b->n_bytes);
    fl_dtype_get(FL_F16)->dequantise(values, a->data, n);
    fl_dtype_get(FL_Q8_0)->quantise(q, values, n);
    ck_assert_mem_eq(q, b->data, b->n_bytes);
    compared += n;
    fl_free(values);
    fl_free(q);
  }
  ck_assert_uint_eq(compared, 524288);
  fl_gguf_close(from);
  fl_gguf_close(to);
}
END_TEST

START_TEST(q8_0_of_extreme_values) {
  float in[32] = { 0 }, out[32];
  uint8_t q[34];
  const fl_dtype_traits *t = fl_dtype_get(FL_Q8_0);
  t->quantise(q, in, 32);
  for (int i = 0; i < 34; i++) ck_assert_uint_eq(q[i], 0);
  in[3] = -1e-39f; /* 1 / d would overflow */
  t->quantise(q, in, 32);
  t->dequantise(out, q, 32);
  for (int i = 0; i < 32; i++) ck_assert(out[i] == 0);
  in[3] = -12.7f;
  in[4] = 6.35f;
  t->quantise(q, in, 32);
  ck_assert_int_eq((int8_t)q[2 + 3], -127);
  ck_assert_int_eq((int8_t)q[2 + 4], 64); /* 63.5: halves away from zero */
}
END_TEST

START_TEST(plain_types_convert_both_ways) {
  static const float in[4] = { 1, -2.5f, 65504, 0x1p-24f };
  static const fl_dtype kinds[] = { FL_F32, FL_F16, FL_BF16 };
  for (size_t k = 0; k < 3; k++) {
    const fl_dtype_traits *t = fl_dtype_get(kinds[k]);
    uint8_t raw[17];
    float out[4];
    t->quantise(raw + 1, in, 4); /* unaligned on purpose */
    t->dequantise(out, raw + 1, 4);
    for (int i = 0; i < 4; i++)
      ck_assert(out[i] == (kinds[k] == FL_BF16 && i == 2 ? 65536 : in[i]));
  }
}
END_TEST

START_TEST(the_table) {
  static const struct {
    fl_dtype type;
    const char *name;
    uint32_t block, bytes;
  } want[] = { { FL_F32, "f32", 1, 4 },       { FL_F16, "f16", 1, 2 },
               { FL_BF16, "bf16", 1, 2 },     { FL_Q8_0, "q8_0", 32, 34 },
               { FL_Q4_0, "q4_0", 32, 18 },   { FL_Q4_1, "q4_1", 32, 20 },
               { FL_Q5_0, "q5_0", 32, 22 },   { FL_Q5_1, "q5_1", 32, 24 },
               { FL_Q4_K, "q4_k", 256, 144 }, { FL_Q5_K, "q5_k", 256, 176 },
               { FL_Q6_K, "q6_k", 256, 210 } };
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    const fl_dtype_traits *t = fl_dtype_get(want[i].type);
    uint32_t block, bytes;
    ck_assert_ptr_nonnull(t);
    ck_assert_ptr_eq(fl_dtype_by_name(want[i].name), t);
    ck_assert_str_eq(fl_dtype_any_name(want[i].type), want[i].name);
    ck_assert(t->block == want[i].block && t->bytes == want[i].bytes && t->dequantise != NULL);
    ck_assert(fl_dtype_any_block(want[i].type, &block, &bytes));
    ck_assert(block == want[i].block && bytes == want[i].bytes);
  }
  ck_assert_ptr_eq(fl_dtype_by_name("Q6_K"), fl_dtype_get(FL_Q6_K));
  ck_assert_ptr_null(fl_dtype_by_name("iq4_nl"));
  ck_assert_ptr_null(fl_dtype_get(20));
  ck_assert_str_eq(fl_dtype_any_name(20), "iq4_nl");
  ck_assert_str_eq(fl_dtype_any_name(99), "type 99");
  uint32_t block, bytes;
  ck_assert(!fl_dtype_any_block(99, &block, &bytes));
}
END_TEST

START_TEST(row_sizes) {
  size_t n = 7;
  ck_assert(fl_dtype_row_bytes(fl_dtype_get(FL_Q4_K), 512, &n) && n == 288);
  ck_assert(fl_dtype_row_bytes(fl_dtype_get(FL_Q4_K), 0, &n) && n == 0);
  ck_assert(!fl_dtype_row_bytes(fl_dtype_get(FL_Q4_K), 300, &n) && n == 0);
  ck_assert(!fl_dtype_row_bytes(fl_dtype_get(FL_F32), SIZE_MAX, &n));
}
END_TEST

Suite *suite_dtype(void) {
  Suite *s = suite_create("dtype");
  TCase *core = tcase_create("Core"), *golden = tcase_create("Golden");
  tcase_add_test(core, every_half);
  tcase_add_test(core, halves_round_to_nearest_even);
  tcase_add_test(core, bf16);
  tcase_add_test(core, plain_types_convert_both_ways);
  tcase_add_test(core, q8_0_of_extreme_values);
  tcase_add_test(core, the_table);
  tcase_add_test(core, row_sizes);
  tcase_add_loop_test(golden, weights_of_real_files, 0, sizeof files / sizeof *files);
  tcase_add_loop_test(golden, blocks_of_random_bytes, 0,
                      sizeof random_blocks / sizeof *random_blocks);
  tcase_add_test(golden, q8_0_as_llama_cpp_makes_it);
  suite_add_tcase(s, core);
  suite_add_tcase(s, golden);
  return s;
}
