/* view_fleet.c - the documents: which are in memory, how far each is, which is worst; and one of
 * them opened. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tui/app.h"
#include "tui/format.h"

typedef enum column {
  COL_ID,
  COL_NAME,
  COL_STEPS,
  COL_TOKENS,
  COL_LOSS,
  COL_HELD,
  COL_COMPOSED,
  COL_COVERED,
  COL_SEEN,
  COLUMNS
} column;

static const char *const column_names[COLUMNS] = {
  "number",   "name",     "steps", "tokens", "loss", "held-out loss", "composed held-out loss",
  "coverage", "last seen"
};

/* --- order, filter, selection ---------------------------------------------------------------- */

/* ASCII letters without their case; the rest byte by byte, which is right for UTF-8. */
static bool contains(const char *s, size_t n, const char *what) {
  size_t m = strlen(what);
  for (size_t i = 0; m <= n && i <= n - m; i++) {
    size_t k = 0;
    while (k < m && tolower((unsigned char)s[i + k]) == tolower((unsigned char)what[k])) k++;
    if (k == m) return true;
  }
  return m == 0;
}

static bool doc_contains(const tui_feed *f, const tui_doc *d, const char *what) {
  char buf[32];
  size_t n;
  const char *name = tui_feed_doc_name(f, d, buf, sizeof buf, &n);
  return contains(name, n, what);
}

static double value_of(const tui_doc *d, int col) {
  switch (col) {
  case COL_STEPS: return tui_known(d->steps);
  case COL_TOKENS: return tui_known(d->tokens);
  case COL_LOSS: return d->loss;
  case COL_HELD: return d->alone;
  case COL_COMPOSED: return d->composed;
  case COL_COVERED: return tui_doc_coverage(d);
  case COL_SEEN: return tui_known(d->last_round);
  default: return d->id;
  }
}

typedef struct sort_ctx {
  const tui_feed *f;
  int col;
  bool down;
} sort_ctx;

static int compare_names(const tui_feed *f, const tui_doc *a, const tui_doc *b) {
  char ba[32], bb[32];
  size_t na, nb;
  const char *sa = tui_feed_doc_name(f, a, ba, sizeof ba, &na);
  const char *sb = tui_feed_doc_name(f, b, bb, sizeof bb, &nb);
  int c = memcmp(sa, sb, na < nb ? na : nb);
  return c ? c : (na > nb) - (na < nb);
}

/* Unknown values stand last in either direction; equal ones in the order of their numbers. */
static bool goes_before(const sort_ctx *s, uint32_t pa, uint32_t pb) {
  const tui_doc *a = &s->f->snap.doc[pa], *b = &s->f->snap.doc[pb];
  if (s->col == COL_NAME) {
    int c = compare_names(s->f, a, b);
    if (c) return s->down ? c > 0 : c < 0;
  } else {
    double va = value_of(a, s->col), vb = value_of(b, s->col);
    if (isnan(va) != isnan(vb)) return isnan(vb);
    if (!isnan(va) && va != vb) return s->down ? va > vb : va < vb;
  }
  return a->id < b->id;
}

static void sift(uint32_t *v, size_t root, size_t n, const sort_ctx *s) {
  for (;;) {
    size_t child = 2 * root + 1;
    if (child >= n) return;
    if (child + 1 < n && goes_before(s, v[child], v[child + 1])) child++;
    if (!goes_before(s, v[root], v[child])) return;
    uint32_t t = v[root];
    v[root] = v[child];
    v[child] = t;
    root = child;
  }
}

/* Heapsort: no context-free comparison function, no memory, no bad case. */
static void sort_places(uint32_t *v, size_t n, const sort_ctx *s) {
  for (size_t i = n / 2; i-- > 0;) sift(v, i, n, s);
  for (size_t end = n; end-- > 1;) {
    uint32_t t = v[0];
    v[0] = v[end];
    v[end] = t;
    sift(v, 0, end, s);
  }
}

