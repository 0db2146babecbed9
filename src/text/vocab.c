/* vocab.c - loading a vocabulary and looking texts up in it. */
#include "text/vocab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MAX_TOKENS ((size_t)1 << 24)

/* Older conversions give some of these a normal or user-defined type; a document could then spell
 * one of them. */
static const char *const template_markers[] = {
  "<|im_start|>",    "<|im_end|>",          "<|endoftext|>",     "<|begin_of_text|>",
  "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
  "<|eom_id|>",      "<start_of_turn>",     "<end_of_turn>",     "<|turn>",
  "<turn|>",         "<|channel>",          "<channel|>",        "<|think|>",
};

static uint64_t hash_text(const char *s, size_t len) {
  uint64_t h = len * 0x9E3779B97F4A7C15u;
  for (; len >= 8; s += 8, len -= 8) {
    uint64_t w;
    memcpy(&w, s, 8);
    h = (h ^ w) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
  }
  uint64_t tail = 0;
  memcpy(&tail, s, len);
  h = (h ^ tail) * 0xD6E8FEB86659FD93u;
  h ^= h >> 29;
  h *= 0x9E3779B97F4A7C15u;
  return h ^ (h >> 32);
}

static bool same_text(fl_str a, const char *s, size_t len) {
  return a.len == len && (len == 0 || memcmp(a.data, s, len) == 0);
}

int32_t fl_vocab_find(const fl_vocab *v, const char *s, size_t len) {
  if (v->n_slots == 0 || len > v->max_len) return -1;
  uint64_t h = hash_text(s, len);
  for (size_t at = (size_t)h & (v->n_slots - 1); v->slot[at].id >= 0;
       at = (at + 1) & (v->n_slots - 1)) {
    if (v->slot[at].tag == h >> 32 && same_text(v->text[v->slot[at].id], s, len))
      return v->slot[at].id;
  }
  return -1;
}

static int build_index(fl_vocab *v) {
  v->n_slots = 16;
  while (v->n_slots < v->n * 3) v->n_slots *= 2;
  v->slot = fl_calloc(v->n_slots, sizeof *v->slot);
  if (v->slot == NULL) return FL_ENOMEM;
  for (size_t i = 0; i < v->n_slots; i++) v->slot[i].id = -1;
  for (size_t i = 0; i < v->n; i++) {
    const fl_str t = v->text[i];
    if (t.len > v->max_len) v->max_len = t.len;
    if (t.len == 0 || fl_vocab_find(v, t.data, t.len) >= 0) continue;
    uint64_t h = hash_text(t.data, t.len);
    size_t at = (size_t)h & (v->n_slots - 1);
    while (v->slot[at].id >= 0) at = (at + 1) & (v->n_slots - 1);
    v->slot[at] = (fl_vocab_slot){ (uint32_t)(h >> 32), (int32_t)i };
  }
  return FL_OK;
}

static int load_texts(fl_vocab *v, const fl_gguf *g, fl_err *err) {
  const char *path = fl_gguf_path(g);
  fl_gguf_arr a;
  if (!fl_gguf_get_arr(g, "tokenizer.ggml.tokens", &a) || a.type != FL_GGUF_STR || a.n == 0)
    return fl_fail(err, FL_EINPUT,
                   "%s: no tokenizer.ggml.tokens; the file has no vocabulary, "
                   "use a GGUF that was converted with its tokenizer",
                   path);
  if (a.n > MAX_TOKENS)
    return fl_fail(err, FL_EINPUT,
                   "%s: a vocabulary of %zu tokens, over the limit of %zu; the "
                   "file is damaged",
                   path, a.n, MAX_TOKENS);
  v->n = a.n;
  v->text = fl_calloc(a.n, sizeof *v->text);
  v->type = fl_calloc(a.n, 1);
  if (v->text == NULL || v->type == NULL)
    return fl_fail(err, FL_ENOMEM, "%s: no memory for the vocabulary", path);
  size_t cursor = 0;
  for (size_t i = 0; i < a.n; i++)
    if (!fl_gguf_arr_next_str(&a, &cursor, &v->text[i]))
      return fl_fail(err, FL_EINPUT, "%s: token %zu is cut short; the file is damaged", path, i);
  return FL_OK;
}

