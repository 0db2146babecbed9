/* check_views.c - what keys and the mouse do to whole screens, every key at every size, hostile
 * logs, settings. How screens look: check_pictures.c. */
#include <math.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/rng.h"
#include "views_util.h"

/* --- what keys do ---------------------------------------------------------------------------- */

START_TEST(sort_and_worst) {
  open_voyage();
  while (app->settings.sort != 6) type("s"); /* held-out together, highest first */
  ck_assert(shows("\xE2\x96\xBC"
                  "together"));
  ck_assert_uint_eq(tui_app_snap(app)->doc[app->fleet.order[0]].id, 6);
  type("w");
  ck_assert_uint_eq(app->fleet.selected, 6);
  type("I");
  draw(80, 24);
  ck_assert_uint_eq(tui_app_snap(app)->doc[app->fleet.order[11]].id, 6);
}
END_TEST

START_TEST(search_and_filter) {
  open_voyage();
  type("/ROPE");
  press(TUI_KEY_ENTER, 0);
  ck_assert_uint_eq(app->fleet.selected, 5);
  type("/no such");
  press(TUI_KEY_ENTER, 0);
  ck_assert(shows("no document's name contains"));
  press(TUI_KEY_F, 4);
  type("ti");
  draw(80, 24);
  ck_assert_uint_eq(app->fleet.n_order, 2); /* tide-tables, quarantine */
  press(TUI_KEY_ENTER, 0);
  press(TUI_KEY_F, 4);
  press(TUI_KEY_ESC, 0);
  draw(80, 24);
  ck_assert_uint_eq(app->fleet.n_order, 12);
}
END_TEST

START_TEST(loss_zoom_and_cursor) {
  open_voyage();
  type("2");
  draw(80, 24);
  ck_assert_double_eq(app->loss.x1, 61);
  for (int i = 0; i < 10; i++) press(TUI_KEY_LEFT, 0);
  ck_assert(shows("round 50"));
  type("++");
  draw(80, 24);
  ck_assert_double_eq_tol(app->loss.x1 - app->loss.x0, 15.25, 1e-9);
  ck_assert(app->loss.x0 <= 50 && app->loss.x1 >= 50);
  double x0 = app->loss.x0;
  press(TUI_KEY_PAGE_UP, 0);
  draw(80, 24);
  ck_assert_double_lt(app->loss.x0, x0);
  type("0");
  draw(80, 24);
  ck_assert(app->loss.fit && isnan(app->loss.cursor));
  type("y");
  ck_assert(shows("log scale"));
  type("c");
  ck_assert(shows("the selected document"));
  type("c");
  ck_assert(shows("the worst documents"));
}
END_TEST

START_TEST(rejected_only) {
  open_voyage();
  type("5x");
  ck_assert(shows("only the rejected"));
  ck_assert(shows("rejected: the answer was"));
}
END_TEST

START_TEST(coverage_below) {
  open_voyage();
  type("5v");
  golden("study-coverage-80x24", 80, 24);
  ck_assert_ptr_nonnull(strstr(draw(200, 60), "The selected conversation"));
  press(TUI_KEY_F, 7);
  ck_assert(!shows("Coverage of"));
}
END_TEST

START_TEST(playback) {
  open_voyage();
  type(" "); /* from the beginning, as it stands at the end */
  bool more;
  app->speed = 1e6;
  app->last_tick = fl_now_s() - 0.001;
  tui_app_tick(app, 0, &more);
  ck_assert_uint_lt(tui_app_feed(app)->cursor, 392);
  for (int i = 0; i < 2000 && app->playing; i++) {
    app->last_tick = fl_now_s() - 0.1;
    tui_app_tick(app, 0, &more);
  }
  ck_assert(!app->playing);
  ck_assert_uint_eq(tui_app_feed(app)->cursor, 392);
}
END_TEST

