/* batch.c - batch: sequences that share a prefix give the same logits, bit for bit, whether
 * they are decoded alone or together, prefilled alone or packed, by one thread or by several. */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "model/generate.h"
#include "gate/gate.h"

enum { PROMPT_MIN = 5, PROMPT_STEP = 6 };

typedef char row_hash[FL_HASH_TEXT];

typedef struct batch {
  gate_run *g;
  const fl_model *model;
  fl_pass *pass;
  fl_ids ids;
  size_t n, p, steps, n_vocab;
} batch;

/* What a way of decoding gave: per stream the hashes of the rows that decided its tokens. */
typedef struct trace {
  row_hash *rows; /* [n, steps] */
  size_t *len;    /* [n] */
  size_t n_vocab, steps, offset;
} trace;

static int trace_init(trace *t, const batch *b) {
  *t = (trace){ .n_vocab = b->n_vocab,
                .steps = b->steps,
                .rows = fl_calloc(b->n * b->steps, sizeof(row_hash)),
                .len = fl_calloc(b->n, sizeof(size_t)) };
  return t->rows && t->len ? FL_OK : FL_ENOMEM;
}

static void trace_release(trace *t) {
  fl_free(t->rows);
  fl_free(t->len);
}

static void on_row(void *ctx, size_t i, size_t index, const float *logits, int32_t token) {
  trace *t = ctx;
  size_t s = t->offset + i;
  (void)token; /* greedy: the logits tell it */
  if (index >= t->steps) return;
  fl_hash_bytes(t->rows[s * t->steps + index], logits, t->n_vocab * sizeof(float));
  t->len[s] = index + 1;
}

/* Prompts of different lengths from different places behind the shared prefix. */
static size_t prompt_len(size_t i) { return PROMPT_MIN + PROMPT_STEP * (i % 8); }

static const int32_t *prompt_at(const batch *b, size_t i) {
  return b->ids.data + b->p + i * (PROMPT_MIN + PROMPT_STEP * 8);
}

static int fork_all(const batch *b, const fl_seq *prefix, fl_seq **seqs, fl_err *err) {
  for (size_t i = 0; i < b->n; i++) {
    int rc = fl_seq_fork(&seqs[i], prefix, b->p, err);
    if (rc != FL_OK) return rc;
  }
  return FL_OK;
}

static void free_all(fl_seq **seqs, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (seqs[i]) fl_seq_free(seqs[i]);
}

/* Decodes every stream in groups of `together`. */
static int decode(const batch *b, fl_pass *pass, const fl_seq *prefix, size_t together, trace *t,
                  fl_err *err) {
  fl_seq *seqs[64] = { 0 };
  fl_stream streams[64] = { 0 };
  fl_generate_hooks hooks = { .ctx = t, .on_row = on_row };
  int rc = fork_all(b, prefix, seqs, err);
  for (size_t i = 0; i < b->n; i++)
    streams[i] = (fl_stream){ .seq = seqs[i],
                              .prompt = prompt_at(b, i),
                              .n_prompt = prompt_len(i),
                              .sampling = FL_SAMPLING_GREEDY,
                              .max_new = b->steps };
  for (size_t i = 0; i < b->n && rc == FL_OK; i += together) {
    t->offset = i;
    rc = fl_generate(pass, streams + i, together, &hooks, err);
  }
  fl_streams_release(streams, b->n);
  free_all(seqs, b->n);
  return rc;
}

static void compare_traces(const batch *b, fl_kv_type type, const char *what, const trace *one,
                           const trace *other) {
  size_t rows = 0, equal = 0;
  for (size_t i = 0; i < b->n; i++) {
    size_t n = one->len[i] > other->len[i] ? one->len[i] : other->len[i];
    rows += n;
    for (size_t r = 0; r < n; r++)
      equal += strcmp(one->rows[i * b->steps + r], other->rows[i * b->steps + r]) == 0;
  }
  fl_json *row = fl_json_object();
  fl_json_set_str(row, "kv", gate_kv_name(type));
  fl_json_set_str(row, "against", what);
  fl_json_set_u64(row, "rows", rows);
  fl_json_set_u64(row, "equal", equal);
  gate_check(b->g, rows > 0 && equal == rows, row,
             "%s cache, %zu sequences behind %zu rows: lone against %s: %zu/%zu rows agree bit for "
             "bit",
             gate_kv_name(type), b->n, b->p, what, equal, rows);
}

