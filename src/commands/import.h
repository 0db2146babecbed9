/* import.h - what `import` reads; one file a kind. Each adds members to the result object. */
#ifndef FL_COMMANDS_IMPORT_H
#define FL_COMMANDS_IMPORT_H

#include "base/json.h"
#include "commands/command.h"

typedef struct import_args {
  common_args common;
  const char *out, *model;
} import_args;

/* A cartridge in the layout of HazyResearch/cartridges as a file of ours. */
int import_torch(fl_json *out, const import_args *a, const char *source, fl_err *err);

#endif
