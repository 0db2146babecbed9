/* cmd_import.c - import: an archive of a fleet becomes a fleet's folder, a file of torch.save a
 * cartridge. */
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "commands/command.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "convert/convert.h"

typedef struct import_args {
  common_args common;
  const char *out, *model;
} import_args;

static const opt_spec specs[] = { { .name = "out",
                                    .letter = 'o',
                                    .type = OPT_TEXT,
                                    .meta = "NAME",
                                    .offset = offsetof(import_args, out),
                                    .help = "the fleet's folder or cartridge's file to make" },
                                  { .name = "model",
                                    .letter = 'm',
                                    .type = OPT_TEXT,
                                    .meta = "FILE",
                                    .offset = offsetof(import_args, model),
                                    .help = "for a file of torch.save: its model, a GGUF file" },
                                  { 0 } };
static const opt_group groups[] = { { "Options", specs, 0 },
                                    { "Common options", common_json_options, 0 },
                                    { 0 } };

/* Begins as zip files do. */
static bool is_zip(const char *path) {
  char head[4] = "";
  FILE *f = fopen(path, "rb");
  const bool zip = f && fread(head, 1, 4, f) == 4 && memcmp(head, "PK\3\4", 4) == 0;
  if (f) fclose(f);
  return zip;
}

static int run(const opt_parsed *p, fl_err *err) {
  const import_args *a = p->args;
  const bool torch = is_zip(p->operand[0]);
  if (!a->out || !*a->out) return fl_fail(err, FL_EUSAGE, "--out NAME is needed");
  if (fl_fs_exists(a->out))
    return fl_fail(err, FL_EUSAGE, "--out %s: exists; give another name", a->out);
  if (torch && !a->model)
    return fl_fail(err, FL_EUSAGE, "--model FILE is needed for a file of torch.save");
  if (!torch && a->model)
    return fl_fail(err, FL_EUSAGE, "--model: %s is no file of torch.save; leave it out",
                   p->operand[0]);
  fl_json *out = fl_json_object();
  if (!out) return fl_fail(err, FL_ENOMEM, "not enough memory");
  signals_catch();
  const convert_job job = {
    .source = p->operand[0], .model = a->model, .out = a->out, .poll = signals_poll
  };
  int rc = torch ? convert_torch_read(out, &job, err) : convert_archive_read(out, &job, err);
  if (rc == FL_OK && (!a->common.quiet || a->common.json))
    rc = report_print(out, a->common.json, err);
  fl_json_free(out);
  return rc;
}

const command cmd_import = { .name = "import",
                             .operands = "FILE",
                             .summary = "Makes a fleet's folder from an archive of it, or a "
                                        "cartridge from a checkpoint of torch",
                             .min_operands = 1,
                             .max_operands = 1,
                             .groups = groups,
                             .args_size = sizeof(import_args),
                             .run = run };
