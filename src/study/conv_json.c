/* conv_json.c - see conv_json.h. */
#include "study/conv_json.h"

#include <math.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/mem.h"

enum { KIND_MAX_BYTES = 64 };

static void print_text(fl_buf *out, const char *key, const char *s) {
  fl_jsonw_str(out, key, s != NULL ? s : "");
}

static void print_targets(fl_buf *out, const fl_targets *t) {
  fl_jsonw_open(out, "targets", '[');
  for (size_t r = 0; r < t->n_rows; r++) {
    fl_jsonw_open(out, NULL, '[');
    for (uint32_t k = t->first[r]; k < t->first[r + 1]; k++) {
      fl_jsonw_i64(out, NULL, t->id[k]);
      fl_jsonw_float(out, NULL, t->prob[k]);
    }
    fl_jsonw_close(out, ']');
  }
  fl_jsonw_close(out, ']');
}

static void print_conv(fl_buf *out, const fl_conv *c) {
  print_text(out, "kind", fl_conv_kind(c));
  fl_jsonw_u64(out, "first", c->first);
  fl_jsonw_u64(out, "end", c->end);
  if (c->at_end > 0) {
    fl_jsonw_open(out, "at", '[');
    fl_jsonw_u64(out, NULL, c->at_first);
    fl_jsonw_u64(out, NULL, c->at_end);
    fl_jsonw_close(out, ']');
  }
  print_text(out, "request", c->request);
  print_text(out, "answer", c->answer);
  fl_jsonw_open(out, "tokens", '[');
  for (size_t i = 0; i < c->tokens.len; i++) fl_jsonw_i64(out, NULL, c->tokens.data[i]);
  fl_jsonw_close(out, ']');
  fl_jsonw_open(out, "sup", '[');
  for (size_t i = 0; i < c->targets.n_rows; i++) fl_jsonw_u64(out, NULL, c->sup[i]);
  fl_jsonw_close(out, ']');
  print_targets(out, &c->targets);
}

void fl_conv_print(fl_buf *out, const fl_conv *c, const fl_conv_label *label) {
  fl_jsonw_open(out, NULL, '{');
  fl_jsonw_u64(out, "doc", label->doc);
  print_text(out, "name", label->name);
  print_text(out, "hash", label->hash);
  if (label->tokenizer != NULL) print_text(out, "tokenizer", label->tokenizer);
  fl_jsonw_u64(out, "index", label->index);
  if (label->of > 0) fl_jsonw_u64(out, "of", label->of);
  if (c != NULL) print_conv(out, c);
  else fl_jsonw_bool(out, "skipped", true);
  fl_jsonw_close(out, '}');
  fl_buf_putc(out, '\n');
}

/* A whole number below `end`. */
static bool below(const fl_json *v, uint64_t end, uint64_t *out) {
  double d = 0;
  if (!fl_json_as_num(v, &d) || !(d >= 0) || !(d < (double)end) || d != floor(d)) return false;
  *out = (uint64_t)d;
  return true;
}

static int read_tokens(fl_conv *c, const fl_json *arr, const fl_conv_limits *l) {
  if (!fl_json_is_arr(arr)) return FL_EINPUT;
  for (const fl_json *v = fl_json_first(arr); v != NULL; v = fl_json_next(v)) {
    uint64_t id = 0;
    if (!below(v, l->n_vocab, &id) || c->tokens.len >= l->max_tokens) return FL_EINPUT;
    fl_ids_push(&c->tokens, (int32_t)id);
    if (c->tokens.oom) return FL_ENOMEM;
  }
  return c->tokens.len > 0 ? FL_OK : FL_EINPUT;
}

static int read_sup(fl_conv *c, const fl_json *arr, const fl_conv_limits *l) {
  size_t n = fl_json_is_arr(arr) ? fl_json_len(arr) : 0;
  if (n == 0 || n > l->max_sup || n > c->tokens.len) return FL_EINPUT;
  c->sup = fl_calloc(n, sizeof *c->sup);
  if (c->sup == NULL) return FL_ENOMEM;
  size_t i = 0;
  for (const fl_json *v = fl_json_first(arr); v != NULL && i < n; v = fl_json_next(v), i++) {
    uint64_t at = 0;
    if (!below(v, c->tokens.len, &at) || (i > 0 && at <= c->sup[i - 1])) return FL_EINPUT;
    c->sup[i] = (uint32_t)at;
  }
  c->targets.n_rows = n;
  return FL_OK;
}

