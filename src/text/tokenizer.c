/* tokenizer.c - one tokenizer over the kinds of vocabulary: policy from the file, splitting text at
 * marks, handing the rest to byte-level BPE or SentencePiece-like pieces, and the way back.
 *
 * Which marks are cut out of raw text first:
 *              with FL_TOK_SPECIAL        without
 *   BPE        control, unknown,          white-space-only user-defined
 *              user-defined
 *   SPM        control                    none
 * (the unknown token's text is one of the added tokens of the reference BPE, and plain text to
 * SentencePiece). SentencePiece finds its user-defined pieces itself, after blanks became U+2581.
 */
#include "text/tokenizer.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "text/bpe.h"
#include "text/merge.h"
#include "text/spm.h"
#include "text/unicode.h"
#include "text/vocab.h"

typedef enum kind { KIND_BYTE_BPE, KIND_GEMMA4, KIND_SPM } kind;

#define MAX_ENDS 16

struct fl_tokenizer {
  const fl_gguf *gguf;
  fl_vocab vocab;
  fl_bpe bpe;
  fl_spm spm;
  fl_markers special, plain;           /* cut out of raw text, with and without FL_TOK_SPECIAL */
  fl_markers kept_special, kept_plain; /* SPM's whole pieces */
  kind kind;
  bool nfc, adds_bos, space_prefix;
  int32_t bos, eos, unknown;
  int32_t end[MAX_ENDS];
  size_t n_ends;
  char name[24];
  char hash[FL_HASH_TEXT];
};

/* ---- opening ---------------------------------------------------------------------------- */

static bool str_is(fl_str s, const char *lit) {
  return s.len == strlen(lit) && memcmp(s.data, lit, s.len) == 0;
}

static int get_id(int32_t *out, const fl_tokenizer *t, const char *key, fl_err *err) {
  uint64_t id;
  *out = -1;
  if (!fl_gguf_get_u64(t->gguf, key, &id)) return FL_OK;
  if (id == UINT32_MAX) return FL_OK; /* what some converters write for "none" */
  if (id >= t->vocab.n)
    return fl_fail(err, FL_EINPUT,
                   "%s: %s is %llu, but there are only %zu tokens; the file is "
                   "damaged",
                   fl_gguf_path(t->gguf), key, (unsigned long long)id, t->vocab.n);
  *out = (int32_t)id;
  return FL_OK;
}

static void add_end(fl_tokenizer *t, int32_t id) {
  if (id < 0 || t->n_ends == MAX_ENDS || fl_tokenizer_is_end(t, id)) return;
  t->end[t->n_ends++] = id;
}

/* Ids that the file names, and the well-known ends where they are control tokens. */
static int load_policy(fl_tokenizer *t, fl_err *err) {
  static const char *const ends[] = {
    "<|im_end|>",      "<|endoftext|>", "<|eot_id|>", "<|eom_id|>",
    "<|end_of_text|>", "<end_of_turn>", "<turn|>",
  };
  int32_t eot, eom;
  int rc = get_id(&t->bos, t, "tokenizer.ggml.bos_token_id", err);
  if (rc == FL_OK) rc = get_id(&t->eos, t, "tokenizer.ggml.eos_token_id", err);
  if (rc == FL_OK) rc = get_id(&t->unknown, t, "tokenizer.ggml.unknown_token_id", err);
  if (rc == FL_OK) rc = get_id(&eot, t, "tokenizer.ggml.eot_token_id", err);
  if (rc == FL_OK) rc = get_id(&eom, t, "tokenizer.ggml.eom_token_id", err);
  if (rc != FL_OK) return rc;
  add_end(t, t->eos);
  add_end(t, eot);
  add_end(t, eom);
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    int32_t id = fl_tokenizer_id(t, ends[i]);
    if (id >= 0 && fl_tokenizer_is_control(t, id)) add_end(t, id);
  }
  return FL_OK;
}

static int open_byte_bpe(fl_tokenizer *t, fl_err *err) {
  fl_str pre = { "default", 7 };
  fl_gguf_get_str(t->gguf, "tokenizer.ggml.pre", &pre);
  fl_pre which;
  if (!fl_pre_by_name(&which, pre.data, pre.len))
    return fl_fail(err, FL_EINPUT,
                   "%s: the pre-tokeniser \"%.*s\" is not supported; use a model "
                   "with qwen2, llama-bpe, smollm or gpt-2",
                   fl_gguf_path(t->gguf), (int)(pre.len < 64 ? pre.len : 64), pre.data);
  int rc = fl_bpe_init(&t->bpe, &t->vocab, t->gguf, err);
  if (rc != FL_OK) return rc;
  t->bpe.pre = which;
  t->bpe.whole_first = which == FL_PRE_LLAMA3;
  t->nfc = which == FL_PRE_QWEN2 && fl_bpe_beyond_ascii(&t->bpe);
  t->adds_bos = which == FL_PRE_LLAMA3;
  snprintf(t->name, sizeof t->name, "bpe/%s", fl_pre_name(which));
  return FL_OK;
}

