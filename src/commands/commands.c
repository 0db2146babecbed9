/* commands.c - the table of commands, and the texts that come from it. */
#include "commands/command.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

const command *const commands[] = { &cmd_train,  &cmd_ask,  &cmd_chat,  &cmd_serve, &cmd_watch,
                                    &cmd_index,  &cmd_eval, &cmd_gate,  &cmd_study, &cmd_export,
                                    &cmd_import, &cmd_info, &cmd_bench, &cmd_help,  NULL };

#define COMMON_SPECS                                                                               \
  { .name = "quiet",                                                                               \
    .letter = 'q',                                                                                 \
    .type = OPT_ON,                                                                                \
    .offset = offsetof(common_args, quiet),                                                        \
    .help = "errors only on stderr" },                                                             \
      { .name = "verbose",                                                                         \
        .letter = 'v',                                                                             \
        .type = OPT_ON,                                                                            \
        .offset = offsetof(common_args, verbose),                                                  \
        .help = "more detail" },                                                                   \
  {                                                                                                \
    .name = "help", .letter = 'h', .type = OPT_ON, .offset = offsetof(common_args, help),          \
    .help = "this text"                                                                            \
  }

const opt_spec common_options[] = { COMMON_SPECS, { 0 } };

const opt_spec common_json_options[] = { { .name = "json",
                                           .letter = 'j',
                                           .type = OPT_ON,
                                           .offset = offsetof(common_args, json),
                                           .help = "the result as JSON" },
                                         COMMON_SPECS,
                                         { 0 } };

const command *command_find(const char *name) {
  for (const command *const *c = commands; *c; c++)
    if (strcmp((*c)->name, name) == 0) return *c;
  return NULL;
}

const char *command_nearest(const char *name) {
  const char *names[64];
  size_t n = 0;
  for (const command *const *c = commands; *c && n < 64; c++) names[n++] = (*c)->name;
  return options_nearest(name, names, n);
}

void command_usage(const command *c) {
  void *args = fl_calloc(1, c->args_size);
  if (!args) return;
  if (c->init) c->init(args);
  printf("Usage: flotilla %s [OPTION]...%s%s\n%s.\n", c->name, *c->operands ? " " : "", c->operands,
         c->summary);
  options_print(stdout, c->groups, args);
  printf("\nThe full description is in flotilla-%s(1).\n", c->name);
  fl_free(args);
}

void program_usage(void) {
  puts("Usage: flotilla COMMAND [OPTION]...\n"
       "Trains cartridges of documents for a frozen language model and answers from them.\n\n"
       "Commands:");
  for (const command *const *c = commands; *c; c++)
    printf("  %-8s %s\n", (*c)->name, (*c)->summary);
  puts("\n'flotilla COMMAND --help' tells a command's options; flotilla(1) the whole.\n"
       "'flotilla --version' prints the version.");
}
