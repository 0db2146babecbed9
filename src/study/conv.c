/* conv.c - conversations and their teacher targets. */
#include "study/conv.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

static void targets_release(fl_targets *t) {
  fl_free(t->first);
  fl_free(t->id);
  fl_free(t->prob);
  *t = (fl_targets){ 0 };
}

double fl_targets_entropy(const fl_targets *t) {
  double sum = 0;
  for (size_t i = 0; i < t->first[t->n_rows]; i++)
    if (t->prob[i] > 0) sum -= (double)t->prob[i] * log((double)t->prob[i]);
  return sum;
}

void fl_conv_release(fl_conv *c) {
  fl_ids_release(&c->tokens);
  targets_release(&c->targets);
  fl_free(c->sup);
  fl_free(c->request);
  fl_free(c->answer);
  fl_free(c->kind_name);
  *c = (fl_conv){ 0 };
}

const char *fl_conv_kind(const fl_conv *c) {
  if (c->kind < FL_N_SEED_KINDS) return fl_seed_kinds[c->kind].kind;
  return c->kind_name ? c->kind_name : "";
}

int fl_target_room_init(fl_target_room *r, size_t max_rows, size_t top_k, fl_err *err) {
  fl_target_room t = { .top_k = top_k, .max_rows = max_rows };
  size_t n;
  if (fl_mul_size(max_rows, top_k, &n) && n <= UINT32_MAX) {
    t.count = fl_calloc(max_rows, sizeof *t.count);
    t.id = fl_calloc(n, sizeof *t.id);
    t.prob = fl_calloc(n, sizeof *t.prob);
  }
  if (!t.count || !t.id || !t.prob) {
    fl_target_room_release(&t);
    return fl_fail(err, FL_ENOMEM,
                   "out of memory for %zu teacher rows of %zu entries; lower "
                   "--max-a or --top-k",
                   max_rows, top_k);
  }
  *r = t;
  return FL_OK;
}

void fl_target_room_release(fl_target_room *r) {
  fl_free(r->count);
  fl_free(r->id);
  fl_free(r->prob);
  *r = (fl_target_room){ 0 };
}

void fl_target_room_add(fl_target_room *r, const fl_kernels *k, const float *logits, size_t n_vocab,
                        double mass) {
  if (r->n_rows == r->max_rows) return;
  const size_t at = r->n_rows * r->top_k;
  r->count[r->n_rows++] =
      (uint32_t)fl_topk_probs(k, r->id + at, r->prob + at, logits, n_vocab, r->top_k, mass);
}

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

/* Tokens whose spelling lies within the first `span` bytes. */
static size_t tokens_within(const fl_tokenizer *t, const fl_ids *ids, size_t span,
                            fl_buf *scratch) {
  size_t n = 0;
  fl_buf_reset(scratch);
  while (n < ids->len && scratch->len < span) fl_detokenize_one(t, scratch, ids->data[n++], true);
  return n;
}

int fl_bot_text_read(fl_bot_text *out, const fl_tokenizer *t, const fl_ids *ids, fl_err *err) {
  fl_bot_text b = { 0 };
  fl_buf text = { 0 };
  fl_detokenize(t, &text, ids->data, ids->len, true);
  if (text.data) {
    const size_t span = fl_chat_think_span(text.data, text.len);
    b.n_think = tokens_within(t, ids, span, &text);
  }
  fl_buf_reset(&text);
  fl_detokenize(t, &text, ids->data + b.n_think, ids->len - b.n_think, false);
  size_t from = 0, to = text.len;
  while (from < to && is_blank(text.data[from])) from++;
  while (to > from && is_blank(text.data[to - 1])) to--;
  b.len = to - from;
  b.text = fl_strndup(b.len > 0 ? text.data + from : "", b.len);
  const bool oom = text.oom || !b.text;
  fl_buf_release(&text);
  if (oom) {
    fl_free(b.text);
    return fl_fail(err, FL_ENOMEM, "out of memory for a bot's text");
  }
  *out = b;
  return FL_OK;
}

