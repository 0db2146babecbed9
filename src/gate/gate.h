/* gate.h - the acceptance gates: each states figures and verdicts. gate.c has the table of them;
 * the other files hold one each.
 *
 * A gate opens what it needs by itself: one of them trains in child processes and must have no
 * threads when it forks.
 */
#ifndef FL_GATE_GATE_H
#define FL_GATE_GATE_H

#include "base/json.h"
#include "fleet/fleet.h"
#include "model/pass.h"
#include "sources/source.h"

typedef enum gate_kv { GATE_KV_BOTH, GATE_KV_F32, GATE_KV_F16 } gate_kv;

typedef struct gate_options {
  const char *model; /* a GGUF file */
  unsigned threads;  /* 0: the cores available */
  fl_model_options how;
  fl_train_options train;  /* p and seed serve every gate, the rest those that train */
  const char *const *docs; /* [n_docs] paths */
  size_t n_docs;
  fl_source_options sources;
  int kv;                  /* gate_kv */
  size_t suffix;           /* equiv, compose, batch: rows compared */
  size_t kills;            /* resume */
  size_t streams;          /* batch: 2..GATE_STREAMS_MAX */
  bool envelope;           /* equiv, compose: other shapes of passes too */
  const char *ids;         /* logits: a file of ids */
  const char *ref, *write; /* logits: one of them */
  double tol;              /* grad, logits */
  int (*poll)(void *ctx);  /* other than FL_OK stops */
} gate_options;
enum { GATE_STREAMS_MAX = 64 };

/* Told of each check as it is made. figures: adopted, may be NULL. */
typedef void gate_told(void *ctx, bool pass, const char *text, fl_json *figures);

typedef struct gate_run {
  const gate_options *opt;
  gate_told *told;
  void *ctx;
  size_t failed; /* checks so far */
} gate_run;

typedef struct gate {
  const char *name, *summary;
  int (*run)(gate_run *g, fl_err *err);
} gate;
extern const gate gate_equiv, gate_compose, gate_resume, gate_evict, gate_batch, gate_grad,
    gate_logits;
extern const gate *const gates[]; /* NULL-terminated */
/* NULL where there is none of that name; FL_EUSAGE then names those that there are. */
const gate *gate_find(const char *name, fl_err *err);

/* States one check. figures: adopted, may be NULL. */
void gate_check(gate_run *g, bool pass, fl_json *figures, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* What the numeric gates begin with. */
typedef struct gate_model {
  fl_team *team;
  fl_model *model;
  fl_pass *pass; /* NULL where none was asked for */
} gate_model;
int gate_model_open(gate_model *out, const gate_run *g, const fl_pass_options *pass, fl_err *err);
void gate_model_close(gate_model *m);

/* The raw ids of all documents in a row, at least `need` of them (else FL_EUSAGE). */
int gate_ids(fl_ids *out, const gate_run *g, const fl_model *m, size_t need, fl_err *err);
/* Appends ids[0..n) to seq so that the last `keep` rows are those of one forward; their numbers
 * begin at *first. */
int gate_prefill(fl_pass *p, fl_seq *seq, const int32_t *ids, size_t n, size_t keep, size_t *first,
                 fl_err *err);
/* The cache types that --kv asks for; returns their number. */
size_t gate_kv_types(const gate_options *a, fl_kv_type out[2]);
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
