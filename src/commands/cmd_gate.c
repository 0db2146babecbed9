/* cmd_gate.c - gate: runs one of the acceptance gates on any model and any documents. */
#include <stdio.h>

#include "commands/command.h"
#include "commands/docs.h"
#include "cli/output_guard.h"
#include "cli/report.h"
#include "commands/runtime.h"
#include "cli/signals.h"
#include "commands/train_options.h"
#include "gate/gate.h"

typedef struct gate_args {
  common_args common;
  engine_args engine;
  docs_args input;
  gate_options gate; /* options are read into it; the rest is set from the above */
} gate_args;

static const char *const kv_names[] = { "both", "f32", "f16", NULL };

static const opt_spec specs[] = {
  { .name = "kv",
    .type = OPT_CHOICE,
    .meta = "TYPE",
    .choices = kv_names,
    .offset = offsetof(gate_args, gate.kv),
    .help = "cache types to run on" },
  { .name = "suffix",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 1,
    .max = 4096,
    .offset = offsetof(gate_args, gate.suffix),
    .help = "equiv, compose, batch: rows compared" },
  { .name = "streams",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 2,
    .max = GATE_STREAMS_MAX,
    .offset = offsetof(gate_args, gate.streams),
    .help = "batch: sequences side by side" },
  { .name = "kills",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 1,
    .max = 1000,
    .offset = offsetof(gate_args, gate.kills),
    .help = "resume: times that the trainer is killed" },
  { .name = "ids",
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(gate_args, gate.ids),
    .help = "logits: token ids as text, with white space between" },
  { .name = "ref",
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(gate_args, gate.ref),
    .help = "logits: reference values, raw little-endian f32, rows x vocabulary" },
  { .name = "write",
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(gate_args, gate.write),
    .help = "logits: write the logits as such a reference instead" },
  { .name = "envelope",
    .type = OPT_ON,
    .offset = offsetof(gate_args, gate.envelope),
    .help = "equiv, compose: also how far the shapes of passes move the logits" },
  { .name = "tol",
    .type = OPT_REAL,
    .meta = "X",
    .min = 0,
    .max = 1e9,
    .offset = offsetof(gate_args, gate.tol),
    .help = "grad, logits: largest difference that passes" },
  { 0 }
};
static const opt_group groups[] = {
  { "Documents", docs_specs, offsetof(gate_args, input) },
  { "Options", specs, 0 },
  { "Model", engine_options, offsetof(gate_args, engine) },
  { "Self-study (resume, evict; seed: every gate)", study_specs, offsetof(gate_args, gate.train) },
  { "Training (resume, evict; p: every gate)", train_specs, offsetof(gate_args, gate.train) },
  { "Common options", common_json_options, 0 },
  { 0 }
};

static void init(void *args) {
  gate_options *a = &((gate_args *)args)->gate;
  fl_train_options_default(&a->train);
  a->train.rounds = 6;
  a->train.accum = 2;
  a->train.save_every = 2;
  a->suffix = 64;
  a->kills = 3;
  a->streams = 5;
  a->tol = 0.02;
}

typedef struct report { /* where the checks go */
  bool json;
  const char *gate;
  fl_json *checks; /* rows of the JSON result */
} report;

/* A line on stdout, or a row of the JSON result. */
static void told(void *ctx, bool pass, const char *text, fl_json *figures) {
  report *r = ctx;
  if (!r->json) {
    const char *on = pass ? "\033[32m" : "\033[1;31m", *off = "\033[0m";
    if (!report_colour(stdout)) on = off = "";
    printf("gate %s: %s: %s%s%s\n", r->gate, text, on, pass ? "PASS" : "FAIL", off);
    fflush(stdout);
    fl_json_free(figures);
    return;
  }
  fl_json *row = figures ? figures : fl_json_object();
  fl_json_set_str(row, "text", text);
  fl_json_set_bool(row, "pass", pass);
  fl_json_push(r->checks, row);
}

static int print_result(report *r, const gate_run *g, fl_err *err) {
  fl_json *out = fl_json_object();
  fl_json_set_str(out, "gate", r->gate);
  fl_json_set_str(out, "model", g->opt->model);
  fl_json_set_bool(out, "pass", g->failed == 0);
  fl_json_set(out, "checks", r->checks);
  r->checks = NULL;
  int rc = report_print(out, true, err);
  fl_json_free(out);
  return rc;
}

/* What needs no model is refused before one is read. */
static int complete(gate_options *o, const gate_args *a, const gate *found, fl_err *err) {
  if (!a->engine.model) return fl_fail(err, FL_EUSAGE, "--model FILE is needed");
  if (found == &gate_logits && (!o->ids || (o->ref != NULL) == (o->write != NULL)))
    return fl_fail(err, FL_EUSAGE, "--ids FILE is needed, and --ref FILE or --write FILE");
  int rc = output_apart("--write", o->write, o->ids, "the ids' file", err);
  if (rc == FL_OK) rc = output_apart("--write", o->write, a->engine.model, "the model", err);
  if (rc == FL_OK) rc = engine_model_options(&o->how, &a->engine, NULL, err);
  o->model = a->engine.model;
  o->threads = (unsigned)a->engine.threads;
  o->docs = a->input.docs.v;
  o->n_docs = a->input.docs.n;
  o->sources = docs_options(&a->input);
  o->poll = signals_poll;
  return rc;
}

static int run(const opt_parsed *p, fl_err *err) {
  gate_args *a = p->args;
  const gate *found = gate_find(p->operand[0], err);
  if (!found) return FL_EUSAGE;
  int rc = complete(&a->gate, a, found, err);
  if (rc != FL_OK) return rc;
  report r = { .json = a->common.json, .gate = found->name, .checks = fl_json_array() };
  gate_run g = { .opt = &a->gate, .told = told, .ctx = &r };
  signals_catch();
  rc = found->run(&g, err);
  if (rc == FL_OK && r.json) rc = print_result(&r, &g, err);
  fl_json_free(r.checks);
  if (rc == FL_OK && g.failed > 0)
    rc = fl_fail(err, FL_EGATE, "gate %s: not met (%zu checks failed)", found->name, g.failed);
  return rc;
}

const command cmd_gate = { .name = "gate",
                           .operands = "equiv|compose|batch|grad|logits|resume|evict",
                           .summary = "Runs an acceptance gate on a model and documents",
                           .min_operands = 1,
                           .max_operands = 1,
                           .groups = groups,
                           .args_size = sizeof(gate_args),
                           .init = init,
                           .run = run };
