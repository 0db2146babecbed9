/* view_study.c - the conversations of self-study as they are made, and what of each document they
 * have covered. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/app.h"
#include "tui/format.h"

/* Study records up to the moment that is shown. */
static size_t record_count(const tui_app *a) {
  const tui_snapshot *s = &a->feed[a->current].snap;
  return s->n_study + s->n_rejected;
}

static const tui_rec_study *record(const tui_app *a, size_t i) {
  return tui_store_rec(&a->feed[a->current].store, TUI_EV_STUDY, i);
}

static bool wanted(const tui_app *a, size_t i) {
  return !a->study.rejected_only || record(a, i)->rejected;
}

/* The next wanted record from i in a direction, i itself included; SIZE_MAX: none. */
static size_t seek(const tui_app *a, size_t i, int direction) {
  size_t n = record_count(a);
  while (i < n && !wanted(a, i)) i = direction < 0 ? i - 1 : i + 1; /* below 0 wraps over n */
  return i < n ? i : SIZE_MAX;
}

/* The selected record; SIZE_MAX: there is none. */
static size_t selected(const tui_app *a) {
  size_t n = record_count(a);
  if (n == 0) return SIZE_MAX;
  size_t at = a->study.held && a->study.record < n ? a->study.record : n - 1;
  return seek(a, at, -1);
}

static void draw_counts(tui_app *a, tui_canvas *c, tui_rect r) {
  const tui_snapshot *s = tui_app_snap(a);
  char item[64];
  tui_canvas_clip(c, r);
  int x = 1 + tui_putf(c, 1, r.y, ST_BOLD, "%zu conversations", s->n_study);
  if (s->n_replayed) x += tui_putf(c, x, r.y, ST_DIM, ", %zu of them replayed", s->n_replayed);
  x += tui_putf(c, x, r.y, s->n_rejected ? ST_WARN : ST_DIM, ", %zu rejected", s->n_rejected);
  for (size_t i = 1; i < TUI_REJECTIONS; i++)
    if (s->by_rejection[i] && x < r.w - 14)
      x += 1 + tui_putf(c, x + 1, r.y, ST_DIM, "%s %zu", tui_rejections[i], s->by_rejection[i]);
  if (a->study.rejected_only) tui_put_right(c, r.w - 1, r.y, ST_WARN, "only the rejected");
  int y = r.y + 1;
  x = 1;
  for (size_t i = 1; i < TUI_KINDS_OF_STUDY; i++) {
    if (i > TUI_SEED_KINDS && s->by_kind[i] == 0) continue; /* the seeds alone are the usual ones */
    snprintf(item, sizeof item, "%s %zu", tui_study_kinds[i], s->by_kind[i]);
    if (x + (int)strlen(item) >= r.w) x = 1, y++;
    x += 2 + tui_put(c, x, y, ST_TEXT, item);
  }
}

static void name_at(tui_app *a, tui_canvas *c, int x, int y, int cols, uint32_t id, tui_style st) {
  const tui_feed *f = tui_app_feed(a);
  const tui_doc *d = tui_snapshot_doc(&f->snap, id);
  char buf[32] = "?";
  size_t n = 1;
  const char *name = d ? tui_feed_doc_name(f, d, buf, sizeof buf, &n) : buf;
  name = tui_text_base(name, &n);
  tui_put_fit(c, x, y, cols, st, name, n);
}

static void draw_row(tui_app *a, tui_canvas *c, tui_rect r, int y, size_t i, bool sel) {
  tui_feed *f = tui_app_feed(a);
  const tui_rec_study *st = record(a, i);
  char v[TUI_FMT];
  const fl_json *j = tui_feed_detail(f, st->rec.event);
  const char *request = NULL;
  if (j) fl_json_get_str(j, "request", &request);
  if (!request) request = "(its line cannot be read any more)";
  tui_style style = st->rejected ? ST_WARN : ST_TEXT;
  tui_put_right(c, r.x + 6, y, ST_DIM, tui_fmt_u32(v, st->round));
  name_at(a, c, r.x + 8, y, 17, st->doc, style);
  const char *what = st->rejected ? tui_rejections[st->rejected < TUI_REJECTIONS ? st->rejected : 5]
                                  : tui_study_kinds[st->kind < TUI_KINDS_OF_STUDY ? st->kind : 0];
  tui_put_fit(c, r.x + 26, y, 13, st->rejected ? ST_WARN : ST_DIM, what, strlen(what));
  tui_put_fit(c, r.x + 40, y, r.w - 40, style, request, strlen(request));
  if (sel) tui_tint(c, (tui_rect){ r.x, y, r.w, 1 }, ST_SELECT);
}

