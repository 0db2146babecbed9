/* overlay.c - what lies over a view: help, the control menu, settings, the question at a stop. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/app.h"

/* --- help ------------------------------------------------------------------------------------ */

static const char *const common_help[][2] = {
  { "1-6, Tab", "switch the view" },
  { "? F1", "this help" },
  { "q F10", "leave; training goes on without this screen" },
  { "/ F3, n N", "search a document by name; next, previous" },
  { "\\ F4", "show only documents whose name contains a text" },
  { "p F5", "pause training, and go on" },
  { "t", "one round while paused" },
  { "S F8", "save now" },
  { "X", "stop after this round (asks first)" },
  { "F9", "all of these, and the budget, the learning rate, the rounds" },
  { ":", "a command: lr 0.001, budget 6, rounds 40, mark, text, svg, quit" },
  { "e E", "write this view to a file as text, as SVG" },
  { "Space", "play a run back from where it stands, and halt" },
  { ", .", "one round back, one on" },
  { "< >", "a twentieth of the run back, on" },
  { "[ ]", "playback slower, faster" },
  { "f", "follow: back to the newest" },
  { "r", "the next fleet, where several are watched" },
  { "F2", "settings: colours, ASCII, mouse" },
  { NULL, NULL }
};

static size_t help_rows(const char *const (*h)[2]) {
  size_t n = 0;
  while (h[n][0]) n++;
  return n;
}

static int help_section(tui_canvas *c, tui_rect r, int y, const char *title,
                        const char *const (*h)[2]) {
  if (y >= r.y) tui_put(c, r.x + 1, y, ST_TITLE, title);
  y++;
  for (; (*h)[0]; h++, y++) {
    if (y < r.y) continue;
    tui_put_fit(c, r.x + 2, y, 11, ST_KEY, (*h)[0], strlen((*h)[0]));
    tui_put_fit(c, r.x + 14, y, r.w - 15, ST_TEXT, (*h)[1], strlen((*h)[1]));
  }
  return y + 1;
}

static tui_rect box(tui_canvas *c, int w, int h, const char *title) {
  if (w > c->w - 2) w = c->w - 2;
  if (h > c->h - 2) h = c->h - 2;
  tui_rect r = { (c->w - w) / 2, (c->h - h) / 2, w, h };
  tui_fill(c, r, ST_TEXT, ' ');
  tui_rect inside = tui_frame(c, r, title);
  tui_canvas_clip(c, inside);
  c->cursor_x = c->cursor_y = -1;
  return inside;
}

static void draw_help(tui_app *a, tui_canvas *c) {
  const tui_view *v = tui_views[a->view];
  char title[64];
  size_t rows = help_rows(v->help) + help_rows(common_help) + 3;
  tui_rect r = box(c, 78, (int)rows + 2, "Help - arrows scroll, any other key closes");
  size_t most = rows > (size_t)r.h ? rows - (size_t)r.h : 0;
  if (a->help_scroll > most) a->help_scroll = most;
  snprintf(title, sizeof title, "In this view (%s)", v->title);
  int y = help_section(c, r, r.y - (int)a->help_scroll, title, v->help);
  help_section(c, r, y, "Everywhere", common_help);
}

/* --- menu ------------------------------------------------------------------------------------ */

typedef struct item {
  const char *label, *key;
  const char *cmd;    /* sent at once; NULL: see `prompt` */
  const char *prompt; /* a command line to complete */
} item;

static const item menu[] = {
  { "Pause training", "p", "pause", NULL },
  { "Go on", "p", "resume", NULL },
  { "One round", "t", "step", NULL },
  { "Save now", "S", "save", NULL },
  { "Stop after this round", "X", "stop", NULL },
  { "Set the budget of documents in memory...", ":budget", NULL, "budget " },
  { "Set the learning rate...", ":lr", NULL, "lr " },
  { "Set the number of rounds...", ":rounds", NULL, "rounds " },
  { "Mark the selected document", ":mark", NULL, "mark on" },
  { "Write this view as text", "e", NULL, "text" },
  { "Write this view as SVG", "E", NULL, "svg" },
};
enum { MENU = sizeof menu / sizeof *menu };

static void draw_menu(tui_app *a, tui_canvas *c) {
  tui_rect r = box(c, 58, MENU + 2,
                   tui_action_live(a) ? "Control" : "Control - nothing runs on this fleet now");
  for (size_t i = 0; i < MENU; i++) {
    tui_style st = i == a->overlay_row ? ST_SELECT : ST_TEXT;
    int y = r.y + (int)i;
    if (st == ST_SELECT) tui_fill(c, (tui_rect){ r.x, y, r.w, 1 }, st, ' ');
    tui_put_fit(c, r.x + 1, y, r.w - 11, st, menu[i].label, strlen(menu[i].label));
    tui_put_right(c, r.x + r.w - 1, y, st == ST_SELECT ? st : ST_DIM, menu[i].key);
  }
}

static void menu_chosen(tui_app *a, const item *it) {
  a->overlay = TUI_OVER_NONE;
  if (it->cmd && strcmp(it->cmd, "stop") == 0) {
    a->overlay = TUI_OVER_STOP;
  } else if (it->cmd) {
    tui_action_send(a, it->cmd, NULL, NAN);
  } else if (it->prompt[strlen(it->prompt) - 1] == ' ') {
    a->prompt = TUI_ASK_COMMAND;
    tui_edit_set(&a->prompt_edit, it->prompt);
  } else {
    tui_action_command(a, it->prompt);
  }
}

