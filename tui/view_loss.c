/* view_loss.c - curves over rounds: the fleet, one document, the worst ones, several runs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tui/app.h"
#include "tui/braille.h"
#include "tui/format.h"

/* settings.curves */
enum { SHOW_FLEET, SHOW_ONE, SHOW_WORST, SHOW_RUNS, SHOW_MODES };

static const char *const mode_names[] = { "the fleet", "the selected document",
                                          "the worst documents", "all runs" };

typedef struct curve {
  const tui_series *series;
  char name[64];
  tui_style style;
  bool raw; /* the unsmoothed points show behind it */
} curve;

typedef struct curves {
  curve c[TUI_CURVES];
  size_t n;
} curves;

static void add(curves *cs, const tui_series *s, bool raw, const char *name, size_t len) {
  if (cs->n == TUI_CURVES || s->n == 0) return;
  curve *c = &cs->c[cs->n];
  len = tui_text_fit(name, len < sizeof c->name ? len : sizeof c->name - 1, sizeof c->name);
  *c = (curve){ .series = s, .style = (tui_style)(ST_CURVE0 + cs->n), .raw = raw };
  memcpy(c->name, name, len);
  c->name[len] = '\0';
  cs->n++;
}

static void add_text(curves *cs, const tui_series *s, bool raw, const char *name) {
  add(cs, s, raw, name, strlen(name));
}

static void add_all(curves *cs, const tui_curves *of, bool held_out) {
  add_text(cs, &of->loss, true, "loss");
  if (!held_out) return;
  add_text(cs, &of->alone, false, "held-out, alone");
  add_text(cs, &of->composed, false, "held-out, together");
  add_text(cs, &of->teacher, false, "the teacher's own");
}

static void add_worst(tui_app *a, curves *cs) {
  const tui_feed *f = tui_app_feed(a);
  const tui_snapshot *s = &f->snap;
  double below = INFINITY;
  tui_worst_by by = tui_snapshot_worst_by(s);
  uint32_t after = 0; /* among equals, by place */
  while (cs->n < TUI_CURVES) {
    const tui_doc *best = NULL;
    for (size_t i = 0; i < s->n_docs; i++) {
      const tui_doc *d = &s->doc[i];
      double b = tui_doc_badness(s, d, by);
      bool later = b < below || (b == below && i >= after);
      if (isnan(b) || d->curves.loss.n == 0 || !later) continue;
      if (!best || b > tui_doc_badness(s, best, by)) best = d;
    }
    if (!best) return;
    below = tui_doc_badness(s, best, by);
    after = (uint32_t)(best - s->doc) + 1;
    char buf[32];
    size_t n;
    const char *name = tui_feed_doc_name(f, best, buf, sizeof buf, &n);
    add(cs, &best->curves.loss, false, name, n);
  }
}

static curves choose(tui_app *a) {
  curves cs = { .n = 0 };
  const tui_snapshot *s = tui_app_snap(a);
  const tui_doc *d;
  bool held = a->settings.held_out;
  switch (a->settings.curves) {
  case SHOW_ONE:
    d = tui_fleet_selected(a);
    if (d) add_all(&cs, &d->curves, held);
    break;
  case SHOW_WORST: add_worst(a, &cs); break;
  case SHOW_RUNS:
    for (size_t i = 0; i < a->n_feeds; i++)
      add_text(&cs, &a->feed[i].snap.curves.loss, false, a->feed[i].label);
    for (size_t i = 0; held && i < a->n_feeds; i++) {
      char name[64];
      snprintf(name, sizeof name, "%.40s, held-out", a->feed[i].label);
      add_text(&cs, &a->feed[i].snap.curves.alone, false, name);
    }
    break;
  default: add_all(&cs, &s->curves, held); break;
  }
  return cs;
}

/* --- the window ------------------------------------------------------------------------------ */

static double last_round(const curves *cs) {
  double last = 1;
  for (size_t i = 0; i < cs->n; i++) {
    const tui_series *s = cs->c[i].series;
    last = fmax(last, s->point[s->n - 1].x);
  }
  return last;
}

