/* views_util.h - the dashboard without a terminal: opened on logs, given keys, drawn as text. The
 * working folder is a scratch one. */
#ifndef FL_TESTSUITE_VIEWS_UTIL_H
#define FL_TESTSUITE_VIEWS_UTIL_H

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "suite.h"
#include "tui/app.h"

static char dir[64];
static tui_app *app;
static tui_canvas screen;

static inline void remove_all(const char *folder) {
  char **names = NULL;
  size_t n = 0;
  if (fl_fs_list(&names, &n, folder, NULL) != FL_OK) return;
  for (size_t i = 0; i < n; i++) {
    char *p = fl_fs_join(folder, names[i]);
    if (fl_fs_is_dir(p)) remove_all(p);
    else unlink(p);
    fl_free(p);
  }
  fl_fs_list_free(names, n);
  rmdir(folder);
}

/* The working folder is a scratch one too: exports are written there. */
static inline void setup(void) {
  strcpy(dir, "/tmp/flviewXXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(dir));
  setenv("XDG_CONFIG_HOME", dir, 1);
  setenv("TZ", "UTC", 1);
  tzset();
  app = fl_calloc(1, sizeof *app);
}

static inline void teardown(void) {
  tui_app_release(app);
  fl_free(app);
  tui_canvas_release(&screen);
  remove_all(dir);
}

static inline void load(void) {
  bool more = true;
  while (more) tui_app_tick(app, 1, &more);
}

static inline void open_fleets(const char *const *paths, size_t n) {
  tui_options o = { .fleets = paths, .n_fleets = n };
  ck_assert_int_eq(tui_app_init(app, &o, NULL), FL_OK);
  load();
}

static inline void open_voyage(void) {
  const char *path = fixture("events/voyage.jsonl");
  open_fleets(&path, 1);
}

static inline void press(tui_key_code code, uint32_t cp) {
  tui_app_key(app, &(tui_key){ .code = code, .cp = cp });
}

static inline void type(const char *s) {
  for (; *s; s++) press(TUI_KEY_CHAR, (unsigned char)*s);
}

static inline const char *draw(int w, int h) {
  static fl_buf text;
  if (w != screen.w || h != screen.h) ck_assert_int_eq(tui_canvas_resize(&screen, w, h), FL_OK);
  screen.ascii = app->settings.ascii;
  tui_app_draw(app, &screen);
  fl_buf_reset(&text);
  tui_canvas_text(&screen, &text);
  return text.data;
}

static inline bool shows(const char *what) { return strstr(draw(80, 24), what) != NULL; }

static inline char *golden_path(const char *name) {
  const char *src = getenv("SRCDIR");
  return fl_asprintf("%s/testsuite/tui/golden/%s.txt", src ? src : "..", name);
}

/* The screen against testsuite/tui/golden; FL_UPDATE_GOLDEN=1 writes it anew, then read the
 * difference. */
static inline void golden(const char *name, int w, int h) {
  const char *picture = draw(w, h);
  char *path = golden_path(name);
  fl_buf want = { 0 };
  if (getenv("FL_UPDATE_GOLDEN"))
    ck_assert_int_eq(fl_fs_replace(path, picture, strlen(picture), NULL), FL_OK);
  ck_assert_msg(fl_fs_read(&want, path, 1 << 20, NULL) == FL_OK, "%s is missing", path);
  ck_assert_msg(strcmp(want.data, picture) == 0, "%s differs; now:\n%s", path, picture);
  fl_buf_release(&want);
  fl_free(path);
}

#endif
