/* tokenizer.h - text to token ids and back, from the GGUF's own vocabulary.
 *
 * Kinds: byte-level BPE ("gpt2" in tokenizer.ggml.model) with the pre-tokenisers qwen2, llama-bpe
 * (llama3), smollm, gpt2 (default), and SentencePiece ("llama": score merge, byte fallback, space
 * prefix policy); gemma4's own BPE over SentencePiece-like pieces where the file says so. Others
 * are refused by name. NFC is applied where the reference tokenizer of the pre-tokeniser does so
 * (qwen2), unless no merge of the vocabulary leaves ASCII: such a vocabulary spells everything else
 * byte by byte, gains nothing from composed letters, and gives the text back as it was.
 * A tokenizer is immutable after opening and may be shared between threads.
 */
#ifndef FL_TEXT_TOKENIZER_H
#define FL_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "formats/gguf.h"

typedef struct fl_tokenizer fl_tokenizer;

/* The gguf must outlive the tokenizer. */
int fl_tokenizer_open(fl_tokenizer **out, const fl_gguf *g, fl_err *err);
void fl_tokenizer_close(fl_tokenizer *t);

enum {
  FL_TOK_SPECIAL = 1, /* control and user-defined token texts become those tokens */
  FL_TOK_BOS = 2,     /* put BOS first if the file's policy asks (tokenizer.ggml.add_bos_token) */
  FL_TOK_CONTINUE = 4 /* text goes on from text before: no SentencePiece space prefix */
};

/* Appends ids of text[0..len) to *out. Without FL_TOK_SPECIAL a marker in the text is plain text:
 * never a control token, nor a user-defined one unless that is white space only. Text need not be
 * valid UTF-8; bad bytes go through byte tokens. On failure *out is as it was. */
int fl_tokenize(const fl_tokenizer *t, fl_ids *out, const char *text, size_t len, unsigned flags,
                fl_err *err);

/* Appends the bytes of one token; control tokens give nothing unless `special`. */
void fl_detokenize_one(const fl_tokenizer *t, fl_buf *out, int32_t id, bool special);
/* Appends the text of ids[0..n) (a SentencePiece leading space is kept as it stands). */
void fl_detokenize(const fl_tokenizer *t, fl_buf *out, const int32_t *ids, size_t n, bool special);

size_t fl_tokenizer_n_vocab(const fl_tokenizer *t);
/* The id of an exact token text, or -1. */
int32_t fl_tokenizer_id(const fl_tokenizer *t, const char *text);
int32_t fl_tokenizer_bos(const fl_tokenizer *t); /* -1 if none */
int32_t fl_tokenizer_eos(const fl_tokenizer *t); /* -1 if none */
bool fl_tokenizer_adds_bos(const fl_tokenizer *t);
/* True for EOS, EOT and the other end-of-generation ids that the file names. */
bool fl_tokenizer_is_end(const fl_tokenizer *t, int32_t id);
bool fl_tokenizer_is_control(const fl_tokenizer *t, int32_t id);
/* tokenizer.chat_template, empty if the file has none. */
fl_str fl_tokenizer_chat_template(const fl_tokenizer *t);
/* "bpe/qwen2", "bpe/llama3", "bpe/smollm", "bpe/gpt2", "bpe/gemma4" or "spm". */
const char *fl_tokenizer_kind(const fl_tokenizer *t);
/* Identity of vocabulary, types, scores, merges and policy. FL_HASH_TEXT bytes. */
void fl_tokenizer_hash(const fl_tokenizer *t, char *out);

#endif
