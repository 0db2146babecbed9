/* cmd_bench.c - bench: what the engine reaches on this machine, beside the machine's own limits and
 * beside other programs. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "commands/bench.h"
#include "commands/output_guard.h"
#include "commands/report.h"
#include "commands/signals.h"

static const bench_part parts[] = { { "peaks", bench_peaks },
                                    { "products", bench_products },
                                    { "prefill", bench_prefill },
                                    { "decode", bench_decode },
                                    { "study", bench_study },
                                    { "step", bench_step },
                                    { "memory", bench_memory },
                                    { "index", bench_index },
                                    { "contention", bench_contention },
                                    { "first-token", bench_first_token },
                                    { NULL, NULL } };
static const char *const peers[] = { "llama.cpp", "torch", "openblas", "blis", NULL };

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
    .offset = offsetof(bench_args, reps),
    .help = "repetitions, of which the best counts" },
  { .name = "document",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 512,
    .max = 1000000,
    .offset = offsetof(bench_args, doc_rows),
    .help = "first-token: tokens of the document" },
  { .name = "checkpoint",
    .type = OPT_ON,
    .offset = offsetof(bench_args, checkpoint),
    .help = "step: keep only the layers' inputs" },
  { .name = "llama-bench",
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(bench_args, llama_bench),
    .help = "llama.cpp's program" },
  { .name = "torch-step",
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(bench_args, torch_step),
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
  a->reps = 3;
  a->doc_rows = 8000;
  a->llama_bench = "llama-bench";
  a->torch_step = FL_PKGDATADIR "/torch_step.py";
}

bool bench_has_peer(const bench *b, const char *name) { return opt_list_has(&b->args->peer, name); }

static double ratio_of(const bench_figure *f) {
  if (f->value <= 0 || f->peer_value <= 0) return 0;
  return f->unit[0] == 's' ? f->peer_value / f->value : f->value / f->peer_value;
}

void bench_add(bench *b, const bench_figure *f) {
  fl_json *row = fl_json_object();
  fl_json_set_str(row, "part", f->part);
  fl_json_set_str(row, "what", f->what);
  fl_json_set_num(row, "value", f->value);
  fl_json_set_str(row, "unit", f->unit);
  if (f->share > 0) fl_json_set_num(row, "of_peak", f->share);
  if (f->peer) {
    fl_json_set_str(row, "peer", f->peer);
    fl_json_set_num(row, "peer_value", f->peer_value);
    fl_json_set_num(row, "ratio", ratio_of(f));
  }
  fl_json_push(b->rows, row);
  if (b->args->common.json) return;
  printf("%-11s  %-34s %10.4g %-14s", f->part, f->what, f->value, f->unit);
  if (f->share > 0) printf("  %.2f of peak", f->share);
  if (f->peer) printf("  %s %.4g, ratio %.2f", f->peer, f->peer_value, ratio_of(f));
  putchar('\n');
  fflush(stdout);
}

void bench_tokens(const bench *b, int32_t *out, size_t n) {
  uint32_t s = 1;
  for (size_t i = 0; i < n; i++) {
    s = s * 1664525u + 1013904223u;
    out[i] = (int32_t)((s >> 8) % b->hp->n_vocab);
  }
}

/* q, then k and v, of layer i. */
static double q_macs(const fl_hparams *hp, size_t i) {
  return (double)hp->d_model * (double)(hp->layer[i].n_heads * hp->layer[i].head_dim);
}

static double kv_macs(const fl_hparams *hp, size_t i) {
  const fl_layer_hparams *l = &hp->layer[i];
  if (l->kv_from != (int32_t)i) return 0;
  return 2 * (double)hp->d_model * (double)(l->kv_heads * l->head_dim);
}

static double layer_macs(const fl_hparams *hp, size_t i) {
  const size_t ff = hp->layer[i].n_ff, expert = hp->n_experts_used * hp->n_ff_expert;
  return 2 * q_macs(hp, i) + kv_macs(hp, i) +
         3 * (double)hp->d_model * (double)(ff + (hp->n_experts > 0 ? expert : 0));
}

