/* cmd_chat.c - chat: a conversation with a fleet. The first question chooses the documents by
 * retrieval; they stay, with all rows of the conversation, until /oracle, /bare or /new. */
#include <histedit.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "commands/doc_choice.h"
#include "commands/command.h"
#include "commands/runtime.h"
#include "cli/report.h"
#include "cli/signals.h"

typedef struct chat_args {
  common_args common;
  engine_args engine;
  sampling_args sampling;
  retrieval_args retrieval;
  opt_list oracle;
} chat_args;

static const opt_spec specs[] = {
  { .name = "oracle",
    .letter = 'o',
    .type = OPT_LIST,
    .meta = "NAME",
    .offset = offsetof(chat_args, oracle),
    .help = "answer from this document, without retrieval; repeatable" },
  { 0 }
};
static const opt_group groups[] = { { "Options", specs, 0 },
                                    { "Model", engine_options, offsetof(chat_args, engine) },
                                    { "Retrieval", retrieval_specs,
                                      offsetof(chat_args, retrieval) },
                                    { "Generation", sampling_specs, offsetof(chat_args, sampling) },
                                    { "Common options", common_options, 0 },
                                    { 0 } };

static void init(void *args) {
  sampling_default(&((chat_args *)args)->sampling);
  retrieval_default(&((chat_args *)args)->retrieval);
}

typedef struct chat_state {
  const chat_args *args;
  fl_fleet *fleet;
  fl_chat *chat; /* NULL before the first question */
  selection chosen;
  bool fixed; /* `chosen` was given by name, or is none (/bare) */
  bool quit;
} chat_state;

static void forget(chat_state *s) {
  fl_chat_free(s->chat);
  s->chat = NULL;
  if (!s->fixed) selection_release(&s->chosen);
}

/* --- commands within the chat ---------------------------------------------------------------- */

static void do_help(chat_state *s, char *rest);

static void do_docs(chat_state *s, char *rest) {
  (void)rest;
  if (!s->chat && !s->fixed) puts("no documents yet: the first question chooses them");
  if (s->fixed && s->chosen.n_docs == 0) puts("no documents: the bare model answers");
  if (s->chosen.n_docs > 0) selection_print(&s->chosen, s->fleet);
  printf("in the fleet: ");
  for (size_t i = 0; i < fl_fleet_n_docs(s->fleet); i++) {
    fl_doc_info d;
    fl_fleet_doc(s->fleet, i, &d);
    printf("%s%s", i ? ", " : "", d.name);
  }
  putchar('\n');
}

static void choose(chat_state *s, const opt_list *names) {
  fl_err err = { 0 };
  selection next = { .named = true };
  int rc = names->n > 0 ? selection_named(&next, s->fleet, names, &err) : FL_OK;
  if (rc != FL_OK) {
    fl_error("%s", err.text);
    return;
  }
  s->fixed = false;
  forget(s);
  s->chosen = next;
  s->fixed = true;
}

static void do_oracle(chat_state *s, char *rest) {
  enum { MAX_NAMES = 64 };
  const char *names[MAX_NAMES];
  opt_list l = { .v = names };
  char *save = NULL;
  for (char *w = strtok_r(rest, " \t", &save); w && l.n < MAX_NAMES;
       w = strtok_r(NULL, " \t", &save))
    names[l.n++] = w;
  if (l.n == 0) {
    fl_error("/oracle NAME...: a document's name is needed; /docs lists them");
    return;
  }
  choose(s, &l);
}

static void do_bare(chat_state *s, char *rest) {
  (void)rest;
  choose(s, &(opt_list){ 0 });
}

static void do_new(chat_state *s, char *rest) {
  (void)rest;
  s->fixed = false;
  forget(s);
}

static void do_quit(chat_state *s, char *rest) {
  (void)rest;
  s->quit = true;
}

static const struct {
  const char *name, *help;
  void (*run)(chat_state *s, char *rest);
} chat_commands[] = {
  { "/help", "this list", do_help },
  { "/docs", "the documents in use, and those of the fleet", do_docs },
  { "/oracle", "NAME...: answer from these documents from now on", do_oracle },
  { "/bare", "answer without documents from now on", do_bare },
  { "/new", "a new conversation; the next question chooses documents", do_new },
  { "/quit", "leave (or end of input)", do_quit },
};
enum { N_CHAT_COMMANDS = sizeof chat_commands / sizeof *chat_commands };

static void do_help(chat_state *s, char *rest) {
  (void)s;
  (void)rest;
  for (size_t i = 0; i < N_CHAT_COMMANDS; i++)
    printf("%-8s %s\n", chat_commands[i].name, chat_commands[i].help);
}

static void run_chat_command(chat_state *s, char *line) {
  size_t len = strcspn(line, " \t");
  char *rest = line + len + strspn(line + len, " \t");
  const char *names[N_CHAT_COMMANDS];
  line[len] = '\0';
  for (size_t i = 0; i < N_CHAT_COMMANDS; i++) {
    names[i] = chat_commands[i].name;
    if (strcmp(line, names[i]) != 0) continue;
    chat_commands[i].run(s, rest);
    return;
  }
  const char *near = options_nearest(line, names, N_CHAT_COMMANDS);
  fl_error("%s: unknown; %s%s", line, near ? "did you mean " : "/help lists the commands",
           near ? near : "");
}

/* --- a turn ---------------------------------------------------------------------------------- */

