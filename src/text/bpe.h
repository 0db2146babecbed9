/* bpe.h - BPE by a ranked list of merges: over the bytes of pre-tokenised pieces (gpt2's alphabet),
 * or over the characters of SentencePiece-like pieces with byte fallback (gemma4). Private to the
 * text layer; immutable once initialised. */
#ifndef FL_TEXT_BPE_H
#define FL_TEXT_BPE_H

#include "base/buf.h"
#include "text/merge.h"
#include "text/pretokenise.h"
#include "text/vocab.h"

typedef struct fl_merge_rule {
  uint64_t pair; /* left id << 32 | right id; UINT64_MAX: free */
  uint32_t rank;
  int32_t id;
} fl_merge_rule;

typedef struct fl_bpe {
  const fl_vocab *vocab;
  fl_merge_rule *rule; /* open addressing */
  size_t n_slots;      /* a power of two */
  fl_pre pre;          /* byte-level only */
  bool whole_first;    /* a piece that is a token is that token, whatever the merges say (llama3) */
  int32_t byte_id[256];
} fl_bpe;

/* Reads tokenizer.ggml.merges. A merge that names pieces outside the vocabulary can never apply
 * and is left out; one that makes a control token is too. */
int fl_bpe_init(fl_bpe *b, const fl_vocab *v, const fl_gguf *g, fl_err *err);
void fl_bpe_release(fl_bpe *b);
/* True if a merge joins bytes outside ASCII: the vocabulary was made from more than ASCII text. */
bool fl_bpe_beyond_ascii(const fl_bpe *b);

/* Appends the ids of s[0..len) to *out; bytes without a token are left out, as the reference does
 * (a vocabulary that lacks any of the 256 lacks only ones that valid UTF-8 never has). */
int fl_bpe_encode(const fl_bpe *b, fl_merger *m, fl_ids *out, const char *s, size_t len);

/* gpt2's alphabet: the byte that code point `cp` stands for, or -1. */
int fl_bpe_byte_of(uint32_t cp);
uint32_t fl_bpe_char_of(unsigned char byte);

/* The rank and the result of a merge; false if there is none. */
bool fl_bpe_rule(const fl_bpe *b, int32_t left, int32_t right, uint32_t *rank, int32_t *id);

#endif
