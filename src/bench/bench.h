/* bench.h - measurements of the engine: each part adds figures; bench.c has the table of parts.
 *
 * A part runs ours and the peer's in turns within one run and keeps the best of each, so that a
 * busy moment of the machine spoils neither more than the other. What is held against the machine's
 * own peak is measured in turns with it, piece by piece (bench_turns). Inputs are pseudo-random:
 * what the model says plays no role.
 */
#ifndef FL_BENCH_BENCH_H
#define FL_BENCH_BENCH_H

#include "base/json.h"
#include "kernels/peak.h"
#include "model/kv.h"
#include "model/model.h"
#include "model/pass.h"

typedef struct bench_options {
  const char *const *peers; /* [n_peers] of bench_peers */
  size_t n_peers;
  size_t reps;                          /* 1..BENCH_REPS_MAX */
  size_t doc_rows;                      /* first-token: tokens of the document */
  bool checkpoint;                      /* step */
  const char *llama_bench, *torch_step; /* the peers' program and script */
} bench_options;

enum { BENCH_REPS_MAX = 100 };
extern const char *const bench_peers[]; /* NULL-terminated */

typedef struct bench_figure bench_figure;
typedef struct bench {
  const bench_options *opt;
  const char *model_path;
  fl_team *team;
  fl_model *model;
  const fl_hparams *hp;
  /* Told of each figure as it is found; ratio: how much better than the peer, 0: unknown. */
  void (*told)(void *ctx, const bench_figure *f, double ratio);
  void *ctx;
  fl_json *rows;            /* the figures so far */
  fl_meter *compute, *read; /* the machine, on all threads */
} bench;

/* One figure. `unit` "s..." is a time, where less is better; anything else a rate. */
struct bench_figure {
  const char *part, *unit;
  char what[64];
  double value;
  double share;     /* of the machine's peak; 0: says nothing */
  const char *peer; /* NULL: none was asked for */
  double peer_value;
};

/* Tells of the figure and keeps it for the result. */
void bench_add(bench *b, const bench_figure *f);
bool bench_has_peer(const bench *b, const char *name);

/* Repetitions of a piece of work, or of several, each followed by the machine for as long. */
typedef struct bench_turns {
  fl_meter *meter;
  double ours, peak, amount;    /* of this repetition: seconds of each, and the machine's work */
  double best;                  /* seconds of ours, of the best repetition; 0: none yet */
  double share[BENCH_REPS_MAX]; /* per repetition, of the machine's speed */
  size_t n;
} bench_turns;

/* A piece took ours seconds: the machine's turn. */
void bench_turn(bench_turns *t, double ours);
/* The repetition's pieces came to so many operations, or bytes. */
void bench_turns_end(bench_turns *t, double amount);
/* The median of the repetitions. */
double bench_turns_share(bench_turns *t);

typedef struct bench_part {
  const char *name;
  int (*run)(bench *b, fl_err *err);
} bench_part;
extern const bench_part bench_parts[]; /* ends with a NULL name; the first is always run */
const bench_part *bench_find(const char *name);

/* machine.c */
int bench_peaks(bench *b, fl_err *err);     /* opens `compute` too */
int bench_read_open(bench *b, fl_err *err); /* `read`, which holds 256 MiB, for who needs it */
void bench_meters_close(bench *b);
fl_json *bench_machine_json(const bench *b);
/* products.c */
int bench_products(bench *b, fl_err *err);
/* How long 1e9 operations of both products take at 512 rows with weights of a type (of f16 in
 * place of one that we cannot write), now: a look of half a second. */
typedef struct bench_speed bench_speed;
typedef struct bench_pace {
  double y, dx;
} bench_pace; /* seconds */
int bench_speed_open(bench_speed **out, bench *b, const char *type, fl_err *err);
void bench_speed_close(bench_speed *s);
bench_pace bench_speed_now(bench_speed *s);
/* decode.c */
int bench_prefill(bench *b, fl_err *err);
int bench_decode(bench *b, fl_err *err);
int bench_index(bench *b, fl_err *err);
int bench_first_token(bench *b, fl_err *err);
/* train.c */
int bench_study(bench *b, fl_err *err);
int bench_step(bench *b, fl_err *err);
int bench_contention(bench *b, fl_err *err);
/* peer.c */
int bench_memory(bench *b, fl_err *err); /* peaks of this program in child processes */
/* Tokens a second of llama-bench on the same file and threads: n_prompt tokens of prefill, or
 * n_gen of decoding. */
int bench_llama(const bench *b, size_t n_prompt, size_t n_gen, double *out, fl_err *err);
/* Seconds of the same student step by torch, in f32 or bf16. */
typedef struct bench_shape {
  size_t rows, prefix, n_sup, n_convs;
} bench_shape;
int bench_torch(const bench *b, const bench_shape *s, const char *type, double *out, fl_err *err);

/* out[n] = pseudo-random token ids. */
void bench_tokens(const bench *b, int32_t *out, size_t n);
/* Multiply-adds of one row through all layers, and of one row of the head. */
double bench_layer_macs(const bench *b);
/* What of the layers' a silent row is spared (pass.h), forward or backward. */
double bench_spared_macs(const bench *b, bool backward);
double bench_head_macs(const bench *b);

#endif