static void fit_window(tui_loss_state *st, const curves *cs) {
  double end = last_round(cs) + 1;
  if (st->fit) {
    st->x0 = 0;
    st->x1 = end;
    return;
  }
  double width = fmin(fmax(st->x1 - st->x0, 4), fmax(end, 4));
  st->x0 = fmax(0, fmin(st->x0, end - width));
  st->x1 = st->x0 + width;
}

static double cursor_of(const tui_loss_state *st, const curves *cs) {
  double at = isnan(st->cursor) ? last_round(cs) : st->cursor;
  return fmin(fmax(at, 0), last_round(cs));
}

/* --- the plot -------------------------------------------------------------------------------- */

typedef struct axis {
  double lo, hi;
  bool log;
} axis;

static double to_axis(const axis *ax, double y) { return ax->log ? log10(y) : y; }

static axis find_axis(const tui_column *col, size_t n, bool log_scale) {
  axis ax = { INFINITY, -INFINITY, log_scale };
  for (size_t i = 0; i < n; i++)
    for (int k = 0; k < 2; k++) {
      double y = (double)(k ? col[i].smooth : col[i].mean);
      if (col[i].n == 0 || !isfinite(y)) continue;
      ax.lo = fmin(ax.lo, y);
      ax.hi = fmax(ax.hi, y);
    }
  if (!(ax.lo <= ax.hi)) ax.lo = 0, ax.hi = 1;
  if (ax.log && ax.lo <= 0) ax.log = false;
  ax.lo = to_axis(&ax, ax.lo);
  ax.hi = to_axis(&ax, ax.hi);
  double pad = fmax((ax.hi - ax.lo) * 0.05, ax.log ? 0.01 : 1e-4);
  ax.lo -= pad;
  ax.hi += pad;
  return ax;
}

static int dot_row(const axis *ax, double y, int h) {
  double part = (ax->hi - to_axis(ax, y)) / (ax->hi - ax->lo);
  return (int)lround(fmin(fmax(part, 0), 1) * (4 * h - 1));
}

static void plot_curve(tui_plot *p, const axis *ax, const tui_column *col, bool smooth,
                       tui_style st) {
  int px = -1, py = 0;
  for (int x = 0; x < 2 * p->w; x++) {
    double y = (double)(smooth ? col[x].smooth : col[x].mean);
    if (col[x].n == 0 || !isfinite(y)) continue;
    int row = dot_row(ax, y, p->h);
    if (px < 0) tui_plot_dot(p, x, row, st);
    else tui_plot_line(p, px, py, x, row, st);
    px = x;
    py = row;
  }
}

static void plot_curves(tui_app *a, tui_plot *p, const curves *cs, const tui_column *col,
                        const axis *ax) {
  size_t n = 2 * (size_t)p->w;
  for (int pass = 0; pass < 2; pass++) /* what lies behind first; the first curve on top */
    for (size_t i = cs->n; i-- > 0;) {
      bool smooth = a->settings.smoothing > 0 && (cs->c[i].raw || a->settings.curves >= SHOW_WORST);
      if (pass == 0 && !(smooth && cs->c[i].raw)) continue;
      plot_curve(p, ax, col + i * n, pass == 1 && smooth, pass == 0 ? ST_FRAME : cs->c[i].style);
    }
}

static void draw_axes(tui_canvas *c, tui_rect r, const axis *ax, const tui_loss_state *st) {
  char buf[TUI_FMT];
  int steps = r.h >= 16 ? 4 : r.h >= 6 ? 2 : 1;
  for (int i = 0; i <= steps; i++) {
    double v = ax->hi - (ax->hi - ax->lo) * i / steps;
    int y = r.y + (int)lround((double)(r.h - 1) * i / steps);
    tui_put_right(c, r.x - 1, y, ST_DIM, tui_fmt_num(buf, ax->log ? pow(10, v) : v, 2));
  }
  int marks = r.w >= 60 ? 4 : 2;
  for (int i = 0; i <= marks; i++) {
    double v = st->x0 + (st->x1 - 1 - st->x0) * i / marks;
    snprintf(buf, sizeof buf, "%.0f", v);
    int w = (int)strlen(buf), x = r.x + (int)lround((double)(r.w - 1) * i / marks);
    x = i == 0 ? x : i == marks ? x - w + 1 : x - w / 2;
    tui_put(c, x, r.y + r.h, ST_DIM, buf);
  }
}

