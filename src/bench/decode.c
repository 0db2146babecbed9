/* decode.c - reading prompts, decoding one stream and eight, embedding pieces for the index,
 * and the wait for a first token behind a cartridge and behind the document itself. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "kernels/loss.h"

enum {
  STREAMS = 8,
  PROMPT = 16,
  STEPS = 32,       /* tokens decoded a stream */
  PIECE = 256 + 16, /* of the index, with the request behind it */
  CARTRIDGE = 256,
  QUESTION = 32
};

/* A pass with sequences on one pool, and what their logits need. */
typedef struct bed {
  bench *b;
  fl_pass *pass;
  fl_kv_pool *pool;
  fl_seq *seq[STREAMS];
  float *logits; /* [STREAMS, n_vocab] */
  int32_t *ids;  /* pseudo-random, as many as asked for */
} bed;

static void bed_release(bed *d) {
  for (size_t i = 0; i < STREAMS; i++)
    if (d->seq[i]) fl_seq_free(d->seq[i]);
  if (d->pool) fl_kv_pool_free(d->pool);
  if (d->pass) fl_pass_free(d->pass);
  fl_free(d->logits);
  fl_free(d->ids);
}

static int bed_init(bed *d, bench *b, size_t n_ids, fl_err *err) {
  const fl_pass_options opt = { .max_rows = FL_PASS_ROWS, .max_spans = STREAMS };
  *d = (bed){ .b = b };
  int rc = fl_pass_new(&d->pass, b->model, b->team, &opt, err);
  if (rc == FL_OK)
    rc = fl_kv_pool_new(&d->pool, b->hp, fl_model_kernels(b->model), FL_KV_F16, 0, err);
  d->logits = fl_aligned_calloc(STREAMS * b->hp->n_vocab, sizeof *d->logits);
  d->ids = fl_calloc(n_ids, sizeof *d->ids);
  if (rc == FL_OK && (!d->logits || !d->ids)) rc = fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK) bench_tokens(b, d->ids, n_ids);
  if (rc != FL_OK) bed_release(d);
  return rc;
}

static int fresh_seqs(bed *d, size_t n, fl_err *err) {
  int rc = FL_OK;
  for (size_t i = 0; i < STREAMS; i++) {
    if (d->seq[i]) fl_seq_free(d->seq[i]);
    d->seq[i] = NULL;
  }
  for (size_t i = 0; i < n && rc == FL_OK; i++) rc = fl_seq_new(&d->seq[i], d->pool, err);
  return rc;
}

/* Seconds for n tokens through sequence 0 and the logits of the last. */
static int read_prompt(bed *d, size_t n, double *out, fl_err *err) {
  size_t last;
  const double t = fl_now_s();
  int rc = fl_pass_prefill(d->pass, d->seq[0], d->ids, n, &last, err);
  if (rc != FL_OK) return rc;
  fl_pass_logits(d->pass, &last, 1, d->logits);
  *out = fl_now_s() - t;
  return FL_OK;
}

static int prefill_of(bed *d, size_t n, fl_err *err) {
  const bool llama = bench_has_peer(d->b, "llama.cpp");
  const double spared = bench_spared_macs(d->b, false) * (double)(n - 1);
  const double macs = bench_layer_macs(d->b) * (double)n - spared + bench_head_macs(d->b);
  bench_figure f = { .part = "prefill", .unit = "tokens/s", .peer = llama ? "llama.cpp" : NULL };
  bench_turns turns = { .meter = d->b->compute };
  for (size_t r = 0; r < d->b->opt->reps; r++) {
    double t = 0, peer = 0;
    int rc = fresh_seqs(d, 1, err);
    if (rc == FL_OK) rc = read_prompt(d, n, &t, err);
    if (rc == FL_OK && llama) rc = bench_llama(d->b, n, 0, &peer, err);
    if (rc != FL_OK) return rc;
    bench_turn(&turns, t);
    bench_turns_end(&turns, 2 * macs);
    if (peer > f.peer_value) f.peer_value = peer;
  }
  snprintf(f.what, sizeof f.what, "%zu tokens", n);
  f.value = (double)n / turns.best;
  f.share = bench_turns_share(&turns);
  bench_add(d->b, &f);
  return FL_OK;
}

int bench_prefill(bench *b, fl_err *err) {
  bed d;
  int rc = bed_init(&d, b, 512, err);
  if (rc != FL_OK) return rc;
  rc = prefill_of(&d, 128, err);
  if (rc == FL_OK) rc = prefill_of(&d, 512, err);
  bed_release(&d);
  return rc;
}

/* One token for each of n sequences. */
static int decode_step(bed *d, size_t n, const int32_t *next, fl_err *err) {
  fl_span span[STREAMS];
  size_t row[STREAMS];
  for (size_t i = 0; i < n; i++) {
    span[i] = (fl_span){ .seq = d->seq[i], .tokens = &next[i], .n_rows = 1 };
    row[i] = i;
  }
  int rc = fl_pass_forward(d->pass, span, n, err);
  if (rc == FL_OK) fl_pass_logits(d->pass, row, n, d->logits);
  return rc;
}

/* STEPS steps of n streams, greedy, after short prompts, a repetition of `turns`. A step reads so
 * many bytes, or takes so many operations. */
