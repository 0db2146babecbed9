/* equiv.c - equiv and compose: rows captured from a real prefill, cut into one or two parts
 * and composed into a new sequence, answer exactly as that prefill does. By the row rule
 * (kernels.h) the largest difference is 0, not small. */
#include "base/mem.h"
#include "cartridge/cartridge.h"
#include "gate/gate.h"

enum { MAX_PARTS = 2 };

typedef struct equiv {
  gate_run *g;
  gate_model m;
  fl_ids ids;
  size_t n_parts, p, suffix, n_vocab;
  float *real, *composed; /* [suffix, n_vocab] */
} equiv;

static void suffix_logits(const equiv *e, size_t first, float *out) {
  for (size_t i = 0; i < e->suffix; i++) {
    size_t row = first + i;
    fl_pass_logits(e->m.pass, &row, 1, out + i * e->n_vocab);
  }
}

/* The real prefill of all rows; the last ones' logits. */
static int run_real(const equiv *e, fl_kv_pool *pool, fl_err *err) {
  fl_seq *seq = NULL;
  size_t first, n = e->n_parts * e->p + e->suffix;
  int rc = fl_seq_new(&seq, pool, err);
  if (rc == FL_OK) rc = gate_prefill(e->m.pass, seq, e->ids.data, n, e->suffix, &first, err);
  if (rc == FL_OK) suffix_logits(e, first, e->real);
  if (seq) fl_seq_free(seq);
  return rc;
}

/* One capture of the first rows, cut into parts of p. */
static int capture(const equiv *e, fl_kv_pool *pool, fl_cartridge parts[MAX_PARTS], fl_err *err) {
  const fl_hparams *hp = fl_model_hparams(e->m.model);
  fl_seq *seq = NULL;
  int rc = fl_seq_new(&seq, pool, err);
  if (rc == FL_OK) rc = fl_pass_prefill(e->m.pass, seq, e->ids.data, e->n_parts * e->p, NULL, err);
  for (size_t i = 0; i < e->n_parts && rc == FL_OK; i++)
    rc = fl_cartridge_capture(&parts[i], hp, seq, i * e->p, e->p, 0, err);
  if (seq) fl_seq_free(seq);
  return rc;
}

static int run_composed(const equiv *e, fl_kv_pool *pool, fl_err *err) {
  fl_cartridge parts[MAX_PARTS] = { 0 };
  const fl_cartridge *refs[MAX_PARTS] = { &parts[0], &parts[1] };
  fl_seq *seq = NULL;
  size_t first;
  int rc = capture(e, pool, parts, err);
  if (rc == FL_OK) rc = fl_seq_new(&seq, pool, err);
  if (rc == FL_OK) rc = fl_compose(seq, refs, e->n_parts, e->g->opt->train.positions, err);
  if (rc == FL_OK)
    rc = gate_prefill(e->m.pass, seq, e->ids.data + e->n_parts * e->p, e->suffix, e->suffix, &first,
                      err);
  if (rc == FL_OK) suffix_logits(e, first, e->composed);
  if (seq) fl_seq_free(seq);
  for (size_t i = 0; i < MAX_PARTS; i++) fl_cartridge_release(&parts[i]);
  return rc;
}

/* The real prefill once more, `slice` rows a pass, into e->composed. */
static int run_sliced(const equiv *e, fl_kv_pool *pool, size_t slice, fl_err *err) {
  fl_seq *seq = NULL;
  const size_t n = e->n_parts * e->p + e->suffix;
  int rc = fl_seq_new(&seq, pool, err);
  for (size_t at = 0, take; at < n && rc == FL_OK; at += take) {
    take = n - at < slice ? n - at : slice;
    fl_span span = { .seq = seq, .tokens = e->ids.data + at, .n_rows = take };
    rc = fl_pass_forward(e->m.pass, &span, 1, err);
    for (size_t row = 0; row < take && rc == FL_OK; row++)
      if (at + row + e->suffix >= n)
        fl_pass_logits(e->m.pass, &row, 1, e->composed + (at + row + e->suffix - n) * e->n_vocab);
  }
  if (seq) fl_seq_free(seq);
  return rc;
}

