/* cmd_export.c - export: a model in another weight type. */
#include "commands/export.h"

#include "base/fs.h"
#include "commands/report.h"
#include "commands/signals.h"

static const char *const kinds[] = { "f32", "f16", "bf16", "q8_0", NULL };

static const opt_spec specs[] = {
  { .name = "to", .type = OPT_CHOICE, .meta = "KIND", .choices = kinds,
    .offset = offsetof(export_args, to), .help = "what to write; a must" },
  { .name = "out", .letter = 'o', .type = OPT_TEXT, .meta = "FILE",
    .offset = offsetof(export_args, out), .help = "where to write it" },
  { .name = "model", .letter = 'm', .type = OPT_TEXT, .meta = "FILE",
    .offset = offsetof(export_args, engine.model), .help = "the model, a GGUF file" },
  { .name = "force", .letter = 'f', .type = OPT_ON, .offset = offsetof(export_args, force),
    .help = "replace a file of that name" },
  { 0 }
};
static const opt_group groups[] = { { "Options", specs, 0 },
                                    { "Common options", common_json_options, 0 },
                                    { 0 } };

static int run(const opt_parsed *p, fl_err *err) {
  export_args *a = p->args;
  if (!options_given(p, "to")) return fl_fail(err, FL_EUSAGE, "--to KIND is needed");
  if (!a->out || !*a->out) return fl_fail(err, FL_EUSAGE, "--out FILE is needed");
  if (!a->engine.model) return fl_fail(err, FL_EUSAGE, "--model FILE is needed");
  if (!a->force && fl_fs_exists(a->out))
    return fl_fail(err, FL_EUSAGE, "--out %s: exists; give another name or --force", a->out);
  fl_json *out = fl_json_object();
  if (!out) return fl_fail(err, FL_ENOMEM, "not enough memory");
  signals_catch();
  int rc = export_model(out, a, kinds[a->to], err);
  if (rc == FL_OK && (!a->common.quiet || a->common.json))
    rc = report_print(out, a->common.json, err);
  fl_json_free(out);
  return rc;
}

const command cmd_export = { .name = "export",
                             .operands = "",
                             .summary = "Writes a model in another weight type",
                             .groups = groups,
                             .args_size = sizeof(export_args),
                             .run = run };