static void make_order(tui_app *a) {
  tui_fleet_state *st = &a->fleet;
  const tui_feed *f = tui_app_feed(a);
  if (st->cap_order < f->snap.n_docs) {
    uint32_t *order = fl_reallocarray(st->order, f->snap.n_docs, sizeof *order);
    if (!order) return;
    st->order = order;
    st->cap_order = f->snap.n_docs;
  }
  st->n_order = 0;
  for (size_t i = 0; i < f->snap.n_docs; i++)
    if (!st->filter[0] || doc_contains(f, &f->snap.doc[i], st->filter))
      st->order[st->n_order++] = (uint32_t)i;
  sort_ctx s = { f, a->settings.sort, a->settings.sort_down };
  sort_places(st->order, st->n_order, &s);
}

/* Row of the selected document in the order; the first when it is not shown. */
static size_t selected_row(tui_app *a) {
  const tui_fleet_state *st = &a->fleet;
  for (size_t i = 0; i < st->n_order; i++)
    if (tui_app_snap(a)->doc[st->order[i]].id == st->selected) return i;
  return 0;
}

tui_doc *tui_fleet_selected(tui_app *a) {
  tui_snapshot *s = tui_app_snap(a);
  tui_doc *d = tui_snapshot_doc(s, a->fleet.selected);
  if (d || s->n_docs == 0) return d;
  make_order(a);
  return a->fleet.n_order ? &s->doc[a->fleet.order[0]] : NULL;
}

static void select_row(tui_app *a, size_t row) {
  const tui_fleet_state *st = &a->fleet;
  if (st->n_order == 0) return;
  if (row >= st->n_order) row = st->n_order - 1;
  a->fleet.selected = tui_app_snap(a)->doc[st->order[row]].id;
}

void tui_fleet_search(tui_app *a, int direction) {
  const tui_feed *f = tui_app_feed(a);
  make_order(a);
  size_t n = a->fleet.n_order, row = selected_row(a);
  if (!a->search[0] || n == 0) {
    tui_app_say(a, true, "nothing to search for; press / and type a part of a name");
    return;
  }
  for (size_t i = 1; i <= n; i++) {
    size_t at = direction > 0 ? (row + i) % n : (row + n - i) % n;
    const tui_doc *d = &f->snap.doc[a->fleet.order[at]];
    if (!doc_contains(f, d, a->search)) continue;
    a->fleet.selected = d->id;
    return;
  }
  tui_app_say(a, true, "no document's name contains \"%s\"", a->search);
}

/* --- the map --------------------------------------------------------------------------------- */

static void legend(tui_canvas *c, tui_rect frame) {
  static const tui_residency order[] = { TUI_TRAINING, TUI_RESIDENT, TUI_EVICTED, TUI_ON_DISK };
  static const char *const brief[] = { "training", "memory", "just left", "disk" };
  bool full = frame.w >= 100;
  int x = frame.x + frame.w - (full ? 62 : 43);
  if (frame.w < 78) return;
  tui_put(c, x - 1, frame.y, ST_TEXT, " ");
  for (size_t i = 0; i < 4; i++) {
    tui_mark g = tui_residency_glyph(order[i]);
    tui_put_cp(c, x, frame.y, g.style, g.cp);
    x += 1 + tui_putf(c, x + 1, frame.y, ST_DIM, " %s ", full ? g.word : brief[i]);
  }
}

static void draw_map(tui_app *a, tui_canvas *c, tui_rect r) {
  const tui_feed *f = tui_app_feed(a);
  const tui_snapshot *s = &f->snap;
  char title[96], budget[TUI_FMT];
  snprintf(title, sizeof title, "In memory: %zu of %zu (budget %s)",
           tui_snapshot_count(s, TUI_RESIDENT), s->n_docs, tui_fmt_u32(budget, s->budget));
  tui_rect in = tui_frame(c, r, title);
  legend(c, r);
  if (in.w <= 0 || in.h <= 0 || s->n_docs == 0) return;
  tui_canvas_clip(c, in);
  size_t per_row = (s->n_docs + (size_t)in.h - 1) / (size_t)in.h;
  int cell = in.w / (int)(per_row > (size_t)in.w ? (size_t)in.w : per_row);
  if (cell > 26) cell = 26;
  if (cell < 10) cell = cell >= 2 && per_row * 2 <= (size_t)in.w ? 2 : 1;
  per_row = (size_t)(in.w / cell);
  size_t rows = (s->n_docs + per_row - 1) / per_row, first = 0;
  const tui_doc *sel = tui_fleet_selected(a);
  if (rows > (size_t)in.h && sel) { /* too many for the map: the part around the selection */
    size_t row = (size_t)(sel - s->doc) / per_row;
    first = row < (size_t)in.h / 2 ? 0 : row - (size_t)in.h / 2;
    if (first > rows - (size_t)in.h) first = rows - (size_t)in.h;
  }
  for (size_t i = first * per_row; i < s->n_docs; i++) {
    const tui_doc *d = &s->doc[i];
    int y = in.y + (int)(i / per_row - first), x = in.x + (int)(i % per_row) * cell;
    if (y >= in.y + in.h) break;
    tui_mark g = tui_residency_glyph(d->residency);
    if (d->state == 4) g = (tui_mark){ 0x00D7, ST_DIM, "removed" };
    tui_put_cp(c, x, y, d == sel ? ST_SELECT : g.style, g.cp);
    if (cell < 10) continue;
    char buf[32];
    size_t n;
    const char *name = tui_feed_doc_name(f, d, buf, sizeof buf, &n);
    name = tui_text_base(name, &n);
    tui_put_fit(c, x + 2, y, cell - 3, d->residency == TUI_ON_DISK ? ST_DIM : ST_TEXT, name, n);
  }
}

