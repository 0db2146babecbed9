/* document.c - one document opened: where it is, what of it was read, its conversations. */
#include <stdio.h>
#include <string.h>

#include "tui/app.h"
#include "tui/format.h"

tui_mark tui_residency_glyph(tui_residency r) {
  switch (r) {
  case TUI_TRAINING: return (tui_mark){ 0x25B6, ST_TRAINING, "training now" };
  case TUI_RESIDENT: return (tui_mark){ 0x25A0, ST_RESIDENT, "in memory" };
  case TUI_EVICTED: return (tui_mark){ 0x25C6, ST_EVICTED, "just left memory" };
  case TUI_ON_DISK: break;
  }
  return (tui_mark){ 0x00B7, ST_DISK, "on disk" };
}

void tui_coverage_strip(tui_canvas *c, int x, int y, int cols, const tui_doc *d) {
  static const uint32_t shade[] = { 0x00B7, 0x2591, 0x2592, 0x2593, 0x2588 };
  unsigned most = 1;
  for (size_t i = 0; i < TUI_HEAT; i++)
    if (d->heat[i] > most) most = d->heat[i];
  for (int i = 0; i < cols; i++) {
    size_t from = (size_t)i * TUI_HEAT / (size_t)cols,
           to = (size_t)(i + 1) * TUI_HEAT / (size_t)cols;
    unsigned n = 0;
    for (size_t k = from; k < to || k == from; k++)
      if (d->heat[k] > n) n = d->heat[k];
    unsigned level = n == 0 ? 0 : 1 + (n * 3 + most / 2) / most;
    tui_put_cp(c, x + i, y, n ? ST_BAR : ST_FRAME, shade[level > 4 ? 4 : level]);
  }
}

static int conversations(tui_app *a, tui_canvas *c, tui_rect r, int y, const tui_doc *d) {
  tui_feed *f = tui_app_feed(a);
  uint32_t at = d->last_study;
  while (y < r.y + r.h && at != TUI_NONE) {
    const tui_rec_study *st = tui_store_rec(&f->store, TUI_EV_STUDY, at);
    at = st->prev;
    if (st->doc != d->id) continue;
    const fl_json *j = tui_feed_detail(f, st->rec.event);
    const char *request = NULL;
    if (j) fl_json_get_str(j, "request", &request);
    const char *kind =
        st->rejected ? "rejected" : tui_study_kinds[st->kind < TUI_KINDS_OF_STUDY ? st->kind : 0];
    tui_put_fit(c, r.x + 1, y, 13, st->rejected ? ST_WARN : ST_DIM, kind, strlen(kind));
    if (!request) request = "(its line cannot be read any more)";
    tui_put_fit(c, r.x + 15, y, r.w - 16, ST_TEXT, request, strlen(request));
    y++;
  }
  return y;
}

void tui_document_draw(tui_app *a, tui_canvas *c, tui_rect frame) {
  const tui_feed *f = tui_app_feed(a);
  const tui_doc *d = tui_fleet_selected(a);
  char buf[32], title[160], v1[TUI_FMT], v2[TUI_FMT], v3[TUI_FMT];
  char teacher[TUI_FMT + 16] = "";
  size_t n;
  if (!d) {
    tui_frame(c, frame, "Document");
    return;
  }
  const char *name = tui_feed_doc_name(f, d, buf, sizeof buf, &n);
  snprintf(title, sizeof title, "%.*s", (int)tui_text_fit(name, n < 150 ? n : 150, 60), name);
  tui_rect r = tui_frame(c, frame, title);
  tui_canvas_clip(c, r);
  int y = r.y;
  tui_mark g = tui_residency_glyph(d->residency);
  tui_put_cp(c, r.x + 1, y, g.style, g.cp);
  tui_putf(c, r.x + 3, y++, ST_TEXT, "%s, %s tokens, %s rows, %s steps", g.word,
           tui_fmt_u32(v1, d->tokens), tui_fmt_u32(v2, d->rows), tui_fmt_u32(v3, d->steps));
  if (!isnan(d->teacher))
    snprintf(teacher, sizeof teacher, ", teacher %s", tui_fmt_num(v1, d->teacher, 3));
  tui_putf(c, r.x + 1, y++, ST_TEXT, "loss %s, held-out %s alone, %s together%s",
           tui_fmt_num(v1, d->loss, 3), tui_fmt_num(v2, d->alone, 3),
           tui_fmt_num(v3, d->composed, 3), teacher);
  tui_putf(c, r.x + 1, y, ST_TEXT, "read %s in %zu span%s", tui_fmt_part(v1, tui_doc_coverage(d)),
           d->n_spans, d->n_spans == 1 ? "" : "s");
  tui_putf(c, r.x + 22, y++, ST_DIM, " %u conversations, %u rejected", d->convs, d->rejected);
  tui_coverage_strip(c, r.x + 1, y++, r.w - 2, d);
  conversations(a, c, r, y + 1 < r.y + r.h ? y + 1 : y, d);
}
