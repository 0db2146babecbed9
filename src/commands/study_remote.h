/* study_remote.h - study's --generator: the flags, and the wire under net/remote.h. */
#ifndef FL_COMMANDS_STUDY_REMOTE_H
#define FL_COMMANDS_STUDY_REMOTE_H

#include "cli/options.h"
#include "net/remote.h"

typedef struct remote_args {
  const char *url, *model, *key_file;
  size_t in_flight, tries;
  double timeout_s;
  int teacher; /* index in remote, local */
} remote_args;

extern const opt_spec remote_specs[];
void remote_default(remote_args *a);

typedef struct study_wire study_wire;
/* The key: from --generator-key-file, else from $FLOTILLA_GENERATOR_KEY, else none. */
int study_wire_open(study_wire **out, const remote_args *a, const fl_model *model, fl_err *err);
void study_wire_close(study_wire *w);
fl_remote *study_wire_remote(study_wire *w);

#endif
