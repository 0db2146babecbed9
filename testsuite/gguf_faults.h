/* gguf_faults.h - a tiny writer of GGUF files, sound or with one of many faults, and a reader that
 * touches everything. */
#ifndef FL_TESTSUITE_GGUF_FAULTS_H
#define FL_TESTSUITE_GGUF_FAULTS_H

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "formats/gguf.h"
#include "scratch.h"

typedef enum fault {
  NO_FAULT,
  BAD_MAGIC,
  BAD_VERSION_1,
  BAD_VERSION_BIG_ENDIAN,
  HUGE_TENSOR_COUNT,
  HUGE_PAIR_COUNT,
  MORE_TENSORS_THAN_THERE_ARE,
  MORE_PAIRS_THAN_THERE_ARE,
  KEY_TWICE,
  EMPTY_KEY,
  KEY_PAST_END,
  KEY_LENGTH_HUGE,
  KEY_WITH_CONTROL,
  STRING_PAST_END,
  STRING_LENGTH_MAX,
  VALUE_TYPE_UNKNOWN,
  BOOL_OF_TWO,
  ARRAY_NESTED,
  ARRAY_TYPE_UNKNOWN,
  ARRAY_COUNT_HUGE,
  ARRAY_COUNT_OVERFLOWS,
  ARRAY_STRING_PAST_END,
  ARRAY_BOOL_OF_TWO,
  ALIGNMENT_ZERO,
  ALIGNMENT_ODD,
  ALIGNMENT_TINY,
  ALIGNMENT_HUGE,
  ALIGNMENT_OF_TEXT,
  TENSOR_TWICE,
  TENSOR_NAME_EMPTY,
  TENSOR_NAME_PAST_END,
  DIMS_NONE,
  DIMS_FIVE,
  DIMS_HUGE_COUNT,
  DIM_ZERO,
  DIM_OVERFLOW_PRODUCT,
  DIM_OVERFLOW_BYTES,
  DIM_NOT_OF_BLOCK,
  DIM_NEGATIVE,
  OFFSET_UNALIGNED,
  OFFSET_OUTSIDE,
  OFFSET_MAX,
  DATA_ENDS_OUTSIDE,
  UNKNOWN_TYPE_OUTSIDE,
  N_FAULTS
} fault;

static void put_u32(fl_buf *b, uint32_t v) { fl_buf_append(b, &v, sizeof v); }

static void put_u64(fl_buf *b, uint64_t v) { fl_buf_append(b, &v, sizeof v); }

static void put_str(fl_buf *b, const char *s) {
  put_u64(b, strlen(s));
  fl_buf_puts(b, s);
}

static void put_key(fl_buf *b, const char *key, uint32_t type) {
  put_str(b, key);
  put_u32(b, type);
}

static void put_array(fl_buf *b, const char *key, uint32_t type, uint64_t n) {
  put_key(b, key, FL_GGUF_ARR);
  put_u32(b, type);
  put_u64(b, n);
}

static void put_tensor(fl_buf *b, const char *name, uint32_t n_dims, const uint64_t *dims,
                       uint32_t type, uint64_t offset) {
  put_str(b, name);
  put_u32(b, n_dims);
  for (uint32_t d = 0; d < n_dims && d < 5; d++) put_u64(b, dims[d]);
  put_u32(b, type);
  put_u64(b, offset);
}

/* Pairs that hold one value of each kind, so that a reader meets every branch. */
static uint64_t put_good_pairs(fl_buf *b) {
  put_key(b, "general.architecture", FL_GGUF_STR);
  put_str(b, "qwen3");
  put_key(b, "u8", FL_GGUF_U8);
  fl_buf_append(b, "\xFF", 1);
  put_key(b, "i8", FL_GGUF_I8);
  fl_buf_append(b, "\xFF", 1);
  put_key(b, "u16", FL_GGUF_U16);
  fl_buf_append(b, "\xFE\xFF", 2);
  put_key(b, "i16", FL_GGUF_I16);
  fl_buf_append(b, "\xFE\xFF", 2);
  put_key(b, "u32", FL_GGUF_U32);
  put_u32(b, 4000000000u);
  put_key(b, "i32", FL_GGUF_I32);
  put_u32(b, (uint32_t)-7);
  put_key(b, "f32", FL_GGUF_F32);
  fl_buf_append(b, &(float){ 1.5f }, 4);
  put_key(b, "yes", FL_GGUF_BOOL);
  fl_buf_append(b, "\1", 1);
  put_key(b, "u64", FL_GGUF_U64);
  put_u64(b, UINT64_MAX);
  put_key(b, "i64", FL_GGUF_I64);
  put_u64(b, (uint64_t)INT64_MIN);
  put_key(b, "f64", FL_GGUF_F64);
  fl_buf_append(b, &(double){ -0.1 }, 8);
  put_key(b, "nan", FL_GGUF_F32);
  fl_buf_append(b, &(float){ NAN }, 4);
  put_array(b, "ints", FL_GGUF_I16, 3);
  fl_buf_append(b, (int16_t[]){ 1, -2, 300 }, 6);
  put_array(b, "floats", FL_GGUF_F32, 2);
  fl_buf_append(b, (float[]){ 0.5f, -8 }, 8);
  put_array(b, "words", FL_GGUF_STR, 3);
  put_str(b, "one");
  put_str(b, "");
  put_str(b, "three");
  put_array(b, "none", FL_GGUF_STR, 0);
  put_array(b, "flags", FL_GGUF_BOOL, 2);
  fl_buf_append(b, "\1\0", 2);
  return 18;
}