static void draw_plot(tui_app *a, tui_canvas *c, tui_rect frame, const curves *cs) {
  tui_loss_state *st = &a->loss;
  char title[160];
  snprintf(title, sizeof title, "Loss by round: %s%s", mode_names[a->settings.curves],
           a->settings.log_scale ? " (log scale)" : "");
  tui_rect in = tui_frame(c, frame, title);
  tui_rect r = { in.x + 8, in.y, in.w - 8, in.h - 1 };
  st->plot = r;
  if (r.w < 4 || r.h < 2) return;
  tui_canvas_clip(c, in);
  if (cs->n == 0) {
    tui_put(c, r.x + 2, r.y + r.h / 2, ST_DIM,
            "no rounds yet; the curve begins with the first one");
    return;
  }
  size_t n = 2 * (size_t)r.w;
  tui_column *col = fl_calloc(cs->n * n, sizeof *col);
  tui_plot plot = { 0 };
  if (col && tui_plot_init(&plot, r.w, r.h) == FL_OK) {
    for (size_t i = 0; i < cs->n; i++)
      tui_series_columns(cs->c[i].series, st->x0, st->x1, a->settings.smoothing, col + i * n, n);
    axis ax = find_axis(col, cs->n * n, a->settings.log_scale);
    int cx = r.x + (int)((cursor_of(st, cs) - st->x0) / (st->x1 - st->x0) * r.w);
    if (cx >= r.x && cx < r.x + r.w) tui_fill(c, (tui_rect){ cx, r.y, 1, r.h }, ST_FRAME, 0x2502);
    plot_curves(a, &plot, cs, col, &ax);
    tui_plot_draw(&plot, c, r.x, r.y);
    draw_axes(c, r, &ax, st);
  }
  tui_plot_release(&plot);
  fl_free(col);
}

/* --- reading and legend ---------------------------------------------------------------------- */

static void draw_reading(tui_app *a, tui_canvas *c, tui_rect r, const curves *cs) {
  char v1[TUI_FMT], v2[TUI_FMT], v3[TUI_FMT], v4[TUI_FMT];
  const tui_snapshot *s = tui_app_snap(a);
  tui_canvas_clip(c, r);
  tui_putf(c, 1, r.y, ST_TEXT, "now: loss %s, mean of 20 rounds %s, learning rate %s, gradient %s",
           tui_fmt_num(v1, s->loss, 3), tui_fmt_num(v2, s->loss_mean, 3), tui_fmt_sci(v3, s->lr),
           tui_fmt_num(v4, s->grad_norm, 2));
  if (cs->n == 0) return;
  uint32_t at = (uint32_t)cursor_of(&a->loss, cs);
  bool last = isnan(a->loss.cursor);
  int x = 1 + tui_putf(c, 1, r.y + 1, ST_BOLD, "round %u%s", at, last ? " (the last)" : "");
  if (a->settings.smoothing)
    x += tui_putf(c, x, r.y + 1, ST_DIM, ", smoothed over %d", a->settings.smoothing);
  static const char keys[] = "c curves  s smooth  y log  + - zoom  arrows read";
  if (x + (int)sizeof keys < r.w) tui_put_right(c, r.w - 1, r.y + 1, ST_DIM, keys);
}

/* The value at a round; of a curve that ended earlier its last one, and where that was. */
static void value_at(char *out, size_t size, const tui_series *s, uint32_t at) {
  char v[TUI_FMT];
  uint32_t last = s->point[s->n - 1].x;
  tui_fmt_num(v, tui_series_at(s, at), 3);
  if (at > last) snprintf(out, size, "%s at %u", v, last);
  else snprintf(out, size, "%s", v);
}