/* --- settings -------------------------------------------------------------------------------- */

enum { SETUP_COLOR, SETUP_ASCII, SETUP_MOUSE, SETUP_LOG, SETUP_HELD, SETUP_ROWS };

static const char *onoff(bool b) { return b ? "on" : "off"; }

static void draw_setup(tui_app *a, tui_canvas *c) {
  static const char *const colors[] = { "as the terminal can", "none", "8", "16", "256" };
  const tui_settings *s = &a->settings;
  const char *rows[SETUP_ROWS][2] = { { "Colours", colors[s->color] },
                                      { "ASCII drawing", onoff(s->ascii) },
                                      { "Mouse (from the next start)", onoff(s->mouse) },
                                      { "Loss on a log scale", onoff(s->log_scale) },
                                      { "Held-out curves", onoff(s->held_out) } };
  tui_rect r = box(c, 58, SETUP_ROWS + 3, "Settings - Enter changes, Esc closes");
  for (size_t i = 0; i < SETUP_ROWS; i++) {
    tui_style st = i == a->overlay_row ? ST_SELECT : ST_TEXT;
    int y = r.y + (int)i;
    if (st == ST_SELECT) tui_fill(c, (tui_rect){ r.x, y, r.w, 1 }, st, ' ');
    tui_put(c, r.x + 1, y, st, rows[i][0]);
    tui_put_right(c, r.x + r.w - 1, y, st, rows[i][1]);
  }
  tui_put(c, r.x + 1, r.y + SETUP_ROWS, ST_DIM, "kept in ~/.config/flotilla/watch.conf");
}

static void setup_change(tui_app *a, size_t row) {
  tui_settings *s = &a->settings;
  a->settings_changed = true;
  switch (row) {
  case SETUP_COLOR: s->color = (s->color + 1) % 5; break;
  case SETUP_ASCII: s->ascii = !s->ascii; break;
  case SETUP_MOUSE: s->mouse = !s->mouse; break;
  case SETUP_LOG: s->log_scale = !s->log_scale; break;
  case SETUP_HELD: s->held_out = !s->held_out; break;
  default: break;
  }
}

/* --- stop ------------------------------------------------------------------------------------ */

static void draw_stop(tui_canvas *c) {
  tui_rect r = box(c, 60, 5, "Stop training?");
  tui_put(c, r.x + 1, r.y, ST_TEXT, "The round is finished and everything is saved;");
  tui_put(c, r.x + 1, r.y + 1, ST_TEXT, "`flotilla train --resume` goes on from there.");
  tui_put(c, r.x + 1, r.y + 2, ST_BOLD, "y: stop    any other key: go on training");
}

/* --- together -------------------------------------------------------------------------------- */

void tui_overlay_draw(tui_app *a, tui_canvas *c) {
  switch (a->overlay) {
  case TUI_OVER_NONE: return;
  case TUI_OVER_HELP: draw_help(a, c); break;
  case TUI_OVER_MENU: draw_menu(a, c); break;
  case TUI_OVER_SETUP: draw_setup(a, c); break;
  case TUI_OVER_STOP: draw_stop(c); break;
  }
  tui_canvas_clip(c, (tui_rect){ 0, 0, c->w, c->h });
}

static bool is_up(const tui_key *k) {
  return k->code == TUI_KEY_UP || tui_key_is(k, 'k') ||
         (k->code == TUI_KEY_MOUSE && k->mouse == TUI_MOUSE_WHEEL_UP);
}

static bool is_down(const tui_key *k) {
  return k->code == TUI_KEY_DOWN || tui_key_is(k, 'j') ||
         (k->code == TUI_KEY_MOUSE && k->mouse == TUI_MOUSE_WHEEL_DOWN);
}

static void help_key(tui_app *a, const tui_key *k) {
  if (is_up(k)) a->help_scroll -= a->help_scroll > 0;
  else if (is_down(k)) a->help_scroll++;
  else if (k->code == TUI_KEY_PAGE_UP) a->help_scroll -= a->help_scroll < 10 ? a->help_scroll : 10;
  else if (k->code == TUI_KEY_PAGE_DOWN || tui_key_is(k, ' ')) a->help_scroll += 10;
  else a->overlay = TUI_OVER_NONE;
}

static void list_key(tui_app *a, const tui_key *k, size_t rows) {
  bool enter = k->code == TUI_KEY_ENTER || tui_key_is(k, ' ');
  if (is_up(k)) a->overlay_row = a->overlay_row ? a->overlay_row - 1 : rows - 1;
  else if (is_down(k)) a->overlay_row = (a->overlay_row + 1) % rows;
  else if (enter && a->overlay == TUI_OVER_MENU) menu_chosen(a, &menu[a->overlay_row]);
  else if (enter) setup_change(a, a->overlay_row);
  else a->overlay = TUI_OVER_NONE;
}

bool tui_overlay_key(tui_app *a, const tui_key *k) {
  switch (a->overlay) {
  case TUI_OVER_NONE: return false;
  case TUI_OVER_HELP: help_key(a, k); break;
  case TUI_OVER_MENU: list_key(a, k, MENU); break;
  case TUI_OVER_SETUP: list_key(a, k, SETUP_ROWS); break;
  case TUI_OVER_STOP:
    a->overlay = TUI_OVER_NONE;
    if (tui_key_is(k, 'y') || tui_key_is(k, 'Y')) tui_action_send(a, "stop", NULL, NAN);
    else tui_app_say(a, false, "training goes on");
    break;
  }
  return true;
}
