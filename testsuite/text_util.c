/* text_util.c - see the header. */
#include "text_util.h"

#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "text/bpe.h"

static void put_u32(fl_buf *b, uint32_t v) {
  unsigned char le[4] = { (unsigned char)v, (unsigned char)(v >> 8), (unsigned char)(v >> 16),
                          (unsigned char)(v >> 24) };
  fl_buf_append(b, le, 4);
}

static void put_u64(fl_buf *b, uint64_t v) {
  put_u32(b, (uint32_t)v);
  put_u32(b, (uint32_t)(v >> 32));
}

static void put_str(fl_buf *b, const char *s) {
  put_u64(b, strlen(s));
  fl_buf_append(b, s, strlen(s));
}

static void put_key(gguf_maker *m, const char *key, fl_gguf_type type) {
  put_str(&m->pairs, key);
  put_u32(&m->pairs, type);
  m->n++;
}

static void put_arr(gguf_maker *m, const char *key, fl_gguf_type type, size_t n) {
  put_key(m, key, FL_GGUF_ARR);
  put_u32(&m->pairs, type);
  put_u64(&m->pairs, n);
}

void make_str(gguf_maker *m, const char *key, const char *value) {
  put_key(m, key, FL_GGUF_STR);
  put_str(&m->pairs, value);
}

void make_u32(gguf_maker *m, const char *key, uint32_t value) {
  put_key(m, key, FL_GGUF_U32);
  put_u32(&m->pairs, value);
}

void make_bool(gguf_maker *m, const char *key, bool value) {
  put_key(m, key, FL_GGUF_BOOL);
  fl_buf_putc(&m->pairs, value);
}

void make_strs(gguf_maker *m, const char *key, const char *const *values, size_t n) {
  put_arr(m, key, FL_GGUF_STR, n);
  for (size_t i = 0; i < n; i++) put_str(&m->pairs, values[i]);
}

void make_i32s(gguf_maker *m, const char *key, const int32_t *values, size_t n) {
  put_arr(m, key, FL_GGUF_I32, n);
  for (size_t i = 0; i < n; i++) put_u32(&m->pairs, (uint32_t)values[i]);
}

void make_f32s(gguf_maker *m, const char *key, const float *values, size_t n) {
  put_arr(m, key, FL_GGUF_F32, n);
  for (size_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, &values[i], 4);
    put_u32(&m->pairs, bits);
  }
}

fl_gguf *make_open(gguf_maker *m) {
  char path[] = "/tmp/flotilla-vocab-XXXXXX";
  int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  fl_buf file = { 0 };
  fl_buf_append(&file, "GGUF", 4);
  put_u32(&file, 3);
  put_u64(&file, 0);
  put_u64(&file, m->n);
  fl_buf_append(&file, m->pairs.data, m->pairs.len);
  while (file.len % 32 != 0) fl_buf_putc(&file, '\0');
  ck_assert_int_eq(write(fd, file.data, file.len), (ssize_t)file.len);
  close(fd);
  fl_gguf *g = NULL;
  fl_err err = { 0 };
  int rc = fl_gguf_open(&g, path, &err);
  unlink(path);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  fl_buf_release(&file);
  fl_buf_release(&m->pairs);
  m->n = 0;
  return g;
}

void make_byte_bpe(gguf_maker *m, const char *pre, const char *const *merges, size_t n_merges,
                   const char *const *marks, size_t n_marks) {
  size_t n = 256 + n_merges + n_marks;
  char(*text)[64] = calloc(n, sizeof *text);
  const char **texts = calloc(n, sizeof *texts);
  int32_t *types = calloc(n, sizeof *types);
  for (unsigned i = 0; i < 256; i++) fl_utf8_encode(text[i], fl_bpe_char_of((unsigned char)i));
  for (size_t i = 0; i < n_merges; i++) {
    const char *blank = strchr(merges[i] + 1, ' ');
    snprintf(text[256 + i], sizeof *text, "%.*s%s", (int)(blank - merges[i]), merges[i], blank + 1);
  }
  for (size_t i = 0; i < n_marks; i++)
    snprintf(text[256 + n_merges + i], sizeof *text, "%s", marks[i]);
  for (size_t i = 0; i < n; i++) {
    texts[i] = text[i];
    types[i] = i < 256 + n_merges ? 1 : 3;
  }
  make_str(m, "tokenizer.ggml.model", "gpt2");
  make_str(m, "tokenizer.ggml.pre", pre);
  make_strs(m, "tokenizer.ggml.tokens", texts, n);
  make_i32s(m, "tokenizer.ggml.token_type", types, n);
  make_strs(m, "tokenizer.ggml.merges", merges, n_merges);
  free(types);
  free(texts);
  free(text);
}

