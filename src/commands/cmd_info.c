/* cmd_info.c - info: recognises a file or folder by its content and describes it. */
#include <string.h>

#include "base/fs.h"
#include "commands/command.h"
#include "commands/info.h"
#include "commands/report.h"

typedef struct info_args {
  common_args common;
  info_tokenize tokenize;
} info_args;

static const opt_spec specs[] = {
  { .name = "tokenize",
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(info_args, tokenize.file),
    .help = "print the token ids of a text file; - is standard input" },
  { .name = "special",
    .type = OPT_ON,
    .offset = offsetof(info_args, tokenize.special),
    .help = "with --tokenize: markers in the text become control tokens" },
  { .name = "bos",
    .type = OPT_ON,
    .offset = offsetof(info_args, tokenize.bos),
    .help = "with --tokenize: the beginning token first, where the model has that policy" },
  { 0 }
};
static const opt_group groups[] = { { "Options", specs, 0 },
                                    { "Common options", common_json_options, 0 },
                                    { 0 } };

/* What stands at the start of a file tells its kind; safetensors begins with a header length. */
static int describe(fl_json *out, const char *path, bool detail, fl_err *err) {
  if (fl_fs_is_dir(path)) return info_fleet(out, path, detail, err);
  fl_map m = { 0 };
  int rc = fl_map_open(&m, path, err);
  if (rc != FL_OK) return rc;
  char head[9] = { 0 };
  memcpy(head, m.data, m.size < 8 ? m.size : 8);
  bool braced = m.size > 8 && m.data[8] == '{';
  fl_map_close(&m);
  if (memcmp(head, "GGUF", 4) == 0) return info_gguf(out, path, detail, err);
  if (memcmp(head, "FZA3", 4) == 0) return info_fza(out, path, detail, err);
  if (braced) return info_safetensors(out, path, detail, err);
  return fl_fail(err, FL_EINPUT,
                 "%s: neither GGUF, safetensors, FZA3 nor a fleet folder; check the path", path);
}

static int run(const opt_parsed *p, fl_err *err) {
  info_args *a = p->args;
  const char *path = p->operand[0];
  if (a->tokenize.file) {
    a->tokenize.json = a->common.json;
    return info_print_ids(path, &a->tokenize, err);
  }
  if (options_given(p, "special") || options_given(p, "bos"))
    return fl_fail(err, FL_EUSAGE, "--special and --bos belong to --tokenize FILE");
  fl_json *out = fl_json_object();
  if (!out) return fl_fail(err, FL_ENOMEM, "not enough memory");
  int rc = describe(out, path, a->common.verbose, err);
  /* A fleet with damaged members is described all the same; the status tells. */
  if (fl_json_len(out) > 0) {
    int printed = report_print(out, a->common.json, rc == FL_OK ? err : NULL);
    if (rc == FL_OK) rc = printed;
  }
  fl_json_free(out);
  return rc;
}

const command cmd_info = { .name = "info",
                           .operands = "PATH",
                           .summary = "Describes a model, a cartridge, an index or a fleet",
                           .min_operands = 1,
                           .max_operands = 1,
                           .groups = groups,
                           .args_size = sizeof(info_args),
                           .run = run };
