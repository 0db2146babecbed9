/* gate.h - the acceptance gates: each states a figure and a verdict. gate_<name>.c holds one. */
#ifndef FL_COMMANDS_GATE_H
#define FL_COMMANDS_GATE_H

#include "base/json.h"
#include "commands/command.h"
#include "commands/docs.h"
#include "commands/runtime.h"
#include "fleet/fleet.h"

typedef enum gate_kv { GATE_KV_BOTH, GATE_KV_F32, GATE_KV_F16 } gate_kv;

typedef struct gate_args {
  common_args common;
  engine_args engine;
  fl_train_options train; /* p and seed serve every gate, the rest those that train */
  docs_args input;
  int kv; /* gate_kv */
  size_t suffix, kills, streams;
  bool envelope;
  const char *ids, *ref, *write;
  double tol;
} gate_args;

typedef struct gate_run {
  const gate_args *args;
  const char *name;
  fl_json *checks; /* rows of the JSON result */
  size_t failed;
} gate_run;

typedef struct gate {
  const char *name, *summary;
  int (*run)(gate_run *g, fl_err *err);
} gate;
extern const gate gate_equiv, gate_compose, gate_resume, gate_evict, gate_batch, gate_grad,
    gate_logits;

/* States one check: a line on stdout, or a row of the JSON result with `figures` (adopted, may be
 * NULL) in it. */
void gate_check(gate_run *g, bool pass, fl_json *figures, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* An open model with one pass; what the numeric gates begin with. */
typedef struct gate_model {
  engine engine;
  fl_pass *pass;
} gate_model;
int gate_model_open(gate_model *out, const gate_run *g, const fl_pass_options *opt, fl_err *err);
void gate_model_close(gate_model *m);

/* The raw ids of all documents in a row, at least `need` of them (else FL_EUSAGE). */
int gate_ids(fl_ids *out, const gate_run *g, const fl_model *m, size_t need, fl_err *err);
/* Appends ids[0..n) to seq so that the last `keep` rows are those of one forward; their numbers
 * begin at *first. */
int gate_prefill(fl_pass *p, fl_seq *seq, const int32_t *ids, size_t n, size_t keep, size_t *first,
                 fl_err *err);
/* The cache types that --kv asks for; returns their number. */
size_t gate_kv_types(const gate_args *a, fl_kv_type out[2]);
const char *gate_kv_name(fl_kv_type t);

/* Equality of logits: [n, n_vocab] each. */
typedef struct gate_diff {
  double max;       /* largest |difference| */
  size_t differing; /* values whose bits differ */
  size_t greedy;    /* rows whose arg max agrees */
} gate_diff;
gate_diff gate_compare(const float *a, const float *b, size_t n, size_t n_vocab);

/* A temporary folder; removed with all in it. */
int gate_temp_dir(char **out, fl_err *err);
void gate_temp_remove(char *dir);
/* Reads --docs; FL_EUSAGE when there is none. */
int gate_sources(fl_source_list *out, const gate_run *g, fl_err *err);

#endif