static int load_types(fl_vocab *v, const fl_gguf *g, fl_err *err) {
  fl_gguf_arr a;
  memset(v->type, FL_TOKEN_NORMAL, v->n);
  if (!fl_gguf_get_arr(g, "tokenizer.ggml.token_type", &a)) return FL_OK;
  if (a.n != v->n || a.type == FL_GGUF_STR || a.type == FL_GGUF_ARR)
    return fl_fail(err, FL_EINPUT, "%s: %zu token types for %zu tokens; the file is damaged",
                   fl_gguf_path(g), a.n, v->n);
  for (size_t i = 0; i < v->n; i++) {
    int64_t type = fl_gguf_arr_i64(&a, i);
    if (type < 0 || type > FL_TOKEN_BYTE)
      return fl_fail(err, FL_EINPUT,
                     "%s: token %zu has the unknown type %lld; the file is "
                     "damaged",
                     fl_gguf_path(g), i, (long long)type);
    v->type[i] = type == 0 ? FL_TOKEN_NORMAL : (uint8_t)type; /* 0: undefined */
  }
  return FL_OK;
}

static int load_scores(fl_vocab *v, const fl_gguf *g, fl_err *err) {
  fl_gguf_arr a;
  if (!fl_gguf_get_arr(g, "tokenizer.ggml.scores", &a)) return FL_OK;
  if (a.n != v->n || a.type == FL_GGUF_STR || a.type == FL_GGUF_ARR)
    return fl_fail(err, FL_EINPUT, "%s: %zu token scores for %zu tokens; the file is damaged",
                   fl_gguf_path(g), a.n, v->n);
  v->score = fl_calloc(v->n, sizeof *v->score);
  if (v->score == NULL)
    return fl_fail(err, FL_ENOMEM, "%s: no memory for the vocabulary", fl_gguf_path(g));
  for (size_t i = 0; i < v->n; i++) {
    v->score[i] = (float)fl_gguf_arr_f64(&a, i);
    if (!isfinite(v->score[i]))
      return fl_fail(err, FL_EINPUT,
                     "%s: the score of token %zu is not finite; the file is "
                     "damaged",
                     fl_gguf_path(g), i);
  }
  return FL_OK;
}

static bool is_respelt(const fl_vocab *v, size_t i) {
  const fl_str t = v->text[i];
  return v->type[i] == FL_TOKEN_USER && t.len > 0 && memchr(t.data, ' ', t.len) != NULL;
}

static int respell_blanks(fl_vocab *v) {
  size_t room = 0;
  for (size_t i = 0; i < v->n; i++)
    if (is_respelt(v, i)) room += v->text[i].len * 3; /* within the file's size, three times */
  if (room == 0) return FL_OK;
  char *out = v->respelt = fl_malloc(room);
  if (out == NULL) return FL_ENOMEM;
  for (size_t i = 0; i < v->n; i++) {
    if (!is_respelt(v, i)) continue;
    const fl_str t = v->text[i];
    v->text[i].data = out;
    for (size_t k = 0; k < t.len; k++) {
      if (t.data[k] == ' ') out = mempcpy(out, "\xE2\x96\x81", 3);
      else *out++ = t.data[k];
    }
    v->text[i].len = (size_t)(out - v->text[i].data);
  }
  return FL_OK;
}

int fl_vocab_load(fl_vocab *v, const fl_gguf *g, bool pieces, fl_err *err) {
  fl_vocab made = { 0 };
  int rc = load_texts(&made, g, err);
  if (rc == FL_OK) rc = load_types(&made, g, err);
  if (rc == FL_OK) rc = load_scores(&made, g, err);
  if (rc != FL_OK) goto done;
  if (pieces) rc = respell_blanks(&made);
  if (rc == FL_OK) rc = build_index(&made);
  if (rc != FL_OK) {
    fl_fail(err, rc, "%s: no memory for the vocabulary", fl_gguf_path(g));
    goto done;
  }
  for (size_t i = 0; i < sizeof template_markers / sizeof *template_markers; i++) {
    int32_t id = fl_vocab_find(&made, template_markers[i], strlen(template_markers[i]));
    if (id >= 0) made.type[id] = FL_TOKEN_CONTROL;
  }
  *v = made;
  return FL_OK;
done:
  fl_vocab_release(&made);
  return rc;
}

