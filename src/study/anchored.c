/* anchored.c - see anchored.h. */
#include "study/anchored.h"

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "study/terms.h"

enum {
  FIRST_WORDS = 4, /* by which a place is named; more where these stand elsewhere too */
  MAX_NAMED_BYTES = 120,
  ANSWER_SLACK = 8, /* tokens: the answer's own may be a few more than the document's */
  WHOLE_EVERY = 3   /* of so many clozes one asks for the whole sentence */
};

void fl_anchored_release(fl_anchored *a) {
  fl_free(a->request);
  fl_free(a->answer);
  fl_free(a->shown);
  *a = (fl_anchored){ 0 };
}

typedef struct maker {
  const fl_study_options *o;
  const fl_doc_text *doc;
  const fl_text_spans *spans;
  const fl_text_span *span;
  fl_rng rng;
  fl_buf where; /* "Title" or "Title", under "A > B"; empty where neither is known */
  fl_buf known; /* the same words without marks */
} maker;

/* --- places -------------------------------------------------------------------------------- */

int fl_anchored_span(size_t *out, uint32_t nth, uint32_t doc_key, uint64_t seed, size_t n_spans) {
  if (n_spans > UINT32_MAX) return FL_ENOMEM;
  uint32_t *order = fl_calloc(n_spans, sizeof *order);
  if (!order) return FL_ENOMEM;
  for (size_t i = 0; i < n_spans; i++) order[i] = (uint32_t)i;
  fl_rng rng = fl_rng_stream(seed, FL_RNG_ANCHOR, doc_key, (uint32_t)(nth / n_spans), UINT32_MAX);
  fl_rng_shuffle(&rng, order, n_spans);
  *out = order[nth % n_spans];
  fl_free(order);
  return FL_OK;
}

/* The token that holds a byte. */
static size_t token_at(const fl_doc_text *doc, size_t byte) {
  size_t lo = 0, hi = doc->n_tokens;
  while (lo < hi) {
    const size_t mid = lo + (hi - lo) / 2;
    if (doc->token_end[mid] > byte) hi = mid;
    else lo = mid + 1;
  }
  return lo < doc->n_tokens ? lo : doc->n_tokens - 1;
}

static size_t end_token(const fl_doc_text *doc, const fl_text_span *s) {
  return token_at(doc, s->to - 1) + 1;
}

/* A chunk of a drawn length around at_first .. at_end. */
static bool lay_chunk(maker *mk, fl_anchored *a) {
  const size_t n = mk->doc->n_tokens, need = a->at_end - a->at_first;
  const size_t lo = mk->o->chunk_min, hi = mk->o->chunk_max;
  size_t len = lo + (size_t)fl_rng_below(&mk->rng, hi - lo + 1);
  if (len < need) len = need;
  if (len > n) len = n;
  const size_t first = a->at_end > len ? a->at_end - len : 0;
  const size_t last = a->at_first < n - len ? a->at_first : n - len;
  a->first = first + (size_t)fl_rng_below(&mk->rng, last - first + 1);
  a->end = a->first + len;
  return need <= hi;
}

/* --- words --------------------------------------------------------------------------------- */

static void name_place(maker *mk) {
  fl_buf title = { 0 }, path = { 0 };
  const char *text = mk->doc->text;
  fl_text_title(&title, mk->spans, text, mk->doc->name);
  fl_text_path(&path, mk->spans, text, mk->span);
  if (title.len > 0) fl_buf_printf(&mk->where, "\"%s\"", title.data);
  if (path.len > 0)
    fl_buf_printf(&mk->where, "%sunder \"%s\"", title.len > 0 ? ", " : "the part ", path.data);
  if (title.len + path.len == 0) fl_buf_puts(&mk->where, "the document");
  fl_buf_printf(&mk->known, "%s\n%s", title.len > 0 ? title.data : "",
                path.len > 0 ? path.data : "");
  mk->where.oom = mk->where.oom || title.oom || path.oom;
  fl_buf_release(&title);
  fl_buf_release(&path);
}

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* White space runs become one space. */
static void put_flat(fl_buf *b, const char *text, size_t len) {
  for (size_t i = 0; i < len; i++)
    if (!is_blank(text[i])) fl_buf_putc(b, text[i]);
    else if (i == 0 || !is_blank(text[i - 1])) fl_buf_putc(b, ' ');
}