static int decode(bed *d, size_t n, bench_turns *turns, double amount, fl_err *err) {
  int32_t next[STREAMS];
  int rc = fresh_seqs(d, n, err);
  for (size_t i = 0; i < n && rc == FL_OK; i++) {
    rc = fl_pass_prefill(d->pass, d->seq[i], d->ids + i * PROMPT, PROMPT, NULL, err);
    next[i] = d->ids[i];
  }
  for (size_t k = 0; k < STEPS && rc == FL_OK; k++) {
    const double t = fl_now_s();
    rc = decode_step(d, n, next, err);
    for (size_t i = 0; i < n && rc == FL_OK; i++)
      next[i] = fl_argmax(d->logits + i * d->b->hp->n_vocab, d->b->hp->n_vocab);
    bench_turn(turns, fl_now_s() - t);
  }
  bench_turns_end(turns, amount * STEPS);
  return rc;
}

static void add_rate(bench *b, const char *what, double value, const char *unit, double share) {
  bench_figure f = { .part = "decode", .unit = unit, .value = value, .share = share };
  snprintf(f.what, sizeof f.what, "%s", what);
  bench_add(b, &f);
}

int bench_decode(bench *b, fl_err *err) {
  const bool llama = bench_has_peer(b, "llama.cpp");
  const double bytes = (double)fl_model_weight_bytes(b->model);
  const double ops = 2.0 * STREAMS * (bench_layer_macs(b) + bench_head_macs(b));
  bench_turns one = { 0 }, eight = { .meter = b->compute };
  double peer = 0;
  bed d;
  int rc = bench_read_open(b, err);
  if (rc == FL_OK) rc = bed_init(&d, b, STREAMS * PROMPT, err);
  if (rc != FL_OK) return rc;
  one.meter = b->read;
  for (size_t r = 0; r < b->opt->reps && rc == FL_OK; r++) {
    double v = 0;
    rc = decode(&d, 1, &one, bytes, err);
    if (rc == FL_OK) rc = decode(&d, STREAMS, &eight, ops, err);
    if (rc == FL_OK && llama) rc = bench_llama(b, 0, STEPS, &v, err);
    if (v > peer) peer = v;
  }
  bed_release(&d);
  if (rc != FL_OK) return rc;
  bench_figure f = { .part = "decode",
                     .unit = "tokens/s",
                     .value = STEPS / one.best,
                     .peer_value = peer,
                     .peer = llama ? "llama.cpp" : NULL,
                     .what = "one stream" };
  bench_add(b, &f);
  add_rate(b, "one stream, weights", bytes * STEPS / one.best * 1e-9, "GB/s",
           bench_turns_share(&one));
  add_rate(b, "eight streams", STREAMS * STEPS / eight.best, "tokens/s", bench_turns_share(&eight));
  add_rate(b, "eight streams over one", STREAMS * one.best / eight.best, "times", 0);
  return FL_OK;
}

int bench_index(bench *b, fl_err *err) {
  double best = 0;
  bed d;
  int rc = bed_init(&d, b, PIECE, err);
  if (rc != FL_OK) return rc;
  for (size_t r = 0; r < b->opt->reps && rc == FL_OK; r++) {
    size_t last;
    rc = fresh_seqs(&d, 1, err);
    const double t = fl_now_s();
    if (rc == FL_OK) rc = fl_pass_prefill(d.pass, d.seq[0], d.ids, PIECE, &last, err);
    if (rc == FL_OK) fl_pass_hidden(d.pass, &last, 1, d.logits);
    if (1 / (fl_now_s() - t) > best) best = 1 / (fl_now_s() - t);
  }
  bed_release(&d);
  bench_figure f = {
    .part = "index", .unit = "pieces/s", .value = best, .what = "pieces of 256 tokens"
  };
  if (rc == FL_OK) bench_add(b, &f);
  return rc;
}

/* The cartridge stands in memory as a fork's whole pages do; the question is read behind it. */
int bench_first_token(bench *b, fl_err *err) {
  const size_t n = b->opt->doc_rows;
  double behind = 0, within = 0;
  fl_seq *rows = NULL;
  bed d;
  if (n + QUESTION > b->hp->n_ctx)
    return fl_fail(err, FL_EUSAGE, "--document %zu: the model's context is %zu rows", n,
                   b->hp->n_ctx);
  int rc = bed_init(&d, b, n + QUESTION, err);
  if (rc != FL_OK) return rc;
  rc = fl_seq_new(&rows, d.pool, err);
  if (rc == FL_OK) rc = fl_pass_prefill(d.pass, rows, d.ids, CARTRIDGE, NULL, err);
  for (size_t r = 0; r < b->opt->reps && rc == FL_OK; r++) {
    double t = 0;
    rc = fresh_seqs(&d, 0, err);
    if (rc == FL_OK) rc = fl_seq_fork(&d.seq[0], rows, CARTRIDGE, err);
    if (rc == FL_OK) rc = read_prompt(&d, QUESTION, &t, err);
    if (behind <= 0 || t < behind) behind = t;
  }
  if (rc == FL_OK) rc = fresh_seqs(&d, 1, err);
  if (rc == FL_OK) rc = read_prompt(&d, n + QUESTION, &within, err);
  if (rows) fl_seq_free(rows);
  bed_release(&d);
  if (rc != FL_OK) return rc;
  bench_figure f = {
    .part = "first-token", .unit = "s", .value = behind, .peer = "in context", .peer_value = within
  };
  snprintf(f.what, sizeof f.what, "cartridge of %d rows for %zu tokens", CARTRIDGE, n);
  bench_add(b, &f);
  return FL_OK;
}
