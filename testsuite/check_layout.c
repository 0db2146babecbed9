/* check_layout.c - the layout at every size, and the canvas. */
#include <string.h>

#include "suite.h"
#include "tui/braille.h"
#include "tui/export.h"
#include "tui/layout.h"

static bool overlap(tui_rect a, tui_rect b) {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

static void check_one(tui_view_id v, int w, int h, tui_wish wish) {
  tui_layout l;
  tui_layout_make(&l, v, w, h, wish);
  if (w < TUI_MIN_W || h < TUI_MIN_H) {
    if (!l.too_small) ck_abort_msg("%dx%d is not said to be too small", w, h);
    return;
  }
  int area = 0;
  for (int i = 0; i < TUI_PANES; i++) {
    tui_rect r = l.pane[i];
    if (r.w == 0) continue;
    area += r.w * r.h;
    if (r.x < 0 || r.y < 0 || r.w < 0 || r.h < 0 || r.x + r.w > w || r.y + r.h > h)
      ck_abort_msg("view %d %dx%d: pane %d leaves the screen", v, w, h, i);
    for (int k = 0; k < i; k++)
      if (l.pane[k].w && overlap(r, l.pane[k]))
        ck_abort_msg("view %d %dx%d: panes %d and %d overlap", v, w, h, i, k);
  }
  if (area != w * h) ck_abort_msg("view %d %dx%d: %d cells are nobody's", v, w, h, w * h - area);
  if (l.pane[TUI_PANE_MAIN].w < 20 || l.pane[TUI_PANE_MAIN].h < 3)
    ck_abort_msg("view %d %dx%d: the main pane is %dx%d", v, w, h, l.pane[TUI_PANE_MAIN].w,
                 l.pane[TUI_PANE_MAIN].h);
}

/* All sizes from 20x5 to 400x120 for every view, with few, many and no documents. */
START_TEST(sweep) {
  static const size_t docs[] = { 0, 1, 12, 400, 65536 };
  for (int v = 0; v < TUI_VIEWS; v++)
    for (int w = 20; w <= 400; w++)
      for (int h = 5; h <= 120; h++)
        for (size_t d = 0; d < 5; d++)
          for (int split = 0; split < 2; split++)
            check_one((tui_view_id)v, w, h, (tui_wish){ docs[d], split });
}
END_TEST

static tui_canvas canvas(int w, int h) {
  tui_canvas c = { 0 };
  ck_assert_int_eq(tui_canvas_resize(&c, w, h), 0);
  return c;
}

static const char *text_of(const tui_canvas *c) {
  static fl_buf b;
  fl_buf_reset(&b);
  tui_canvas_text(c, &b);
  return b.data;
}

START_TEST(clipping) {
  tui_canvas c = canvas(6, 3);
  tui_canvas_clip(&c, (tui_rect){ 1, 1, 3, 1 });
  tui_put(&c, -2, 1, ST_TEXT, "abcdefghij");
  tui_put(&c, 1, 0, ST_TEXT, "no");
  tui_fill(&c, (tui_rect){ -5, 2, 50, 50 }, ST_TEXT, 'x');
  ck_assert_str_eq(text_of(&c), "\n def\n\n");
  tui_canvas_release(&c);
}
END_TEST

START_TEST(texts_that_collide_are_counted) {
  tui_canvas c = canvas(10, 1);
  tui_fill(&c, (tui_rect){ 0, 0, 10, 1 }, ST_FRAME, 0x2500);
  tui_put(&c, 0, 0, ST_TEXT, "ab cd"); /* over a frame: as it should be */
  ck_assert_uint_eq(c.collisions, 0);
  tui_put(&c, 1, 0, ST_TEXT, "xyz"); /* over b and c, not over the blank */
  ck_assert_uint_eq(c.collisions, 2);
  tui_canvas_release(&c);
}
END_TEST

START_TEST(wide_glyphs) {
  tui_canvas c = canvas(6, 1);
  tui_put(&c, 0, 0, ST_TEXT, "\xE6\xBC\xA2\xE5\xAD\x97");
  tui_put(&c, 1, 0, ST_TEXT, "x"); /* on the right half: the left half becomes a blank */
  ck_assert_str_eq(text_of(&c), " x\xE5\xAD\x97\n");
  tui_put(&c, 2, 0, ST_TEXT, "y"); /* on the left half */
  ck_assert_str_eq(text_of(&c), " xy\n");
  tui_put(&c, 5, 0, ST_TEXT, "\xE6\xBC\xA2"); /* half of it would hang over the edge */
  ck_assert_str_eq(text_of(&c), " xy\n");
  tui_canvas_release(&c);
}
END_TEST

START_TEST(ascii_keeps_columns) {
  tui_canvas c = canvas(10, 1);
  c.ascii = true;
  int n = tui_put(&c, 0, 0, ST_TEXT,
                  "a\xE6\xBC\xA2"
                  "b\xE2\x94\x80\xCC\x81z");
  ck_assert_int_eq(n, 6);
  ck_assert_str_eq(text_of(&c), "a??b-z\n");
  tui_canvas_release(&c);
}
END_TEST

START_TEST(fitting_ends_in_an_ellipsis) {
  tui_canvas c = canvas(10, 1);
  ck_assert_int_eq(tui_put_fit(&c, 0, 0, 5, ST_TEXT, "abcdefgh", 8), 5);
  ck_assert_str_eq(text_of(&c), "abcd\xE2\x80\xA6\n");
  ck_assert_int_eq(tui_put_fit(&c, 0, 0, 0, ST_TEXT, "abc", 3), 0);
  tui_canvas_release(&c);
}
END_TEST

START_TEST(bars) {
  tui_canvas c = canvas(4, 1);
  tui_bar(&c, 0, 0, 4, 0.5, ST_BAR);
  ck_assert_str_eq(text_of(&c), "\xE2\x96\x88\xE2\x96\x88\xC2\xB7\xC2\xB7\n");
  tui_bar(&c, 0, 0, 4, 9, ST_BAR);
  tui_bar(&c, 0, 0, 4, __builtin_nan(""), ST_BAR);
  ck_assert_str_eq(text_of(&c), "\xC2\xB7\xC2\xB7\xC2\xB7\xC2\xB7\n");
  tui_canvas_release(&c);
}
END_TEST

START_TEST(braille_dots) {
  tui_canvas c = canvas(2, 1);
  tui_plot p;
  ck_assert_int_eq(tui_plot_init(&p, 2, 1), 0);
  tui_plot_line(&p, 0, 0, 3, 3, ST_TEXT); /* the diagonal: dots 1, 5 | 3, 8 */
  tui_plot_dot(&p, -1, 0, ST_TEXT);
  tui_plot_dot(&p, 4, 0, ST_TEXT);
  tui_plot_draw(&p, &c, 0, 0);
  ck_assert_str_eq(text_of(&c), "\xE2\xA0\x91\xE2\xA2\x84\n");
  tui_plot_release(&p);
  tui_canvas_release(&c);
}
END_TEST

START_TEST(svg_is_escaped_and_closed) {
  tui_canvas c = canvas(30, 2);
  fl_buf b = { 0 };
  tui_put(&c, 0, 0, ST_BAD, "</text><script>&\"");
  tui_put(&c, 0, 1, ST_SELECT, "\xE2\x94\x80\xE2\xA3\xBF\xE2\x96\x8C\xE6\xBC\xA2");
  tui_export_svg(&b, &c);
  ck_assert_ptr_null(strstr(b.data, "<script"));
  ck_assert_ptr_nonnull(strstr(b.data, "&lt;/text&gt;&lt;script&gt;&amp;"));
  ck_assert_ptr_nonnull(strstr(b.data, "</svg>"));
  fl_buf_release(&b);
  tui_canvas_release(&c);
}
END_TEST

Suite *suite_layout(void);
Suite *suite_layout(void) {
  Suite *s = suite_create("layout");
  TCase *t = tcase_create("Core");
  tcase_add_test(t, sweep);
  tcase_add_test(t, clipping);
  tcase_add_test(t, texts_that_collide_are_counted);
  tcase_add_test(t, wide_glyphs);
  tcase_add_test(t, ascii_keeps_columns);
  tcase_add_test(t, fitting_ends_in_an_ellipsis);
  tcase_add_test(t, bars);
  tcase_add_test(t, braille_dots);
  tcase_add_test(t, svg_is_escaped_and_closed);
  tcase_set_timeout(t, 60);
  suite_add_tcase(s, t);
  return s;
}