/* Behind the next word after `at`. */
static size_t word_behind(const char *text, size_t at, size_t to) {
  while (at < to && is_blank(text[at])) at++;
  while (at < to && !is_blank(text[at])) at++;
  return at;
}

static bool stands_once(const fl_doc_text *d, size_t from, size_t to) {
  const char *what = d->text + from;
  const char *at = memmem(d->text, d->len, what, to - from);
  return at == what && !memmem(what + 1, d->len - from - 1, what, to - from);
}

/* As many of a span's first words as say which place is meant. */
static size_t named_end(const maker *mk) {
  const fl_text_span *s = mk->span;
  size_t to = s->from, words = 0;
  while (to < s->to) {
    const size_t next = word_behind(mk->doc->text, to, s->to);
    if (words > 0 && next - s->from > MAX_NAMED_BYTES) break;
    to = next;
    if (++words >= FIRST_WORDS && stands_once(mk->doc, s->from, to)) break;
  }
  return to;
}

static bool take_text(char **out, fl_buf *b) {
  const bool ok = !b->oom;
  *out = fl_buf_detach(b);
  fl_buf_release(b);
  return ok && *out;
}

/* --- the kinds ----------------------------------------------------------------------------- */

/* Whole spans from this one on, as many as an answer holds; returns where they end. */
static size_t quoted_end(maker *mk, fl_anchored *a) {
  const size_t most = mk->o->max_a > 2 * ANSWER_SLACK ? mk->o->max_a - ANSWER_SLACK : 1;
  size_t room = most / 2 + (size_t)fl_rng_below(&mk->rng, most - most / 2) + 1;
  size_t to = mk->span->to;
  if (room > mk->o->chunk_max) room = mk->o->chunk_max;
  for (size_t i = a->span + 1; i < mk->spans->n; i++) {
    const size_t end = end_token(mk->doc, &mk->spans->span[i]);
    if (end - a->at_first > room) break;
    a->at_end = end;
    to = mk->spans->span[i].to;
  }
  if (a->at_end - a->at_first <= room) return to;
  a->at_end = a->at_first + room; /* the span alone is longer */
  return mk->doc->token_end[a->at_end - 1];
}

static bool make_quote(maker *mk, fl_anchored *a) {
  static const struct {
    const char *head, *middle, *tail; /* around the place and its first words */
  } asks[] = { { "Quote ", " word for word from where it says \"", "\"." },
               { "What is written in ", " from the words \"", "\" on? Quote it word for word." },
               { "Repeat word for word what ", " says, beginning with \"", "\"." } };
  const char *text = mk->doc->text;
  const size_t to = quoted_end(mk, a), named_to = named_end(mk), from = mk->span->from;
  const size_t which = (size_t)fl_rng_below(&mk->rng, sizeof asks / sizeof *asks);
  fl_buf request = { 0 }, answer = { 0 };
  fl_buf_puts(&request, asks[which].head);
  fl_buf_append(&request, mk->where.data, mk->where.len);
  fl_buf_puts(&request, asks[which].middle);
  put_flat(&request, text + from, (named_to < to ? named_to : to) - from);
  fl_buf_puts(&request, asks[which].tail);
  fl_buf_append(&answer, text + from, to - from);
  const bool ok = take_text(&a->request, &request) && take_text(&a->answer, &answer);
  fl_buf_release(&answer);
  return ok;
}

static void put_span(fl_buf *b, const maker *mk, const fl_text_span *s) {
  fl_buf_append(b, mk->doc->text + s->from, s->to - s->from);
}

/* A row of a table under the table's first row. */
static void put_head(fl_buf *b, const maker *mk) {
  if (mk->span->head_to == mk->span->head_from) return;
  fl_buf_append(b, mk->doc->text + mk->span->head_from, mk->span->head_to - mk->span->head_from);
  fl_buf_putc(b, '\n');
}

