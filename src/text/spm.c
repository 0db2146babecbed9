/* spm.c - encoding into SentencePiece-like pieces.
 *
 * A text is cut into words, that is into stretches across which no merge can reach (see the
 * header and the pieces kept whole), so that what is merged at a time stays short.
 *
 * An unused piece may be made on the way to a longer one; one that is left at the end falls back
 * into the two parts that it was last proposed from, as in SentencePiece. */
#include "text/spm.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

typedef struct word {
  const fl_spm *spm;
  const char *text;
  uint32_t *unused_left; /* by id: length of the left part of an unused piece; made when needed */
  bool oom;
} word;

static bool is_blank_at(const char *s, size_t len) {
  return len >= 3 && memcmp(s, "\xE2\x96\x81", 3) == 0;
}

/* Whether a symbol may be this token. User-defined pieces are found whole before merging, but a
 * ranked list may also make them. */
static bool usable(const fl_spm *s, int32_t id) {
  if (id < 0) return false;
  fl_token_type type = s->vocab->type[id];
  return type == FL_TOKEN_NORMAL || type == FL_TOKEN_UNUSED || (s->bpe && type == FL_TOKEN_USER);
}

static int32_t find_usable(const fl_spm *s, const char *text, size_t len) {
  int32_t id = fl_vocab_find(s->vocab, text, len);
  return usable(s, id) ? id : -1;
}

/* Boundaries that may be cut, in a text or inside a piece; 0 < at < len. */
static bool at_break(const char *text, size_t at) {
  return (text[at] == '\n') != (text[at - 1] == '\n');
}

static bool at_blank(const char *text, size_t len, size_t at) {
  return is_blank_at(text + at, len - at) && (at < 3 || !is_blank_at(text + at - 3, 3));
}

static bool is_cut(const fl_spm *s, const char *text, size_t len, size_t at) {
  if (s->cut_break && at_break(text, at)) return true;
  return !s->joined[(unsigned char)text[at - 1]] && at_blank(text, len, at);
}

static void find_cuts(fl_spm *s) {
  s->cut_break = true;
  for (size_t i = 0; i < s->vocab->n; i++) {
    const fl_str t = s->vocab->text[i];
    if (!usable(s, (int32_t)i)) continue;
    for (size_t at = 1; at < t.len; at++) {
      if (at_break(t.data, at)) s->cut_break = false;
      if (at_blank(t.data, t.len, at)) s->joined[(unsigned char)t.data[at - 1]] = true;
    }
  }
}

int fl_spm_init(fl_spm *s, const fl_vocab *v, const fl_bpe *bpe, int32_t unknown, const char *path,
                fl_err *err) {
  if (bpe == NULL && v->score == NULL)
    return fl_fail(err, FL_EINPUT,
                   "%s: no tokenizer.ggml.scores, which a SentencePiece vocabulary "
                   "needs; convert the model again",
                   path);
  fl_spm made = { .vocab = v, .bpe = bpe, .unknown = unknown, .bytes_whole = true };
  for (unsigned i = 0; i < 256; i++) {
    char text[8];
    int n = snprintf(text, sizeof text, "<0x%02X>", i);
    int32_t id = fl_vocab_find(v, text, (size_t)n);
    made.byte_id[i] = id >= 0 && v->type[id] == FL_TOKEN_BYTE ? id : -1;
    if (made.byte_id[i] < 0) made.bytes_whole = false;
  }
  if (!made.bytes_whole && unknown < 0)
    return fl_fail(err, FL_EINPUT,
                   "%s: a vocabulary with neither byte tokens nor an unknown token "
                   "cannot spell every text; convert the model again",
                   path);
  find_cuts(&made);
  *s = made;
  return FL_OK;
}

/* Less is sooner, so the order of floats turned round. */
static uint32_t priority_of(float score) {
  union {
    float f;
    uint32_t u;
  } bits = { .f = score + 0.0f }; /* -0 becomes 0 */
  uint32_t ascending = bits.u >> 31 ? ~bits.u : bits.u | 0x80000000u;
  return ~ascending;
}