static int open_pieces(fl_tokenizer *t, fl_err *err) {
  t->adds_bos = true;
  t->space_prefix = t->kind == KIND_SPM;
  snprintf(t->name, sizeof t->name, "%s", t->kind == KIND_SPM ? "spm" : "bpe/gemma4");
  if (t->kind == KIND_GEMMA4) {
    int rc = fl_bpe_init(&t->bpe, &t->vocab, t->gguf, err);
    if (rc != FL_OK) return rc;
  }
  return fl_spm_init(&t->spm, &t->vocab, t->kind == KIND_GEMMA4 ? &t->bpe : NULL, t->unknown,
                     fl_gguf_path(t->gguf), err);
}

static int find_kind(fl_tokenizer *t, fl_err *err) {
  fl_str model = { "", 0 };
  fl_gguf_get_str(t->gguf, "tokenizer.ggml.model", &model);
  if (str_is(model, "gpt2")) t->kind = KIND_BYTE_BPE;
  else if (str_is(model, "gemma4")) t->kind = KIND_GEMMA4;
  else if (str_is(model, "llama")) t->kind = KIND_SPM;
  else
    return fl_fail(err, FL_EINPUT,
                   "%s: the tokenizer model \"%.*s\" is not supported; use a model "
                   "with gpt2, llama or gemma4",
                   fl_gguf_path(t->gguf), (int)(model.len < 64 ? model.len : 64), model.data);
  return FL_OK;
}

static int open_kind(fl_tokenizer *t, fl_err *err) {
  int rc = t->kind == KIND_BYTE_BPE ? open_byte_bpe(t, err) : open_pieces(t, err);
  if (rc != FL_OK) return rc;
  fl_gguf_get_bool(t->gguf, "tokenizer.ggml.add_bos_token", &t->adds_bos);
  fl_gguf_get_bool(t->gguf, "tokenizer.ggml.add_space_prefix", &t->space_prefix);
  if (t->kind != KIND_SPM) t->space_prefix = false;
  if (t->bos < 0) t->adds_bos = false;
  return FL_OK;
}

static int init_marks(fl_tokenizer *t) {
  bool spm = t->kind == KIND_SPM;
  unsigned special = spm ? FL_MARK_CONTROL : FL_MARK_CONTROL | FL_MARK_USER | FL_MARK_UNKNOWN;
  int rc = fl_markers_init(&t->special, &t->vocab, special);
  if (rc == FL_OK) rc = fl_markers_init(&t->plain, &t->vocab, spm ? 0 : FL_MARK_BLANK);
  if (rc == FL_OK) rc = fl_markers_init(&t->kept_special, &t->vocab, FL_MARK_USER);
  if (rc == FL_OK) rc = fl_markers_init(&t->kept_plain, &t->vocab, FL_MARK_BLANK);
  return rc;
}

static int hash_vocabulary(fl_tokenizer *t) {
  static const char *const arrays[] = {
    "tokenizer.ggml.tokens",
    "tokenizer.ggml.token_type",
    "tokenizer.ggml.scores",
    "tokenizer.ggml.merges",
  };
  fl_hasher *h = fl_hasher_new();
  if (h == NULL) return FL_ENOMEM;
  fl_hasher_add(h, t->name, sizeof t->name);
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
    fl_gguf_arr a;
    if (!fl_gguf_get_arr(t->gguf, arrays[i], &a)) continue;
    fl_hasher_add(h, arrays[i], strlen(arrays[i]) + 1);
    fl_hasher_add(h, a.data, a.n_bytes);
  }
  const int32_t policy[] = { t->bos, t->eos, t->unknown, t->adds_bos, t->space_prefix, t->nfc };
  fl_hasher_add(h, policy, sizeof policy);
  fl_hasher_text(h, t->hash);
  fl_hasher_free(h);
  return FL_OK;
}

