/* export.h - what `export` writes; one file a kind. Each adds members to the result object. */
#ifndef FL_COMMANDS_EXPORT_H
#define FL_COMMANDS_EXPORT_H

#include "base/json.h"
#include "commands/command.h"
#include "commands/engine.h"

typedef struct export_args {
  common_args common;
  engine_args engine;
  const char *out;
  int to;             /* index in the choices of --to */
  bool force;
  const char *source; /* the operand: a cartridge or a fleet; NULL for a model */
} export_args;

/* The model in another weight type, which is `type`. */
int export_model(fl_json *out, const export_args *a, const char *type, fl_err *err);

#endif
