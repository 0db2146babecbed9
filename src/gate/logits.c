/* logits.c - logits: the logits of a list of ids against reference values from elsewhere. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "gate/gate.h"
#include "kernels/loss.h"

static const size_t ids_max_bytes = (size_t)64 << 20;

static int read_ids(fl_ids *out, const char *path, size_t n_vocab, fl_err *err) {
  fl_buf text = { 0 };
  int rc = fl_fs_read(&text, path, ids_max_bytes, err);
  char *at = text.data;
  while (rc == FL_OK && at && at[strspn(at, " \t\r\n,")] != '\0') {
    char *end;
    errno = 0;
    at += strspn(at, " \t\r\n,");
    long id = strtol(at, &end, 10);
    if (end == at || errno || id < 0 || (size_t)id >= n_vocab) {
      rc =
          fl_fail(err, FL_EINPUT, "%s: byte %zu: no token id below %zu; the file holds ids as text",
                  path, (size_t)(at - text.data), n_vocab);
    } else {
      fl_ids_push(out, (int32_t)id);
      at = end;
    }
  }
  fl_buf_release(&text);
  if (rc == FL_OK && out->oom) rc = fl_fail(err, FL_ENOMEM, "%s: not enough memory", path);
  if (rc == FL_OK && out->len == 0)
    rc = fl_fail(err, FL_EINPUT, "%s: no ids in it; the file holds ids as text", path);
  return rc;
}

typedef struct figures {
  double max, sum_sq;
  size_t worst_row, greedy, n_values;
} figures;

static bool add_row(figures *f, const float *got, const float *ref, size_t row, size_t n_vocab) {
  for (size_t i = 0; i < n_vocab; i++) {
    double d = fabs((double)got[i] - (double)ref[i]);
    if (!isfinite(d)) return false;
    f->sum_sq += d * d;
    if (d <= f->max) continue;
    f->max = d;
    f->worst_row = row;
  }
  f->n_values += n_vocab;
  f->greedy += fl_argmax(got, n_vocab) == fl_argmax(ref, n_vocab);
  return true;
}

typedef struct reference {
  fl_map map;
  float *row; /* [n_vocab], aligned copy of one row */
  size_t n_rows;
} reference;

static int open_reference(reference *r, const char *path, size_t n_ids, size_t n_vocab,
                          fl_err *err) {
  int rc = fl_map_open(&r->map, path, err);
  if (rc != FL_OK) return rc;
  size_t row_bytes = n_vocab * sizeof(float);
  r->n_rows = r->map.size / row_bytes;
  if (r->map.size % row_bytes != 0 || r->n_rows == 0 || r->n_rows > n_ids)
    return fl_fail(err, FL_EINPUT,
                   "%s: %zu bytes are not 1 to %zu rows of %zu f32 values; check model and ids",
                   path, r->map.size, n_ids, n_vocab);
  r->row = fl_aligned_calloc(n_vocab, sizeof *r->row);
  return r->row ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory");
}

static int compare_type(gate_run *g, const gate_model *m, const fl_ids *ids, const reference *ref,
                        fl_kv_type type, fl_err *err) {
  const fl_model *model = m->model;
  size_t n_vocab = fl_model_hparams(model)->n_vocab, first = 0;
  fl_kv_pool *pool = NULL;
  fl_seq *seq = NULL;
  figures f = { 0 };
  float *got = fl_aligned_calloc(n_vocab, sizeof *got);
  int rc = got ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK)
    rc = fl_kv_pool_new(&pool, fl_model_hparams(model), fl_model_kernels(model), type, 0, err);
  if (rc == FL_OK) rc = fl_seq_new(&seq, pool, err);
  if (rc == FL_OK) rc = gate_prefill(m->pass, seq, ids->data, ids->len, ref->n_rows, &first, err);
  for (size_t i = 0; i < ref->n_rows && rc == FL_OK; i++) {
    size_t row = first + i;
    fl_pass_logits(m->pass, &row, 1, got);
    memcpy(ref->row, ref->map.data + i * n_vocab * sizeof(float), n_vocab * sizeof(float));
    if (!add_row(&f, got, ref->row, i, n_vocab))
      rc = fl_fail(err, FL_EINPUT, "%s: row %zu: a value is not finite", g->opt->ref, i);
  }
  if (rc == FL_OK) {
    double rms = sqrt(f.sum_sq / (double)f.n_values);
    fl_json *row = fl_json_object();
    fl_json_set_str(row, "kv", gate_kv_name(type));
    fl_json_set_u64(row, "rows", ref->n_rows);
    fl_json_set_num(row, "max_dlogit", f.max);
    fl_json_set_num(row, "rms_dlogit", rms);
    fl_json_set_u64(row, "greedy", f.greedy);
    gate_check(g, f.max <= g->opt->tol, row,
               "%s cache, %zu rows: max |dlogit| %.6f (row %zu), rms %.6f, greedy %zu/%zu, "
               "tolerance %g",
               gate_kv_name(type), ref->n_rows, f.max, f.worst_row, rms, f.greedy, ref->n_rows,
               g->opt->tol);
  }
  if (seq) fl_seq_free(seq);
  if (pool) fl_kv_pool_free(pool);
  fl_free(got);
  return rc;
}

