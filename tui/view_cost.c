/* view_cost.c - where the time goes, how fast it goes, and what it holds of the machine. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tui/app.h"
#include "tui/format.h"

typedef struct part {
  const char *name;
  double last, sum;
  tui_style style;
} part;

enum { PARTS = 5 };

/* What the four named parts leave of a round is "other". */
static void parts_of(const tui_snapshot *s, part *p) {
  const tui_cost *l = &s->last, *t = &s->cost;
  const part named[PARTS - 1] = { { "generate", l->gen_s, t->gen_s, ST_CURVE0 },
                                  { "student", l->student_s, t->student_s, ST_CURVE2 },
                                  { "optimiser", l->opt_s, t->opt_s, ST_CURVE3 },
                                  { "files", l->io_s, t->io_s, ST_CURVE4 } };
  double last = l->seconds, sum = t->seconds;
  memcpy(p, named, sizeof named);
  for (size_t i = 0; i < PARTS - 1; i++) {
    last -= isnan(p[i].last) ? 0 : p[i].last;
    sum -= p[i].sum;
  }
  p[PARTS - 1] = (part){ "other", fmax(0, last), fmax(0, sum), ST_CURVE7 };
}

static void draw_split(tui_app *a, tui_canvas *c, tui_rect frame) {
  const tui_snapshot *s = tui_app_snap(a);
  char v[TUI_FMT], w[TUI_FMT];
  part p[PARTS];
  tui_canvas_clip(c, frame);
  tui_rect r = tui_frame(c, frame, "Where the time goes: all rounds, and the last one");
  tui_canvas_clip(c, r);
  if (s->cost.rounds == 0) {
    tui_put(c, r.x + 1, r.y, ST_DIM, "no rounds yet");
    return;
  }
  parts_of(s, p);
  double whole = 0; /* the parts overlap a little: files are written while others go on */
  for (int i = 0; i < PARTS; i++) whole += p[i].sum;
  int bar = r.w - 50;
  for (int i = 0; i < PARTS && i < r.h; i++) {
    int y = r.y + i;
    double share = whole > 0 ? p[i].sum / whole : NAN;
    tui_put(c, r.x + 1, y, ST_TEXT, p[i].name);
    tui_put_right(c, r.x + 16, y, ST_BOLD, tui_fmt_part(v, share));
    tui_bar(c, r.x + 18, y, bar, share, p[i].style);
    tui_put_right(c, r.x + 19 + bar + 11, y, ST_TEXT, tui_fmt_secs(v, p[i].sum));
    char text[TUI_FMT + 16];
    snprintf(text, sizeof text, "last %s", tui_fmt_secs(w, p[i].last));
    tui_put_right(c, r.x + r.w - 1, y, ST_DIM, text);
  }
  if (r.h > PARTS) {
    char text[2 * TUI_FMT + 48];
    snprintf(text, sizeof text, "%.0f rounds in %s; a round takes %s", s->cost.rounds,
             tui_fmt_secs(v, s->cost.seconds), tui_fmt_secs(w, s->round_s));
    tui_put_fit(c, r.x + 1, r.y + PARTS, r.w - 2, ST_DIM, text, strlen(text));
  }
}

enum { BARS_HIGH = 8 };

/* Bars in eighths of a cell over the whole series, as wide as there is room and points for, at
 * most BARS_HIGH rows high. */
static void bars(tui_canvas *c, tui_rect r, const char *title, const tui_series *s, tui_style st) {
  int rows = r.h - 1 < BARS_HIGH ? r.h - 1 : BARS_HIGH;
  int cols = (size_t)r.w < s->n ? r.w : (int)s->n;
  if (cols < 1 || rows < 1) return;
  tui_column *col = fl_calloc((size_t)cols, sizeof *col);
  if (!col) return;
  tui_put(c, r.x, r.y, ST_DIM, title);
  double first = s->point[0].x, last = s->point[s->n - 1].x + 1.0, top = 0;
  tui_series_columns(s, first, last, 0, col, (size_t)cols);
  for (int i = 0; i < cols; i++)
    if (col[i].n) top = fmax(top, (double)col[i].mean);
  for (int i = 0; i < cols && top > 0; i++) {
    if (col[i].n == 0) continue;
    int level = (int)lround(fmax(0, (double)col[i].mean) / top * 8 * rows);
    if (level < 1) level = 1;
    for (int k = 0; k < rows && level > 0; k++, level -= 8)
      tui_put_cp(c, r.x + i, r.y + rows - k, st, (uint32_t)(0x2580 + (level > 8 ? 8 : level)));
  }
  fl_free(col);
}

/* "name   value" and what follows; returns the next row. */
static int row(tui_canvas *c, tui_rect r, int y, const char *name, const char *value,
               const char *more) {
  tui_put(c, r.x + 1, y, ST_DIM, name);
  int x = r.x + (r.w < 48 ? 23 : 28);
  tui_put_right(c, x, y, ST_BOLD, value);
  tui_put_fit(c, x + 1, y, r.x + r.w - x - 1, ST_DIM, more, strlen(more));
  return y + 1;
}

/* A figure against the machine's own measured peak. */
static int peak_row(tui_canvas *c, tui_rect r, int y, const char *name, double work, double seconds,
                    double peak, const char *unit) {
  char v[TUI_FMT], value[2 * TUI_FMT], more[3 * TUI_FMT];
  double rate = seconds > 0 && work > 0 ? work / seconds : NAN;
  snprintf(value, sizeof value, "%s %s", tui_fmt_num(v, rate, 1), unit);
  more[0] = '\0';
  if (!isnan(peak)) {
    char top[TUI_FMT];
    tui_fmt_num(top, peak, 0);
    snprintf(more, sizeof more, "%s of %s", tui_fmt_part(v, rate / peak), top);
  }
  return row(c, r, y, name, value, more);
}

