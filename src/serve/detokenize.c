/* detokenize.c - holding back what may still change: half characters, beginnings of stop strings.
 */
#include "serve/detokenize.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

struct fl_pending_token {
  int32_t id;
  float logprob;
  size_t end; /* bytes of text, whole and half characters together, when it was taken */
};

void fl_detokenizer_init(fl_detokenizer *d, const fl_tokenizer *tok, bool special, char **stop,
                         size_t n_stop, bool logprobs, size_t n_top) {
  *d = (fl_detokenizer){ .tok = tok,
                         .special = special,
                         .stop = stop,
                         .n_stop = n_stop,
                         .logprobs = logprobs,
                         .n_top = logprobs ? n_top : 0 };
}

void fl_detokenizer_release(fl_detokenizer *d) {
  fl_buf_release(&d->raw);
  fl_buf_release(&d->text);
  fl_free(d->token);
  fl_free(d->top);
  *d = (fl_detokenizer){ 0 };
}

const char *fl_detokenizer_text(const fl_detokenizer *d, size_t *len) {
  *len = d->text.len;
  return d->text.data != NULL ? d->text.data : "";
}

/* --- log probabilities --- */

static int grow(fl_detokenizer *d) {
  if (d->n_tokens < d->cap) return FL_OK;
  size_t cap = d->cap > 0 ? 2 * d->cap : 16, top;
  fl_pending_token *t = fl_reallocarray(d->token, cap, sizeof *t);
  if (t == NULL) return FL_ENOMEM;
  d->token = t;
  if (!fl_mul_size(cap, d->n_top, &top)) return FL_ENOMEM;
  if (top > 0) {
    fl_job_token *p = fl_reallocarray(d->top, top, sizeof *p);
    if (p == NULL) return FL_ENOMEM;
    d->top = p;
  }
  d->cap = cap;
  return FL_OK;
}

/* log of the sum of exp over a row; in double and in order, so that it is the same everywhere. */
static double log_sum(const float *x, size_t n) {
  float best = x[0];
  double sum = 0;
  for (size_t i = 1; i < n; i++)
    if (x[i] > best) best = x[i];
  for (size_t i = 0; i < n; i++) sum += exp((double)(x[i] - best));
  return (double)best + log(sum);
}

/* top[n_top] = the likeliest tokens, best first (ties: lower id). */
static void find_top(fl_job_token *top, size_t n_top, const float *x, size_t n, double norm) {
  size_t have = 0;
  for (size_t i = 0; i < n; i++) {
    size_t at = have;
    if (have == n_top && x[i] <= x[top[have - 1].id]) continue;
    while (at > 0 && x[i] > x[top[at - 1].id]) at--;
    if (have < n_top) have++;
    memmove(top + at + 1, top + at, (have - 1 - at) * sizeof *top);
    top[at] = (fl_job_token){ .id = (int32_t)i, .logprob = (float)((double)x[i] - norm) };
  }
  for (; have < n_top; have++) top[have] = (fl_job_token){ .id = -1 };
}

static int note_token(fl_detokenizer *d, int32_t id, const float *logits, size_t n_vocab) {
  if (!d->logprobs || logits == NULL) return FL_OK;
  if (grow(d) != FL_OK) return FL_ENOMEM;
  double norm = log_sum(logits, n_vocab);
  d->token[d->n_tokens] = (fl_pending_token){ .id = id,
                                              .logprob = (float)((double)logits[id] - norm),
                                              .end = d->text.len + d->raw.len };
  if (d->n_top > 0) find_top(d->top + d->n_tokens * d->n_top, d->n_top, logits, n_vocab, norm);
  d->n_tokens++;
  return FL_OK;
}

/* --- text --- */

/* Moves what is whole from raw to text; with `all` the rest too, as U+FFFD. */
static void settle(fl_detokenizer *d, bool all) {
  const char *s = d->raw.data;
  size_t len = d->raw.len, whole, at = 0;
  if (len == 0) return;
  whole = all ? len : fl_utf8_whole_prefix(s, len);
  while (at < whole) {
    uint32_t cp;
    bool valid = true;
    size_t n = fl_utf8_decode(&cp, &valid, s + at, whole - at);
    if (n == 0) break;
    if (valid) fl_buf_append(&d->text, s + at, n);
    else fl_buf_puts(&d->text, "\xEF\xBF\xBD");
    at += n;
  }
  if (d->text.oom) return;
  memmove(d->raw.data, d->raw.data + at, len - at);
  d->raw.len = len - at;
  d->raw.data[d->raw.len] = '\0';
}

