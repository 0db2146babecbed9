/* cmd_gate.c - gate: runs one of the acceptance gates on any model and any documents. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "commands/gate.h"
#include "commands/report.h"
#include "commands/signals.h"
#include "commands/train_options.h"

static const gate *const gates[] = { &gate_equiv,  &gate_compose, &gate_batch, &gate_grad,
                                     &gate_logits, &gate_resume,  &gate_evict, NULL };
static const char *const kv_names[] = { "both", "f32", "f16", NULL };

static const opt_spec specs[] = {
  { .name = "kv",
    .type = OPT_CHOICE,
    .meta = "TYPE",
    .choices = kv_names,
    .offset = offsetof(gate_args, kv),
    .help = "cache types to run on" },
  { .name = "suffix",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 1,
    .max = 4096,
    .offset = offsetof(gate_args, suffix),
    .help = "equiv, compose, batch: rows compared" },
  { .name = "streams",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 2,
    .max = 64,
    .offset = offsetof(gate_args, streams),
    .help = "batch: sequences side by side" },
  { .name = "kills",
    .type = OPT_COUNT,
    .meta = "N",
    .min = 1,
    .max = 1000,
    .offset = offsetof(gate_args, kills),
    .help = "resume: times that the trainer is killed" },
  { .name = "ids",
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(gate_args, ids),
    .help = "logits: token ids as text, with white space between" },
  { .name = "ref",
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(gate_args, ref),
    .help = "logits: reference values, raw little-endian f32, rows x vocabulary" },
  { .name = "write",
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(gate_args, write),
    .help = "logits: write the logits as such a reference instead" },
  { .name = "envelope",
    .type = OPT_ON,
    .offset = offsetof(gate_args, envelope),
    .help = "equiv, compose: also how far the shapes of passes move the logits" },
  { .name = "tol",
    .type = OPT_REAL,
    .meta = "X",
    .min = 0,
    .max = 1e9,
    .offset = offsetof(gate_args, tol),
    .help = "grad, logits: largest difference that passes" },
  { 0 }
};
static const opt_group groups[] = {
  { "Documents", docs_specs, offsetof(gate_args, input) },
  { "Options", specs, 0 },
  { "Model", engine_options, offsetof(gate_args, engine) },
  { "Self-study (resume, evict; seed: every gate)", study_specs, offsetof(gate_args, train) },
  { "Training (resume, evict; p: every gate)", train_specs, offsetof(gate_args, train) },
  { "Common options", common_json_options, 0 },
  { 0 }
};

static void init(void *args) {
  gate_args *a = args;
  fl_train_options_default(&a->train);
  a->train.rounds = 6;
  a->train.accum = 2;
  a->train.save_every = 2;
  a->suffix = 64;
  a->kills = 3;
  a->streams = 5;
  a->tol = 0.02;
}

void gate_check(gate_run *g, bool pass, fl_json *figures, const char *fmt, ...) {
  char text[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  if (!pass) g->failed++;
  if (!g->args->common.json) {
    const char *on = pass ? "\033[32m" : "\033[1;31m", *off = "\033[0m";
    if (!report_colour(stdout)) on = off = "";
    printf("gate %s: %s: %s%s%s\n", g->name, text, on, pass ? "PASS" : "FAIL", off);
    fflush(stdout);
    fl_json_free(figures);
    return;
  }
  fl_json *row = figures ? figures : fl_json_object();
  fl_json_set_str(row, "text", text);
  fl_json_set_bool(row, "pass", pass);
  fl_json_push(g->checks, row);
}

static int unknown_gate(const char *name, fl_err *err) {
  fl_buf names = { 0 };
  for (const gate *const *g = gates; *g; g++)
    fl_buf_printf(&names, "%s%s", g == gates ? "" : ", ", (*g)->name);
  int rc = fl_fail(err, FL_EUSAGE, "%s: unknown gate; there are %s", name,
                   names.data ? names.data : "none");
  fl_buf_release(&names);
  return rc;
}

static int run(const opt_parsed *p, fl_err *err) {
  const gate_args *a = p->args;
  const gate *found = NULL;
  for (const gate *const *g = gates; *g; g++)
    if (strcmp((*g)->name, p->operand[0]) == 0) found = *g;
  if (!found) return unknown_gate(p->operand[0], err);
  if (!a->engine.model) return fl_fail(err, FL_EUSAGE, "--model FILE is needed");
  gate_run g = { .args = a, .name = found->name, .checks = fl_json_array() };
  signals_catch();
  int rc = found->run(&g, err);
  if (rc == FL_OK && a->common.json) {
    fl_json *out = fl_json_object();
    fl_json_set_str(out, "gate", g.name);
    fl_json_set_str(out, "model", a->engine.model);
    fl_json_set_bool(out, "pass", g.failed == 0);
    fl_json_set(out, "checks", g.checks);
    g.checks = NULL;
    rc = report_print(out, true, err);
    fl_json_free(out);
  }
  fl_json_free(g.checks);
  if (rc == FL_OK && g.failed > 0)
    rc = fl_fail(err, FL_EGATE, "gate %s: not met (%zu checks failed)", g.name, g.failed);
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
