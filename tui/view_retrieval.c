/* view_retrieval.c - what a query finds: scores of documents and chunks, what was chosen and why;
 * and the queries that others asked. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tui/app.h"
#include "tui/format.h"

enum { RECENT_MAX = 64 };
static const double type_pause_s = 0.4; /* after the last key, before the query is sent */

static size_t recent_count(const tui_app *a) {
  const tui_feed *f = &a->feed[a->current];
  size_t n = f->snap.n_retrieves; /* of the moment that is shown */
  return n < RECENT_MAX ? n : RECENT_MAX;
}

/* The event of the i-th newest query. */
static size_t recent_event(const tui_app *a, size_t i) {
  const tui_feed *f = &a->feed[a->current];
  const tui_rec *r = tui_store_rec(&f->store, TUI_EV_RETRIEVE, f->snap.n_retrieves - 1 - i);
  return r->event;
}

/* What is shown: the reply to what was typed, else the query that is chosen below. */
static const fl_json *shown(tui_app *a) {
  tui_retrieval_state *st = &a->retrieval;
  size_t n = recent_count(a);
  if (st->selected == SIZE_MAX && st->result) return st->result;
  if (n == 0) return NULL;
  size_t i = st->selected == SIZE_MAX ? 0 : st->selected < n ? st->selected : n - 1;
  return tui_feed_detail(tui_app_feed(a), recent_event(a, i));
}

static bool is_chosen(const fl_json *j, double doc) {
  const fl_json *all = fl_json_get(j, "chosen");
  if (!fl_json_is_arr(all)) return false;
  for (const fl_json *v = fl_json_first(all); v; v = fl_json_next(v)) {
    double d;
    if (fl_json_as_num(v, &d) && d == doc) return true;
  }
  return false;
}

static const char *hit_name(tui_app *a, const fl_json *hit, double doc, char *buf, size_t size,
                            size_t *n) {
  const char *name = NULL;
  const tui_feed *f = tui_app_feed(a);
  if (fl_json_get_str(hit, "name", &name)) {
    *n = strlen(name);
    return name;
  }
  const tui_doc *d = doc >= 0 && doc < TUI_NONE ? tui_snapshot_doc(&f->snap, (uint32_t)doc) : NULL;
  if (d) return tui_feed_doc_name(f, d, buf, size, n);
  snprintf(buf, size, "document %.0f", doc);
  *n = strlen(buf);
  return buf;
}

/* Two figures that the sentence needs. */
typedef struct verdict {
  double lowest_chosen, best_other; /* NaN: none */
  size_t n_chosen;
} verdict;

static verdict judge(const fl_json *j) {
  verdict v = { NAN, NAN, 0 };
  const fl_json *docs = fl_json_get(j, "docs");
  if (!fl_json_is_arr(docs)) return v;
  for (const fl_json *h = fl_json_first(docs); h; h = fl_json_next(h)) {
    double doc = -1, score = NAN;
    fl_json_get_num(h, "doc", &doc);
    fl_json_get_num(h, "score", &score);
    if (is_chosen(j, doc)) {
      v.n_chosen++;
      v.lowest_chosen = isnan(v.lowest_chosen) ? score : fmin(v.lowest_chosen, score);
    } else if (isnan(v.best_other) || score > v.best_other) {
      v.best_other = score;
    }
  }
  return v;
}

/* Why it chose what it chose, in words. */
static void explain(const fl_json *j, char *out, size_t size) {
  double floor_ = NAN;
  char a[TUI_FMT], b[TUI_FMT], d[TUI_FMT], e[TUI_FMT];
  verdict v = judge(j);
  fl_json_get_num(j, "floor", &floor_);
  if (v.n_chosen == 0) {
    tui_fmt_num(a, floor_, 2);
    snprintf(out, size, "Took none: no document reaches the floor of %s.", a);
    return;
  }
  tui_fmt_num(a, v.lowest_chosen, 3);
  tui_fmt_num(b, v.best_other, 3);
  tui_fmt_num(d, v.lowest_chosen - v.best_other, 3);
  fl_buf s = { 0 };
  fl_buf_printf(&s, "Took %zu with the best scores: ", v.n_chosen);
  if (v.n_chosen > 1) fl_buf_puts(&s, "the last of them ");
  fl_buf_printf(&s, "%s", a);
  if (!isnan(v.best_other)) fl_buf_printf(&s, ", the next document %s, a margin of %s", b, d);
  if (floor_ > -1) fl_buf_printf(&s, "; the floor is %s", tui_fmt_num(e, floor_, 2));
  snprintf(out, size, "%s.", s.data ? s.data : "");
  fl_buf_release(&s);
}

