/* view_retrieval.c - what a query finds: scores of documents and chunks, what was chosen and why;
 * and the queries that others asked. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "tui/app.h"
#include "tui/format.h"

enum { RECENT_MAX = 64 };
static const double type_pause_s = 0.4; /* after the last key, before the query is sent */

static size_t recent_count(const fl_app *a) {
  const fl_feed *f = &a->feed[a->current];
  size_t n = f->snap.n_retrieves; /* of the moment that is shown */
  return n < RECENT_MAX ? n : RECENT_MAX;
}

/* The event of the i-th newest query. */
static size_t recent_event(const fl_app *a, size_t i) {
  const fl_feed *f = &a->feed[a->current];
  const fl_rec *r = fl_store_rec(&f->store, FL_EV_RETRIEVE, f->snap.n_retrieves - 1 - i);
  return r->event;
}

/* What is shown: the reply to what was typed, else the query that is chosen below. */
static const fl_json *shown(fl_app *a) {
  fl_retrieval_state *st = &a->retrieval;
  size_t n = recent_count(a);
  if (st->selected == SIZE_MAX && st->result) return st->result;
  if (n == 0) return NULL;
  size_t i = st->selected == SIZE_MAX ? 0 : st->selected < n ? st->selected : n - 1;
  return fl_feed_detail(fl_app_feed(a), recent_event(a, i));
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

static const char *hit_name(fl_app *a, const fl_json *hit, double doc, char *buf, size_t size,
                            size_t *n) {
  const char *name = NULL;
  const fl_feed *f = fl_app_feed(a);
  if (fl_json_get_str(hit, "name", &name)) {
    *n = strlen(name);
    return name;
  }
  const fl_doc *d = doc >= 0 && doc < FL_NONE ? fl_snapshot_doc(&f->snap, (uint32_t)doc) : NULL;
  if (d) return fl_feed_doc_name(f, d, buf, size, n);
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
  char a[FL_FMT], b[FL_FMT], d[FL_FMT], e[FL_FMT];
  verdict v = judge(j);
  fl_json_get_num(j, "floor", &floor_);
  if (v.n_chosen == 0) {
    fl_fmt_num(a, floor_, 2);
    snprintf(out, size, "Took none: no document reaches the floor of %s.", a);
    return;
  }
  fl_fmt_num(a, v.lowest_chosen, 3);
  fl_fmt_num(b, v.best_other, 3);
  fl_fmt_num(d, v.lowest_chosen - v.best_other, 3);
  fl_buf s = { 0 };
  fl_buf_printf(&s, "Took %zu with the best scores: ", v.n_chosen);
  if (v.n_chosen > 1) fl_buf_puts(&s, "the last of them ");
  fl_buf_printf(&s, "%s", a);
  if (!isnan(v.best_other)) fl_buf_printf(&s, ", the next document %s, a margin of %s", b, d);
  if (floor_ > -1) fl_buf_printf(&s, "; the floor is %s", fl_fmt_num(e, floor_, 2));
  snprintf(out, size, "%s.", s.data ? s.data : "");
  fl_buf_release(&s);
}

static void draw_input(fl_app *a, fl_canvas *c, fl_rect frame, const fl_json *j) {
  fl_retrieval_state *st = &a->retrieval;
  char line[400];
  const char *query = NULL, *hint = NULL;
  fl_rect r = fl_frame(c, frame, "Query - type, scores follow at once");
  fl_canvas_clip(c, r);
  fl_edit_draw(&st->input, c, r.x + 1, r.y, r.w - 2, st->focus);
  if (!fl_action_live(a) && !st->input.len)
    hint = "nothing runs on this fleet now; `flotilla serve` answers what is typed here";
  else if (!st->focus && !st->input.len) hint = "press i or Enter to type a query";
  if (hint) fl_put_fit(c, r.x + 1, r.y, r.w - 2, ST_DIM, hint, strlen(hint));
  if (st->link.state == FL_LINK_FAILED) {
    fl_put_fit(c, r.x + 1, r.y + 1, r.w - 2, ST_BAD, st->link.error, strlen(st->link.error));
    return;
  }
  if (!j) return;
  explain(j, line, sizeof line);
  size_t at = 0, len = strlen(line), n;
  const char *row;
  int y = r.y + 1;
  if (fl_json_get_str(j, "query", &query) && r.h >= 3) {
    int x = r.x + 1 +
            fl_put(c, r.x + 1, y, ST_DIM,
                   st->selected == SIZE_MAX && st->result ? "found for: " : "from the log: ");
    fl_put_fit(c, x, y++, r.x + r.w - x, ST_TEXT, query, strlen(query));
  }
  while (y < r.y + r.h && fl_text_wrap(line, len, (size_t)r.w - 2, &at, &row, &n))
    fl_put_fit(c, r.x + 1, y++, r.w - 2, ST_BOLD, row, n);
}

/* Rows of {doc, score} with bars; `with_chunk` shows their chunk numbers. */
static void draw_hits(fl_app *a, fl_canvas *c, fl_rect frame, const char *title, const fl_json *j,
                      const char *member, bool with_chunk) {
  fl_canvas_clip(c, frame);
  fl_rect r = fl_frame(c, frame, title);
  fl_canvas_clip(c, r);
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
    char buf[32], v[FL_FMT];
    double doc = -1, score = NAN, chunk = NAN;
    size_t n;
    fl_json_get_num(h, "doc", &doc);
    fl_json_get_num(h, "score", &score);
    fl_json_get_num(h, "chunk", &chunk);
    bool on = is_chosen(j, doc);
    fl_style st = on ? ST_GOOD : ST_TEXT;
    if (on) fl_put_cp(c, r.x, y, st, 0x2713);
    fl_put_right(c, r.x + 7, y, st, fl_fmt_num(v, score, 3));
    fl_bar(c, r.x + 8, y, bar, top > 0 ? score / top : 0, on ? ST_GOOD : ST_BAR);
    int x = r.x + 9 + bar;
    if (with_chunk) x += 1 + fl_putf(c, x, y, ST_DIM, "%5.0f", chunk);
    const char *name = hit_name(a, h, doc, buf, sizeof buf, &n);
    if (fl_text_columns(name, n) > (size_t)(r.x + r.w - x)) name = fl_text_base(name, &n);
    fl_put_fit(c, x, y, r.x + r.w - x, st, name, n);
  }
}