/* Logits of every prompt row, hashed: each prompt alone, or all in one packed forward. */
static int prompt_rows(const batch *b, const fl_seq *prefix, bool packed, row_hash *out,
                       float *logits, fl_err *err) {
  fl_seq *seqs[64] = { 0 };
  fl_span spans[64];
  size_t n_out = 0;
  int rc = fork_all(b, prefix, seqs, err);
  for (size_t i = 0; i < b->n; i++)
    spans[i] = (fl_span){ .seq = seqs[i], .tokens = prompt_at(b, i), .n_rows = prompt_len(i) };
  size_t together = packed ? b->n : 1;
  for (size_t i = 0; i < b->n && rc == FL_OK; i += together) {
    rc = fl_pass_forward(b->pass, spans + i, together, err);
    size_t rows = 0;
    for (size_t j = 0; j < together; j++) rows += prompt_len(i + j);
    for (size_t r = 0; r < rows && rc == FL_OK; r++) {
      fl_pass_logits(b->pass, &r, 1, logits);
      fl_hash_bytes(out[n_out++], logits, b->n_vocab * sizeof(float));
    }
  }
  free_all(seqs, b->n);
  return rc;
}

static int check_packed(const batch *b, fl_kv_type type, const fl_seq *prefix, fl_err *err) {
  size_t n_rows = 0, equal = 0;
  for (size_t i = 0; i < b->n; i++) n_rows += prompt_len(i);
  row_hash *lone = fl_calloc(n_rows, sizeof *lone), *packed = fl_calloc(n_rows, sizeof *packed);
  float *logits = fl_aligned_calloc(b->n_vocab, sizeof *logits);
  int rc = lone && packed && logits ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK) rc = prompt_rows(b, prefix, false, lone, logits, err);
  if (rc == FL_OK) rc = prompt_rows(b, prefix, true, packed, logits, err);
  for (size_t r = 0; r < n_rows && rc == FL_OK; r++) equal += strcmp(lone[r], packed[r]) == 0;
  if (rc == FL_OK) {
    fl_json *row = fl_json_object();
    fl_json_set_str(row, "kv", gate_kv_name(type));
    fl_json_set_str(row, "against", "packed");
    fl_json_set_u64(row, "rows", n_rows);
    fl_json_set_u64(row, "equal", equal);
    gate_check(b->g, equal == n_rows, row,
               "%s cache, %zu sequences behind %zu rows: lone against packed: %zu/%zu rows agree "
               "bit for bit",
               gate_kv_name(type), b->n, b->p, equal, n_rows);
  }
  fl_free(logits);
  fl_free(packed);
  fl_free(lone);
  return rc;
}

static int one_type(batch *b, fl_pass *one_thread, fl_kv_type type, fl_err *err) {
  fl_kv_pool *pool = NULL;
  fl_seq *prefix = NULL;
  trace lone = { 0 }, other = { 0 };
  int rc =
      fl_kv_pool_new(&pool, fl_model_hparams(b->model), fl_model_kernels(b->model), type, 0, err);
  if (rc == FL_OK) rc = fl_seq_new(&prefix, pool, err);
  if (rc == FL_OK) rc = fl_pass_prefill(b->pass, prefix, b->ids.data, b->p, NULL, err);
  if (rc == FL_OK && (trace_init(&lone, b) != FL_OK || trace_init(&other, b) != FL_OK))
    rc = fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK) rc = decode(b, b->pass, prefix, 1, &lone, err);
  if (rc == FL_OK) rc = decode(b, b->pass, prefix, b->n, &other, err);
  if (rc == FL_OK) compare_traces(b, type, "batched", &lone, &other);
  if (rc == FL_OK) rc = decode(b, one_thread, prefix, 1, &other, err);
  if (rc == FL_OK) compare_traces(b, type, "one thread", &lone, &other);
  if (rc == FL_OK) rc = check_packed(b, type, prefix, err);
  trace_release(&lone);
  trace_release(&other);
  if (prefix) fl_seq_free(prefix);
  if (pool) fl_kv_pool_free(pool);
  return rc;
}

static int run(gate_run *g, fl_err *err) {
  batch b = { .g = g, .n = g->opt->streams, .p = g->opt->train.p, .steps = g->opt->suffix };
  gate_model m = { 0 };
  fl_pass *one_thread = NULL;
  fl_kv_type types[2];
  size_t rows = b.n * (PROMPT_MIN + PROMPT_STEP * 8);
  fl_pass_options opt = { .max_rows = rows > FL_PASS_ROWS ? rows : FL_PASS_ROWS, .max_spans = b.n };
  int rc = gate_model_open(&m, g, &opt, err);
  if (rc == FL_OK) rc = fl_pass_new(&one_thread, m.model, NULL, &opt, err);
  if (rc == FL_OK) rc = gate_ids(&b.ids, g, m.model, b.p + rows, err);
  if (rc == FL_OK) {
    b.model = m.model;
    b.pass = m.pass;
    b.n_vocab = fl_model_hparams(b.model)->n_vocab;
  }
  for (size_t i = 0, n = gate_kv_types(g->opt, types); i < n && rc == FL_OK; i++)
    rc = one_type(&b, one_thread, types[i], err);
  fl_ids_release(&b.ids);
  if (one_thread) fl_pass_free(one_thread);
  gate_model_close(&m);
  return rc;
}

const gate gate_batch = { "batch", "lone, batched and packed rows agree bit for bit", run };
