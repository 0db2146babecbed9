/* dtype.c - the table of weight types, and the names and block sizes of the types that the program
 * knows but does not compute with. */
#include "formats/dtype.h"

#include <stdio.h>
#include <strings.h>

#include "base/mem.h"
#include "formats/quant.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "all file formats are little-endian and are used in place");

static const fl_dtype_traits table[] = {
  { FL_F32, "f32", 1, 4, fl_dequantise_f32, fl_quantise_f32 },
  { FL_F16, "f16", 1, 2, fl_dequantise_f16, fl_quantise_f16 },
  { FL_BF16, "bf16", 1, 2, fl_dequantise_bf16, fl_quantise_bf16 },
  { FL_Q8_0, "q8_0", 32, 34, fl_dequantise_q8_0, fl_quantise_q8_0 },
  { FL_Q4_0, "q4_0", 32, 18, fl_dequantise_q4_0, NULL },
  { FL_Q4_1, "q4_1", 32, 20, fl_dequantise_q4_1, NULL },
  { FL_Q5_0, "q5_0", 32, 22, fl_dequantise_q5_0, NULL },
  { FL_Q5_1, "q5_1", 32, 24, fl_dequantise_q5_1, NULL },
  { FL_Q4_K, "q4_k", 256, 144, fl_dequantise_q4_k, NULL },
  { FL_Q5_K, "q5_k", 256, 176, fl_dequantise_q5_k, NULL },
  { FL_Q6_K, "q6_k", 256, 210, fl_dequantise_q6_k, NULL },
};

/* Of these only the size is used: to check that a tensor lies in its file, and to copy it. */
static const struct refused {
  uint32_t type;
  const char *name;
  uint32_t block, bytes;
} others[] = {
  { 9, "q8_1", 32, 36 },      { 10, "q2_k", 256, 84 },    { 11, "q3_k", 256, 110 },
  { 15, "q8_k", 256, 292 },   { 16, "iq2_xxs", 256, 66 }, { 17, "iq2_xs", 256, 74 },
  { 18, "iq3_xxs", 256, 98 }, { 19, "iq1_s", 256, 50 },   { 20, "iq4_nl", 32, 18 },
  { 21, "iq3_s", 256, 110 },  { 22, "iq2_s", 256, 82 },   { 23, "iq4_xs", 256, 136 },
  { 24, "i8", 1, 1 },         { 25, "i16", 1, 2 },        { 26, "i32", 1, 4 },
  { 27, "i64", 1, 8 },        { 28, "f64", 1, 8 },        { 29, "iq1_m", 256, 56 },
  { 34, "tq1_0", 256, 54 },   { 35, "tq2_0", 256, 66 },   { 39, "mxfp4", 32, 17 },
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

const fl_dtype_traits *fl_dtype_get(uint32_t ggml_type) {
  for (size_t i = 0; i < COUNT(table); i++)
    if ((uint32_t)table[i].type == ggml_type) return &table[i];
  return NULL;
}

const fl_dtype_traits *fl_dtype_by_name(const char *name) {
  for (size_t i = 0; i < COUNT(table); i++)
    if (strcasecmp(table[i].name, name) == 0) return &table[i];
  return NULL;
}

static const struct refused *find_refused(uint32_t ggml_type) {
  for (size_t i = 0; i < COUNT(others); i++)
    if (others[i].type == ggml_type) return &others[i];
  return NULL;
}

const char *fl_dtype_any_name(uint32_t ggml_type) {
  static _Thread_local char text[32];
  const fl_dtype_traits *t = fl_dtype_get(ggml_type);
  if (t != NULL) return t->name;
  const struct refused *r = find_refused(ggml_type);
  if (r != NULL) return r->name;
  snprintf(text, sizeof text, "type %u", (unsigned)ggml_type);
  return text;
}

bool fl_dtype_any_block(uint32_t ggml_type, uint32_t *block, uint32_t *bytes) {
  const fl_dtype_traits *t = fl_dtype_get(ggml_type);
  const struct refused *r = t == NULL ? find_refused(ggml_type) : NULL;
  if (t == NULL && r == NULL) return false;
  *block = t != NULL ? t->block : r->block;
  *bytes = t != NULL ? t->bytes : r->bytes;
  return true;
}

bool fl_dtype_row_bytes(const fl_dtype_traits *t, size_t n, size_t *out) {
  return n % t->block == 0 && fl_mul_size(n / t->block, t->bytes, out);
}
