/* vocab.h - the vocabulary of a GGUF: texts, types, scores, lookup by text, and marker matching.
 * Private to the text layer. Texts point into the mapping of the GGUF. */
#ifndef FL_TEXT_VOCAB_H
#define FL_TEXT_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "formats/gguf.h"

typedef enum fl_token_type { /* GGUF's numbers */
                             FL_TOKEN_NORMAL = 1,
                             FL_TOKEN_UNKNOWN,
                             FL_TOKEN_CONTROL,
                             FL_TOKEN_USER,
                             FL_TOKEN_UNUSED,
                             FL_TOKEN_BYTE
} fl_token_type;

typedef struct fl_vocab_slot {
  uint32_t tag; /* of the hash, so that most misses never touch a text */
  int32_t id;   /* -1: free */
} fl_vocab_slot;

typedef struct fl_vocab {
  size_t n;
  fl_str *text;
  uint8_t *type;       /* fl_token_type */
  float *score;        /* NULL when the file has none */
  fl_vocab_slot *slot; /* open addressing over text */
  size_t n_slots;      /* a power of two */
  size_t max_len;      /* of any text */
  char *respelt;       /* the texts that are not as the file has them */
} fl_vocab;

/* Loads tokenizer.ggml.{tokens,token_type,scores}; every length is checked against the tokens,
 * types against the known ones, scores are finite. Markers of the chat templates are control
 * tokens whatever type the file gives them. With `pieces` blanks in user-defined texts become
 * U+2581, as they are in SentencePiece's own files: converters write them as blanks. */
int fl_vocab_load(fl_vocab *v, const fl_gguf *g, bool pieces, fl_err *err);
void fl_vocab_release(fl_vocab *v);
/* The lowest id with that text, or -1. */
int32_t fl_vocab_find(const fl_vocab *v, const char *s, size_t len);
/* A user-defined token of white space only (also U+2581): safe to take from any text. */
bool fl_vocab_is_blank(const fl_vocab *v, int32_t id);

/* A set of token texts to be found inside text, leftmost and longest first. */
enum { FL_MARK_CONTROL = 1, FL_MARK_USER = 2, FL_MARK_BLANK = 4, FL_MARK_UNKNOWN = 8 };
typedef struct fl_markers {
  const fl_vocab *vocab;
  int32_t *id;       /* in the order of their texts' bytes, a prefix before what it begins */
  size_t first[257]; /* those that begin with byte b: id[first[b] .. first[b + 1]) */
} fl_markers;

/* FL_MARK_USER takes every user-defined token, FL_MARK_BLANK only the blank ones. */
int fl_markers_init(fl_markers *m, const fl_vocab *v, unsigned kinds);
void fl_markers_release(fl_markers *m);
/* The longest mark that s[0..len) begins with, and its length; -1 if none. */
int32_t fl_markers_match(const fl_markers *m, const char *s, size_t len, size_t *matched);
/* The byte offset of the leftmost mark at or after `from` (len if none), its id and length. */
size_t fl_markers_find(const fl_markers *m, const char *s, size_t len, size_t from, int32_t *id,
                       size_t *matched);

#endif
