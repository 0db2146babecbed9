/* remote_reply.c - see remote_reply.h. A reply is read as if somebody else had written it: every
 * token must be spelled as one of the vocabulary, every probability be one. */
#include "net/remote_reply.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

/* --- spellings ------------------------------------------------------------------------------- */

struct fl_spellings {
  const fl_tokenizer *t;
  size_t n, cap; /* cap a power of two, at most half full */
  fl_buf bytes;  /* of all tokens, one after the other */
  size_t *end;   /* [n] offset behind token i */
  int32_t *slot; /* [cap] id, or -1 */
};

static size_t hash_of(const char *s, size_t len) {
  uint64_t h = 1469598103934665603u; /* FNV-1a */
  for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)s[i]) * 1099511628211u;
  return (size_t)(h ^ h >> 29);
}

static const char *spelling(const fl_spellings *s, size_t id, size_t *len) {
  size_t from = id > 0 ? s->end[id - 1] : 0;
  *len = s->end[id] - from;
  return s->bytes.data + from;
}

bool fl_spellings_is(const fl_spellings *s, int32_t id, const char *bytes, size_t len) {
  size_t n;
  if (id < 0 || (size_t)id >= s->n) return false;
  const char *own = spelling(s, (size_t)id, &n);
  return n == len && memcmp(own, bytes, len) == 0;
}

/* The slot of a spelling, or the free one where it belongs. */
static int32_t *slot_of(const fl_spellings *s, const char *bytes, size_t len) {
  size_t at = hash_of(bytes, len) & (s->cap - 1);
  while (s->slot[at] >= 0 && !fl_spellings_is(s, s->slot[at], bytes, len))
    at = (at + 1) & (s->cap - 1);
  return &s->slot[at];
}

/* Of two tokens with one spelling (a byte token and a letter, say) the one that text becomes. */
static bool is_usual(const fl_spellings *s, size_t id, const char *bytes, size_t len) {
  fl_ids ids = { 0 };
  bool usual = fl_tokenize(s->t, &ids, bytes, len, FL_TOK_CONTINUE, NULL) == FL_OK &&
               ids.len == 1 && ids.data[0] == (int32_t)id;
  fl_ids_release(&ids);
  return usual;
}

static void fill_slots(fl_spellings *s) {
  for (size_t i = 0; i < s->cap; i++) s->slot[i] = -1;
  for (size_t id = 0; id < s->n; id++) {
    size_t len;
    const char *bytes = spelling(s, id, &len);
    if (len == 0) continue;
    int32_t *slot = slot_of(s, bytes, len);
    if (*slot < 0 || is_usual(s, id, bytes, len)) *slot = (int32_t)id;
  }
}

int fl_spellings_new(fl_spellings **out, const fl_tokenizer *t, fl_err *err) {
  fl_spellings *s = fl_calloc(1, sizeof *s);
  const size_t n = fl_tokenizer_n_vocab(t);
  bool ok = s != NULL;
  if (ok) {
    *s = (fl_spellings){ .t = t, .n = n, .cap = 16 };
    while (s->cap < n * 2) s->cap *= 2;
    s->end = fl_calloc(n, sizeof *s->end);
    s->slot = fl_calloc(s->cap, sizeof *s->slot);
    ok = s->end && s->slot;
  }
  for (size_t id = 0; ok && id < n; id++) {
    fl_detokenize_one(t, &s->bytes, (int32_t)id, false);
    s->end[id] = s->bytes.len;
  }
  if (!ok || s->bytes.oom || !s->bytes.data) {
    fl_spellings_free(s);
    return fl_fail(err, FL_ENOMEM, "not enough memory for the vocabulary");
  }
  fill_slots(s);
  *out = s;
  return FL_OK;
}

void fl_spellings_free(fl_spellings *s) {
  if (!s) return;
  fl_buf_release(&s->bytes);
  fl_free(s->end);
  fl_free(s->slot);
  fl_free(s);
}

int32_t fl_spellings_find(const fl_spellings *s, const char *bytes, size_t len) {
  if (len == 0) return -1;
  int32_t id = *slot_of(s, bytes, len);
  if (id >= 0) return id;
  char *name = memchr(bytes, '\0', len) ? NULL : fl_strndup(bytes, len);
  id = name ? fl_tokenizer_id(s->t, name) : -1;
  fl_free(name);
  return id;
}

/* --- the reply ------------------------------------------------------------------------------- */