/* --- the table ------------------------------------------------------------------------------- */

typedef struct columns {
  int name_w, steps_x, tokens_x, loss_x, held_x, composed_x, covered_x, seen_x; /* 0: left out */
  int steps_w;
} columns;

/* The name takes what the figures leave; figures that matter least go first. */
static columns place_columns(tui_rect r) {
  columns p = { 0 };
  int w = r.w, x = r.x + r.w;
  p.seen_x = x -= 9;
  if (w >= 92) p.covered_x = x -= 6;
  if (w >= 72) p.composed_x = x -= 9;
  p.held_x = x -= 9;
  p.loss_x = x -= 8;
  if (w >= 78) p.tokens_x = x -= 8;
  p.steps_w = w >= 100 ? 16 : w >= 76 ? 11 : 6;
  p.steps_x = x -= p.steps_w + 1;
  p.name_w = x - (r.x + 7);
  return p;
}

static void right(tui_canvas *c, int x, int w, int y, tui_style st, const char *s) {
  tui_put_right(c, x + w, y, st, s);
}

static void draw_heads(const tui_app *a, tui_canvas *c, tui_rect r, columns p) {
  tui_fill(c, (tui_rect){ r.x, r.y, r.w, 1 }, ST_KEYBAR, ' ');
  const struct {
    int x, w, col;
    const char *name;
  } heads[] = { { r.x + 1, 5, COL_ID, "#" },
                { p.steps_x, p.steps_w, COL_STEPS, "steps" },
                { p.tokens_x, 7, COL_TOKENS, "tokens" },
                { p.loss_x, 7, COL_LOSS, "loss" },
                { p.held_x, 8, COL_HELD, "held-out" },
                { p.composed_x, 8, COL_COMPOSED, "together" },
                { p.covered_x, 5, COL_COVERED, "cover" },
                { p.seen_x, 8, COL_SEEN, "seen" } };
  int sort = a->settings.sort;
  uint32_t arrow = a->settings.sort_down ? 0x25BC : 0x25B2;
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
    if (heads[i].x == 0) continue;
    right(c, heads[i].x, heads[i].w, r.y, ST_KEYBAR, heads[i].name);
    if (heads[i].col == sort)
      tui_put_cp(c, heads[i].x + heads[i].w - (int)strlen(heads[i].name) - 1, r.y, ST_KEYBAR,
                 arrow);
  }
  int n = tui_put(c, r.x + 7, r.y, ST_KEYBAR, "document");
  if (sort == COL_NAME) tui_put_cp(c, r.x + 7 + n, r.y, ST_KEYBAR, arrow);
}

