/* chrome.c - the rows that every view has: header, tabs, status with the time slider, keys. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tui/app.h"
#include "tui/format.h"

typedef struct look {
  const char *mark, *word;
  tui_style style;
} look;

static look state_look(const tui_feed *f) {
  bool server = f->snap.is_server || tui_feed_served(f);
  if (f->caught_up && !f->follow && f->cursor < f->store.n_ticks)
    return (look){ "‖", "a past moment", ST_WARN };
  switch (tui_feed_status(f)) {
  case TUI_FEED_WAITING: return (look){ "○", "waiting for the first event", ST_DIM };
  case TUI_FEED_READING: return (look){ "○", "reading the log", ST_WARN };
  case TUI_FEED_FOREIGN: return (look){ "✗", "this is not an event log of flotilla", ST_BAD };
  case TUI_FEED_LIVE: return (look){ "●", server ? "serving" : "training", ST_GOOD };
  case TUI_FEED_PAUSED: return (look){ "‖", "paused", ST_WARN };
  case TUI_FEED_QUIET: return (look){ "○", "no sign of life", ST_WARN };
  case TUI_FEED_DEAD: return (look){ "✗", "the trainer is gone", ST_BAD };
  case TUI_FEED_DONE: return (look){ "✓", "finished", ST_GOOD };
  case TUI_FEED_STOPPED: return (look){ "■", server ? "stopped" : "stopped, saved", ST_WARN };
  case TUI_FEED_FAILED: return (look){ "✗", "failed", ST_BAD };
  }
  return (look){ "?", "", ST_TEXT };
}

static void draw_progress(const tui_feed *f, tui_canvas *c, int x, int right, int y) {
  const tui_snapshot *s = &f->snap;
  char left[TUI_FMT], total[TUI_FMT], round[TUI_FMT], line[160];
  bool works = f->follow && !(s->is_server || tui_feed_served(f));
  double eta = works ? tui_feed_seconds_left(f) : (double)NAN;
  tui_fmt_u32(round, s->round);
  tui_fmt_u32(total, s->rounds);
  if (s->rounds == TUI_NONE) snprintf(line, sizeof line, "round %s", round);
  else snprintf(line, sizeof line, "round %s/%s", round, total);
  int end = right;
  if (!isnan(eta)) {
    char text[TUI_FMT + 8];
    snprintf(text, sizeof text, "%s left", tui_fmt_secs(left, eta));
    end -= tui_put_right(c, right, y, ST_BOLD, text) + 2;
  }
  if (s->rounds != TUI_NONE && s->rounds > 0 && s->round != TUI_NONE) {
    double part = fmin(1, (double)s->round / s->rounds);
    char text[TUI_FMT];
    tui_fmt_part(text, part);
    end -= tui_put_right(c, end, y, ST_TEXT, text) + 1;
    int cols = end - x - (int)strlen(line) - 2;
    if (cols > 24) cols = 24;
    if (cols >= 6) {
      tui_bar(c, end - cols, y, cols, part, ST_BAR);
      end -= cols + 1;
    }
  }
  if (end - (int)strlen(line) > x) tui_put_right(c, end, y, ST_TEXT, line);
}

static void draw_header(tui_app *a, tui_canvas *c, tui_rect r) {
  const tui_feed *f = tui_app_feed(a);
  char name[96];
  look l = state_look(f);
  tui_canvas_clip(c, r);
  int x = 1 + tui_put(c, 1, r.y, ST_TITLE, "flotilla");
  if (a->n_feeds > 1)
    snprintf(name, sizeof name, "%zu/%zu %.60s", a->current + 1, a->n_feeds, f->label);
  else snprintf(name, sizeof name, "%.80s", f->label);
  x += 2 + tui_put_fit(c, x + 2, r.y, r.w / 5, ST_BOLD, name, strlen(name));
  x += 2 + tui_putf(c, x + 2, r.y, l.style, "%s %s", l.mark, l.word);
  if (!f->caught_up) {
    char part[TUI_FMT];
    x += 1 + tui_put(c, x + 1, r.y, ST_TEXT, tui_fmt_part(part, tui_reader_progress(&f->reader)));
    tui_bar(c, x + 2, r.y, 20, tui_reader_progress(&f->reader), ST_BAR);
    return;
  }
  if (f->snap.round != TUI_NONE || f->snap.rounds != TUI_NONE)
    draw_progress(f, c, x + 1, r.x + r.w - 1, r.y);
}

static void draw_tabs(tui_app *a, tui_canvas *c, tui_rect r) {
  tui_canvas_clip(c, r);
  int x = 1;
  for (int v = 0; v < TUI_VIEWS; v++) {
    bool on = v == (int)a->view;
    char label[32];
    snprintf(label, sizeof label, " %d %s ", v + 1, tui_views[v]->title);
    x += tui_put(c, x, r.y, on ? ST_TAB : ST_DIM, label);
  }
  const tui_feed *f = tui_app_feed(a);
  char text[64] = "";
  size_t bad = f->store.n_damaged + f->reader.n_too_long;
  if (bad) snprintf(text, sizeof text, "%zu damaged line%s", bad, bad == 1 ? "" : "s");
  else if (f->snap.n_errors)
    snprintf(text, sizeof text, "%zu error%s", f->snap.n_errors, f->snap.n_errors == 1 ? "" : "s");
  if (text[0] && (int)strlen(text) < r.w - x - 2) tui_put_right(c, r.w - 1, r.y, ST_WARN, text);
}

/* What somebody who sees the view for the first time wants to know. */
static void view_line(const tui_app *a, const tui_feed *f, char *out, size_t size) {
  static const char *const lines[TUI_VIEWS] = {
    "press Enter to open a document, ? to have this view explained",
    "lower is better; ? explains the curves and the keys",
    "a check mark is on the documents that would answer; ? explains the scores",
    "what was learnt so far answers; ? explains the keys",
    "what the model asked itself and answered: cartridges learn from it; ? explains",
    "? explains the figures"
  };
  const tui_snapshot *s = &f->snap;
  size_t worst = tui_snapshot_worst(s), n;
  char buf[32];
  snprintf(out, size, "%s", lines[a->view]);
  if (a->view != TUI_VIEW_FLEET || worst == SIZE_MAX) return;
  const tui_doc *d = &s->doc[worst];
  const char *by = tui_snapshot_worst_by(s) == TUI_WORST_BY_LOSS ? "loss"
                   : d->composed > d->alone                      ? "held-out loss together"
                                                                 : "held-out loss";
  const char *name = tui_feed_doc_name(f, d, buf, sizeof buf, &n);
  name = tui_text_base(name, &n);
  snprintf(out, size, "worst now: %.*s, by its %s; Enter opens a document, ? explains",
           (int)tui_text_fit(name, n, 24), name, by);
}