START_TEST(it_leaves_when_told_to) {
  const char *path = fixture("events/voyage.jsonl");
  tui_options o = { .fleets = &path, .n_fleets = 1, .leave = true };
  bool more;
  ck_assert_int_eq(tui_app_init(app, &o, NULL), FL_OK);
  load();
  tui_app_tick(app, 0, &more);
  ck_assert(shows("The run has ended; this screen closes in "));
  ck_assert(!app->quit);
  app->leave_at = fl_now_s() - 1;
  tui_app_tick(app, 0, &more);
  ck_assert(app->quit);
  app->quit = false;
  press(TUI_KEY_DOWN, 0); /* somebody is there */
  tui_app_tick(app, 0, &more);
  ck_assert(!app->quit && !shows("this screen closes"));
}
END_TEST

/* The recorded log up to a round as one more fleet's. */
static void put_part_of_voyage(const char *fleet, int rounds) {
  fl_buf log = { 0 };
  char path[160], last[64];
  ck_assert_int_eq(fl_fs_read(&log, fixture("events/voyage.jsonl"), 1 << 20, NULL), FL_OK);
  snprintf(last, sizeof last, "\"ev\":\"round\",\"round\":%d,", rounds);
  const char *line = strstr(log.data, last);
  size_t end = (size_t)(strchr(line, '\n') - log.data) + 1;
  ck_assert_int_eq(mkdir(fleet, 0700), 0);
  snprintf(path, sizeof path, "%s/events.jsonl", fleet);
  ck_assert_int_eq(fl_fs_replace(path, log.data, end, NULL), FL_OK);
  fl_buf_release(&log);
}

START_TEST(a_run_without_events) {
  char one[4096], two[96];
  const char *paths[2] = { one, two };
  snprintf(one, sizeof one, "%s", fixture("events/voyage.jsonl"));
  snprintf(two, sizeof two, "%s/second", dir);
  ck_assert_int_eq(mkdir(two, 0700), 0);
  open_fleets(paths, 2);
  ck_assert(shows("1/2"));
  type("r");
  ck_assert(shows("waiting for the first event"));
  type("r2ccc");
  ck_assert(shows("all runs"));
}
END_TEST

/* Two runs of different length, of which one is the beginning of the other: the same values where
 * both have them, and the end of the shorter one named. Values as grep shows them in the log. */
START_TEST(several_runs) {
  char one[4096], two[96], three[96];
  const char *paths[3] = { one, two, three };
  snprintf(one, sizeof one, "%s", fixture("events/voyage.jsonl"));
  snprintf(two, sizeof two, "%s/a", dir);
  ck_assert_int_eq(mkdir(two, 0700), 0);
  snprintf(two, sizeof two, "%s/a/fleet", dir);
  put_part_of_voyage(two, 15);
  snprintf(three, sizeof three, "%s/b", dir);
  ck_assert_int_eq(mkdir(three, 0700), 0);
  snprintf(three, sizeof three, "%s/b/fleet", dir);
  put_part_of_voyage(three, 8);
  open_fleets(paths, 3);
  ck_assert_uint_eq(app->feed[0].snap.round, 60);
  ck_assert_uint_eq(app->feed[1].snap.round, 15);
  ck_assert_uint_eq(app->feed[2].snap.round, 8);
  ck_assert_str_eq(app->feed[1].label, "a/fleet"); /* the last name alone is the third's too */
  type("2ccc");
  ck_assert(shows("voyage.jsonl 1.425  2 a/fleet 2.381 at 15"));
  golden("loss-runs-80x24", 80, 24);
  golden("loss-runs-200x60", 200, 60);
  ck_assert(shows("3 b/fleet 1.978 at 8"));
  app->loss.cursor = 8;
  const char *all = draw(80, 24);
  ck_assert_ptr_nonnull(strstr(all, "voyage.jsonl 1.978  2 a/fleet 1.978"));
  ck_assert_ptr_null(strstr(all, " at "));
  type("o"); /* without the held-out curves */
  ck_assert_ptr_null(strstr(draw(80, 24), "held-out"));
}
END_TEST

