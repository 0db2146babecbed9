/* check_pictures.c - whole screens of the recorded log against goldens, and a sweep over sizes. */
#include "views_util.h"

START_TEST(pictures) {
  static const int size[3][2] = { { 80, 24 }, { 200, 60 }, { 60, 15 } };
  open_voyage();
  for (uint32_t v = 0; v < TUI_VIEWS; v++)
    for (int s = 0; s < 3; s++) {
      char name[64];
      press(TUI_KEY_CHAR, '1' + v);
      snprintf(name, sizeof name, "%s-%dx%d", tui_view_names[v], size[s][0], size[s][1]);
      golden(name, size[s][0], size[s][1]);
    }
}
END_TEST

START_TEST(pictures_in_ascii) {
  open_voyage();
  app->settings.ascii = true;
  for (uint32_t v = 0; v < TUI_VIEWS; v++) {
    char name[64];
    press(TUI_KEY_CHAR, '1' + v);
    snprintf(name, sizeof name, "%s-ascii-80x24", tui_view_names[v]);
    golden(name, 80, 24);
    for (const char *p = draw(200, 60); *p; p++) ck_assert_int_lt((unsigned char)*p, 0x80);
  }
}
END_TEST

START_TEST(overlays) {
  open_voyage();
  press(TUI_KEY_F, 1);
  golden("help-80x24", 80, 24);
  press(TUI_KEY_ESC, 0);
  press(TUI_KEY_F, 9);
  golden("menu-80x24", 80, 24);
  press(TUI_KEY_ESC, 0);
  press(TUI_KEY_F, 2);
  golden("setup-80x24", 80, 24);
  press(TUI_KEY_ESC, 0);
  type("X");
  golden("stop-80x24", 80, 24);
}
END_TEST

/* Every view, opened and not, at sizes from 20x5 to 400x120: no text over another. FL_SWEEP=1
 * (make check-long) takes all of them, otherwise steps without a common factor. */
START_TEST(no_text_lies_over_another) {
  int step_w = getenv("FL_SWEEP") ? 1 : 19, step_h = getenv("FL_SWEEP") ? 1 : 7;
  size_t bad = 0;
  open_voyage();
  for (int open = 0; open < 2; open++) {
    app->fleet.open = app->chat.split = open;
    for (uint32_t v = 0; v < TUI_VIEWS; v++) {
      tui_app_show(app, (tui_view_id)v);
      for (int w = 20; w <= 400; w += step_w)
        for (int h = 5; h <= 120; h += step_h) {
          draw(w, h);
          if (screen.collisions && ++bad <= 20)
            printf("%s %dx%d: %zu glyphs over others%s\n", tui_view_names[v], w, h,
                   screen.collisions, open ? " (opened)" : "");
        }
    }
  }
  ck_assert_uint_eq(bad, 0);
}
END_TEST

START_TEST(too_small) {
  open_voyage();
  golden("small-20x5", 20, 5);
  ck_assert_ptr_nonnull(strstr(draw(59, 30), "needs a terminal of 60 by 15"));
}
END_TEST

START_TEST(a_document_opened) {
  open_voyage();
  press(TUI_KEY_DOWN, 0);
  press(TUI_KEY_ENTER, 0);
  golden("document-80x24", 80, 24);
  press(TUI_KEY_ESC, 0);
  ck_assert(!app->fleet.open);
}
END_TEST

START_TEST(a_moment_of_the_past) {
  open_voyage();
  for (int i = 0; i < 20; i++) type(",");
  golden("fleet-past-80x24", 80, 24);
  ck_assert_uint_eq(tui_app_snap(app)->round, 40);
  type(".");
  ck_assert_uint_eq(tui_app_snap(app)->round, 41);
  type("f");
  ck_assert_uint_eq(tui_app_snap(app)->round, 60);
  ck_assert(tui_app_feed(app)->follow);
}
END_TEST

Suite *suite_pictures(void);
Suite *suite_pictures(void) {
  Suite *s = suite_create("pictures");
  TCase *t = tcase_create("Core");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, pictures);
  tcase_add_test(t, pictures_in_ascii);
  tcase_add_test(t, overlays);
  tcase_add_test(t, too_small);
  tcase_add_test(t, a_document_opened);
  tcase_add_test(t, a_moment_of_the_past);
  tcase_set_timeout(t, 120);
  suite_add_tcase(s, t);
  t = tcase_create("Sweep");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, no_text_lies_over_another);
  tcase_set_timeout(t, getenv("FL_SWEEP") ? 3600 : 120);
  suite_add_tcase(s, t);
  return s;
}