/* A sentence when nothing else has to be said. */
static void idle_line(const tui_app *a, const tui_feed *f, char *out, size_t size) {
  char ago[TUI_FMT], round[TUI_FMT];
  const tui_snapshot *s = &f->snap;
  out[0] = '\0';
  if (f->error[0]) {
    snprintf(out, size, "%s", f->error);
    return;
  }
  switch (tui_feed_status(f)) {
  case TUI_FEED_WAITING:
    snprintf(out, size, "nothing was logged yet; this screen fills by itself as soon as it is");
    break;
  case TUI_FEED_DEAD:
    tui_fmt_u32(round, s->saved_round);
    snprintf(out, size,
             "the trainer is gone; saved at round %s; `flotilla train --resume` "
             "goes on",
             round);
    break;
  case TUI_FEED_QUIET:
    snprintf(out, size, "no end was logged and nobody answers; last event %s",
             tui_fmt_ago(ago, s->t, fl_wall_s()));
    break;
  case TUI_FEED_FOREIGN:
    snprintf(out, size, "%zu lines and not one event in them: %s", f->store.n_lines,
             f->reader.path);
    break;
  case TUI_FEED_LIVE:
  case TUI_FEED_PAUSED: view_line(a, f, out, size); break;
  default: break;
  }
}

static bool slider_shown(const tui_app *a, const tui_feed *f) {
  tui_feed_state st = tui_feed_status(f);
  if (f->store.n_ticks == 0 || !f->caught_up) return false;
  return !f->follow || a->playing || st == TUI_FEED_DONE || st == TUI_FEED_STOPPED ||
         st == TUI_FEED_FAILED;
}