static void remember_parts(word *w, int32_t id, uint32_t left_len) {
  if (w->unused_left == NULL) w->unused_left = fl_calloc(w->spm->vocab->n, sizeof *w->unused_left);
  if (w->unused_left == NULL) w->oom = true;
  else w->unused_left[id] = left_len;
}

static bool by_score(void *ctx, const fl_symbol *left, const fl_symbol *right, uint32_t *priority,
                     int32_t *id) {
  word *w = ctx;
  const fl_vocab *v = w->spm->vocab;
  int32_t found = find_usable(w->spm, w->text + left->pos, (size_t)left->len + right->len);
  if (found < 0) return false;
  if (v->type[found] == FL_TOKEN_UNUSED) remember_parts(w, found, left->len);
  *priority = priority_of(v->score[found]);
  *id = found;
  return true;
}

static bool by_rank(void *ctx, const fl_symbol *left, const fl_symbol *right, uint32_t *priority,
                    int32_t *id) {
  const word *w = ctx;
  return fl_bpe_rule(w->spm->bpe, left->id, right->id, priority, id);
}

static void push_bytes(const fl_spm *s, fl_ids *out, const char *text, size_t len) {
  if (!s->bytes_whole) { /* one unknown token for a run of unknown characters */
    if (out->len == 0 || out->data[out->len - 1] != s->unknown) fl_ids_push(out, s->unknown);
    return;
  }
  for (size_t i = 0; i < len; i++) fl_ids_push(out, s->byte_id[(unsigned char)text[i]]);
}

/* The depth is bounded: each part is shorter than the piece, and pieces are short or cut. */
static void push_piece(const word *w, fl_ids *out, const char *text, size_t len, int32_t id) {
  const fl_vocab *v = w->spm->vocab;
  while (id >= 0 && v->type[id] == FL_TOKEN_UNUSED && w->unused_left != NULL &&
         w->unused_left[id] > 0 && w->unused_left[id] < len) {
    size_t left = w->unused_left[id];
    push_piece(w, out, text, left, find_usable(w->spm, text, left));
    text += left;
    len -= left;
    id = find_usable(w->spm, text, len);
  }
  if (id >= 0) fl_ids_push(out, id);
  else push_bytes(w->spm, out, text, len);
}

static void encode_word(word *w, fl_merger *m, fl_ids *out, const char *text, size_t len) {
  w->text = text;
  fl_merger_reset(m);
  uint32_t cp;
  for (size_t at = 0, n; (n = fl_utf8_decode(&cp, NULL, text + at, len - at)) > 0; at += n) {
    fl_merger_push(m, (uint32_t)at, (uint32_t)n, find_usable(w->spm, text + at, n));
  }
  fl_merger_run(m, w->spm->bpe ? by_rank : by_score, w);
  for (size_t i = 0; i < m->n_symbols; i++) {
    const fl_symbol *s = &m->symbol[i];
    if (s->len > 0) push_piece(w, out, text + s->pos, s->len, s->id);
  }
}

int fl_spm_encode(const fl_spm *s, fl_merger *m, const fl_markers *kept, fl_ids *out,
                  const char *text, size_t len) {
  word w = { .spm = s };
  size_t from = 0, at = 0;
  while (at < len && !w.oom && !m->oom && !out->oom) {
    size_t matched;
    int32_t id = kept ? fl_markers_match(kept, text + at, len - at, &matched) : -1;
    if (at > from && (id >= 0 || is_cut(s, text, len, at))) {
      encode_word(&w, m, out, text + from, at - from);
      from = at;
    }
    if (id >= 0) {
      fl_ids_push(out, id);
      from = at += matched;
      continue;
    }
    uint32_t cp;
    at += fl_utf8_decode(&cp, NULL, text + at, len - at);
  }
  if (at > from && !w.oom && !m->oom) encode_word(&w, m, out, text + from, at - from);
  fl_free(w.unused_left);
  return w.oom || m->oom || out->oom ? FL_ENOMEM : FL_OK;
}
