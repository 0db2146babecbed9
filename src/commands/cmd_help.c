/* cmd_help.c - help: the text of --help, and the tables of commands and options for programs. */
#include <stdio.h>

#include "base/mem.h"
#include "commands/command.h"

typedef struct help_args {
  common_args common;
  bool names, options;
} help_args;

static const opt_spec specs[] = { { .name = "commands",
                                    .type = OPT_ON,
                                    .offset = offsetof(help_args, names),
                                    .help = "names of all commands, one a line" },
                                  { .name = "options",
                                    .type = OPT_ON,
                                    .offset = offsetof(help_args, options),
                                    .help = "a command's options, one a line, tab-separated" },
                                  { 0 } };
static const opt_group groups[] = { { "Options", specs, 0 },
                                    { "Common options", common_options, 0 },
                                    { 0 } };

static int list_options(const command *c, fl_err *err) {
  void *args = fl_calloc(1, c->args_size);
  if (!args) return fl_fail(err, FL_ENOMEM, "not enough memory");
  if (c->init) c->init(args);
  options_list(stdout, c->groups, args);
  fl_free(args);
  return FL_OK;
}

static int run(const opt_parsed *p, fl_err *err) {
  const help_args *a = p->args;
  if (a->names) {
    for (const command *const *c = commands; *c; c++) puts((*c)->name);
    return FL_OK;
  }
  if (p->n_operands == 0) {
    program_usage();
    return FL_OK;
  }
  const command *c = command_find(p->operand[0]);
  if (!c) {
    const char *near = command_nearest(p->operand[0]);
    return fl_fail(err, FL_EUSAGE, "unknown command %s%s%s", p->operand[0],
                   near ? "; did you mean " : "", near ? near : "");
  }
  if (a->options) return list_options(c, err);
  command_usage(c);
  return FL_OK;
}

const command cmd_help = { .name = "help",
                           .operands = "[COMMAND]",
                           .summary = "Prints the usage of the program or of a command",
                           .max_operands = 1,
                           .groups = groups,
                           .args_size = sizeof(help_args),
                           .run = run };
