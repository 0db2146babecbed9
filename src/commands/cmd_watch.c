/* cmd_watch.c - watch: the dashboard on fleet folders, live or after the fact. */
#include <stdio.h>
#include <string.h>

#include "commands/command.h"
#include "tui/tui.h"

typedef struct watch_args {
  common_args common;
  int color;
  bool ascii, no_mouse, headless, once, wait, leave;
  const char *view;
  double speed;
} watch_args;

static const char *const color_names[] = { "auto", "none", "8", "16", "256", NULL };

static const opt_spec specs[] = {
  { .name = "view",
    .type = OPT_TEXT,
    .meta = "NAME",
    .offset = offsetof(watch_args, view),
    .help = "the view to begin with: fleet, loss, retrieval, chat, study or cost" },
  { .name = "once",
    .letter = '1',
    .type = OPT_ON,
    .offset = offsetof(watch_args, once),
    .help = "print what is known now, and leave" },
  { .name = "headless",
    .type = OPT_ON,
    .offset = offsetof(watch_args, headless),
    .help = "lines on standard output instead of a screen" },
  { .name = "speed",
    .type = OPT_REAL,
    .meta = "X",
    .min = 0,
    .max = 1e6,
    .offset = offsetof(watch_args, speed),
    .help = "play the log from its beginning at X times real time; 0: live" },
  { .name = "wait",
    .letter = 'w',
    .type = OPT_ON,
    .offset = offsetof(watch_args, wait),
    .help = "the folder may not exist yet" },
  { .name = "leave",
    .type = OPT_ON,
    .offset = offsetof(watch_args, leave),
    .help = "leave some seconds after the run has ended, unless a key is pressed" },
  { .name = "color",
    .type = OPT_CHOICE,
    .meta = "HOW",
    .choices = color_names,
    .offset = offsetof(watch_args, color),
    .help = "colours" },
  { .name = "ascii",
    .type = OPT_ON,
    .offset = offsetof(watch_args, ascii),
    .help = "plain characters only" },
  { .name = "no-mouse",
    .type = OPT_ON,
    .offset = offsetof(watch_args, no_mouse),
    .help = "leave the mouse to the terminal" },
  { 0 }
};
static const opt_group groups[] = { { "Options", specs, 0 },
                                    { "Common options", common_json_options, 0 },
                                    { 0 } };

static int run(const opt_parsed *p, fl_err *err) {
  const watch_args *a = p->args;
  if (a->common.json && !a->once && !a->headless)
    return fl_fail(err, FL_EUSAGE, "--json: needs --once or --headless");
  tui_options o = { .fleets = (const char *const *)p->operand,
                    .n_fleets = p->n_operands,
                    .color = (tui_color)a->color,
                    .ascii = a->ascii,
                    .no_mouse = a->no_mouse,
                    .headless = a->headless,
                    .once = a->once,
                    .json = a->common.json,
                    .view = a->view,
                    .speed = a->speed,
                    .wait = a->wait,
                    .leave = a->leave,
                    .out = stdout };
  return tui_watch(&o, err);
}

const command cmd_watch = { .name = "watch",
                            .operands = "FLEET...",
                            .summary = "Shows the dashboard of a training, live or afterwards",
                            .min_operands = 1,
                            .max_operands = 8,
                            .groups = groups,
                            .args_size = sizeof(watch_args),
                            .run = run };
