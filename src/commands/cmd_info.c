/* cmd_info.c - info: recognises a file or folder by its content and describes it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "cli/report.h"
#include "commands/command.h"
#include "formats/gguf.h"
#include "info/info.h"
#include "text/tokenizer.h"

typedef struct tokenize_args {
  const char *file; /* "-": standard input */
  bool special, bos;
} tokenize_args;

typedef struct info_args {
  common_args common;
  tokenize_args tokenize;
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
  if (fl_fs_is_dir(path)) return fl_info_fleet(out, path, detail, err);
  fl_map m = { 0 };
  int rc = fl_map_open(&m, path, err);
  if (rc != FL_OK) return rc;
  char head[9] = { 0 };
  memcpy(head, m.data, m.size < 8 ? m.size : 8);
  bool braced = m.size > 8 && m.data[8] == '{';
  fl_map_close(&m);
  if (memcmp(head, "GGUF", 4) == 0) return fl_info_gguf(out, path, detail, err);
  if (memcmp(head, "FZA3", 4) == 0) return fl_info_fza(out, path, detail, err);
  if (braced) return fl_info_safetensors(out, path, detail, err);
  return fl_fail(err, FL_EINPUT,
                 "%s: neither GGUF, safetensors, FZA3 nor a fleet folder; check the path", path);
}

static const size_t text_max_bytes = (size_t)1 << 30;

static int read_stdin(fl_buf *out, fl_err *err) {
  char block[65536];
  for (ssize_t n; (n = read(STDIN_FILENO, block, sizeof block)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fl_fs_fail_errno(err, "standard input", "read", errno);
    fl_buf_append(out, block, (size_t)n);
    if (out->len > text_max_bytes)
      return fl_fail(err, FL_EINPUT, "standard input: more than 1 GiB; split the text");
  }
  return out->oom ? fl_fail(err, FL_ENOMEM, "not enough memory for the text") : FL_OK;
}

static void print_ids(const fl_ids *ids, bool json) {
  if (json) putchar('[');
  for (size_t i = 0; i < ids->len; i++)
    printf("%s%d", i == 0 ? "" : json ? ", " : " ", ids->data[i]);
  puts(json ? "]" : "");
}

static int print_tokens(const char *model, const tokenize_args *o, bool json, fl_err *err) {
  fl_gguf *g = NULL;
  fl_tokenizer *t = NULL;
  fl_buf text = { 0 };
  fl_ids ids = { 0 };
  int rc = fl_gguf_open(&g, model, err);
  if (rc == FL_OK) rc = fl_tokenizer_open(&t, g, err);
  if (rc == FL_OK)
    rc = strcmp(o->file, "-") == 0 ? read_stdin(&text, err)
                                   : fl_fs_read(&text, o->file, text_max_bytes, err);
  unsigned flags = (o->special ? FL_TOK_SPECIAL : 0u) | (o->bos ? FL_TOK_BOS : 0u);
  if (rc == FL_OK) rc = fl_tokenize(t, &ids, text.data ? text.data : "", text.len, flags, err);
  if (rc == FL_OK) print_ids(&ids, json);
  fl_ids_release(&ids);
  fl_buf_release(&text);
  fl_tokenizer_close(t);
  fl_gguf_close(g);
  return rc;
}

static int run(const opt_parsed *p, fl_err *err) {
  info_args *a = p->args;
  const char *path = p->operand[0];
  if (a->tokenize.file) return print_tokens(path, &a->tokenize, a->common.json, err);
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
