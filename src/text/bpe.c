/* bpe.c - merge rules and byte-level encoding. */
#include "text/bpe.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

#define FREE_RULE UINT64_MAX

/* Printable Latin-1 stands for itself, the other 68 bytes for U+0100 and up, in order. */
static bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

uint32_t fl_bpe_char_of(unsigned char byte) {
  if (stands_for_itself(byte)) return byte;
  if (byte <= 0x20) return 0x100u + byte;
  if (byte == 0xAD) return 0x143;
  return 0x121u + (byte - 0x7Fu); /* 0x7F..0xA0 */
}

int fl_bpe_byte_of(uint32_t cp) {
  if (cp < 0x100) return stands_for_itself(cp) ? (int)cp : -1;
  if (cp <= 0x120) return (int)(cp - 0x100);
  if (cp <= 0x142) return (int)(cp - 0x121 + 0x7F);
  return cp == 0x143 ? 0xAD : -1;
}

static size_t slot_of(const fl_bpe *b, uint64_t pair) {
  uint64_t h = pair * 0x9E3779B97F4A7C15u;
  h = (h ^ (h >> 32)) * 0xD6E8FEB86659FD93u;
  size_t at = (size_t)(h ^ (h >> 29)) & (b->n_slots - 1);
  while (b->rule[at].pair != FREE_RULE && b->rule[at].pair != pair)
    at = (at + 1) & (b->n_slots - 1);
  return at;
}