static void draw_row(tui_app *a, tui_canvas *c, tui_rect r, columns p, int y, const tui_doc *d,
                     double most_steps) {
  const tui_feed *f = tui_app_feed(a);
  char buf[TUI_FMT];
  size_t n;
  size_t worst = tui_snapshot_worst(&f->snap);
  bool is_worst = worst != SIZE_MAX && d == &f->snap.doc[worst];
  tui_mark g = tui_residency_glyph(d->residency);
  bool by_loss = tui_snapshot_worst_by(&f->snap) == TUI_WORST_BY_LOSS;
  bool by_alone = !by_loss && !(d->composed > d->alone);
  tui_style plain = tui_doc_held_is_old(d) ? ST_DIM : ST_TEXT; /* of the held-out losses */
  tui_put_cp(c, r.x, y, g.style, g.cp);
  if (d->marked) tui_put_cp(c, r.x + 1, y, ST_WARN, 0x2605);
  snprintf(buf, sizeof buf, "%u", d->id);
  right(c, r.x + 1, 5, y, ST_DIM, buf);
  const char *name = tui_feed_doc_name(f, d, buf, sizeof buf, &n);
  int name_w = p.name_w - 1 - (is_worst ? 6 : 0);
  if (tui_text_columns(name, n) > (size_t)name_w) name = tui_text_base(name, &n);
  int used = tui_put_fit(c, r.x + 7, y, name_w, is_worst ? ST_BAD : ST_TEXT, name, n);
  if (is_worst) tui_put(c, r.x + 7 + used, y, ST_BAD, " worst");
  tui_fmt_u32(buf, d->steps);
  right(c, p.steps_x, p.steps_w, y, ST_TEXT, buf);
  if (p.steps_w > 8 && d->steps != TUI_NONE)
    tui_bar(c, p.steps_x, y, p.steps_w - 6, most_steps > 0 ? d->steps / most_steps : 0, ST_BAR);
  if (p.tokens_x) {
    tui_fmt_count(buf, tui_known(d->tokens));
    right(c, p.tokens_x, 7, y, ST_TEXT, buf);
  }
  /* of the worst document, the figure that makes it the worst stands out */
  right(c, p.loss_x, 7, y, is_worst && by_loss ? ST_BAD : ST_TEXT, tui_fmt_num(buf, d->loss, 3));
  right(c, p.held_x, 8, y, is_worst && by_alone ? ST_BAD : plain, tui_fmt_num(buf, d->alone, 3));
  if (p.composed_x)
    right(c, p.composed_x, 8, y, is_worst && !by_loss && !by_alone ? ST_BAD : plain,
          tui_fmt_num(buf, d->composed, 3));
  if (p.covered_x) right(c, p.covered_x, 5, y, ST_TEXT, tui_fmt_part(buf, tui_doc_coverage(d)));
  right(c, p.seen_x, 8, y, ST_DIM, tui_fmt_ago(buf, d->last_t, tui_app_now(a, f)));
}

static void draw_table(tui_app *a, tui_canvas *c, tui_rect r) {
  const tui_snapshot *s = tui_app_snap(a);
  tui_fleet_state *st = &a->fleet;
  tui_canvas_clip(c, r);
  columns p = place_columns(r);
  draw_heads(a, c, r, p);
  make_order(a);
  size_t rows = r.h > 1 ? (size_t)r.h - 1 : 0, sel = selected_row(a);
  if (sel < st->top) st->top = sel;
  if (rows && sel >= st->top + rows) st->top = sel - rows + 1;
  if (st->n_order <= rows) st->top = 0;
  st->page = rows;
  st->table = (tui_rect){ r.x, r.y + 1, r.w, (int)rows };
  double most = 0;
  for (size_t i = 0; i < s->n_docs; i++)
    if (s->doc[i].steps != TUI_NONE) most = fmax(most, s->doc[i].steps);
  for (size_t i = 0; i < rows && st->top + i < st->n_order; i++) {
    int y = r.y + 1 + (int)i;
    draw_row(a, c, r, p, y, &s->doc[st->order[st->top + i]], most);
    if (st->top + i == sel) tui_tint(c, (tui_rect){ r.x, y, r.w, 1 }, ST_SELECT);
  }
  if (st->n_order == 0)
    tui_put(c, r.x + 2, r.y + 2, ST_DIM,
            s->n_docs ? "no name contains the filter; F4 and Esc show all again"
                      : "no documents yet");
}

/* --- together -------------------------------------------------------------------------------- */

static void draw(tui_app *a, tui_canvas *c) {
  const tui_rect *pane = a->layout.pane;
  tui_canvas_clip(c, pane[TUI_PANE_TOP]);
  draw_map(a, c, pane[TUI_PANE_TOP]);
  draw_table(a, c, pane[TUI_PANE_MAIN]);
  const tui_rect *detail = pane[TUI_PANE_SIDE].w ? &pane[TUI_PANE_SIDE] : &pane[TUI_PANE_LOWER];
  if (detail->w == 0) return;
  tui_canvas_clip(c, *detail);
  tui_document_draw(a, c, *detail);
}

