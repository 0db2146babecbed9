/* cmd_export.c - export: a model in another weight type, a cartridge for another program, a fleet
 * as one file. */
#include "base/fs.h"
#include "commands/command.h"
#include "cli/output_guard.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "convert/convert.h"

typedef struct export_args {
  common_args common;
  const char *out, *model;
  int to;               /* index in the choices of --to */
  int kv;               /* llama-state: 0: f16, 1: f32 */
  size_t state_version; /* llama-state: 3 or 4 */
  bool force;
} export_args;

enum { LLAMA_STATE = 4, TORCH, ARCHIVE };
static const char *const kinds[] = { "f32",         "f16",   "bf16",    "q8_0",
                                     "llama-state", "torch", "archive", NULL };
static const char *const kv_names[] = { "f16", "f32", NULL };

static const opt_spec specs[] = { { .name = "to",
                                    .type = OPT_CHOICE,
                                    .meta = "KIND",
                                    .choices = kinds,
                                    .offset = offsetof(export_args, to),
                                    .help = "what to write; a must" },
                                  { .name = "out",
                                    .letter = 'o',
                                    .type = OPT_TEXT,
                                    .meta = "FILE",
                                    .offset = offsetof(export_args, out),
                                    .help = "where to write it" },
                                  { .name = "model",
                                    .letter = 'm',
                                    .type = OPT_TEXT,
                                    .meta = "FILE",
                                    .offset = offsetof(export_args, model),
                                    .help = "the model, a GGUF file" },
                                  { .name = "kv",
                                    .type = OPT_CHOICE,
                                    .meta = "TYPE",
                                    .choices = kv_names,
                                    .offset = offsetof(export_args, kv),
                                    .help = "llama-state: the server's cache type" },
                                  { .name = "state-version",
                                    .type = OPT_COUNT,
                                    .meta = "N",
                                    .min = 3,
                                    .max = 4,
                                    .offset = offsetof(export_args, state_version),
                                    .help =
                                        "llama-state: version of the state that the server reads" },
                                  { .name = "force",
                                    .letter = 'f',
                                    .type = OPT_ON,
                                    .offset = offsetof(export_args, force),
                                    .help = "replace a file of that name" },
                                  { 0 } };
static const opt_group groups[] = { { "Options", specs, 0 },
                                    { "Common options", common_json_options, 0 },
                                    { 0 } };

static void init(void *args) {
  export_args *a = args;
  a->state_version = 4;
}

static int check(const opt_parsed *p, const export_args *a, fl_err *err) {
  if (!options_given(p, "to")) return fl_fail(err, FL_EUSAGE, "--to KIND is needed");
  if (!a->out || !*a->out) return fl_fail(err, FL_EUSAGE, "--out FILE is needed");
  if (a->to == ARCHIVE && a->model)
    return fl_fail(err, FL_EUSAGE, "--model does not belong to --to archive");
  if (a->to != ARCHIVE && !a->model) return fl_fail(err, FL_EUSAGE, "--model FILE is needed");
  if (a->to < LLAMA_STATE && p->n_operands > 0)
    return fl_fail(err, FL_EUSAGE, "%s: a model is exported by --model alone", p->operand[0]);
  if (a->to >= LLAMA_STATE && p->n_operands == 0)
    return fl_fail(err, FL_EUSAGE, "--to %s: the %s is needed as well", kinds[a->to],
                   a->to == ARCHIVE ? "fleet's folder" : "cartridge's file");
  if (a->to != LLAMA_STATE && options_given(p, "kv"))
    return fl_fail(err, FL_EUSAGE, "--kv belongs to --to llama-state");
  if (a->to != LLAMA_STATE && options_given(p, "state-version"))
    return fl_fail(err, FL_EUSAGE, "--state-version belongs to --to llama-state");
  if (!a->force && fl_fs_exists(a->out))
    return fl_fail(err, FL_EUSAGE, "--out %s: exists; give another name or --force", a->out);
  const char *source = p->n_operands == 1 ? p->operand[0] : NULL;
  int rc = output_apart("--out", a->out, a->model, "the model", err);
  if (rc == FL_OK) rc = output_apart("--out", a->out, source, "the cartridge", err);
  if (rc == FL_OK && a->to == ARCHIVE) rc = output_outside("--out", a->out, source, err);
  return rc == FL_OK ? fl_fs_check_replaceable(a->out, err) : rc;
}

static int convert(fl_json *out, const export_args *a, const convert_job *job, fl_err *err) {
  const convert_state_options state = { .half = a->kv == 0, .version = (uint32_t)a->state_version };
  switch (a->to) {
  case ARCHIVE: return convert_archive_write(out, job, err);
  case LLAMA_STATE: return convert_state(out, job, &state, err);
  case TORCH: return convert_torch_write(out, job, err);
  default: return convert_model(out, job, kinds[a->to], err);
  }
}

static int run(const opt_parsed *p, fl_err *err) {
  const export_args *a = p->args;
  const convert_job job = { .source = p->n_operands == 1 ? p->operand[0] : NULL,
                            .model = a->model,
                            .out = a->out,
                            .poll = signals_poll };
  int rc = check(p, a, err);
  if (rc != FL_OK) return rc;
  fl_json *out = fl_json_object();
  if (!out) return fl_fail(err, FL_ENOMEM, "not enough memory");
  signals_catch();
  rc = convert(out, a, &job, err);
  if (rc == FL_OK && (!a->common.quiet || a->common.json))
    rc = report_print(out, a->common.json, err);
  fl_json_free(out);
  return rc;
}

const command cmd_export = { .name = "export",
                             .operands = "[CARTRIDGE|FLEET]",
                             .summary = "Writes a model in another weight type, a cartridge for "
                                        "llama.cpp or torch, a fleet as one file",
                             .max_operands = 1,
                             .groups = groups,
                             .args_size = sizeof(export_args),
                             .init = init,
                             .run = run };
