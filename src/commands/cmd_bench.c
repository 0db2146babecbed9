/* cmd_bench.c - bench: what the engine reaches on this machine, beside the machine's own limits and
 * beside other programs. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "bench/bench.h"
#include "commands/command.h"
#include "cli/output_guard.h"
#include "cli/report.h"
#include "commands/runtime.h"
#include "cli/signals.h"

typedef struct bench_args {
  common_args common;
  engine_args engine;
  opt_list only, peer;
  bench_options bench; /* options are read into it; the peers are set from the above */
  const char *out, *note;
} bench_args;

static const opt_spec specs[] = {
  { .name = "only",
    .type = OPT_LIST,
    .meta = "PART",
    .offset = offsetof(bench_args, only),
    .help = "this part alone; repeatable" },
  { .name = "peer",
    .type = OPT_LIST,
    .meta = "NAME",
    .offset = offsetof(bench_args, peer),
    .help = "compare with llama.cpp, torch, openblas or blis; repeatable" },
  { .name = "reps",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 1,
    .max = BENCH_REPS_MAX,
    .offset = offsetof(bench_args, bench.reps),
    .help = "repetitions, of which the best counts" },
  { .name = "document",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 512,
    .max = 1000000,
    .offset = offsetof(bench_args, bench.doc_rows),
    .help = "first-token: tokens of the document" },
  { .name = "checkpoint",
    .type = OPT_ON,
    .offset = offsetof(bench_args, bench.checkpoint),
    .help = "step: keep only the layers' inputs" },
  { .name = "llama-bench",
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(bench_args, bench.llama_bench),
    .help = "llama.cpp's program" },
  { .name = "torch-step",
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(bench_args, bench.torch_step),
    .help = "the script that torch runs" },
  { .name = "out",
    .letter = 'o',
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(bench_args, out),
    .help = "write the result as JSON here too" },
  { .name = "note",
    .type = OPT_TEXT,
    .meta = "TEXT",
    .offset = offsetof(bench_args, note),
    .help = "the circumstances, kept in the result" },
  { 0 }
};
static const opt_group groups[] = { { "Options", specs, 0 },
                                    { "Model", engine_options, offsetof(bench_args, engine) },
                                    { "Common options", common_json_options, 0 },
                                    { 0 } };

static void init(void *args) {
  bench_args *a = args;
  a->bench.reps = 3;
  a->bench.doc_rows = 8000;
  a->bench.llama_bench = "llama-bench";
  a->bench.torch_step = FL_PKGDATADIR "/torch_step.py";
}

static void told(void *ctx, const bench_figure *f, double ratio) {
  const bench_args *a = ctx;
  if (a->common.json) return;
  printf("%-11s  %-34s %10.4g %-14s", f->part, f->what, f->value, f->unit);
  if (f->share > 0) printf("  %.2f of peak", f->share);
  if (f->peer) printf("  %s %.4g, ratio %.2f", f->peer, f->peer_value, ratio);
  putchar('\n');
  fflush(stdout);
}

static int check_names(const bench_args *a, fl_err *err) {
  for (size_t i = 0; i < a->only.n; i++) {
    if (!bench_find(a->only.v[i]))
      return fl_fail(err, FL_EUSAGE, "--only %s: no such part; flotilla-bench(1) names them",
                     a->only.v[i]);
  }
  for (size_t i = 0; i < a->peer.n; i++) {
    const char *const *p = bench_peers;
    while (*p && strcmp(*p, a->peer.v[i]) != 0) p++;
    if (!*p)
      return fl_fail(err, FL_EUSAGE, "--peer %s: give llama.cpp, torch, openblas or blis",
                     a->peer.v[i]);
  }
  return FL_OK;
}

static fl_json *result_of(bench *b, const bench_args *a) {
  fl_json *out = fl_json_object();
  fl_json_set_str(out, "program", PACKAGE_STRING);
  fl_json_set_str(out, "model", b->model_path);
  fl_json_set_str(out, "model_hash", fl_model_hash(b->model));
  fl_json_set(out, "machine", bench_machine_json(b));
  if (a->note) fl_json_set_str(out, "note", a->note);
  fl_json_set(out, "figures", b->rows);
  b->rows = NULL;
  return out;
}

static int put_result(bench *b, const bench_args *a, fl_err *err) {
  fl_buf text = { 0 };
  fl_json *out = result_of(b, a);
  int rc = a->common.json ? report_print(out, true, err) : FL_OK;
  fl_json_print(&text, out, true);
  fl_buf_puts(&text, "\n");
  if (rc == FL_OK && text.oom) rc = fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK && a->out) rc = fl_fs_replace(a->out, text.data, text.len, err);
  fl_buf_release(&text);
  fl_json_free(out);
  return rc;
}

static int run_parts(bench *b, const bench_args *a, fl_err *err) {
  int rc = bench_parts[0].run(b, err);
  for (const bench_part *q = bench_parts + 1; q->name && rc == FL_OK; q++) {
    if (a->only.n > 0 && !opt_list_has(&a->only, q->name)) continue;
    if (signals_poll(NULL) != FL_OK) rc = fl_fail(err, FL_EINTR, "stopped");
    else rc = q->run(b, err);
  }
  return rc == FL_OK ? put_result(b, a, err) : rc;
}

static int run(const opt_parsed *p, fl_err *err) {
  bench_args *a = p->args;
  engine e = { 0 };
  if (p->n_operands > 0) a->engine.model = p->operand[0];
  int rc = check_names(a, err);
  if (rc == FL_OK && !a->engine.model)
    rc = fl_fail(err, FL_EUSAGE, "a model is needed: flotilla bench FILE.gguf");
  if (rc == FL_OK) rc = output_apart("--out", a->out, a->engine.model, "the model", err);
  if (rc != FL_OK) return rc;
  signals_catch();
  rc = engine_open(&e, &a->engine, NULL, err);
  if (rc != FL_OK) return rc;
  a->bench.peers = a->peer.v;
  a->bench.n_peers = a->peer.n;
  bench b = { .opt = &a->bench,
              .model_path = a->engine.model,
              .team = e.team,
              .model = e.model,
              .hp = fl_model_hparams(e.model),
              .told = told,
              .ctx = a,
              .rows = fl_json_array() };
  rc = run_parts(&b, a, err);
  fl_json_free(b.rows);
  bench_meters_close(&b);
  engine_close(&e);
  return rc;
}

const command cmd_bench = { .name = "bench",
                            .operands = "MODEL",
                            .summary = "Measures the engine on this machine",
                            .max_operands = 1,
                            .groups = groups,
                            .args_size = sizeof(bench_args),
                            .init = init,
                            .run = run };