static void draw_recent(fl_app *a, fl_canvas *c, fl_rect frame) {
  fl_retrieval_state *st = &a->retrieval;
  fl_feed *f = fl_app_feed(a);
  char title[64], clock[FL_FMT];
  size_t n = recent_count(a);
  if (frame.w == 0) return;
  snprintf(title, sizeof title, "Recent queries (%zu) - up and down show one", f->snap.n_retrieves);
  fl_canvas_clip(c, frame);
  fl_rect r = fl_frame(c, frame, title);
  fl_canvas_clip(c, r);
  size_t first = 0, rows = r.h > 0 ? (size_t)r.h : 0;
  if (st->selected != SIZE_MAX && st->selected >= rows) first = st->selected - rows + 1;
  for (size_t i = first; i < n && i - first < rows; i++) {
    int y = r.y + (int)(i - first);
    size_t event = recent_event(a, i);
    const fl_json *j = fl_feed_detail(f, event);
    const char *query = NULL;
    if (j) fl_json_get_str(j, "query", &query);
    if (!query) query = "(its line cannot be read any more)";
    fl_put(c, r.x + 1, y, ST_DIM, fl_fmt_clock(clock, fl_store_t(&f->store, event)));
    fl_put_fit(c, r.x + 11, y, r.w - 12, ST_TEXT, query, strlen(query));
    if (i == st->selected) fl_tint(c, (fl_rect){ r.x, y, r.w, 1 }, ST_SELECT);
  }
  if (n == 0) fl_put(c, r.x + 1, r.y, ST_DIM, "none yet");
}

static void draw(fl_app *a, fl_canvas *c) {
  const fl_rect *pane = a->layout.pane;
  const fl_json *j = shown(a);
  fl_canvas_clip(c, pane[FL_PANE_TOP]);
  draw_input(a, c, pane[FL_PANE_TOP], j);
  draw_hits(a, c, pane[FL_PANE_MAIN], "Documents (score: best chunk)", j, "docs", false);
  draw_hits(a, c, pane[FL_PANE_SIDE], "Chunks (score, number, document)", j, "chunks", true);
  draw_recent(a, c, pane[FL_PANE_LOWER]);
}