START_TEST(mouse) {
  open_voyage();
  draw(80, 24);
  tui_app_key(app, &(tui_key){ .code = TUI_KEY_MOUSE, .x = 14, .y = 1 }); /* the second tab */
  ck_assert_int_eq(app->view, TUI_VIEW_LOSS);
  type("1");
  draw(80, 24);
  tui_app_key(app,
              &(tui_key){ .code = TUI_KEY_MOUSE, .x = 20, .y = 10 }); /* third row of the table */
  ck_assert_uint_eq(app->fleet.selected, 2);
  /* The left end of the slider. */
  tui_app_key(app, &(tui_key){ .code = TUI_KEY_MOUSE, .x = 3, .y = 22 });
  ck_assert_uint_eq(tui_app_feed(app)->cursor, 0);
  draw(80, 24);
  tui_app_key(app, &(tui_key){ .code = TUI_KEY_MOUSE, .x = 1, .y = 23 }); /* F1 */
  ck_assert_int_eq(app->overlay, TUI_OVER_HELP);
}
END_TEST

START_TEST(no_trainer) {
  open_voyage();
  type("S");
  bool more;
  tui_app_tick(app, 0, &more);
  ck_assert(shows("nothing runs on this fleet now"));
  type(":lr 7");
  press(TUI_KEY_ENTER, 0);
  ck_assert(shows(":lr takes a number"));
  type(":dance");
  press(TUI_KEY_ENTER, 0);
  ck_assert(shows(":dance is unknown"));
  type("m");
  ck_assert(tui_fleet_selected(app)->marked);
}
END_TEST

START_TEST(exports) {
  fl_buf text = { 0 };
  char *cwd = getcwd(NULL, 0);
  open_voyage();
  draw(80, 24);
  ck_assert_int_eq(chdir(dir), 0);
  type("eeE");
  ck_assert_int_eq(fl_fs_read(&text, "flotilla-fleet-002.txt", 1 << 20, NULL), FL_OK);
  ck_assert_ptr_nonnull(strstr(text.data, "In memory: 4 of 12"));
  ck_assert_int_eq(fl_fs_read(&text, "flotilla-fleet-001.svg", 1 << 20, NULL), FL_OK);
  ck_assert_ptr_nonnull(strstr(text.data, "</svg>"));
  ck_assert_int_eq(chdir(cwd), 0);
  free(cwd);
  fl_buf_release(&text);
}
END_TEST

START_TEST(settings) {
  tui_settings s, t;
  tui_settings_default(&s);
  s.sort = 4;
  s.smoothing = 100;
  s.ascii = true;
  ck_assert_int_eq(tui_settings_save(&s, NULL), FL_OK);
  tui_settings_default(&t);
  tui_settings_load(&t);
  ck_assert_int_eq(t.sort, 4);
  ck_assert_int_eq(t.smoothing, 100);
  ck_assert(t.ascii);
  char path[128];
  snprintf(path, sizeof path, "%s/flotilla/watch.conf", dir);
  static const char bad[] = "sort 99\nview -3\nsmoothing x\nfuture 1\n\ncolor\n\xff\xfe\n";
  ck_assert_int_eq(fl_fs_replace(path, bad, sizeof bad - 1, NULL), FL_OK);
  tui_settings_default(&s);
  tui_settings_load(&s);
  ck_assert_int_eq(s.sort, 0);
  ck_assert_int_eq(s.view, 0);
  ck_assert_int_eq(s.smoothing, 20);
}
END_TEST

/* --- everything, at random ------------------------------------------------------------------- */

static tui_key random_key(fl_rng *r) {
  static const char chars[] = "123456?q/nN\\:eptSXr <>.,[]fhjklgGwsImcyo+-0xi\xC3";
  tui_key k = { .code = (tui_key_code)fl_rng_below(r, TUI_KEY_RESIZE + 1) };
  k.x = (int)fl_rng_below(r, 220) - 5;
  k.y = (int)fl_rng_below(r, 70) - 5;
  k.mouse = (tui_mouse)fl_rng_below(r, 4);
  if (k.code == TUI_KEY_CHAR) k.cp = (unsigned char)chars[fl_rng_below(r, sizeof chars - 1)];
  else if (k.code == TUI_KEY_CTRL) k.cp = 'a' + (uint32_t)fl_rng_below(r, 26);
  else if (k.code == TUI_KEY_F) k.cp = 1 + (uint32_t)fl_rng_below(r, 12);
  /* characters are half of what people press */
  if (fl_rng_below(r, 2)) k = (tui_key){ .code = TUI_KEY_CHAR, .cp = k.cp ? k.cp : 'j' };
  if (k.code == TUI_KEY_CHAR && (k.cp == 'e' || k.cp == 'E')) k.cp = 'j'; /* writes files */
  return k;
}

