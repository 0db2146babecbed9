/* util.c - what several gates share: model and pass, ids, comparison, scratch folders. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "gate/gate.h"
#include "kernels/loss.h"

int gate_model_open(gate_model *out, const gate_run *g, const fl_pass_options *pass, fl_err *err) {
  const gate_options *o = g->opt;
  gate_model m = { 0 };
  int rc = fl_team_new(&m.team, o->threads, err);
  if (rc == FL_OK) rc = fl_model_open(&m.model, o->model, &o->how, m.team, err);
  if (rc == FL_OK && pass) rc = fl_pass_new(&m.pass, m.model, m.team, pass, err);
  if (rc == FL_OK) {
    *out = m;
  } else {
    gate_model_close(&m);
  }
  return rc;
}

void gate_model_close(gate_model *m) {
  if (m->pass) fl_pass_free(m->pass);
  if (m->model) fl_model_close(m->model);
  if (m->team) fl_team_free(m->team);
  *m = (gate_model){ 0 };
}

int gate_sources(fl_source_list *out, const gate_run *g, fl_err *err) {
  const gate_options *o = g->opt;
  if (o->n_docs == 0) return fl_fail(err, FL_EUSAGE, "--docs PATH is needed");
  return fl_source_read_with(out, o->docs, o->n_docs, &o->sources, err);
}

int gate_ids(fl_ids *out, const gate_run *g, const fl_model *m, size_t need, fl_err *err) {
  fl_source_list docs = { 0 };
  fl_ids ids = { 0 };
  int rc = gate_sources(&docs, g, err);
  for (size_t i = 0; i < docs.n && rc == FL_OK; i++)
    rc = fl_tokenize(fl_model_tokenizer(m), &ids, docs.doc[i].text, docs.doc[i].len, 0, err);
  fl_source_release(&docs);
  if (rc == FL_OK && ids.len < need)
    rc = fl_fail(err, FL_EUSAGE,
                 "--docs: the documents give %zu tokens where %zu are needed; add documents or "
                 "lower --p or --suffix",
                 ids.len, need);
  if (rc == FL_OK) {
    *out = ids;
  } else {
    fl_ids_release(&ids);
  }
  return rc;
}

int gate_prefill(fl_pass *p, fl_seq *seq, const int32_t *ids, size_t n, size_t keep, size_t *first,
                 fl_err *err) {
  size_t tail = n < fl_pass_max_rows(p) ? n : fl_pass_max_rows(p);
  int rc = FL_OK;
  if (n > tail) rc = fl_pass_prefill(p, seq, ids, n - tail, NULL, err);
  if (rc != FL_OK) return rc;
  fl_span span = {
    .seq = seq, .tokens = ids + (n - tail), .n_rows = tail, .n_no_output = tail - keep
  };
  rc = fl_pass_forward(p, &span, 1, err);
  if (rc == FL_OK) *first = tail - keep;
  return rc;
}

size_t gate_kv_types(const gate_options *a, fl_kv_type out[2]) {
  size_t n = 0;
  if (a->kv != GATE_KV_F16) out[n++] = FL_KV_F32;
  if (a->kv != GATE_KV_F32) out[n++] = FL_KV_F16;
  return n;
}

const char *gate_kv_name(fl_kv_type t) { return t == FL_KV_F16 ? "f16" : "f32"; }

gate_diff gate_compare(const float *a, const float *b, size_t n, size_t n_vocab) {
  gate_diff d = { 0 };
  for (size_t r = 0; r < n; r++) {
    const float *x = a + r * n_vocab, *y = b + r * n_vocab;
    for (size_t i = 0; i < n_vocab; i++) {
      double delta = fabs((double)x[i] - (double)y[i]);
      if (memcmp(&x[i], &y[i], sizeof *x) != 0) d.differing++;
      if (!(delta <= d.max) && !isnan(d.max)) d.max = delta; /* a NaN stays */
    }
    d.greedy += fl_argmax(x, n_vocab) == fl_argmax(y, n_vocab);
  }
  return d;
}

int gate_temp_dir(char **out, fl_err *err) {
  const char *tmp = getenv("TMPDIR");
  char *dir = fl_asprintf("%s/flotilla-gate.XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (!dir || !mkdtemp(dir)) {
    int rc = fl_fail(err, FL_EFAIL, "%s: no temporary folder can be made; set TMPDIR",
                     dir ? dir : "TMPDIR");
    fl_free(dir);
    return rc;
  }
  *out = dir;
  return FL_OK;
}

static void remove_tree(const char *dir, int depth) {
  char **names = NULL;
  size_t n = 0;
  if (depth > 4 || fl_fs_list(&names, &n, dir, NULL) != FL_OK) return;
  for (size_t i = 0; i < n; i++) {
    char *path = fl_fs_join(dir, names[i]);
    if (path && fl_fs_is_dir(path)) remove_tree(path, depth + 1);
    if (path) fl_fs_remove(path);
    fl_free(path);
  }
  fl_fs_list_free(names, n);
  remove(dir);
}

void gate_temp_remove(char *dir) {
  if (!dir) return;
  remove_tree(dir, 0);
  fl_free(dir);
}