double bench_layer_macs(const bench *b) {
  double sum = 0;
  for (size_t i = 0; i < b->hp->n_layers; i++) sum += layer_macs(b->hp, i);
  return sum;
}

/* The last layer with K/V rows gives its K and V, and its backward takes q, k and v through one
 * product; the layers behind it are not run. */
double bench_spared_macs(const bench *b, bool backward) {
  const size_t cut = fl_last_kv_layer(b->hp);
  double sum = -kv_macs(b->hp, cut) - (backward ? q_macs(b->hp, cut) : 0);
  for (size_t i = cut; i < b->hp->n_layers; i++) sum += layer_macs(b->hp, i);
  return sum;
}

double bench_head_macs(const bench *b) { return (double)b->hp->d_model * (double)b->hp->n_vocab; }

static int check_names(const bench_args *a, fl_err *err) {
  for (size_t i = 0; i < a->only.n; i++) {
    const bench_part *p = parts;
    while (p->name && strcmp(p->name, a->only.v[i]) != 0) p++;
    if (!p->name)
      return fl_fail(err, FL_EUSAGE, "--only %s: no such part; flotilla-bench(1) names them",
                     a->only.v[i]);
  }
  for (size_t i = 0; i < a->peer.n; i++) {
    const char *const *p = peers;
    while (*p && strcmp(*p, a->peer.v[i]) != 0) p++;
    if (!*p)
      return fl_fail(err, FL_EUSAGE, "--peer %s: give llama.cpp, torch, openblas or blis",
                     a->peer.v[i]);
  }
  return FL_OK;
}

static fl_json *result_of(bench *b) {
  fl_json *out = fl_json_object();
  fl_json_set_str(out, "program", PACKAGE_STRING);
  fl_json_set_str(out, "model", b->args->engine.model);
  fl_json_set_str(out, "model_hash", fl_model_hash(b->engine.model));
  fl_json_set(out, "machine", bench_machine_json(b));
  if (b->args->note) fl_json_set_str(out, "note", b->args->note);
  fl_json_set(out, "figures", b->rows);
  b->rows = NULL;
  return out;
}

static int put_result(bench *b, fl_err *err) {
  fl_buf text = { 0 };
  fl_json *out = result_of(b);
  int rc = b->args->common.json ? report_print(out, true, err) : FL_OK;
  fl_json_print(&text, out, true);
  fl_buf_puts(&text, "\n");
  if (rc == FL_OK && text.oom) rc = fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK && b->args->out) rc = fl_fs_replace(b->args->out, text.data, text.len, err);
  fl_buf_release(&text);
  fl_json_free(out);
  return rc;
}

static int run(const opt_parsed *p, fl_err *err) {
  bench_args *a = p->args;
  if (p->n_operands > 0) a->engine.model = p->operand[0];
  int rc = check_names(a, err);
  if (rc == FL_OK && !a->engine.model)
    rc = fl_fail(err, FL_EUSAGE, "a model is needed: flotilla bench FILE.gguf");
  if (rc == FL_OK) rc = output_apart("--out", a->out, a->engine.model, "the model", err);
  if (rc != FL_OK) return rc;
  bench b = { .args = a, .rows = fl_json_array() };
  signals_catch();
  rc = engine_open(&b.engine, &a->engine, NULL, err);
  if (rc == FL_OK) b.hp = fl_model_hparams(b.engine.model);
  if (rc == FL_OK) rc = bench_peaks(&b, err);
  for (const bench_part *q = parts + 1; q->name && rc == FL_OK; q++) {
    if (a->only.n > 0 && !opt_list_has(&a->only, q->name)) continue;
    if (signals_poll(NULL) != FL_OK) rc = fl_fail(err, FL_EINTR, "stopped");
    else rc = q->run(&b, err);
  }
  if (rc == FL_OK) rc = put_result(&b, err);
  fl_json_free(b.rows);
  bench_meters_close(&b);
  engine_close(&b.engine);
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