static int begin(chat_state *s, const char *question, fl_err *err) {
  int rc = FL_OK;
  if (!s->fixed)
    rc = selection_retrieve(&s->chosen, s->fleet, question, &s->args->retrieval.rag, err);
  if (rc != FL_OK) return rc;
  fl_ask_options o = { .arm = s->chosen.n_docs > 0 ? FL_ARM_CARTRIDGE : FL_ARM_BARE,
                       .docs = s->chosen.docs,
                       .n_docs = s->chosen.n_docs,
                       .on_token = stream_token };
  sampling_apply(&o, &s->args->sampling);
  rc = fl_chat_new(&s->chat, s->fleet, &o, err);
  bool silent = s->args->common.quiet || (s->fixed && s->chosen.n_docs == 0);
  if (rc == FL_OK && !silent) selection_print(&s->chosen, s->fleet);
  return rc;
}

/* An error ends the turn, not the chat. */
static void turn(chat_state *s, const char *question) {
  fl_err err = { 0 };
  fl_reply r = { 0 };
  int rc = s->chat ? FL_OK : begin(s, question, &err);
  if (rc == FL_OK) rc = fl_chat_turn(s->chat, question, strlen(question), &r, &err);
  if (rc == FL_OK) {
    putchar('\n');
    fl_debug("%zu rows before it, %zu tokens in %.2f s", r.rows, r.tokens, r.seconds);
  } else if (rc != FL_EINTR) {
    fl_error("%s", err.text);
  }
  if (signals_stop()) putchar('\n');
  signals_forget();
  fl_reply_release(&r);
}

static void one_line(chat_state *s, char *line) {
  line[strcspn(line, "\r\n")] = '\0';
  if (line[0] == '/') {
    run_chat_command(s, line);
  } else if (line[strspn(line, " \t")] != '\0') {
    turn(s, line);
  }
  fflush(stdout);
}

/* --- input ----------------------------------------------------------------------------------- */

static const char *prompt(EditLine *el) {
  (void)el;
  return "> ";
}

/* $XDG_STATE_HOME/flotilla/history, under ~/.local/state by default. */
static char *history_path(void) {
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  char *dir = state && *state ? fl_asprintf("%s/flotilla", state)
              : home          ? fl_asprintf("%s/.local/state/flotilla", home)
                              : NULL;
  char *path = dir && fl_fs_mkdir(dir, NULL) == FL_OK ? fl_fs_join(dir, "history") : NULL;
  fl_free(dir);
  return path;
}

static int edit_lines(chat_state *s, fl_err *err) {
  enum { REMEMBERED = 1000 };
  HistEvent ev;
  EditLine *el = el_init("flotilla", stdin, stdout, stderr);
  History *h = history_init();
  if (!el || !h) {
    if (el) el_end(el);
    if (h) history_end(h);
    return fl_fail(err, FL_EFAIL, "the terminal can't be used for line editing");
  }
  char *path = history_path();
  history(h, &ev, H_SETSIZE, REMEMBERED);
  if (path) history(h, &ev, H_LOAD, path);
  el_set(el, EL_PROMPT, prompt);
  el_set(el, EL_EDITOR, "emacs");
  el_set(el, EL_SIGNAL, 0);
  el_set(el, EL_HIST, history, h);
  el_source(el, NULL);
  while (!s->quit) {
    int n = 0;
    const char *got = el_gets(el, &n);
    if (!got || n <= 0) {
      if (!signals_stop()) break;
      signals_forget(); /* Ctrl-C at the prompt drops the line */
      putchar('\n');
      el_reset(el);
      continue;
    }
    if (n > 1) history(h, &ev, H_ENTER, got);
    char *line = fl_strndup(got, (size_t)n);
    if (line) one_line(s, line);
    fl_free(line);
  }
  if (path) history(h, &ev, H_SAVE, path);
  fl_free(path);
  history_end(h);
  el_end(el);
  return FL_OK;
}

/* Lines of any length from a pipe or a file. */
static int plain_lines(chat_state *s) {
  fl_buf line = { 0 };
  for (int c = 0; c != EOF && !s->quit && !line.oom;) {
    c = getchar();
    if (c != EOF && c != '\n') fl_buf_putc(&line, (char)c);
    if ((c != EOF && c != '\n') || !line.data) continue;
    one_line(s, line.data);
    fl_buf_reset(&line);
  }
  fl_buf_release(&line);
  return signals_stop() ? FL_EINTR : FL_OK;
}

static int run(const opt_parsed *p, fl_err *err) {
  const chat_args *a = p->args;
  const char *dir = p->operand[0];
  engine e = { 0 };
  chat_state s = { .args = a };
  fl_open_options how = { .read_only = true, .log_events = true };
  bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
  setlocale(LC_CTYPE, "");
  int rc = engine_open(&e, &a->engine, dir, err);
  if (rc == FL_OK) rc = fl_fleet_open(&s.fleet, dir, e.model, e.team, NULL, NULL, &how, err);
  if (rc == FL_OK && a->oracle.n > 0) {
    rc = selection_named(&s.chosen, s.fleet, &a->oracle, err);
    s.fixed = rc == FL_OK;
  }
  signals_catch();
  if (rc == FL_OK && terminal && !a->common.quiet)
    puts("A question, or /help. Ctrl-C stops an answer, Ctrl-D leaves.");
  if (rc == FL_OK) rc = terminal ? edit_lines(&s, err) : plain_lines(&s);
  s.fixed = false;
  if (s.fleet) forget(&s);
  if (s.fleet) fl_fleet_close(s.fleet);
  engine_close(&e);
  return rc;
}

const command cmd_chat = { .name = "chat",
                           .operands = "FLEET",
                           .summary = "Holds a conversation with a fleet",
                           .min_operands = 1,
                           .max_operands = 1,
                           .groups = groups,
                           .args_size = sizeof(chat_args),
                           .init = init,
                           .run = run };