static void play_at_random(uint32_t seed, int keys) {
  fl_rng r = fl_rng_stream(seed, FL_RNG_TEST, 1, 0, 0);
  for (int i = 0; i < keys; i++) {
    tui_key k = random_key(&r);
    /* exports by menu or command would write files as well */
    if (app->overlay == TUI_OVER_MENU && app->overlay_row >= 8) app->overlay_row = 0;
    tui_app_key(app, &k);
    app->quit = false;
    if (i % 7 == 0) draw(20 + (int)fl_rng_below(&r, 200), 5 + (int)fl_rng_below(&r, 60));
    if (i % 31 == 0) {
      bool more;
      tui_app_tick(app, 0.01, &more);
    }
  }
}

START_TEST(any_key_at_any_size) {
  char *cwd = getcwd(NULL, 0);
  open_voyage();
  ck_assert_int_eq(chdir(dir), 0);
  play_at_random((uint32_t)_i, 3000);
  ck_assert_int_eq(chdir(cwd), 0);
  free(cwd);
}
END_TEST

static const char hostile[] =
    "{\"t\":1,\"ev\":\"run\",\"cmd\":\"train\",\"rounds\":0,\"round0\":4294967294,\"budget\":0}\n"
    "{\"t\":1,\"ev\":\"doc\",\"doc\":0,"
    "\"name\":\"\\u001b[31m\\u001b]0;owned\\u0007\\u202egpj.exe\"}\n"
    "{\"t\":1,\"ev\":\"doc\",\"doc\":1,\"name\":\"\xE6\xBC\xA2\xE5\xAD\x97\xE6\xBC\xA2\xE5\xAD\x97"
    "\xE6\xBC\xA2\xE5\xAD\x97\xE6\xBC\xA2\xE5\xAD\x97\xE6\xBC\xA2\xE5\xAD\x97\"}\n"
    "{\"t\":1,\"ev\":\"doc\",\"doc\":2,\"name\":\"e\\u0301\\u0301\\u0301\\u0301\\u0301\\u0301x\"}\n"
    "{\"t\":1,\"ev\":\"doc\",\"doc\":3,\"name\":\"\",\"tokens\":0}\n"
    "{\"t\":1,\"ev\":\"doc\",\"doc\":4294967294,\"name\":\"\\u0000\\n\\r\\t\",\"tokens\":1}\n"
    "{\"t\":1,\"ev\":\"study\",\"doc\":3,\"first\":4294967293,\"end\":4294967294,\"request\":7}\n"
    "{\"t\":1,\"ev\":\"study\",\"doc\":9,\"rejected\":\"because\",\"of\":\"\\u001b[2J\"}\n"
    "{\"t\":1,\"ev\":\"round\",\"round\":4294967294,\"doc\":4294967294,"
    "\"loss\":-1e29,\"seconds\":0}\n"
    "{\"t\":1,\"ev\":\"round\",\"round\":1,\"doc\":0,\"loss\":1e29,\"seconds\":-5,\"gen_s\":9}\n"
    "{\"t\":9e10,\"ev\":\"round\",\"round\":2,\"doc\":1,\"loss\":0,\"rss\":1e29,\"tokens\":0}\n"
    "{\"t\":2,\"ev\":\"heldout\",\"round\":0,\"doc\":2,\"alone\":1e29,\"composed\":-3}\n"
    "{\"t\":2,\"ev\":\"retrieve\",\"query\":\"\\u001b[31m\",\"docs\":[{\"doc\":-1,"
    "\"score\":null},7,{\"doc\":1e300,\"name\":\"\\u009b31m\",\"score\":1e300}],"
    "\"chunks\":{\"a\":1},\"chosen\":[null]}\n"
    "{\"t\":2,\"ev\":\"answer\",\"query\":\"q\\u001b\",\"text\":\"\\u001b[2J\","
    "\"docs\":[null,{},-1]}\n"
    "{\"t\":2,\"ev\":\"save\",\"bytes\":-1,\"seconds\":1e29,\"reason\":\"\\u001b\"}\n"
    "{\"t\":2,\"ev\":\"error\",\"text\":\"\\u001b[31m\"}\n";

