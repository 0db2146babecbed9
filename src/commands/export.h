/* export.h - what `export` writes; one file a kind. Each adds members to the result object. */
#ifndef FL_COMMANDS_EXPORT_H
#define FL_COMMANDS_EXPORT_H

#include "base/json.h"
#include "commands/command.h"
#include "commands/runtime.h"

typedef struct export_args {
  common_args common;
  engine_args engine;
  const char *out;
  int to;               /* index in the choices of --to */
  int kv;               /* llama-state: 0: f16, 1: f32 */
  size_t state_version; /* llama-state: 3 or 4 */
  bool force;
  const char *source; /* the operand, a cartridge's file; NULL for a model */
} export_args;

/* The model in another weight type, which is `type`. */
int export_model(fl_json *out, const export_args *a, const char *type, fl_err *err);
/* The fleet `source` as one file. */
int export_archive(fl_json *out, const export_args *a, fl_err *err);
/* The cartridge `source` of the model as a sequence state of llama.cpp. */
int export_state(fl_json *out, const export_args *a, fl_err *err);
/* The same as torch.save writes it, in the layout of HazyResearch/cartridges. */
int export_torch(fl_json *out, const export_args *a, fl_err *err);

#endif