/* All rows' logits into --write; on the f32 cache. */
static int write_reference(gate_run *g, const gate_model *m, const fl_ids *ids, fl_err *err) {
  const fl_model *model = m->model;
  size_t n_vocab = fl_model_hparams(model)->n_vocab, first = 0;
  fl_kv_pool *pool = NULL;
  fl_seq *seq = NULL;
  fl_sink *out = NULL;
  float *row = fl_aligned_calloc(n_vocab, sizeof *row);
  int rc = row ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK)
    rc = fl_kv_pool_new(&pool, fl_model_hparams(model), fl_model_kernels(model), FL_KV_F32, 0, err);
  if (rc == FL_OK) rc = fl_seq_new(&seq, pool, err);
  if (rc == FL_OK) rc = gate_prefill(m->pass, seq, ids->data, ids->len, ids->len, &first, err);
  if (rc == FL_OK) rc = fl_fs_open_temp(&out, g->opt->write, err);
  for (size_t i = 0; i < ids->len && rc == FL_OK; i++) {
    size_t at = first + i;
    fl_pass_logits(m->pass, &at, 1, row);
    fl_sink_write(out, row, n_vocab * sizeof *row);
  }
  if (rc == FL_OK) rc = fl_fs_commit_temp(out, g->opt->write, err);
  if (rc == FL_OK) gate_check(g, true, NULL, "%zu rows written to %s", ids->len, g->opt->write);
  if (seq) fl_seq_free(seq);
  if (pool) fl_kv_pool_free(pool);
  fl_free(row);
  return rc;
}

static int run(gate_run *g, fl_err *err) {
  const gate_options *a = g->opt;
  gate_model m = { 0 };
  fl_ids ids = { 0 };
  reference ref = { 0 };
  int rc = gate_model_open(&m, g, NULL, err);
  size_t n_vocab = rc == FL_OK ? fl_model_hparams(m.model)->n_vocab : 0;
  if (rc == FL_OK) rc = read_ids(&ids, a->ids, n_vocab, err);
  if (rc == FL_OK && a->ref) rc = open_reference(&ref, a->ref, ids.len, n_vocab, err);
  if (a->write) ref.n_rows = ids.len;
  fl_pass_options opt = { .max_rows = ref.n_rows > FL_PASS_ROWS ? ref.n_rows : FL_PASS_ROWS,
                          .max_spans = 1 };
  if (rc == FL_OK) rc = fl_pass_new(&m.pass, m.model, m.team, &opt, err);
  if (rc == FL_OK && a->write) rc = write_reference(g, &m, &ids, err);
  /* The reference is of full precision: a rounded cache is compared only when asked for. */
  fl_kv_type types[2] = { FL_KV_F32 };
  size_t n = a->write ? 0 : a->kv == GATE_KV_BOTH ? 1 : gate_kv_types(a, types);
  for (size_t i = 0; i < n && rc == FL_OK; i++) rc = compare_type(g, &m, &ids, &ref, types[i], err);
  fl_free(ref.row);
  fl_map_close(&ref.map);
  fl_ids_release(&ids);
  gate_model_close(&m);
  return rc;
}

const gate gate_logits = { "logits", "logits of given ids against a reference", run };