static void draw_legend(tui_app *a, tui_canvas *c, tui_rect r, const curves *cs, bool beside) {
  tui_canvas_clip(c, r);
  if (beside) r = tui_frame(c, r, "Curves");
  char text[2 * TUI_FMT];
  int x = r.x + 1, y = r.y;
  uint32_t at = cs->n ? (uint32_t)cursor_of(&a->loss, cs) : 0;
  for (size_t i = 0; i < cs->n; i++) {
    const curve *cv = &cs->c[i];
    value_at(text, sizeof text, cv->series, at);
    int room = beside ? r.w - 5 - (int)strlen(text) : 22;
    if (!beside && x + room + 10 > r.w && x > r.x + 1) x = r.x + 1, y++;
    if (y >= r.y + r.h) return;
    tui_putf(c, x, y, cv->style, "%zu", i + 1);
    int used = tui_put_fit(c, x + 2, y, room, cv->style, cv->name, strlen(cv->name));
    if (beside) {
      tui_put_right(c, r.x + r.w - 1, y++, ST_TEXT, text);
      continue;
    }
    x += 3 + used;
    x += 2 + tui_put(c, x, y, ST_TEXT, text);
  }
  if (!beside) return;
  y = r.y + r.h - 5;
  if (y <= r.y + (int)cs->n) return;
  static const char *const keys[] = { "c  other curves", "s  smoothing", "y  log scale",
                                      "+ -  zoom   PgUp PgDn  pan", "arrows  cursor   0  all" };
  for (size_t i = 0; i < 5; i++) tui_put(c, r.x + 1, y + (int)i, ST_DIM, keys[i]);
}

static void draw(tui_app *a, tui_canvas *c) {
  const tui_rect *pane = a->layout.pane;
  curves cs = choose(a);
  fit_window(&a->loss, &cs);
  draw_reading(a, c, pane[TUI_PANE_TOP], &cs);
  tui_canvas_clip(c, pane[TUI_PANE_MAIN]);
  draw_plot(a, c, pane[TUI_PANE_MAIN], &cs);
  bool beside = pane[TUI_PANE_SIDE].w > 0;
  draw_legend(a, c, pane[beside ? TUI_PANE_SIDE : TUI_PANE_LOWER], &cs, beside);
}

/* --- keys ------------------------------------------------------------------------------------ */

static void next_smoothing(tui_app *a) {
  static const int steps[] = { 0, 5, 20, 100, 500 };
  size_t i = 0;
  while (i < 5 && steps[i] <= a->settings.smoothing) i++;
  a->settings.smoothing = steps[i % 5];
  a->settings_changed = true;
  if (a->settings.smoothing == 0) tui_app_say(a, false, "smoothing off");
  else tui_app_say(a, false, "smoothing: a round counts half after %d", a->settings.smoothing);
}

static void next_mode(tui_app *a) {
  tui_settings *s = &a->settings;
  s->curves = (s->curves + 1) % (a->n_feeds > 1 ? SHOW_MODES : SHOW_RUNS);
  a->settings_changed = true;
  tui_app_say(a, false, "curves of %s", mode_names[s->curves]);
}

static void zoom(tui_app *a, double factor) {
  tui_loss_state *st = &a->loss;
  curves cs = choose(a);
  double at = fmin(fmax(cursor_of(st, &cs), st->x0), st->x1);
  double width = (st->x1 - st->x0) * factor;
  double part = (at - st->x0) / (st->x1 - st->x0);
  st->fit = width >= last_round(&cs) + 1;
  st->x0 = at - width * part;
  st->x1 = st->x0 + width;
}

static void pan(tui_app *a, double part) {
  tui_loss_state *st = &a->loss;
  double by = (st->x1 - st->x0) * part;
  if (st->fit) return;
  st->x0 += by;
  st->x1 += by;
}

