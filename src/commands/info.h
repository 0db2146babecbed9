/* info.h - the kinds of things that `info` describes; one file a kind. Each adds members to the
 * result object. FL_EINPUT when the file is damaged. */
#ifndef FL_COMMANDS_INFO_H
#define FL_COMMANDS_INFO_H

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"

int info_gguf(fl_json *out, const char *path, bool detail, fl_err *err);
int info_safetensors(fl_json *out, const char *path, bool detail, fl_err *err);
int info_fza(fl_json *out, const char *path, bool detail, fl_err *err);
int info_fleet(fl_json *out, const char *dir, bool detail, fl_err *err);

/* Prints the token ids of a file's text ("-": standard input). */
typedef struct info_tokenize {
  const char *file;
  bool special, bos, json;
} info_tokenize;
int info_print_ids(const char *model, const info_tokenize *t, fl_err *err);

#endif