static void draw_input(tui_app *a, tui_canvas *c, tui_rect frame, const fl_json *j) {
  tui_retrieval_state *st = &a->retrieval;
  char line[400];
  const char *query = NULL, *hint = NULL;
  tui_rect r = tui_frame(c, frame, "Query - type, scores follow at once");
  tui_canvas_clip(c, r);
  tui_edit_draw(&st->input, c, r.x + 1, r.y, r.w - 2, st->focus);
  if (!tui_action_live(a) && !st->input.len)
    hint = "nothing runs on this fleet now; `flotilla serve` answers what is typed here";
  else if (!st->focus && !st->input.len) hint = "press i or Enter to type a query";
  if (hint) tui_put_fit(c, r.x + 1, r.y, r.w - 2, ST_DIM, hint, strlen(hint));
  if (st->link.state == TUI_LINK_FAILED) {
    tui_put_fit(c, r.x + 1, r.y + 1, r.w - 2, ST_BAD, st->link.error, strlen(st->link.error));
    return;
  }
  if (!j) return;
  explain(j, line, sizeof line);
  size_t at = 0, len = strlen(line), n;
  const char *row;
  int y = r.y + 1;
  if (fl_json_get_str(j, "query", &query) && r.h >= 3) {
    int x = r.x + 1 +
            tui_put(c, r.x + 1, y, ST_DIM,
                    st->selected == SIZE_MAX && st->result ? "found for: " : "from the log: ");
    tui_put_fit(c, x, y++, r.x + r.w - x, ST_TEXT, query, strlen(query));
  }
  while (y < r.y + r.h && tui_text_wrap(line, len, (size_t)r.w - 2, &at, &row, &n))
    tui_put_fit(c, r.x + 1, y++, r.w - 2, ST_BOLD, row, n);
}

/* Rows of {doc, score} with bars; `with_chunk` shows their chunk numbers. */
static void draw_hits(tui_app *a, tui_canvas *c, tui_rect frame, const char *title,
                      const fl_json *j, const char *member, bool with_chunk) {
  tui_canvas_clip(c, frame);
  tui_rect r = tui_frame(c, frame, title);
  tui_canvas_clip(c, r);
  const fl_json *hits = j ? fl_json_get(j, member) : NULL;
  if (!fl_json_is_arr(hits)) return;
  double top = 0;
  for (const fl_json *h = fl_json_first(hits); h; h = fl_json_next(h)) {
    double score = 0;
    fl_json_get_num(h, "score", &score);
    top = fmax(top, score);
  }
  int y = r.y, bar = r.w >= 50 ? 12 : 6;
  for (const fl_json *h = fl_json_first(hits); h && y < r.y + r.h; h = fl_json_next(h), y++) {
    char buf[32], v[TUI_FMT];
    double doc = -1, score = NAN, chunk = NAN;
    size_t n;
    fl_json_get_num(h, "doc", &doc);
    fl_json_get_num(h, "score", &score);
    fl_json_get_num(h, "chunk", &chunk);
    bool on = is_chosen(j, doc);
    tui_style st = on ? ST_GOOD : ST_TEXT;
    if (on) tui_put_cp(c, r.x, y, st, 0x2713);
    tui_put_right(c, r.x + 7, y, st, tui_fmt_num(v, score, 3));
    tui_bar(c, r.x + 8, y, bar, top > 0 ? score / top : 0, on ? ST_GOOD : ST_BAR);
    int x = r.x + 9 + bar;
    if (with_chunk) x += 1 + tui_putf(c, x, y, ST_DIM, "%5.0f", chunk);
    const char *name = hit_name(a, h, doc, buf, sizeof buf, &n);
    if (tui_text_columns(name, n) > (size_t)(r.x + r.w - x)) name = tui_text_base(name, &n);
    tui_put_fit(c, x, y, r.x + r.w - x, st, name, n);
  }
}

static void draw_recent(tui_app *a, tui_canvas *c, tui_rect frame) {
  tui_retrieval_state *st = &a->retrieval;
  tui_feed *f = tui_app_feed(a);
  char title[64], clock[TUI_FMT];
  size_t n = recent_count(a);
  if (frame.w == 0) return;
  snprintf(title, sizeof title, "Recent queries (%zu) - up and down show one", f->snap.n_retrieves);
  tui_canvas_clip(c, frame);
  tui_rect r = tui_frame(c, frame, title);
  tui_canvas_clip(c, r);
  size_t first = 0, rows = r.h > 0 ? (size_t)r.h : 0;
  if (st->selected != SIZE_MAX && st->selected >= rows) first = st->selected - rows + 1;
  for (size_t i = first; i < n && i - first < rows; i++) {
    int y = r.y + (int)(i - first);
    size_t event = recent_event(a, i);
    const fl_json *j = tui_feed_detail(f, event);
    const char *query = NULL;
    if (j) fl_json_get_str(j, "query", &query);
    if (!query) query = "(its line cannot be read any more)";
    tui_put(c, r.x + 1, y, ST_DIM, tui_fmt_clock(clock, tui_store_t(&f->store, event)));
    tui_put_fit(c, r.x + 11, y, r.w - 12, ST_TEXT, query, strlen(query));
    if (i == st->selected) tui_tint(c, (tui_rect){ r.x, y, r.w, 1 }, ST_SELECT);
  }
  if (n == 0) tui_put(c, r.x + 1, r.y, ST_DIM, "none yet");
}

