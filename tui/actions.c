/* actions.c - what the user asks of a trainer, and what is written to files. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/units.h"
#include "tui/app.h"
#include "tui/export.h"

bool tui_action_live(const tui_app *a) {
  tui_feed_state st = tui_feed_status(&a->feed[a->current]);
  return st == TUI_FEED_LIVE || st == TUI_FEED_PAUSED;
}

static const char not_running[] =
    "nothing runs on this fleet now: start `flotilla train --resume` or `flotilla serve`";

void tui_action_send(tui_app *a, const char *cmd, const char *key, double value) {
  tui_feed *f = tui_app_feed(a);
  fl_json *request = fl_json_object();
  bool ok = request && fl_json_set_str(request, "cmd", cmd);
  if (ok && key)
    ok = fl_json_set_str(request, "key", key) && fl_json_set_num(request, "value", value);
  if (!ok) {
    fl_json_free(request);
    request = NULL;
  }
  snprintf(a->command_name, sizeof a->command_name, "%s%s%s", cmd, key ? " " : "", key ? key : "");
  tui_link_start(&a->command, f->dir, request);
  f->ping_due = 0; /* so that the new state shows at once */
}

void tui_action_mark(tui_app *a, uint32_t doc, bool value) {
  tui_feed *f = tui_app_feed(a);
  tui_doc *d = tui_snapshot_doc(&f->snap, doc);
  if (!d) return;
  if (!tui_action_live(a)) {
    d->marked = value; /* for as long as this dashboard is open */
    return;
  }
  fl_json *request = fl_json_object();
  if (!request || !fl_json_set_str(request, "cmd", "mark") ||
      !fl_json_set_u64(request, "doc", doc) || !fl_json_set_bool(request, "value", value)) {
    fl_json_free(request);
    return;
  }
  snprintf(a->command_name, sizeof a->command_name, "mark");
  tui_link_start(&a->command, f->dir, request);
}

static void on_reply(void *ctx, const fl_json *reply, bool last) {
  tui_app *a = ctx;
  bool ok = false;
  if (!last || !fl_json_get_bool(reply, "ok", &ok) || !ok) return;
  tui_app_say(a, false, "%s: taken by the trainer", a->command_name);
}

bool tui_action_poll(tui_app *a) {
  bool changed = tui_link_poll(&a->command, on_reply, a);
  if (a->command.state == TUI_LINK_FAILED) {
    if (a->command.absent) tui_app_say(a, true, "%s: %s", a->command_name, not_running);
    else tui_app_say(a, true, "%s: %s", a->command_name, a->command.error);
    tui_link_close(&a->command);
    changed = true;
  }
  return changed;
}

/* The range each may be set to; the trainer has the last word. */
static const struct {
  const char *key;
  double min, max;
  bool whole;
} settable[] = { { "lr", 1e-9, 1, false },
                 { "budget", 1, 65536, true },
                 { "rounds", 1, 1e9, true } };

static void set_value(tui_app *a, size_t i, const char *text) {
  double v;
  if (fl_parse_double(&v, text) != FL_OK || v < settable[i].min || v > settable[i].max ||
      (settable[i].whole && v != floor(v))) {
    tui_app_say(a, true, ":%s takes a %snumber from %g to %g, as in \":%s %s\"", settable[i].key,
                settable[i].whole ? "whole " : "", settable[i].min, settable[i].max,
                settable[i].key, settable[i].whole ? "6" : "0.001");
    return;
  }
  tui_action_send(a, "set", settable[i].key, v);
}

void tui_action_command(tui_app *a, const char *line) {
  static const char *const plain[] = { "pause", "resume", "step", "save", NULL };
  char word[32] = "", value[64] = "";
  sscanf(line, "%31s %63s", word, value);
  for (size_t i = 0; plain[i]; i++)
    if (strcmp(word, plain[i]) == 0) {
      tui_action_send(a, word, NULL, NAN);
      return;
    }
  for (size_t i = 0; i < sizeof settable / sizeof *settable; i++)
    if (strcmp(word, settable[i].key) == 0) {
      set_value(a, i, value);
      return;
    }
  tui_doc *d = tui_fleet_selected(a);
  if (strcmp(word, "stop") == 0) a->overlay = TUI_OVER_STOP;
  else if (strcmp(word, "q") == 0 || strcmp(word, "quit") == 0) a->quit = true;
  else if (strcmp(word, "mark") == 0 && d) tui_action_mark(a, d->id, strcmp(value, "off") != 0);
  else if (strcmp(word, "text") == 0 || strcmp(word, "svg") == 0)
    tui_action_export(a, word[0] == 's');
  else if (word[0])
    tui_app_say(a, true,
                ":%s is unknown; there are pause, resume, step, save, stop, lr, budget, "
                "rounds, mark, text, svg, quit",
                word);
}

/* The first free name in the working folder; nothing is written over. */
static bool free_name(char *out, size_t size, const char *view, const char *suffix) {
  for (int i = 1; i < 1000; i++) {
    snprintf(out, size, "flotilla-%s-%03d.%s", view, i, suffix);
    if (!fl_fs_exists(out)) return true;
  }
  return false;
}

void tui_action_export(tui_app *a, bool svg) {
  char name[64];
  tui_canvas c = { .ascii = a->settings.ascii };
  fl_buf out = { 0 };
  fl_err err = { 0 };
  int w = a->layout.pane[TUI_PANE_HEADER].w, h = a->layout.pane[TUI_PANE_KEYS].y + 1;
  if (a->layout.too_small || w < 1) w = 100, h = 30; /* nothing was drawn yet */
  int rc = tui_canvas_resize(&c, w, h);
  if (rc == FL_OK) {
    a->message[0] = '\0'; /* of the last export, for one */
    tui_app_draw(a, &c);
    if (svg) tui_export_svg(&out, &c);
    else tui_canvas_text(&c, &out);
    if (!free_name(name, sizeof name, tui_view_names[a->view], svg ? "svg" : "txt"))
      rc = fl_fail(&err, FL_EFAIL, "a thousand exports lie in this folder already; remove some");
    else if (out.oom) rc = FL_ENOMEM;
    else rc = fl_fs_replace(name, out.data, out.len, &err);
  }
  if (rc == FL_OK) tui_app_say(a, false, "written to %s in the folder you started from", name);
  else tui_app_say(a, true, "not written: %s", err.text[0] ? err.text : "no memory");
  fl_buf_release(&out);
  tui_canvas_release(&c);
}
