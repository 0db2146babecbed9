/* options.h - one table of options feeds parsing, range checks, --help, `flotilla help --options`
 * (which shell completion and the tests of the man pages read).
 *
 * A command owns a struct of arguments; its options come in groups, each a table of specs whose
 * offsets count from the group's place in that struct, so that several commands share a group.
 * Defaults are what the command's init() put into the struct: help prints them from there.
 */
#ifndef FL_CLI_OPTIONS_H
#define FL_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"

typedef enum opt_type {
  OPT_ON,      /* bool, becomes true */
  OPT_OFF,     /* bool, becomes false */
  OPT_COUNT,   /* size_t */
  OPT_U64,     /* uint64_t */
  OPT_REAL,    /* double */
  OPT_BYTES,   /* uint64_t, K/M/G */
  OPT_SECONDS, /* double, s/m/h */
  OPT_TEXT,    /* const char *, borrowed from argv */
  OPT_LIST,    /* opt_list, repeatable */
  OPT_CHOICE,  /* int, index in `choices` */
  OPT_FORM     /* what `form` reads */
} opt_type;

typedef struct opt_list {
  const char **v; /* borrowed strings; the array is released by options_release */
  size_t n;
} opt_list;

/* A value of a form of its own. */
typedef struct opt_form {
  size_t size;                                          /* bytes of it */
  int (*read)(void *at, const char *text, fl_err *err); /* FL_EUSAGE names the option */
  void (*print)(fl_buf *out, const void *at);
} opt_form;

typedef struct opt_spec {
  const char *name; /* without "--"; NULL ends a table */
  char letter;      /* 0: none */
  opt_type type;
  const char *meta;           /* what stands for the value in help */
  double min, max;            /* numeric types: inclusive */
  size_t offset;              /* in the group's struct */
  const char *help;           /* one line, lower case, no full stop */
  const char *const *choices; /* OPT_CHOICE, NULL-terminated */
  const opt_form *form;       /* OPT_FORM */
} opt_spec;

typedef struct opt_group {
  const char *title; /* heading in --help; NULL ends the list */
  const opt_spec *specs;
  size_t offset; /* of the group's struct in the command's arguments */
} opt_group;

enum { OPT_MAX = 96 }; /* options of one command */

typedef struct opt_parsed {
  const opt_group *groups;
  const char *given[OPT_MAX]; /* names that stood on the command line */
  size_t n_given;
  char *const *operand;
  size_t n_operands;
  void *args;
  struct fl_mpi *ranks; /* the processes that run the command together; NULL: this one alone */
} opt_parsed;

/* Fills `args` (already initialised) from argv[1..]; argv is permuted so that operands come last.
 * FL_EUSAGE with one sentence on the first thing that is wrong. */
int options_parse(opt_parsed *out, const opt_group *groups, void *args, int argc, char **argv,
                  fl_err *err);
void options_release(opt_parsed *p);
bool options_given(const opt_parsed *p, const char *name);

/* `text` is borrowed. */
int opt_list_add(opt_list *l, const char *text, fl_err *err);
bool opt_list_has(const opt_list *l, const char *text);

/* The lines of --help. `args` holds the defaults. */
void options_print(FILE *f, const opt_group *groups, const void *args);
/* One option a line, tab-separated: --name, -x or "-", type, default or "-", min, max or "-". */
void options_list(FILE *f, const opt_group *groups, const void *args);

/* Whichever of names[0..n) is nearest to `word`, or NULL when none is near enough to suggest. */
const char *options_nearest(const char *word, const char *const *names, size_t n);

#endif
