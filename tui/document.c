/* document.c - one document opened: where it is, what of it was read, its conversations. */
#include <stdio.h>
#include <string.h>

#include "tui/app.h"
#include "tui/format.h"

fl_mark fl_residency_glyph(fl_residency r) {
  switch (r) {
  case FL_TRAINING: return (fl_mark){ 0x25B6, ST_TRAINING, "training now" };
  case FL_RESIDENT: return (fl_mark){ 0x25A0, ST_RESIDENT, "in memory" };
  case FL_EVICTED: return (fl_mark){ 0x25C6, ST_EVICTED, "just left memory" };
  case FL_ON_DISK: break;
  }
  return (fl_mark){ 0x00B7, ST_DISK, "on disk" };
}

void fl_coverage_strip(fl_canvas *c, int x, int y, int cols, const fl_doc *d) {
  static const uint32_t shade[] = { 0x00B7, 0x2591, 0x2592, 0x2593, 0x2588 };
  unsigned most = 1;
  for (size_t i = 0; i < FL_HEAT; i++)
    if (d->heat[i] > most) most = d->heat[i];
  for (int i = 0; i < cols; i++) {
    size_t from = (size_t)i * FL_HEAT / (size_t)cols, to = (size_t)(i + 1) * FL_HEAT / (size_t)cols;
    unsigned n = 0;
    for (size_t k = from; k < to || k == from; k++)
      if (d->heat[k] > n) n = d->heat[k];
    unsigned level = n == 0 ? 0 : 1 + (n * 3 + most / 2) / most;
    fl_put_cp(c, x + i, y, n ? ST_BAR : ST_FRAME, shade[level > 4 ? 4 : level]);
  }
}

static int conversations(fl_app *a, fl_canvas *c, fl_rect r, int y, const fl_doc *d) {
  fl_feed *f = fl_app_feed(a);
  uint32_t at = d->last_study;
  while (y < r.y + r.h && at != FL_NONE) {
    const fl_rec_study *st = fl_store_rec(&f->store, FL_EV_STUDY, at);
    at = st->prev;
    if (st->doc != d->id) continue;
    const fl_json *j = fl_feed_detail(f, st->rec.event);
    const char *request = NULL;
    if (j) fl_json_get_str(j, "request", &request);
    const char *kind = st->rejected ? "rejected" : fl_study_kinds[st->kind < 8 ? st->kind : 0];
    fl_put_fit(c, r.x + 1, y, 13, st->rejected ? ST_WARN : ST_DIM, kind, strlen(kind));
    if (!request) request = "(its line cannot be read any more)";
    fl_put_fit(c, r.x + 15, y, r.w - 16, ST_TEXT, request, strlen(request));
    y++;
  }
  return y;
}

void fl_document_draw(fl_app *a, fl_canvas *c, fl_rect frame) {
  const fl_feed *f = fl_app_feed(a);
  const fl_doc *d = fl_fleet_selected(a);
  char buf[32], title[160], v1[FL_FMT], v2[FL_FMT], v3[FL_FMT];
  char teacher[FL_FMT + 16] = "";
  size_t n;
  if (!d) {
    fl_frame(c, frame, "Document");
    return;
  }
  const char *name = fl_feed_doc_name(f, d, buf, sizeof buf, &n);
  snprintf(title, sizeof title, "%.*s", (int)fl_text_fit(name, n < 150 ? n : 150, 60), name);
  fl_rect r = fl_frame(c, frame, title);
  fl_canvas_clip(c, r);
  int y = r.y;
  fl_mark g = fl_residency_glyph(d->residency);
  fl_put_cp(c, r.x + 1, y, g.style, g.cp);
  fl_putf(c, r.x + 3, y++, ST_TEXT, "%s, %s tokens, %s rows, %s steps", g.word,
          fl_fmt_u32(v1, d->tokens), fl_fmt_u32(v2, d->rows), fl_fmt_u32(v3, d->steps));
  if (!isnan(d->teacher))
    snprintf(teacher, sizeof teacher, ", teacher %s", fl_fmt_num(v1, d->teacher, 3));
  fl_putf(c, r.x + 1, y++, ST_TEXT, "loss %s, held-out %s alone, %s together%s",
          fl_fmt_num(v1, d->loss, 3), fl_fmt_num(v2, d->alone, 3), fl_fmt_num(v3, d->composed, 3),
          teacher);
  fl_putf(c, r.x + 1, y, ST_TEXT, "read %s in %zu span%s", fl_fmt_part(v1, fl_doc_coverage(d)),
          d->n_spans, d->n_spans == 1 ? "" : "s");
  fl_putf(c, r.x + 22, y++, ST_DIM, " %u conversations, %u rejected", d->convs, d->rejected);
  fl_coverage_strip(c, r.x + 1, y++, r.w - 2, d);
  conversations(a, c, r, y + 1 < r.y + r.h ? y + 1 : y, d);
}