enum { SLIDER_LEFT = 3, SLIDER_RIGHT = 39 };

static void draw_slider(const tui_app *a, const tui_feed *f, tui_canvas *c, tui_rect r) {
  char clock[TUI_FMT], text[96];
  int cols = r.w - SLIDER_LEFT - SLIDER_RIGHT - 1;
  double part = (double)f->cursor / (double)f->store.n_ticks;
  tui_put(c, 1, r.y, ST_BOLD, a->playing ? "▶" : f->follow ? "■" : "‖");
  int knob = SLIDER_LEFT + (int)lround(part * (cols - 1));
  tui_fill(c, (tui_rect){ SLIDER_LEFT, r.y, cols, 1 }, ST_FRAME, 0x2500);
  tui_fill(c, (tui_rect){ SLIDER_LEFT, r.y, knob - SLIDER_LEFT, 1 }, ST_BAR, 0x2550);
  tui_put(c, knob, r.y, ST_BOLD, "●");
  snprintf(text, sizeof text, "%s  ×%g  Space , . < >", tui_fmt_date(clock, f->snap.t), a->speed);
  tui_put_fit(c, r.w - SLIDER_RIGHT + 1, r.y, SLIDER_RIGHT - 2, ST_DIM, text, strlen(text));
}

static void draw_status(tui_app *a, tui_canvas *c, tui_rect r) {
  static const char *const prompts[] = { "", "search: ", "filter: ", ":" };
  const tui_feed *f = tui_app_feed(a);
  char line[512];
  tui_canvas_clip(c, r);
  if (a->prompt != TUI_ASK_NOTHING) {
    int x = 1 + tui_put(c, 1, r.y, ST_BOLD, prompts[a->prompt]);
    tui_edit_draw(&a->prompt_edit, c, x, r.y, r.w - x - 1, true);
    return;
  }
  if (a->message[0]) {
    tui_put_fit(c, 1, r.y, r.w - 2, a->message_is_error ? ST_BAD : ST_GOOD, a->message,
                strlen(a->message));
    return;
  }
  if (tui_app_leaves_in(a)) {
    tui_putf(c, 1, r.y, ST_BOLD, "The run has ended; this screen closes in %d s, any key keeps it.",
             tui_app_leaves_in(a));
    return;
  }
  if (slider_shown(a, f)) {
    draw_slider(a, f, c, r);
    return;
  }
  tui_feed_state st = tui_feed_status(f);
  bool works = !f->error[0] && (st == TUI_FEED_LIVE || st == TUI_FEED_PAUSED);
  idle_line(a, f, line, sizeof line);
  tui_style style = f->error[0] ? ST_BAD : works ? ST_DIM : ST_WARN;
  tui_put_fit(c, 1, r.y, r.w - 2, style, line, strlen(line));
}

typedef struct hint {
  const char *key, *label;
  uint32_t n;  /* function key */
  int dropped; /* on a narrow screen the highest go first */
} hint;

static const hint hints[] = { { "F1", "Help", 1, 0 },   { "F2", "Setup", 2, 5 },
                              { "F3", "Search", 3, 2 }, { "F4", "Filter", 4, 7 },
                              { "F5", "Pause", 5, 3 },  { "F6", "Sort", 6, 4 },
                              { "F7", "Open", 7, 6 },   { "F8", "Save", 8, 8 },
                              { "F9", "Menu", 9, 1 },   { "F10", "Quit", 10, 0 } };
enum { HINTS = sizeof hints / sizeof *hints, ROOMY = 110 };

/* What F6 and F7 do depends on the view. */
static const char *label_of(const tui_app *a, size_t i) {
  static const char *const six[TUI_VIEWS] = { "Sort", "Curves", "", "", "Reject", "" };
  static const char *const seven[TUI_VIEWS] = { "Open", "Smooth", "", "Bare", "Cover", "" };
  if (hints[i].n == 5 && tui_feed_status(&a->feed[a->current]) == TUI_FEED_PAUSED) return "Go on";
  if (hints[i].n == 6) return six[a->view];
  if (hints[i].n == 7) return seven[a->view];
  return hints[i].label;
}