static void draw(tui_app *a, tui_canvas *c) {
  const tui_rect *pane = a->layout.pane;
  const fl_json *j = shown(a);
  tui_canvas_clip(c, pane[TUI_PANE_TOP]);
  draw_input(a, c, pane[TUI_PANE_TOP], j);
  draw_hits(a, c, pane[TUI_PANE_MAIN], "Documents (score: best chunk)", j, "docs", false);
  draw_hits(a, c, pane[TUI_PANE_SIDE], "Chunks (score, number, document)", j, "chunks", true);
  draw_recent(a, c, pane[TUI_PANE_LOWER]);
}

/* --- asking ---------------------------------------------------------------------------------- */

static void on_reply(void *ctx, const fl_json *reply, bool last) {
  tui_app *a = ctx;
  bool ok = false;
  if (!last || !fl_json_get_bool(reply, "ok", &ok) || !ok) return;
  fl_json_free(a->retrieval.result);
  a->retrieval.result = fl_json_dup(reply);
  a->retrieval.selected = SIZE_MAX;
}

static void send(tui_app *a) {
  tui_retrieval_state *st = &a->retrieval;
  st->due = 0;
  if (st->input.len == 0) return;
  fl_json *request = fl_json_object();
  if (request && (!fl_json_set_str(request, "cmd", "retrieve") ||
                  !fl_json_set_str(request, "query", st->input.text))) {
    fl_json_free(request);
    request = NULL;
  }
  tui_link_start(&st->link, tui_app_feed(a)->dir, request);
}

bool tui_retrieval_poll(tui_app *a) {
  bool changed = tui_link_poll(&a->retrieval.link, on_reply, a);
  if (a->retrieval.due > 0 && fl_now_s() >= a->retrieval.due) {
    send(a);
    changed = true;
  }
  return changed;
}

/* Among the recent queries; above the newest stands what was typed. */
static void move(tui_app *a, int direction) {
  tui_retrieval_state *st = &a->retrieval;
  size_t n = recent_count(a), at = st->selected;
  if (direction < 0) st->selected = at == SIZE_MAX || at == 0 ? SIZE_MAX : at - 1;
  else if (n && at == SIZE_MAX) st->selected = 0;
  else if (n) st->selected = at + 1 < n ? at + 1 : n - 1;
}

static bool typing_key(tui_app *a, const tui_key *k) {
  tui_retrieval_state *st = &a->retrieval;
  if (k->code == TUI_KEY_ESC) {
    st->focus = false;
    return true;
  }
  if (k->code == TUI_KEY_ENTER) {
    send(a);
    return true;
  }
  if (k->code == TUI_KEY_UP || k->code == TUI_KEY_DOWN) return false;
  if (k->code == TUI_KEY_CHAR && !tui_app_field_takes(&st->input, true, k->cp)) return false;
  if (!tui_edit_key(&st->input, k)) return false;
  st->due = fl_now_s() + type_pause_s;
  return true;
}

static bool key(tui_app *a, const tui_key *k) {
  tui_retrieval_state *st = &a->retrieval;
  if (st->focus && typing_key(a, k)) return true;
  switch (k->code) {
  case TUI_KEY_UP: move(a, -1); return true;
  case TUI_KEY_DOWN: move(a, 1); return true;
  case TUI_KEY_ENTER: st->focus = true; return true;
  case TUI_KEY_MOUSE:
    if (k->mouse == TUI_MOUSE_WHEEL_UP) move(a, -1);
    else if (k->mouse == TUI_MOUSE_WHEEL_DOWN) move(a, 1);
    else st->focus = k->y < a->layout.pane[TUI_PANE_MAIN].y;
    return true;
  case TUI_KEY_CHAR:
    if (k->cp == 'k') move(a, -1);
    else if (k->cp == 'j') move(a, 1);
    else if (k->cp == 'i') st->focus = true;
    else return false;
    return true;
  default: return false;
  }
}

static bool typing(const tui_app *a, uint32_t cp) {
  return tui_app_field_takes(&a->retrieval.input, a->retrieval.focus, cp);
}

static const char *const help[][2] = {
  { "typing", "scores follow while you type; Esc leaves the field, i returns" },
  { "check mark", "the document was chosen" },
  { "floor", "the score that a document must reach" },
  { "margin", "how far the best that was left out lies behind the last that was taken" },
  { "up down", "go through the recent queries" },
  { NULL, NULL }
};

const tui_view tui_view_retrieval = { "retrieval", "Retrieval", draw, key, typing, help };