int fl_tokenizer_open(fl_tokenizer **out, const fl_gguf *g, fl_err *err) {
  fl_tokenizer *t = fl_calloc(1, sizeof *t);
  if (t == NULL) return fl_fail(err, FL_ENOMEM, "%s: no memory for the tokenizer", fl_gguf_path(g));
  t->gguf = g;
  int rc = find_kind(t, err);
  if (rc == FL_OK) rc = fl_vocab_load(&t->vocab, g, t->kind == KIND_SPM, err);
  if (rc == FL_OK) rc = load_policy(t, err);
  if (rc == FL_OK) rc = open_kind(t, err);
  if (rc != FL_OK) goto done;
  rc = init_marks(t);
  if (rc == FL_OK) rc = hash_vocabulary(t);
  if (rc != FL_OK) {
    fl_fail(err, rc, "%s: no memory for the tokenizer", fl_gguf_path(g));
    goto done;
  }
  *out = t;
  return FL_OK;
done:
  fl_tokenizer_close(t);
  return rc;
}

void fl_tokenizer_close(fl_tokenizer *t) {
  if (t == NULL) return;
  fl_markers_release(&t->special);
  fl_markers_release(&t->plain);
  fl_markers_release(&t->kept_special);
  fl_markers_release(&t->kept_plain);
  fl_bpe_release(&t->bpe);
  fl_vocab_release(&t->vocab);
  fl_free(t);
}

/* ---- text to ids -------------------------------------------------------------------------- */

typedef struct encoder {
  const fl_tokenizer *t;
  fl_ids *out;
  fl_merger merger;
  fl_buf scratch;
  unsigned flags;
} encoder;

static int encode_bytes(encoder *e, const char *text, size_t len) {
  bool changed = false;
  fl_buf_reset(&e->scratch);
  if (e->t->nfc && fl_uc_nfc(&e->scratch, &changed, text, len) != FL_OK) return FL_ENOMEM;
  if (changed) {
    text = e->scratch.data;
    len = e->scratch.len;
  }
  return fl_bpe_encode(&e->t->bpe, &e->merger, e->out, text, len);
}

static int encode_pieces(encoder *e, const char *text, size_t len, bool prefix) {
  fl_buf *b = &e->scratch;
  fl_buf_reset(b);
  if (prefix) fl_buf_puts(b, "\xE2\x96\x81");
  for (size_t at = 0; at < len;) {
    const char *blank = memchr(text + at, ' ', len - at);
    size_t n = blank ? (size_t)(blank - text) - at : len - at;
    fl_buf_append(b, text + at, n);
    if (blank) fl_buf_puts(b, "\xE2\x96\x81");
    at += n + (blank != NULL);
  }
  if (b->oom) return FL_ENOMEM;
  const fl_markers *kept = NULL;
  if (e->t->kind == KIND_SPM)
    kept = e->flags & FL_TOK_SPECIAL ? &e->t->kept_special : &e->t->kept_plain;
  return fl_spm_encode(&e->t->spm, &e->merger, kept, e->out, b->data, b->len);
}

static int encode_all(encoder *e, const char *text, size_t len) {
  const fl_tokenizer *t = e->t;
  const fl_markers *marks = e->flags & FL_TOK_SPECIAL ? &t->special : &t->plain;
  bool prefix = t->space_prefix && !(e->flags & FL_TOK_CONTINUE);
  for (size_t at = 0; at < len;) {
    int32_t id;
    size_t matched;
    size_t mark = fl_markers_find(marks, text, len, at, &id, &matched);
    int rc = FL_OK;
    if (mark > at && t->kind == KIND_BYTE_BPE) rc = encode_bytes(e, text + at, mark - at);
    else if (mark > at) rc = encode_pieces(e, text + at, mark - at, prefix);
    if (rc != FL_OK) return rc;
    if (id >= 0) fl_ids_push(e->out, id);
    prefix = t->space_prefix;
    at = mark + matched;
  }
  return e->out->oom ? FL_ENOMEM : FL_OK;
}

int fl_tokenize(const fl_tokenizer *t, fl_ids *out, const char *text, size_t len, unsigned flags,
                fl_err *err) {
  if (len > INT32_MAX / 3) /* three bytes for each blank, positions in 31 bits */
    return fl_fail(err, FL_EINPUT, "a text of %zu bytes is too long to tokenise; split it", len);
  size_t had = out->len;
  encoder e = { .t = t, .out = out, .flags = flags };
  if ((flags & FL_TOK_BOS) && t->adds_bos) fl_ids_push(out, t->bos);
  int rc = encode_all(&e, text, len);
  fl_merger_release(&e.merger);
  fl_buf_release(&e.scratch);
  if (rc == FL_OK) return FL_OK;
  out->len = had;
  return fl_fail(err, rc, "no memory to tokenise a text of %zu bytes", len);
}