/* The cursor goes on by one column, at least one round; the window follows it. */
static void move_cursor(tui_app *a, int direction) {
  tui_loss_state *st = &a->loss;
  curves cs = choose(a);
  double step = st->plot.w > 0 ? fmax(1, floor((st->x1 - st->x0) / st->plot.w)) : 1;
  st->cursor = fmax(0, cursor_of(st, &cs) + direction * step);
  if (st->cursor >= last_round(&cs)) st->cursor = NAN;
  else if (!st->fit && st->cursor < st->x0) pan(a, -0.5);
  else if (!st->fit && st->cursor >= st->x1) pan(a, 0.5);
}

static void other_document(tui_app *a, int direction) {
  const tui_snapshot *s = tui_app_snap(a);
  const tui_doc *d = tui_fleet_selected(a);
  if (!d) return;
  size_t n = s->n_docs, at = (size_t)(d - s->doc);
  a->fleet.selected = s->doc[(at + (direction > 0 ? 1 : n - 1)) % n].id;
}

static bool mouse(tui_app *a, const tui_key *k) {
  const tui_rect *p = &a->loss.plot;
  if (k->mouse == TUI_MOUSE_WHEEL_UP) zoom(a, 0.5);
  else if (k->mouse == TUI_MOUSE_WHEEL_DOWN) zoom(a, 2);
  else if (k->x >= p->x && k->x < p->x + p->w && k->y >= p->y && k->y < p->y + p->h)
    a->loss.cursor = a->loss.x0 + (k->x - p->x) * (a->loss.x1 - a->loss.x0) / p->w;
  else return false;
  return true;
}

static bool letter(tui_app *a, uint32_t cp) {
  switch (cp) {
  case 'h': move_cursor(a, -1); return true;
  case 'l': move_cursor(a, 1); return true;
  case 'j': other_document(a, 1); return true;
  case 'k': other_document(a, -1); return true;
  case '+':
  case '=': zoom(a, 0.5); return true;
  case '-': zoom(a, 2); return true;
  case '0':
    a->loss.fit = true;
    a->loss.cursor = NAN;
    return true;
  case 's': next_smoothing(a); return true;
  case 'c': next_mode(a); return true;
  case 'y':
    a->settings.log_scale = !a->settings.log_scale;
    a->settings_changed = true;
    return true;
  case 'o':
    a->settings.held_out = !a->settings.held_out;
    a->settings_changed = true;
    return true;
  default: return false;
  }
}

static bool key(tui_app *a, const tui_key *k) {
  switch (k->code) {
  case TUI_KEY_LEFT: move_cursor(a, -1); return true;
  case TUI_KEY_RIGHT: move_cursor(a, 1); return true;
  case TUI_KEY_UP: other_document(a, -1); return true;
  case TUI_KEY_DOWN: other_document(a, 1); return true;
  case TUI_KEY_PAGE_UP: pan(a, -0.5); return true;
  case TUI_KEY_PAGE_DOWN: pan(a, 0.5); return true;
  case TUI_KEY_HOME: a->loss.cursor = 0; return true;
  case TUI_KEY_END: a->loss.cursor = NAN; return true;
  case TUI_KEY_MOUSE: return mouse(a, k);
  case TUI_KEY_F:
    if (k->cp == 6) next_mode(a);
    else if (k->cp == 7) next_smoothing(a);
    else return false;
    return true;
  case TUI_KEY_CHAR: return letter(a, k->cp);
  default: return false;
  }
}

static const char *const help[][2] = {
  { "c F6", "the fleet, the selected document, the worst ones, all runs" },
  { "arrows h l", "move the cursor; its values stand above the plot" },
  { "up down k j", "another document, where one is shown" },
  { "+ -", "zoom in and out around the cursor; the wheel does it too" },
  { "PgUp PgDn", "pan;  0: the whole run;  Home, End: cursor to the ends" },
  { "s F7", "smoothing" },
  { "y", "log scale" },
  { "o", "held-out curves; none can come below the teacher's own for long" },
  { NULL, NULL }
};

const tui_view tui_view_loss = { "loss", "Loss", draw, key, NULL, help };