void fl_reply_text_release(fl_reply_text *r) {
  fl_free(r->text);
  fl_json_free(r->root);
  *r = (fl_reply_text){ 0 };
}

int fl_reply_text_read(fl_reply_text *out, const fl_buf *reply, fl_err *err) {
  fl_reply_text r = { 0 };
  fl_err why = { 0 };
  const char *text = NULL, *finish = NULL;
  int rc = fl_json_parse(&r.root, reply->data ? reply->data : "", reply->len, &why);
  if (rc == FL_ENOMEM) return fl_fail(err, rc, "not enough memory for a reply");
  if (rc != FL_OK) return fl_fail(err, FL_EINPUT, "a reply that is no JSON: %s", why.text);
  const fl_json *choices = fl_json_get(r.root, "choices");
  const fl_json *choice = choices && fl_json_is_arr(choices) ? fl_json_first(choices) : NULL;
  const fl_json *message = choice ? fl_json_get(choice, "message") : NULL;
  const fl_json *logprobs = choice ? fl_json_get(choice, "logprobs") : NULL;
  if (!message || !fl_json_get_str(message, "content", &text)) {
    fl_reply_text_release(&r);
    return fl_fail(err, FL_EINPUT, "a reply without choices[0].message.content");
  }
  r.stopped = fl_json_get_str(choice, "finish_reason", &finish) && strcmp(finish, "stop") == 0;
  r.logprobs = logprobs ? fl_json_get(logprobs, "content") : NULL;
  if (r.logprobs && !fl_json_is_arr(r.logprobs)) r.logprobs = NULL;
  r.len = strlen(text);
  r.text = fl_strndup(text, r.len);
  if (!r.text) {
    fl_reply_text_release(&r);
    return fl_fail(err, FL_ENOMEM, "not enough memory for a reply");
  }
  *out = r;
  return FL_OK;
}

/* --- tokens ---------------------------------------------------------------------------------- */

/* The bytes of a token: "bytes" where it is given, else "token". False when it has neither. */
static bool token_bytes(fl_buf *out, const fl_json *entry) {
  const fl_json *bytes = fl_json_get(entry, "bytes");
  const char *text;
  fl_buf_reset(out);
  if (bytes && fl_json_is_arr(bytes) && fl_json_len(bytes) > 0) {
    for (const fl_json *b = fl_json_first(bytes); b; b = fl_json_next(b)) {
      double v;
      if (!fl_json_as_num(b, &v) || !(v >= 0 && v <= 255) || v != floor(v)) return false;
      fl_buf_putc(out, (char)(unsigned char)v);
    }
    return !out->oom;
  }
  if (!fl_json_get_str(entry, "token", &text)) return false;
  fl_buf_puts(out, text);
  return !out->oom;
}

/* What ends an answer: the template's end of turn, or the end of text. */
static int32_t end_id(const fl_model *m) {
  const int32_t end = fl_chat_end_of_turn(fl_model_template(m), fl_model_tokenizer(m));
  return end >= 0 ? end : fl_tokenizer_eos(fl_model_tokenizer(m));
}

/* The id of an entry: the server's own where it gives one that is spelled so here. -1: none. */
static int32_t token_id(const fl_json *entry, const fl_spellings *s, fl_buf *scratch) {
  uint64_t given;
  if (!token_bytes(scratch, entry)) return -1;
  const char *bytes = scratch->data ? scratch->data : "";
  if (fl_json_get_u64(entry, "id", &given)) {
    if (given >= s->n) return -1;
    if (fl_spellings_is(s, (int32_t)given, bytes, scratch->len)) return (int32_t)given;
    if (!fl_tokenizer_is_control(s->t, (int32_t)given)) return -1;
    return scratch->len == 0 || fl_spellings_find(s, bytes, scratch->len) == (int32_t)given
               ? (int32_t)given
               : -1;
  }
  return fl_spellings_find(s, bytes, scratch->len);
}

static bool probability(const fl_json *entry, double *out) {
  double logprob;
  if (!fl_json_get_num(entry, "logprob", &logprob) || !(logprob <= 1e-4)) return false;
  *out = fmin(exp(logprob), 1.0);
  return true;
}

static void add_entry(fl_target_room *r, int32_t id, double p) {
  const size_t at = r->n_rows * r->top_k;
  uint32_t *n = &r->count[r->n_rows];
  for (uint32_t i = 0; i < *n; i++)
    if (r->id[at + i] == id) return;
  if (*n == r->top_k || !((float)p > 0)) return;
  r->id[at + *n] = id;
  r->prob[at + *n] = (float)p;
  ++*n;
}

