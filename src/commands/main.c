/* main.c - finds the command, reads its options, runs it, and turns its result into an exit
 * status: 0 done, 1 failed, 2 usage, 3 a gate or threshold not met, 4 a bad input, 130 stopped. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "commands/command.h"
#include "cli/sigbus.h"
#include "net/mpi.h"

enum { LOG_NOTHING = -2 };

static int fail(const command *c, int code, const fl_err *err) {
  const char *text = err->text[0] ? err->text : "failed";
  if (c && code == FL_EUSAGE) {
    fl_error("%s: %s ('flotilla %s --help' lists the options)", c->name, text, c->name);
  } else if (code == FL_EINTR && err->text[0]) {
    fl_info("%s", text);
  } else if (code != FL_EINTR) {
    fl_error("%s", text);
  }
  return fl_exit_status(code);
}

static int check_operands(const command *c, const opt_parsed *p, fl_err *err) {
  if (p->n_operands < c->min_operands)
    return fl_fail(err, FL_EUSAGE, "operands missing; usage: flotilla %s [OPTION]... %s", c->name,
                   c->operands);
  if (p->n_operands > c->max_operands)
    return fl_fail(err, FL_EUSAGE, "%s: one operand too many; usage: flotilla %s [OPTION]... %s",
                   p->operand[c->max_operands], c->name, c->operands);
  return FL_OK;
}

/* Results that could not be written (closed pipe, full disk) are a failure. */
static int flush_results(int code, fl_err *err) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return code;
  if (code != FL_OK) return code;
  return fl_fail(err, FL_EFAIL, "standard output: cannot write: %s", strerror(errno));
}

static int parse_and_run(const command *c, opt_parsed *p, int argc, char **argv, fl_err *err) {
  fl_mpi *ranks = p->ranks;
  const bool speaks = fl_dist_leads(fl_mpi_dist(ranks));
  if (!speaks) fl_log_set_level(LOG_NOTHING);
  int rc = options_parse(p, c->groups, p->args, argc, argv, err);
  const common_args *common = p->args;
  p->ranks = ranks;
  if (rc == FL_OK && common->help) {
    if (speaks) command_usage(c);
  } else if (rc == FL_OK && (rc = check_operands(c, p, err)) == FL_OK) {
    if (speaks) fl_log_set_level(common->quiet ? -1 : common->verbose ? 1 : 0);
    rc = c->run(p, err);
  }
  rc = flush_results(rc, err);
  /* Also meets those who wait for a rank that failed on its own. */
  return fl_dist_agree(fl_mpi_dist(ranks), "end", rc, err);
}

static int run_command(const command *c, int argc, char **argv) {
  fl_err err = { 0 };
  opt_parsed p = { .args = fl_calloc(1, c->args_size) };
  if (!p.args) return fail(c, fl_fail(&err, FL_ENOMEM, "not enough memory"), &err);
  if (c->init) c->init(p.args);
  int rc = c->ranks ? fl_mpi_start(&p.ranks, &err) : FL_OK;
  if (rc == FL_OK) rc = parse_and_run(c, &p, argc, argv, &err);
  int status = rc == FL_OK ? 0 : fail(c, rc, &err);
  fl_mpi_stop(p.ranks);
  void *args = p.args;
  options_release(&p);
  fl_free(args);
  return status;
}

int main(int argc, char **argv) {
  fl_err err = { 0 };
  signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failed write, with its message, */
  signal(SIGXFSZ, SIG_IGN); /* and so is a file over the limit of ulimit -f */
  lost_file_catch();
  fl_mem_return_large();
  if (argc < 2)
    return fail(NULL, fl_fail(&err, FL_EUSAGE, "a command is needed; 'flotilla --help' lists them"),
                &err);
  const char *word = argv[1];
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
    program_usage();
    return flush_results(FL_OK, &err) == FL_OK ? 0 : fail(NULL, FL_EFAIL, &err);
  }
  if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
    puts(PACKAGE_STRING);
    return flush_results(FL_OK, &err) == FL_OK ? 0 : fail(NULL, FL_EFAIL, &err);
  }
  const command *c = command_find(word);
  if (c) return run_command(c, argc - 1, argv + 1);
  const char *near = command_nearest(word);
  int rc = near
               ? fl_fail(&err, FL_EUSAGE, "unknown command %s; did you mean %s?", word, near)
               : fl_fail(&err, FL_EUSAGE, "unknown command %s; 'flotilla --help' lists them", word);
  return fail(NULL, rc, &err);
}