/* One pair more, wrong as `f` says; returns how many pairs it is. */
static uint64_t put_faulty_pair(fl_buf *b, fault f) {
  switch (f) {
  case KEY_TWICE:
    put_key(b, "u32", FL_GGUF_U32);
    put_u32(b, 1);
    return 1;
  case EMPTY_KEY:
    put_key(b, "", FL_GGUF_U32);
    put_u32(b, 1);
    return 1;
  case KEY_WITH_CONTROL:
    put_key(b, "a\033[31m", FL_GGUF_U32);
    put_u32(b, 1);
    return 1;
  case KEY_PAST_END:
  case KEY_LENGTH_HUGE:
    put_u64(b, f == KEY_PAST_END ? 100000 : UINT64_MAX);
    fl_buf_puts(b, "key");
    put_u32(b, FL_GGUF_U32);
    put_u32(b, 1);
    return 1;
  case STRING_PAST_END:
  case STRING_LENGTH_MAX:
    put_key(b, "x", FL_GGUF_STR);
    put_u64(b, f == STRING_PAST_END ? 100000 : UINT64_MAX - 3);
    return 1;
  case VALUE_TYPE_UNKNOWN:
    put_key(b, "x", 13);
    put_u64(b, 0);
    return 1;
  case BOOL_OF_TWO:
    put_key(b, "x", FL_GGUF_BOOL);
    fl_buf_append(b, "\2", 1);
    return 1;
  case ARRAY_NESTED:
    put_array(b, "x", FL_GGUF_ARR, 1);
    put_u32(b, FL_GGUF_U8);
    put_u64(b, 0);
    return 1;
  case ARRAY_TYPE_UNKNOWN:
    put_array(b, "x", 77, 1);
    put_u64(b, 0);
    return 1;
  case ARRAY_COUNT_HUGE: put_array(b, "x", FL_GGUF_U32, 1000000); return 1;
  case ARRAY_COUNT_OVERFLOWS: /* times eight it is 8 */
    put_array(b, "x", FL_GGUF_U64, ((uint64_t)1 << 61) + 1);
    put_u64(b, 0);
    return 1;
  case ARRAY_STRING_PAST_END:
    put_array(b, "x", FL_GGUF_STR, 2);
    put_str(b, "a");
    put_u64(b, 1u << 20);
    return 1;
  case ARRAY_BOOL_OF_TWO:
    put_array(b, "x", FL_GGUF_BOOL, 2);
    fl_buf_append(b, "\1\2", 2);
    return 1;
  case ALIGNMENT_OF_TEXT:
    put_key(b, "general.alignment", FL_GGUF_STR);
    put_str(b, "32");
    return 1;
  case ALIGNMENT_ZERO:
  case ALIGNMENT_ODD:
  case ALIGNMENT_TINY:
  case ALIGNMENT_HUGE:
    put_key(b, "general.alignment", FL_GGUF_U32);
    put_u32(b, f == ALIGNMENT_ZERO   ? 0
               : f == ALIGNMENT_ODD  ? 48
               : f == ALIGNMENT_TINY ? 4
                                     : 1u << 31);
    return 1;
  default: return 0;
  }
}

/* One tensor more, wrong as `f` says; the good file has 256 bytes of data. */
static uint64_t put_faulty_tensor(fl_buf *b, fault f) {
  static const uint64_t four[] = { 4, 1, 1, 1, 1 }, zero[] = { 4, 0 };
  static const uint64_t product[] = { (uint64_t)1 << 32, (uint64_t)1 << 32 };
  static const uint64_t bytes[] = { (uint64_t)1 << 61, 2 }, odd[] = { 33 },
                        negative[] = { UINT64_MAX };
  static const uint64_t many[] = { 64, 2 };
  switch (f) {
  case TENSOR_TWICE: put_tensor(b, "b.weight", 1, four, FL_F32, 0); return 1;
  case TENSOR_NAME_EMPTY: put_tensor(b, "", 1, four, FL_F32, 0); return 1;
  case TENSOR_NAME_PAST_END: put_u64(b, 1u << 30); return 1;
  case DIMS_NONE: put_tensor(b, "x", 0, four, FL_F32, 0); return 1;
  case DIMS_FIVE: put_tensor(b, "x", 5, four, FL_F32, 0); return 1;
  case DIMS_HUGE_COUNT: put_tensor(b, "x", UINT32_MAX, four, FL_F32, 0); return 1;
  case DIM_ZERO: put_tensor(b, "x", 2, zero, FL_F32, 0); return 1;
  case DIM_OVERFLOW_PRODUCT: put_tensor(b, "x", 2, product, FL_Q4_0, 0); return 1;
  case DIM_OVERFLOW_BYTES: put_tensor(b, "x", 2, bytes, FL_F32, 0); return 1;
  case DIM_NOT_OF_BLOCK: put_tensor(b, "x", 1, odd, FL_Q8_0, 0); return 1;
  case DIM_NEGATIVE: put_tensor(b, "x", 1, negative, FL_F32, 0); return 1;
  case OFFSET_UNALIGNED: put_tensor(b, "x", 1, four, FL_F32, 8); return 1;
  case OFFSET_OUTSIDE: put_tensor(b, "x", 1, four, FL_F32, 1u << 20); return 1;
  case OFFSET_MAX: put_tensor(b, "x", 1, four, FL_F32, UINT64_MAX - 31); return 1;
  case DATA_ENDS_OUTSIDE: put_tensor(b, "x", 2, many, FL_F32, 0); return 1;
  case UNKNOWN_TYPE_OUTSIDE: put_tensor(b, "x", 1, four, 99, 4096); return 1;
  default: return 0;
  }
}

