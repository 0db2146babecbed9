/* settings.c - the file of settings. */
#include "tui/settings.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"

typedef struct setting {
  const char *name;
  size_t at;
  bool is_bool;
  int max;
} setting;

static const setting table[] = {
  { "view", offsetof(tui_settings, view), false, 5 },
  { "sort", offsetof(tui_settings, sort), false, 8 },
  { "sort-down", offsetof(tui_settings, sort_down), true, 1 },
  { "smoothing", offsetof(tui_settings, smoothing), false, 1000 },
  { "log-scale", offsetof(tui_settings, log_scale), true, 1 },
  { "held-out", offsetof(tui_settings, held_out), true, 1 },
  { "curves", offsetof(tui_settings, curves), false, 3 },
  { "ascii", offsetof(tui_settings, ascii), true, 1 },
  { "color", offsetof(tui_settings, color), false, 4 },
  { "mouse", offsetof(tui_settings, mouse), true, 1 },
};
enum { SETTINGS = sizeof table / sizeof *table, FILE_MAX = 64 << 10 };

void tui_settings_default(tui_settings *s) {
  *s = (tui_settings){ .smoothing = 20, .held_out = true, .mouse = true };
}

/* The folder; NULL where no home is known. */
static char *settings_dir(void) {
  const char *config = getenv("XDG_CONFIG_HOME");
  if (config && config[0] == '/') return fl_fs_join(config, "flotilla");
  const char *home = getenv("HOME");
  return home && home[0] == '/' ? fl_fs_join(home, ".config/flotilla") : NULL;
}

static void take(tui_settings *s, const char *name, const char *value) {
  char *end;
  long v = strtol(value, &end, 10);
  if (end == value || *end != '\0' || v < 0) return;
  for (size_t i = 0; i < SETTINGS; i++) {
    if (strcmp(table[i].name, name) != 0 || v > table[i].max) continue;
    void *p = (char *)s + table[i].at;
    if (table[i].is_bool) *(bool *)p = v != 0;
    else *(int *)p = (int)v;
  }
}

void tui_settings_load(tui_settings *s) {
  char *dir = settings_dir();
  char *path = dir ? fl_fs_join(dir, "watch.conf") : NULL;
  fl_buf text = { 0 };
  if (path && fl_fs_read(&text, path, FILE_MAX, NULL) == FL_OK && text.data) {
    char *state = NULL;
    char *line = strtok_r(text.data, "\n", &state);
    for (; line; line = strtok_r(NULL, "\n", &state)) {
      char *space = strchr(line, ' ');
      if (!space || line[0] == '#') continue;
      *space = '\0';
      take(s, line, space + 1);
    }
  }
  fl_buf_release(&text);
  fl_free(path);
  fl_free(dir);
}

int tui_settings_save(const tui_settings *s, fl_err *err) {
  char *dir = settings_dir();
  char *path = dir ? fl_fs_join(dir, "watch.conf") : NULL;
  fl_buf text = { 0 };
  fl_buf_puts(&text, "# settings of flotilla watch; written by the program\n");
  for (size_t i = 0; i < SETTINGS; i++) {
    const void *p = (const char *)s + table[i].at;
    int v = table[i].is_bool ? *(const bool *)p : *(const int *)p;
    fl_buf_printf(&text, "%s %d\n", table[i].name, v);
  }
  int rc = path && !text.oom ? fl_fs_mkdir(dir, err) : FL_EFAIL;
  if (rc == FL_OK) rc = fl_fs_replace(path, text.data, text.len, err);
  fl_buf_release(&text);
  fl_free(path);
  fl_free(dir);
  return rc;
}