static bool lists(const fl_json *top, int32_t id, const fl_spellings *s, fl_buf *scratch) {
  if (top && fl_json_is_arr(top))
    for (const fl_json *e = fl_json_first(top); e; e = fl_json_next(e))
      if (token_id(e, s, scratch) == id) return true;
  return false;
}

/* The entries of one token, likeliest first as servers give them, up to the mass. Alternatives that
 * are not in the vocabulary are left out. False when nothing is left or probabilities exceed 1. */
static bool add_row(fl_target_room *room, const fl_json *entry, int32_t own, const fl_spellings *s,
                    double mass, fl_buf *scratch) {
  const fl_json *top = fl_json_get(entry, "top_logprobs");
  double sum = 0, p;
  if (room->n_rows == room->max_rows) return false;
  room->count[room->n_rows] = 0;
  /* A control token has no spelling; in the list it may stand with its id, or without a name. */
  if (token_bytes(scratch, entry) && scratch->len == 0 && !lists(top, own, s, scratch)) {
    if (!probability(entry, &sum)) return false;
    add_entry(room, own, sum);
  }
  if (top && fl_json_is_arr(top))
    for (const fl_json *e = fl_json_first(top); e && sum < mass; e = fl_json_next(e)) {
      if (!probability(e, &p)) return false;
      int32_t id = token_id(e, s, scratch);
      if (scratch->len == 0 && id < 0) continue;
      if (id >= 0) add_entry(room, id, p);
      sum += p;
    }
  if (room->count[room->n_rows] == 0) {
    if (!probability(entry, &p)) return false;
    add_entry(room, own, p);
  }
  if (sum > 1 + 1e-3 || room->count[room->n_rows] == 0) return false;
  room->n_rows++;
  return true;
}

void fl_target_room_certain(fl_target_room *r, int32_t id) {
  if (r->n_rows == r->max_rows) return;
  r->count[r->n_rows] = 0;
  add_entry(r, id, 1);
  r->n_rows++;
}

static int foreign(const fl_buf *bytes, fl_err *err) {
  return fl_fail(err, FL_EINPUT,
                 "the generator gave the token \"%.40s\", which this model's "
                 "vocabulary has not; let the same model run there, or add --teacher local",
                 bytes->data ? bytes->data : "");
}

int fl_reply_text_tokens(fl_ids *ids, fl_target_room *room, int32_t *stop, const fl_reply_text *r,
                         const fl_spellings *s, const fl_model *m, double mass, fl_err *err) {
  fl_buf scratch = { 0 }, spelled = { 0 };
  int rc = FL_OK;
  *stop = -1;
  if (!r->logprobs || fl_json_len(r->logprobs) == 0)
    rc = fl_fail(err, FL_EINPUT,
                 "the generator gave no probabilities of its tokens; add --teacher "
                 "local");
  for (const fl_json *e = r->logprobs ? fl_json_first(r->logprobs) : NULL; e && rc == FL_OK;
       e = fl_json_next(e)) {
    int32_t id = token_id(e, s, &scratch);
    bool nameless = id < 0 && token_bytes(&scratch, e) && scratch.len == 0;
    if (nameless && r->stopped && !fl_json_next(e)) id = end_id(m);
    if (*stop >= 0 || (nameless && id < 0)) {
      rc = fl_fail(err, FL_EFAIL, "a reply with a token that has no spelling");
    } else if (id < 0) {
      rc = foreign(&scratch, err);
    } else if (!add_row(room, e, id, s, mass, &scratch)) {
      rc = fl_fail(err, FL_EINPUT, "a reply with probabilities that are none, or too many tokens");
    } else if (fl_chat_stops(fl_model_template(m), s->t, id)) {
      *stop = id;
    } else {
      fl_ids_push(ids, id);
      fl_detokenize_one(s->t, &spelled, id, false);
    }
  }
  /* Servers trim; what is left must be what the tokens spell. */
  const char *all = spelled.data ? spelled.data : "";
  if (rc == FL_OK && r->len > 0 && !memmem(all, spelled.len, r->text, r->len))
    rc = fl_fail(err, FL_EINPUT, "a reply whose tokens do not spell its text");
  if (rc == FL_OK && (ids->oom || spelled.oom))
    rc = fl_fail(err, FL_ENOMEM, "not enough memory for a reply");
  fl_buf_release(&scratch);
  fl_buf_release(&spelled);
  return rc;
}