#define DATA_BYTES 256

static void write_gguf(fl_buf *out, fault f) {
  fl_buf pairs = { 0 }, tensors = { 0 };
  uint64_t n_pairs = put_good_pairs(&pairs), n_tensors = 3;
  n_pairs += put_faulty_pair(&pairs, f);
  put_tensor(&tensors, "b.weight", 2, (uint64_t[]){ 32, 2 }, FL_Q8_0, 0);
  put_tensor(&tensors, "a.weight", 1, (uint64_t[]){ 4 }, FL_F32, 96);
  put_tensor(&tensors, "future", 1, (uint64_t[]){ 5 }, 1000, 128);
  n_tensors += put_faulty_tensor(&tensors, f);
  if (f == HUGE_PAIR_COUNT) n_pairs = UINT64_MAX;
  if (f == HUGE_TENSOR_COUNT) n_tensors = (uint64_t)1 << 60;
  if (f == MORE_PAIRS_THAN_THERE_ARE) n_pairs++;
  if (f == MORE_TENSORS_THAN_THERE_ARE) n_tensors++;
  fl_buf_append(out, f == BAD_MAGIC ? "GGUG" : "GGUF", 4);
  put_u32(out, f == BAD_VERSION_1 ? 1 : f == BAD_VERSION_BIG_ENDIAN ? 3u << 24 : 3);
  put_u64(out, n_tensors);
  put_u64(out, n_pairs);
  fl_buf_append(out, pairs.data, pairs.len);
  fl_buf_append(out, tensors.data, tensors.len);
  while (out->len % 32 != 0) fl_buf_putc(out, 0);
  for (int i = 0; i < DATA_BYTES; i++) fl_buf_putc(out, (char)i);
  fl_buf_release(&pairs);
  fl_buf_release(&tensors);
}

static int open_bytes(fl_gguf **g, const void *data, size_t n, fl_err *err) {
  const char *path = scratch("x.gguf");
  scratch_put(path, data, n);
  return fl_gguf_open(g, path, err);
}

/* Uses everything that an accepted file offers; the sanitizers see a read past the mapping only at
 * its last page, so pointers are compared with the file's size too. */
static void use_everything(const fl_gguf *g) {
  volatile uint64_t sum = 0;
  for (size_t i = 0; i < fl_gguf_n_tensors(g); i++) {
    const fl_tensor_info *t = fl_gguf_tensor_at(g, i);
    if (t->data == NULL) continue;
    ck_assert(t->file_offset + t->n_bytes <= fl_gguf_file_size(g));
    for (size_t k = 0; k < t->n_bytes; k++) sum += ((const uint8_t *)t->data)[k];
  }
  for (size_t i = 0; i < fl_gguf_n_meta(g); i++) {
    fl_str key, s;
    fl_gguf_type type;
    fl_gguf_arr arr;
    char name[70000];
    ck_assert(fl_gguf_meta_at(g, i, &key, &type));
    memcpy(name, key.data, key.len);
    name[key.len] = '\0';
    if (fl_gguf_get_str(g, name, &s))
      for (size_t k = 0; k < s.len; k++) sum += (uint8_t)s.data[k];
    if (!fl_gguf_get_arr(g, name, &arr)) continue;
    size_t cursor = 0, strings = 0;
    while (fl_gguf_arr_next_str(&arr, &cursor, &s)) {
      for (size_t k = 0; k < s.len; k++) sum += (uint8_t)s.data[k];
      strings++;
    }
    if (type == FL_GGUF_STR) ck_assert_uint_eq(strings, arr.n);
    for (size_t k = 0; k < arr.n; k++)
      sum += (uint64_t)fl_gguf_arr_i64(&arr, k) + (fl_gguf_arr_f64(&arr, k) > 0);
  }
  char hash[FL_HASH_TEXT];
  fl_gguf_fingerprint(g, hash);
  ck_assert_mem_eq(hash, "xxh3:", 5);
}

#endif