START_TEST(a_hostile_log) {
  char path[128];
  snprintf(path, sizeof path, "%s/events.jsonl", dir);
  ck_assert_int_eq(fl_fs_replace(path, hostile, sizeof hostile - 1, NULL), FL_OK);
  const char *fleet = dir;
  open_fleets(&fleet, 1);
  ck_assert_uint_gt(tui_app_feed(app)->store.n_ticks, 10);
  for (uint32_t v = 0; v < TUI_VIEWS; v++) {
    press(TUI_KEY_CHAR, '1' + v);
    for (int w = 20; w < 220; w += 13) {
      const char *p = draw(w, 5 + w / 4);
      for (; *p; p++) ck_assert_msg((unsigned char)*p >= 0x20 || *p == '\n', "a raw %d", *p);
      ck_assert_ptr_null(strstr(draw(w, 5 + w / 4), "\xE2\x80\xAE"));
    }
  }
  char *cwd = getcwd(NULL, 0);
  ck_assert_int_eq(chdir(dir), 0);
  for (uint32_t seed = 0; seed < 6; seed++) play_at_random(seed, 500);
  ck_assert_int_eq(chdir(cwd), 0);
  free(cwd);
}
END_TEST

START_TEST(a_foreign_log) {
  char path[128];
  snprintf(path, sizeof path, "%s/events.jsonl", dir);
  ck_assert_int_eq(fl_fs_replace(path, "root:x:0:0\nhello\n", 17, NULL), FL_OK);
  const char *fleet = dir;
  open_fleets(&fleet, 1);
  ck_assert(shows("this is not an event log of flotilla"));
}
END_TEST

START_TEST(bad_arguments) {
  fl_err err = { 0 };
  const char *missing = "/nonexistent/fleet";
  tui_options o = { .fleets = &missing, .n_fleets = 1 };
  ck_assert_int_eq(tui_app_init(app, &o, &err), FL_ENOENT);
  ck_assert_ptr_nonnull(strstr(err.text, missing));
  tui_app_release(app);
  o = (tui_options){ .fleets = &missing, .n_fleets = 1, .view = "sea", .wait = true };
  ck_assert_int_eq(tui_app_init(app, &o, NULL), FL_EUSAGE);
  tui_app_release(app);
  o.n_fleets = 0;
  ck_assert_int_eq(tui_app_init(app, &o, NULL), FL_EUSAGE);
}
END_TEST

Suite *suite_views(void);
Suite *suite_views(void) {
  Suite *s = suite_create("views");
  TCase *t = tcase_create("Core");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, sort_and_worst);
  tcase_add_test(t, search_and_filter);
  tcase_add_test(t, loss_zoom_and_cursor);
  tcase_add_test(t, rejected_only);
  tcase_add_test(t, coverage_below);
  tcase_add_test(t, playback);
  tcase_add_test(t, it_leaves_when_told_to);
  tcase_add_test(t, a_run_without_events);
  tcase_add_test(t, several_runs);
  tcase_add_test(t, mouse);
  tcase_add_test(t, no_trainer);
  tcase_add_test(t, exports);
  tcase_add_test(t, settings);
  tcase_add_loop_test(t, any_key_at_any_size, 0, 6);
  tcase_add_test(t, a_hostile_log);
  tcase_add_test(t, a_foreign_log);
  tcase_add_test(t, bad_arguments);
  tcase_set_timeout(t, 120);
  suite_add_tcase(s, t);
  return s;
}
