/* command.h - what a command is, and the table of all of them (commands.c), which feeds usage,
 * --help, completion and the tests of the man pages. */
#ifndef FL_COMMANDS_COMMAND_H
#define FL_COMMANDS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/options.h"

/* First member of every command's arguments. */
typedef struct common_args {
  bool help, json, quiet, verbose;
} common_args;

extern const opt_spec common_options[];      /* --help --quiet --verbose */
extern const opt_spec common_json_options[]; /* the same and --json */

typedef struct command {
  const char *name;
  const char *operands; /* as usage shows them: "FLEET QUESTION" */
  const char *summary;  /* lower case, no full stop */
  size_t min_operands, max_operands;
  const opt_group *groups;
  bool ranks;               /* may run as several processes, of which rank 0 alone speaks */
  size_t args_size;         /* of a struct that begins with common_args */
  void (*init)(void *args); /* defaults; NULL: all zero */
  /* Prints results on stdout. FL_OK or a code with *err set. */
  int (*run)(const opt_parsed *p, fl_err *err);
} command;

extern const command *const commands[]; /* NULL-terminated */
const command *command_find(const char *name);
/* Nearest command name or NULL. */
const char *command_nearest(const char *name);
void command_usage(const command *c); /* on stdout */
void program_usage(void);             /* on stdout */

extern const command cmd_ask, cmd_bench, cmd_chat, cmd_eval, cmd_export, cmd_gate, cmd_help,
    cmd_import, cmd_index, cmd_info, cmd_serve, cmd_study, cmd_train, cmd_watch;

#endif