/* Newest on top; the selection stays in sight. */
static void draw_list(tui_app *a, tui_canvas *c, tui_rect frame) {
  tui_canvas_clip(c, frame);
  tui_rect r = tui_frame(c, frame,
                         a->study.held ? "Conversations (round, document, kind, request)"
                                       : "Conversations as they come, newest on top");
  tui_canvas_clip(c, r);
  size_t sel = selected(a), rows = r.h > 0 ? (size_t)r.h : 0;
  a->study.page = rows;
  if (sel == SIZE_MAX) {
    tui_put(c, r.x + 1, r.y, ST_DIM, "none yet");
    return;
  }
  size_t first = sel; /* the record of the first row: up to half a page above the selection */
  for (size_t k = 0; k < rows / 2; k++) {
    size_t newer = seek(a, first + 1, 1);
    if (newer == SIZE_MAX) break;
    first = newer;
  }
  int y = r.y;
  for (size_t i = first; i != SIZE_MAX && y < r.y + r.h; i = i ? seek(a, i - 1, -1) : SIZE_MAX)
    draw_row(a, c, r, y++, i, i == sel);
}

static int put_wrapped(tui_canvas *c, tui_rect r, int y, tui_style st, const char *s) {
  size_t at = 0, len = strlen(s), n;
  const char *row;
  while (y < r.y + r.h && tui_text_wrap(s, len, (size_t)(r.w - 2), &at, &row, &n))
    tui_put_fit(c, r.x + 1, y++, r.w - 2, st, row, n);
  return y;
}

static void draw_opened(tui_app *a, tui_canvas *c, tui_rect frame) {
  tui_canvas_clip(c, frame);
  bool beside = a->layout.pane[TUI_PANE_SIDE].w > 0;
  tui_rect r = tui_frame(
      c, frame, beside ? "The selected conversation" : "The selected conversation - F7: coverage");
  tui_canvas_clip(c, r);
  size_t sel = selected(a);
  if (sel == SIZE_MAX || r.w < 10) return;
  const tui_rec_study *st = record(a, sel);
  char v1[TUI_FMT], v2[TUI_FMT], v3[TUI_FMT];
  int y = r.y, x = r.x + 1;
  name_at(a, c, x, y, 24, st->doc, ST_TITLE);
  tui_putf(c, x + 26, y++, ST_DIM, "tokens %s to %s, %s supervised%s", tui_fmt_u32(v1, st->first),
           tui_fmt_u32(v2, st->end), tui_fmt_u32(v3, st->tokens), st->replayed ? ", replayed" : "");
  const fl_json *j = tui_feed_detail(tui_app_feed(a), st->rec.event);
  const char *request = NULL, *answer = NULL, *of = NULL;
  if (!j) return;
  if (st->rejected) {
    fl_json_get_str(j, "of", &of);
    tui_putf(c, x, y++, ST_WARN, "rejected: the %s was %s", of ? of : "text",
             tui_rejections[st->rejected < TUI_REJECTIONS ? st->rejected : 5]);
  }
  if (fl_json_get_str(j, "request", &request)) y = put_wrapped(c, r, y, ST_BOLD, request);
  if (fl_json_get_str(j, "answer", &answer)) put_wrapped(c, r, y, ST_TEXT, answer);
}