static uint64_t pair_of(int32_t left, int32_t right) {
  return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

bool fl_bpe_rule(const fl_bpe *b, int32_t left, int32_t right, uint32_t *rank, int32_t *id) {
  if (left < 0 || right < 0 || b->n_slots == 0) return false;
  const fl_merge_rule *r = &b->rule[slot_of(b, pair_of(left, right))];
  if (r->pair == FREE_RULE) return false;
  *rank = r->rank;
  *id = r->id;
  return true;
}

/* "left right": the blank that parts them is the first one after the first byte. */
static void add_rule(fl_bpe *b, fl_str text, uint32_t rank, fl_buf *joined) {
  const char *blank = text.len > 1 ? memchr(text.data + 1, ' ', text.len - 1) : NULL;
  if (blank == NULL) return;
  size_t n_left = (size_t)(blank - text.data), n_right = text.len - n_left - 1;
  int32_t left = fl_vocab_find(b->vocab, text.data, n_left);
  int32_t right = fl_vocab_find(b->vocab, blank + 1, n_right);
  fl_buf_reset(joined);
  fl_buf_append(joined, text.data, n_left);
  fl_buf_append(joined, blank + 1, n_right);
  int32_t id = joined->oom ? -1 : fl_vocab_find(b->vocab, joined->data, joined->len);
  if (left < 0 || right < 0 || id < 0 || b->vocab->type[id] == FL_TOKEN_CONTROL) return;
  fl_merge_rule rule = { pair_of(left, right), rank, id };
  fl_merge_rule *at = &b->rule[slot_of(b, rule.pair)];
  if (at->pair == FREE_RULE) *at = rule;
}

static int load_rules(fl_bpe *b, const fl_gguf_arr *a, const char *path, fl_err *err) {
  fl_buf joined = { 0 };
  int rc = FL_OK;
  b->n_slots = 16;
  while (b->n_slots < a->n * 2) b->n_slots *= 2;
  b->rule = fl_calloc(b->n_slots, sizeof *b->rule);
  if (b->rule == NULL) {
    rc = fl_fail(err, FL_ENOMEM, "%s: no memory for the merges", path);
    goto done;
  }
  for (size_t i = 0; i < b->n_slots; i++) b->rule[i].pair = FREE_RULE;
  size_t cursor = 0;
  for (size_t i = 0; i < a->n; i++) {
    fl_str text;
    if (!fl_gguf_arr_next_str(a, &cursor, &text)) {
      rc = fl_fail(err, FL_EINPUT, "%s: merge %zu is cut short; the file is damaged", path, i);
      goto done;
    }
    add_rule(b, text, (uint32_t)i, &joined);
  }
  if (joined.oom) rc = fl_fail(err, FL_ENOMEM, "%s: no memory for the merges", path);
done:
  fl_buf_release(&joined);
  return rc;
}

int fl_bpe_init(fl_bpe *b, const fl_vocab *v, const fl_gguf *g, fl_err *err) {
  const char *path = fl_gguf_path(g);
  fl_gguf_arr a;
  fl_bpe made = { .vocab = v };
  if (!fl_gguf_get_arr(g, "tokenizer.ggml.merges", &a) || a.type != FL_GGUF_STR)
    return fl_fail(err, FL_EINPUT,
                   "%s: no tokenizer.ggml.merges, which a BPE vocabulary needs; "
                   "convert the model again",
                   path);
  if (a.n > (size_t)1 << 26)
    return fl_fail(err, FL_EINPUT, "%s: %zu merges are too many; the file is damaged", path, a.n);
  int rc = load_rules(&made, &a, path, err);
  if (rc != FL_OK) {
    fl_bpe_release(&made);
    return rc;
  }
  for (unsigned i = 0; i < 256; i++) {
    char text[4];
    size_t n = fl_utf8_encode(text, fl_bpe_char_of((unsigned char)i));
    int32_t id = fl_vocab_find(v, text, n);
    made.byte_id[i] = id >= 0 && v->type[id] != FL_TOKEN_CONTROL ? id : -1;
  }
  *b = made;
  return FL_OK;
}

void fl_bpe_release(fl_bpe *b) {
  fl_free(b->rule);
  *b = (fl_bpe){ 0 };
}

static bool token_beyond_ascii(const fl_vocab *v, int32_t id) {
  const fl_str t = v->text[id];
  uint32_t cp;
  for (size_t at = 0, n; (n = fl_utf8_decode(&cp, NULL, t.data + at, t.len - at)) > 0; at += n)
    if (fl_bpe_byte_of(cp) >= 0x80) return true;
  return false;
}

bool fl_bpe_beyond_ascii(const fl_bpe *b) {
  for (size_t i = 0; i < b->n_slots; i++)
    if (b->rule[i].pair != FREE_RULE && token_beyond_ascii(b->vocab, b->rule[i].id)) return true;
  return false;
}

static bool by_rank(void *ctx, const fl_symbol *left, const fl_symbol *right, uint32_t *priority,
                    int32_t *id) {
  return fl_bpe_rule(ctx, left->id, right->id, priority, id);
}

/* The token that spells the whole piece in gpt2's alphabet; -1 if none does or it is no text. */
static int32_t whole_piece(const fl_bpe *b, const char *s, size_t len) {
  char text[256];
  size_t n = 0;
  for (size_t i = 0; i < len; i++) {
    if (n + 4 > sizeof text) return -1; /* no vocabulary has pieces that long */
    n += fl_utf8_encode(text + n, fl_bpe_char_of((unsigned char)s[i]));
  }
  int32_t id = fl_vocab_find(b->vocab, text, n);
  return id >= 0 && b->vocab->type[id] == FL_TOKEN_NORMAL ? id : -1;
}

static void encode_piece(const fl_bpe *b, fl_merger *m, fl_ids *out, const char *s, size_t len) {
  int32_t whole = b->whole_first ? whole_piece(b, s, len) : -1;
  if (whole >= 0) {
    fl_ids_push(out, whole);
    return;
  }
  fl_merger_reset(m);
  for (size_t i = 0; i < len; i++) {
    int32_t id = b->byte_id[(unsigned char)s[i]];
    if (id >= 0) fl_merger_push(m, (uint32_t)i, 1, id);
  }
  fl_merger_run(m, by_rank, (void *)b); /* the rules are only read */
  for (size_t i = 0; i < m->n_symbols; i++)
    if (m->symbol[i].len > 0) fl_ids_push(out, m->symbol[i].id);
}

int fl_bpe_encode(const fl_bpe *b, fl_merger *m, fl_ids *out, const char *s, size_t len) {
  while (len > 0 && !m->oom && !out->oom) {
    size_t n = fl_pretokenise(b->pre, s, len);
    encode_piece(b, m, out, s, n);
    s += n;
    len -= n;
  }
  return m->oom || out->oom ? FL_ENOMEM : FL_OK;
}