/* The model's sensitivity to the shapes of its passes: by the row rule there is none. */
static int envelope(equiv *e, fl_kv_pool *pool, fl_kv_type type, fl_err *err) {
  static const size_t slices[] = { 1, 7, 32 };
  for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
    int rc = run_sliced(e, pool, slices[i], err);
    if (rc != FL_OK) return rc;
    gate_diff d = gate_compare(e->real, e->composed, e->suffix, e->n_vocab);
    fl_json *row = fl_json_object();
    fl_json_set_str(row, "kv", gate_kv_name(type));
    fl_json_set_u64(row, "slice", slices[i]);
    fl_json_set_num(row, "envelope", d.max);
    gate_check(e->g, d.differing == 0, row,
               "%s cache, envelope at %zu rows a pass: max |dlogit| %.6f", gate_kv_name(type),
               slices[i], d.max);
  }
  return FL_OK;
}

static int one_type(equiv *e, fl_kv_type type, fl_err *err) {
  const fl_model *m = e->m.model;
  fl_kv_pool *pool = NULL;
  int rc = fl_kv_pool_new(&pool, fl_model_hparams(m), fl_model_kernels(m), type, 0, err);
  if (rc == FL_OK) rc = run_real(e, pool, err);
  if (rc == FL_OK && e->g->opt->envelope) rc = envelope(e, pool, type, err);
  if (rc == FL_OK) rc = run_composed(e, pool, err);
  if (pool) fl_kv_pool_free(pool);
  if (rc != FL_OK) return rc;
  gate_diff d = gate_compare(e->real, e->composed, e->suffix, e->n_vocab);
  fl_json *row = fl_json_object();
  fl_json_set_str(row, "kv", gate_kv_name(type));
  fl_json_set_u64(row, "p", e->p);
  fl_json_set_u64(row, "parts", e->n_parts);
  fl_json_set_u64(row, "suffix", e->suffix);
  fl_json_set_num(row, "max_dlogit", d.max);
  fl_json_set_u64(row, "greedy", d.greedy);
  gate_check(e->g, d.differing == 0 && d.greedy == e->suffix, row,
             "%s cache, %zu x %zu rows, suffix %zu: max |dlogit| %.6f, greedy %zu/%zu",
             gate_kv_name(type), e->n_parts, e->p, e->suffix, d.max, d.greedy, e->suffix);
  return FL_OK;
}

static int run_parts(gate_run *g, size_t n_parts, fl_err *err) {
  equiv e = { .g = g, .n_parts = n_parts, .p = g->opt->train.p, .suffix = g->opt->suffix };
  size_t need = n_parts * e.p + e.suffix, slice = e.suffix > FL_PASS_ROWS ? e.suffix : FL_PASS_ROWS;
  fl_kv_type types[2];
  fl_pass_options opt = { .max_rows = slice, .max_spans = 1 };
  int rc = gate_model_open(&e.m, g, &opt, err);
  if (rc == FL_OK) rc = gate_ids(&e.ids, g, e.m.model, need, err);
  if (rc == FL_OK) {
    e.n_vocab = fl_model_hparams(e.m.model)->n_vocab;
    e.real = fl_aligned_calloc(e.suffix, e.n_vocab * sizeof(float));
    e.composed = fl_aligned_calloc(e.suffix, e.n_vocab * sizeof(float));
    if (!e.real || !e.composed)
      rc = fl_fail(err, FL_ENOMEM, "--suffix %zu: not enough memory", e.suffix);
  }
  for (size_t i = 0, n = gate_kv_types(g->opt, types); i < n && rc == FL_OK; i++)
    rc = one_type(&e, types[i], err);
  fl_free(e.real);
  fl_free(e.composed);
  fl_ids_release(&e.ids);
  gate_model_close(&e.m);
  return rc;
}

static int run_equiv(gate_run *g, fl_err *err) { return run_parts(g, 1, err); }

static int run_compose(gate_run *g, fl_err *err) { return run_parts(g, 2, err); }

const gate gate_equiv = { "equiv", "one capture of p rows against the real prefill", run_equiv };
const gate gate_compose = { "compose", "two parts of p rows against the real prefill",
                            run_compose };
