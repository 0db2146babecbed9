/* text_util.h - for the tests of the text layer: small vocabularies written as GGUF files, opening
 * a tokenizer, comparing ids. Failures end the running test. */
#ifndef FL_TESTSUITE_TEXT_UTIL_H
#define FL_TESTSUITE_TEXT_UTIL_H

#include "base/buf.h"
#include "base/json.h"
#include "formats/gguf.h"
#include "suite.h"
#include "text/tokenizer.h"

Suite *suite_tokenizer(void);
Suite *suite_chat(void);

/* A GGUF with metadata only, put together pair by pair. */
typedef struct gguf_maker {
  fl_buf pairs;
  unsigned n;
} gguf_maker;

void make_str(gguf_maker *m, const char *key, const char *value);
void make_u32(gguf_maker *m, const char *key, uint32_t value);
void make_bool(gguf_maker *m, const char *key, bool value);
void make_strs(gguf_maker *m, const char *key, const char *const *values, size_t n);
void make_i32s(gguf_maker *m, const char *key, const int32_t *values, size_t n);
void make_f32s(gguf_maker *m, const char *key, const float *values, size_t n);
/* Writes the file, releases the maker and opens it; the file's name is gone already. */
fl_gguf *make_open(gguf_maker *m);

/* Adds a byte-level BPE vocabulary: the 256 bytes (ids 0..255 in byte order), then what `merges`
 * ("left right", texts in gpt2's alphabet) make, then `marks` as control tokens. */
void make_byte_bpe(gguf_maker *m, const char *pre, const char *const *merges, size_t n_merges,
                   const char *const *marks, size_t n_marks);

typedef struct opened {
  fl_gguf *gguf;
  fl_tokenizer *tok;
} opened;

opened open_fixture(const char *rel);
opened open_path(const char *path);
opened open_made(gguf_maker *m);
void close_opened(opened *o);

/* Ids of a NUL-terminated text appended to a fresh list. */
fl_ids ids_of(const fl_tokenizer *t, const char *text, unsigned flags);
bool same_ids(const fl_ids *a, const fl_ids *b);
/* "12 7 9", for messages; valid until the next call but one. */
const char *show_ids(const fl_ids *v);
void check_same_ids(const fl_ids *got, const fl_ids *want, const char *what);

/* cases[i].ref of every case of a file fixtures/tokenizers/<name>.json against the tokenizer. */
void check_references(const fl_tokenizer *t, const char *name);
/* A parsed JSON fixture. */
fl_json *load_json(const char *rel);

#endif