static int targets_build(fl_targets *out, const fl_target_room *room, size_t skip, fl_err *err) {
  fl_targets t = { .n_rows = room->n_rows - skip };
  uint32_t total = 0;
  for (size_t i = skip; i < room->n_rows; i++) total += room->count[i];
  t.first = fl_calloc(t.n_rows + 1, sizeof *t.first);
  t.id = fl_calloc(total, sizeof *t.id);
  t.prob = fl_calloc(total, sizeof *t.prob);
  if (!t.first || !t.id || !t.prob) {
    targets_release(&t);
    return fl_fail(err, FL_ENOMEM, "out of memory for %u teacher entries", total);
  }
  for (size_t i = 0; i < t.n_rows; i++) {
    const size_t from = (skip + i) * room->top_k, n = room->count[skip + i];
    memcpy(t.id + t.first[i], room->id + from, n * sizeof *t.id);
    memcpy(t.prob + t.first[i], room->prob + from, n * sizeof *t.prob);
    t.first[i + 1] = t.first[i] + (uint32_t)n;
  }
  *out = t;
  return FL_OK;
}

int fl_conv_build(fl_conv *out, const fl_ids *prompt, const fl_ids *answer, int32_t stop,
                  size_t n_think, const fl_target_room *room, fl_err *err) {
  int rc = targets_build(&out->targets, room, n_think, err);
  if (rc != FL_OK) return rc;
  fl_ids_append(&out->tokens, prompt->data, prompt->len);
  fl_ids_append(&out->tokens, answer->data, answer->len);
  fl_ids_push(&out->tokens, stop);
  out->sup = fl_calloc(out->targets.n_rows, sizeof *out->sup);
  if (!out->sup || out->tokens.oom)
    return fl_fail(err, FL_ENOMEM, "out of memory for a conversation");
  for (size_t i = 0; i < out->targets.n_rows; i++)
    out->sup[i] = (uint32_t)(prompt->len - 1 + n_think + i);
  return FL_OK;
}

static char *joined(const char *a, const char *b) { return fl_asprintf("%s\n\n%s", a, b); }

/* Room for the entries of both, the first ones copied. */
static int targets_join(fl_targets *out, const fl_targets *a, const fl_targets *b) {
  fl_targets t = { .n_rows = a->n_rows + b->n_rows };
  const uint32_t n_a = a->first[a->n_rows], n_b = b->first[b->n_rows];
  t.first = fl_calloc(t.n_rows + 1, sizeof *t.first);
  t.id = fl_calloc((size_t)n_a + n_b, sizeof *t.id);
  t.prob = fl_calloc((size_t)n_a + n_b, sizeof *t.prob);
  if (!t.first || !t.id || !t.prob) {
    targets_release(&t);
    return FL_ENOMEM;
  }
  memcpy(t.first, a->first, (a->n_rows + 1) * sizeof *t.first);
  for (size_t i = 1; i <= b->n_rows; i++) t.first[a->n_rows + i] = n_a + b->first[i];
  memcpy(t.id, a->id, n_a * sizeof *t.id);
  memcpy(t.prob, a->prob, n_a * sizeof *t.prob);
  memcpy(t.id + n_a, b->id, n_b * sizeof *t.id);
  memcpy(t.prob + n_a, b->prob, n_b * sizeof *t.prob);
  *out = t;
  return FL_OK;
}

int fl_conv_join(fl_conv *io, fl_conv *next, fl_err *err) {
  const size_t n_a = io->targets.n_rows, n_b = next->targets.n_rows;
  fl_conv c = { .kind = io->kind, .first = io->first, .end = io->end };
  c.sup = fl_calloc(n_a + n_b, sizeof *c.sup);
  c.request = joined(io->request, next->request);
  c.answer = joined(io->answer, next->answer);
  if (!c.sup || !c.request || !c.answer ||
      targets_join(&c.targets, &io->targets, &next->targets) != FL_OK) {
    fl_conv_release(&c);
    return fl_fail(err, FL_ENOMEM, "out of memory for a conversation");
  }
  memcpy(c.sup, io->sup, n_a * sizeof *c.sup);
  memcpy(c.sup + n_a, next->sup, n_b * sizeof *c.sup);
  c.tokens = next->tokens;
  next->tokens = (fl_ids){ 0 };
  c.kind_name = io->kind_name;
  io->kind_name = NULL;
  fl_conv_release(io);
  fl_conv_release(next);
  *io = c;
  return FL_OK;
}