/* ---- ids to text -------------------------------------------------------------------------- */

static void decode_alphabet(fl_buf *out, fl_str text) {
  uint32_t cp;
  for (size_t at = 0, n; (n = fl_utf8_decode(&cp, NULL, text.data + at, text.len - at)) > 0;
       at += n) {
    int byte = fl_bpe_byte_of(cp);
    if (byte >= 0) fl_buf_putc(out, (char)byte);
    else fl_buf_append(out, text.data + at, n);
  }
}

static void decode_blanks(fl_buf *out, fl_str text) {
  for (size_t at = 0; at < text.len;) {
    bool blank = text.len - at >= 3 && memcmp(text.data + at, "\xE2\x96\x81", 3) == 0;
    fl_buf_putc(out, blank ? ' ' : text.data[at]);
    at += blank ? 3 : 1;
  }
}

static int hex_digit(char c) { return c <= '9' ? c - '0' : c - 'A' + 10; }

/* "<0x0A>": the digits were checked by fl_spm_init only for the ids it took, so look again. */
static bool is_byte_text(fl_str s) {
  static const char hex[] = "0123456789ABCDEF";
  return s.len == 6 && memcmp(s.data, "<0x", 3) == 0 && s.data[5] == '>' &&
         memchr(hex, s.data[3], 16) && memchr(hex, s.data[4], 16);
}

void fl_detokenize_one(const fl_tokenizer *t, fl_buf *out, int32_t id, bool special) {
  if (id < 0 || (size_t)id >= t->vocab.n) return;
  const fl_str text = t->vocab.text[id];
  switch ((fl_token_type)t->vocab.type[id]) {
  case FL_TOKEN_CONTROL:
    if (special) fl_buf_append(out, text.data, text.len);
    return;
  case FL_TOKEN_UNKNOWN:
    if (special) fl_buf_append(out, text.data, text.len);
    else fl_buf_puts(out, "\xEF\xBF\xBD");
    return;
  case FL_TOKEN_UNUSED: return;
  case FL_TOKEN_BYTE:
    if (is_byte_text(text))
      fl_buf_putc(out, (char)(hex_digit(text.data[3]) * 16 + hex_digit(text.data[4])));
    return;
  case FL_TOKEN_USER:
  case FL_TOKEN_NORMAL: break;
  }
  if (t->kind != KIND_BYTE_BPE) decode_blanks(out, text);
  else if (t->vocab.type[id] == FL_TOKEN_USER) fl_buf_append(out, text.data, text.len);
  else decode_alphabet(out, text);
}

void fl_detokenize(const fl_tokenizer *t, fl_buf *out, const int32_t *ids, size_t n, bool special) {
  for (size_t i = 0; i < n; i++) fl_detokenize_one(t, out, ids[i], special);
}

/* ---- facts -------------------------------------------------------------------------------- */

size_t fl_tokenizer_n_vocab(const fl_tokenizer *t) { return t->vocab.n; }

int32_t fl_tokenizer_id(const fl_tokenizer *t, const char *text) {
  return fl_vocab_find(&t->vocab, text, strlen(text));
}

int32_t fl_tokenizer_bos(const fl_tokenizer *t) { return t->bos; }
int32_t fl_tokenizer_eos(const fl_tokenizer *t) { return t->eos; }
bool fl_tokenizer_adds_bos(const fl_tokenizer *t) { return t->adds_bos; }

bool fl_tokenizer_is_end(const fl_tokenizer *t, int32_t id) {
  for (size_t i = 0; i < t->n_ends; i++)
    if (t->end[i] == id) return true;
  return false;
}

bool fl_tokenizer_is_control(const fl_tokenizer *t, int32_t id) {
  return id >= 0 && (size_t)id < t->vocab.n && t->vocab.type[id] == FL_TOKEN_CONTROL;
}

fl_str fl_tokenizer_chat_template(const fl_tokenizer *t) {
  fl_str s = { "", 0 };
  fl_gguf_get_str(t->gguf, "tokenizer.chat_template", &s);
  return s;
}

const char *fl_tokenizer_kind(const fl_tokenizer *t) { return t->name; }

void fl_tokenizer_hash(const fl_tokenizer *t, char *out) { memcpy(out, t->hash, FL_HASH_TEXT); }