/* Columns of one hint with the blank behind it; 0: it has nothing to do here. */
static int hint_width(const tui_app *a, size_t i, int screen_w) {
  const char *label = label_of(a, i);
  if (!label[0]) return 0;
  int n = (int)strlen(label);
  return (int)strlen(hints[i].key) + (screen_w >= ROOMY && n < 6 ? 6 : n) + 1;
}

/* Hints that are dropped more readily than this are left out. */
static int rank_that_fits(const tui_app *a, int screen_w) {
  for (int rank = HINTS; rank > 0; rank--) {
    int w = -1; /* the last blank may fall off the screen */
    for (size_t i = 0; i < HINTS; i++)
      if (hints[i].dropped <= rank) w += hint_width(a, i, screen_w);
    if (w <= screen_w) return rank;
  }
  return 0;
}

/* Draws the row, or with `at` >= 0 finds the key under that column (0: none). */
static uint32_t key_row(const tui_app *a, tui_canvas *c, tui_rect r, int at) {
  int x = 0, rank = rank_that_fits(a, r.w);
  for (size_t i = 0; i < HINTS; i++) {
    int w = hint_width(a, i, r.w);
    if (w == 0 || hints[i].dropped > rank) continue;
    if (at >= x && at < x + w) return hints[i].n;
    if (c) {
      int n = tui_put(c, x, r.y, ST_KEY, hints[i].key);
      tui_fill(c, (tui_rect){ x + n, r.y, w - n - 1, 1 }, ST_KEYBAR, ' ');
      tui_put(c, x + n, r.y, ST_KEYBAR, label_of(a, i));
    }
    x += w;
  }
  return 0;
}

void tui_chrome_draw(tui_app *a, tui_canvas *c) {
  const tui_rect *pane = a->layout.pane;
  draw_header(a, c, pane[TUI_PANE_HEADER]);
  draw_tabs(a, c, pane[TUI_PANE_TABS]);
  draw_status(a, c, pane[TUI_PANE_STATUS]);
  tui_canvas_clip(c, pane[TUI_PANE_KEYS]);
  key_row(a, c, pane[TUI_PANE_KEYS], -1);
}

void tui_chrome_too_small(tui_canvas *c) {
  char line[120];
  snprintf(line, sizeof line, "Flotilla needs a terminal of %d by %d; this one has %d by %d.",
           TUI_MIN_W, TUI_MIN_H, c->w, c->h);
  size_t at = 0, len = strlen(line), n;
  const char *row;
  for (int y = 0; tui_text_wrap(line, len, (size_t)c->w, &at, &row, &n); y++)
    tui_put_fit(c, 0, y, c->w, ST_TEXT, row, n);
}

bool tui_chrome_mouse(tui_app *a, const tui_key *k) {
  const tui_rect *pane = a->layout.pane;
  tui_feed *f = tui_app_feed(a);
  if (a->layout.too_small || k->mouse != TUI_MOUSE_PRESS) return false;
  if (k->y == pane[TUI_PANE_TABS].y) {
    int x = 1;
    for (int v = 0; v < TUI_VIEWS; v++) {
      int w = 4 + (int)strlen(tui_views[v]->title);
      if (k->x >= x && k->x < x + w) tui_app_show(a, (tui_view_id)v);
      x += w;
    }
    return true;
  }
  if (k->y == pane[TUI_PANE_KEYS].y) {
    uint32_t n = key_row(a, NULL, pane[TUI_PANE_KEYS], k->x);
    if (n) tui_app_key(a, &(tui_key){ .code = TUI_KEY_F, .cp = n });
    return true;
  }
  if (k->y == pane[TUI_PANE_STATUS].y && slider_shown(a, f) && !a->message[0]) {
    int cols = pane[TUI_PANE_STATUS].w - SLIDER_LEFT - SLIDER_RIGHT - 1;
    double part = (double)(k->x - SLIDER_LEFT) / (cols > 1 ? cols - 1 : 1);
    if (part >= -0.02 && part <= 1.02)
      tui_feed_seek(f, (size_t)(fmax(0, fmin(1, part)) * (double)f->store.n_ticks));
    a->play_t = f->snap.t;
    return true;
  }
  return false;
}