static void next_sort(tui_app *a) {
  tui_settings *s = &a->settings;
  s->sort = (s->sort + 1) % COLUMNS;
  s->sort_down = s->sort != COL_ID && s->sort != COL_NAME;
  a->settings_changed = true;
  tui_app_say(a, false, "sorted by %s; F6 takes the next column, I turns the order round",
              column_names[s->sort]);
}

static bool mouse(tui_app *a, const tui_key *k) {
  const tui_rect *t = &a->fleet.table;
  size_t row = selected_row(a);
  if (k->mouse == TUI_MOUSE_WHEEL_UP) select_row(a, row > 3 ? row - 3 : 0);
  else if (k->mouse == TUI_MOUSE_WHEEL_DOWN) select_row(a, row + 3);
  else if (k->y >= t->y && k->y < t->y + t->h && k->x < t->x + t->w)
    select_row(a, a->fleet.top + (size_t)(k->y - t->y));
  else if (k->y == t->y - 1) next_sort(a);
  else return false;
  if (k->mouse == TUI_MOUSE_DOUBLE) a->fleet.open = !a->fleet.open;
  return true;
}

static void toggle_mark(tui_app *a) {
  const tui_doc *d = tui_fleet_selected(a);
  if (d) tui_action_mark(a, d->id, !d->marked);
}

static bool letter(tui_app *a, uint32_t cp, size_t row) {
  switch (cp) {
  case 'k': select_row(a, row ? row - 1 : 0); return true;
  case 'j': select_row(a, row + 1); return true;
  case 'g': select_row(a, 0); return true;
  case 'G': select_row(a, SIZE_MAX); return true;
  case 's': next_sort(a); return true;
  case 'I':
    a->settings.sort_down = !a->settings.sort_down;
    a->settings_changed = true;
    return true;
  case 'm': toggle_mark(a); return true;
  case 'w': {
    size_t worst = tui_snapshot_worst(tui_app_snap(a));
    if (worst != SIZE_MAX) a->fleet.selected = tui_app_snap(a)->doc[worst].id;
    return true;
  }
  default: return false;
  }
}

static bool key(tui_app *a, const tui_key *k) {
  make_order(a);
  size_t row = selected_row(a), page = a->fleet.page ? a->fleet.page : 1;
  switch (k->code) {
  case TUI_KEY_UP: select_row(a, row ? row - 1 : 0); return true;
  case TUI_KEY_DOWN: select_row(a, row + 1); return true;
  case TUI_KEY_PAGE_UP: select_row(a, row > page ? row - page : 0); return true;
  case TUI_KEY_PAGE_DOWN: select_row(a, row + page); return true;
  case TUI_KEY_HOME: select_row(a, 0); return true;
  case TUI_KEY_END: select_row(a, SIZE_MAX); return true;
  case TUI_KEY_ENTER:
    a->fleet.open = !a->fleet.open;
    select_row(a, row);
    return true;
  case TUI_KEY_ESC: a->fleet.open = false; return true;
  case TUI_KEY_MOUSE: return mouse(a, k);
  case TUI_KEY_F:
    if (k->cp == 6) next_sort(a);
    else if (k->cp == 7) a->fleet.open = !a->fleet.open;
    else return false;
    return true;
  case TUI_KEY_CHAR: return letter(a, k->cp, row);
  default: return false;
  }
}

static const char *const help[][2] = {
  { "map", "every document: which are in memory, which is trained now" },
  { "held-out", "loss on questions kept aside, the cartridge alone: lower is better" },
  { "together", "the same with other cartridges beside it; dim: older than the loss" },
  { "arrows j k", "choose a document; PgUp, PgDn, Home g, End G" },
  { "Enter F7", "open it: what was read of it, its conversations" },
  { "w", "go to the worst: by held-out loss if it is recent, else by loss" },
  { "s F6, I", "sort by the next column, turn the order round" },
  { "m", "mark it" },
  { NULL, NULL }
};

const tui_view tui_view_fleet = { "fleet", "Fleet", draw, key, NULL, help };