static bool make_cloze(maker *mk, fl_anchored *a, const fl_term *term) {
  const fl_text_span *s = mk->span;
  const char *text = mk->doc->text;
  const bool whole = fl_rng_below(&mk->rng, WHOLE_EVERY) == 0;
  fl_buf request = { 0 }, answer = { 0 };
  fl_buf_printf(&request,
                whole ? "Write this part of %s again, with the gap filled in:\n\n"
                      : "This stands in %s. What is missing in the gap? Give the missing words "
                        "alone.\n\n",
                mk->where.data);
  put_head(&request, mk);
  fl_buf_append(&request, text + s->from, term->from - s->from);
  fl_buf_puts(&request, "____");
  fl_buf_append(&request, text + term->to, s->to - term->to);
  if (whole) put_span(&answer, mk, s);
  else fl_buf_append(&answer, text + term->from, term->to - term->from);
  const bool ok = take_text(&a->request, &request) && take_text(&a->answer, &answer);
  fl_buf_release(&answer);
  return ok;
}

/* Half of the questions are on two spans, where the one before is of the same paragraph; half of
 * the others are answered by the span itself. */
static bool make_sentence(maker *mk, fl_anchored *a) {
  fl_buf shown = { 0 }, answer = { 0 };
  const bool both = fl_rng_below(&mk->rng, 2) == 0;
  fl_buf_append(&shown, mk->where.data, mk->where.len);
  fl_buf_puts(&shown, ":\n\n");
  put_head(&shown, mk);
  if (both && a->span > 0 && mk->span[-1].paragraph == mk->span->paragraph &&
      mk->span[-1].from != mk->span->head_from) {
    put_span(&shown, mk, mk->span - 1);
    fl_buf_putc(&shown, mk->span->sort == FL_SPAN_SENTENCE ? ' ' : '\n');
  }
  put_span(&shown, mk, mk->span);
  if (!both && fl_rng_below(&mk->rng, 2) == 0) put_span(&answer, mk, mk->span);
  const bool given = answer.len > 0 || answer.oom;
  const bool ok = take_text(&a->shown, &shown) && (!given || take_text(&a->answer, &answer));
  fl_buf_release(&answer);
  return ok;
}

static bool make_way(maker *mk, fl_way *way, fl_anchored *a) {
  fl_term terms[FL_MAX_TERMS], term = { 0 };
  if (*way == FL_WAY_SENTENCE) return make_sentence(mk, a);
  if (*way == FL_WAY_CLOZE) {
    const size_t n = fl_terms_find(terms, mk->doc->text, mk->doc->len, mk->span, mk->known.data);
    if (fl_terms_draw(&term, terms, n, &mk->rng)) return make_cloze(mk, a, &term);
    *way = FL_WAY_QUOTE;
  }
  return make_quote(mk, a);
}

int fl_anchored_make(fl_anchored *out, fl_way *way, uint32_t nth, uint32_t doc_key,
                     const fl_study_options *o, const fl_doc_text *doc, const fl_text_spans *spans,
                     fl_err *err) {
  fl_anchored a = { 0 };
  maker mk = { .o = o, .doc = doc, .spans = spans };
  if (spans->n == 0 || doc->n_tokens == 0) return FL_EINPUT;
  int rc = fl_anchored_span(&a.span, nth, doc_key, o->seed, spans->n);
  if (rc == FL_OK) {
    mk.span = &spans->span[a.span];
    mk.rng = fl_rng_stream(o->seed, FL_RNG_ANCHOR, doc_key, nth, 0);
    a.at_first = token_at(doc, mk.span->from);
    a.at_end = end_token(doc, mk.span);
    name_place(&mk);
    const bool ok = !mk.where.oom && !mk.known.oom && make_way(&mk, way, &a);
    rc = !ok ? FL_ENOMEM : lay_chunk(&mk, &a) ? FL_OK : FL_EINPUT;
  }
  fl_buf_release(&mk.where);
  fl_buf_release(&mk.known);
  if (rc == FL_OK) {
    *out = a;
    return FL_OK;
  }
  fl_anchored_release(&a);
  return rc == FL_ENOMEM ? fl_fail(err, rc, "out of memory for a conversation") : rc;
}
