/* layout.c - the body between the two rows on top and the two at the bottom is cut up by view. */
#include "tui/layout.h"

static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }

static tui_rect cut_top(tui_rect *body, int rows) {
  rows = min(rows, body->h);
  tui_rect r = { body->x, body->y, body->w, rows };
  body->y += rows;
  body->h -= rows;
  return r;
}

static tui_rect cut_bottom(tui_rect *body, int rows) {
  rows = min(rows, body->h);
  body->h -= rows;
  return (tui_rect){ body->x, body->y + body->h, body->w, rows };
}

static tui_rect cut_right(tui_rect *body, int cols) {
  cols = min(cols, body->w);
  body->w -= cols;
  return (tui_rect){ body->x + body->w, body->y, cols, body->h };
}

static void fleet(tui_rect *pane, tui_rect *body, tui_wish wish) {
  size_t per_row = (size_t)max(1, body->w - 2);
  size_t rows = (wish.n_docs + per_row - 1) / per_row;
  /* few documents get tiles with their names: at least a row for every four of them */
  size_t tiles = (wish.n_docs + 3) / 4;
  int want = 2 + (int)(rows > 100 ? 100 : rows < tiles && tiles <= 3 ? tiles : rows ? rows : 1);
  if (body->w >= 120) pane[TUI_PANE_SIDE] = cut_right(body, min(72, body->w * 2 / 5));
  else if (wish.split) pane[TUI_PANE_LOWER] = cut_bottom(body, body->h / 2);
  pane[TUI_PANE_TOP] = cut_top(body, min(want, max(3, body->h * 2 / 5)));
  /* what a short table leaves shows the selected document */
  int table = 2 + (int)(wish.n_docs < 1000 ? wish.n_docs : 1000), left = body->h - table;
  bool detail = pane[TUI_PANE_SIDE].w > 0 || pane[TUI_PANE_LOWER].w > 0;
  if (wish.n_docs > 0 && !detail && left >= 8) pane[TUI_PANE_LOWER] = cut_bottom(body, left);
}

static void loss(tui_rect *pane, tui_rect *body) {
  pane[TUI_PANE_TOP] = cut_top(body, 2);
  if (body->w >= 100) pane[TUI_PANE_SIDE] = cut_right(body, 32);
  else pane[TUI_PANE_LOWER] = cut_bottom(body, body->h >= 14 ? 3 : 1);
}

static void retrieval(tui_rect *pane, tui_rect *body) {
  pane[TUI_PANE_TOP] = cut_top(body, body->h >= 18 ? 6 : body->h >= 14 ? 5 : 4);
  if (body->h >= 14) pane[TUI_PANE_LOWER] = cut_bottom(body, body->h / 3);
  pane[TUI_PANE_SIDE] = cut_right(body, body->w / 2);
}

static void chat(tui_rect *pane, tui_rect *body, tui_wish wish) {
  pane[TUI_PANE_LOWER] = cut_bottom(body, 3);
  if (wish.split) pane[TUI_PANE_SIDE] = cut_right(body, body->w / 2);
}

static void study(tui_rect *pane, tui_rect *body) {
  pane[TUI_PANE_TOP] = cut_top(body, body->h >= 18 && body->w < 110 ? 3 : 2);
  pane[TUI_PANE_LOWER] = cut_bottom(body, body->h / 2);
  if (body->w >= 110) pane[TUI_PANE_SIDE] = cut_right(body, body->w / 3);
}

static void cost(tui_rect *pane, tui_rect *body) {
  pane[TUI_PANE_TOP] = cut_top(body, min(9, body->h / 2));
  pane[TUI_PANE_SIDE] = cut_right(body, body->w / 2);
}

void tui_layout_make(tui_layout *out, tui_view_id view, int w, int h, tui_wish wish) {
  *out = (tui_layout){ .too_small = w < TUI_MIN_W || h < TUI_MIN_H };
  if (out->too_small) return;
  tui_rect body = { 0, 0, w, h }, *pane = out->pane;
  pane[TUI_PANE_HEADER] = cut_top(&body, 1);
  pane[TUI_PANE_TABS] = cut_top(&body, 1);
  pane[TUI_PANE_KEYS] = cut_bottom(&body, 1);
  pane[TUI_PANE_STATUS] = cut_bottom(&body, 1);
  switch (view) {
  case TUI_VIEW_FLEET: fleet(pane, &body, wish); break;
  case TUI_VIEW_LOSS: loss(pane, &body); break;
  case TUI_VIEW_RETRIEVAL: retrieval(pane, &body); break;
  case TUI_VIEW_CHAT: chat(pane, &body, wish); break;
  case TUI_VIEW_STUDY: study(pane, &body); break;
  case TUI_VIEW_COST: cost(pane, &body); break;
  case TUI_VIEWS: break;
  }
  pane[TUI_PANE_MAIN] = body;
}