static opened open_gguf(fl_gguf *g) {
  opened o = { .gguf = g };
  fl_err err = { 0 };
  int rc = fl_tokenizer_open(&o.tok, g, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  return o;
}

opened open_path(const char *path) {
  fl_gguf *g = NULL;
  fl_err err = { 0 };
  int rc = fl_gguf_open(&g, path, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  return open_gguf(g);
}

opened open_fixture(const char *rel) { return open_path(fixture(rel)); }
opened open_made(gguf_maker *m) { return open_gguf(make_open(m)); }

void close_opened(opened *o) {
  fl_tokenizer_close(o->tok);
  fl_gguf_close(o->gguf);
  *o = (opened){ 0 };
}

fl_ids ids_of(const fl_tokenizer *t, const char *text, unsigned flags) {
  fl_ids v = { 0 };
  fl_err err = { 0 };
  int rc = fl_tokenize(t, &v, text, strlen(text), flags, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  return v;
}

bool same_ids(const fl_ids *a, const fl_ids *b) {
  return a->len == b->len &&
         (a->len == 0 || memcmp(a->data, b->data, a->len * sizeof *a->data) == 0);
}

const char *show_ids(const fl_ids *v) {
  static char text[2][4096];
  static int turn;
  char *s = text[turn ^= 1];
  size_t n = 0;
  s[0] = '\0';
  for (size_t i = 0; i < v->len && n + 16 < sizeof *text; i++)
    n += (size_t)snprintf(s + n, sizeof *text - n, "%s%d", i ? " " : "", v->data[i]);
  return s;
}

void check_same_ids(const fl_ids *got, const fl_ids *want, const char *what) {
  ck_assert_msg(same_ids(got, want), "%s: got [%s], want [%s]", what, show_ids(got),
                show_ids(want));
}

/* U+0000, which fl_json_parse refuses, becomes U+0001; check_case puts it back. */
static void without_nul_escapes(fl_buf *text) {
  char *at = text->data;
  while ((at = strstr(at, "\\u0000")) != NULL) at[5] = '1';
}

fl_json *load_json(const char *rel) {
  fl_buf text = { 0 };
  fl_json *root = NULL;
  fl_err err = { 0 };
  int rc = fl_fs_read(&text, fixture(rel), 1 << 24, &err);
  if (rc == FL_OK) without_nul_escapes(&text);
  if (rc == FL_OK) rc = fl_json_parse(&root, text.data, text.len, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  fl_buf_release(&text);
  return root;
}

static void check_case(const fl_tokenizer *t, const fl_json *c, size_t index, const char *name) {
  const char *text = NULL;
  ck_assert(fl_json_get_str(c, "text", &text));
  size_t len = strlen(text);
  if (index == 141) text = "\0";
  if (index == 142) text = "a\0b";
  fl_ids want = { 0 }, got = { 0 };
  ck_assert_int_eq(fl_tokenize(t, &got, text, len, FL_TOK_SPECIAL, NULL), FL_OK);
  for (const fl_json *v = fl_json_first(fl_json_get(c, "ref")); v; v = fl_json_next(v)) {
    double id = -1;
    fl_json_as_num(v, &id);
    fl_ids_push(&want, (int32_t)id);
  }
  char what[64];
  snprintf(what, sizeof what, "%s, string %zu", name, index);
  check_same_ids(&got, &want, what);
  fl_ids_release(&want);
  fl_ids_release(&got);
}

void check_references(const fl_tokenizer *t, const char *name) {
  char rel[128];
  snprintf(rel, sizeof rel, "tokenizers/%s.json", name);
  fl_json *root = load_json(rel);
  size_t n = 0;
  for (const fl_json *c = fl_json_first(fl_json_get(root, "cases")); c; c = fl_json_next(c))
    check_case(t, c, n++, name);
  ck_assert_uint_eq(n, 190);
  fl_json_free(root);
}