/* Every document with its strip, from the least covered on. */
static void draw_coverage(tui_app *a, tui_canvas *c, tui_rect frame) {
  tui_canvas_clip(c, frame);
  tui_rect r = tui_frame(c, frame, "Coverage of the documents, least first");
  tui_canvas_clip(c, r);
  const tui_snapshot *s = tui_app_snap(a);
  double last = -1;
  size_t after = 0;
  for (int y = r.y; y < r.y + r.h; y++) {
    const tui_doc *best = NULL; /* a selection of a few; the screen has few rows */
    for (size_t i = 0; i < s->n_docs; i++) {
      double v = tui_doc_coverage(&s->doc[i]);
      bool later = v > last || (v == last && i >= after);
      if (!isnan(v) && later && (!best || v < tui_doc_coverage(best))) best = &s->doc[i];
    }
    if (!best) return;
    last = tui_doc_coverage(best);
    after = (size_t)(best - s->doc) + 1;
    char v[TUI_FMT];
    tui_put_right(c, r.x + 5, y, ST_TEXT, tui_fmt_part(v, last));
    name_at(a, c, r.x + 6, y, 14, best->id, ST_TEXT);
    tui_coverage_strip(c, r.x + 21, y, r.w - 22, best);
  }
}

static void draw(tui_app *a, tui_canvas *c) {
  const tui_rect *pane = a->layout.pane;
  draw_counts(a, c, pane[TUI_PANE_TOP]);
  draw_list(a, c, pane[TUI_PANE_MAIN]);
  bool beside = pane[TUI_PANE_SIDE].w > 0;
  if (beside || !a->study.coverage) draw_opened(a, c, pane[TUI_PANE_LOWER]);
  if (beside || a->study.coverage)
    draw_coverage(a, c, pane[beside ? TUI_PANE_SIDE : TUI_PANE_LOWER]);
}

static void move(tui_app *a, long rows) {
  size_t at = selected(a);
  for (long i = 0; at != SIZE_MAX && i < (rows < 0 ? -rows : rows); i++) {
    size_t next = rows > 0 ? (at ? seek(a, at - 1, -1) : SIZE_MAX) : seek(a, at + 1, 1);
    if (next == SIZE_MAX) break;
    at = next;
  }
  if (at == SIZE_MAX) return;
  a->study.record = (uint32_t)at;
  a->study.held = seek(a, at + 1, 1) != SIZE_MAX; /* on the newest it follows again */
}

static bool key(tui_app *a, const tui_key *k) {
  long page = a->study.page > 1 ? (long)a->study.page : 1;
  switch (k->code) {
  case TUI_KEY_UP: move(a, -1); return true;
  case TUI_KEY_DOWN: move(a, 1); return true;
  case TUI_KEY_PAGE_UP: move(a, -page); return true;
  case TUI_KEY_PAGE_DOWN: move(a, page); return true;
  case TUI_KEY_HOME:
  case TUI_KEY_ESC: a->study.held = false; return true;
  case TUI_KEY_MOUSE:
    if (k->mouse == TUI_MOUSE_WHEEL_UP) move(a, -3);
    else if (k->mouse == TUI_MOUSE_WHEEL_DOWN) move(a, 3);
    else return false;
    return true;
  case TUI_KEY_F:
    if (k->cp == 6) a->study.rejected_only = !a->study.rejected_only;
    else if (k->cp == 7) a->study.coverage = !a->study.coverage;
    else return false;
    return true;
  case TUI_KEY_CHAR:
    if (k->cp == 'k') move(a, -1);
    else if (k->cp == 'j') move(a, 1);
    else if (k->cp == 'g') a->study.held = false;
    else if (k->cp == 'x') a->study.rejected_only = !a->study.rejected_only;
    else if (k->cp == 'v') a->study.coverage = !a->study.coverage;
    else return false;
    return true;
  default: return false;
  }
}

static const char *const help[][2] = {
  { "arrows j k", "go through the conversations; below stands the whole text" },
  { "Home g Esc", "back to the newest, which follows what comes" },
  { "x F6", "only what was rejected, with the reason" },
  { "v F7", "what was read of each document, below; on a wide screen it stands beside" },
  { "strips", "darker where more conversations were made from that part" },
  { NULL, NULL }
};

const tui_view tui_view_study = { "study", "Study", draw, key, NULL, help };