/* Index of the stop string that comes first in what was not sent; the text is cut before it. */
static int cut_at_stop(fl_detokenizer *d) {
  int found = -1;
  size_t first = d->text.len;
  const char *open = d->text.data + d->sent;
  for (size_t i = 0; i < d->n_stop; i++) {
    const char *at = memmem(open, d->text.len - d->sent, d->stop[i], strlen(d->stop[i]));
    if (at == NULL || (size_t)(at - d->text.data) >= first) continue;
    first = (size_t)(at - d->text.data);
    found = (int)i;
  }
  if (found < 0) return -1;
  d->text.len = first;
  d->text.data[first] = '\0';
  return found;
}

/* Entries of tokens that lie in the stop string as a whole go with it. */
static void drop_cut(fl_detokenizer *d) {
  size_t n = 0, begin = d->sent;
  while (n < d->n_tokens && begin < d->text.len) begin = d->token[n++].end;
  d->n_tokens = n;
}

int fl_detokenizer_token(fl_detokenizer *d, int32_t token, const float *logits, size_t n_vocab,
                         int *stopped) {
  *stopped = -1;
  fl_detokenize_one(d->tok, &d->raw, token, d->special);
  if (d->raw.oom || note_token(d, token, logits, n_vocab) != FL_OK) return FL_ENOMEM;
  settle(d, false);
  if (d->text.oom) return FL_ENOMEM;
  if (d->n_stop > 0 && d->text.len > d->sent) *stopped = cut_at_stop(d);
  if (*stopped >= 0) {
    fl_buf_reset(&d->raw);
    drop_cut(d);
  }
  return FL_OK;
}

/* Bytes at the end of the text that may be the beginning of a stop string. */
static size_t held_back(const fl_detokenizer *d) {
  size_t most = 0, len = d->text.len - d->sent;
  const char *end = d->text.data + d->text.len;
  for (size_t i = 0; i < d->n_stop; i++) {
    size_t n = strlen(d->stop[i]);
    n = n > len ? len : n - 1;
    while (n > most && memcmp(end - n, d->stop[i], n) != 0) n--;
    if (n > most) most = n;
  }
  return most;
}

static void spell(const fl_detokenizer *d, fl_job_token *t, fl_buf *bytes) {
  t->at = bytes->len;
  if (t->id >= 0) fl_detokenize_one(d->tok, bytes, t->id, true);
  t->len = bytes->len - t->at;
}

/* The entries that go with the text up to `upto`, and the bytes of each. */
static int take_tokens(fl_detokenizer *d, size_t upto, bool last, fl_job_event *out) {
  const size_t n_top = d->n_top;
  size_t n = 0;
  while (n < d->n_tokens && (last || d->token[n].end <= upto)) n++;
  if (n == 0) return FL_OK;
  if (!fl_job_event_reserve(out, n, n_top)) return FL_ENOMEM;
  for (size_t i = 0; i < n; i++, out->n_tokens++) {
    fl_job_token *token = &out->token[out->n_tokens], *top = NULL;
    *token = (fl_job_token){ .id = d->token[i].id, .logprob = d->token[i].logprob };
    spell(d, token, &out->bytes);
    if (n_top > 0) {
      top = &out->top[out->n_tokens * n_top];
      memcpy(top, d->top + i * n_top, n_top * sizeof *top);
    }
    for (size_t k = 0; k < n_top; k++) spell(d, &top[k], &out->bytes);
  }
  d->n_tokens -= n;
  memmove(d->token, d->token + n, d->n_tokens * sizeof *d->token);
  if (n_top > 0) memmove(d->top, d->top + n * n_top, d->n_tokens * n_top * sizeof *d->top);
  return out->bytes.oom ? FL_ENOMEM : FL_OK;
}

int fl_detokenizer_piece(fl_detokenizer *d, bool last, fl_job_event *out) {
  if (last) settle(d, true);
  if (d->text.oom) return FL_ENOMEM;
  const size_t upto = d->text.len - (last || d->text.len == d->sent ? 0 : held_back(d));
  int rc = take_tokens(d, upto, last, out);
  if (rc == FL_OK && upto > d->sent)
    fl_buf_append(&out->text, d->text.data + d->sent, upto - d->sent);
  if (rc != FL_OK || out->text.oom) return FL_ENOMEM;
  d->sent = upto;
  return FL_OK;
}