/* --- asking ---------------------------------------------------------------------------------- */

static void on_reply(void *ctx, const fl_json *reply, bool last) {
  fl_app *a = ctx;
  bool ok = false;
  if (!last || !fl_json_get_bool(reply, "ok", &ok) || !ok) return;
  fl_json_free(a->retrieval.result);
  a->retrieval.result = fl_json_dup(reply);
  a->retrieval.selected = SIZE_MAX;
}

static void send(fl_app *a) {
  fl_retrieval_state *st = &a->retrieval;
  st->due = 0;
  if (st->input.len == 0) return;
  fl_json *request = fl_json_object();
  if (request && (!fl_json_set_str(request, "cmd", "retrieve") ||
                  !fl_json_set_str(request, "query", st->input.text))) {
    fl_json_free(request);
    request = NULL;
  }
  fl_link_start(&st->link, fl_app_feed(a)->dir, request);
}

bool fl_retrieval_poll(fl_app *a) {
  bool changed = fl_link_poll(&a->retrieval.link, on_reply, a);
  if (a->retrieval.due > 0 && fl_now_s() >= a->retrieval.due) {
    send(a);
    changed = true;
  }
  return changed;
}

/* Among the recent queries; above the newest stands what was typed. */
static void move(fl_app *a, int direction) {
  fl_retrieval_state *st = &a->retrieval;
  size_t n = recent_count(a), at = st->selected;
  if (direction < 0) st->selected = at == SIZE_MAX || at == 0 ? SIZE_MAX : at - 1;
  else if (n && at == SIZE_MAX) st->selected = 0;
  else if (n) st->selected = at + 1 < n ? at + 1 : n - 1;
}

static bool typing_key(fl_app *a, const fl_key *k) {
  fl_retrieval_state *st = &a->retrieval;
  if (k->code == FL_KEY_ESC) {
    st->focus = false;
    return true;
  }
  if (k->code == FL_KEY_ENTER) {
    send(a);
    return true;
  }
  if (k->code == FL_KEY_UP || k->code == FL_KEY_DOWN) return false;
  if (k->code == FL_KEY_CHAR && !fl_app_field_takes(&st->input, true, k->cp)) return false;
  if (!fl_edit_key(&st->input, k)) return false;
  st->due = fl_now_s() + type_pause_s;
  return true;
}

static bool key(fl_app *a, const fl_key *k) {
  fl_retrieval_state *st = &a->retrieval;
  if (st->focus && typing_key(a, k)) return true;
  switch (k->code) {
  case FL_KEY_UP: move(a, -1); return true;
  case FL_KEY_DOWN: move(a, 1); return true;
  case FL_KEY_ENTER: st->focus = true; return true;
  case FL_KEY_MOUSE:
    if (k->mouse == FL_MOUSE_WHEEL_UP) move(a, -1);
    else if (k->mouse == FL_MOUSE_WHEEL_DOWN) move(a, 1);
    else st->focus = k->y < a->layout.pane[FL_PANE_MAIN].y;
    return true;
  case FL_KEY_CHAR:
    if (k->cp == 'k') move(a, -1);
    else if (k->cp == 'j') move(a, 1);
    else if (k->cp == 'i') st->focus = true;
    else return false;
    return true;
  default: return false;
  }
}

static bool typing(const fl_app *a, uint32_t cp) {
  return fl_app_field_takes(&a->retrieval.input, a->retrieval.focus, cp);
}

static const char *const help[][2] = {
  { "typing", "scores follow while you type; Esc leaves the field, i returns" },
  { "check mark", "the document was chosen" },
  { "floor", "the score that a document must reach" },
  { "margin", "how far the best that was left out lies behind the last that was taken" },
  { "up down", "go through the recent queries" },
  { NULL, NULL }
};

const fl_view fl_view_retrieval = { "retrieval", "Retrieval", draw, key, typing, help };
