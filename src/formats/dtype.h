/* dtype.h - the one table of weight types: ids as in GGUF, block sizes, conversion.
 *
 * A row of n values of a type with blocks of `block` values takes n / block * bytes; n is a
 * multiple of `block`. dequantise gives the exact f32 value that the format defines (products and
 * sums in the order of the published reference, so that results equal ggml's to the bit).
 */
#ifndef FL_FORMATS_DTYPE_H
#define FL_FORMATS_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fl_dtype { /* GGUF's ids */
                        FL_F32 = 0,
                        FL_F16 = 1,
                        FL_Q4_0 = 2,
                        FL_Q4_1 = 3,
                        FL_Q5_0 = 6,
                        FL_Q5_1 = 7,
                        FL_Q8_0 = 8,
                        FL_Q4_K = 12,
                        FL_Q5_K = 13,
                        FL_Q6_K = 14,
                        FL_BF16 = 30
} fl_dtype;

typedef struct fl_dtype_traits {
  fl_dtype type;
  const char *name; /* "q8_0" */
  uint32_t block;   /* values in a block */
  uint32_t bytes;   /* bytes of a block */
  /* out[n] = values of `n` elements from a block boundary on; n a multiple of block */
  void (*dequantise)(float *out, const void *in, size_t n);
  /* inverse, or NULL where export does not offer it (f32, f16, bf16, q8_0 have it). */
  void (*quantise)(void *out, const float *in, size_t n);
} fl_dtype_traits;

const fl_dtype_traits *fl_dtype_get(uint32_t ggml_type);   /* NULL: not supported */
const fl_dtype_traits *fl_dtype_by_name(const char *name); /* case-insensitive; NULL */
/* Also for types we refuse; "type 99" for ids nobody knows, valid until this thread's next call. */
const char *fl_dtype_any_name(uint32_t ggml_type);
/* Values and bytes of a block, also for types we refuse; false for ids nobody knows. */
bool fl_dtype_any_block(uint32_t ggml_type, uint32_t *block, uint32_t *bytes);
/* False on overflow, or when n is no multiple of the block. */
bool fl_dtype_row_bytes(const fl_dtype_traits *t, size_t n, size_t *out);

/* Half precision in software, round to nearest even; subnormals, infinities and NaN kept. */
float fl_f16_to_f32(uint16_t h);
uint16_t fl_f32_to_f16(float f);
static inline float fl_bf16_to_f32(uint16_t b) {
  union {
    uint32_t u;
    float f;
  } v = { .u = (uint32_t)b << 16 };
  return v.f;
}
uint16_t fl_f32_to_bf16(float f);

#endif
