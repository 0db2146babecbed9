/* runtime.h - what every command that computes begins with: threads and an open model. */
#ifndef FL_COMMANDS_RUNTIME_H
#define FL_COMMANDS_RUNTIME_H

#include "base/err.h"
#include "cli/options.h"
#include "model/model.h"

typedef struct engine_args {
  const char *model; /* NULL: from the fleet's manifest, where there is a fleet */
  size_t threads;    /* 0: the cores available */
  int chat_template; /* index in the choices; 0: as the fleet was trained with, or from the file */
  int experts;       /* 0: used in the mapping, 1: packed */
} engine_args;

extern const opt_spec engine_options[];

typedef struct engine {
  fl_team *team;
  fl_model *model;
} engine;

/* How the model is to be opened: as asked for; the template else by this name, NULL: by the file.
 */
int engine_model_options(fl_model_options *out, const engine_args *a, const char *chat_template,
                         fl_err *err);
/* `fleet`: a fleet folder that says what is not given here, or NULL. */
int engine_open(engine *out, const engine_args *a, const char *fleet, fl_err *err);
void engine_close(engine *e);

#endif