static int read_target_row(fl_targets *t, const fl_json *row, size_t n_vocab, uint32_t *used) {
  for (const fl_json *v = fl_json_first(row); v != NULL; v = fl_json_next(v)) {
    uint64_t id = 0;
    double p = 0;
    if (!below(v, n_vocab, &id)) return FL_EINPUT;
    v = fl_json_next(v);
    if (v == NULL || !fl_json_as_num(v, &p) || !(p > 0 && p <= 1.0 + 1e-5)) return FL_EINPUT;
    t->id[*used] = (int32_t)id;
    t->prob[*used] = (float)p;
    (*used)++;
  }
  return FL_OK;
}

static int read_targets(fl_conv *c, const fl_json *arr, const fl_conv_limits *l) {
  fl_targets *t = &c->targets;
  if (!fl_json_is_arr(arr) || fl_json_len(arr) != t->n_rows) return FL_EINPUT;
  size_t total = 0;
  for (const fl_json *row = fl_json_first(arr); row != NULL; row = fl_json_next(row)) {
    size_t n = fl_json_is_arr(row) ? fl_json_len(row) : 0;
    if (n < 2 || n % 2 != 0 || n / 2 > l->n_vocab) return FL_EINPUT;
    total += n / 2;
  }
  t->first = fl_calloc(t->n_rows + 1, sizeof *t->first);
  t->id = fl_calloc(total, sizeof *t->id);
  t->prob = fl_calloc(total, sizeof *t->prob);
  if (t->first == NULL || t->id == NULL || t->prob == NULL) return FL_ENOMEM;
  uint32_t used = 0;
  size_t r = 0;
  for (const fl_json *row = fl_json_first(arr); row != NULL; row = fl_json_next(row)) {
    int rc = read_target_row(t, row, l->n_vocab, &used);
    if (rc != FL_OK) return rc;
    t->first[++r] = used;
  }
  return FL_OK;
}

/* What it is about, where that is said: a part of the chunk. */
static int read_at(fl_conv *c, const fl_json *at) {
  uint64_t first = 0, end = 0;
  if (at == NULL) return FL_OK;
  if (!fl_json_is_arr(at) || fl_json_len(at) != 2 ||
      !below(fl_json_first(at), (uint64_t)c->end, &first) ||
      !below(fl_json_next(fl_json_first(at)), (uint64_t)c->end + 1, &end) || first < c->first ||
      end <= first)
    return FL_EINPUT;
  c->at_first = (size_t)first;
  c->at_end = (size_t)end;
  return FL_OK;
}

static int read_span(fl_conv *c, const fl_json *o) {
  uint64_t first = 0, end = 0;
  const char *kind = NULL, *request = "", *answer = "";
  if (!fl_json_get_u64(o, "first", &first) || !fl_json_get_u64(o, "end", &end) || first > end ||
      end > UINT32_MAX || !fl_json_get_str(o, "kind", &kind))
    return FL_EINPUT;
  while (c->kind < FL_N_SEED_KINDS && strcmp(fl_seed_kinds[c->kind].kind, kind) != 0) c->kind++;
  if (c->kind == FL_N_SEED_KINDS) {
    if (*kind == '\0' || strlen(kind) > KIND_MAX_BYTES) return FL_EINPUT;
    c->kind_name = fl_strdup(kind);
    if (c->kind_name == NULL) return FL_ENOMEM;
  }
  c->first = (size_t)first;
  c->end = (size_t)end;
  (void)fl_json_get_str(o, "request", &request);
  (void)fl_json_get_str(o, "answer", &answer);
  c->request = fl_strdup(request);
  c->answer = fl_strdup(answer);
  return c->request != NULL && c->answer != NULL ? FL_OK : FL_ENOMEM;
}

int fl_conv_parse(fl_conv *out, const fl_json *line, const fl_conv_limits *limits) {
  fl_conv c = { 0 };
  int rc = read_span(&c, line);
  if (rc == FL_OK) rc = read_at(&c, fl_json_get(line, "at"));
  if (rc == FL_OK) rc = read_tokens(&c, fl_json_get(line, "tokens"), limits);
  if (rc == FL_OK) rc = read_sup(&c, fl_json_get(line, "sup"), limits);
  if (rc == FL_OK) rc = read_targets(&c, fl_json_get(line, "targets"), limits);
  if (rc != FL_OK) {
    fl_conv_release(&c);
    return rc;
  }
  *out = c;
  return FL_OK;
}

bool fl_conv_within(const fl_conv *c, const fl_conv_limits *limits) {
  return c->tokens.len > 0 && c->tokens.len <= limits->max_tokens && c->targets.n_rows > 0 &&
         c->targets.n_rows <= limits->max_sup;
}