static void draw_speed(tui_app *a, tui_canvas *c, tui_rect frame) {
  const tui_snapshot *s = tui_app_snap(a);
  char v[TUI_FMT], w[TUI_FMT], more[3 * TUI_FMT];
  tui_canvas_clip(c, frame);
  tui_rect r = tui_frame(c, frame, "How fast it goes");
  tui_canvas_clip(c, r);
  int y = r.y;
  y = row(c, r, y, "trained tok/s", tui_fmt_num(v, s->tok_s, 1), "");
  y = row(c, r, y, "generated tok/s", tui_fmt_num(v, s->gen_tok_s, 1), "");
  y = peak_row(c, r, y, "compute", s->last.gflop, s->last.seconds,
               s->run ? (double)s->run->peak_gflops : (double)NAN, "GFLOP/s");
  y = peak_row(c, r, y, "reading", s->last.gbyte, s->last.seconds,
               s->run ? (double)s->run->peak_gbs : (double)NAN, "GB/s");
  snprintf(more, sizeof more, "%s trained", tui_fmt_count(w, s->cost.tokens));
  y = row(c, r, y, "tokens so far", tui_fmt_count(v, s->cost.gen_tokens + s->cost.tokens), more);
  if (s->n_requests) {
    snprintf(more, sizeof more, "%zu refused, %zu failed", s->n_refused, s->n_failed);
    y = row(c, r, y, "requests", tui_fmt_count(v, (double)s->n_requests), more);
    snprintf(more, sizeof more, "first token %s", tui_fmt_secs(w, s->ttft_s));
    y = row(c, r, y, "a request", tui_fmt_num(v, s->request_s, 2), more);
    double part_cached = s->prompt_tokens > 0 ? s->cached_tokens / s->prompt_tokens : (double)NAN;
    y = row(c, r, y, "prompt cached", tui_fmt_part(v, part_cached), "");
  }
  tui_rect rest = { r.x + 1, y + 1, r.w - 2, r.y + r.h - y - 1 };
  bars(c, rest, "trained tokens/s over the run", &s->rate.s, ST_BAR);
}

static void draw_memory(tui_app *a, tui_canvas *c, tui_rect frame) {
  const tui_snapshot *s = tui_app_snap(a);
  const tui_feed *f = tui_app_feed(a);
  char v[TUI_FMT], w[TUI_FMT], more[3 * TUI_FMT];
  double mem = s->run ? (double)s->run->mem_bytes : (double)NAN;
  tui_canvas_clip(c, frame);
  tui_rect r = tui_frame(c, frame, "What it holds");
  tui_canvas_clip(c, r);
  int y = r.y;
  more[0] = '\0';
  if (!isnan(mem) && mem > 0)
    snprintf(more, sizeof more, "%s of %s", tui_fmt_part(v, s->rss / mem), tui_fmt_bytes(w, mem));
  y = row(c, r, y, "memory", tui_fmt_bytes(v, s->rss), more);
  y = row(c, r, y, "highest", tui_fmt_bytes(v, s->peak_rss), "");
  snprintf(more, sizeof more, "%zu in all", tui_snapshot_count(s, TUI_RESIDENT));
  y = row(c, r, y, "cartridges", tui_fmt_bytes(v, s->resident_bytes), more);
  snprintf(more, sizeof more, "#%s, %s", tui_fmt_u32(v, s->generation),
           tui_fmt_ago(w, s->saved_t, tui_app_now(a, f)));
  y = row(c, r, y, "last save", tui_fmt_bytes(v, s->saved_bytes), more);
  y = row(c, r, y, "written", tui_fmt_bytes(v, s->bytes_written), "in all");
  if (s->chunks != TUI_NONE) {
    snprintf(more, sizeof more, "of %s", tui_fmt_u32(w, s->dim));
    y = row(c, r, y, "index chunks", tui_fmt_u32(v, s->chunks), more);
  }
  if (s->run && y < r.y + r.h) {
    size_t n_isa, n_host;
    const char *isa = tui_store_str(&f->store, s->run->isa, &n_isa);
    const char *host = tui_store_str(&f->store, s->run->host, &n_host);
    snprintf(more, sizeof more, "%.*s, %.*s, %s threads", (int)(n_host < 30 ? n_host : 30), host,
             (int)(n_isa < 30 ? n_isa : 30), isa, tui_fmt_u32(v, s->run->threads));
    tui_put_fit(c, r.x + 1, y++, r.w - 2, ST_DIM, more, strlen(more));
  }
  tui_rect rest = { r.x + 1, y, r.w - 2, r.y + r.h - y };
  bars(c, rest, "memory over the run", &s->memory.s, ST_RESIDENT);
}

static void draw(tui_app *a, tui_canvas *c) {
  const tui_rect *pane = a->layout.pane;
  draw_split(a, c, pane[TUI_PANE_TOP]);
  draw_speed(a, c, pane[TUI_PANE_MAIN]);
  draw_memory(a, c, pane[TUI_PANE_SIDE]);
}

static bool key(tui_app *a, const tui_key *k) {
  (void)a;
  (void)k;
  return false;
}

static const char *const help[][2] = {
  { "generate", "the bots write conversations; the largest part of most runs" },
  { "student", "forward and backward through the cartridges" },
  { "trained tok/s", "tokens of answers that a cartridge learnt from" },
  { "compute", "of matrix products; the share is of the machine's peak, measured at the start" },
  { "reading", "of weights; the share is of the rate at which the machine reads them at best" },
  { NULL, NULL }
};

const tui_view tui_view_cost = { "cost", "Cost", draw, key, NULL, help };