void fl_vocab_release(fl_vocab *v) {
  fl_free(v->text);
  fl_free(v->type);
  fl_free(v->score);
  fl_free(v->slot);
  fl_free(v->respelt);
  *v = (fl_vocab){ 0 };
}

bool fl_vocab_is_blank(const fl_vocab *v, int32_t id) {
  const fl_str t = v->text[id];
  for (size_t i = 0; i < t.len; i++) {
    if (t.data[i] == ' ' || (t.data[i] >= '\t' && t.data[i] <= '\r')) continue;
    if (t.len - i < 3 || memcmp(t.data + i, "\xE2\x96\x81", 3) != 0) return false;
    i += 2;
  }
  return t.len > 0;
}

static bool wanted(const fl_vocab *v, int32_t id, unsigned kinds) {
  if (v->type[id] == FL_TOKEN_CONTROL) return (kinds & FL_MARK_CONTROL) != 0;
  if (v->type[id] == FL_TOKEN_UNKNOWN) return (kinds & FL_MARK_UNKNOWN) != 0;
  if (v->type[id] != FL_TOKEN_USER) return false;
  return (kinds & FL_MARK_USER) || ((kinds & FL_MARK_BLANK) && fl_vocab_is_blank(v, id));
}

static int by_text(const void *a, const void *b, void *vocab) {
  int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
  const fl_str x = ((const fl_vocab *)vocab)->text[i], y = ((const fl_vocab *)vocab)->text[j];
  int order = memcmp(x.data, y.data, x.len < y.len ? x.len : y.len);
  if (order != 0) return order;
  if (x.len != y.len) return x.len < y.len ? -1 : 1;
  return (i > j) - (i < j);
}

int fl_markers_init(fl_markers *m, const fl_vocab *v, unsigned kinds) {
  *m = (fl_markers){ .vocab = v };
  m->id = fl_calloc(v->n, sizeof *m->id);
  if (m->id == NULL) return FL_ENOMEM;
  size_t n = 0, byte = 0;
  for (size_t i = 0; i < v->n; i++)
    if (v->text[i].len > 0 && wanted(v, (int32_t)i, kinds)) m->id[n++] = (int32_t)i;
  qsort_r(m->id, n, sizeof *m->id, by_text, (void *)v); /* only read */
  for (size_t i = 0; i < n; i++)
    for (; byte <= (unsigned char)v->text[m->id[i]].data[0]; byte++) m->first[byte] = i;
  for (; byte < 257; byte++) m->first[byte] = n;
  return FL_OK;
}

void fl_markers_release(fl_markers *m) {
  fl_free(m->id);
  *m = (fl_markers){ 0 };
}

/* The first of id[lo .. hi) whose byte at `depth` is at least `byte`; all are longer than depth. */
static size_t lower_bound(const fl_markers *m, size_t lo, size_t hi, size_t depth, unsigned byte) {
  while (lo < hi) {
    size_t mid = lo + (hi - lo) / 2;
    if ((unsigned char)m->vocab->text[m->id[mid]].data[depth] < byte) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

int32_t fl_markers_match(const fl_markers *m, const char *s, size_t len, size_t *matched) {
  int32_t best = -1;
  if (len == 0) return best;
  size_t lo = m->first[(unsigned char)s[0]], hi = m->first[(unsigned char)s[0] + 1u];
  for (size_t depth = 1; lo < hi; depth++) {
    if (m->vocab->text[m->id[lo]].len == depth) {
      best = m->id[lo];
      *matched = depth;
    }
    while (lo < hi && m->vocab->text[m->id[lo]].len == depth) lo++; /* it, and any repeats */
    if (depth == len) break;
    unsigned byte = (unsigned char)s[depth];
    lo = lower_bound(m, lo, hi, depth, byte);
    hi = lower_bound(m, lo, hi, depth, byte + 1);
  }
  return best;
}

size_t fl_markers_find(const fl_markers *m, const char *s, size_t len, size_t from, int32_t *id,
                       size_t *matched) {
  for (size_t at = from; at < len; at++) {
    *id = fl_markers_match(m, s + at, len - at, matched);
    if (*id >= 0) return at;
  }
  *id = -1;
  *matched = 0;
  return len;
}
